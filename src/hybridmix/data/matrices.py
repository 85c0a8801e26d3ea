"""Tables of complete numbers, for models that need every cell."""

from __future__ import annotations

from copy import copy

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from hybridmix._checks import is_learned
from hybridmix._text import shortened
from hybridmix._typing import FloatArray
from hybridmix.data.columns import as_frame
from hybridmix.data.dense import refuse_sparse
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


def finite_matrix(X: object, remedy: str) -> FloatArray:
    """Check a part of a table; see `read_training_matrix`."""
    matrix = _validated(BaseEstimator(), X, False, remedy, reset=True)
    return np.asarray(matrix, dtype=np.float64)


def _validated(
    estimator: object, X: object, accept_sparse: bool, remedy: str, *, reset: bool
) -> FloatArray | sparse.csr_array:
    as_frame(X)  # refuses lazy tables
    if not accept_sparse:
        refuse_sparse(X)
    try:
        matrix = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
            dtype=np.float64,
        )
    except ValueError as error:
        # scikit-learn's message sends users to its own imputers and estimators.
        if "contains NaN" in str(error):
            message = f"Input X contains NaN: {_first_hole(X)}. {remedy}"
            raise ValueError(message) from None
        if "could not convert string to float" in str(error):
            raise ValueError(_first_text(X)) from None
        raise
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix)  # type: ignore[call-overload]
    return matrix


def _first_hole(X: object) -> str:
    """Say where the first missing value of a table is."""
    names = getattr(X, "columns", None)
    to_dense = getattr(X, "toarray", None)  # of sparse tables
    dense = X if to_dense is None else to_dense()
    row, column = np.argwhere(np.isnan(np.asarray(dense, dtype=np.float64)))[0]
    name = column if names is None else repr(str(names[column]))
    return f"the first is in row {row} of column {name}"


def _first_text(X: object) -> str:
    """Say where the first cell of a table is that is not a number, and what to do."""
    names = getattr(X, "columns", None)
    cells = np.asarray(X, dtype=object)
    row, column = next(
        place for place in np.ndindex(cells.shape) if not _is_number(cells[place])
    )
    name = column if names is None else repr(str(names[column]))
    return (
        f"Column {name} holds {shortened(str(cells[row, column]), 30)!r} in row {row}, "
        "which is not a number. Turn categories into numbers, with a OneHotEncoder for "
        "instance; mixtures take them as they are."
    )


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
