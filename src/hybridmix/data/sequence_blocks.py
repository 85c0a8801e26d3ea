"""Training sequences that are too many for memory, in blocks of whole sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.blocks import BlockedUnits
from hybridmix.data.rows import joined
from hybridmix.data.sequence_rows import SequenceDataset, SequenceRows

# What looks at sequences in memory sees about this many of their frames.
_MOST_FRAMES = 400_000


@dataclass(frozen=True)
class BlockedSequences(BlockedUnits[SequenceDataset]):
    """Training sequences in blocks, each of which is a `SequenceDataset`.

    What is taken out is in the order of `SequenceDataset.arrange`: all of them are those
    that would have been read in memory. The attributes are those of `BlockedUnits`.
    """

    @staticmethod
    def _joined(parts: Sequence[SequenceDataset]) -> SequenceDataset:
        frames = joined([part.frames() for part in parts])
        lengths = np.concatenate([part.rows.lengths for part in parts])
        rows = SequenceRows(frames.rows, lengths)
        weights = None if frames.weights is None else frames.weights[rows.starts]
        return SequenceDataset(rows, frames.labels[rows.starts], weights)

    def take(self, index: np.ndarray) -> SequenceDataset:
        """Return some of the sequences in memory, the longest of each class first."""
        part = super().take(index)
        return part.take(np.lexsort((-part.rows.lengths, part.labels)))

    @cached_property
    def mean_length(self) -> float:
        """Mean number of frames, by sample weight."""
        totals = self.summed(partial(LengthTotals.of, n_classes=self.n_labels))
        return float(totals.frames.sum() / totals.weights.sum())

    def sample(self) -> SequenceDataset:
        """Return sequences of up to 400,000 labelled frames and as many unlabelled ones.

        They are spread over all blocks, and every class has one.
        """
        n_rows = max(1, int(_MOST_FRAMES / self.mean_length))
        n_unlabelled = self.unlabelled().n_rows
        counts = self.label_counts()
        firsts = n_unlabelled + (np.cumsum(counts) - counts)[counts > 0]
        spread = [
            np.arange(start, stop, max(1, -(-(stop - start) // n_rows)))
            for start, stop in ((0, n_unlabelled), (n_unlabelled, self.n_rows))
        ]
        return self.take(np.union1d(np.concatenate(spread), firsts))


@dataclass
class LengthTotals:
    """Sums over sequences of each class, and last of those without a label.

    Attributes
    ----------
    weights, frames : ndarray of shape (C + 1,)
        Sample weights of the sequences, and of their frames.
    """

    weights: FloatArray
    frames: FloatArray

    @classmethod
    def of(cls, dataset: SequenceDataset, n_classes: int) -> LengthTotals:
        """Look at sequences in memory."""
        totals = cls(*np.zeros((2, n_classes + 1)))
        weights = dataset.filled_weights
        # Those without a label are counted at the place -1, which is the last.
        np.add.at(totals.weights, dataset.labels, weights)
        np.add.at(totals.frames, dataset.labels, weights * dataset.rows.lengths)
        return totals

    def add(self, other: LengthTotals) -> None:
        """Add those of other sequences."""
        self.weights += other.weights
        self.frames += other.frames


TrainingSequenceRows: TypeAlias = SequenceDataset | BlockedSequences
