"""Encoded rows, as families read them, and their arrangement for training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._typing import BoolArray, FloatArray, IntArray, Sum

UNLABELLED = -1
MISSING_CODE = -1
# Types of the real values, by name.
DTYPES: dict[str, type[np.floating]] = {"float64": np.float64, "float32": np.float32}
# Beyond it, squares would leave the range of single precision.
_FARTHEST_SINGLE = 1e15


@dataclass(frozen=True)
class Rows:
    """A run of rows; the last axis of every array counts them.

    Attributes
    ----------
    real : ndarray of shape (d, n)
        Centred and scaled real columns, 0 where a value is missing.
    observed : ndarray of shape (d, n) or None
        False where a real value is missing; None when none is.
    codes : ndarray of shape (f, n)
        Category numbers, -1 where missing.
    """

    real: FloatArray
    observed: BoolArray | None
    codes: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.real.shape[1]

    @property
    def lengths(self) -> None:
        """None: every unit is a single row."""
        return

    def __getitem__(self, index: slice | IntArray) -> Rows:
        observed = None if self.observed is None else self.observed[:, index]
        if observed is not None and observed.all():
            observed = None
        return Rows(self.real[:, index], observed, self.codes[:, index])

    def astype(self, dtype: type[np.floating]) -> Rows:
        """Return the rows with real values of a type."""
        if self.real.dtype == dtype:
            return self
        real = self.real
        if dtype is np.float32:
            real = np.clip(real, -_FARTHEST_SINGLE, _FARTHEST_SINGLE)
        return replace(self, real=real.astype(dtype))

    @property
    def mask(self) -> BoolArray:
        """Which real cells are observed, (d, n), also when all are."""
        return np.ones(self.real.shape, bool) if self.observed is None else self.observed

    def n_distinct(self, enough: int) -> int:
        """Count distinct rows, up to a number that is enough."""
        return len(self.distinct(enough))

    def distinct(self, enough: int) -> IntArray:
        """Return the numbers of distinct rows, up to as many as are enough."""
        seen = np.empty(0, np.intp)
        # Mostly the first rows are enough; only tables of repetitions are searched whole.
        for size in (20 * enough, self.n_rows):
            parts: list[np.ndarray] = [self.real[:, :size], self.codes[:, :size]]
            if self.observed is not None:
                parts.append(self.observed[:, :size])
            # Rows are compared as bytes, which is fast for any number of columns; adding
            # zero gives both zeros the same bytes.
            cells = np.ascontiguousarray(np.vstack(parts).T) + 0.0
            _, seen = np.unique(cells.view(f"V{cells.strides[0]}"), return_index=True)
            if len(seen) >= enough:
                return seen[:enough]
        return seen


U = TypeVar("U", covariant=True)  # units


class RowSource(Protocol[U]):
    """Anything that hands out encoded units by number: rows, a table, sequences."""

    @property
    def n_rows(self) -> int:
        """Number of units: of rows or of sequences."""
        ...

    @property
    def lengths(self) -> IntArray | None:
        """Number of frames of each unit; None if every unit is a single row."""
        ...

    @property
    def observed(self) -> BoolArray | None:
        """Mask (d, n) of the observed real cells; None when all are."""
        ...

    def __getitem__(self, index: slice | IntArray) -> U:
        """Return the units of a range or of a list of numbers."""
        ...


R = TypeVar("R", bound=RowSource)


@dataclass(frozen=True)
class LabelledUnits(Generic[R]):
    """Units to train on, rows or sequences, in ascending order of their labels.

    Attributes
    ----------
    rows : Rows or SequenceRows
        The units.
    labels : ndarray of shape (n,)
        Class number of each unit; -1 for an unlabelled one; ascending.
    weights : ndarray of shape (n,) or None
        Sample weights; None when all are one.
    """

    rows: R
    labels: IntArray
    weights: FloatArray | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    @property
    def filled_weights(self) -> FloatArray:
        """The sample weights, also when all are one."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    def labelled(self) -> Self:
        """Return the units that have a label, without copying them."""
        return self.part(int(np.searchsorted(self.labels, 0)), self.n_rows)

    def unlabelled(self) -> Self:
        """Return the units that have no label, without copying them."""
        return self.part(0, int(np.searchsorted(self.labels, 0)))

    def of_class(self, label: int) -> Self:
        """Return the units of one class, without copying them; their label becomes 0."""
        start, stop = np.searchsorted(self.labels, [label, label + 1])
        part = self.part(int(start), int(stop))
        return replace(part, labels=np.zeros(part.n_rows, np.intp))

    def of_classes(self, labels: list[int]) -> Self:
        """Return the rows of some classes, which are numbered anew in this order."""
        if labels == list(range(len(labels))) and self.labels[-1] < len(labels):
            return self.labelled()
        places = [np.flatnonzero(self.labels == label) for label in labels]
        numbers = np.repeat(np.arange(len(labels)), [len(place) for place in places])
        return replace(self.take(np.concatenate(places)), labels=numbers)

    @property
    def has_holes(self) -> bool:
        """Whether real cells are missing."""
        return self.rows.observed is not None

    @property
    def n_labels(self) -> int:
        """The largest class number, plus one."""
        return int(self.labels.max(initial=UNLABELLED)) + 1

    def label_counts(self, n_classes: int = 0) -> IntArray:
        """Return the numbers of units of each class, (C,)."""
        return np.bincount(self.labelled().labels, minlength=n_classes)

    def drawn(self, label: int, n_rows: int, generator: np.random.Generator) -> Self:
        """Draw units of a class, or of all if it has none; all if there are no more."""
        own = self.of_class(label)
        own = own if own.n_rows else self
        if own.n_rows <= n_rows:
            return own
        return own.take(np.sort(generator.choice(own.n_rows, n_rows, replace=False)))

    def class_weights(self, n_classes: int) -> FloatArray:
        """Return the sums of the sample weights of the classes, (C,)."""
        labelled = self.labelled()
        counts = np.bincount(labelled.labels, labelled.weights, n_classes)
        return counts.astype(np.float64)

    def split(self, share: float, generator: np.random.Generator) -> tuple[Self, Self]:
        """Hold out a share of the labelled units of each class; return rest and held."""
        held = np.zeros(self.n_rows, dtype=bool)
        for label in np.unique(self.labels[self.labels != UNLABELLED]):
            rows = np.flatnonzero(self.labels == label)
            held[generator.choice(rows, int(share * len(rows)), replace=False)] = True
        return self.take(np.flatnonzero(~held)), self.take(np.flatnonzero(held))

    def folds(
        self, n_folds: int, generator: np.random.Generator
    ) -> Iterator[tuple[Self, Self]]:
        """Deal out the labelled units of each class; yield rest and held for each fold.

        The only row of a class is never held.
        """
        fold = np.full(self.n_rows, UNLABELLED)
        for label in np.unique(self.labels[self.labels != UNLABELLED]):
            rows = generator.permutation(np.flatnonzero(self.labels == label))
            if len(rows) > 1:
                fold[rows] = np.arange(len(rows)) % n_folds
        for number in range(n_folds):
            held = np.flatnonzero(fold == number)
            if len(held):
                yield self.take(np.flatnonzero(fold != number)), self.take(held)

    def take(self, index: IntArray) -> Self:
        """Return some of the rows, in ascending order."""
        weights = None if self.weights is None else self.weights[index]
        return replace(
            self, rows=self.rows[index], labels=self.labels[index], weights=weights
        )

    def part(self, start: int, stop: int) -> Self:
        """Return the units from one number to another, without copying them."""
        here = slice(start, stop)
        weights = None if self.weights is None else self.weights[here]
        return replace(
            self, rows=self.rows[here], labels=self.labels[here], weights=weights
        )


