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

# Numbers that are worked on at a time: of components that together have no more, all are
# treated in one go, which saves calls; more would not fit into the cache.
_BLOCK_NUMBERS = 1 << 16


@dataclass(frozen=True)
class Regression:
    """What scattered rows are expected to be, for some of the covariances.

    Attributes
    ----------
    covariances : slice
        Which ones these are.
    components : list of slice
        Which components have them, in blocks.
    inverses : ndarray of shape (k, k, g, n_patterns)
        Inverses of the small systems.
    filled : list of ndarray of shape (j, d, n)
        For each block of components: the observed values, and the conditional means of
        the missing ones.
    half_log_determinants : ndarray of shape (g, n)
        Of the covariances of what is observed.
    """

    covariances: slice
    components: list[slice]
    inverses: FloatArray
    filled: list[FloatArray]
    half_log_determinants: FloatArray


@dataclass(frozen=True)
class ScatteredRows:
    """Rows that miss about the same number of columns, but not the same columns.

    The small systems of all rows have the same size ``k``. Rows whose systems would be
    smaller are given some more columns, which are zero and independent of all others
    with variance one: these change neither densities nor conditional means.

    Attributes
    ----------
    index : ndarray or None
        Which rows these are; None for all.
    real, observed : ndarray of shape (d, n)
        Values, 0 where missing, and mask; with the columns that were added.
    n_observed : ndarray of shape (n,)
        Number of observed columns, without those that were added.
    n_added : int
        How many columns were added.
    by_missing : bool
        Whether the small systems are over the missing columns (of the precision matrix)
        or over the observed ones (of the covariance): the fewer.
    members : ndarray of shape (k, n_patterns)
        The columns of the small systems, for each distinct pattern.
    pattern : ndarray of shape (n,) or None
        Pattern of each row; None when each row is treated as if it had its own.
    positions : ndarray of shape (k, n)
        Where the columns of its small system are in an array (d, n), for each row.
    """

    index: IntArray | None
    real: FloatArray
    observed: BoolArray
    n_observed: IntArray
    n_added: int
    by_missing: bool
    members: IntArray
    pattern: IntArray | None
    positions: IntArray

    @classmethod
    def of(
        cls,
        rows: tuple[FloatArray, BoolArray],
        index: IntArray,
        pattern: IntArray,
        by_missing: bool,
    ) -> Self:
        """Find the small systems of rows, given numbers of their patterns.

        The rows are all rows of a chunk, values and mask; the index says which to take.
        """
        real: FloatArray = np.take(rows[0], index, axis=1)
        observed: BoolArray = np.take(rows[1], index, axis=1)
        n_observed = observed.sum(axis=0)
        sizes = np.sum(observed != by_missing, axis=0)
        n_added = int(sizes.max() - sizes.min())
        if n_added:
            added = np.arange(n_added)[:, None] < sizes.max() - sizes
            real = np.concatenate([real, np.zeros(added.shape)])
            observed = np.concatenate([observed, added != by_missing])
        _, examples, numbers = np.unique(pattern, return_index=True, return_inverse=True)
        # Where few patterns repeat, finding what rows share costs more than it saves.
        all_differ = 3 * len(examples) > 2 * len(index)
        if all_differ:
            examples = np.arange(len(index))
        chosen: BoolArray = np.not_equal(observed[:, examples].T, by_missing)
        members = np.nonzero(chosen)[1].reshape(len(examples), sizes.max()).T
        members = np.ascontiguousarray(members)
        of_rows = members if all_differ else members[:, numbers]
        return cls(
            index,
            real,
            observed,
            n_observed,
            n_added,
            by_missing,
            members,
            None if all_differ else numbers,
            of_rows * len(index) + np.arange(len(index)),
        )

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
        matrices = _extended(matrices, self.n_added)
        means = np.zeros((len(parameters.means), len(self.real), 1))
        means[:, : parameters.means.shape[1], 0] = parameters.means
        cells = self._cells()
        result = np.empty((len(means), self.real.shape[1]))
        constants = -0.5 * LOG_2PI * self.n_observed
        regressions = []
        for covariances, components in self._blocks(parameters):
            block = matrices[covariances]
            systems = np.take(block.reshape(len(block), -1), cells, axis=1)
            inverses, log_determinants = _invert_blocks(systems)
            halves = 0.5 * self._of_rows(log_determinants)
            if self.by_missing:
                halves += parameters.half_log_determinants[covariances, None]
            row_inverses = self._of_rows(inverses)
            all_filled = []
            for own in components:
                quadratic, filled = self._regress(block, row_inverses, means[own])
                result[own] = constants - halves - 0.5 * quadratic
                filled += means[own]
                all_filled.append(filled)
            regressions.append(
                Regression(covariances, components, inverses, all_filled, halves)
            )
        return result, regressions

    def _blocks(self, parameters: FullParameters) -> list[tuple[slice, list[slice]]]:
        """Return covariances, and components that have them, to be treated together."""
        size, n_patterns = self.members.shape
        numbers = max(size * size * n_patterns, self.real.size)
        most = max(1, _BLOCK_NUMBERS // max(1, numbers))
        n_components = len(parameters.means)
        blocks = [
            slice(first, min(first + most, n_components))
            for first in range(0, n_components, most)
        ]
        if parameters.is_tied:
            return [(slice(0, 1), blocks)]
        return [(block, [block]) for block in blocks]

    def _regress(
        self, matrices: FloatArray, inverses: FloatArray, means: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the quadratic forms (j, n), and expected rows minus means, (j, d, n)."""
        error = np.subtract(self.real, means, order="C")
        error *= self.observed
        side = matrices @ error if self.by_missing else error
        inner = np.take(side.reshape(len(error), -1), self.positions, axis=1)
        solved = np.einsum("abgn,gbn->gan", inverses, inner)
        quadratic = np.einsum("gan,gan->gn", inner, solved)
        if self.by_missing:
            quadratic = np.einsum("gdn,gdn->gn", error, side) - quadratic
            error.reshape(len(error), -1)[:, self.positions] = -solved
            return quadratic, error
        spread = np.zeros_like(error)
        spread.reshape(len(error), -1)[:, self.positions] = solved
        return quadratic, matrices @ spread

    def add_to(
        self,
        total: FullStatistics,
        parameters: FullParameters,
        weights: FloatArray,
        regressions: list[Regression],
    ) -> None:
        """Add expected statistics of the rows, with signed weights (J, n)."""
        d = parameters.means.shape[1]
        cells = self._cells()
        total.counts += weights.sum(axis=1)
        for regression in regressions:
            own = regression.covariances
            second = total.second[own]
            for components, filled in zip(
                regression.components, regression.filled, strict=True
            ):
                scaled = filled * weights[components, None]
                total.first[components] += scaled.sum(axis=2)[:, :d]
                # Unlike `@`, np.dot lets other threads run even when the result is small.
                for number, (one, other) in enumerate(zip(scaled, filled, strict=True)):
                    products = np.dot(one[:d], other[:d].T)
                    second[0 if parameters.is_tied else number] += products
            shared = weights.sum(axis=0)[None] if parameters.is_tied else weights[own]
            spread = self._spread(cells, regression.inverses, shared)
            if not self.by_missing:
                # S - S_:o S_oo^-1 S_o: is the conditional covariance, and zero elsewhere.
                covariances = parameters.covariances[own]
                sums = shared.sum(axis=1)[:, None, None]
                spread = sums * covariances - covariances @ spread @ covariances
            second += spread

    def _spread(
        self, cells: IntArray, inverses: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Add up inverses in the cells that they belong to, with weights (g, n)."""
        scattered = inverses * self._of_patterns(weights)
        d = len(self.real)
        places = cells[:, :, None] + d * d * np.arange(len(weights))[:, None]
        size = len(weights) * d * d
        # Without any cells, np.bincount would return whole numbers.
        spread = np.bincount(places.ravel(), scattered.ravel(), size).astype(float)
        kept = slice(d - self.n_added)
        return spread.reshape(-1, d, d)[:, kept, kept]

    def filled(
        self, parameters: FullParameters, regressions: list[Regression]
    ) -> FloatArray:
        """Return the rows with holes filled by each component, (J, d, n)."""
        d = parameters.means.shape[1]
        return np.concatenate([part[:, :d] for r in regressions for part in r.filled])

    def half_log_determinants(self, regressions: list[Regression]) -> FloatArray:
        """Half the log determinants of what is observed, (G, n)."""
        return np.concatenate([r.half_log_determinants for r in regressions])

    def _of_rows(self, per_pattern: FloatArray) -> FloatArray:
        """Spread an array over patterns, its last axis, to the rows."""
        if self.pattern is None:
            return per_pattern
        return np.take(per_pattern, self.pattern, axis=-1)

    def _of_patterns(self, per_row: FloatArray) -> FloatArray:
        """Sum an array (g, n) over rows within the patterns."""
        if self.pattern is None:
            return per_row
        n_patterns = self.members.shape[1]
        places = self.pattern + n_patterns * np.arange(len(per_row))[:, None]
        sums = np.bincount(places.ravel(), per_row.ravel(), len(per_row) * n_patterns)
        return sums.astype(float).reshape(-1, n_patterns)

    def _cells(self) -> IntArray:
        """Flat positions (k, k, n_patterns) of the small systems in a square matrix."""
        return self.members[:, None] * len(self.real) + self.members[None]


def _extended(matrices: FloatArray, n_added: int) -> FloatArray:
    """Add columns to matrices that are independent of all others, with variance one."""
    if n_added == 0:
        return matrices
    n_matrices, d, _ = matrices.shape
    result = np.zeros((n_matrices, d + n_added, d + n_added))
    result[:, :d, :d] = matrices
    added = np.arange(d, d + n_added)
    result[:, added, added] = 1.0
    return result


def _invert_blocks(systems: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Invert systems (g, k, k, n); return (k, k, g, n) and log determinants (g, n)."""
    g, size, _, count = systems.shape
    flat = systems.transpose(1, 2, 0, 3).reshape(size, size, g * count)
    inverses, log_determinants = invert(flat)
    return inverses.reshape(size, size, g, count), log_determinants.reshape(g, count)


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
    # What is fastest was measured, for 1 to 30 columns and 2 to 4000 matrices.
    if count < 12 + size * size // 8:
        return _invert_few(matrices)
    return _sweep_whole(matrices) if size * count <= 4000 else _sweep(matrices)


def _invert_few(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Call LAPACK for each matrix."""
    _, factors = factorised(np.ascontiguousarray(matrices.transpose(2, 0, 1)))
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    whiteners = inverse_lower(factors)
    inverses = np.swapaxes(whiteners, 1, 2) @ whiteners
    inverses = np.ascontiguousarray(inverses.transpose(1, 2, 0))
    return inverses, 2.0 * np.log(diagonals).sum(axis=1)


def _sweep_whole(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Apply the sweep operator like `_sweep`, with fewer calls but more arithmetic."""
    least = ROUNDING * np.einsum("iin->in", matrices)
    pivots = np.empty_like(least)
    products = np.empty_like(matrices)
    for number, pivot in enumerate(pivots):
        column = matrices[:, number].copy()
        np.maximum(column[number], least[number], out=pivot)
        scaled = column / pivot
        matrices -= np.multiply(column[:, None], scaled, out=products)
        matrices[number] = matrices[:, number] = scaled
        np.divide(-1.0, pivot, out=matrices[number, number])
    return np.negative(matrices, out=matrices), np.log(pivots).sum(axis=0)


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
