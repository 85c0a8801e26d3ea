"""What the cells of a column show about it, gathered chunk by chunk."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.cli.cells import (
    LEADING_ZERO,
    CellError,
    Column,
    Marks,
    grouping_of,
    is_number,
)
from hybridmix.data.stand_ins import StandIns
from hybridmix.data.suspects import DATE, MANY_VALUES, is_identifying

# More values than this are not categories; there is no need to keep them all.
TOO_MANY = 10_000
# Whole numbers with at most this many values may be codes.
FEW = 10
# Up to this many other values among numbers may be marks of missing values.
_FEW_STRAYS = 5
_N_EXAMPLES = 3

# A currency, a percentage, or a decimal comma where other numbers have points.
_SIGNED = re.compile(
    r"[+-]?[$€£¥]\s?[+-]?\d[\d.,]*|[+-]?\d[\d.,]*\s?[%$€£¥]|[+-]?\d+,\d+"
)


@dataclass
class Findings:
    """What the rows so far show about a column."""

    decimal: str = "."
    n_rows: int = 0
    n_missing: int = 0
    # In order of appearance; None when there are too many to hold.
    values: dict[str, None] | None = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    # Cells that are not numbers, up to the number that makes a column text.
    strays: set[str] = field(default_factory=set)
    n_strays: int = 0
    # The first number with marks between its thousands, and the first with a sign such
    # as $ or %; and texts that are neither, up to the number that makes a column text.
    grouped: str | None = None
    signed: str | None = None
    others: set[str] = field(default_factory=set)
    # The first infinite number: its row, counted from 1, and its text.
    infinite: tuple[int, str] | None = None
    stand_ins: StandIns = field(default_factory=StandIns)
    is_whole: bool = True
    is_counter: bool = True
    is_date: bool = True
    has_leading_zero: bool = False
    last: float = np.nan

    def add(self, column: Column, marks: Marks) -> None:
        """Take the cells of more rows into account."""
        cells = column.texts(marks)
        texts = [text for text in cells if text is not None]
        if self.values is not None:
            self.values.update(dict.fromkeys(texts))
            self.examples = tuple(list(self.values)[:_N_EXAMPLES])
            self.values = self.values if len(self.values) <= TOO_MANY else None
        numbers = self._numbers(column, marks)
        self._note_strays(texts)
        if numbers is not None:
            self._note_infinite(numbers, cells)
            self.has_leading_zero |= any(map(LEADING_ZERO.fullmatch, texts))
            self._add_numbers(numbers[np.isfinite(numbers)])
        self.is_date = self.is_date and all(map(DATE.fullmatch, texts))
        self.n_rows += len(column)
        self.n_missing += len(column) - len(texts)

    def _numbers(self, column: Column, marks: Marks) -> FloatArray | None:
        """Return cells as numbers, NaN for strays; None if there are too many strays."""
        while self.is_mostly_number:
            try:
                return column.numbers(marks | self.strays, allow_infinite=True)
            except CellError as error:
                self.strays.add(error.text)
        return None

    def _note_strays(self, texts: list[str]) -> None:
        """Count what is not a number, and look for marks and signs in numbers."""
        if not self.strays:
            return
        self.n_strays += sum(text in self.strays for text in texts)
        for text in dict.fromkeys(texts):
            if not self.is_numeric:
                return
            if grouping_of(text, self.decimal) is not None:
                self.grouped = self.grouped or text
            elif _SIGNED.fullmatch(text):
                self.signed = self.signed or text
            elif not is_number(text, self.decimal, allow_infinite=True):
                self.others.add(text)

    def _note_infinite(self, numbers: FloatArray, cells: list[str | None]) -> None:
        is_infinite = np.isinf(numbers)
        if self.infinite is None and is_infinite.any():
            position = int(is_infinite.argmax())
            self.infinite = (self.n_rows + position + 1, str(cells[position]))

    def _add_numbers(self, numbers: FloatArray) -> None:
        if len(numbers) == 0:
            return
        self.stand_ins.add(numbers)
        self.is_whole = self.is_whole and bool((numbers == np.floor(numbers)).all())
        follows = np.isnan(self.last) or numbers[0] == self.last + 1.0
        self.is_counter = (
            self.is_counter and bool(follows) and bool((np.diff(numbers) == 1.0).all())
        )
        self.last = float(numbers[-1])

    @property
    def is_number(self) -> bool:
        """Whether all cells are numbers."""
        return not self.strays

    @property
    def is_mostly_number(self) -> bool:
        """Whether all but a few texts are plain numbers."""
        return len(self.strays) <= _FEW_STRAYS

    @property
    def is_numeric(self) -> bool:
        """Whether all but a few texts are numbers, perhaps with marks and signs."""
        return len(self.others) <= _FEW_STRAYS

    @property
    def n_observed(self) -> int:
        """How many cells are not missing."""
        return self.n_rows - self.n_missing

    @property
    def is_spoilt(self) -> bool:
        """Whether numbers of many values have a few other values among them."""
        if not self.strays or not self.is_mostly_number:
            return False
        if self.values is None or self.names_rows:
            return True
        return self.is_varied and self.n_strays < self.n_observed / 2

    @property
    def is_varied(self) -> bool:
        """Whether there are more numbers than a column of categories has."""
        if self.values is None:
            return True
        n_numbers = len(self.values) - len(self.others)
        return n_numbers > (MANY_VALUES if self.is_whole else FEW)

    @property
    def names_rows(self) -> bool:
        """Whether hardly any value occurs twice."""
        if self.values is None:
            return True
        return is_identifying(len(self.values), self.n_observed)

    @property
    def is_unique(self) -> bool:
        """Whether every row has a value of its own."""
        held = self.n_observed if self.values is None else len(self.values)
        return self.n_missing == 0 and held == self.n_observed > MANY_VALUES
