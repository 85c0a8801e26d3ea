"""Reading arrays and data frames column by column, and writing them back."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any, Protocol

import numpy as np

from hybridmix._typing import FloatArray


class Columns(Protocol):
    """A table as the encoder sees it."""

    container: str
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int

    def is_categorical(self, column: int) -> bool:
        """Tell whether the type of a column makes it categorical."""
        ...

    def real(self, columns: Sequence[int]) -> FloatArray:
        """Return real columns as (n, d), NaN where missing."""
        ...

    def values(self, column: int) -> list[Any]:
        """Return the values of a categorical column, None where missing."""
        ...

    def dtype_name(self, column: int) -> str:
        """Return a word for the type of a column, which `build` understands."""
        ...

    def replaced(self, columns: dict[int, Any]) -> Any:
        """Return a copy of the table with some columns replaced."""
        ...


def read_columns(X: Any) -> Columns:
    """Wrap an array or a data frame."""
    if isinstance(X, np.ndarray):
        return ArrayColumns(X)
    return FrameColumns(X)


def as_frame(X: Any) -> Any | None:
    """Return a narwhals frame around a pandas or polars frame; None for other input."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    # Arrays are the common case and need no narwhals; importing it takes 50 ms.
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, pandas.NA or NaT."""
    if value is None:
        return True
    if isinstance(value, Number):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def label_of(names: tuple[str, ...] | None, column: int) -> str:
    """Name a column in a message."""
    return f"column {column}" if names is None else f"column {names[column]!r}"


class ArrayColumns:
    """Columns of a two-dimensional NumPy array."""

    container: str = "numpy"
    names: tuple[str, ...] | None = None

    def __init__(self, X: np.ndarray) -> None:
        self._array = X
        self.n_rows, self.n_columns = X.shape

    def is_categorical(self, column: int) -> bool:
        kind = self._array.dtype.kind
        if kind != "O":
            return kind in "bUS"
        seen = [v for v in self._array[:, column] if not is_missing(v)]
        for value in seen:
            if not isinstance(value, Number | str | bytes | np.bool_):
                raise TypeError(
                    f"Column {column} holds a {type(value).__name__}: argument must be a "
                    "string or a number."
                )
        return any(not isinstance(v, Number) or isinstance(v, bool) for v in seen)

    def real(self, columns: Sequence[int]) -> FloatArray:
        whole = len(columns) == self.n_columns
        array = self._array if whole else self._array[:, list(columns)]
        if array.dtype.kind == "O":
            return np.array(
                [[np.nan if is_missing(v) else float(v) for v in row] for row in array],
                dtype=np.float64,
            ).reshape(array.shape)
        return np.asarray(array, dtype=np.float64)

    def values(self, column: int) -> list[Any]:
        return [None if is_missing(v) else v for v in self._array[:, column].tolist()]

    def dtype_name(self, column: int) -> str:
        return str(self._array.dtype)

    def replaced(self, columns: dict[int, Any]) -> np.ndarray:
        # An integer array has no holes, so a float is needed only where one was NaN.
        result = self._array.copy()
        for column, values in columns.items():
            result[:, column] = values
        return result


class FrameColumns:
    """Columns of a pandas or polars data frame."""

    def __init__(self, X: Any) -> None:
        self._frame = as_frame(X)
        if self._frame is None:
            raise TypeError(f"Expected an array or a data frame, got {type(X).__name__}.")
        self.container: str = self._frame.implementation.value
        self.names: tuple[str, ...] | None = tuple(map(str, self._frame.columns))
        self.n_rows, self.n_columns = self._frame.shape

    def _series(self, column: int) -> Any:
        return self._frame[:, column]  # type: ignore[index]

    def is_categorical(self, column: int) -> bool:
        import narwhals.stable.v2 as nw

        dtype = self._series(column).dtype
        if dtype.is_numeric():
            return False
        if dtype in (nw.Categorical, nw.Enum, nw.String, nw.Object, nw.Boolean):
            return True
        if dtype == nw.Unknown and self._series(column).is_null().all():
            return False
        raise TypeError(
            f"The {label_of(self.names, column)} has the type {dtype}, which is neither "
            "numeric nor categorical. Convert it to a number (a date to days, say) or to "
            "a string, or drop it."
        )

    def real(self, columns: Sequence[int]) -> FloatArray:
        import narwhals.stable.v2 as nw

        result = np.empty((self.n_rows, len(columns)))
        for position, column in enumerate(columns):
            series = self._series(column)
            if series.dtype.is_numeric():
                result[:, position] = series.cast(nw.Float64).to_numpy()
            else:
                result[:, position] = np.nan
        return result

    def values(self, column: int) -> list[Any]:
        import narwhals.stable.v2 as nw

        series = self._series(column)
        if series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean):
            # What is missing in such columns is null, and a look at each cell is slow.
            holes = series.is_null().to_list()
            pairs = zip(series.to_list(), holes, strict=True)
            return [None if hole else value for value, hole in pairs]
        return [None if is_missing(value) else value for value in series.to_list()]

    def dtype_name(self, column: int) -> str:
        import narwhals.stable.v2 as nw

        dtype = self._series(column).dtype
        return "Categorical" if dtype == nw.Enum else str(dtype)

    def replaced(self, columns: dict[int, Any]) -> Any:
        import narwhals.stable.v2 as nw

        frame: Any = self._frame
        for column, values in columns.items():
            old = self._series(column)
            new = nw.new_series(old.name, list(values), backend=old.implementation)
            keeps_type = not old.dtype.is_numeric()
            if self.container == "pandas":
                # Columns align by the index of the input, and pandas has several types
                # of strings and booleans.
                native = new.to_native().set_axis(old.to_native().index)
                native = native.astype(old.to_native().dtype) if keeps_type else native
                new = nw.from_native(native, series_only=True)
            elif keeps_type:
                new = new.cast(old.dtype)
            frame = frame.with_columns(new.alias(old.name))
        return frame.to_native()


def build_table(
    container: Any,
    names: tuple[str, ...] | None,
    dtype_names: tuple[str, ...],
    columns: list[Any],
    categories: dict[int, tuple[Any, ...]],
) -> Any:
    """Make a table of the kind that a model was trained on.

    Parameters
    ----------
    container : {"numpy", "pandas", "polars", ...}
        What the table shall be.
    names : tuple of str or None
        Column names of a data frame.
    dtype_names : tuple of str
        Types of the columns, as `Columns.dtype_name` gave them.
    columns : list
        A float array for a real column, a list of values for a categorical one.
    categories : dict of int to tuple
        Values that the categorical columns may have.
    """
    if names is None:
        numeric = all(isinstance(column, np.ndarray) for column in columns)
        if numeric:
            return np.column_stack(columns)
        result = np.empty((len(columns[0]), len(columns)), dtype=object)
        for position, column in enumerate(columns):
            result[:, position] = column
        kept = np.dtype(dtype_names[0])
        return result if kept.kind == "O" else result.astype(_holding_nan(kept))

    import narwhals.stable.v2 as nw

    series = []
    for position, column in enumerate(columns):
        new = nw.new_series(names[position], list(column), backend=container)
        if dtype_names[position] in ("Categorical", "Boolean", "String"):
            new = new.cast(getattr(nw, dtype_names[position]))
        if container == "pandas" and dtype_names[position] == "Categorical":
            # In pandas the type of a column tells the values that it may have.
            native = new.to_native().cat.set_categories(list(categories[position]))
            new = nw.from_native(native, series_only=True)
        series.append(new)
    frame = series[0].to_frame()
    return frame.with_columns(*series).to_native()


def _holding_nan(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type for real values of a table whose categories have a type."""
    return np.dtype(np.float64) if dtype.kind in "iu" else dtype
