"""Variances and correlations within the classes of a data set."""

from __future__ import annotations

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data import UNLABELLED, Dataset

_LEAST_EIGENVALUE = 1e-6
# Cells that are worked on at a time.
_BLOCK = 1 << 16


def within_class_variances(dataset: Dataset) -> FloatArray:
    """Return the pooled variances of the real columns within the labelled classes.

    One row of the variance over all rows is added, labelled or not: with a single label
    per class, there is no other.
    """
    rows, weights = dataset.rows, dataset.filled_weights
    d = rows.real.shape[0]
    observed = np.ones((d, 1)) if rows.observed is None else rows.observed
    squares, freedom = np.zeros(d), np.zeros(d)
    for label in np.unique(dataset.labels[dataset.labels != UNLABELLED]):
        here = slice(*np.searchsorted(dataset.labels, [label, label + 1]))
        own, counts = _column_squares(rows.real[:, here], observed, here, weights[here])
        squares += own
        freedom += np.maximum(counts - 1.0, 0.0)
    total, counts = _column_squares(rows.real, observed, slice(None), weights)
    overall = np.divide(total, counts, out=np.ones(d), where=counts > 0)
    return (squares + overall) / (freedom + 1.0)


def _column_squares(
    real: FloatArray,
    observed: FloatArray | BoolArray,
    here: slice,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return sums of squares about the means of columns, and weights of what is seen."""
    squares, counts = np.zeros(len(real)), np.zeros(len(real))
    # A few columns at a time: one by one would be slow for wide tables, and all at once
    # would need another table.
    step = max(1, _BLOCK // max(real.shape[1], 1))
    for block in (slice(i, i + step) for i in range(0, len(real), step)):
        seen = observed[block] if observed.shape[1] == 1 else observed[block, here]
        w = weights * seen
        counts[block] = w.sum(axis=1)
        means = _row_products(real[block], w)
        means /= np.maximum(counts[block], np.finfo(float).tiny)
        deviations = np.square(real[block] - means[:, None])
        squares[block] = _row_products(deviations, w)
    return squares, counts


def _row_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the scalar products of the rows of two matrices."""
    # This goes through BLAS, which is faster than `einsum` on long rows.
    return (a[:, None, :] @ b[:, :, None])[:, 0, 0]


def within_class_correlations(dataset: Dataset) -> FloatArray:
    """Return the pooled correlations of the real columns within the labelled classes.

    Every pair of columns is judged by the rows that have both. The fewer rows there are
    compared with columns, the more the correlations are drawn to zero.
    """
    d = dataset.rows.real.shape[0]
    products, squares = np.zeros((d, d)), np.zeros((d, d))
    for label in np.unique(dataset.labels):
        first, last = np.searchsorted(dataset.labels, [label, label + 1])
        own = dataset.rows[slice(first, last)]
        weights = dataset.filled_weights[first:last]
        seen = np.ones((d, 1)) if own.observed is None else own.observed
        counts = np.maximum((seen * weights).sum(axis=1), np.finfo(float).tiny)
        means = own.real @ weights / counts
        for chunk in row_chunks(own.n_rows, 4 * d):
            real = own.real[:, chunk]
            mask = np.ones(real.shape) if own.observed is None else own.observed[:, chunk]
            centred = np.where(mask, real - means[:, None], 0.0)
            weighted = centred * weights[chunk]
            products += weighted @ centred.T
            squares += (weighted * centred) @ mask.T
    joint = np.sqrt(squares * squares.T)
    correlations = np.divide(products, joint, out=np.zeros((d, d)), where=joint > 0.0)
    correlations *= 1.0 - d / (dataset.total_weight + d)
    np.fill_diagonal(correlations, 1.0)
    # Pairs that are judged by different rows need not fit together.
    values, vectors = np.linalg.eigh(correlations)
    rebuilt = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T
    deviations = np.sqrt(np.diagonal(rebuilt))
    return rebuilt / deviations[:, None] / deviations
