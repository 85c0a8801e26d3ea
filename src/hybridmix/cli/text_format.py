"""How text files are written: encodings, separators, numbers."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hybridmix.cli.cells import grouping_of

_SEPARATORS = ",;\t|"


class InputError(ValueError):
    """A file, a column or an option that cannot be used; one line says why."""


@dataclass(frozen=True)
class TextFormat:
    """How text files are written, as far as options say.

    Attributes
    ----------
    thousands : str
        The mark between thousands, ``1,467.45``; empty if numbers have none.
    encoding : str or None
        How letters are encoded; None for UTF-8, or UTF-16 if the file is marked so.
    """

    thousands: str = ""
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.thousands and (len(self.thousands) > 1 or self.thousands.isalnum()):
            raise InputError(f"--thousands {self.thousands}: give a mark such as , or .")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise InputError(
                f"--encoding {self.encoding} is not known; try cp1252, latin-1 or utf-16."
            ) from None


USUAL = TextFormat()


def sniffed_separator(header: str) -> str:
    """Return the separator that cuts the header into the most names."""

    def n_names(separator: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=separator), []))
        except csv.Error:
            return 0

    return max(_SEPARATORS, key=n_names)


def sniffed_decimal(lines: list[str], separator: str) -> str:
    """Return a comma if fractions in the first lines have commas and never points."""
    cells = [cell.strip(' "\r\n') for cell in _cells(lines, separator)]
    # Where commas separate cells, fractions are in quotes, and "1,467" may be a thousand
    # and more.
    with_comma = any(
        re.fullmatch(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", cell)
        and (separator != "," or grouping_of(cell, ".") is None)
        for cell in cells
    )
    # 1.467 may be a thousand and more.
    with_point = any(
        re.fullmatch(r"[+-]?\d*\.\d+", cell) and grouping_of(cell, ",") != "."
        for cell in cells
    )
    return "," if with_comma and not with_point else "."


def _cells(lines: list[str], separator: str) -> list[str]:
    """Return the cells of some lines, of which the last may end within quotes."""
    if separator != ",":
        return [cell for line in lines for cell in line.split(separator)]
    try:
        return [cell for row in csv.reader(lines) for cell in row]
    except csv.Error:
        return []


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names of columns, with numbers behind those that were there before.

    Several columns without a name are called ``unnamed``, and the number of the column.
    """
    are_unnamed = names.count("") > 1
    found: list[str] = []
    for position, name in enumerate(names, 1):
        new = f"unnamed {position}" if are_unnamed and not name else name
        number = 2
        while new in found or (new != name and new in names):
            new, number = f"{name}.{number}", number + 1
        found.append(new)
    return found
