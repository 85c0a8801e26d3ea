"""The one mapper over chunks of rows: training, validation and prediction use it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TypeVar

import numpy as np

from hybridmix._chunks import chunk_rows
from hybridmix._parallel import Workers
from hybridmix._scratch import lasting, reused
from hybridmix._typing import FloatArray, IntArray, Sum
from hybridmix.data.rows import RowSource
from hybridmix.models.base import Evaluation, Model, P, S

Result = TypeVar("Result")

# A fixed number of tasks, summed in a fixed order, gives the same bits on any number of
# threads.
_N_TASKS = 16
# Below this much arithmetic, handing work to threads takes longer than doing it.
_SMALL = 40_000_000
# Otherwise there are this many chunks or more, so that threads have something to share.
_FEWEST_CHUNKS = 4
# Rearranged rows are kept between evaluations as long as they fit here.
_KEPT_BYTES = 64 << 20


class ChunkedRows:
    """Rows of a source, cut into chunks that are worked on by threads.

    Parameters
    ----------
    source : RowSource
        An encoded table, or encoded rows.
    model : Model
        A model like the ones to come; it decides the size of the chunks.
    workers : Workers
        Threads to run on.
    borders : sequence of int
        Numbers of rows that begin a chunk, whatever its size.
    keep : bool
        Keep prepared rows between evaluations, if they fit into memory.
    """

    def __init__(
        self,
        source: RowSource,
        model: Model,
        workers: Workers,
        borders: Sequence[int] = (),
        keep: bool = False,
    ) -> None:
        self._source = source
        observed = source.observed
        width = model.width(observed)
        edges = [0, *borders, source.n_rows]
        lengths = source.lengths
        n_frames = source.n_rows if lengths is None else int(lengths.sum())
        size = chunk_rows(width)
        small = n_frames * model.work(observed) < _SMALL
        if not small:
            size = min(size, -(-n_frames // _FEWEST_CHUNKS))
        if lengths is None:
            self.chunks = list(_equal_chunks(edges, size))
        else:
            self.chunks = list(_chunks_of_sequences(edges, lengths, size))
        self._workers = Workers(1) if small else workers
        keep = keep and n_frames * model.kept_width(observed) * 8 <= _KEPT_BYTES
        self._kept: list[object] | None = [None] * len(self.chunks) if keep else None

    @property
    def n_threads(self) -> int:
        """Number of threads that the chunks are worked on by."""
        return self._workers.n_threads

    def memory(self) -> AbstractContextManager[None]:
        """Return a context of the work on a chunk, whose arrays end with it.

        Sequences are worked on in pieces, whose arrays should not last as long.
        """
        return reused() if self._source.lengths is None else nullcontext()

    def prepared(self, number: int, model: Model[P, S]) -> P:
        """Return the rows of a chunk as a model prepares them."""
        if self._kept is None:
            return model.prepare(self._source[self.chunks[number]])
        if self._kept[number] is None:
            with lasting():
                self._kept[number] = model.prepare(self._source[self.chunks[number]])
        return self._kept[number]  # type: ignore[return-value]

    def evaluate(self, number: int, model: Model[P, S]) -> Evaluation[S]:
        """Evaluate a model, or its part of one class, on a chunk."""
        return model.evaluate(self.prepared(number, model))

    def evaluate_own(
        self, number: int, model: Model[P, S], labels: IntArray
    ) -> Evaluation[S]:
        """Evaluate the own classes (n,) of the rows of a chunk."""
        return model.evaluate_own(self.prepared(number, model), labels)

    def map(self, function: Callable[[int], Result]) -> Iterator[Result]:
        """Yield what a function returns for the number of every chunk, in order."""
        return self._workers.map(function, range(len(self.chunks)))

    @cached_property
    def _tasks(self) -> list[range]:
        return _balanced_tasks(self.chunks)

    def sum(self, function: Callable[[int, Sum], None], zero: Callable[[], Sum]) -> Sum:
        """Sum over the chunks, in an order that does not depend on the threads.

        Parameters
        ----------
        function : callable
            Adds what concerns the chunk of a number to a sum, in place.
        zero : callable
            Returns an empty sum.
        """

        def run(task: range) -> Sum:
            subtotal = zero()
            for number in task:
                function(number, subtotal)
            return subtotal

        total = zero()
        for subtotal in self._workers.map(run, self._tasks):
            total.add(subtotal)
        return total

    def joined(
        self, model: Model[P, S], read: Callable[[Evaluation[S]], np.ndarray]
    ) -> np.ndarray:
        """Evaluate all rows, and join what is read along the last axis."""

        def of_chunk(number: int) -> np.ndarray:
            with self.memory():
                return np.array(read(self.evaluate(number, model)))

        return np.concatenate(list(self.map(of_chunk)), axis=-1)


def log_joint(model: Model, source: RowSource, workers: Workers) -> FloatArray:
    """Return the log joint densities (C, n) of all rows."""
    rows = ChunkedRows(source, model, workers)
    return rows.joined(model, lambda evaluation: evaluation.log_joint)


def _equal_chunks(edges: list[int], n_rows: int) -> Iterator[slice]:
    """Cut the rows between neighbouring edges into nearly equal chunks."""
    for start, stop in itertools.pairwise(edges):
        pieces = -(-(stop - start) // n_rows)
        cuts = np.linspace(start, stop, pieces + 1).astype(int)
        for first, last in itertools.pairwise(cuts.tolist()):
            yield slice(first, last)


def _chunks_of_sequences(
    edges: list[int], lengths: IntArray, n_frames: int
) -> Iterator[slice]:
    """Cut sequences into chunks of at most this many frames, or of one sequence."""
    ends = np.cumsum(lengths)
    for start, stop in itertools.pairwise(edges):
        first = start
        while first < stop:
            room = n_frames + (int(ends[first - 1]) if first else 0)
            last = int(np.searchsorted(ends, room, side="right"))
            last = min(max(last, first + 1), stop)
            yield slice(first, last)
            first = last


def _balanced_tasks(chunks: list[slice]) -> list[range]:
    """Group neighbouring chunks into tasks of about the same number of rows."""
    ends = np.array([chunk.stop for chunk in chunks])
    targets = np.linspace(0, ends[-1], _N_TASKS + 1)[1:]
    cuts = np.unique(np.searchsorted(ends, targets) + 1)
    edges = [0, *np.minimum(cuts, len(chunks)).tolist()]
    return [range(a, b) for a, b in itertools.pairwise(edges) if b > a]
