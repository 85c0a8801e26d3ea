"""Other classifiers and regressors, to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import MISSING_CODE, Schema, Table

# Boosted trees take at most this many categories of a column, and more one-hot columns
# than the second number would take long.
_MAX_CATEGORIES = 255
_MAX_ONE_HOT = 100
# Rows in a leaf of the trees: by default, and as a share of the rows where the default
# would never split them.
_LEAF = 20
_LEAF_SHARE = 0.1
# Folds that show the errors of a regressor on rows held out.
_ERROR_FOLDS = 5


def plain_matrix(table: Table, rows: IntArray) -> FloatArray:
    """Return rows as numbers, NaN where missing: what other models can take.

    Real columns are centred and scaled as for our own model, since others fail where
    squares of the values are too large for a float.
    """
    schema = table.schema
    matrix = np.full((len(rows), schema.n_columns), np.nan)
    real, codes = table.real[rows], table.codes[rows]
    # Columns that have a shape are of moderate size, and their centre is a mapped one.
    is_shaped = np.isin(schema.real, list(schema.shapes))
    centre = np.where(is_shaped, 0.0, schema.centre)
    scale = np.where(is_shaped, 1.0, schema.scale)
    matrix[:, list(schema.real)] = (real - centre) / scale
    matrix[:, list(schema.categorical)] = np.where(codes == MISSING_CODE, np.nan, codes)
    return matrix


def seen_columns(matrix: FloatArray, is_usable: BoolArray, folds: IntArray) -> list[int]:
    """Return the columns that have a value in the usable rows of every training set."""
    observed = ~np.isnan(matrix) & is_usable[:, None]
    seen = [observed[folds != fold].any(axis=0) for fold in range(folds.max() + 1)]
    return np.flatnonzero(np.all(seen, axis=0)).tolist()


def baselines(
    schema: Schema, columns: list[int], n_labelled: int, seed: int
) -> dict[str, Callable[[], Any]]:
    """Return functions that make other classifiers, by name.

    Parameters
    ----------
    schema : Schema
        Types of the columns of the matrix.
    columns : list of int
        Columns for the models to read.
    n_labelled : int
        Number of rows that they can learn from.
    seed : int
        Seed of the models.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    makers: dict[str, Callable[[], Any]] = {}
    if columns:
        makers["logistic regression"] = lambda: _with_filled(
            schema, columns, LogisticRegression(max_iter=1000)
        )
        makers["boosted trees"] = lambda: _boosted_trees(
            HistGradientBoostingClassifier, schema, columns, n_labelled, seed
        )
    makers["most frequent class"] = lambda: DummyClassifier(strategy="prior")
    return makers


def regression_baselines(
    schema: Schema, columns: list[int], n_targets: int, seed: int
) -> dict[str, Callable[[], Any]]:
    """Return functions that make other regressors, by name.

    Parameters
    ----------
    schema, columns, seed
        As in `baselines`.
    n_targets : int
        Number of rows that they can learn from.
    """
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV

    models: dict[str, Callable[[], Any]] = {}
    if columns:
        models["ridge regression"] = lambda: _with_filled(
            schema, columns, RidgeCV(np.logspace(-3, 3, 13))
        )
        models["boosted trees"] = lambda: _boosted_trees(
            HistGradientBoostingRegressor, schema, columns, n_targets, seed
        )
        models["random forest"] = lambda: _with_filled(
            schema, columns, RandomForestRegressor(oob_score=True, random_state=seed)
        )
    models["the mean"] = DummyRegressor
    return {
        name: lambda make=make: ConformalRegressor(make(), seed)  # type: ignore[misc]
        for name, make in models.items()
    }


class ConformalRegressor(RegressorMixin, BaseEstimator):
    """A regressor with quantiles: its predictions and those of its errors.

    The errors are those on training rows held out: of a forest, by trees that have not
    seen them, and of other regressors by cross-validation.

    Parameters
    ----------
    estimator : regressor
        The regressor.
    seed : int
        Seed of the folds.
    """

    def __init__(self, estimator: Any, seed: int = 0) -> None:
        self.estimator = estimator
        self.seed = seed

    def fit(self, X: FloatArray, y: FloatArray) -> ConformalRegressor:
        """Fit the regressor, and take note of its errors on rows held out."""
        from sklearn.base import clone
        from sklearn.model_selection import KFold, cross_val_predict

        self.estimator_ = clone(self.estimator).fit(X, y)
        last: Any = self.estimator_[-1] if hasattr(self.estimator_, "steps") else None
        if hasattr(last, "oob_prediction_"):
            held_out = last.oob_prediction_
        else:
            folds = KFold(min(_ERROR_FOLDS, len(y)), shuffle=True, random_state=self.seed)
            held_out = cross_val_predict(self.estimator, X, y, cv=folds)
        self.errors_ = np.sort(y - held_out)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Return what the regressor predicts."""
        predicted: FloatArray = self.estimator_.predict(X)
        return predicted

    def predict_quantiles(self, X: FloatArray, quantiles: Sequence[float]) -> FloatArray:
        """Return predictions (n, q), each plus the quantiles of the errors."""
        places = np.array(quantiles) * (len(self.errors_) + 1)
        # Outwards, so that intervals hold new targets at least as often as they should.
        outer = np.where(np.array(quantiles) < 0.5, np.floor(places), np.ceil(places))
        ranks = np.clip(outer.astype(int) - 1, 0, len(self.errors_) - 1)
        return self.predict(X)[:, None] + self.errors_[ranks]


class SeveralRegressors:
    """A regressor for each of several targets, fitted to the rows that have it.

    Parameters
    ----------
    make : callable
        Returns an unfitted regressor of one target.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._fitted: list[Any] = []

    def fit(self, X: FloatArray, y: FloatArray) -> SeveralRegressors:
        """Fit the regressors to targets (n, t), NaN where missing."""
        for own in y.T:
            known = ~np.isnan(own)
            self._fitted.append(self._make().fit(X[known], own[known]))
        return self

    def for_target(self, target: int) -> Any:
        """Return the regressor of a target."""
        return self._fitted[target]


def _with_filled(schema: Schema, columns: list[int], model: Any) -> Any:
    """Return a model that gets complete rows of scaled numbers and one-hot categories."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MAX_ONE_HOT),
    )
    return make_pipeline(
        make_column_transformer(
            (numbers, [j for j in columns if j in schema.real]),
            (categories, [j for j in columns if j in schema.categorical]),
        ),
        model,
    )


def _boosted_trees(
    kind: type, schema: Schema, columns: list[int], n_rows: int, seed: int
) -> Any:
    """Return boosted trees, which take missing cells and categories as they are."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline

    n_categories = dict(zip(schema.categorical, schema.n_categories, strict=True))
    few = {j for j, n in n_categories.items() if n <= _MAX_CATEGORIES}
    return make_pipeline(
        make_column_transformer(("passthrough", columns)),
        kind(
            min_samples_leaf=min(_LEAF, max(2, round(_LEAF_SHARE * n_rows))),
            categorical_features=[j in few for j in columns],
            random_state=seed,
        ),
    )