@dataclass(frozen=True)
class Dataset(LabelledUnits[Rows]):
    """Training rows, arranged so that rows that are treated alike lie together.

    The rows of a class are neighbours, among them the complete rows come first, and rows
    that miss the same columns follow each other.

    Attributes
    ----------
    rows : Rows
        The arranged rows.
    labels : ndarray of shape (n,)
        Class number of each row; -1 for an unlabelled one; ascending.
    weights : ndarray of shape (n,) or None
        Sample weights; None when all are one.
    """

    @classmethod
    def arrange(
        cls,
        source: RowSource[Rows],
        labels: IntArray,
        weights: FloatArray | None = None,
    ) -> Dataset:
        """Encode the rows of a source, in the order that suits training.

        Rows without weight are left out. The encoded copy is written block by block: it
        is the only array of the size of the table that this makes.
        """
        observed = source.observed
        order = _training_order(labels, None if observed is None else observed.T)
        if weights is not None:
            order = np.arange(len(labels)) if order is None else order
            order = order[weights[order] > 0]
        if order is None:
            return cls(source[:], labels, weights)
        first = source[order[:1]]
        real = np.empty((first.real.shape[0], len(order)), first.real.dtype)
        codes = np.empty((first.codes.shape[0], len(order)), first.codes.dtype)
        for here in row_chunks(len(order), max(len(real) + len(codes), 1)):
            part = source[order[here]]
            real[:, here] = part.real
            codes[:, here] = part.codes
        mask = None if observed is None else np.ascontiguousarray(observed[:, order])
        sorted_weights = None if weights is None else weights[order]
        return cls(Rows(real, mask, codes), labels[order], sorted_weights)

    def n_distinct(self, enough: int) -> int:
        """Count distinct rows, up to a number that is enough."""
        return self.rows.n_distinct(enough)

    def summed(self, function: Callable[[Dataset], Sum]) -> Sum:
        """Return the sum of a function over blocks of rows; here, all are one block."""
        return function(self)

    def mapped(self, function: Callable[[Dataset], Dataset], n_classes: int) -> Dataset:
        """Return what a function makes of the rows of every block; here, of all."""
        return function(self)

    def resampled(self, generator: np.random.Generator) -> Dataset:
        """Return a bootstrap sample of the rows: their weights say how often each is in.

        The weights of the sample add up to those of the rows.
        """
        total = float(self.filled_weights.sum())
        n_drawn = max(1, round(total))
        return self._weighted_anew(n_drawn, total / n_drawn, generator)

    def drawn_anew(self, n_drawn: int, seed: int, scale: float) -> Dataset:
        """Return these rows with the weights of a sample of this many, times a number."""
        return self._weighted_anew(n_drawn, scale, np.random.default_rng(seed))

    def _weighted_anew(
        self, n_drawn: int, scale: float, generator: np.random.Generator
    ) -> Dataset:
        weights = self.filled_weights
        counts = generator.multinomial(n_drawn, weights / weights.sum())
        return replace(self, weights=scale * counts.astype(np.float64))

    def in_memory(self, n_rows: int) -> Dataset:
        """Return all rows, which are in memory however many there are."""
        return self

    def thinned(self, n_rows: int, generator: np.random.Generator) -> Dataset:
        """Return a random part of the rows, with as many labelled rows at most.

        Unlabelled rows are thinned to the same number. Every class keeps a row.
        """
        n_unlabelled = self.unlabelled().n_rows
        if max(n_unlabelled, self.n_rows - n_unlabelled) <= n_rows:
            return self
        kept = []
        for start, stop in ((0, n_unlabelled), (n_unlabelled, self.n_rows)):
            if stop - start > n_rows:
                chosen = start + generator.choice(stop - start, n_rows, replace=False)
                labels = np.arange(self.labels[start], self.labels[stop - 1] + 1)
                kept.append(np.union1d(chosen, np.searchsorted(self.labels, labels)))
            else:
                kept.append(np.arange(start, stop))
        return self.take(np.concatenate(kept))

    def followed_by(self, other: Dataset) -> Dataset:
        """Return these rows and others, whose labels are not smaller."""
        return joined([self, other])


