"""Hints on columns that are perhaps not what they seem to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridmix.cli.columns import CODES, MAYBE_CODES, MAYBE_NAMES, ColumnKind
from hybridmix.cli.console import Console
from hybridmix.cli.tables import as_option

# Columns that are named one by one.
_NAMED = 3


def give_hints(kinds: Sequence[ColumnKind], console: Console) -> None:
    """Say which options would read numbers as something else; warn if it matters."""
    codes = [kind.name for kind in kinds if kind.reason.endswith(MAYBE_CODES)]
    if codes:
        console.note(
            f"If whole numbers are codes, add: --categorical {as_option(*codes)}"
            + (f" (or, for all of these, --categorical {CODES})" if codes[1:] else "")
        )
    names = [kind.name for kind in kinds if kind.reason.endswith(MAYBE_NAMES)]
    if names:
        console.note(
            "If numbers only name something, such as a customer or a place, add: --drop "
            f"{as_option(*names)}"
        )
    warn_of_stand_ins(kinds, console)


def warn_of_stand_ins(kinds: Sequence[ColumnKind], console: Console) -> None:
    """Warn of numbers such as 9999 that probably stand for missing values."""
    marks = sorted({mark for kind in kinds for mark in kind.stand_ins})
    if marks:
        found = "; ".join(_places(mark, kinds) for mark in marks)
        option = as_option(*map(str, marks))
        console.warn(
            f"far from all other values: {found}. If it means missing, add: --na "
            f"{option} (which holds for all columns); if not, name the columns in --real"
        )


def _places(mark: int, kinds: Sequence[ColumnKind]) -> str:
    """Say in which columns, and in how many rows of each, a number occurs."""
    found = [kind for kind in kinds if mark in kind.stand_ins]
    parts = list(_counted(found[:_NAMED], mark))
    if len(found) > _NAMED:
        parts.append(f"{len(found) - _NAMED} more")
    return f"{mark} in {', '.join(parts)}"


def _counted(kinds: Sequence[ColumnKind], mark: int) -> Iterator[str]:
    for kind in kinds:
        count = kind.stand_ins[mark]
        yield f"{kind.name!r} ({count:,} rows)"
