"""What estimators of maximum entropy discrimination publish."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.med.bounds import Bounds, bounds_of
from hybridmix.med.machines import (
    DensityMachine,
    LinearMachine,
    Machine,
    StackedMachine,
)
from hybridmix.training.discrimination import LabelledRows, log_scores
from hybridmix.training.machines import Matrix, TrainedMachine


def machine_attributes(trained: TrainedMachine) -> dict[str, Any]:
    """Return the attributes that the machine determines."""
    found: dict[str, Any] = {}
    if trained.inclusion is not None:
        found["inclusion_"] = trained.inclusion
    linear = linear_part(trained.machine)
    if linear is not None:
        found["coef_"], found["intercept_"] = linear.coef, linear.bias
    if isinstance(trained.machine, DensityMachine):
        found["intercept_"] = trained.machine.bias
        edges = trained.machine.densities.edge_probabilities()
        if edges is not None:
            found["edge_probabilities_"] = edges
    return found


def linear_part(machine: Machine) -> LinearMachine | None:
    """Return linear functions of all outputs, if a machine has these."""
    parts = machine.parts if isinstance(machine, StackedMachine) else (machine,)
    linear = [part for part in parts if isinstance(part, LinearMachine)]
    if not linear:
        return None
    coef = np.vstack([part.coef for part in linear])
    return LinearMachine(coef, np.concatenate([part.bias for part in linear]))


def row_attributes(
    trained: TrainedMachine, rows: LabelledRows, used: IntArray, n_rows: int
) -> dict[str, Any]:
    """Return multipliers of all rows, and which rows have any.

    Parameters
    ----------
    trained : TrainedMachine
        The machine.
    rows : LabelledRows
        Rows that took part.
    used : ndarray of int
        Their positions in the table.
    n_rows : int
        Number of rows of the table.
    """
    parts = trained.multipliers.reshape(-1, len(used))
    own = parts.T
    if rows.n_classes == 2:
        own = parts[0]
    elif not isinstance(trained.machine, StackedMachine):
        ranks = np.arange(rows.n_classes - 1)[:, None]
        own = np.zeros((len(used), rows.n_classes))
        np.put_along_axis(own.T, ranks + (ranks >= rows.labels), parts, axis=0)
    multipliers = np.zeros((n_rows, *own.shape[1:]))
    multipliers[used] = own
    has_any = multipliers.reshape(n_rows, -1).any(axis=1)
    return {"multipliers_": multipliers, "support_": np.flatnonzero(has_any)}


def training_bounds(
    trained: TrainedMachine, rows: LabelledRows, least: float, has_columns: bool
) -> Bounds:
    """Return the bounds of the error of two classes.

    Parameters
    ----------
    trained : TrainedMachine
        The machine.
    rows : LabelledRows
        Rows that it was trained on.
    least : float
        The mean margin.
    has_columns : bool
        Whether a linear machine is one of columns, and not of a kernel matrix.
    """
    known = np.flatnonzero(rows.labelled)
    features = rows.features if rows.labelled.all() else rows.features[known]
    scores = log_scores(trained.machine.outputs(features))
    margins = (scores[1] - scores[0]) * np.where(rows.labels[known] == 1, 1.0, -1.0)
    geometry = None
    if has_columns and isinstance(trained.machine, LinearMachine):
        length = float(np.linalg.norm(trained.machine.coef))
        geometry = (_diameter(features), length, features.shape[1])
    multipliers = trained.multipliers.reshape(-1, len(rows.labels))[0][known]
    return bounds_of(margins, multipliers, least, trained.divergence, geometry)


def _diameter(X: Matrix) -> float:
    """Return the diameter of a ball around the mean that holds all rows."""
    centre: FloatArray = np.asarray(X.mean(axis=0)).ravel()
    squares = np.asarray((X**2).sum(axis=1)).ravel()
    lengths = squares - 2.0 * (X @ centre) + centre @ centre
    return 2.0 * float(np.sqrt(max(float(lengths.max()), 0.0)))


def function_attributes(trained: TrainedMachine, several: bool) -> dict[str, Any]:
    """Return the attributes that the machine determines, in the form of the targets."""
    found = machine_attributes(trained)
    if several:
        return found
    single = {name: values[0] for name, values in found.items()}
    if "intercept_" in single:
        single["intercept_"] = float(single["intercept_"])
    return single


def target_multipliers(
    parts: list[TrainedMachine], used: list[BoolArray], several: bool
) -> dict[str, Any]:
    """Return multipliers of all rows."""
    multipliers = np.zeros((len(used[0]), len(parts), 2))
    for number, (part, rows) in enumerate(zip(parts, used, strict=True)):
        multipliers[rows, number] = part.multipliers.reshape(2, -1).T
    return {
        "multipliers_": multipliers if several else multipliers[:, 0],
        "support_": np.flatnonzero(multipliers.any(axis=(1, 2))),
    }
