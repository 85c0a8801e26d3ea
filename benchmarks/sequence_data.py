"""Labelled sequences to compare classifiers on, and the situations they are put in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from common import load_arrays

UNLABELLED = -1
# Frames on each side that a derivative is estimated from, as is usual for speech.
DELTA_WIDTH = 2

Frames = list[np.ndarray]


@dataclass(frozen=True)
class Sequences:
    """Sequences with a class each.

    Attributes
    ----------
    X : list of ndarray of shape (T_i, d)
        Frames; NaN where a value is missing.
    y : ndarray of shape (n,)
        Class numbers; -1 for unlabelled sequences.
    speakers : ndarray of shape (n,) or None
        Who spoke, where this is known.
    """

    X: Frames
    y: np.ndarray
    speakers: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, index: np.ndarray) -> Sequences:
        """Return the sequences of these numbers."""
        speakers = None if self.speakers is None else self.speakers[index]
        return Sequences([self.X[i] for i in index], self.y[index], speakers)

    def changed(self, change: Callable[[np.ndarray], np.ndarray]) -> Sequences:
        """Return the sequences with a function applied to the frames of each."""
        return replace(self, X=[change(frames) for frames in self.X])

    @property
    def has_unlabelled(self) -> bool:
        """Whether some sequences have no label."""
        return bool(np.any(self.y == UNLABELLED))

    def labelled(self) -> Sequences:
        """Return the sequences that have a label."""
        return self.take(np.flatnonzero(self.y != UNLABELLED))


@dataclass(frozen=True)
class Split:
    """Sequences to train on and to test on."""

    train: Sequences
    test: Sequences


# Loading --------------------------------------------------------------------------------


def load_split(data: Path, name: str) -> Split:
    """Load ``NAME.npz`` with its official split."""
    arrays = load_arrays(data, name)
    return Split(_part(arrays, "train"), _part(arrays, "test"))


def _part(arrays: dict[str, np.ndarray], part: str) -> Sequences:
    X = arrays[f"X_{part}"].astype(float)
    if X.ndim == 3:
        frames = list(X)
    else:
        frames = np.split(X, np.cumsum(arrays[f"lengths_{part}"])[:-1])
    y = arrays[f"y_{part}"].astype(int)
    return Sequences(frames, y, arrays.get(f"speaker_{part}"))


def joined(split: Split) -> Sequences:
    """Return all sequences, training part first."""
    a, b = split.train, split.test
    speakers = None
    if a.speakers is not None and b.speakers is not None:
        speakers = np.concatenate([a.speakers, b.speakers])
    return Sequences(a.X + b.X, np.concatenate([a.y, b.y]), speakers)


# Splits ---------------------------------------------------------------------------------


def drawn_per_class(y: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Draw this many sequences of each class; return their indices in order."""
    generator = np.random.default_rng([seed, number])
    drawn = [
        generator.choice(np.flatnonzero(y == label), number, replace=False)
        for label in np.unique(y)
    ]
    return np.sort(np.concatenate(drawn))


def official(split: Split) -> Iterator[Split]:
    yield split


def fewer(split: Split, per_class: int, draws: int) -> Iterator[Split]:
    """Train on a few sequences per class; the test sequences stay."""
    for seed in range(draws):
        rows = drawn_per_class(split.train.y, per_class, seed)
        yield Split(split.train.take(rows), split.test)


def few_labels(split: Split, per_class: int, draws: int) -> Iterator[Split]:
    """Keep the labels of a few training sequences per class, and all sequences."""
    for seed in range(draws):
        y = np.full(len(split.train), UNLABELLED)
        rows = drawn_per_class(split.train.y, per_class, seed)
        y[rows] = split.train.y[rows]
        yield Split(replace(split.train, y=y), split.test)


def redrawn(split: Split, draws: int) -> Iterator[Split]:
    """Split all sequences anew, with as many of each class as in the official parts."""
    everything = joined(split)
    numbers = np.bincount(split.train.y)
    for seed in range(draws):
        generator = np.random.default_rng([seed, 2])
        is_train = np.zeros(len(everything), bool)
        for label, number in enumerate(numbers):
            own = np.flatnonzero(everything.y == label)
            is_train[generator.choice(own, number, replace=False)] = True
        yield Split(
            everything.take(np.flatnonzero(is_train)),
            everything.take(np.flatnonzero(~is_train)),
        )


