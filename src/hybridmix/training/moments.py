"""Variances and correlations within the classes of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Rows, TrainingRows

_LEAST_EIGENVALUE = 1e-6
# Rows are worked on in chunks of this part of the usual size, which stay in the cache
# for all passes over them.
_ARRAYS = 32


@dataclass
class _ClassMoments:
    """Moments of real columns over the rows of each class, and over all rows.

    Attributes
    ----------
    weights, means, squares : ndarray of shape (C + 1, d)
        Weights of what is observed, means, and sums of squares about them; last those
        of all rows, labelled or not.
    """

    weights: FloatArray
    means: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, dataset: Dataset, n_classes: int) -> _ClassMoments:
        """Look at rows in memory."""
        d = dataset.rows.real.shape[0]
        moments = cls(*np.zeros((3, n_classes + 1, d)))
        for label in np.unique(dataset.labels).tolist():
            first, last = np.searchsorted(dataset.labels, [label, label + 1]).tolist()
            for chunk in row_chunks(last - first, _ARRAYS * max(d, 1)):
                stop = min(first + chunk.stop, last)
                part = dataset.part(first + chunk.start, stop)
                found = np.zeros((3, n_classes + 1, d))
                # Without a label, both places are the last one.
                found[:, [label, -1]] = np.stack(_column_moments(part))[:, None]
                moments.add(cls(*found))
        return moments

    def add(self, other: _ClassMoments) -> None:
        """Add the moments of other rows (Chan, Golub and LeVeque, 1979)."""
        weights = self.weights + other.weights
        share = other.weights / np.maximum(weights, np.finfo(float).tiny)
        step = other.means - self.means
        self.squares += other.squares + step**2 * self.weights * share
        self.means += step * share
        self.weights = weights


def within_class_variances(dataset: TrainingRows) -> FloatArray:
    """Return the pooled variances of the real columns within the labelled classes.

    One row of the variance over all rows is added, labelled or not: with a single label
    per class, there is no other.
    """
    moments = dataset.summed(partial(_ClassMoments.of, n_classes=dataset.n_labels))
    d = moments.weights.shape[1]
    squares = moments.squares[:-1].sum(axis=0)
    freedom = np.maximum(moments.weights[:-1] - 1.0, 0.0).sum(axis=0)
    total, counts = moments.squares[-1], moments.weights[-1]
    overall = np.divide(total, counts, out=np.ones(d), where=counts > 0)
    return (squares + overall) / (freedom + 1.0)


def _column_moments(dataset: Dataset) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights of what is seen of columns, means, sums of squares about these."""
    real, observed = dataset.rows.real, dataset.rows.observed
    weights = dataset.filled_weights
    seen = (
        np.broadcast_to(weights, real.shape) if observed is None else weights * observed
    )
    counts = seen.sum(axis=1)
    means = _row_products(real, seen) / np.maximum(counts, np.finfo(float).tiny)
    squares = _row_products(np.square(real - means[:, None]), seen)
    return counts, means, squares


def _row_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the scalar products of the rows of two matrices."""
    # This goes through BLAS, which is faster than `einsum` on long rows.
    return (a[:, None, :] @ b[:, :, None])[:, 0, 0]


@dataclass
class _Sums:
    """Two sums of arrays over rows."""

    first: FloatArray
    second: FloatArray

    def add(self, other: _Sums) -> None:
        """Add the sums of other rows."""
        self.first += other.first
        self.second += other.second


def within_class_correlations(dataset: TrainingRows) -> FloatArray:
    """Return the pooled correlations of the real columns within the labelled classes.

    Every pair of columns is judged by the rows that have both. The fewer rows there are
    compared with columns, the more the correlations are drawn to zero.
    """
    sums = dataset.summed(partial(_column_sums, n_classes=dataset.n_labels))
    means = sums.first / np.maximum(sums.second, np.finfo(float).tiny)
    found = dataset.summed(partial(_column_products, means=means))
    products, squares = found.first, found.second
    d = len(products)
    joint = np.sqrt(squares * squares.T)
    correlations = np.divide(products, joint, out=np.zeros((d, d)), where=joint > 0.0)
    correlations *= 1.0 - d / (dataset.total_weight + d)
    np.fill_diagonal(correlations, 1.0)
    # Pairs that are judged by different rows need not fit together.
    values, vectors = np.linalg.eigh(correlations)
    rebuilt = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T
    deviations = np.sqrt(np.diagonal(rebuilt))
    return rebuilt / deviations[:, None] / deviations


def _by_class(dataset: Dataset) -> Iterator[tuple[int, Rows, FloatArray]]:
    """Yield the classes of labelled rows, with their rows and weights."""
    for label in np.unique(dataset.labels).tolist():
        own = dataset.of_class(label)
        yield label, own.rows, own.filled_weights


def _column_sums(dataset: Dataset, n_classes: int) -> _Sums:
    """Return the sums (C, d) of the columns in each class, and of the weights."""
    d = dataset.rows.real.shape[0]
    sums = _Sums(np.zeros((n_classes, d)), np.zeros((n_classes, d)))
    for label, own, weights in _by_class(dataset):
        seen = np.ones((d, 1)) if own.observed is None else own.observed
        sums.first[label] = own.real @ weights
        sums.second[label] = (seen * weights).sum(axis=1)
    return sums


def _column_products(dataset: Dataset, means: FloatArray) -> _Sums:
    """Return sums (d, d) of products of columns and of squares, about class means."""
    d = means.shape[1]
    products, squares = np.zeros((d, d)), np.zeros((d, d))
    for label, own, weights in _by_class(dataset):
        for chunk in row_chunks(own.n_rows, 4 * d):
            real = own.real[:, chunk]
            mask = np.ones(real.shape) if own.observed is None else own.observed[:, chunk]
            centred = np.where(mask, real - means[label][:, None], 0.0)
            weighted = centred * weights[chunk]
            products += weighted @ centred.T
            squares += (weighted * centred) @ mask.T
    return _Sums(products, squares)
