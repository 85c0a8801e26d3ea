"""Real targets: what all regressors do with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length

from hybridmix._require import require, require_instance
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data import Schema, Table
from hybridmix.data.columns import Columns
from hybridmix.data.targets import read_targets
from hybridmix.data.weights import read_weights
from hybridmix.estimators.base import FittedMixture


class RealTargets(MultiOutputMixin, RegressorMixin):
    """What is common to regressors: one or several targets, some of them missing."""

    n_outputs_: int
    target_ndim_: int

    def _observed_targets(self, y: Any, n_rows: int) -> FloatArray:
        """Return the targets (n, t) of rows to score, NaN where missing."""
        return self._read_targets(y, n_rows).real(range(self.n_outputs_))

    def _shaped(self, values: FloatArray) -> FloatArray:
        """Turn (t, n), or (t, q, n), into (n,) or (n, t), with q as the last axis."""
        values = np.moveaxis(values, -1, 0)
        return np.ascontiguousarray(values[:, 0] if self.target_ndim_ == 1 else values)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination; rows without a target are left out.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows, preferably not seen in training.
        y : array-like of shape (n,) or (n, t)
            Their targets.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            1 for perfect predictions, 0 for those of the mean. Of several targets, the
            mean of their coefficients.
        """
        from sklearn.metrics import r2_score

        predicted = np.asarray(self.predict(X)).reshape(-1, self.n_outputs_)
        observed = self._observed_targets(y, len(predicted))
        weights = read_weights(sample_weight, len(predicted))
        scores = []
        for own, known in zip(predicted.T, observed.T, strict=True):
            is_known: BoolArray = ~np.isnan(known)
            own_weights = None if weights is None else weights[is_known]
            scores.append(
                r2_score(known[is_known], own[is_known], sample_weight=own_weights)
            )
        return float(np.mean(scores))

    def _require_dimensions(self) -> None:
        """Raise ValueError unless the form of the targets fits their number."""
        one, several = self.target_ndim_ == 1, self.target_ndim_ == 2
        require(several or (one and self.n_outputs_ == 1), "target_ndim_ is wrong")

    def _read_targets(self, y: Any, n_rows: int) -> Columns:
        """Read the targets of rows to score, as many as those of training."""
        columns, _ = read_targets(y)
        check_consistent_length(np.empty(n_rows), np.empty(columns.n_rows))
        if columns.n_columns != self.n_outputs_:
            raise ValueError(
                f"y has {columns.n_columns} target(s), but the model was fitted to "
                f"{self.n_outputs_}."
            )
        return columns


class FittedRegressor(RealTargets, FittedMixture):
    """Base of the regressors: targets of one or several columns, some of them missing."""

    target_schema_: Schema
    fitted_attributes = (
        *FittedMixture.fitted_attributes,
        "target_schema_",
        "n_outputs_",
        "target_ndim_",
    )

    def check_consistent(self) -> None:
        """Raise ValueError unless the targets are real columns, as many as published."""
        super().check_consistent()
        targets = self.target_schema_
        require_instance("target_schema_", targets, Schema)
        are_real = targets.real == tuple(range(targets.n_columns))
        require(are_real, "a target is not a real column")
        require(self.n_outputs_ == targets.n_columns, "n_outputs_ is wrong")
        self._require_dimensions()

    def _observed_targets(self, y: Any, n_rows: int) -> FloatArray:
        return self._encode_targets(y, n_rows).real

    def _encode_targets(self, y: Any, n_rows: int) -> Table:
        return self.target_schema_.encode(self._read_targets(y, n_rows))
