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
from hybridmix.explorer.cells import shape_of, written
from hybridmix.explorer.fills import Ranges, category_fill, real_fills
from hybridmix.models.mixture import MixtureEvaluation
from hybridmix.tasks import task_of

_N_POINTS = 160
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
        by the task of the model; "cells", for each column that the model uses: "fill",
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
    """Return a row, followed by copies that lack one of its cells each.

    Returns
    -------
    copies : Table
        The rows.
    hidden : ndarray of shape (n_columns,)
        For each column, the number of the copy that lacks it: 0, the row itself, if it
        lacks it as well.
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
    """Return the columns that a single row has, in their order."""
    cells = written(row.schema, row.real[0], row.codes[0])
    return [column for column, value in enumerate(cells) if value is not None]


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
    columns = sorted((*schema.real, *schema.categorical))
    own = {column: rows[hidden[[column]]] for column in columns}
    found = real_fills(mixture, schema, {j: own[j] for j in schema.real}, ranges)
    for column in schema.categorical:
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
    means, deviations = model.table_moments(row)
    quantiles = model.table_quantiles(row, _LEVELS)
    found = []
    for target in range(model.n_outputs_):
        one = model.for_target(target) if model.n_outputs_ > 1 else model
        low, *ends, high = quantiles[target, :, 0]
        spikes = np.array(shape_of(one.target_schema_, 0).spikes)
        points = _with_room(low, high, deviations[target, 0])
        # Spikes have a probability and not a density.
        points = np.where(np.isin(points, spikes), np.nextafter(points, np.inf), points)
        found.append(
            {
                "mean": means[target, 0],
                "deviation": deviations[target, 0],
                "quantiles": ends,
                "points": points,
                "density": _target_density(one, row, points),
                "spikes": np.column_stack([spikes, _target_density(one, row, spikes)]),
            }
        )
    return {"targets": found}, None


def _with_room(low: float, high: float, deviation: float) -> FloatArray:
    """Return points from a low quantile to a high one, at least a deviation apart."""
    room = max(0.0, deviation - (high - low))
    return np.linspace(low - room, high + room, _N_POINTS)


def _target_density(model: Any, row: Table, points: FloatArray) -> FloatArray:
    """Return the predictive density (m,) of the only target, or masses of its spikes."""
    n_points = len(points)
    if n_points == 0:
        return np.empty(0)
    rows = replace(
        row,
        real=np.repeat(row.real, n_points, 0),
        codes=np.repeat(row.codes, n_points, 0),
    )
    no_codes = np.empty((n_points, 0), np.int32)
    targets = Table(model.target_schema_, points[:, None], no_codes, False)
    return np.exp(model._table_log_density(rows, targets))


_PREDICTIONS: dict[str, Callable[..., tuple[dict[str, Any], FloatArray | None]]] = {
    "classes": _classes,
    "numbers": _targets,
    "none": _components,
}
