"""Real targets: what all regressors do with them."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._checks import check_number
from hybridmix._require import require, require_instance
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data import Schema, Table
from hybridmix.data.block_reading import BlockSource
from hybridmix.data.block_sources import source_of
from hybridmix.data.columns import Columns
from hybridmix.data.targets import read_targets
from hybridmix.data.weights import read_weights
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.blocks import (
    column_of,
    known_columns,
    over_blocks,
    seed_of_block,
    split_columns,
    with_targets,
)


def has_distribution(regressor: Any) -> bool:
    """Return whether a regressor says how targets are distributed, not only their mean.

    `sklearn.utils.metaestimators.available_if` asks this: methods that need a
    distribution do not exist where there is none.
    """
    return bool(regressor._has_distribution)


class RealTargets(MultiOutputMixin, RegressorMixin):
    """What is common to regressors: one or several targets, some of them missing."""

    n_outputs_: int
    target_ndim_: int

    @property
    def _has_distribution(self) -> bool:
        return False

    def _shaped(self, values: FloatArray) -> FloatArray:
        """Turn (t, n), or (t, q, n), into (n,) or (n, t), with q as the last axis."""
        values = np.moveaxis(values, -1, 0)
        return np.ascontiguousarray(values[:, 0] if self.target_ndim_ == 1 else values)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination; rows without a target are left out.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d), or table in blocks
            Rows, preferably not seen in training.
        y : array-like of shape (n,) or (n, t), str or list of str
            Their targets; names of columns, if the table comes in blocks.
        sample_weight : array-like of shape (n,), or str, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            1 for perfect predictions, 0 for those of the mean. Of several targets, the
            mean of their coefficients.
        """
        from sklearn.metrics import r2_score

        predicted = np.asarray(self.predict(X)).reshape(-1, self.n_outputs_)
        observed = self._observed_targets(column_of(X, y), len(predicted))
        weights = read_weights(column_of(X, sample_weight), len(predicted))
        scores = []
        for own, known in zip(predicted.T, observed.T, strict=True):
            is_known: BoolArray = ~np.isnan(known)
            own_weights = None if weights is None else weights[is_known]
            scores.append(
                r2_score(known[is_known], own[is_known], sample_weight=own_weights)
            )
        return float(np.mean(scores))

    def _observed_targets(self, y: Any, n_rows: int) -> FloatArray:
        """Return the targets (n, t) of rows to score, NaN where missing."""
        return self._read_targets(y, n_rows).real(range(self.n_outputs_))

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

    def _require_dimensions(self) -> None:
        """Raise ValueError unless the form of the targets fits their number."""
        one, several = self.target_ndim_ == 1, self.target_ndim_ == 2
        require(several or (one and self.n_outputs_ == 1), "target_ndim_ is wrong")


