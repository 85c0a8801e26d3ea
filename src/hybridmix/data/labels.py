"""Labels of any kind to class numbers."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hybridmix._checks import is_single
from hybridmix._typing import BoolArray, IntArray
from hybridmix.data.columns import as_frame, is_missing
from hybridmix.data.rows import UNLABELLED

# Whole numbers from zero to less than this are numbered by counting.
_MOST_COUNTED = 1 << 16


def encode_labels(y: object, unlabelled: object = -1) -> tuple[np.ndarray, IntArray]:
    """Give the classes numbers.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels. None and NaN mark unlabelled rows.
    unlabelled : object
        A further mark of unlabelled rows; None for no other mark. A mark of -1 is
        taken for a class when the only other label is 1.

    Returns
    -------
    classes : ndarray of shape (C,)
        Distinct labels, sorted.
    numbers : ndarray of shape (n,)
        Class number of each row; -1 for an unlabelled one.
    """
    labels = as_labels(y)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError("Input y contains infinity.")
    is_missing_label = _unlabelled_rows(labels, None)
    is_unlabelled = _unlabelled_rows(labels, unlabelled)
    known = _known_labels(labels, is_unlabelled)
    classes, numbers = _numbered(known)
    if unlabelled == -1 and classes.tolist() == [1]:
        if np.any(is_unlabelled & ~is_missing_label):
            warnings.warn(
                "y holds only -1 and 1, which are taken for two classes. Pass "
                "unlabelled=None if they are, to silence this warning.",
                UserWarning,
                stacklevel=3,
            )
        is_unlabelled = is_missing_label
        known = _known_labels(labels, is_unlabelled)
        classes, numbers = _numbered(known)
    if len(known) == 0:
        raise ValueError(
            "y has no label: it is empty, or every row is marked as unlabelled."
        )
    _check_targets(known, classes)
    if classes.dtype.kind == "f" and np.all(classes == classes.astype(int)):
        # NaN among whole numbers made them floats; without it they are whole again.
        classes = classes.astype(int) if np.any(is_unlabelled) else classes
    result = np.full(len(labels), UNLABELLED, dtype=np.intp)
    result[~is_unlabelled] = numbers
    return classes, result


def number_labels(y: object, classes: np.ndarray, unlabelled: object = -1) -> IntArray:
    """Return the class numbers of labels that must be among known classes."""
    labels = as_labels(y)
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    if unlabelled in numbers:
        unlabelled = None
    is_unlabelled = _unlabelled_rows(labels, unlabelled)
    rows = np.flatnonzero(~is_unlabelled)
    known = labels[rows].tolist()
    for row, label in zip(rows, known, strict=True):
        if label not in numbers:
            raise ValueError(
                f"The label {label!r} in row {row} is none of the classes of training."
            )
    result = np.full(len(labels), UNLABELLED, dtype=np.intp)
    result[rows] = [numbers[label] for label in known]
    return result


def _known_labels(labels: np.ndarray, is_unlabelled: BoolArray) -> np.ndarray:
    """Return the labels of the labelled rows, all of one kind.

    Text among other labels is refused: they have no order, and 1 is not "1".
    """
    known = labels[~is_unlabelled]
    if known.dtype.kind != "O":
        return known
    several = next((k for k, label in enumerate(known) if not is_single(label)), None)
    if several is not None:
        row, label = np.flatnonzero(~is_unlabelled)[several], known[several]
        raise TypeError(
            f"y holds a {type(label).__name__}, {label!r} in row {row}. A label is a "
            "single value: make text or numbers of such labels."
        )
    kinds = [_kind_of(label) for label in known]
    other = next((k for k, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is not None:
        rows = np.flatnonzero(~is_unlabelled)
        first, second = (
            f"{type(known[k]).__name__} ({known[k]!r} in row {rows[k]})"
            for k in (0, other)
        )
        raise TypeError(
            f"y mixes labels of the types {first} and {second}. Make all of them text or "
            "all of them numbers."
        )
    return np.array(known.tolist())


def _numbered(known: np.ndarray) -> tuple[np.ndarray, IntArray]:
    """Return the distinct labels (C,), sorted, and which one each label is, (n,)."""
    if known.dtype.kind in "iu" and len(known) and known.min() >= 0:
        most = min(len(known), _MOST_COUNTED)
        if known.max() < most:
            # Counting takes a fraction of the time of sorting.
            places = known.astype(np.intp)
            occurs = np.bincount(places) > 0
            classes = np.flatnonzero(occurs).astype(known.dtype)
            return classes, (np.cumsum(occurs) - 1)[places]
    return np.unique(known, return_inverse=True)


def _check_targets(known: np.ndarray, classes: np.ndarray) -> None:
    """Let scikit-learn refuse or warn of targets that are not classes."""
    # Nothing is wrong with whole numbers that repeat each other, and looking takes long.
    if known.dtype.kind not in "iu" or len(known) < 2 * len(classes):
        check_classification_targets(known)


def _kind_of(label: object) -> str:
    return next((kind.__name__ for kind in (str, bytes) if isinstance(label, kind)), "")


def as_labels(y: object) -> np.ndarray:
    """Make an array of labels that are what they were."""
    as_frame(y, "y")  # refuses lazy tables
    if isinstance(y, list | tuple) and any(isinstance(value, str | bytes) for value in y):
        # NaN in a list of strings must not become a string.
        y = np.array(y, dtype=object)
    elif str(getattr(y, "dtype", None)) == "boolean" and hasattr(y, "to_numpy"):
        # scikit-learn makes floats of pandas' nullable booleans.
        y = y.to_numpy(dtype=object)
    try:
        return column_or_1d(y, warn=True, dtype=None)
    except ValueError:
        _refuse_ragged(y)
        raise


def _refuse_ragged(y: object) -> None:
    """Refuse lists of lists of different lengths, of which NumPy makes no array."""
    if not isinstance(y, list | tuple):
        return
    sizes = [1 if is_single(value) else len(value) for value in y]
    if len(set(sizes)) > 1:
        row = next(row for row, size in enumerate(sizes) if size != 1)
        raise ValueError(
            f"y has {sizes[row]} labels at position {row}. A row has one label, and so "
            "does a sequence, however many frames it has."
        )


def _unlabelled_rows(labels: np.ndarray, unlabelled: object) -> BoolArray:
    if labels.dtype.kind == "O":
        missing = np.array([is_missing(v) for v in labels], dtype=bool)
    elif labels.dtype.kind == "f":
        missing = np.isnan(labels)
    else:
        missing = np.zeros(len(labels), dtype=bool)
    return (
        missing if unlabelled is None else missing | _marked(labels, missing, unlabelled)
    )


def _marked(labels: np.ndarray, missing: BoolArray, mark: object) -> BoolArray:
    """Return which labels are a mark; missing ones need not be comparable with it."""
    kind = labels.dtype.kind
    if kind in "US" and not isinstance(mark, str):
        return np.zeros(len(labels), dtype=bool)
    if kind in "iu" and isinstance(mark, int | float):
        return np.asarray(labels == mark, dtype=bool)
    pairs = zip(missing.tolist(), labels.tolist(), strict=True)
    return np.array([not hole and value == mark for hole, value in pairs], dtype=bool)
