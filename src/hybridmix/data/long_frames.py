"""Long data frames: which rows make up which sequence, and in which order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hybridmix._text import shown
from hybridmix._typing import BoolArray, IntArray
from hybridmix.data.cells import listed
from hybridmix.data.frames import as_frame

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame, Series


class PandasIndex(Protocol):
    """What is needed of an index of several levels."""

    @property
    def codes(self) -> Sequence[object]:
        """For each level, numbers of the values of rows; -1 for a missing one."""
        ...

    def get_level_values(self, level: int) -> Series:
        """Return the values of a level."""
        ...

    def droplevel(self, level: int) -> Series:
        """Return the other levels."""
        ...


@dataclass(frozen=True)
class Arrangement:
    """Rows of a table, brought together by sequence.

    Attributes
    ----------
    order : ndarray of int, of shape (F,)
        Rows of the table, one sequence after the other.
    lengths : ndarray of int, of shape (n,)
        Number of rows of each sequence.
    ids : ndarray of shape (n,)
        What the sequences are called, in order of first appearance.
    """

    order: IntArray
    lengths: IntArray
    ids: np.ndarray

    @property
    def is_sorted(self) -> bool:
        """Whether the rows of the table are in order already."""
        return bool(np.all(self.order[1:] > self.order[:-1]))

    @property
    def starts(self) -> IntArray:
        """Where sequences begin in `order`."""
        return np.cumsum(self.lengths) - self.lengths


def arrange(
    keys: Sequence[Hashable], times: np.ndarray | None, first_row: int = 0
) -> Arrangement:
    """Bring rows together by sequence, and sort each sequence by time.

    Parameters
    ----------
    keys : sequence of length F
        What the sequence of each row is called.
    times : ndarray of shape (F,), or None
        When each row was; None if rows are in order. No time may be missing.
    first_row : int, default=0
        The number of the first row, in messages.
    """
    codes, names = _numbered(keys, "ids")
    ids = as_ids(names)
    lengths = np.bincount(codes, minlength=len(ids))
    if times is None:
        return Arrangement(np.argsort(codes, kind="stable"), lengths, ids)
    ranks = _ranks(times)
    order = np.lexsort((ranks, codes))
    same = (np.diff(codes[order]) == 0) & (np.diff(ranks[order]) == 0)
    for place in np.flatnonzero(same)[:1]:
        row, again = sorted(order[place : place + 2].tolist())
        raise ValueError(
            f"Sequence {shown(keys[row])} has two frames at the time {times[row]!s}, in "
            f"rows {row + first_row} and {again + first_row}. Drop one of them, or name "
            "more columns that keep sequences apart."
        )
    return Arrangement(order, lengths, ids)


def _numbered(
    values: Sequence[Hashable], purpose: str
) -> tuple[IntArray, list[Hashable]]:
    """Give values numbers in order of first appearance; also return distinct values."""
    numbers: dict[Hashable, int] = {}
    try:
        codes = [numbers.setdefault(value, len(numbers)) for value in values]
    except TypeError:  # lists and the like
        raise TypeError(
            f"The {purpose} must be single values, such as numbers or text."
        ) from None
    return np.array(codes, dtype=np.intp), list(numbers)


def as_ids(names: Sequence[Hashable]) -> np.ndarray:
    """Make an array (n,) of names, which may be tuples."""
    ids = np.empty(len(names), dtype=object)
    for number, name in enumerate(names):
        ids[number] = name
    return ids.astype(int) if all(type(name) is int for name in names) else ids


def _ranks(times: np.ndarray) -> IntArray:
    """Return numbers that have the order of times."""
    try:
        return np.unique(times, return_inverse=True)[1]
    except TypeError:
        raise TypeError(
            "The times are of types that cannot be compared: make all of them numbers "
            "or all of them dates."
        ) from None


# Columns of long frames -------------------------------------------------------------


def arrange_frame(
    frame: Frame, sequence: Sequence[Hashable], time: Hashable | None
) -> Arrangement:
    """Arrange the rows of a frame by the columns that name sequences and times."""
    columns = [_column(frame, name, "sequence") for name in sequence]
    for column in columns:
        _refuse_holes(column, "which names the sequence of each row")
    times = None if time is None else _times(_column(frame, time, "time"))
    lists = [column.to_list() for column in columns]
    keys = lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))
    return arrange(keys, times)


def without_columns(frame: Frame, names: Sequence[Hashable | None]) -> Frame:
    """Return the other columns of a frame."""
    kept = [j for j, name in enumerate(frame.columns) if name not in names]
    if not kept:
        raise ValueError(
            "The frame has no column besides those of ids, times and target."
        )
    return frame[:, kept]


def has_levels(X: object) -> bool:
    """Return whether X is a pandas data frame whose index has several levels."""
    index = getattr(X, "index", None)
    return as_frame(X) is not None and getattr(index, "nlevels", 1) > 1


def arrange_index(index: PandasIndex) -> Arrangement:
    """Arrange rows by an index whose last level is the time."""
    for level, codes in enumerate(index.codes):
        for row in np.flatnonzero(np.asarray(codes) < 0)[:1]:
            raise ValueError(f"The index has no value in level {level} of row {row}.")
    times = index.get_level_values(-1).to_numpy()
    if any(isinstance(time, str) for time in times):
        raise _text_for_times("The last level of the index")
    return arrange(index.droplevel(-1).to_list(), times)


def labels_of(frame: Frame, target: Hashable, arrangement: Arrangement) -> np.ndarray:
    """Return one label for each sequence.

    Parameters
    ----------
    frame : narwhals frame
        The frame of the sequences.
    target : hashable
        The column of labels. Rows without a label have that of their sequence.
    arrangement : Arrangement
        Which rows make up which sequence.

    Returns
    -------
    labels : ndarray of shape (n,)
        Labels; of sequences without one NaN among numbers, None among others.
    """
    column = _column(frame, target, "target")
    unlabelled = _holes(column)[arrangement.order]
    codes, known = _numbered(column.to_list(), "labels")
    codes = codes[arrangement.order]
    starts = arrangement.starts
    largest = np.maximum.reduceat(np.where(unlabelled, -1, codes), starts)
    smallest = np.minimum.reduceat(np.where(unlabelled, len(codes), codes), starts)
    for number in np.flatnonzero((largest >= 0) & (smallest != largest))[:1]:
        raise ValueError(
            f"Sequence {shown(arrangement.ids[number])} has several labels in column "
            f"{shown(target)}, such as {shown(known[smallest[number]])} and "
            f"{shown(known[largest[number]])}. A sequence has one label."
        )
    labels = np.array([known[code] if code >= 0 else None for code in largest], object)
    if not column.dtype.is_numeric():
        return labels
    return labels.astype(np.float64 if np.any(largest < 0) else column.to_numpy().dtype)


def labelled_rows(frame: Frame, target: Hashable, arrangement: Arrangement) -> IntArray:
    """Return a row (n,) of each sequence that has its label; any, if it has none.

    The parameters are those of `labels_of`.
    """
    labels_of(frame, target, arrangement)  # refuses sequences of several labels
    order, starts = arrangement.order, arrangement.starts
    has_label = ~_holes(_column(frame, target, "target"))[order]
    places = np.where(has_label, np.arange(len(order)), len(order))
    first = np.minimum.reduceat(places, starts)
    return order[np.where(first < len(order), first, starts)]


def weights_of(frame: Frame, weight: Hashable, arrangement: Arrangement) -> np.ndarray:
    """Return the weight of each sequence, (n,), which all of its rows have.

    Parameters
    ----------
    frame : narwhals frame
        The frame of the sequences.
    weight : hashable
        The column of weights.
    arrangement : Arrangement
        Which rows make up which sequence.
    """
    weights = _column(frame, weight, "sample_weight").to_numpy()[arrangement.order]
    firsts = weights[arrangement.starts]
    differs = weights != np.repeat(firsts, arrangement.lengths)
    for place in np.flatnonzero(differs)[:1]:
        number = int(np.searchsorted(arrangement.starts, place, side="right")) - 1
        raise ValueError(
            f"Sequence {shown(arrangement.ids[number])} has several weights in column "
            f"{shown(weight)}, such as {firsts[number]} and {weights[place]}. A "
            "sequence has one weight, which must not be missing."
        )
    return firsts


def _column(frame: Frame, name: Hashable, role: str) -> Series:
    if name not in frame.columns:
        columns = listed([shown(column) for column in frame.columns])
        raise ValueError(
            f"{role}={name!r} is not a column of the frame. It has: {columns}."
        )
    return frame.get_column(name)


def _times(column: Series) -> np.ndarray:
    """Return times as values that have an order."""
    import narwhals.stable.v2 as nw

    if column.dtype in (nw.String, nw.Categorical, nw.Enum):
        raise _text_for_times(f"Column {shown(column.name)}")
    _refuse_holes(column, "which says when each row was")
    return column.to_numpy()


def _text_for_times(place: str) -> TypeError:
    return TypeError(
        f"{place} has text for times, and text puts '10' before '9'. Convert it to "
        "numbers or dates."
    )


def _refuse_holes(column: Series, purpose: str) -> None:
    for row in np.flatnonzero(_holes(column))[:1]:
        raise ValueError(
            f"Row {row} has no value in column {shown(column.name)}, {purpose}. Fill it "
            "in, or drop the row."
        )


def _holes(column: Series) -> BoolArray:
    """Return the rows without a value; polars keeps NaN and null apart."""
    if column.dtype.is_float():
        return np.isnan(np.asarray(column.to_numpy(), dtype=np.float64))
    return np.asarray(column.is_null().to_numpy(), dtype=bool)
