"""Labels of any kind to class numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hybridmix._typing import BoolArray, IntArray
from hybridmix.data.columns import is_missing
from hybridmix.data.rows import UNLABELLED


def encode_labels(y: Any, unlabelled: Any = -1) -> tuple[np.ndarray, IntArray]:
    """Number the classes.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels. None and NaN mark unlabelled rows.
    unlabelled : object
        A further mark of unlabelled rows; None for no other mark.

    Returns
    -------
    classes : ndarray of shape (C,)
        Distinct labels, sorted.
    numbers : ndarray of shape (n,)
        Class number of each row; -1 for an unlabelled one.
    """
    labels = column_or_1d(y, warn=True, dtype=None)
    is_unlabelled = _unlabelled_rows(labels, unlabelled)
    known = labels[~is_unlabelled]
    if len(known) == 0:
        raise ValueError("y has no label: every row is marked as unlabelled.")
    if known.dtype.kind == "O" and all(isinstance(v, str) for v in known):
        known = known.astype(str)
    elif known.dtype.kind == "O":
        known = np.array(known.tolist())
    check_classification_targets(known)
    classes, numbers = np.unique(known, return_inverse=True)
    if classes.dtype.kind == "f" and np.all(classes == classes.astype(int)):
        # NaN among whole numbers made them floats; without it they are whole again.
        classes = classes.astype(int) if np.any(is_unlabelled) else classes
    if is_unlabelled.any() and unlabelled == -1 and classes.tolist() == [1]:
        raise ValueError(
            "y has only the labels -1 and 1, and -1 marks unlabelled rows, which leaves "
            "one class. If -1 is a class, pass unlabelled=None."
        )
    result = np.full(len(labels), UNLABELLED, dtype=np.intp)
    result[~is_unlabelled] = numbers
    return classes, result


def _unlabelled_rows(labels: np.ndarray, unlabelled: Any) -> BoolArray:
    if labels.dtype.kind == "O":
        missing = np.array([is_missing(v) for v in labels], dtype=bool)
    elif labels.dtype.kind == "f":
        missing = np.isnan(labels)
    else:
        missing = np.zeros(len(labels), dtype=bool)
    if unlabelled is None:
        return missing
    if labels.dtype.kind in "US" and not isinstance(unlabelled, str):
        return missing
    return missing | np.array([v == unlabelled for v in labels.tolist()], dtype=bool)
