"""Gaussian algebra for rows that miss different columns.

Rows are grouped: complete rows, rows that share a frequent pattern of missing columns,
and the rest, by the number of missing columns. For the rest the small systems of all rows
are solved together, vectorised over rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows, pattern_numbers

# From this many rows on, a factorisation for a pattern of its own is worth its overhead.
_FREQUENT = 64


@dataclass(frozen=True)
class UniformGroup:
    """Rows that have the same columns observed.

    Attributes
    ----------
    index : ndarray or None
        Which rows these are; None for all.
    columns : ndarray or None
        The observed columns; None for all.
    augmented : ndarray of shape (o + 1, n)
        Observed values above a row of ones.
    """

    index: IntArray | None
    columns: IntArray | None
    augmented: FloatArray


@dataclass(frozen=True)
class ScatteredGroup:
    """Rows that miss the same number of columns, but not the same columns.

    Attributes
    ----------
    index : ndarray or None
        Which rows these are; None for all.
    real, observed : ndarray of shape (d, n)
        Values, 0 where missing, and mask.
    by_missing : bool
        Whether the small systems are over the missing columns (of the precision matrix)
        or over the observed ones (of the covariance); the fewer the better.
    members : ndarray of shape (k, n_patterns)
        The columns of the small systems, for each distinct pattern.
    pattern : ndarray of shape (n,) or None
        Pattern of each row; None when each row has its own.
    """

    index: IntArray | None
    real: FloatArray
    observed: BoolArray
    by_missing: bool
    members: IntArray
    pattern: IntArray | None

    @property
    def row_members(self) -> IntArray:
        """The columns of the small systems, for each row."""
        return self.of_rows(self.members)

    def of_rows(self, per_pattern: np.ndarray) -> np.ndarray:
        """Spread an array over patterns, its last axis, to the rows."""
        return per_pattern if self.pattern is None else per_pattern[..., self.pattern]

    def of_patterns(self, per_row: FloatArray) -> FloatArray:
        """Sum an array over rows within the patterns."""
        if self.pattern is None:
            return per_row
        return np.bincount(self.pattern, per_row, self.members.shape[1]).astype(float)

    def cells(self, n_columns: int) -> IntArray:
        """Flat positions (k, k, n_patterns) of the small systems in a square matrix."""
        return self.members[:, None] * n_columns + self.members[None]


Group = UniformGroup | ScatteredGroup


def augmented(real: FloatArray) -> FloatArray:
    """Put a row of ones under the values."""
    result = np.empty((len(real) + 1, real.shape[1]))
    result[:-1] = real
    result[-1] = 1.0
    return result


def group_rows(rows: Rows) -> list[Group]:
    """Group rows by what they miss."""
    if rows.observed is None:
        return [UniformGroup(None, None, augmented(rows.real))]
    pattern, examples, counts = pattern_numbers(rows.observed.T)
    groups: list[Group] = []
    for number in np.flatnonzero(counts >= _FREQUENT):
        index = np.flatnonzero(pattern == number)
        columns = np.flatnonzero(rows.observed[:, examples[number]])
        values = rows.real[np.ix_(columns, index)]
        groups.append(UniformGroup(index, columns, augmented(values)))
    rare = counts[pattern] < _FREQUENT
    n_missing = np.sum(~rows.observed, axis=0)
    for number in np.unique(n_missing[rare]):
        index = np.flatnonzero(rare & (n_missing == number))
        groups.append(_scattered(rows, index, pattern[index], int(number)))
    return groups


def _scattered(
    rows: Rows, index: IntArray, pattern: IntArray, n_missing: int
) -> ScatteredGroup:
    assert rows.observed is not None
    observed = rows.observed[:, index]
    d = len(observed)
    _, examples, numbers = np.unique(pattern, return_index=True, return_inverse=True)
    all_differ = len(examples) == len(index)
    if all_differ:
        examples = np.arange(len(index))
    by_missing = 2 * n_missing <= d
    wanted = observed[:, examples] != by_missing
    size = n_missing if by_missing else d - n_missing
    members = np.nonzero(wanted.T)[1].reshape(len(examples), size).T
    return ScatteredGroup(
        index=None if len(index) == rows.n_rows else index,
        real=rows.real[:, index],
        observed=observed,
        by_missing=by_missing,
        members=np.ascontiguousarray(members),
        pattern=None if all_differ else numbers,
    )


def invert(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Invert many small positive definite matrices.

    Parameters
    ----------
    matrices : ndarray of shape (k, k, n)
        The matrices, which may be overwritten; the last axis counts them.

    Returns
    -------
    inverses : ndarray of shape (k, k, n)
    log_determinants : ndarray of shape (n,)
    """
    size, count = matrices.shape[1:]
    return _invert_few(matrices) if count < 8 * size else _sweep(matrices)


def _invert_few(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Call LAPACK for each matrix."""
    stacked = np.moveaxis(matrices, 2, 0)
    factors = np.linalg.cholesky(stacked)
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    inverses = np.ascontiguousarray(np.moveaxis(np.linalg.inv(stacked), 0, 2))
    return inverses, 2.0 * np.log(diagonals).sum(axis=1)


def _sweep(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Apply the sweep operator to all matrices at once, in place.

    Each step of the elimination is one operation over all matrices, which takes a
    fraction of the time of a call of LAPACK for each.
    """
    size = len(matrices)
    log_determinants = np.zeros(matrices.shape[2])
    # Only the lower triangle is kept up to date; it ends as minus the inverse.
    for pivot in range(size):
        column = np.concatenate([matrices[pivot, :pivot], matrices[pivot:, pivot]])
        diagonal = column[pivot]
        log_determinants += np.log(diagonal)
        scaled = column / diagonal
        for i in range(size):
            if i != pivot:
                matrices[i, : i + 1] -= column[i] * scaled[: i + 1]
        matrices[pivot, :pivot] = scaled[:pivot]
        matrices[pivot:, pivot] = scaled[pivot:]
        matrices[pivot, pivot] = -1.0 / diagonal
    for i in range(size):
        matrices[i, : i + 1] *= -1.0
        matrices[:i, i] = matrices[i, :i]
    return matrices, log_determinants
