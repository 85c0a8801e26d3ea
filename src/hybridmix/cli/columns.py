"""What the columns of a file are: real, categorical, or not useful."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from shlex import quote

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.cli.cells import CellError, Column, Marks, grouping_of, is_number
from hybridmix.cli.tables import Chunk, InputError, Table, as_option, not_a_number
from hybridmix.data.suspects import (
    DATE,
    MANY_VALUES,
    NAME_OF_IDENTIFIER,
    is_identifying,
)

# More values than this are not categories; there is no need to keep them all.
_TOO_MANY = 10_000
# Whole numbers with at most this many values may be codes.
_FEW = 10
# Up to this many other values among numbers may be marks of missing values.
_FEW_STRAYS = 5
# What `--categorical` calls all columns that may be codes.
CODES = "codes"
_N_EXAMPLES = 3
# How the reason for such a column ends.
MAYBE_CODES = "(codes?)"

# A currency, a percentage, or a decimal comma where other numbers have points.
_SIGNED = re.compile(
    r"[+-]?[$€£¥]\s?[+-]?\d[\d.,]*|[+-]?\d[\d.,]*\s?[%$€£¥]|[+-]?\d+,\d+"
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+")


@dataclass(frozen=True)
class ColumnKind:
    """What a column is treated as.

    Attributes
    ----------
    name : str
        The column.
    kind : {"real", "categorical", "dropped", "target", "weight"}
        How it is used.
    reason : str
        Why.
    examples : tuple of str
        Some of its values.
    missing : float
        Share of the rows that do not have it.
    advice : str
        What to do if cells spoil the column; empty if none do.
    """

    name: str
    kind: str
    reason: str
    examples: tuple[str, ...]
    missing: float
    advice: str = ""


@dataclass
class _Findings:
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
    is_whole: bool = True
    is_counter: bool = True
    is_date: bool = True
    has_leading_zero: bool = False
    last: float = np.nan

    def add(self, column: Column, marks: Marks) -> None:
        cells = column.texts(marks)
        texts = [text for text in cells if text is not None]
        if self.values is not None:
            self.values.update(dict.fromkeys(texts))
            self.examples = tuple(list(self.values)[:_N_EXAMPLES])
            self.values = self.values if len(self.values) <= _TOO_MANY else None
        numbers = self._numbers(column, marks)
        self._note_strays(texts)
        if numbers is not None:
            self._note_infinite(numbers, cells)
            self.has_leading_zero |= any(map(_LEADING_ZERO.fullmatch, texts))
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
        self.is_whole = self.is_whole and bool((numbers == np.floor(numbers)).all())
        follows = np.isnan(self.last) or numbers[0] == self.last + 1.0
        self.is_counter = (
            self.is_counter and bool(follows) and bool((np.diff(numbers) == 1.0).all())
        )
        self.last = float(numbers[-1])

    @property
    def is_number(self) -> bool:
        return not self.strays

    @property
    def is_mostly_number(self) -> bool:
        return len(self.strays) <= _FEW_STRAYS

    @property
    def is_numeric(self) -> bool:
        """Whether all but a few texts are numbers, perhaps with marks and signs."""
        return len(self.others) <= _FEW_STRAYS

    @property
    def n_observed(self) -> int:
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
        return n_numbers > (MANY_VALUES if self.is_whole else _FEW)

    @property
    def names_rows(self) -> bool:
        """Whether hardly any value occurs twice."""
        if self.values is None:
            return True
        return is_identifying(len(self.values), self.n_observed)

    @property
    def is_unique(self) -> bool:
        held = self.n_observed if self.values is None else len(self.values)
        return self.n_missing == 0 and held == self.n_observed > MANY_VALUES


def inferred_kinds(
    table: Table,
    chunks: Iterable[Chunk],
    marks: Marks,
    *,
    real: Collection[str] = (),
    categorical: Collection[str] = (),
    dropped: Collection[str] = (),
    roles: dict[str, str] | None = None,
) -> list[ColumnKind]:
    """Find the kinds of all columns from one pass through the rows.

    Parameters
    ----------
    table : Table
        The file.
    chunks : iterable of Chunk
        Its rows. Memory does not depend on how many there are.
    marks : frozenset of str
        Cells that count as missing.
    real, categorical, dropped : collection of str
        Columns whose kind is given.
    roles : dict of str to str or None
        Columns that are not features: the target and the weight.

    Returns
    -------
    kinds : list of ColumnKind
        In the order of the file.
    """
    # A column of that name is meant rather than all that may be codes.
    are_codes = CODES in categorical and CODES not in table.names
    categories = set(categorical) - {CODES} if are_codes else categorical
    named = {"real": real, "categorical": categories, "dropped": dropped}
    given = _given_kinds(table, named, dict(roles or {}))
    findings = {name: _Findings(table.decimal) for name in table.names}
    for chunk in chunks:
        for name, column in chunk.columns.items():
            findings[name].add(column, marks)
    kinds = [
        _decided(name, findings[name], table.given_kind(name), given.get(name))
        for name in table.names
    ]
    _check_finite(table, kinds, findings)
    return [_as_code(kind) for kind in kinds] if are_codes else kinds


def _check_finite(
    table: Table, kinds: list[ColumnKind], findings: dict[str, _Findings]
) -> None:
    """Refuse real columns that hold an infinite number."""
    for kind in kinds:
        infinite = findings[kind.name].infinite
        if kind.kind == "real" and infinite is not None:
            raise InputError(not_a_number(table, kind.name, *infinite))


def _as_code(kind: ColumnKind) -> ColumnKind:
    """Return the kind of a column; categorical if it may be codes."""
    if not kind.reason.endswith(MAYBE_CODES):
        return kind
    reason = kind.reason.removesuffix(MAYBE_CODES) + "as codes"
    return replace(kind, kind="categorical", reason=reason)


def _given_kinds(
    table: Table, named: dict[str, Collection[str]], given: dict[str, str]
) -> dict[str, str]:
    """Return the kinds that options name, by column."""
    for kind, names in named.items():
        for name in names:
            table.check_column(name, f"--{'drop' if kind == 'dropped' else kind}")
            if name in given:
                raise InputError(
                    f"The column {name!r} cannot be {given[name]} and {kind} at once."
                )
            given[name] = kind
    return given


def _decided(
    name: str, found: _Findings, typed: str | None, given: str | None
) -> ColumnKind:
    """Decide what a column is: by options first, then by its type and its cells."""
    if given == "target":
        kind, reason = given, _label_reason(found)
    elif given is not None:
        kind, reason = given, "as given"
    else:
        kind, reason = _seen_kind(name, found, typed)
    missing = found.n_missing / max(found.n_rows, 1)
    advice = ""
    if given in (None, "target") and typed is None and not found.is_number:
        advice = _advice(name, found)
    if given is None and advice:
        kind, reason = "dropped", advice.replace(f" of {name!r}", "")
    return ColumnKind(name, kind, reason, found.examples, missing, advice)


def _advice(name: str, found: _Findings) -> str:
    """Say which option makes numbers of a column; nothing if there is none."""
    if found.grouped is not None and found.is_numeric:
        mark = grouping_of(found.grouped, found.decimal)
        marks = f" --na {as_option(*sorted(found.others))}" if found.others else ""
        return (
            f"{found.grouped} of {name!r} looks like a number: use --thousands "
            f"{quote(str(mark))}{marks}"
        )
    if found.signed is not None and found.is_numeric and found.is_varied:
        if found.signed[-1].isdigit() and found.signed.lstrip("+-")[0].isdigit():
            return (
                f"{found.signed} of {name!r} has a comma, but other numbers of the file "
                "have points: use the same mark in all"
            )
        return f"{found.signed} of {name!r} would be a number without its sign: remove it"
    if not found.is_spoilt:
        return ""
    n_numbers = found.n_observed - found.n_strays
    return (
        f"{n_numbers:,} of {found.n_observed:,} values of {name!r} are numbers; if the "
        f"others are missing, use --na {as_option(*sorted(found.strays))}"
    )


def _seen_kind(name: str, found: _Findings, typed: str | None) -> tuple[str, str]:
    """Return the kind of a column that no option names, and why."""
    if found.n_observed == 0:
        return "dropped", "no values"
    if typed == "other":
        return "dropped", "neither numbers nor text"
    if typed == "date" or (found.is_date and typed != "real"):
        return "dropped", "dates; turn them into numbers, such as days or months"
    if typed == "real" or (typed is None and _is_quantity(found)):
        return _decided_number(name, found)
    return _decided_category(name, found)


def _is_quantity(found: _Findings) -> bool:
    return found.is_number and not found.has_leading_zero


def _is_identifier(name: str, found: _Findings) -> bool:
    """Return whether numbers count or name the rows; infinity does neither."""
    if found.infinite is not None:
        return False
    is_counter = found.is_counter and found.n_observed > MANY_VALUES
    is_named_so = bool(NAME_OF_IDENTIFIER.fullmatch(name))
    return found.is_whole and (is_counter or (is_named_so and found.is_unique))


def _decided_number(name: str, found: _Findings) -> tuple[str, str]:
    if _is_identifier(name, found):
        return (
            "dropped",
            f"looks like an identifier; keep it with --real {as_option(name)}",
        )
    n_values = _TOO_MANY if found.values is None else len(found.values)
    if n_values == 1:
        return "real", "a single value"
    # Codes repeat; in a short table, measurements may have as few values.
    if found.is_whole and n_values <= min(_FEW, found.n_observed / 2):
        return "real", f"{n_values} whole numbers {MAYBE_CODES}"
    return "real", "whole numbers" if found.is_whole else "numbers"


def _decided_category(name: str, found: _Findings) -> tuple[str, str]:
    if found.names_rows:
        return "dropped", (
            f"looks like an identifier; keep it with --categorical {as_option(name)}"
        )
    assert found.values is not None
    n_values = len(found.values)
    if found.is_number and found.has_leading_zero:
        return "categorical", f"{n_values} codes with leading zeros"
    return "categorical", f"{n_values} value{'s' if n_values > 1 else ''}"


def _label_reason(found: _Findings) -> str:
    return "many labels" if found.values is None else f"{len(found.values)} labels"
