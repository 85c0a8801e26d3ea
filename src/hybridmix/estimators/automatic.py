"""What a classifier chooses by itself, the rows it chooses by, and what it publishes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Dataset, Table
from hybridmix.training.candidates import Automatic
from hybridmix.training.leaderboard import leaderboard
from hybridmix.training.record import Fitted
from hybridmix.training.trials import Part

if TYPE_CHECKING:
    from hybridmix.estimators.classifier import HybridMixtureClassifier

AUTO = "auto"


def automatic_options(estimator: HybridMixtureClassifier) -> Automatic:
    """Return which options are chosen; nothing, if training goes on from a model."""
    if not isinstance(estimator.init, str):
        return Automatic(False, False, False)
    return Automatic(
        _is_auto(estimator.covariance_type),
        _is_auto(estimator.n_components),
        _is_auto(estimator.tradeoff) and estimator.objective == "hybrid",
    )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


def given_parts(
    cv: Any, groups: Any, table: Table, labels: IntArray, weights: FloatArray | None
) -> list[Part]:
    """Return the folds of a splitter of the user's; all have all unlabelled rows.

    Parameters
    ----------
    cv : int, splitter or iterable
        What scikit-learn accepts.
    groups : array-like of shape (n,) or None
        Of the rows, for splitters that keep groups together.
    table : Table
        All rows.
    labels : ndarray of shape (n,)
        Class numbers; -1 for unlabelled rows.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """
    from sklearn.model_selection import check_cv

    check_consistent_length(labels, groups)
    labelled = np.flatnonzero(labels != UNLABELLED)
    splitter = check_cv(cv, labels[labelled], classifier=True)
    kept_groups = None if groups is None else np.asarray(groups)[labelled]
    filled = np.ones(len(labels)) if weights is None else weights
    parts = []
    for rest, held in splitter.split(labelled, labels[labelled], kept_groups):
        is_rest, is_held = labels == UNLABELLED, np.zeros(len(labels), dtype=bool)
        is_rest[labelled[rest]] = True
        is_held[labelled[held]] = True
        # Rows without weight are left out.
        parts.append(
            (
                Dataset.arrange(table, labels, filled * is_rest),
                Dataset.arrange(table, labels, filled * is_held),
            )
        )
    return parts


def class_weighted(
    class_weight: Any,
    classes: np.ndarray,
    labels: IntArray,
    weights: FloatArray | None,
) -> FloatArray | None:
    """Return sample weights times the weights of the classes; unlabelled rows have one.

    Parameters
    ----------
    class_weight : "balanced", mapping of labels to weights, or None
        As in scikit-learn.
    classes : ndarray of shape (C,)
        The labels.
    labels : ndarray of shape (n,)
        Class numbers; -1 for unlabelled rows.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """
    if class_weight is None:
        return weights
    from sklearn.utils.class_weight import compute_class_weight

    known = classes[labels[labels != UNLABELLED]]
    by_class = compute_class_weight(class_weight, classes=classes, y=known)
    # The last number is that of unlabelled rows, whose label is -1.
    factors = np.append(by_class, 1.0)[labels]
    return factors if weights is None else weights * factors


def search_attributes(
    estimator: HybridMixtureClassifier,
    fitted: Fitted,
    attributes: Mapping[str, Any],
    classes: np.ndarray,
) -> dict[str, Any]:
    """Return what to publish about a search, from what is published anyway."""
    found: dict[str, Any] = {"leaderboard_": leaderboard(fitted.leaderboard)}
    if fitted.committee is not None:
        found["committee_"] = fitted.committee
        found["members_"] = [
            _member(estimator, record, attributes, classes) for record in fitted.members
        ]
    return found


def _member(
    estimator: HybridMixtureClassifier,
    record: Fitted,
    attributes: Mapping[str, Any],
    classes: np.ndarray,
) -> HybridMixtureClassifier:
    """Return a member of a committee as a classifier with explicit options."""
    member = copy(estimator)
    member.set_params(**record.options, calibrate=False)
    member._publish({**attributes, **member._learned_attributes(record, classes)})
    return member
