"""Regression: predictive distributions against real targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.targets import read_targets
from hybridmix.metrics import COVERAGE, LEVELS, as_forecasts, regression_scores
from hybridmix.tasks.base import FEWEST_ROWS, Cases, Entrant, Metric, Task


class Regress(Task):
    """Predict the targets of rows, with intervals and densities."""

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
        """Return the targets, NaN where missing; of several, no truth is known."""
        if y is None:
            return None, np.full(n_rows, np.nan)
        columns, _ = read_targets(y)
        check_consistent_length(np.empty(n_rows), np.empty(columns.n_rows))
        targets = columns.real(list(range(columns.n_columns)))
        if columns.n_columns > 1:
            return targets, np.full(n_rows, np.nan)
        return targets[:, 0], targets[:, 0]

    def groups(self, cases: Cases) -> IntArray:
        """Return one group of all rows with a target."""
        return np.where(np.isnan(cases.truth), -1, 0)

    def obstacle(self, cases: Cases) -> str | None:
        """Say why predictions cannot be compared with targets."""
        if cases.y is None:
            return (
                "No targets were given, so predictions cannot be compared with anything."
            )
        if cases.model.n_outputs_ > 1:
            return (
                f"The model predicts {cases.model.n_outputs_} targets, and only a single "
                "one can be scored. Fit a model to each."
            )
        known = cases.truth[~np.isnan(cases.truth)]
        if len(known) < FEWEST_ROWS:
            return (
                f"Scores need {FEWEST_ROWS} rows with a target or more; there are "
                f"{len(known)}."
            )
        if np.ptp(known) == 0.0:
            return "All targets are the same, so there is nothing to predict."
        return None

    def fold_obstacle(self, cases: Cases) -> str | None:
        """Return None: where rows can be scored, they can be held out."""
        return None

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
            plain_matrix,
            regression_baselines,
            seen_columns,
        )

        matrix = plain_matrix(cases.table, used)
        has_target = ~np.isnan(cases.truth[used])
        columns = seen_columns(matrix, has_target, folds)
        makers = regression_baselines(
            cases.table.schema, columns, int(has_target.sum()), cases.seed
        )
        for name, make in makers.items():
            yield Entrant(name, matrix, cases.truth[used], has_target, make)

    def outputs(self, cases: Cases, model: Any, X: Any, truth: FloatArray) -> FloatArray:
        """Return forecasts, as `hybridmix.metrics.as_forecasts` has them."""
        return forecasts_of(model, X, truth)

    def scores(self, truth: FloatArray, outputs: FloatArray) -> dict[str, Estimate]:
        """Return the metrics of some rows by name."""
        return regression_scores(truth, outputs)


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
