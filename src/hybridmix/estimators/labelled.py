"""Reading labelled rows: classes, weights, validation rows, folds; options by class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from copy import copy
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._checks import check_splits, is_single
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import (
    UNLABELLED,
    Dataset,
    Schema,
    Table,
    TrainingRows,
    encode_labels,
    number_labels,
    read_table,
)
from hybridmix.data.block_sources import source_of
from hybridmix.data.weights import read_weights
from hybridmix.estimators.blocks import learn_blocks, rows_in_memory
from hybridmix.estimators.chosen import is_auto
from hybridmix.estimators.options import model_attributes
from hybridmix.models.mixture import Mixture
from hybridmix.training.classes import component_range
from hybridmix.training.record import Fitted
from hybridmix.training.trials import Part

if TYPE_CHECKING:
    from hybridmix.estimators.classifier import HybridMixtureClassifier

# Of validation rows in blocks, this many are taken into memory.
_MOST_VALIDATION = 50_000
# Folds that keep groups together, if the user does not say how many.
_GROUP_FOLDS = 3


class RowOrder(NamedTuple):
    """Training rows in the order of their table.

    Attributes
    ----------
    table : Table
        The encoded table.
    labels : ndarray of shape (n,)
        Class number of each row; -1 for unlabelled ones.
    weights : ndarray of shape (n,) or None
        Sample weights times the weights of the classes.
    """

    table: Table
    labels: IntArray
    weights: FloatArray | None


class LabelledRows(NamedTuple):
    """Training rows and their labels.

    Attributes
    ----------
    schema : Schema
        Of their table.
    classes : ndarray of shape (C,)
        The labels.
    dataset : Dataset or BlockedDataset
        The rows, arranged for training.
    attributes : dict
        What to publish about the table.
    order : RowOrder or None
        The rows in the order of the table; None if they are in blocks.
    """

    schema: Schema
    classes: np.ndarray
    dataset: TrainingRows
    attributes: dict[str, Any]
    order: RowOrder | None

    @property
    def names(self) -> list[str]:
        """What to call the classes in messages."""
        return class_names(self.classes)


def class_attributes(
    fitted: Fitted, mixture: Mixture, classes: np.ndarray
) -> dict[str, Any]:
    """Return what a classifier publishes about its training.

    Parameters
    ----------
    fitted : Fitted
        The record of training.
    mixture : Mixture
        The density of the rows.
    classes : ndarray of shape (C,)
        The labels.
    """
    return {
        **model_attributes(fitted),
        "model_": mixture,
        "classes_": classes,
        "component_classes_": mixture.class_of,
        "bic_": [dict(criteria) for criteria in fitted.bic],
        "history_": dict(fitted.history),
        "trace_": fitted.history.get("value", np.empty(0)),
        "unlabelled_weight_": fitted.unlabelled_weight,
        "temperature_": fitted.calibration.temperature,
        "uniform_share_": fitted.calibration.uniform_share,
    }


def class_names(classes: np.ndarray) -> list[str]:
    """Return what to call classes in messages."""
    return [f"The class {label!r}" for label in classes.tolist()]


def check_mark(unlabelled: Any) -> None:
    """Refuse marks of unlabelled rows that are several."""
    if not is_single(unlabelled):
        raise ValueError(
            f"unlabelled={unlabelled!r} is not valid: it must be a single mark, or None."
        )


def check_label_options(estimator: Any) -> None:
    """Refuse a mark of unlabelled rows, folds or numbers of components of no use."""
    check_mark(estimator.unlabelled)
    if estimator.cv is not None:
        check_splits(estimator.cv)
    wanted = estimator.n_components
    if is_auto(wanted):
        return
    for one in wanted.values() if isinstance(wanted, Mapping) else [wanted]:
        component_range(one, or_auto=True)


def components_by_class(wanted: Any, classes: np.ndarray) -> list[list[int]]:
    """Return the numbers of components to try for each class.

    Parameters
    ----------
    wanted : int, iterable of int, or mapping of labels to these
        What the user has given.
    classes : ndarray of shape (C,)
        The labels.
    """
    if not isinstance(wanted, Mapping):
        return [component_range(wanted)] * len(classes)
    missing = [label for label in classes.tolist() if label not in wanted]
    if missing:
        raise ValueError(f"n_components has no entry for the class {missing[0]!r}.")
    return [component_range(wanted[label]) for label in classes.tolist()]


def check_labels_given(estimator: Any, y: Any) -> None:
    """Refuse to be trained without labels, in the words of scikit-learn."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )


def read_labelled(
    estimator: HybridMixtureClassifier, X: Any, y: Any, sample_weight: Any
) -> LabelledRows:
    """Read a training table with its labels and weights."""
    classes, labels = encode_labels(y, estimator.unlabelled)
    weights = class_weighted(estimator.class_weight, classes, labels, sample_weight)
    read = estimator._learn_table(X, weights, labels)
    dataset = Dataset.arrange(read.table, labels, read.weights)
    _check_classes(dataset, class_names(classes))
    order = RowOrder(read.table, labels, read.weights)
    return LabelledRows(read.table.schema, classes, dataset, read.attributes, order)


