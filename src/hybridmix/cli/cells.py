"""Columns of files: cells of text, and typed columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybridmix._typing import BoolArray, FloatArray

# Cells that mean a missing value, without the blanks around them.
MISSING = frozenset(
    (
        *("", "?", "NA", "N/A", "n/a", "N.A.", "n.a.", "#N/A", "<NA>", "NaN", "nan"),
        *("null", "NULL", "None"),
    )
)
Marks = frozenset[str]
ALL = slice(None)
TEXT_TYPES = ("string", "large_string", "string_view")
# Marks between the thousands of numbers, by the mark of fractions.
_GROUPINGS = {".": (",", "'", "\u2019", " "), ",": (".", "'", "\u2019", " ")}
LEADING_ZERO = re.compile(r"[+-]?0\d+")
# Fewer cells than this are read faster one by one than all at once.
_FEW_CELLS = 200


class CellError(ValueError):
    """A cell that is not a finite number; it knows its place within the column."""

    def __init__(self, position: int, text: str) -> None:
        super().__init__(f"{text!r} is not a finite number.")
        self.position = position
        self.text = text


class Column(Protocol):
    """A column of a chunk of a file."""

    def __len__(self) -> int: ...

    def texts(self, marks: Marks) -> list[str | None]:
        """Return the cells as text without blanks around it, None where missing."""
        ...

    def numbers(self, marks: Marks, allow_infinite: bool = False) -> FloatArray:
        """Return the cells as numbers, NaN where missing; others raise CellError."""
        ...

    def widened(self) -> Column:
        """Return a column that has room for fractions."""
        ...

    def filled(self, holes: BoolArray, values: Sequence[Any]) -> Column:
        """Return the column with values in the holes; all other cells stay the same."""
        ...

    def written(self, decimal: str, rows: slice = ALL) -> list[str]:
        """Return cells as a text file holds them."""
        ...

    def stored(self, as_number: bool, marks: Marks) -> pa.Array:
        """Return the column as a typed file holds it."""
        ...


@dataclass(frozen=True)
class TextColumn:
    """Cells of a text file, unchanged.

    Attributes
    ----------
    cells : list of str
        The cells.
    decimal : str
        The mark of fractions.
    thousands : str
        The mark between thousands, ``1,467.45``; empty if numbers have none.
    """

    cells: list[str]
    decimal: str = "."
    thousands: str = ""

    def __len__(self) -> int:
        return len(self.cells)

    def texts(self, marks: Marks) -> list[str | None]:
        """Return the cells without blanks around them, None where missing."""
        stripped = (cell.strip() for cell in self.cells)
        if self.thousands:
            stripped = (
                ungrouped(cell, self.thousands, self.decimal) for cell in stripped
            )
        return _unmarked(stripped, marks, self.decimal)

    def numbers(self, marks: Marks, allow_infinite: bool = False) -> FloatArray:
        """Return the cells as numbers, NaN where missing; others raise CellError."""
        numbers = None
        if self.decimal == "." and len(self.cells) >= _FEW_CELLS:
            numbers = _plain_numbers(self.cells, marks)
        if numbers is None:
            return parsed(self.texts(marks), self.decimal, allow_infinite)
        return numbers

    def widened(self) -> TextColumn:
        """Return the column: text has room for anything."""
        return self

    def filled(self, holes: BoolArray, values: Sequence[Any]) -> TextColumn:
        """Return the column with values in the holes."""
        cells = list(self.cells)
        for row in np.flatnonzero(holes).tolist():
            cells[row] = written_value(values[row], self.decimal, digits=10)
        return replace(self, cells=cells)

    def written(self, decimal: str, rows: slice = ALL) -> list[str]:
        """Return cells as they are."""
        return self.cells[rows]

    def stored(self, as_number: bool, marks: Marks) -> pa.Array:
        """Return numbers or strings, null where missing."""
        if as_number:
            return pa.array(self.numbers(marks), pa.float64(), from_pandas=True)
        return pa.array(self.texts(marks), pa.string())


@dataclass(frozen=True)
class TypedColumn:
    """A column of a Parquet or Feather file, or of results.

    Numbers of files keep all digits when they are written as text; those of results get
    ten, which is more than their precision.
    """

    array: pa.Array
    digits: int = 17

    def __len__(self) -> int:
        return len(self.array)

    @classmethod
    def of(cls, values: Iterable[Any]) -> TypedColumn:
        """Make a column of results, with the type that they have."""
        return cls(pa.array(values), digits=10)

    def texts(self, marks: Marks) -> list[str | None]:
        """Return the cells as text, None where missing."""
        cells = (written_value(value) for value in _values(self.array))
        stripped = (cell.strip() for cell in cells)
        return _unmarked(stripped, marks, ".")

    def numbers(self, marks: Marks, allow_infinite: bool = False) -> FloatArray:
        """Return the cells as numbers, NaN where missing; others raise CellError."""
        if kind_of_type(self.array.type) != "real":
            return parsed(self.texts(marks), ".", allow_infinite)
        array = pc.cast(self.array, pa.float64(), safe=False)
        numbers = np.array(array.to_numpy(zero_copy_only=False), dtype=np.float64)
        if any(is_number(mark, allow_infinite=True) for mark in marks - MISSING):
            holes = [text is None for text in self.texts(marks)]
            numbers[np.array(holes, dtype=bool)] = np.nan
        infinite = np.flatnonzero(np.isinf(numbers)).tolist()
        if infinite and not allow_infinite:
            raise CellError(infinite[0], str(numbers[infinite[0]]))
        return numbers

    def widened(self) -> TypedColumn:
        """Return a column that has room for fractions."""
        return replace(self, array=pc.cast(self.array, pa.float64(), safe=False))

    def filled(self, holes: BoolArray, values: Sequence[Any]) -> TypedColumn:
        """Return the column with values in the holes."""
        texts = [
            (repr(value) if isinstance(value, float) else str(value)) if hole else None
            for hole, value in zip(holes, values, strict=True)
        ]
        new = pc.cast(pa.array(texts, pa.string()), self.array.type)
        return replace(self, array=pc.if_else(pa.array(holes), new, self.array))

    def written(self, decimal: str, rows: slice = ALL) -> list[str]:
        """Return cells as text, empty where missing."""
        values = _values(self.array[rows])
        return [written_value(value, decimal, self.digits) for value in values]

    def stored(self, as_number: bool, marks: Marks) -> pa.Array:
        """Return the column as it is."""
        return self.array


def kind_of_type(dtype: pa.DataType) -> str:
    """Return the kind of a type: real, categorical, date or other."""
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype):
        return "real"
    if pa.types.is_decimal(dtype):
        return "real"
    if pa.types.is_temporal(dtype):
        return "date"
    if pa.types.is_boolean(dtype) or str(dtype) in ("null", *TEXT_TYPES):
        return "categorical"
    return "other"


def parse_number(text: str, decimal: str = ".", allow_infinite: bool = False) -> float:
    """Read a number; refuse NaN, and underscores, which only Python allows."""
    if decimal != ".":
        if _grouped(".", decimal).fullmatch(text):
            raise ValueError(f"{text!r} has a mark between its thousands.")
        text = text.replace(decimal, ".")
    number = float(text)
    is_refused = math.isnan(number) or (math.isinf(number) and not allow_infinite)
    if "_" in text or is_refused:
        raise ValueError(f"{text!r} is not a finite number.")
    return number


def is_number(text: str, decimal: str = ".", allow_infinite: bool = False) -> bool:
    """Return whether a text is a number."""
    try:
        parse_number(text, decimal, allow_infinite)
    except ValueError:
        return False
    return True


def _unmarked(cells: Iterable[str], marks: Marks, decimal: str) -> list[str | None]:
    """Return cells, None in place of marks; 9999 and 9999.0 are the same mark."""
    numbers = _numbers_among(marks, decimal)
    if not numbers:
        return [None if cell in marks else cell for cell in cells]
    return [
        None if cell in marks or _value(cell, decimal) in numbers else cell
        for cell in cells
    ]


def _numbers_among(marks: Marks, decimal: str) -> set[float]:
    """Return the marks that are numbers."""
    values = (_value(mark, decimal) for mark in marks - MISSING)
    return {value for value in values if value is not None}


def _value(text: str, decimal: str) -> float | None:
    """Return the number that a text spells, if any; codes such as 007 spell none."""
    if LEADING_ZERO.fullmatch(text):
        return None
    try:
        return parse_number(text, decimal, allow_infinite=True)
    except ValueError:
        return None


def ungrouped(text: str, thousands: str, decimal: str) -> str:
    """Return a number without the marks between its thousands; other text as it is."""
    if not _grouped(thousands, decimal).fullmatch(text):
        return text
    return "".join(text.split()) if thousands.isspace() else text.replace(thousands, "")


def grouping_of(text: str, decimal: str) -> str | None:
    """Return the mark between the thousands of a number; None if it has none."""
    for mark in _GROUPINGS[decimal]:
        if _grouped(mark, decimal).fullmatch(text):
            return mark
    return None


@cache
def _grouped(thousands: str, decimal: str) -> re.Pattern[str]:
    """Return what numbers with a mark between their thousands look like."""
    # There are blanks that no line is broken at, which look the same.
    mark = r"\s" if thousands.isspace() else re.escape(thousands)
    return re.compile(
        rf"[+-]?[1-9]\d{{0,2}}(?:{mark}\d{{3}})+(?:{re.escape(decimal)}\d*)?"
    )


def written_value(value: Any, decimal: str = ".", digits: int = 15) -> str:
    """Write a value into a cell of text."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        text = repr(value) if digits == 17 else f"{value:.{digits}g}"
        return text.replace(".", decimal)
    return str(value)


