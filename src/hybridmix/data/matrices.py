"""Tables of complete numbers, for models that need every cell."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from hybridmix._checks import is_learned
from hybridmix._typing import FloatArray
from hybridmix.data.columns import as_frame
from hybridmix.data.table import PUBLISHED


def read_training_matrix(
    estimator: object, X: object, accept_sparse: bool, remedy: str
) -> tuple[FloatArray | sparse.csr_array, dict[str, object]]:
    """Check a training table as scikit-learn does, and leave the estimator alone.

    Parameters
    ----------
    estimator : estimator
        The estimator to be trained; it is not changed.
    X : array-like, sparse or data frame of shape (n, p)
        The table.
    accept_sparse : bool
        Whether it may be sparse.
    remedy : str
        What to do about missing values, as a sentence.

    Returns
    -------
    X : ndarray or csr_array of shape (n, p)
        Finite numbers in double precision.
    attributes : dict of str to object
        What to publish after training: ``n_features_in_``, and ``feature_names_in_`` if
        the columns have names.
    """
    scratch = copy(estimator)
    scratch.__dict__ = {k: v for k, v in vars(estimator).items() if not is_learned(k)}
    matrix = _validated(scratch, X, accept_sparse, remedy, reset=True)
    attributes = {k: v for k, v in vars(scratch).items() if k in PUBLISHED}
    return matrix, attributes


def read_matrix(
    estimator: object, X: object, accept_sparse: bool, remedy: str
) -> FloatArray | sparse.csr_array:
    """Check a table against the one of training; see `read_training_matrix`."""
    return _validated(estimator, X, accept_sparse, remedy, reset=False)


def _validated(
    estimator: object, X: object, accept_sparse: bool, remedy: str, *, reset: bool
) -> FloatArray | sparse.csr_array:
    as_frame(X)  # refuses lazy tables
    matrix = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if accept_sparse else False,
        dtype=np.float64,
        ensure_all_finite=False,
    )
    if sparse.issparse(matrix):
        matrix = sparse.csr_array(matrix)  # type: ignore[call-overload]
    _check_finite(matrix, getattr(estimator, "feature_names_in_", None), remedy)
    return matrix


def _check_finite(X: FloatArray | sparse.csr_array, names: Any, remedy: str) -> None:
    """Refuse missing and infinite values, and say where the first one is."""
    values: FloatArray = X.data if isinstance(X, sparse.csr_array) else X
    # The sum is finite only if all are, and costs no array of the size of the table.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)) or np.isfinite(values).all():
            return
    if isinstance(X, sparse.csr_array):
        held = X.tocoo()
        wrong = np.flatnonzero(~np.isfinite(held.data))[0]
        row, column, value = held.row[wrong], held.col[wrong], held.data[wrong]
    else:
        row, column = np.argwhere(~np.isfinite(X))[0]
        value = X[row, column]
    name = column if names is None else repr(str(names[column]))
    if np.isnan(value):
        raise ValueError(
            f"Input X contains NaN: the first is in row {row} of column {name}. {remedy}"
        )
    raise ValueError(
        f"Input X contains infinity or a value too large for dtype('float64'): the first "
        f"is in row {row} of column {name}."
    )