def unseen_speakers(split: Split) -> Iterator[Split]:
    """Test on each speaker in turn, and train on the others."""
    everything = joined(split)
    if everything.speakers is None:
        raise ValueError("the speakers of these sequences are not known")
    for speaker in np.unique(everything.speakers):
        own = everything.speakers == speaker
        yield Split(
            everything.take(np.flatnonzero(~own)), everything.take(np.flatnonzero(own))
        )


# Frames ---------------------------------------------------------------------------------


def means_removed(frames: np.ndarray) -> np.ndarray:
    """Subtract the sequence's means, which carry microphone and voice."""
    return frames - frames.mean(axis=0)


def with_deltas(frames: np.ndarray) -> np.ndarray:
    r"""Append derivatives in time, by regression over neighbouring frames.

    .. math:: \dot x_t = \sum_{k=1}^{w} k (x_{t+k} - x_{t-k}) / (2 \sum_k k^2),

    where the first and the last frame are repeated beyond the ends.
    """
    steps = range(1, DELTA_WIDTH + 1)
    n = len(frames)
    padded = np.pad(frames, ((DELTA_WIDTH, DELTA_WIDTH), (0, 0)), mode="edge")

    def moved(k: int) -> np.ndarray:
        return padded[DELTA_WIDTH + k : DELTA_WIDTH + k + n]

    slope = sum(k * (moved(k) - moved(-k)) for k in steps)
    return np.hstack([frames, slope / (2 * sum(k * k for k in steps))])


def changed_frames(
    splits: Iterator[Split], *changes: Callable[[np.ndarray], np.ndarray]
) -> Iterator[Split]:
    """Apply functions to the frames of all sequences, one after the other."""
    for split in splits:
        for change in changes:
            split = Split(split.train.changed(change), split.test.changed(change))
        yield split


# Holes ----------------------------------------------------------------------------------


def hidden(
    shape: tuple[int, int], kind: str, share: float, seed: Sequence[int]
) -> np.ndarray:
    """Say which values of a sequence to hide.

    Parameters
    ----------
    shape : tuple of int
        Numbers of frames and columns.
    kind : {"values", "frames", "columns"}
        What is hidden at random as a whole.
    share : float
        Probability of being hidden.
    seed : sequence of int

    Returns
    -------
    ndarray of bool of the given shape
    """
    generator = np.random.default_rng(seed)
    n, d = shape
    drawn = {"values": (n, d), "frames": (n, 1), "columns": (1, d)}[kind]
    return np.broadcast_to(generator.random(drawn) < share, shape)


def punched(sequences: Sequences, kind: str, share: float, seed: int) -> Sequences:
    X = [
        np.where(hidden(frames.shape, kind, share, [seed, 3, i]), np.nan, frames)
        for i, frames in enumerate(sequences.X)
    ]
    return replace(sequences, X=X)


def with_holes(split: Split, kind: str, share: float, draws: int) -> Iterator[Split]:
    """Hide values of training and of test sequences."""
    for seed in range(draws):
        yield Split(
            punched(split.train, kind, share, 2 * seed),
            punched(split.test, kind, share, 2 * seed + 1),
        )


def interpolated(X: Frames, column_means: np.ndarray) -> Frames:
    """Fill holes by interpolation in time; columns without any value by their means."""
    return [_interpolated(frames, column_means) for frames in X]


def _interpolated(frames: np.ndarray, column_means: np.ndarray) -> np.ndarray:
    filled = frames.copy()
    time = np.arange(len(frames))
    for column, mean in zip(filled.T, column_means, strict=True):
        known = ~np.isnan(column)
        if not known.any():
            column[:] = mean
        elif not known.all():
            column[~known] = np.interp(time[~known], time[known], column[known])
    return filled


def column_statistics(X: Frames) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the columns, over known values."""
    frames = np.concatenate(X)
    return np.nanmean(frames, axis=0), np.nanstd(frames, axis=0)
