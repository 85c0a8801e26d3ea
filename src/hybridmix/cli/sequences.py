"""Rows of files that belong together: their ids, times, labels and weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hybridmix._text import shown
from hybridmix._typing import FloatArray
from hybridmix.cli.cells import is_number, parsed
from hybridmix.cli.tables import InputError, Table
from hybridmix.cli.values import Texts
from hybridmix.data.frames import as_frame
from hybridmix.data.long_frames import Arrangement, arrange, labels_of

# Whole numbers that 64 bits hold: floats would round the times of fine clocks.
_WHOLE = re.compile(r"[+-]?\d{1,18}")
# An id that is a number: 007 is a name.
_PLAIN_NUMBER = re.compile(r"-?[1-9]\d{0,17}|0")


@dataclass(frozen=True)
class Keys:
    """The columns of a table that make sequences of its rows.

    Attributes
    ----------
    sequence : tuple of str
        Columns that together name the sequence of each row; none for single rows.
    time : str or None
        The column by which the rows of a sequence are sorted; None if they are in order.
    """

    sequence: tuple[str, ...] = ()
    time: str | None = None

    @property
    def roles(self) -> dict[str, str]:
        """What each of the columns is for, as the options call it."""
        times = {} if self.time is None else {self.time: "time"}
        return {**dict.fromkeys(self.sequence, "sequence"), **times}

    def check(self, table: Table) -> None:
        """Raise InputError unless the table has these columns."""
        if self.time is not None and not self.sequence:
            raise InputError(
                f"--time {self.time} sorts the rows of sequences: add --sequence NAME."
            )
        for name, role in self.roles.items():
            table.check_column(name, f"--{role}")

    def arrange(self, columns: Mapping[str, Texts], table: Table) -> Arrangement:
        """Bring the rows of a table together by sequence, in order of time.

        Parameters
        ----------
        columns : mapping of str to list of str or None
            The cells of the columns, and perhaps of others.
        table : Table
            The file, for messages.
        """
        purpose = "which names the sequence of each row"
        ids = [_complete(columns[name], name, purpose, table) for name in self.sequence]
        keys = ids[0] if len(ids) == 1 else list(zip(*ids, strict=True))
        times = (
            None if self.time is None else _times(columns[self.time], self.time, table)
        )
        return arrange(keys, times, first_row=1)

    def id_columns(self, ids: np.ndarray) -> dict[str, list[Any]]:
        """Return the ids of sequences by column; numbers if all of a column are."""
        parts = zip(*ids, strict=True) if len(self.sequence) > 1 else [ids.tolist()]
        return {
            name: _as_numbers(list(part))
            for name, part in zip(self.sequence, parts, strict=True)
        }


# Rows that are not part of sequences.
NO_KEYS = Keys()


def one_label_each(values: Sequence[Any], name: str, arrangement: Arrangement) -> Texts:
    """Return the label of each sequence; None for those that have none.

    Rows without a label have that of their sequence. Different labels in one sequence are
    an error.
    """
    frame = as_frame(pd.DataFrame({name: pd.Series(list(values), dtype=object)}))
    assert frame is not None
    labels: Texts = labels_of(frame, name, arrangement).tolist()
    return labels


def one_weight_each(
    weights: FloatArray, name: str, arrangement: Arrangement
) -> FloatArray:
    """Return the weight of each sequence, which all of its rows have."""
    ordered = weights[arrangement.order]
    low = np.minimum.reduceat(ordered, arrangement.starts)
    high = np.maximum.reduceat(ordered, arrangement.starts)
    for number in np.flatnonzero(low != high)[:1]:
        raise InputError(
            f"--weight {name}: sequence {shown(arrangement.ids[number])} has several "
            f"weights, such as {low[number]:g} and {high[number]:g}. A sequence has one "
            "weight."
        )
    return low


def _complete(texts: Texts, name: str, purpose: str, table: Table) -> list[str]:
    """Return cells, none of which may be missing."""
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        raise InputError(
            f"{table.path}: row {texts.index(None) + 1} has no value in column {name!r}, "
            f"{purpose}. Fill it in, or remove the row."
        )
    return known


def _times(cells: Texts, name: str, table: Table) -> np.ndarray:
    """Return times as whole numbers, numbers or dates."""
    texts = _complete(cells, name, "which says when each row was", table)
    if all(map(_WHOLE.fullmatch, texts)):
        return np.array([int(text) for text in texts])
    if all(is_number(text, table.decimal) for text in texts):
        return parsed(list(texts), table.decimal)
    try:
        return _dates(texts)
    except ValueError:
        row = _odd_time(texts, table.decimal)
        raise InputError(
            f"--time {name}: row {row + 1} of {table.path} has {texts[row]!r}. Times are "
            "numbers, or dates such as 2024-01-31 and 2024-01-31T12:30:05; all of them "
            "one or the other."
        ) from None


def _dates(texts: Sequence[str]) -> np.ndarray:
    """Read dates; those that name their time zone are brought to a common one."""
    dates = pd.to_datetime(list(texts), format="ISO8601", utc=True)
    return dates.tz_convert(None).to_numpy()


def _odd_time(texts: Sequence[str], decimal: str) -> int:
    """Return the first that is neither a number nor a date, or not what others are."""
    are_numbers = [is_number(text, decimal) for text in texts]
    for row, text in enumerate(texts):
        if not are_numbers[row] and not _is_date(text):
            return row
    return are_numbers.index(not are_numbers[0])


def _is_date(text: str) -> bool:
    try:
        _dates([text])
    except ValueError:
        return False
    return True


def _as_numbers(ids: list[str]) -> list[Any]:
    are_numbers = all(map(_PLAIN_NUMBER.fullmatch, ids))
    return [int(text) for text in ids] if are_numbers else ids
