"""Refusing sparse tables, with the way out."""

from __future__ import annotations

from scipy import sparse

_ADVICE = (
    "In a mixture, up to eight columns with many zeros then become spiked: they have a "
    "probability of exactly 0 and a density of the other values. For thousands of "
    "columns, linear MEDClassifier and MEDRegressor, and MEDFeatureSelector, take sparse "
    "tables as they are."
)


def refuse_sparse(X: object, name: str = "X") -> None:
    """Raise TypeError if a table is sparse, in whole or in a column.

    Parameters
    ----------
    X : object
        Whatever was passed as a table.
    name : str
        What is read.
    """
    if sparse.issparse(X):
        raise TypeError(
            f"{name} is sparse ({type(X).__name__}): call .toarray() on it and pass the "
            f"result. {_ADVICE}"
        )
    if not hasattr(X, "iloc"):  # data frames of pandas alone have sparse columns
        return
    for column, dtype in getattr(getattr(X, "dtypes", None), "items", dict)():
        if str(dtype).startswith("Sparse["):
            raise TypeError(
                f"The column {str(column)!r} is sparse ({dtype}): make it dense by "
                f"{name}[{column!r}].sparse.to_dense(), or, if all are sparse, pass "
                f"{name}.sparse.to_dense(). {_ADVICE}"
            )
