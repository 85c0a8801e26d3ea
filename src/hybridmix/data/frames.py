"""Columns of data frames, by way of narwhals, which is imported only where needed.

A frame may have thousands of columns, and taking out one of them costs more than reading
its few cells. So columns are read many at once, and numbers are written so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.cells import (
    are_numbers,
    label_of,
    number_of,
    numbers_in,
    refused_change,
    refused_type,
)
from hybridmix.data.natives import Kind, cell_lists, column_kinds, numbers_of

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    Frame = nw.DataFrame[Any]
    Series = nw.Series[Any]

# As many cells are read at once and kept until others are asked for. Wide tables of few
# rows fit in whole, so that they are read once; of long ones it is a column at a time.
_BLOCK_CELLS = 2**20
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
    if getattr(X, "is_block_source", False):
        raise TypeError(
            f"{name} is a table that is read block by block, and this needs one in "
            "memory: a part of its rows, such as next(iter(table)). The estimators of "
            "mixtures can read it whole."
        )
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
        # The first of the columns that were read last, and their cells.
        self._block: tuple[int, list[list[object]]] = 0, []

    @cached_property
    def _kinds(self) -> list[Kind]:
        """The types of the columns."""
        return column_kinds(self._frame)

    def _series(self, column: int) -> Series:
        return self._frame.get_column(self._names[column])

    def _label(self, column: int) -> str:
        return label_of(self.names, column)

    def is_categorical(self, column: int) -> bool:
        kind = self._kinds[column]
        if kind.is_numeric:
            return False
        if kind.is_object:
            return not are_numbers(self.values(column))
        if kind.is_text:
            return True
        if self._series(column).is_null().all():
            return False
        raise refused_type(self._label(column), kind.dtype)

    def real(self, columns: Sequence[int], single: bool = False) -> FloatArray:
        is_numeric = [self._kinds[column].is_numeric for column in columns]
        if all(is_numeric):
            return self._numeric(columns, single)
        result = np.empty((self.n_rows, len(columns)))
        numeric = [c for c, flag in zip(columns, is_numeric, strict=True) if flag]
        result[:, is_numeric] = self._numeric(numeric)
        for position in np.flatnonzero(~np.array(is_numeric)).tolist():
            result[:, position] = self._converted(columns[position])
        return result

    def _numeric(self, columns: Sequence[int], single: bool = False) -> FloatArray:
        """Return columns of numbers, all at once."""
        if not columns:
            return np.empty((self.n_rows, 0))
        whole = len(columns) == self.n_columns
        part = self._frame if whole else self._frame[:, list(columns)]
        return numbers_of(part, single)

    def _converted(self, column: int) -> FloatArray:
        """Return a column that is not of numbers, but may spell them."""
        kind = self._kinds[column]
        try:
            if not kind.may_spell_numbers:
                raise refused_change(self._label(column), kind.dtype)
            return numbers_in(self.values(column), self._label(column))
        except (TypeError, ValueError):
            # Nulls of any type may stand in a column of numbers.
            if self._series(column).is_null().all():
                return np.full(self.n_rows, np.nan)
            raise

    def values(self, column: int) -> list[object]:
        start, cells = self._block
        if not start <= column < start + len(cells):
            width = max(_BLOCK_CELLS // max(self.n_rows, 1), 1)
            start = column // width * width
            stop = min(start + width, self.n_columns)
            whole = stop - start == self.n_columns
            part = self._frame if whole else self._frame[:, start:stop]
            cells = cell_lists(part, self._kinds[start:stop])
            self._block = start, cells
        return cells[column - start]

    def dtype_name(self, column: int) -> str:
        return self._kinds[column].name

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

        dtype = self._kinds[column].dtype
        values = _of_one_kind(values, dtype.is_numeric())
        # Numbers may become floats; dates without a value hold what training had there.
        keeps_type = not (dtype.is_numeric() or dtype.is_temporal())
        if self.container == "pandas":
            # Columns align by the index of the input, and pandas has several types of
            # strings and booleans.
            source = self._frame.to_native().iloc[:, column]
            native = type(source)(values, index=source.index, name=source.name)
            if dtype == nw.Categorical:
                known = source.dtype.categories
                extra = sorted(set(values) - set(known), key=str)
                native = native.astype(source.cat.add_categories(extra).dtype)
            elif keeps_type:
                native = native.astype(source.dtype)
            return nw.from_native(native, series_only=True)
        name = str(self._names[column])
        new = nw.new_series(name, values, backend=self._frame.implementation)
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
