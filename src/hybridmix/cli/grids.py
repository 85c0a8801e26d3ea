"""Tables for the screen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from hybridmix._text import printable


def grid(
    header: Sequence[str], rows: Iterable[Sequence[Any]], right: Collection[str] = ()
) -> RichTable:
    """Return a plain table, some columns aligned right; cells may hold anything."""
    table = RichTable(box=box.SIMPLE_HEAD)
    for name in header:
        is_right = name in right
        table.add_column(
            Text(printable(name)),
            justify="right" if is_right else "left",
            no_wrap=is_right,
            overflow="fold",
        )
    for row in rows:
        # Cells are data: brackets in them are not markup.
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    return table