def _values(array: pa.Array) -> list[Any]:
    """Return values; short floats by the digits that they have, 0.1 as 0.1."""
    if pa.types.is_float32(array.type):
        array = pc.cast(pc.cast(array, pa.string()), pa.float64())
    values: list[Any] = array.to_pylist()
    return values


def _plain_numbers(cells: list[str], marks: Marks) -> FloatArray | None:
    """Read numbers all at once; None if there is a cell that needs a closer look."""
    texts = pc.utf8_trim_whitespace(pa.array(cells, pa.string()))
    is_missing = pc.is_in(texts, value_set=pa.array(sorted(marks), pa.string()))
    try:
        array = pc.cast(pc.if_else(is_missing, None, texts), pa.float64())
    except pa.ArrowInvalid:
        return None
    numbers = np.array(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    n_numbers = len(array) - array.null_count
    if np.isfinite(numbers).sum() != n_numbers:
        return None
    numbers[np.isin(numbers, list(_numbers_among(marks, ".")))] = np.nan
    return numbers


def parsed(
    texts: list[str | None], decimal: str = ".", allow_infinite: bool = False
) -> FloatArray:
    """Read numbers one by one, or say which text is not one."""
    usual = _usual_numbers(texts) if decimal == "." else None
    if usual is not None:
        return usual
    numbers = np.full(len(texts), np.nan)
    for position, text in enumerate(texts):
        if text is not None:
            try:
                numbers[position] = parse_number(text, decimal, allow_infinite)
            except ValueError:
                raise CellError(position, text) from None
    return numbers


def _usual_numbers(texts: list[str | None]) -> FloatArray | None:
    """Read numbers as Python does; None if a text needs a closer look.

    These are texts that are not finite numbers, and numbers with underscores.
    """
    known = [text for text in texts if text is not None]
    try:
        numbers = np.array([math.nan if text is None else float(text) for text in texts])
    except ValueError:
        return None
    are_finite = np.isfinite(numbers).sum() == len(known)
    return numbers if are_finite and not any("_" in text for text in known) else None
