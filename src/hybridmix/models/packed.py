"""Packed sequences with what a family reads of their frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybridmix._typing import IntArray
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.families.base import Family, Prepared
from hybridmix.models.packing import Packing


@dataclass(frozen=True)
class PackedFrames:
    """Sequences that are compared with all classes, or each with its own.

    Attributes
    ----------
    packing : Packing
        Order of the frames; its groups are the classes, if each sequence looks at its
        own, or one for all.
    prepared : tuple of (columns, object)
        For each group that has sequences: its columns, and its frames as the family
        prepared them.
    looks_at_own : bool
        Whether each sequence looks at its own class only.
    """

    packing: Packing
    prepared: tuple[tuple[slice | IntArray, Prepared], ...]
    looks_at_own: bool

    @property
    def groups(self) -> Iterator[tuple[int, slice | IntArray, Prepared]]:
        """The groups that have sequences: number, columns and prepared frames."""
        present = np.flatnonzero(self.packing.sizes[0]).tolist()
        for group, (columns, frames) in zip(present, self.prepared, strict=True):
            yield group, columns, frames


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
        frames = self._family.prepare(self._frames[packing.source])
        return PackedFrames(packing, ((slice(None), frames),), looks_at_own=False)

    def own_classes(self, labels: IntArray) -> PackedFrames:
        """Return the sequences, to be compared with their own classes.

        The labels (n,) are those of the first call ever after.
        """
        if self._own is None:
            packing = Packing(self._lengths, labels, self._n_classes)
            columns = [own for own in packing.columns_of if len(own)]
            prepared = tuple(
                (own, self._family.prepare(self._frames[packing.source[own]]))
                for own in columns
            )
            self._own = PackedFrames(packing, prepared, looks_at_own=True)
        return self._own


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
