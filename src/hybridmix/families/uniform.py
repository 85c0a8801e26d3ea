"""Gaussian algebra for rows that have the same columns observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hybridmix._scratch import empty, reused
from hybridmix._typing import FloatArray, IntArray
from hybridmix.families.moments import FullParameters, FullStatistics, moved_moments


@dataclass(frozen=True)
class UniformRows:
    """Rows that have the same columns observed, among them complete rows.

    Their marginal density is a Gaussian of fewer columns. What they are expected to be in
    the missing columns is affine in what is observed, so that expected moments follow
    from the moments of what is observed, once for all rows.

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

    @classmethod
    def of(
        cls, observed: FloatArray, index: IntArray | None, columns: IntArray | None
    ) -> Self:
        """Put a row of ones under observed values."""
        augmented = empty((len(observed) + 1, observed.shape[1]), observed.dtype)
        augmented[:-1] = observed
        augmented[-1] = 1.0
        return cls(index, columns, augmented)

    @property
    def n_observed(self) -> IntArray:
        """Number of observed columns, (n,)."""
        return np.full(self.augmented.shape[1], len(self.augmented) - 1)

    def evaluate(self, parameters: FullParameters) -> tuple[FloatArray, FullParameters]:
        """Return log densities (J, n), and the marginal parameters."""
        marginal = parameters.marginal(self.columns)
        return marginal.log_density(self.augmented), marginal

    def add_to(
        self,
        total: FullStatistics,
        parameters: FullParameters,
        weights: FloatArray,
        marginal: FullParameters,
    ) -> None:
        """Add expected statistics of the rows, with signed weights (J, n)."""
        x = self.augmented
        weights = weights.astype(x.dtype, copy=False)
        # Unlike `@`, np.dot lets other threads run even when the result is small.
        if parameters.is_tied:
            sums = np.dot(weights, x.T)
            second = np.dot(x[:-1] * weights.sum(axis=0), x[:-1].T)[None]
        else:
            moments = np.empty((len(weights), len(x), len(x)), x.dtype)
            with reused():
                scaled = empty((len(weights), *x.shape), x.dtype)
                np.multiply(weights[:, None, :], x, out=scaled)
                flat = scaled.reshape(-1, x.shape[1])
                np.dot(flat, x.T, out=moments.reshape(-1, len(x)))
            sums, second = moments[:, -1], moments[:, :-1, :-1]
        counts, first = sums[:, -1], sums[:, :-1]
        if self.columns is not None:
            first, second = self._extended(counts, first, second, parameters, marginal)
        total.counts += counts
        total.first += first
        total.second += second

    def _extended(
        self,
        counts: FloatArray,
        first: FloatArray,
        second: FloatArray,
        parameters: FullParameters,
        marginal: FullParameters,
    ) -> tuple[FloatArray, FloatArray]:
        r"""Extend moments of the observed columns to expected moments of all.

        A row is expected at :math:`G x_o + b` with covariance :math:`R`, which is added
        to the products for every row.
        """
        gain, offsets = self._regression(parameters, marginal)
        remainder = (
            parameters.covariances - gain @ parameters.covariances[:, self.columns]
        )
        expected, moved, rest = moved_moments(counts, first, second, gain, offsets)
        rest += counts[:, None, None] * remainder
        if parameters.is_tied:
            rest = rest.sum(axis=0, keepdims=True)
        return expected, moved + rest

    def _regression(
        self, parameters: FullParameters, marginal: FullParameters
    ) -> tuple[FloatArray, FloatArray]:
        """Return gains (G, d, o) and offsets (J, d) of all columns on the observed."""
        crossed = parameters.covariances[:, self.columns]
        gain = np.swapaxes(crossed, 1, 2) @ marginal.precisions
        predicted = np.squeeze(gain @ marginal.means[:, :, None], axis=2)
        return gain, parameters.means - predicted

    def filled(self, parameters: FullParameters, marginal: FullParameters) -> FloatArray:
        """Return the rows with holes filled by each component, (J, d, n)."""
        observed = self.augmented[:-1]
        if self.columns is None:
            return np.broadcast_to(observed, (len(parameters.means), *observed.shape))
        gain, offsets = self._regression(parameters, marginal)
        return gain @ observed + offsets[:, :, None]

    def half_log_determinants(self, marginal: FullParameters) -> FloatArray:
        """Half the log determinants of what is observed, (G, 1)."""
        return marginal.half_log_determinants[:, None]
