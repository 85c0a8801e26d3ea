"""What a mixture expects in a cell, given the rest of the row."""

from __future__ import annotations

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
_LOG_2PI = float(np.log(2.0 * np.pi))


def real_fill(
    model: Mixture, schema: Schema, row: Rows, column: int, ends: tuple[float, float]
) -> dict[str, Any]:
    r"""Describe the distribution of a real cell, given the rest of its row.

    .. math:: p(x_j \mid x_{o \setminus j})

    Parameters
    ----------
    model : Mixture
        The density of rows.
    schema : Schema
        Of their columns.
    row : Rows
        A single row; whether it has the cell makes no difference.
    column : int
        Position of the column.
    ends : tuple of float
        Where the curve begins and ends.

    Returns
    -------
    fill : dict
        "low" and "high", the ends of the 90 % interval; "density" at `N_POINTS` points
        from end to end; "spikes", pairs of values and their probabilities.
    """
    [place], codes = schema.model_places([column])
    atoms = atoms_of(schema, place)
    forecast = Predictive((model,), np.ones(1), 1.0).forecast(
        row, place, codes[0] if codes else None, atoms
    )
    low, high = (
        in_units(forecast.quantiles(np.array([level])), schema, place)[0]
        for level in _LEVELS
    )
    points = np.linspace(*ends, N_POINTS)
    shape = shape_of(schema, column)
    return {
        "low": low,
        "high": high,
        "density": forecast_density(forecast, schema, place, points),
        "spikes": list(zip(shape.spikes, forecast.masses[:, 0].tolist(), strict=True)),
    }


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

    Parameters are those of `real_fill`.
    """
    _, [place] = schema.model_places([column])
    n_categories = len(schema.categories[place])
    rows = with_hidden(row, [], [place])[np.zeros(n_categories, dtype=np.intp)]
    codes = rows.codes.copy()
    codes[place] = np.arange(n_categories)
    evaluation = model.evaluate(model.prepare(replace(rows, codes=codes)))
    evidence, _ = class_posterior(evaluation.log_joint)
    return {"probabilities": np.exp(evidence - logsumexp(evidence))}
