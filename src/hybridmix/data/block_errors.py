"""What errors say about rows and columns of tables in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def counting_rows_from(where: str) -> Iterator[None]:
    """Say in errors about rows which row of the table is their row 0."""
    try:
        yield
    except ValueError as error:
        error.add_note(f"Rows are counted from {where}.")
        raise


def check_same_columns(
    real: Sequence[int], others: Sequence[int], names: Sequence[str]
) -> None:
    """Refuse columns that hold numbers in one block, and something else in another.

    Parameters
    ----------
    real, others : sequence of int
        Positions of the real columns in either block.
    names : sequence of str
        Names of all columns.
    """
    different = sorted(set(real) ^ set(others))
    if different:
        raise ValueError(
            f"Column {names[different[0]]!r} holds numbers in some blocks of the table, "
            "and something else in others. Give it the same type in all of them."
        )