@contextmanager
def reading_labelled(
    estimator: HybridMixtureClassifier, X: Any, y: Any, sample_weight: Any
) -> Iterator[LabelledRows]:
    """Read a training table, in memory or in blocks, and close it at the end.

    Labels and weights of a table in blocks are columns of it, given by their names.
    """
    source = source_of(X)
    if source is None:
        yield read_labelled(estimator, X, y, sample_weight)
        return
    learned, attributes = learn_blocks(estimator, source, y, sample_weight)
    with closing(learned.dataset) as dataset:
        _check_classes(dataset, class_names(learned.classes))
        yield LabelledRows(learned.schema, learned.classes, dataset, attributes, None)


def read_validation(
    estimator: HybridMixtureClassifier,
    rows: LabelledRows,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Dataset | None:
    """Read validation rows, if there are any; those without a label say nothing."""
    if (X is None) != (y is None):
        raise ValueError("X_val and y_val must be passed together.")
    if X is None:
        return None
    names = rows.attributes.get("feature_names_in_")
    X, y, sample_weight = rows_in_memory(X, y, sample_weight, names, _MOST_VALIDATION)
    # The names of the columns are checked as in prediction, which knows them.
    scratch = copy(estimator)
    scratch._publish(rows.attributes)
    table = rows.schema.encode(read_table(scratch, X))
    labels = number_labels(y, rows.classes, estimator.unlabelled)
    check_consistent_length(table.real, labels)
    weights = read_weights(sample_weight, table.n_rows)
    validation = Dataset.arrange(table, labels, weights).labelled()
    if validation.n_rows == 0:
        raise ValueError("y_val has no label in a row of positive weight.")
    return validation


def given_parts(cv: Any, groups: Any, rows: LabelledRows) -> list[Part]:
    """Return the folds of a splitter of the user's; all have all unlabelled rows.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        What scikit-learn accepts. None, and a number with groups, keep groups together.
    groups : array-like of shape (n,) or None
        Of the rows.
    rows : LabelledRows
        All rows.
    """
    if rows.order is None:
        raise ValueError(
            "cv and groups need a table in memory. Leave them out, or pass rows to "
            "validate by as X_val and y_val."
        )
    table, labels, weights = rows.order
    check_consistent_length(labels, groups)
    filled = np.ones(len(labels)) if weights is None else weights
    parts: list[Part] = []
    for rest, held in _splits(cv, groups, labels):
        is_rest, is_held = labels == UNLABELLED, np.zeros(len(labels), dtype=bool)
        is_rest[rest] = True
        is_held[held] = True
        is_held &= labels != UNLABELLED
        # Rows without weight are left out.
        part = (
            Dataset.arrange(table, labels, filled * is_rest),
            Dataset.arrange(table, labels, filled * is_held),
        )
        _check_fold(part, len(parts), rows.names)
        parts.append(part)
    return parts


def _splits(
    cv: Any, groups: Any, labels: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the rows to train on and the rows to hold out, as numbers of all rows."""
    from sklearn.model_selection import (
        PredefinedSplit,
        StratifiedGroupKFold,
        check_cv,
    )

    labelled = np.flatnonzero(labels != UNLABELLED)
    if groups is not None and (cv is None or isinstance(cv, Integral)):
        cv = StratifiedGroupKFold(_GROUP_FOLDS if cv is None else int(cv))
    splitter = check_cv(cv, labels[labelled], classifier=True)
    kept_groups = None if groups is None else np.asarray(groups)[labelled]
    splits = splitter.split(labelled, labels[labelled], kept_groups)
    is_list = not isinstance(cv, Integral) and not hasattr(cv, "split")
    if is_list or isinstance(splitter, PredefinedSplit):
        yield from splits  # these number all rows, and splitters the labelled ones
        return
    for rest, held in splits:
        yield labelled[rest], labelled[held]


def _check_fold(part: Part, number: int, names: list[str]) -> None:
    """Refuse a fold of the user's that trains without a class, or holds no row out."""
    rest, held = part
    absent = np.flatnonzero(rest.class_weights(len(names)) == 0.0)
    if len(absent):
        raise ValueError(
            f"{names[absent[0]]} has no row to train on in fold {number} of cv: choose "
            "a cv, or groups, that leaves rows of every class in every fold."
        )
    if held.n_rows == 0:
        raise ValueError(f"Fold {number} of cv holds out no row.")


def class_weighted(
    class_weight: Any,
    classes: np.ndarray,
    labels: IntArray,
    sample_weight: Any,
) -> Any:
    """Return sample weights times the weights of the classes; unlabelled rows have one.

    Parameters
    ----------
    class_weight : "balanced", mapping of labels to weights, or None
        As in scikit-learn.
    classes : ndarray of shape (C,)
        The labels.
    labels : ndarray of shape (n,)
        Class numbers; -1 for unlabelled rows.
    sample_weight : array-like of shape (n,) or None
        Sample weights, as the user has given them.
    """
    if class_weight is None:
        return sample_weight
    from sklearn.utils.class_weight import compute_class_weight

    known = classes[labels[labels != UNLABELLED]]
    by_class = compute_class_weight(class_weight, classes=classes, y=known)
    # The last number is that of unlabelled rows, whose label is -1.
    factors = np.append(by_class, 1.0)[labels]
    weights = read_weights(sample_weight, len(labels))
    return factors if weights is None else weights * factors


def _check_classes(dataset: TrainingRows, names: list[str]) -> None:
    absent = np.flatnonzero(dataset.class_weights(len(names)) == 0.0)
    if len(absent):
        raise ValueError(
            f"{names[absent[0]]} has no row of positive weight, or of more than 1e-30 of "
            "the largest weight."
        )