def joined(parts: Sequence[Dataset]) -> Dataset:
    """Put rows one after the other, as they are."""
    masks = None
    if any(part.has_holes for part in parts):
        masks = np.concatenate([part.rows.mask for part in parts], axis=1)
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([part.filled_weights for part in parts])
    rows = Rows(
        np.concatenate([part.rows.real for part in parts], axis=1),
        masks,
        np.concatenate([part.rows.codes for part in parts], axis=1),
    )
    return Dataset(rows, np.concatenate([part.labels for part in parts]), weights)


def _training_order(labels: IntArray, observed: BoolArray | None) -> IntArray | None:
    """Sort by label, number of missing columns and pattern; None if already sorted."""
    if observed is None:
        if bool(np.all(labels[:-1] <= labels[1:])):
            return None
        # Short numbers are sorted digit by digit, in a fraction of the time.
        short = labels.astype(np.int16) if labels.max() < 1 << 15 else labels
        return np.argsort(short, kind="stable")
    patterns = pattern_numbers(observed)[0]
    n_missing = observed.shape[1] - observed.sum(axis=1)
    return np.lexsort((patterns, n_missing, labels))


def pattern_numbers(observed: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Give the distinct rows of a mask numbers.

    Returns
    -------
    numbers : ndarray of shape (n,)
        Which distinct pattern each row has.
    examples : ndarray of shape (n_patterns,)
        A row that has the pattern.
    counts : ndarray of shape (n_patterns,)
        How many rows have it.
    """
    packed = np.packbits(observed, axis=1)
    # Up to 64 columns a pattern is one integer, which sorts many times faster than bytes.
    n_bytes = 8 if packed.shape[1] <= 8 else packed.shape[1]
    padded = np.zeros((len(packed), n_bytes), np.uint8)
    padded[:, : packed.shape[1]] = packed
    keys = padded.view(np.uint64 if n_bytes == 8 else f"V{n_bytes}").ravel()
    _, examples, numbers, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    return numbers, examples, counts
