"""Gaussian algebra for rows that miss different columns, vectorised over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.families.moments import (
    ROUNDING,
    FullParameters,
    FullStatistics,
    factorised,
    inverse_lower,
)
from hybridmix.families.prior import LOG_2PI


@dataclass(frozen=True)
class Regression:
    """What scattered rows are expected to be, for one covariance.

    Attributes
    ----------
    inverses : ndarray of shape (k, k, n_patterns)
        Inverses of the small systems.
    filled : list of ndarray of shape (d, n)
        For each component with this covariance: the observed values, and the conditional
        means of the missing ones.
    half_log_determinants : ndarray of shape (n,)
        Of the covariance of what is observed.
    """

    inverses: FloatArray
    filled: list[FloatArray]
    half_log_determinants: FloatArray


@dataclass(frozen=True)
class ScatteredRows:
    """Rows that miss the same number of columns, but not the same columns.

    Attributes
    ----------
    index : ndarray or None
        Which rows these are; None for all.
    real, observed : ndarray of shape (d, n)
        Values, 0 where missing, and mask.
    by_missing : bool
        Whether the small systems are over the missing columns (of the precision matrix)
        or over the observed ones (of the covariance): the fewer.
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

    @classmethod
    def of(
        cls, real: FloatArray, observed: BoolArray, index: IntArray, pattern: IntArray
    ) -> Self:
        """Find the small systems of rows, given numbers of their patterns."""
        d, n_rows = observed.shape
        n_missing = d - int(observed[:, 0].sum())
        _, examples, numbers = np.unique(pattern, return_index=True, return_inverse=True)
        all_differ = len(examples) == n_rows
        if all_differ:
            examples = np.arange(n_rows)
        by_missing = 2 * n_missing <= d
        size = n_missing if by_missing else d - n_missing
        chosen = by_missing != observed[:, examples].T
        members = np.nonzero(chosen)[1].reshape(len(examples), size).T
        return cls(
            index,
            real,
            observed,
            by_missing,
            np.ascontiguousarray(members),
            None if all_differ else numbers,
        )

    @property
    def n_observed(self) -> IntArray:
        """Number of observed columns, (n,)."""
        return self.observed.sum(axis=0)

    def evaluate(self, parameters: FullParameters) -> tuple[FloatArray, list[Regression]]:
        """Return log densities (J, n), and the regressions of all covariances.

        With the precision matrix ``Q`` and ``v = Q e``, where ``e`` is the row minus the
        mean and zero in the missing block ``m``: the quadratic form of what is observed
        is ``e'v - v_m' Q_mm^-1 v_m``, the missing block is expected at
        ``mu_m - Q_mm^-1 v_m`` with covariance ``Q_mm^-1``, and
        ``log|S_oo| = log|S| + log|Q_mm|``. When more than half is missing, the observed
        block of the covariance is the smaller one.
        """
        matrices = parameters.precisions if self.by_missing else parameters.covariances
        cells = self._cells()
        result = np.empty((len(parameters.means), self.real.shape[1]))
        regressions = []
        for number, matrix in enumerate(matrices):
            inverses, log_determinants = invert(matrix.ravel()[cells])
            halves = 0.5 * self._of_rows(log_determinants)
            if self.by_missing:
                halves = halves + parameters.half_log_determinants[number]
            row_inverses = self._of_rows(inverses)
            constant = -halves - 0.5 * LOG_2PI * self.n_observed
            filled = []
            for j in parameters.sharing(number):
                mean = parameters.means[j][:, None]
                quadratic, error = self._regress(matrix, row_inverses, mean)
                result[j] = constant - 0.5 * quadratic
                filled.append(error + mean)
            regressions.append(Regression(inverses, filled, halves))
        return result, regressions

    def _regress(
        self, matrix: FloatArray, inverses: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the quadratic forms (n,), and expected rows minus the mean, (d, n)."""
        members = self._of_rows(self.members)
        error = np.where(self.observed, self.real - mean, 0.0)
        side = matrix @ error if self.by_missing else error
        inner = np.take_along_axis(side, members, axis=0)
        solved = np.einsum("abn,bn->an", inverses, inner)
        quadratic = np.einsum("an,an->n", inner, solved)
        if self.by_missing:
            quadratic = np.einsum("dn,dn->n", error, side) - quadratic
            np.put_along_axis(error, members, -solved, axis=0)
            return quadratic, error
        spread = np.zeros_like(error)
        np.put_along_axis(spread, members, solved, axis=0)
        return quadratic, matrix @ spread

    def add_to(
        self,
        total: FullStatistics,
        parameters: FullParameters,
        weights: FloatArray,
        regressions: list[Regression],
    ) -> None:
        """Add expected statistics of the rows, with signed weights (J, n)."""
        cells = self._cells().ravel()
        total.counts += weights.sum(axis=1)
        for number, regression in enumerate(regressions):
            covariance = parameters.covariances[number]
            sharing = parameters.sharing(number)
            for j, filled in zip(sharing, regression.filled, strict=True):
                scaled = filled * weights[j]
                total.first[j] += scaled.sum(axis=1)
                total.second[number] += np.dot(scaled, filled.T)
            shared = weights[sharing.start : sharing.stop].sum(axis=0)
            scattered = regression.inverses * self._of_patterns(shared)
            spread = np.bincount(cells, scattered.ravel(), covariance.size)
            spread = spread.reshape(covariance.shape)
            if not self.by_missing:
                # S - S_:o S_oo^-1 S_o: is the conditional covariance, and zero elsewhere.
                spread = shared.sum() * covariance - covariance @ spread @ covariance
            total.second[number] += spread

    def filled(
        self, parameters: FullParameters, regressions: list[Regression]
    ) -> FloatArray:
        """Return the rows with holes filled by each component, (J, d, n)."""
        return np.stack([part for r in regressions for part in r.filled])

    def half_log_determinants(self, regressions: list[Regression]) -> FloatArray:
        """Half the log determinants of what is observed, (G, n)."""
        return np.stack([r.half_log_determinants for r in regressions])

    def _of_rows(self, per_pattern: np.ndarray) -> np.ndarray:
        """Spread an array over patterns, its last axis, to the rows."""
        return per_pattern if self.pattern is None else per_pattern[..., self.pattern]

    def _of_patterns(self, per_row: FloatArray) -> FloatArray:
        """Sum an array over rows within the patterns."""
        if self.pattern is None:
            return per_row
        return np.bincount(self.pattern, per_row, self.members.shape[1]).astype(float)

    def _cells(self) -> IntArray:
        """Flat positions (k, k, n_patterns) of the small systems in a square matrix."""
        return self.members[:, None] * len(self.real) + self.members[None]


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
    _, factors = factorised(stacked)
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    whiteners = inverse_lower(factors)
    inverses = np.moveaxis(np.swapaxes(whiteners, 1, 2) @ whiteners, 0, 2)
    return np.ascontiguousarray(inverses), 2.0 * np.log(diagonals).sum(axis=1)


def _sweep(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Apply the sweep operator to all matrices at once, in place.

    Each step of the elimination is one operation over all matrices, which takes a
    fraction of the time of a call of LAPACK for each.
    """
    size = len(matrices)
    log_determinants = np.zeros(matrices.shape[2])
    # What is left of a variance is positive, whatever rounding makes of it.
    least = ROUNDING * np.einsum("iin->in", matrices)
    # Only the lower triangle is kept up to date; it ends as minus the inverse.
    for pivot in range(size):
        column = np.concatenate([matrices[pivot, :pivot], matrices[pivot:, pivot]])
        diagonal = np.maximum(column[pivot], least[pivot])
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
