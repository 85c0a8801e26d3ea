"""Encoded sequences, as chains read them, and their arrangement for training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray, Sum
from hybridmix.data.lengths import stacked_rows
from hybridmix.data.rows import Dataset, LabelledUnits, Rows, RowSource


@dataclass(frozen=True)
class SequenceRows:
    """Sequences whose frames are encoded rows, one sequence after the other.

    Attributes
    ----------
    frames : Rows
        The frames of all sequences.
    lengths : ndarray of shape (n,)
        Number of frames of each sequence; at least one.
    """

    frames: Rows
    lengths: IntArray

    @property
    def n_rows(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    @property
    def observed(self) -> BoolArray | None:
        """Mask (d, F) of the observed real cells of all frames; None when all are."""
        return self.frames.observed

    @cached_property
    def starts(self) -> IntArray:
        """Where each sequence begins among the frames, (n,)."""
        return np.cumsum(self.lengths) - self.lengths

    def __getitem__(self, index: slice | IntArray) -> SequenceRows:
        lengths = self.lengths[index]
        if isinstance(index, slice) and index.step in (None, 1):
            # Neighbours are not copied.
            first = int(self.starts[index][0]) if len(lengths) else 0
            frames = self.frames[first : first + int(lengths.sum())]
        else:
            frames = self.frames[stacked_rows(self.starts[index], lengths)]
        return SequenceRows(frames, lengths)


@dataclass(frozen=True)
class SequenceDataset(LabelledUnits[SequenceRows]):
    """Training sequences: those of a class are neighbours, the longest come first.

    Attributes
    ----------
    rows : SequenceRows
        The sequences.
    labels : ndarray of shape (n,)
        Class number of each sequence; -1 for an unlabelled one; ascending.
    weights : ndarray of shape (n,) or None
        Sample weights; None when all are one.
    """

    @classmethod
    def arrange(
        cls,
        frames: RowSource[Rows],
        lengths: IntArray,
        labels: IntArray,
        weights: FloatArray | None = None,
    ) -> SequenceDataset:
        """Encode the frames of sequences; those without weight are left out."""
        order = np.lexsort((-lengths, labels))
        if weights is not None:
            order = order[weights[order] > 0]
        starts = np.cumsum(lengths) - lengths
        index: slice | IntArray = slice(None)
        if not np.array_equal(order, np.arange(len(lengths))):
            index = stacked_rows(starts[order], lengths[order])
        return cls(
            SequenceRows(frames[index], lengths[order]),
            labels[order],
            None if weights is None else weights[order],
        )

    @property
    def mean_length(self) -> float:
        """Mean number of frames, by sample weight."""
        return float(self.filled_weights @ self.rows.lengths / self.total_weight)

    def sample(self) -> SequenceDataset:
        """Return all sequences, which are in memory however many there are."""
        return self

    def summed(self, function: Callable[[SequenceDataset], Sum]) -> Sum:
        """Return the sum of a function over blocks of sequences; here, all are one."""
        return function(self)

    def mapped(
        self, function: Callable[[SequenceDataset], Dataset], n_classes: int
    ) -> Dataset:
        """Return rows that a function makes of every block of sequences; here, of all."""
        return function(self)

    def frames(self) -> Dataset:
        """Return the frames as rows that have the labels and weights of their sequence.

        Families learn their priors, and states their starts, from them.
        """
        lengths = self.rows.lengths
        weights = None if self.weights is None else np.repeat(self.weights, lengths)
        return Dataset(self.rows.frames, np.repeat(self.labels, lengths), weights)
