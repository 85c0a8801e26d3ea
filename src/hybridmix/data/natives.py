"""Many columns of a data frame at once, in the ways of pandas and polars.

Narwhals takes tens of microseconds for each column, which is what a column of few rows
takes to be learned from. So the libraries are asked for all columns of a type together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.cells import in_precision, is_missing

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.dtypes import DType

    Frame = nw.DataFrame[Any]

# Narwhals looks at this many cells of a column of objects to find its type.
_N_SNIFFED = 100


@dataclass(frozen=True)
class Kind:
    """The type of columns, and what follows from it.

    Attributes
    ----------
    dtype : DType
        The type, as narwhals calls it.
    is_numeric, is_object : bool
        Whether cells are numbers; whether they may be anything.
    is_text : bool
        Whether cells are categories, and null where missing.
    may_spell_numbers : bool
        Whether cells may be text that spells numbers.
    name : str
        A word for the type.
    """

    dtype: DType
    is_numeric: bool
    is_object: bool
    is_text: bool
    may_spell_numbers: bool
    name: str

    @classmethod
    def of(cls, dtype: DType) -> Kind:
        """Describe a type."""
        import narwhals.stable.v2 as nw

        is_category = dtype in (nw.Categorical, nw.Enum)
        is_object = bool(dtype == nw.Object)
        return cls(
            dtype=dtype,
            is_numeric=dtype.is_numeric(),
            is_object=is_object,
            is_text=is_category or dtype in (nw.String, nw.Boolean),
            may_spell_numbers=is_category or is_object or dtype == nw.String,
            name="Categorical" if dtype == nw.Enum else str(dtype),
        )


def column_kinds(frame: Frame) -> list[Kind]:
    """Return the types of the columns of a frame.

    Few types stand for many columns, so narwhals is asked once for each of them.
    """
    native = frame.to_native()
    if frame.implementation.is_pandas():
        keys = _pandas_keys(native, _library(frame))
    elif frame.implementation.is_polars():
        keys = list(native.dtypes)
    else:
        return [Kind.of(dtype) for dtype in frame.schema.values()]
    names = frame.columns
    found: dict[Hashable, Kind] = {}
    for name, key in zip(names, keys, strict=True):
        if key not in found:
            found[key] = Kind.of(frame.get_column(name).dtype)
    return [found[key] for key in keys]


def _pandas_keys(native: Any, pandas: Any) -> list[Hashable]:
    """Return, for each column, something that determines what narwhals calls its type."""
    dtypes = native.dtypes.tolist()
    keys = [_dtype_key(dtype, pandas) for dtype in dtypes]
    objects = [j for j, dtype in enumerate(dtypes) if dtype is np.dtype(object)]
    if objects:
        sniffed = native.iloc[:_N_SNIFFED, objects].to_numpy(dtype=object)
        for column, cells in zip(objects, sniffed.T, strict=True):
            keys[column] = object, pandas.api.types.infer_dtype(cells, skipna=True)
    return keys


def _dtype_key(dtype: Any, pandas: Any) -> Hashable:
    """Return a type, or what types of categories have in common: their hash is slow."""
    if isinstance(dtype, pandas.CategoricalDtype):
        return pandas.CategoricalDtype, dtype.ordered
    return dtype


def _library(frame: Frame) -> Any:
    """Return the library that a frame is from."""
    import narwhals.stable.v2 as nw

    return nw.get_native_namespace(frame)


def numbers_of(frame: Frame, single: bool = False) -> FloatArray:
    """Return the columns of a frame of numbers as (n, d), NaN where missing.

    They are in double precision, or if asked in single precision if they are so.
    """
    if frame.implementation.is_pandas():
        native = frame.to_native()
        if not all(isinstance(dtype, np.dtype) for dtype in native.dtypes.tolist()):
            values = native.to_numpy(dtype=np.float64, na_value=np.nan)
            return np.asarray(values, dtype=np.float64)
    return in_precision(frame.to_numpy(), single)


def cell_lists(frame: Frame, kinds: list[Kind]) -> list[list[object]]:
    """Return the cells of each column of a frame, None where missing.

    Parameters
    ----------
    frame : narwhals frame
        Some columns of a table.
    kinds : list of Kind
        Their types.
    """
    if frame.implementation.is_pandas():
        lists = _pandas_lists(frame.to_native(), kinds, _library(frame))
    elif frame.implementation.is_polars():
        lists = [series.to_list() for series in frame.to_native().get_columns()]
    else:
        lists = [
            _without_nulls(series) if kind.is_text else series.to_list()
            for series, kind in zip(frame.iter_columns(), kinds, strict=True)
        ]
    # What is missing in text is null, and a look at each cell is slow.
    return [
        cells if kind.is_text else [None if is_missing(cell) else cell for cell in cells]
        for cells, kind in zip(lists, kinds, strict=True)
    ]


def _without_nulls(series: Any) -> list[object]:
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return [None if hole else value for value, hole in pairs]


def _pandas_lists(native: Any, kinds: list[Kind], pandas: Any) -> list[list[object]]:
    """Return the cells of columns of pandas, None where text is missing."""
    groups: dict[Hashable, list[int]] = {}
    for j, (dtype, kind) in enumerate(zip(native.dtypes.tolist(), kinds, strict=True)):
        key = _dtype_key(dtype, pandas), kind.is_text
        groups.setdefault(key, []).append(j)
    # Names of columns are slow to look up, and not needed here.
    native = native.set_axis(range(len(kinds)), axis=1)
    lists: list[list[object]] = [[]] * len(kinds)
    for columns in groups.values():
        part = native if len(columns) == len(kinds) else native.iloc[:, columns]
        is_text = kinds[columns[0]].is_text
        found = _text_lists(part, pandas) if is_text else _other_lists(part)
        for column, cells in zip(columns, found, strict=True):
            lists[column] = cells
    return lists


def _text_lists(part: Any, pandas: Any) -> Iterable[list[object]]:
    """Return the cells of columns that are all of one type of text."""
    dtype = part.dtypes.iloc[0]
    if isinstance(dtype, pandas.CategoricalDtype):
        return (_category_cells(series.array) for _, series in part.items())
    if isinstance(dtype, np.dtype):
        cells = part.to_numpy(dtype=object, copy=True).T
    else:
        # One conversion of a long array takes the time of that of a short one.
        arrays = [series.array for _, series in part.items()]
        long = type(arrays[0])._concat_same_type(arrays)
        cells = long.to_numpy(dtype=object, copy=True).reshape(len(arrays), -1)
    cells[pandas.isna(cells)] = None
    lists: list[list[object]] = cells.tolist()
    return lists


def _category_cells(array: Any) -> list[object]:
    known = [*array.categories.tolist(), None]  # the code of what is missing is -1
    return [known[code] for code in array.codes.tolist()]


def _other_lists(part: Any) -> Iterable[list[object]]:
    """Return the cells of columns that are all of one type, which is not text."""
    dtype = part.dtypes.iloc[0]
    if isinstance(dtype, np.dtype) and dtype.kind in "Obiuf":
        lists: list[list[object]] = part.to_numpy(dtype=object).T.tolist()
        return lists
    return (series.tolist() for _, series in part.items())
