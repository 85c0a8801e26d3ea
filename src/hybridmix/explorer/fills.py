"""What a mixture expects in a cell, given the rest of the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from hybridmix._logsumexp import class_posterior
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.rows import Rows
from hybridmix.data.targets import with_hidden
from hybridmix.estimators.predictions import atoms_of, in_units
from hybridmix.explorer.cells import shape_of
from hybridmix.models.mixture import Mixture
from hybridmix.models.predictive import Forecast, Predictive

# Points of the small curves next to the cells.
N_POINTS = 60
# Ends of the intervals that are shown.
_LEVELS = (0.05, 0.95)
Ranges = Mapping[int, tuple[float, float]]
_LOG_2PI = float(np.log(2.0 * np.pi))


def real_fills(
    model: Mixture, schema: Schema, rows: Mapping[int, Rows], ranges: Ranges
) -> dict[int, dict[str, Any]]:
    r"""Describe the distributions of real cells, each given the rest of its row.

    .. math:: p(x_j \mid x_{o \setminus j})

    Parameters
    ----------
    model : Mixture
        The density of rows.
    schema : Schema
        Of their columns.
    rows : mapping of int to Rows
        For each real column, a single row; whether it has the cell makes no difference.
    ranges : mapping of int to tuple of float
        Where the curve of each column begins and ends.

    Returns
    -------
    fills : dict of int to dict
        For each column "low" and "high", the ends of the 90 % interval; "density" at
        `N_POINTS` points from end to end; "spikes", pairs of values and their
        probabilities.
    """
    predictive = Predictive((model,), np.ones(1), 1.0)
    forecasts = {}
    for column, row in rows.items():
        [place], codes = schema.model_places([column])
        code = codes[0] if codes else None
        forecasts[column] = predictive.forecast(row, place, code, atoms_of(schema, place))
    ends = _intervals(list(forecasts.values()))
    fills = {}
    for (column, forecast), own in zip(forecasts.items(), ends.T, strict=True):
        [place], _ = schema.places([column])
        low, high = in_units(own, schema, place)
        points = np.linspace(*ranges[column], N_POINTS)
        spikes = shape_of(schema, column).spikes
        fills[column] = {
            "low": low,
            "high": high,
            "density": forecast_density(forecast, schema, place, points),
            "spikes": list(zip(spikes, forecast.masses[:, 0].tolist(), strict=True)),
        }
    return fills


def _intervals(forecasts: list[Forecast]) -> FloatArray:
    """Return the ends (2, n) of intervals, those without atoms in one bisection."""
    ends = np.empty((len(_LEVELS), len(forecasts)))
    levels = np.array(_LEVELS)
    plain = [k for k, own in enumerate(forecasts) if len(own.atoms) == 0]
    if plain:
        parts = zip(*(forecasts[k] for k in plain), strict=True)
        weights, means, deviations, masses, _ = (
            np.concatenate(part, axis=-1) for part in parts
        )
        stacked = Forecast(weights, means, deviations, masses, np.empty(0))
        for level, own in zip(levels, ends, strict=True):
            own[plain] = stacked.quantiles(np.full(len(plain), level))
    for k, forecast in enumerate(forecasts):
        if k not in plain:
            ends[:, k] = [forecast.quantiles(levels[[n]])[0] for n in range(len(levels))]
    return ends


def forecast_density(
    forecast: Forecast, schema: Schema, place: int, points: FloatArray
) -> FloatArray:
    """Return the density (m,) of a value at some points, in the units of its column.

    Parameters
    ----------
    forecast : Forecast
        The distribution of the value, for a single row.
    schema : Schema
        Of the columns.
    place : int
        Place of the column among the real ones.
    points : ndarray of shape (m,)
        Values of the column.
    """
    shape = shape_of(schema, schema.real[place])
    centre, scale = schema.centre[place], schema.scale[place]
    scaled = (shape.forward(points) - centre) / scale
    distances = (scaled - forecast.means) / forecast.deviations
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(forecast.weights / forecast.deviations) - 0.5 * distances**2
    log_density = logsumexp(logs, axis=0) - 0.5 * _LOG_2PI - np.log(scale)
    if shape.transform is not None:
        log_density += shape.transform.log_derivative(points)
    return np.exp(log_density)


def category_fill(
    model: Mixture, schema: Schema, row: Rows, column: int
) -> dict[str, Any]:
    """Return the probabilities of the categories of a cell, given the rest of its row.

    Parameters are those of `real_fills`, for a single row and column.
    """
    _, [place] = schema.model_places([column])
    n_categories = len(schema.categories[place])
    rows = with_hidden(row, [], [place])[np.zeros(n_categories, dtype=np.intp)]
    codes = rows.codes.copy()
    codes[place] = np.arange(n_categories)
    evaluation = model.evaluate(model.prepare(replace(rows, codes=codes)))
    evidence, _ = class_posterior(evaluation.log_joint)
    return {"probabilities": np.exp(evidence - logsumexp(evidence))}
