"""Reading rows with real targets, in memory or in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, Table, TrainingRows
from hybridmix.data.block_sources import source_of
from hybridmix.data.targets import PairedRows, check_observed, read_targets
from hybridmix.estimators.blocks import learn_pairs
from hybridmix.estimators.options import MixtureEstimator
from hybridmix.training.regression_trials import Part

# Folds that keep groups together.
_GROUP_FOLDS = 4


class PairOrder(NamedTuple):
    """Rows with their targets, in the order of their table.

    Attributes
    ----------
    rows : PairedRows
        Rows and targets.
    targets : Table
        The targets alone.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """

    rows: PairedRows
    targets: Table
    weights: FloatArray | None


class RowsWithTargets(NamedTuple):
    """Training rows and their targets.

    Attributes
    ----------
    schema, target_schema : Schema
        Of their table, and of the targets.
    dataset : Dataset or BlockedDataset
        Rows with targets after all other columns, arranged for training.
    attributes : dict
        What to publish about the table and the targets.
    order : PairOrder or None
        The rows in the order of the table; None if they are in blocks.
    """

    schema: Schema
    target_schema: Schema
    dataset: TrainingRows
    attributes: dict[str, Any]
    order: PairOrder | None


def check_targets_given(estimator: Any, y: Any) -> None:
    """Refuse to be trained without targets, in the words of scikit-learn."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )


@contextmanager
def reading_targets(
    estimator: MixtureEstimator, X: Any, y: Any, sample_weight: Any, target_shapes: Any
) -> Iterator[RowsWithTargets]:
    """Read a training table with its targets, and close it at the end.

    Targets and weights of a table in blocks are columns of it, given by their names.
    """
    source = source_of(X)
    if source is None:
        order, attributes = read_pairs(estimator, X, y, sample_weight, target_shapes)
        labels = np.zeros(order.rows.n_rows, np.intp)
        yield RowsWithTargets(
            attributes["schema_"],
            attributes["target_schema_"],
            Dataset.arrange(order.rows, labels, order.weights),
            attributes,
            order,
        )
        return
    learned, attributes = learn_pairs(estimator, source, y, sample_weight, target_shapes)
    with closing(learned.dataset) as dataset:
        yield RowsWithTargets(
            learned.schema, learned.target_schema, dataset, attributes, None
        )


def read_pairs(
    estimator: MixtureEstimator, X: Any, y: Any, sample_weight: Any, target_shapes: Any
) -> tuple[PairOrder, dict[str, Any]]:
    """Read a table in memory with its targets; return also what to publish about both."""
    columns, n_dimensions = read_targets(y)
    read = estimator._learn_table(X, sample_weight)
    check_consistent_length(np.empty(read.table.n_rows), np.empty(columns.n_rows))
    check_observed(columns, read.weights)
    schema = Schema.learn(columns, None, target_shapes, weights=read.weights)
    targets = schema.encode(columns)
    rows = PairedRows(read.table, targets, schema)
    return PairOrder(rows, targets, read.weights), {
        **read.attributes,
        "schema_": read.table.schema,
        "target_schema_": schema,
        "n_outputs_": schema.n_columns,
        "target_ndim_": n_dimensions,
    }


def grouped_parts(order: PairOrder | None, groups: Any) -> list[Part]:
    """Return folds that keep groups together; rows without a target are never held."""
    from sklearn.model_selection import GroupKFold

    if order is None:
        raise ValueError(
            "groups need a table in memory. Leave them out, or give covariance_type, "
            "n_components and tradeoff, so that no rows are held out."
        )
    rows, targets, weights = order
    groups = np.asarray(groups)
    check_consistent_length(np.empty(rows.n_rows), groups)
    labels = np.zeros(rows.n_rows, np.intp)
    filled = np.ones(rows.n_rows) if weights is None else weights
    has_target = ~np.isnan(targets.real).all(axis=1)
    n_folds = min(_GROUP_FOLDS, len(np.unique(groups[has_target & (filled > 0.0)])))
    if n_folds < 2:
        raise ValueError("groups has a single group with targets: none can be held out.")
    parts = []
    for _, held in GroupKFold(n_folds).split(labels, groups=groups):
        is_held = np.zeros(rows.n_rows, dtype=bool)
        is_held[held] = True
        is_scored = is_held & has_target
        if np.any(is_scored & (filled > 0)) and np.any(~is_held & (filled > 0)):
            parts.append(
                (
                    Dataset.arrange(rows, labels, filled * ~is_held),
                    Dataset.arrange(rows, labels, filled * is_scored),
                )
            )
    return parts
