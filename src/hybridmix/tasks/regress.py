"""Regression: predictive distributions against real targets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._estimates import Estimate
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.targets import read_targets
from hybridmix.metrics import COVERAGE, LEVELS, as_forecasts, regression_scores
from hybridmix.tasks.base import FEWEST_ROWS, Cases, Entrant, Metric, Task


class Regress(Task):
    """Predict the targets of rows, with intervals and densities.

    Several targets are predicted together, by models that are trained once, and scored
    one by one: `hybridmix.tasks.trials.Trial.for_target`.
    """

    target = "numbers"
    row = "row with a target", "rows with a target"
    others = (
        "Ridge regression (its penalty chosen by cross-validation) and the random forest "
        "get medians and most frequent categories for missing cells, and one-hot "
        "categories; boosted trees (scikit-learn's HistGradientBoosting) take missing "
        "cells and categories as they are. Boosted trees have smaller leaves where rows "
        "are few; all other options are the defaults. These models learn from rows with "
        "a target only. They predict no distributions: their intervals are conformal, "
        "the prediction and quantiles of their errors on training rows held out, and "
        "have the same width in every row."
    )
    metrics = (
        Metric(
            "RMSE",
            "Root of the mean squared error of the predicted means, in the units of the "
            "target.",
            is_loss=True,
            has_unit=True,
        ),
        Metric(
            "MAE",
            "Mean absolute error of the predicted means, in the units of the target.",
            is_loss=True,
            has_unit=True,
        ),
        Metric(
            "R²",
            "Share of the variance of the target that predictions explain. 1 is perfect; "
            "0 is as good as the mean of the rows.",
        ),
        Metric(
            "coverage",
            "Share of the rows whose target lies in its 90 % interval. It should be 0.9.",
            ideal=COVERAGE,
        ),
        Metric(
            "interval score",
            "Mean width of the 90 % intervals, plus 20 times the distance by which "
            "targets miss them. Narrow intervals that hold their targets score lowest.",
            is_loss=True,
            has_unit=True,
        ),
        Metric(
            "log predictive density",
            "Mean log density that the predictive distributions have at the targets, in "
            "the units of the target: the higher, the better all of them are.",
        ),
    )
    headline = ("R²", "RMSE", "coverage")

    def read(
        self, model: Any, y: Any, n_rows: int
    ) -> tuple[FloatArray | None, FloatArray]:
        """Return the targets (n,), or (n, t) if there are several; NaN where missing."""
        n_targets = model.n_outputs_
        if y is None:
            shape = (n_rows,) if n_targets == 1 else (n_rows, n_targets)
            return None, np.full(shape, np.nan)
        columns, _ = read_targets(y)
        check_consistent_length(np.empty(n_rows), np.empty(columns.n_rows))
        if columns.n_columns != n_targets:
            raise ValueError(
                f"y has {columns.n_columns} target(s), but the model predicts "
                f"{n_targets}."
            )
        targets = columns.real(list(range(n_targets)))
        if n_targets == 1:
            targets = targets[:, 0]
        return targets, targets

    def groups(self, cases: Cases) -> IntArray:
        """Return one group of all rows with a target.

        Of several targets, the group is the rarest one that a row has, so that every
        fold has its share of each.
        """
        known = _known(cases.truth)
        order = np.argsort(known.sum(axis=0), kind="stable")
        first = known[:, order].argmax(axis=1)
        return np.where(known.any(axis=1), order[first], -1)

    def obstacle(self, cases: Cases) -> str | None:
        """Say why predictions cannot be compared with targets."""
        if cases.y is None:
            return (
                "No targets were given, so predictions cannot be compared with anything."
            )
        found = [_obstacle(own) for own in _by_target(cases.truth)]
        # Of several targets, each is looked at again on its own.
        return None if None in found else found[0]

    def fold_obstacle(self, cases: Cases) -> str | None:
        """Say which of several targets has too few rows to hold any of them out."""
        counts = _known(cases.truth).sum(axis=0)
        rarest = int(counts.argmin())
        if counts[rarest] >= FEWEST_ROWS:
            return None
        names = cases.model.target_schema_.names
        name = f"number {rarest}, from 0," if names is None else names[rarest]
        return (
            f"Only {counts[rarest]} rows have the target {name}: the model cannot be "
            "retrained without some of them."
        )

    def fresh_model(self, cases: Cases) -> Any:
        """Return an unfitted regressor with the options of the one that was given.

        What that one has chosen by itself, this one chooses anew: the choice is part of
        what is judged.
        """
        from sklearn.base import clone

        fresh = clone(cases.model).set_params(verbose=0)
        if cases.model.random_state is None:
            fresh.set_params(random_state=cases.seed)
        return fresh

    def baselines(
        self, cases: Cases, used: IntArray, folds: IntArray
    ) -> Iterator[Entrant]:
        """Make regressors of scikit-learn, for rows with a target as plain numbers."""
        from hybridmix.tasks.baselines import (
            SeveralRegressors,
            plain_matrix,
            regression_baselines,
            seen_columns,
        )

        matrix = plain_matrix(cases.table, used)
        truth = cases.truth[used]
        known = _known(truth)
        seen = [set(seen_columns(matrix, own, folds)) for own in known.T]
        columns = sorted(set.intersection(*seen))
        n_known = int(known.sum(axis=0).min())
        makers = regression_baselines(cases.table.schema, columns, n_known, cases.seed)
        for name, make_one in makers.items():
            make = make_one if truth.ndim == 1 else partial(SeveralRegressors, make_one)
            yield Entrant(name, matrix, truth, np.any(known, axis=1), make)

    def outputs(self, cases: Cases, model: Any, X: Any, truth: FloatArray) -> FloatArray:
        """Return forecasts (n, 2 + L), as `hybridmix.metrics.as_forecasts` has them.

        Those of several targets are of the shape (n, t, 2 + L).
        """
        if truth.ndim == 1:
            return forecasts_of(model, X, truth)
        parts = enumerate(_by_target(truth))
        found = [forecasts_of(model.for_target(k), X, own) for k, own in parts]
        return np.stack(found, axis=1)

    def scores(self, truth: FloatArray, outputs: FloatArray) -> dict[str, Estimate]:
        """Return the metrics of some rows by name; several targets have none together."""
        return regression_scores(truth, outputs) if truth.ndim == 1 else {}


def _by_target(truth: FloatArray) -> FloatArray:
    """Return one or several targets, (t, n)."""
    return truth.reshape(len(truth), -1).T


def _known(truth: FloatArray) -> BoolArray:
    """Return which targets rows have, (n, t)."""
    return ~np.isnan(_by_target(truth).T)


def _obstacle(truth: FloatArray) -> str | None:
    """Say why predictions of a target (n,) cannot be scored; None if they can be."""
    known = truth[~np.isnan(truth)]
    if len(known) < FEWEST_ROWS:
        return (
            f"Scores need {FEWEST_ROWS} rows with a target or more; there are "
            f"{len(known)}."
        )
    if np.ptp(known) == 0.0:
        return "All targets are the same, so there is nothing to predict."
    return None


def forecasts_of(model: Any, X: Any, targets: FloatArray) -> FloatArray:
    """Return what a regressor of one target says about rows and their targets.

    Parameters
    ----------
    model : regressor
        Has ``predict`` and ``predict_quantiles``, and may have
        ``log_predictive_density``.
    X : table of n rows
        The rows.
    targets : ndarray of shape (n,)
        Their targets; NaN where there is none.

    Returns
    -------
    forecasts : ndarray of shape (n, 2 + L)
        See `hybridmix.metrics.as_forecasts`.
    """
    n_rows = len(targets)
    densities = np.full(n_rows, np.nan)
    if hasattr(model, "log_predictive_density"):
        densities = model.log_predictive_density(X, targets)
    # Targets may have been a table of one column.
    means = np.reshape(model.predict(X), n_rows)
    quantiles = np.reshape(model.predict_quantiles(X, LEVELS), (n_rows, len(LEVELS)))
    return as_forecasts(means, densities, quantiles)
