"""What a model says about one row: predictions, typicality, and every cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import MISSING_CODE, Table
from hybridmix.estimators.imputation import fill_chunk
from hybridmix.estimators.predictions import (
    MixtureForecaster,
    forecast_moments,
    in_units,
)
from hybridmix.explorer.cells import shape_of, shown_columns, written
from hybridmix.explorer.fills import (
    Ranges,
    category_fill,
    forecast_density,
    real_fills,
)
from hybridmix.models.mixture import MixtureEvaluation
from hybridmix.models.predictive import Forecast
from hybridmix.tasks import task_of

_N_POINTS = 160
# Of targets without errors, in the scale of rows.
_LEAST_DEVIATION = 1e-6
_LEVELS = np.array([0.001, 0.05, 0.25, 0.75, 0.95, 0.999])


def row_answer(model: Any, row: Table, ranges: Ranges) -> dict[str, Any]:
    """Return all that a model says about a row.

    Parameters
    ----------
    model : FittedMixture
        A fitted model of rows.
    row : Table
        A single row.
    ranges : mapping of int to tuple of float
        Ends of the curves of the real columns.

    Returns
    -------
    answer : dict
        "typicality", the log probability of a row that is no more probable; "prediction",
        by the task of the model; "cells", for each column that is shown: "fill",
        what `impute` would put there; its distribution given the other cells
        (`real_fills`, `category_fill`); "rise", by how much the typicality rises without
        the cell; and "pull", what the cell adds to the log odds of the predicted class.
    """
    copies, hidden = hidden_in_turn(row)
    typicality = model._typicality(copies)
    prediction, pulls = _PREDICTIONS[task_of(model).target](model, copies)
    return {
        "typicality": typicality[0],
        "prediction": prediction,
        "cells": _cells(model, copies, hidden, ranges, typicality, pulls),
    }


def hidden_in_turn(row: Table) -> tuple[Table, IntArray]:
    """Return a row, followed by copies that lack one of its shown cells each.

    Returns
    -------
    copies : Table
        The rows.
    hidden : ndarray of shape (n_columns,)
        For each column, the number of the copy that lacks it: 0, the row itself, if it
        lacks it as well, or if the column is not shown.
    """
    schema = row.schema
    observed = observed_columns(row)
    n_copies = 1 + len(observed)
    real, codes = np.repeat(row.real, n_copies, 0), np.repeat(row.codes, n_copies, 0)
    hidden = np.zeros(schema.n_columns, dtype=np.intp)
    for number, column in enumerate(observed, 1):
        hidden[column] = number
        real_places, code_places = schema.places([column])
        real[number, real_places] = np.nan
        codes[number, code_places] = MISSING_CODE
    return replace(row, real=real, codes=codes, has_holes=True), hidden


def observed_columns(row: Table) -> list[int]:
    """Return the shown columns that a single row has, in their order."""
    cells = written(row.schema, row.real[0], row.codes[0])
    return [column for column in shown_columns(row.schema) if cells[column] is not None]


def _cells(
    model: Any,
    copies: Table,
    hidden: IntArray,
    ranges: Ranges,
    typicality: FloatArray,
    pulls: FloatArray | None,
) -> list[dict[str, Any]]:
    schema, mixture = model.schema_, model.model_
    rows = copies[:]
    real, codes = fill_chunk(mixture, copies, slice(0, copies.n_rows))
    fills = [written(schema, *parts) for parts in zip(real.T, codes.T, strict=True)]
    columns = shown_columns(schema)
    own = {column: rows[hidden[[column]]] for column in columns}
    real_rows = {column: own[column] for column in columns if column in ranges}
    found = real_fills(mixture, schema, real_rows, ranges)
    for column in own.keys() - real_rows.keys():
        found[column] = category_fill(mixture, schema, own[column], column)
    cells = []
    for column in columns:
        number = int(hidden[column])
        cell = {"column": column, "fill": fills[number][column]} | found[column]
        if number:
            cell["rise"] = typicality[number] - typicality[0]
            cell["pull"] = None if pulls is None else pulls[number]
        cells.append(cell)
    return cells


# Predictions --------------------------------------------------------------------------


def _classes(model: Any, copies: Table) -> tuple[dict[str, Any], FloatArray]:
    """Return class probabilities, and what each cell adds to the log odds of the best."""
    logs = model._calibration.log_probabilities(model._class_scores(copies))
    prediction = {"probabilities": np.exp(logs[:, 0])}
    if len(logs) == 1:
        return prediction, np.zeros(copies.n_rows)
    best = logs[:, 0].argmax()
    log_odds = logs[best] - logsumexp(np.delete(logs, best, axis=0), axis=0)
    return prediction, log_odds[0] - log_odds


def _components(model: Any, copies: Table) -> tuple[dict[str, Any], None]:
    """Return the probabilities of the components."""
    posterior = model._joined(copies, MixtureEvaluation.component_posterior)
    return {"probabilities": posterior[:, 0]}, None


def _targets(model: Any, copies: Table) -> tuple[dict[str, Any], None]:
    """Return the predictive distributions of the targets."""
    row = replace(copies, real=copies.real[:1], codes=copies.codes[:1])
    targets = model.target_schema_
    found = []
    for k, forecast in enumerate(_forecasts(model, row)):
        [mean], [deviation] = forecast_moments(forecast, targets, k)
        low, *ends, high = in_units(_quantiles(forecast), targets, k)
        room = max(0.0, deviation - (high - low))
        points = np.linspace(low - room, high + room, _N_POINTS)
        spikes = shape_of(targets, k).spikes
        found.append(
            {
                "mean": mean,
                "deviation": deviation,
                "quantiles": ends,
                "points": points,
                "density": forecast_density(forecast, targets, k, points),
                "spikes": list(zip(spikes, forecast.masses[:, 0].tolist(), strict=True)),
            }
        )
    return {"targets": found}, None


def _forecasts(model: Any, row: Table) -> list[Forecast]:
    """Return the distributions of the targets of a row, in the scale of rows."""
    if isinstance(model, MixtureForecaster):
        return model.table_forecasts(row)
    # Others have one Gaussian for each target.
    targets = model.target_schema_
    means, deviations = model.table_moments(row)
    means = (means[:, 0] - targets.centre) / targets.scale
    deviations = np.maximum(deviations[:, 0] / targets.scale, _LEAST_DEVIATION)
    one, none = np.ones((1, 1)), np.empty((0, 1))
    return [
        Forecast(one, mean * one, deviation * one, none, np.empty(0))
        for mean, deviation in zip(means, deviations, strict=True)
    ]


def _quantiles(forecast: Forecast) -> FloatArray:
    """Return the quantiles of a single row, all in one bisection."""
    weights, means, deviations, masses = (
        np.repeat(part, len(_LEVELS), axis=1) for part in forecast[:4]
    )
    copies = Forecast(weights, means, deviations, masses, forecast.atoms)
    return copies.quantiles(_LEVELS)


_PREDICTIONS: dict[str, Callable[..., tuple[dict[str, Any], FloatArray | None]]] = {
    "classes": _classes,
    "numbers": _targets,
    "none": _components,
}
