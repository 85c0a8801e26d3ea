"""Marginal densities of one or two columns, by class and by component."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import UNLABELLED
from hybridmix.estimators.components import Marginal
from hybridmix.explorer.cells import shape_of
from hybridmix.explorer.plain import QuestionError, is_whole
from hybridmix.plots.drawing import ellipse
from hybridmix.plots.marginals import MarginalView, Variable

_N_POINTS, _N_CELLS = 160, 48
_N_BINS = 30
# Components and rows beyond these would cover each other.
_MOST_COMPONENTS, _MOST_ROWS = 40, 400
# Contours enclose these shares of the mass.
_ENCLOSED = (0.5, 0.9)
# Every how many points of an ellipse are drawn.
_STEP = 5


def density_answer(view: MarginalView, columns: Any) -> dict[str, Any]:
    r"""Return the joint density of one or two columns and the class.

    All other columns are integrated out exactly.

    Parameters
    ----------
    view : MarginalView
        A fitted mixture, and rows to show with it.
    columns : list of int
        Positions of one or two columns.

    Returns
    -------
    answer : dict
        "axes", for each column what its axis shows. For one column: "classes", the
        curves :math:`p(x_j, c)`, (C, m); "components", curves (J, m), with their
        "component_classes"; "bins", histograms of the rows. For two: "level", the density
        divided by its maximum, (m_1, m_2); "winner" and "share", the most probable class
        and its probability at each point; "contours", levels that enclose 50 % and 90 %
        of the mass; "ellipses", two deviations around the components; "rows".
    """
    _check_columns(view, columns)
    n_points = _N_POINTS if len(columns) == 1 else _N_CELLS
    variables = [view.variable(column, n_points) for column in columns]
    log_joint = view.log_joint_on_grid(columns, variables)
    answer = {"axes": [_axis(variable) for variable in variables]}
    if len(columns) == 1:
        return answer | _curves(view, columns[0], variables[0], np.exp(log_joint))
    return answer | _map(view, columns, variables, log_joint)


def _check_columns(view: MarginalView, columns: Any) -> None:
    usable = (*view.schema.real, *view.schema.categorical)
    is_list = isinstance(columns, list) and 1 <= len(columns) <= 2
    if not is_list or not all(map(is_whole, columns)):
        raise QuestionError("'columns' must be a list of one or two positions.")
    for column in columns:
        if column not in usable or columns.count(column) > 1:
            raise QuestionError(f"There is no density of the columns {columns}.")


def _axis(variable: Variable) -> dict[str, Any]:
    categories = variable.categories
    return {
        "name": variable.name,
        "points": variable.points,
        "categories": None if categories is None else [str(one) for one in categories],
    }


# One column ---------------------------------------------------------------------------


def _curves(
    view: MarginalView, column: int, variable: Variable, joint: FloatArray
) -> dict[str, Any]:
    is_real = variable.categories is None
    marginal = Marginal.of(view.estimator, [column])
    real, codes = (variable.points[:, None], np.empty((len(variable.points), 0), int))
    if not is_real:
        codes, real = real.astype(np.int32), codes.astype(np.float64)
    components = np.exp(marginal.log_components(real, codes))
    shown = _largest(marginal)
    spikes = []
    if variable.masses is not None:
        spikes = [
            {"value": value, "masses": masses}
            for value, masses in zip(variable.spikes, variable.masses.T, strict=True)
        ]
    return {
        "classes": joint,
        "components": components[shown],
        "component_classes": marginal.model.class_of[shown],
        "spikes": spikes,
        "bins": _bins(view, variable),
    }


def _largest(marginal: Marginal) -> FloatArray:
    """Return the components of the largest shares, in their order."""
    order = np.argsort(-marginal.model.log_weights, kind="stable")
    return np.sort(order[:_MOST_COMPONENTS])


def _bins(view: MarginalView, variable: Variable) -> dict[str, Any]:
    """Return histograms of the rows on the scale of the densities, by class.

    Without labels there is a single one, of all rows.
    """
    values, labels = variable.values, view.labels
    observed = ~np.isnan(values)
    groups = [observed & (labels == number) for number in range(len(view.classes))]
    if np.all(labels == UNLABELLED):
        groups = [observed]
    if variable.categories is None:
        edges = np.histogram_bin_edges(values[observed], _N_BINS)
    else:
        edges = np.arange(len(variable.categories) + 1) - 0.5
    n_rows = max(int(sum(group.sum() for group in groups)), 1)
    is_spike = np.isin(values, variable.spikes)
    heights = [
        np.histogram(values[group & ~is_spike], edges)[0] / (n_rows * np.diff(edges))
        for group in groups
    ]
    return {"edges": edges, "heights": heights}


# Two columns --------------------------------------------------------------------------


def _map(
    view: MarginalView,
    columns: list[int],
    variables: list[Variable],
    log_joint: FloatArray,
) -> dict[str, Any]:
    total = np.logaddexp.reduce(log_joint, axis=0)
    level = np.exp(total - total.max())
    winner = log_joint.argmax(axis=0)
    return {
        "level": level.round(4),
        "winner": winner,
        "share": np.exp(log_joint.max(axis=0) - total).round(3),
        "contours": [_enclosing(level, share) for share in _ENCLOSED],
        "ellipses": _ellipses(view, columns),
        "rows": _rows(view, variables),
    }


def _enclosing(level: FloatArray, share: float) -> float:
    """Return the level above which a share of the mass on the grid lies."""
    ordered = np.sort(level.ravel())[::-1]
    mass = np.cumsum(ordered)
    return float(ordered[np.searchsorted(mass, share * mass[-1])])


def _ellipses(view: MarginalView, columns: list[int]) -> list[dict[str, Any]]:
    """Return the outlines of components, if both columns are real."""
    if any(column in view.schema.categorical for column in columns):
        return []
    marginal = Marginal.of(view.estimator, columns)
    shapes = [shape_of(view.schema, column) for column in columns]
    means, covariances = marginal.moments()
    found = []
    for number in _largest(marginal).tolist():
        outline = ellipse(means[number], covariances[number])[:, ::_STEP]
        pairs = zip(shapes, outline, strict=True)
        x, y = (shape.inverse(values) for shape, values in pairs)
        label = int(marginal.model.class_of[number])
        found.append({"class": label, "x": x, "y": y})
    return found


def _rows(view: MarginalView, variables: list[Variable]) -> dict[str, Any]:
    """Return the places and labels of rows that have both columns, not too many."""
    x, y = (variable.values for variable in variables)
    rows = np.flatnonzero(~np.isnan(x) & ~np.isnan(y))
    if len(rows) > _MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST_ROWS).round().astype(int)]
    return {"x": x[rows], "y": y[rows], "label": view.labels[rows], "row": rows}