class FittedRegressor(RealTargets, FittedMixture):
    """Base of the regressors: targets of one or several columns, some of them missing."""

    target_schema_: Schema
    fitted_attributes = (
        *FittedMixture.fitted_attributes,
        "target_schema_",
        "n_outputs_",
        "target_ndim_",
    )

    @property
    def _has_distribution(self) -> bool:
        return True

    def check_consistent(self) -> None:
        """Raise ValueError unless the targets are real columns, as many as published."""
        super().check_consistent()
        targets = self.target_schema_
        require_instance("target_schema_", targets, Schema)
        are_real = targets.real == tuple(range(targets.n_columns))
        require(are_real, "a target is not a real column")
        require(self.n_outputs_ == targets.n_columns, "n_outputs_ is wrong")
        self._require_dimensions()

    def for_target(self, target: int) -> Self:
        """Return the regressor of one of several targets, the others integrated out.

        Parameters
        ----------
        target : int
            Position of the target, from 0.

        Returns
        -------
        regressor : estimator of the same class
            Predicts what this one does for the target, as a vector.
        """
        check_is_fitted(self, "target_schema_")
        check_number("target", target, 0, self.n_outputs_ - 1, whole=True)
        one = copy(self)
        one.__dict__.update(
            self._of_target(target),
            target_schema_=self.target_schema_.marginal([target]),
            n_outputs_=1,
            target_ndim_=1,
        )
        return one

    def _of_target(self, target: int) -> dict[str, Any]:
        """Return the fitted attributes that depend on which targets there are."""
        raise NotImplementedError

    def encoded(self, X: Any) -> Table:
        """Return a table as the model reads it, after the checks of scikit-learn."""
        return self._encode(X)

    def table_quantiles(self, table: Table, levels: FloatArray) -> FloatArray:
        """Return quantiles (t, q, n) of the targets of encoded rows."""
        raise NotImplementedError

    def _table_draws(self, table: Table, n_samples: int, seed: int) -> FloatArray:
        """Draw targets (t, n_samples, n) of encoded rows."""
        raise NotImplementedError

    def _table_log_density(self, table: Table, targets: Table) -> FloatArray:
        """Return log densities (n,) of the targets of encoded rows, those that are known.

        They are in the units of the targets.
        """
        raise NotImplementedError

    @available_if(has_distribution)
    @over_blocks
    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> FloatArray:
        """Return quantiles of the predictive distributions.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are allowed.
        quantiles : float or array-like of shape (q,), default=(0.05, 0.5, 0.95)
            Levels between 0 and 1.

        Returns
        -------
        y : ndarray of shape (n, q) or (n, t, q)
            Values that the targets fall below with these probabilities. Several targets
            have quantiles of their own each. For a single level given as a number, the
            last axis is left out.
        """
        levels = checked_levels(quantiles)
        table = self._encode(X)
        values = self._shaped(self.table_quantiles(table, np.atleast_1d(levels)))
        return values[..., 0] if levels.ndim == 0 else values

    @available_if(has_distribution)
    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Return central intervals that hold the targets with some probability.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are allowed.
        coverage : float, default=0.9
            Probability that a target lies in its interval. As much lies below it as
            above.

        Returns
        -------
        intervals : ndarray of shape (n, 2) or (n, t, 2)
            Lower and upper ends.
        """
        check_number("coverage", coverage, 1e-9, 1.0 - 1e-9)
        tail = 0.5 * (1.0 - float(coverage))
        return self.predict_quantiles(X, (tail, 1.0 - tail))

    @available_if(has_distribution)
    def log_predictive_density(self, X: Any, y: Any) -> FloatArray:
        """Return the log density of the targets of each row, given the row.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are allowed.
        y : array-like of shape (n,) or (n, t), str or list of str
            Their targets; names of columns, if the table comes in blocks. Of several,
            those that are missing are left out.

        Returns
        -------
        log_density : ndarray of shape (n,)
            Natural logarithm, in the units of the targets; of all targets of a row
            together. NaN for a row that has none. Where a target is a spike
            (`target_schema_.shapes`), its probability takes the place of a density.
        """
        source = source_of(X)
        if source is not None:
            return _densities_in_blocks(self, source, y)
        table = self._encode(X)
        targets = self._encode_targets(y, table.n_rows)
        found = self._table_log_density(table, targets)
        found[np.isnan(targets.real).all(axis=1)] = np.nan
        return found

    @available_if(has_distribution)
    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = None
    ) -> FloatArray:
        """Draw targets from the predictive distribution of each row.

        Several targets are drawn together, with what they have in common.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are allowed.
        n_samples : int, default=1
            Number of draws for each row.
        random_state : int, RandomState or None, default=None
            None uses the estimator's own.

        Returns
        -------
        y : ndarray of shape (n, n_samples) or (n, t, n_samples)
            Draws.
        """
        check_number("n_samples", n_samples, 1, whole=True)
        seed = self._seed(random_state)
        source = source_of(X)
        if source is None:
            return self._drawn(X, n_samples, seed)

        def drawn(block: object, number: int) -> FloatArray:
            return self._drawn(block, n_samples, seed_of_block(seed, number))

        found: Any = source.joined(known_columns(self, source), drawn)
        return found

    def _drawn(self, X: Any, n_samples: int, seed: int) -> FloatArray:
        return self._shaped(self._table_draws(self._encode(X), n_samples, seed))

    @available_if(has_distribution)
    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows and targets.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            None uses the estimator's own.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, d)
            A table like the one of training, drawn from ``model_``.
        y : ndarray of shape (n_samples,) or (n_samples, t)
            Targets, drawn given these rows.
        """
        seed = self._seed(random_state)
        X, _ = self._sample_rows(n_samples, seed)
        return X, self.sample_y(X, 1, seed + 1)[..., 0]

    def _observed_targets(self, y: Any, n_rows: int) -> FloatArray:
        return self._encode_targets(y, n_rows).real

    def _encode_targets(self, y: Any, n_rows: int) -> Table:
        return self.target_schema_.encode(self._read_targets(y, n_rows))


def _densities_in_blocks(model: FittedRegressor, source: BlockSource, y: Any) -> Any:
    """Return what `log_predictive_density` does for a table in blocks."""
    features = known_columns(model, source)
    paired, targets, _ = with_targets(source, y)

    def densities(block: object, _number: int) -> FloatArray:
        X, own = split_columns(block, features, targets)
        return model.log_predictive_density(X, own)

    return paired.joined([*features, *targets], densities)


def checked_levels(quantiles: Any) -> FloatArray:
    """Return levels of quantiles as an array of at most one dimension; refuse others."""
    levels = np.asarray(quantiles, dtype=np.float64)
    if levels.ndim > 1 or levels.size == 0 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(
            f"quantiles={quantiles!r} is not valid: levels must be greater than 0 and "
            "less than 1."
        )
    return levels
