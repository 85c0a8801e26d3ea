"""Reading arrays and data frames column by column, and writing them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Protocol

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.cells import (
    are_numbers,
    in_precision,
    is_missing,
    label_of,
    numbers_in,
    refused_change,
    refused_type,
)
from hybridmix.data.frames import FrameColumns, NewColumn, as_frame, build_frame

__all__ = [
    "ArrayColumns",
    "Columns",
    "FrameColumns",
    "NewColumn",
    "as_frame",
    "build_table",
    "is_missing",
    "label_of",
    "read_columns",
]


class Columns(Protocol):
    """A table as the encoder sees it."""

    container: str
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int

    def is_categorical(self, column: int) -> bool:
        """Return whether the type of a column makes it categorical."""
        ...

    def real(self, columns: Sequence[int], single: bool = False) -> FloatArray:
        """Return real columns as (n, d), NaN where missing.

        Tables of single precision stay what they are if `single` is true, which spares
        a copy of twice their size; all others become double precision.

        Text that spells numbers is converted; columns of anything else are refused,
        unless all of their cells are missing. Empty text and "nan" are not numbers, but
        in NumPy arrays of text "nan" is a missing value, which NumPy has written so.
        """
        ...

    def values(self, column: int) -> list[object]:
        """Return the values of a categorical column, None where missing."""
        ...

    def dtype_name(self, column: int) -> str:
        """Return a word for the type of a column, which `build_table` understands."""
        ...

    def replaced(self, columns: Mapping[int, NewColumn]) -> object:
        """Return a copy of the table with some columns replaced.

        A float array replaces a real column, a list of values a categorical one.
        """
        ...


def read_columns(X: object) -> Columns:
    """Wrap an array or a data frame."""
    if isinstance(X, np.ndarray):
        return ArrayColumns(X)
    return FrameColumns(X)


class ArrayColumns:
    """Columns of a two-dimensional NumPy array."""

    container: str = "numpy"
    names: tuple[str, ...] | None = None

    def __init__(self, X: np.ndarray) -> None:
        self._array = X
        # NumPy takes ten microseconds for it, and wide tables ask for every column.
        self._dtype_name = str(X.dtype)
        self.n_rows, self.n_columns = X.shape

    def is_categorical(self, column: int) -> bool:
        kind = self._array.dtype.kind
        if kind == "O":
            values = self.values(column)
            for value in values:
                if not isinstance(value, Number | str | bytes | np.bool_ | None):
                    raise TypeError(
                        f"Column {column} holds a {type(value).__name__}: argument must "
                        "be a string or a number."
                    )
            return not are_numbers(values)
        if kind in "mM" and not np.isnat(self._array[:, column]).all():
            raise refused_type(f"column {column}", self._array.dtype)
        return kind in "bUS"

    def real(self, columns: Sequence[int], single: bool = False) -> FloatArray:
        kind = self._array.dtype.kind
        if kind in "fiu":
            whole = len(columns) == self.n_columns
            array = self._array if whole else self._array[:, list(columns)]
            return in_precision(array, single)
        result = np.empty((self.n_rows, len(columns)))
        for position, column in enumerate(columns):
            cells, label = self._array[:, column], f"column {column}"
            if kind in "US":
                # It is what NumPy makes of NaN in an array of text.
                words = [None if v in ("nan", b"nan") else v for v in cells.tolist()]
                result[:, position] = numbers_in(words, label)
            elif kind not in "mM":
                result[:, position] = numbers_in(cells.tolist(), label)
            elif np.isnat(cells).all():
                result[:, position] = np.nan
            else:
                raise refused_change(label, cells.dtype)
        return result

    def values(self, column: int) -> list[object]:
        return [None if is_missing(v) else v for v in self._array[:, column].tolist()]

    def dtype_name(self, column: int) -> str:
        return self._dtype_name

    def replaced(self, columns: Mapping[int, NewColumn]) -> np.ndarray:
        # An integer array has no holes, so a float is needed only where one was NaN.
        fits = all(self._holds(values) for values in columns.values())
        result = self._array.copy() if fits else self._array.astype(object)
        for column, values in columns.items():
            result[:, column] = _clipped(values, result.dtype)
        return result

    def _holds(self, values: NewColumn) -> bool:
        """Return whether the type of the array holds new values as they are."""
        kind = self._array.dtype.kind
        if isinstance(values, np.ndarray):
            return kind in "fO"
        return kind == "O" or np.asarray(values).dtype.kind in (
            "US" if kind in "US" else "biuf"
        )


def build_table(
    container: str,
    names: tuple[str, ...] | None,
    dtype_names: tuple[str, ...],
    columns: list[NewColumn],
    categories: Mapping[int, tuple[object, ...]],
) -> object:
    """Make a table of the kind that a model was trained on.

    Parameters
    ----------
    container : {"numpy", "pandas", "polars", ...}
        What the table is to be.
    names : tuple of str or None
        Column names of a data frame.
    dtype_names : tuple of str
        Types of the columns, as `Columns.dtype_name` gave them.
    columns : list
        A float array for a real column, a list of values for a categorical one.
    categories : mapping of int to tuple
        Values that the categorical columns may have; columns that had none in training
        are not in it.
    """
    if names is not None:
        return build_frame(container, names, dtype_names, columns, categories)
    real = [column for column in columns if isinstance(column, np.ndarray)]
    if len(real) == len(columns):
        return np.column_stack(real)
    result = np.empty((len(columns[0]), len(columns)), dtype=object)
    for position, column in enumerate(columns):
        result[:, position] = column
    kept = np.dtype(dtype_names[0])
    return result if kept.kind == "O" else result.astype(_holding_nan(kept))


def _holding_nan(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Return the type for real values of a table whose categories have a type."""
    return np.dtype(np.float64) if dtype.kind in "iu" else dtype


def _clipped(values: NewColumn, dtype: np.dtype[np.generic]) -> NewColumn:
    """Bring numbers into the range of a type that is narrower than theirs."""
    if not isinstance(values, np.ndarray) or dtype.kind != "f":
        return values
    limits = np.finfo(dtype)  # type: ignore[type-var]
    return np.clip(values, limits.min, limits.max)
