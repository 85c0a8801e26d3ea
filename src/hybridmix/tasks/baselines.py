"""Other classifiers, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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


def seen_columns(
    matrix: FloatArray, is_labelled: BoolArray, folds: IntArray
) -> list[int]:
    """Return the columns that have a value in the labelled rows of every training set."""
    observed = ~np.isnan(matrix) & is_labelled[:, None]
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

    leaf = min(_LEAF, max(2, round(_LEAF_SHARE * n_labelled)))
    makers: dict[str, Callable[[], Any]] = {}
    if columns:
        makers["logistic regression"] = lambda: _logistic_regression(schema, columns)
        makers["boosted trees"] = lambda: _boosted_trees(schema, columns, leaf, seed)
    makers["most frequent class"] = lambda: DummyClassifier(strategy="prior")
    return makers


def _logistic_regression(schema: Schema, columns: list[int]) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
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
        LogisticRegression(max_iter=1000),
    )


def _boosted_trees(schema: Schema, columns: list[int], leaf: int, seed: int) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline

    n_categories = dict(zip(schema.categorical, schema.n_categories, strict=True))
    few = {j for j, n in n_categories.items() if n <= _MAX_CATEGORIES}
    return make_pipeline(
        make_column_transformer(("passthrough", columns)),
        HistGradientBoostingClassifier(
            min_samples_leaf=leaf,
            categorical_features=[j in few for j in columns],
            random_state=seed,
        ),
    )
