"""The rows of a linear output layer in blocks: sums over the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data import BlockedDataset, Dataset, Rows
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.readout import Readout
from hybridmix.training.linear_output import Expansion, Moments, TargetRows


@dataclass(frozen=True)
class TargetReader:
    """Reads features and targets off a block; can be sent elsewhere.

    Attributes
    ----------
    readout : Readout
        Prepares features of the rows.
    n_real : int
        How many real values come before the targets.
    pool : Workers
        Threads.
    """

    readout: Readout
    n_real: int
    pool: Workers

    def of(self, block: Dataset) -> TargetRows:
        """Return the features and targets of a block."""
        features = without_targets(block, self.n_real).rows
        chunked = ChunkedRows(features, self.readout, self.pool)
        return TargetRows(
            chunked,
            lambda number: chunked.prepared(number, self.readout),
            block.rows.real[self.n_real :],
            block.rows.mask[self.n_real :] * block.filled_weights,
        )


@dataclass(frozen=True)
class BlockedTargets:
    """Features and scaled targets of rows in blocks; see `GivenTargets`.

    Attributes
    ----------
    dataset : BlockedDataset
        Rows with their targets after all other real values.
    reader : TargetReader
        Reads their blocks.
    """

    dataset: BlockedDataset
    reader: TargetReader

    def patterns(self) -> list[list[int]]:
        """Return groups of targets that are known in the same rows of every block."""
        own = partial(_Agreement.of, n_real=self.reader.n_real)
        same = self.dataset.summed(own).same
        return [np.flatnonzero(row).tolist() for row in np.unique(same, axis=0)[::-1]]

    def moments(self, group: Sequence[int], n_features: int) -> Moments:
        """Return sums of products of features and targets that are known together."""
        return self.dataset.summed(partial(_moments, self.reader, group, n_features))

    def expansion(self, target: int, point: FloatArray, epsilon: float) -> Expansion:
        """Expand the insensitive loss of a target at weights and bias (F + 1,)."""
        own = partial(_expansion, self.reader, target, point, epsilon)
        return self.dataset.summed(own)


def without_targets(block: Dataset, n_real: int) -> Dataset:
    """Return rows without what follows the first real values."""
    rows = block.rows
    observed = None if rows.observed is None else rows.observed[:n_real]
    if observed is not None and observed.all():
        observed = None
    return Dataset(
        Rows(rows.real[:n_real], observed, rows.codes), block.labels, block.weights
    )


@dataclass
class _Agreement:
    """Which pairs of targets (t, t) are known in the same rows."""

    same: BoolArray

    @classmethod
    def of(cls, block: Dataset, n_real: int) -> _Agreement:
        """Look at rows in memory."""
        known = block.rows.mask[n_real:]
        return cls((known[:, None] == known).all(axis=2))

    def add(self, other: _Agreement) -> None:
        """Look at other rows."""
        self.same &= other.same


def _moments(
    reader: TargetReader, group: Sequence[int], n_features: int, block: Dataset
) -> Moments:
    return reader.of(block).moments(group, n_features)


def _expansion(
    reader: TargetReader, target: int, point: FloatArray, epsilon: float, block: Dataset
) -> Expansion:
    return reader.of(block).expansion(target, point, epsilon)
