"""Training rows that are too many for memory: blocks, of which one is read at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Self, TypeAlias, TypeVar

import numpy as np

from hybridmix._typing import FloatArray, IntArray, Sum
from hybridmix.data.encoded_blocks import BlockSize, DerivedBlocks, EncodedBlocks
from hybridmix.data.rows import UNLABELLED, Dataset, LabelledUnits, joined

T = TypeVar("T")
D = TypeVar("D", bound=LabelledUnits)
# Rows that are held out of a table of blocks are kept in memory; more say little more.
_MOST_HELD = 50_000


@dataclass(frozen=True)
class _View:
    """Which rows of a block count, and what their labels are called.

    Attributes
    ----------
    chosen : tuple of int
        Labels that are in use, ascending.
    numbers : tuple of int
        What these are called; ascending.
    """

    chosen: tuple[int, ...]
    numbers: tuple[int, ...]

    def of(self, block: D, left_out: IntArray) -> D:
        """Return these rows of a block, without those of some positions."""
        if len(left_out):
            block = block.take(np.delete(np.arange(block.n_rows), left_out))
            if block.n_rows == 0:
                return block
        if self.chosen != self.numbers:
            return block.of_classes(list(self.chosen))
        # Labels that keep their names are neighbours.
        first, last = self.chosen[0], self.chosen[-1]
        if first <= block.labels[0] and block.labels[-1] <= last:
            return block
        start, stop = np.searchsorted(block.labels, [first, last + 1])
        return block.part(int(start), int(stop))


@dataclass(frozen=True)
class BlockedUnits(Generic[D]):
    """Rows or sequences in blocks to train on; at most one block is in memory.

    Rows are numbered by label first, then by block. What is taken out is in memory.

    Attributes
    ----------
    blocks : EncodedBlocks
        The blocks, each a `Dataset` or a `SequenceDataset`.
    sizes : tuple of BlockSize
        What each of them holds.
    view : _View
        Which of their rows count.
    left_out : tuple of ndarray of int
        For each block, positions of rows that do not count.
    """

    blocks: EncodedBlocks
    sizes: tuple[BlockSize, ...]
    view: _View
    left_out: tuple[IntArray, ...]

    @classmethod
    def of(cls, blocks: EncodedBlocks, sizes: Sequence[BlockSize]) -> Self:
        """Return all rows of some blocks."""
        labels = tuple(range(UNLABELLED, len(sizes[0].counts) - 1))
        nothing = (np.empty(0, np.intp),) * len(sizes)
        return cls(blocks, tuple(sizes), _View(labels, labels), nothing)

    def close(self) -> None:
        """Give back what the blocks take; the rows cannot be read afterwards."""
        self.blocks.close()

    # Sizes ------------------------------------------------------------------------

    @property
    def _places(self) -> list[int]:
        """Where the labels in use stand in the counts of blocks."""
        return [label + 1 for label in self.view.chosen]

    @property
    def _counts(self) -> IntArray:
        """Numbers of rows by label in use and by block, (L, B)."""
        return np.array([size.counts for size in self.sizes]).T[self._places]

    @property
    def _weights(self) -> FloatArray:
        """Sums of sample weights by label in use, (L,)."""
        total = np.sum([size.weights for size in self.sizes], axis=0)
        return np.asarray(total, dtype=np.float64)[self._places]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._counts.sum())

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return float(self._weights.sum())

    @property
    def n_labels(self) -> int:
        """The largest class number, plus one."""
        return max(self.view.numbers, default=UNLABELLED) + 1

    @property
    def has_holes(self) -> bool:
        """Whether real cells are missing."""
        return any(size.has_holes for size in self.sizes)

    def label_counts(self, n_classes: int = 0) -> IntArray:
        """Return the numbers of rows of each class, (C,)."""
        counts = np.zeros(max(n_classes, self.n_labels), np.intp)
        for number, count in zip(
            self.view.numbers, self._counts.sum(axis=1), strict=True
        ):
            if number != UNLABELLED:
                counts[number] = count
        return counts

    def class_weights(self, n_classes: int) -> FloatArray:
        """Return the sums of the sample weights of the classes, (C,)."""
        weights = np.zeros(n_classes)
        for number, weight in zip(self.view.numbers, self._weights, strict=True):
            if number != UNLABELLED:
                weights[number] = weight
        return weights

    # Parts ------------------------------------------------------------------------

    def labelled(self) -> Self:
        """Return the rows that have a label."""
        return self._with([label for label in self.view.numbers if label != UNLABELLED])

    def unlabelled(self) -> Self:
        """Return the rows that have no label."""
        return self._with([label for label in self.view.numbers if label == UNLABELLED])

    def of_class(self, label: int) -> Self:
        """Return the rows of one class; their label becomes 0."""
        return self.of_classes([label])

    def of_classes(self, labels: list[int]) -> Self:
        """Return the rows of some classes, ascending, which are numbered anew."""
        part = self._with(labels)
        numbers = tuple(range(len(labels)))
        return replace(part, view=_View(part.view.chosen, numbers))

    def _with(self, numbers: list[int]) -> Self:
        known = dict(zip(self.view.numbers, self.view.chosen, strict=True))
        kept = [number for number in numbers if number in known]
        view = _View(tuple(known[number] for number in kept), tuple(kept))
        return replace(self, view=view)

    def first_block(self) -> D:
        """Return the rows of the first block that has any."""
        numbers = self._filled()[:1]
        [block] = self._map(numbers, _itself)
        return block

    def take(self, index: IntArray) -> D:
        """Return some of the rows, in ascending order, in memory."""
        block, position = self._located(index)
        numbers = np.unique(block).tolist() or self._filled()[:1]
        wanted = [position[block == number] for number in numbers]
        parts = self._map(numbers, _taken, wanted)
        # Parts come block by block, and rows are numbered label by label.
        order = np.concatenate([np.flatnonzero(block == number) for number in numbers])
        return self._joined(list(parts)).take(np.argsort(order))

    @staticmethod
    def _joined(parts: Sequence[D]) -> D:
        """Put what is in memory one after the other."""
        raise NotImplementedError

    def _located(self, index: IntArray) -> tuple[IntArray, IntArray]:
        """Return the blocks of rows of some numbers, and their positions in these."""
        counts = self._counts
        ends = np.cumsum(counts).reshape(counts.shape)
        cell = np.searchsorted(ends.ravel(), index, side="right")
        label, block = np.divmod(cell, counts.shape[1])
        first = (np.cumsum(counts, axis=0) - counts)[label, block]
        return block, first + index - (ends - counts)[label, block]

    def _map(
        self,
        numbers: Sequence[int],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for the rows of some blocks that count."""
        left_out = [self.left_out[number] for number in numbers]
        viewed = _Viewed(self.view, function)
        return self.blocks.map(numbers, viewed, left_out, *arguments)

    def drawn(self, label: int, n_rows: int, generator: np.random.Generator) -> D:
        """Draw rows of a class, or of all if it has none; all if there are no more."""
        own = self.of_class(label)
        own = own if own.n_rows else self
        if own.n_rows <= n_rows:
            return own.take(np.arange(own.n_rows))
        return own.take(np.sort(generator.choice(own.n_rows, n_rows, replace=False)))

    def thinned(self, n_rows: int, generator: np.random.Generator) -> D:
        """Return a random part of the rows, in memory, as `Dataset.thinned` does."""
        kept, start = [], 0
        for part in (self.unlabelled(), self.labelled()):
            n_own, stop = part.n_rows, start + part.n_rows
            if n_own > n_rows:
                chosen = start + generator.choice(n_own, n_rows, replace=False)
                counts = part._counts.sum(axis=1)
                firsts = start + (np.cumsum(counts) - counts)[counts > 0]
                kept.append(np.union1d(chosen, firsts))
            else:
                kept.append(np.arange(start, stop))
            start = stop
        return self.take(np.concatenate(kept))

    def in_memory(self, n_rows: int) -> D:
        """Return up to this many labelled and unlabelled rows, spread over all blocks."""
        edge, end = self.unlabelled().n_rows, self.n_rows
        spread = [
            np.arange(start, stop, max(1, -(-(stop - start) // n_rows)))
            for start, stop in ((0, edge), (edge, end))
        ]
        return self.take(np.concatenate(spread))

    def split(self, share: float, generator: np.random.Generator) -> tuple[Self, D]:
        """Hold out a share of the labelled rows of each class; return rest and held.

        At most 50,000 rows are held out, since they are kept in memory.
        """
        most = _MOST_HELD / max(self.labelled().n_rows, 1)
        held, start = [], self.unlabelled().n_rows
        for count in self.label_counts().tolist():
            n_held = int(min(share, most) * count)
            held.append(start + generator.choice(count, n_held, replace=False))
            start += count
        index = np.sort(np.concatenate(held))
        return self._without(index), self.take(index)

    def _without(self, index: IntArray) -> Self:
        """Return all rows but those of some numbers."""
        block, position = self._located(index)
        left_out = tuple(position[block == k] for k in range(len(self.sizes)))
        rest = replace(self, left_out=left_out)
        n_classes = len(self.sizes[0].counts) - 1
        measured = rest._measured(self._filled(), n_classes)
        sizes = [measured.get(k, size) for k, size in enumerate(self.sizes)]
        return replace(rest, sizes=tuple(sizes))

    def _measured(self, numbers: Sequence[int], n_classes: int) -> dict[int, BlockSize]:
        """Count the rows of some blocks that count; return sizes by their numbers."""
        sizes = self._map(numbers, BlockSize.of, [n_classes] * len(numbers))
        return dict(zip(numbers, sizes, strict=True))

    def mapped(
        self,
        function: Callable[..., Dataset],
        n_classes: int,
        *arguments: Sequence[object],
    ) -> BlockedDataset:
        """Return what a function makes of the rows of every block, in as many blocks.

        Parameters
        ----------
        function : callable
            Takes a block, a `Dataset`, and its own element of each of the arguments.
        n_classes : int
            How many classes the new rows have.
        *arguments : sequences
            With an element for each block.
        """
        viewed = _Viewed(self.view, function)
        blocks = DerivedBlocks(self.blocks, viewed, (self.left_out, *arguments))
        nothing = BlockSize(
            np.zeros(n_classes + 1, np.intp), np.zeros(n_classes + 1), False
        )
        made = BlockedDataset.of(blocks, [nothing] * len(self.sizes))
        measured = made._measured(self._filled(), n_classes)
        sizes = [measured.get(k, nothing) for k in range(len(self.sizes))]
        return replace(made, sizes=tuple(sizes))

    def summed(self, function: Callable[[D], Sum]) -> Sum:
        """Return the sum of a function over the blocks that have any of the rows."""
        numbers = self._filled()
        left_out = [self.left_out[number] for number in numbers]
        return self.blocks.summed(numbers, _Viewed(self.view, function), left_out)

    def _filled(self) -> list[int]:
        """Return the blocks that have any of the rows."""
        return np.flatnonzero(self._counts.sum(axis=0) > 0).tolist()


@dataclass(frozen=True)
class BlockedDataset(BlockedUnits[Dataset]):
    """Training rows in blocks, each of which is a `Dataset`; at most one is in memory.

    Their numbers are in the order that `Dataset.arrange` gives to the rows of a complete
    table. The attributes are those of `BlockedUnits`.
    """

    @staticmethod
    def _joined(parts: Sequence[Dataset]) -> Dataset:
        return joined(parts)

    def thinned(self, n_rows: int, generator: np.random.Generator) -> Dataset:
        """Return a random part of the rows, in memory, as `Dataset.thinned` does."""
        return _arranged(super().thinned(n_rows, generator))

    def in_memory(self, n_rows: int) -> Dataset:
        """Return up to this many labelled and unlabelled rows, spread over all blocks."""
        return _arranged(super().in_memory(n_rows))

    def resampled(self, generator: np.random.Generator) -> BlockedDataset:
        """Return a bootstrap sample of the rows; see `Dataset.resampled`.

        How many of them come from each block is drawn first, then which ones.
        """
        weights = np.array([size.weights[self._places].sum() for size in self.sizes])
        n_drawn = max(1, round(float(weights.sum())))
        counts = generator.multinomial(n_drawn, weights / weights.sum())
        seeds = generator.integers(2**31, size=len(counts))
        made = partial(Dataset.drawn_anew, scale=float(weights.sum()) / n_drawn)
        n_classes = len(self.sizes[0].counts) - 1
        return self.mapped(made, n_classes, counts.tolist(), seeds.tolist())

    def n_distinct(self, enough: int) -> int:
        """Count distinct rows, up to a number that is enough."""
        seen: list[Dataset] = []
        for number in self._filled():
            [part] = self._map([number], _first_distinct, [enough])
            seen = [_first_distinct(joined([*seen, part]), enough)]
            if seen[0].n_rows == enough:
                break
        return sum(part.n_rows for part in seen)


TrainingRows: TypeAlias = Dataset | BlockedDataset


@dataclass(frozen=True)
class _Viewed(Generic[T]):
    """Applies a function to the rows of a block that count; can be sent elsewhere."""

    view: _View
    function: Callable[..., T]

    def __call__(self, block: LabelledUnits, left_out: IntArray, *arguments: object) -> T:
        return self.function(self.view.of(block, left_out), *arguments)


def _arranged(rows: Dataset) -> Dataset:
    """Return rows as a table in memory has them: random choices depend on the order."""
    return Dataset.arrange(rows.rows, rows.labels, rows.weights)


def _itself(rows: D) -> D:
    return rows


def _taken(rows: D, index: IntArray) -> D:
    return rows.take(index)


def _first_distinct(rows: Dataset, enough: int) -> Dataset:
    return rows.take(rows.rows.distinct(enough))
