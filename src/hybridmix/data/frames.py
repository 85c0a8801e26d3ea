"""Columns of data frames, by way of narwhals, which is imported only where needed.

A frame may have thousands of columns, and taking out one of them costs more than reading
its few cells. So numbers are read and written for all columns at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.cells import (
    are_numbers,
    is_missing,
    label_of,
    number_of,
    numbers_in,
    refused_change,
    refused_type,
)

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.dtypes import DType

    Frame = nw.DataFrame[Any]
    Series = nw.Series[Any]

# Libraries whose frames hold their rows in memory, as narwhals calls them.
CONTAINERS = ("pandas", "polars", "modin", "cudf", "pyarrow")

NewColumn = FloatArray | list[object]


def as_frame(X: object, name: str = "X") -> Frame | None:
    """Return a narwhals frame around a pandas or polars frame; None for other input.

    Parameters
    ----------
    X : object
        Whatever was passed as a table.
    name : str
        The argument's name, for the error if the frame is lazy.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return None
    # Arrays are the common case and need no narwhals; importing it takes 50 ms.
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        method = "compute" if frame.implementation.is_dask() else "collect"
        raise TypeError(
            f"{name} is a lazy table ({type(X).__name__}), whose rows are not there yet. "
            f"Call .{method}() on it and pass the result."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


class FrameColumns:
    """Columns of a pandas or polars data frame."""

    def __init__(self, X: object) -> None:
        frame = as_frame(X)
        if frame is None:
            raise TypeError(f"Expected an array or a data frame, got {type(X).__name__}.")
        self._frame = frame
        self._names = list(frame.columns)  # pandas may have numbers for names
        self.container: str = frame.implementation.value
        self.names: tuple[str, ...] | None = tuple(map(str, self._names))
        self.n_rows, self.n_columns = frame.shape

    @cached_property
    def _dtypes(self) -> list[DType]:
        """The types of the columns."""
        if self.container != "pandas":
            return list(self._frame.schema.values())
        # Few types stand for many columns, but an object may be anything.
        native = self._frame.to_native().dtypes.tolist()
        found: dict[object, DType] = {}
        for column, dtype in enumerate(native):
            if dtype != "object" and dtype not in found:
                found[dtype] = self._series(column).dtype
        return [
            found[dtype] if dtype in found else self._series(column).dtype
            for column, dtype in enumerate(native)
        ]

    def _series(self, column: int) -> Series:
        return self._frame.get_column(self._names[column])

    def _label(self, column: int) -> str:
        return label_of(self.names, column)

    def is_categorical(self, column: int) -> bool:
        import narwhals.stable.v2 as nw

        dtype = self._dtypes[column]
        if dtype.is_numeric():
            return False
        if dtype == nw.Object:
            return not are_numbers(self._series(column).to_list())
        if dtype in (nw.Categorical, nw.Enum, nw.String, nw.Boolean):
            return True
        if self._series(column).is_null().all():
            return False
        raise refused_type(self._label(column), dtype)

    def real(self, columns: Sequence[int]) -> FloatArray:
        is_numeric = [self._dtypes[column].is_numeric() for column in columns]
        if all(is_numeric):
            return self._numeric(columns)
        result = np.empty((self.n_rows, len(columns)))
        numeric = [c for c, flag in zip(columns, is_numeric, strict=True) if flag]
        result[:, is_numeric] = self._numeric(numeric)
        for position in np.flatnonzero(~np.array(is_numeric)).tolist():
            result[:, position] = self._converted(columns[position])
        return result

    def _numeric(self, columns: Sequence[int]) -> FloatArray:
        """Return columns of numbers, all at once."""
        if not columns:
            return np.empty((self.n_rows, 0))
        whole = len(columns) == self.n_columns
        part = self._frame if whole else self._frame[:, list(columns)]
        return np.asarray(part.to_numpy(), dtype=np.float64)

    def _converted(self, column: int) -> FloatArray:
        """Return a column that is not of numbers, but may spell them."""
        import narwhals.stable.v2 as nw

        series, dtype = self._series(column), self._dtypes[column]
        if series.is_null().all():
            return np.full(self.n_rows, np.nan)
        if dtype in (nw.Categorical, nw.Enum, nw.String, nw.Object):
            return numbers_in(self.values(column), self._label(column))
        raise refused_change(self._label(column), dtype)

    def values(self, column: int) -> list[object]:
        import narwhals.stable.v2 as nw

        series = self._series(column)
        if self._dtypes[column] in (nw.String, nw.Categorical, nw.Enum, nw.Boolean):
            # What is missing in such columns is null, and a look at each cell is slow.
            holes = series.is_null().to_list()
            pairs = zip(series.to_list(), holes, strict=True)
            return [None if hole else value for value, hole in pairs]
        return [None if is_missing(value) else value for value in series.to_list()]

    def dtype_name(self, column: int) -> str:
        import narwhals.stable.v2 as nw

        dtype = self._dtypes[column]
        return "Categorical" if dtype == nw.Enum else str(dtype)

    def replaced(self, columns: Mapping[int, NewColumn]) -> object:
        import narwhals.stable.v2 as nw

        if not columns:
            return self._frame.clone().to_native()
        numbers, categories = _parted(columns)
        kept = [column for column in range(self.n_columns) if column not in columns]
        parts = [self._category_series(j, v).to_frame() for j, v in categories.items()]
        parts += [self._number_frame(numbers)] if numbers else []
        parts += [self._frame[:, kept]] if kept else []
        joined = nw.concat(parts, how="horizontal")
        return joined[:, np.argsort([*categories, *numbers, *kept]).tolist()].to_native()

    def _number_frame(self, columns: Mapping[int, FloatArray]) -> Frame:
        """Return new real columns as a frame with the index of the table."""
        import narwhals.stable.v2 as nw

        names = [self._names[column] for column in columns]
        matrix = np.column_stack(list(columns.values()))
        if self.container != "pandas":
            return nw.from_numpy(matrix, names, backend=self._frame.implementation)
        native = nw.get_native_namespace(self._frame).DataFrame(
            matrix, index=self._frame.to_native().index, columns=names
        )
        return nw.from_native(native, eager_only=True)

    def _category_series(self, column: int, values: list[object]) -> Series:
        """Return new categories as a series, of the type of the column if possible."""
        import narwhals.stable.v2 as nw

        old, dtype = self._series(column), self._dtypes[column]
        values = _of_one_kind(values, dtype.is_numeric())
        # Numbers may become floats; dates without a value hold what training had there.
        keeps_type = not (dtype.is_numeric() or dtype.is_temporal())
        new = nw.new_series(str(old.name), values, backend=self._frame.implementation)
        if self.container == "pandas":
            # Columns align by the index of the input, and pandas has several types of
            # strings and booleans.
            source = old.to_native()
            native = new.to_native().set_axis(source.index).rename(source.name)
            if dtype == nw.Categorical:
                known = source.dtype.categories
                extra = sorted(set(values) - set(known), key=str)
                native = native.astype(source.cat.add_categories(extra).dtype)
            elif keeps_type:
                native = native.astype(source.dtype)
            return nw.from_native(native, series_only=True)
        if isinstance(dtype, nw.Enum):
            added = sorted({str(value) for value in values} - set(dtype.categories))
            return new.cast(nw.Enum([*dtype.categories, *added]))
        return new.cast(dtype) if keeps_type else new


def _parted(
    columns: Mapping[int, NewColumn],
) -> tuple[dict[int, FloatArray], dict[int, list[object]]]:
    """Return the real columns and the categorical ones."""
    numbers, categories = {}, {}
    for column, values in columns.items():
        if isinstance(values, np.ndarray):
            numbers[column] = values
        else:
            categories[column] = values
    return numbers, categories


def _of_one_kind(values: list[object], as_numbers: bool) -> list[object]:
    """Turn categories that mix text and numbers into numbers, if they can be, or text."""
    is_text = [isinstance(value, str) for value in values]
    if not any(is_text) or all(is_text):
        return values
    numbers: list[object] = [number_of(value) for value in values]
    if as_numbers and None not in numbers:
        return numbers
    return [str(value) for value in values]


def build_frame(
    container: Any,
    names: tuple[str, ...],
    dtype_names: tuple[str, ...],
    columns: list[NewColumn],
    categories: Mapping[int, tuple[object, ...]],
) -> object:
    """Make a data frame; the parameters are those of `build_table`."""
    import narwhals.stable.v2 as nw

    numbers, others = _parted(dict(enumerate(columns)))
    frames = []
    if numbers:
        matrix = np.column_stack(list(numbers.values()))
        own = [names[j] for j in numbers]
        frames.append(nw.from_numpy(matrix, own, backend=container))
    for j, values in others.items():
        new = nw.new_series(names[j], values, backend=container)
        frames.append(_as_in_training(new, dtype_names[j], categories.get(j)).to_frame())
    return nw.concat(frames, how="horizontal").select(list(names)).to_native()


def _as_in_training(
    series: Series, dtype_name: str, categories: tuple[object, ...] | None
) -> Series:
    """Give new categories the type of the column; None: no category is known."""
    import narwhals.stable.v2 as nw

    is_pandas = series.implementation.is_pandas()
    if dtype_name not in ("Categorical", "Boolean", "String"):
        return series
    if is_pandas and dtype_name == "Boolean" and categories is None:
        return series  # a boolean of pandas cannot be missing
    series = series.cast(getattr(nw, dtype_name))
    if is_pandas and dtype_name == "Categorical":
        # In pandas the type of a column says which values it may have.
        native = series.to_native().cat.set_categories(list(categories or ()))
        series = nw.from_native(native, series_only=True)
    return series
