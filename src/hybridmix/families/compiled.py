"""Gaussian algebra for rows that miss different columns, by the compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hybridmix._kernels import Kernels, RowsArgument, address
from hybridmix._scratch import empty
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.families.moments import FullParameters, FullStatistics


@dataclass(frozen=True)
class Expectation:
    """What scattered rows are expected to be.

    Attributes
    ----------
    filled : ndarray of shape (J, n_blocks, d, width)
        The observed values, and the conditional means of the missing ones.
    factors : ndarray of shape (G, n_factors)
        Cholesky factors of the small systems.
    half_log_determinants : ndarray of shape (G, n)
        Of the covariances of what is observed.
    """

    filled: FloatArray
    factors: FloatArray
    half_log_determinants: FloatArray


@dataclass(frozen=True)
class CompiledRows:
    """Rows that do not miss the same columns.

    `ScatteredRows` has the formulas. Here, rows stand in blocks of as many as a vector of
    the processor holds, the smallest systems first; a row whose system is smaller than
    the largest one of its block has some rows of the identity under it.

    Attributes
    ----------
    kernels : Kernels
        What is called.
    index : ndarray
        Which rows these are.
    n_observed : ndarray of shape (n,)
        Number of observed columns.
    by_missing : bool
        Whether the small systems are over the missing columns (of the precision matrix)
        or over the observed ones (of the covariance).
    largest : int
        Size of the largest system.
    n_factors : int
        How many numbers the factors of all systems take, for one covariance.
    """

    kernels: Kernels
    index: IntArray
    n_observed: IntArray
    by_missing: bool
    largest: int
    n_factors: int
    _argument: RowsArgument
    _arrays: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        kernels: Kernels,
        rows: tuple[FloatArray, BoolArray],
        index: IntArray,
        by_missing: bool,
    ) -> Self:
        """Arrange some rows of a chunk in blocks, given values and mask of the chunk."""
        width, d = kernels.width, len(rows[0])
        sizes = np.sum(rows[1][:, index] != by_missing, axis=0)
        order = np.argsort(sizes, kind="stable")
        index, sizes = index[order], sizes[order]
        n, n_blocks = len(index), -(-len(index) // width)
        # The last row is repeated until its block is full; its copies have no weight.
        places = np.minimum(np.arange(n_blocks * width), n - 1)
        in_blocks = index[places]
        observed = rows[1].T[in_blocks]
        largest = sizes[places].reshape(n_blocks, width)[:, -1]
        members, first_member = _members(observed != by_missing, largest, width)
        n_factors = width * largest * (largest + 1) // 2
        first_factor = np.concatenate([[0], np.cumsum(n_factors)])
        values = rows[0].T[in_blocks].reshape(n_blocks, width, d)
        n_observed = observed[:n].sum(axis=1)
        arrays = (
            np.ascontiguousarray(values.swapaxes(1, 2)),
            np.ascontiguousarray(observed.reshape(n_blocks, width, d).swapaxes(1, 2)),
            *(
                np.ascontiguousarray(numbers, np.int64)
                for numbers in (n_observed, largest, members, first_member, first_factor)
            ),
        )
        argument = RowsArgument(n, d, by_missing, *(address(array) for array in arrays))
        most, total = int(largest[-1]), int(first_factor[-1])
        return cls(kernels, index, n_observed, by_missing, most, total, argument, arrays)

    def evaluate(self, parameters: FullParameters) -> tuple[FloatArray, Expectation]:
        """Return log densities (J, n), and what is expected."""
        matrices = parameters.precisions if self.by_missing else parameters.covariances
        (n_components, d), n_covariances = parameters.means.shape, len(matrices)
        n, width = len(self.index), self.kernels.width
        bordered = np.zeros((n_covariances, d + 1, d + 1))
        bordered[:, :d, :d] = matrices
        log_densities = empty((n_components, n))
        expectation = Expectation(
            empty((n_components, -(-n // width), d, width)),
            empty((n_covariances, self.n_factors)),
            empty((n_covariances, n)),
        )
        self.kernels.call(
            "scattered_evaluate",
            self._argument,
            n_components,
            n_covariances,
            np.ascontiguousarray(parameters.means),
            bordered,
            np.ascontiguousarray(parameters.half_log_determinants),
            log_densities,
            expectation.filled,
            expectation.factors,
            expectation.half_log_determinants,
            empty((4 * d + 1, width)),
        )
        return log_densities, expectation

    def add_to(
        self,
        total: FullStatistics,
        parameters: FullParameters,
        weights: FloatArray,
        expectation: Expectation,
    ) -> None:
        """Add expected statistics of the rows, with signed weights (J, n)."""
        d, n_covariances = parameters.means.shape[1], len(parameters.covariances)
        first, second = np.zeros(parameters.means.shape), np.zeros((n_covariances, d, d))
        inverses = np.zeros((n_covariances, d + 1, d + 1))
        n_vectors = d * (d + 1) // 2 + self.largest * (self.largest + 1) // 2
        n_vectors += len(weights) * d
        self.kernels.call(
            "scattered_accumulate",
            self._argument,
            len(weights),
            n_covariances,
            np.ascontiguousarray(weights),
            expectation.filled,
            expectation.factors,
            first,
            second,
            inverses,
            empty((n_vectors, self.kernels.width)),
        )
        counts = weights.sum(axis=1)
        total.counts += counts
        total.first += first
        total.second += _symmetric(second)
        spread = _symmetric(inverses[:, :d, :d])
        if not self.by_missing:
            # S - S_:o S_oo^-1 S_o: is the conditional covariance, and zero elsewhere.
            covariances = parameters.covariances
            sums = counts.sum(keepdims=True) if parameters.is_tied else counts
            spread = covariances @ spread @ covariances
            spread = sums[:, None, None] * covariances - spread
        total.second += spread

    def filled(self, parameters: FullParameters, expectation: Expectation) -> FloatArray:
        """Return the rows with holes filled by each component, (J, d, n)."""
        by_column = expectation.filled.swapaxes(1, 2)
        shape = (*parameters.means.shape, -1)
        return by_column.reshape(shape)[:, :, : len(self.index)]

    def half_log_determinants(self, expectation: Expectation) -> FloatArray:
        """Half the log determinants of what is observed, (G, n)."""
        return expectation.half_log_determinants


def _members(
    chosen: BoolArray, largest: IntArray, width: int
) -> tuple[IntArray, IntArray]:
    """Return the columns of the systems of all blocks, and where each block begins.

    The columns chosen (n_blocks * width, d) of each row are put first, in order. A block
    of systems up to size k has (k, width) of them, filled up with d.
    """
    n_rows, d = chosen.shape
    row, column = np.nonzero(chosen)
    ends = np.cumsum(np.bincount(row, minlength=n_rows))
    counts = np.diff(ends, prepend=0)
    rank = np.arange(len(row)) - np.repeat(ends - counts, counts)
    first = np.cumsum(largest * width) - largest * width
    members = np.full(int(largest.sum()) * width, d, np.int64)
    members[first[row // width] + rank * width + row % width] = column
    return members, first


def _symmetric(lower: FloatArray) -> FloatArray:
    """Fill the upper triangles of matrices (G, d, d) that are zero above the diagonal."""
    result = lower + np.swapaxes(lower, 1, 2)
    np.einsum("gii->gi", result)[...] *= 0.5
    return result
