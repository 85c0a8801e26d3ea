"""Sequences side by side: all first frames, then all second ones, and so on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hybridmix._typing import IntArray

# Steps of time that are made at once.
_PIECE = 1024


class Block(NamedTuple):
    """The frames of one group at one time.

    Attributes
    ----------
    group : int
        The group.
    here : slice
        Their columns.
    before : slice
        The columns of the frames before them, in the same order.
    """

    group: int
    here: slice
    before: slice


class Steps:
    """Columns and blocks of each time after the first, in order or reversed.

    They are made when they are asked for: of a long sequence, a list of them would take
    more memory than its frames.

    Parameters
    ----------
    sizes, starts : ndarray of shape (T, G)
        Those of a `Packing`.
    """

    def __init__(self, sizes: IntArray, starts: IntArray) -> None:
        self._sizes, self._starts = sizes, starts

    def __iter__(self) -> Iterator[tuple[slice, list[Block]]]:
        for first in range(1, len(self._sizes), _PIECE):
            yield from self._piece(first)

    def __reversed__(self) -> Iterator[tuple[slice, list[Block]]]:
        for first in reversed(range(1, len(self._sizes), _PIECE)):
            yield from reversed(self._piece(first))

    def _piece(self, first: int) -> list[tuple[slice, list[Block]]]:
        """Return the steps of some times in a row."""
        times = slice(first, first + _PIECE)
        sizes, starts = self._sizes[times].tolist(), self._starts[times].tolist()
        steps = []
        earlier = self._starts[first - 1].tolist()
        for now, size_of in zip(starts, sizes, strict=True):
            blocks = [
                Block(group, slice(here, here + size), slice(before, before + size))
                for group, (here, before, size) in enumerate(
                    zip(now, earlier, size_of, strict=True)
                )
                if size
            ]
            columns = slice(blocks[0].here.start, blocks[-1].here.stop)
            steps.append((columns, blocks))
            earlier = now
        return steps


class Packing:
    """An order of frames in which a step of time is a run of columns; nothing is padded.

    Sequences have lanes: ordered by group, then the longest first. At any time, the lanes
    of a group that go on are its first ones, so that the columns of a group at a time
    stand in the same order as those at the time before.

    Parameters
    ----------
    lengths : ndarray of shape (n,)
        Numbers of frames of the sequences.
    groups : ndarray of shape (n,) or None
        Group of each sequence, such as its class; None for a single group.
    n_groups : int
        Number of groups.

    Attributes
    ----------
    n_groups : int
        Number of groups.
    lengths : ndarray of shape (n,)
        Number of frames on each lane.
    order : ndarray of shape (n,)
        Number of the sequence on each lane.
    group_of : ndarray of shape (n,)
        Group of each lane.
    lane : ndarray of shape (F,)
        Lane of each column.
    source : ndarray of shape (F,)
        Number of each column's frame, counted through the sequences as they were given.
    last : ndarray of shape (n,)
        Column of the last frame of each lane. The first frames are the first columns.
    before : ndarray of shape (F - n,)
        For each column but the first frames: the column of the frame before.
    sizes : ndarray of shape (T, G)
        Number of lanes of each group that go on at each time.
    starts : ndarray of shape (T, G)
        The first of their columns.
    """

    def __init__(
        self, lengths: IntArray, groups: IntArray | None = None, n_groups: int = 1
    ) -> None:
        if groups is None:
            groups = np.zeros(len(lengths), np.intp)
        self.n_groups = n_groups
        self.order = np.lexsort((-lengths, groups))
        self.group_of = groups[self.order]
        self.lengths = lengths[self.order]
        n_times = int(lengths.max())
        self.sizes = _lanes_going_on(self.lengths, self.group_of, n_times, n_groups)
        sizes = self.sizes.ravel()
        offsets = (np.cumsum(sizes) - sizes).reshape(self.sizes.shape)
        self.starts = offsets
        n_frames = int(sizes.sum())
        # Numbers of frames are kept in half the memory, where they fit.
        number = np.int32 if n_frames < 2**31 else np.int64
        rank = np.arange(n_frames) - np.repeat(offsets.ravel(), sizes)
        time, group = (
            np.repeat(part.ravel(), sizes) for part in np.indices(self.sizes.shape)
        )
        self.lane = offsets[0, group] + rank
        first = np.cumsum(lengths) - lengths
        self.source: IntArray = (first[self.order][self.lane] + time).astype(number)
        own_rank = np.arange(len(lengths)) - offsets[0, self.group_of]
        self.last = offsets[self.lengths - 1, self.group_of] + own_rank
        n = len(lengths)
        self.before: IntArray = (offsets[time[n:] - 1, group[n:]] + rank[n:]).astype(
            number
        )

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.order)

    @property
    def n_frames(self) -> int:
        """Number of frames of all sequences."""
        return len(self.lane)

    @cached_property
    def inverse(self) -> IntArray:
        """Lane of each sequence, (n,)."""
        return np.argsort(self.order)

    @property
    def steps(self) -> Steps:
        """For each time after the first: its columns, and the blocks they consist of."""
        return Steps(self.sizes, self.starts)

    @cached_property
    def columns_of(self) -> list[IntArray]:
        """Columns of each group, in ascending order."""
        group = self.group_of[self.lane]
        return [np.flatnonzero(group == g) for g in range(self.n_groups)]

    def arrivals(
        self, size: int
    ) -> Iterator[tuple[int, slice | IntArray, slice | IntArray]]:
        """Yield runs of at most this many frames that are not the first of a sequence.

        Each has its group, the columns of the frames before, and its own columns; slices
        where these are neighbours, which saves copies.
        """
        n = self.n_sequences
        if self.n_groups == 1:
            for at in range(n, self.n_frames, size):
                here = slice(at, min(at + size, self.n_frames))
                yield 0, _neighbours(self.before[at - n : here.stop - n]), here
            return
        for group, later in enumerate(self._later):
            for at in range(0, len(later), size):
                own = later[at : at + size]
                yield group, _neighbours(self.before[own - n]), _neighbours(own)

    @cached_property
    def _later(self) -> list[IntArray]:
        """Columns of each group but the first frames of its sequences."""
        n = self.n_sequences
        return [own[np.searchsorted(own, n) :] for own in self.columns_of]

    def of_lanes(self, lanes: IntArray) -> tuple[Packing, IntArray]:
        """Return a packing of some lanes, and where its columns stand in this one."""
        own = Packing(self.lengths[lanes], self.group_of[lanes], self.n_groups)
        return own, self._columns_of_lanes(lanes)[own.source]

    def _columns_of_lanes(self, lanes: IntArray) -> IntArray:
        """Return the columns of some lanes, one lane after the other in order of time."""
        lengths = self.lengths[lanes]
        group = np.repeat(self.group_of[lanes], lengths)
        time = np.arange(len(group)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rank = np.repeat(lanes, lengths) - self.starts[0, group]
        return self.starts[time, group] + rank


def _neighbours(columns: IntArray) -> slice | IntArray:
    """Return ascending columns as a slice, if none is left out."""
    first, last = int(columns[0]), int(columns[-1])
    return slice(first, last + 1) if last - first < len(columns) else columns


def _lanes_going_on(
    lengths: IntArray, group_of: IntArray, n_times: int, n_groups: int
) -> IntArray:
    """Count the lanes (T, G) of each group that are longer than each time."""
    ends = np.zeros((n_times + 1, n_groups), np.int64)
    np.add.at(ends, (lengths, group_of), 1)
    return np.ascontiguousarray(np.cumsum(ends[::-1], axis=0)[::-1][1:])
