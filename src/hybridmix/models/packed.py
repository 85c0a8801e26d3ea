"""Packed sequences with what a family reads of their frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from hybridmix._scratch import lasting
from hybridmix._typing import IntArray
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.families.base import Family, Prepared
from hybridmix.models.packing import Packing

# The most frames that are evaluated at once; chunks of several sequences have fewer.
_LONG = 32768


@dataclass(frozen=True)
class Piece:
    """Frames of one group that are evaluated together.

    Attributes
    ----------
    group : int
        The group.
    columns : slice or ndarray
        Their columns in the packing.
    frames : callable
        Returns them as the family prepares them.
    """

    group: int
    columns: slice | IntArray
    frames: Callable[[], Prepared]


@dataclass(frozen=True)
class PackedFrames:
    """Sequences that are compared with all classes, or each with its own.

    Attributes
    ----------
    packing : Packing
        Order of the frames; its groups are the classes, if each sequence looks at its
        own, or one for all.
    pieces : tuple of Piece
        All frames.
    looks_at_own : bool
        Whether each sequence looks at its own class only.
    """

    packing: Packing
    pieces: tuple[Piece, ...]
    looks_at_own: bool


class PreparedSequences:
    """Sequences of a chunk, to be packed in the way that is asked for first.

    Parameters
    ----------
    rows : SequenceRows
        The sequences.
    family : Family
        Prepares their frames.
    n_classes : int
        Number of classes.
    autoregressive : bool
        Whether the family reads each frame after the frame before it.
    """

    def __init__(
        self, rows: SequenceRows, family: Family, n_classes: int, autoregressive: bool
    ) -> None:
        self._lengths = rows.lengths
        self._frames = with_previous(rows) if autoregressive else rows.frames
        self._family = family
        self._n_classes = n_classes
        self._own: PackedFrames | None = None

    @cached_property
    def all_classes(self) -> PackedFrames:
        """The sequences, to be compared with all classes."""
        packing = Packing(self._lengths)
        return self._packed(packing, looks_at_own=False)

    def own_classes(self, labels: IntArray) -> PackedFrames:
        """Return the sequences, to be compared with their own classes.

        The labels (n,) are those of the first call ever after.
        """
        if self._own is None:
            packing = Packing(self._lengths, labels, self._n_classes)
            self._own = self._packed(packing, looks_at_own=True)
        return self._own

    def _packed(self, packing: Packing, looks_at_own: bool) -> PackedFrames:
        pieces = _pieces(packing, self._frames, self._family)
        return PackedFrames(packing, pieces, looks_at_own)


def _pieces(packing: Packing, frames: Rows, family: Family) -> tuple[Piece, ...]:
    """Cut the frames of each group into pieces.

    Chunks have few enough frames to be prepared once, but a sequence is never cut.
    Pieces of a long one are prepared whenever they are needed: together they may
    take several times the memory of its frames.
    """
    is_long = packing.n_frames > _LONG

    def piece(group: int, columns: slice | IntArray) -> Piece:
        def prepared() -> Prepared:
            return family.prepare(frames[packing.source[columns]])

        @cache
        def kept() -> Prepared:
            # It outlives the work on the chunk that first asks for it.
            with lasting():
                return prepared()

        return Piece(group, columns, prepared if is_long else kept)

    return tuple(
        piece(group, columns)
        for group in np.flatnonzero(packing.sizes[0]).tolist()
        for columns in _runs(packing, group)
    )


def _runs(packing: Packing, group: int) -> Iterator[slice | IntArray]:
    """Cut the columns of a group into runs; slices where it is the only group."""
    n_frames = packing.n_frames
    if packing.group_of[0] == packing.group_of[-1]:
        return (slice(at, min(at + _LONG, n_frames)) for at in range(0, n_frames, _LONG))
    columns = packing.columns_of[group]
    return (columns[at : at + _LONG] for at in range(0, len(columns), _LONG))


def with_previous(rows: SequenceRows) -> Rows:
    """Return frames whose real columns stand after those of the frame before.

    Nothing is known of what is before the first frame of a sequence.
    """
    frames = rows.frames
    before, known = np.zeros_like(frames.real), np.zeros(frames.real.shape, dtype=bool)
    before[:, 1:] = frames.real[:, :-1]
    known[:, 1:] = True if frames.observed is None else frames.observed[:, :-1]
    before[:, rows.starts] = 0.0
    known[:, rows.starts] = False
    return after(Rows(before, known, frames.codes), frames)


def after(before: Rows, frames: Rows) -> Rows:
    """Return frames whose real columns stand after those of given frames before them."""
    masks = [
        np.ones(own.real.shape, dtype=bool) if own.observed is None else own.observed
        for own in (before, frames)
    ]
    return Rows(np.vstack([before.real, frames.real]), np.vstack(masks), frames.codes)


def unknown_frames(n_real: int, n_codes: int, n_frames: int) -> Rows:
    """Return frames of which nothing is known."""
    return Rows(
        np.zeros((n_real, n_frames)),
        np.zeros((n_real, n_frames), dtype=bool),
        np.full((n_codes, n_frames), MISSING_CODE, np.int32),
    )
