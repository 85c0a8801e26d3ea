"""Rows that have the same columns, seen through a subspace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.families.moments import FullStatistics, moved_moments
from hybridmix.families.subspace.parameters import (
    LatentRegression,
    LoadingStatistics,
    Subspace,
    SubspaceParameters,
)


@dataclass(frozen=True)
class AlikeRows:
    """Rows that have the same columns observed, among them complete rows.

    Attributes
    ----------
    index : ndarray or None
        Which rows these are; None for all.
    columns : ndarray or None
        The observed columns; None for all.
    real : ndarray of shape (o, n)
        Their values.
    """

    index: IntArray | None
    columns: IntArray | None
    real: FloatArray

    def project(self, subspace: Subspace) -> AlikeProjection:
        """Return what the rows say about the latent variables."""
        part = subspace.marginal(self.columns)
        error = self.real - part.centre[:, None]
        scores = np.empty((part.n_factors + 1, error.shape[1]))
        np.dot(part.scaled.T, error, out=scores[:-1])
        scores[-1] = 1.0
        np.square(error, out=error)
        squares = np.dot(1.0 / part.noise, error)
        return AlikeProjection(
            self.index,
            scores,
            None if self.columns is None else part.gram,
            -0.5 * (squares + part.log_volumes.sum()),
            -0.5 * float(part.log_volumes.sum()),
            len(self.real),
        )

    @property
    def _here(self) -> slice | IntArray:
        return slice(None) if self.columns is None else self.columns

    def add_moments(
        self,
        total: LoadingStatistics,
        subspace: Subspace,
        weights: FloatArray,
        mean: FloatArray,
    ) -> None:
        """Add moments of the columns, given weights and means of latent variables."""
        error = self.real - subspace.centre[self._here, None]
        total.weights[self._here] += weights.sum()
        total.crossed[self._here] += np.dot(error, mean.T)
        total.squares[self._here] += np.dot(np.square(error, out=error), weights)

    def add_explained(
        self, total: LoadingStatistics, subspace: Subspace, products: FloatArray
    ) -> None:
        """Add what the loading explains, given products of latent variables (q, q)."""
        total.explained[self._here] += subspace.loading[self._here] @ products

    def add_grams(self, total: FloatArray, products: FloatArray) -> None:
        """Add products of latent variables (q, q) for every column."""
        total[self._here] += products


@dataclass(frozen=True)
class AlikeProjection:
    r"""What rows that have the same columns say about the latent variables.

    The posterior of a component has the precision :math:`M_j = S_j^{-1} + G`, for all
    rows, and a mean that is affine in :math:`h`. Expected moments follow from the moments
    of :math:`h`.

    Attributes
    ----------
    index : ndarray or None
        Which rows these are; None for all.
    scores : ndarray of shape (q + 1, n)
        :math:`h` of the rows above a row of ones.
    gram : ndarray of shape (q, q) or None
        :math:`G`; None for that of all columns.
    constants : ndarray of shape (n,)
        Log densities of the rows if they were the centre and noise.
    log_volume : float
        The part of the constants that does not depend on the row.
    n_columns : int
        Number of observed columns.
    """

    index: IntArray | None
    scores: FloatArray
    gram: FloatArray | None
    constants: FloatArray
    log_volume: float
    n_columns: int

    @property
    def n_observed(self) -> IntArray:
        """Number of observed columns, (n,)."""
        return np.full(len(self.constants), self.n_columns)

    def evaluate(
        self, parameters: SubspaceParameters
    ) -> tuple[FloatArray, AlikePosterior]:
        """Return log densities (J, n), and posteriors of the latent variables."""
        regression = parameters.regression
        if self.gram is not None:
            regression = LatentRegression(parameters.latent, self.gram)
        n_components, q = parameters.latent.means.shape
        white = (regression.quadratic @ self.scores).reshape(n_components, q, -1)
        result = np.einsum("jqn,jqn->jn", white, white)
        result *= 0.5
        result += regression.linear @ self.scores
        result += self.constants
        return result, AlikePosterior(self, regression)


@dataclass(frozen=True)
class AlikePosterior:
    """Posteriors of rows that have the same columns.

    Attributes
    ----------
    rows : AlikeProjection
        The rows.
    regression : LatentRegression
        Of their latent variables.
    """

    rows: AlikeProjection
    regression: LatentRegression

    def half_log_determinants(self) -> FloatArray:
        """Half log determinants of what is observed, (J, 1)."""
        halves = self.regression.half_log_determinants - self.rows.log_volume
        return halves[:, None]

    def add_to(self, total: FullStatistics, weights: FloatArray) -> None:
        """Add expected statistics of the latent variables, signed weights (J, n)."""
        self._add(total, weights)

    def _add(self, total: FullStatistics, weights: FloatArray) -> FloatArray:
        """Add expected statistics, and return the products of all components, (q, q)."""
        h = self.rows.scores
        scaled = (weights[:, None, :] * h).reshape(-1, h.shape[1])
        # Unlike `@`, np.dot lets other threads run even when the result is small.
        moments = np.dot(scaled, h.T).reshape(len(weights), len(h), len(h))
        counts = moments[:, -1, -1]
        covariances = self.regression.covariances
        first, moved, rest = moved_moments(
            counts,
            moments[:, -1, :-1],
            moments[:, :-1, :-1],
            covariances,
            self.regression.offsets,
        )
        second = moved + rest + counts[:, None, None] * covariances
        total.counts += counts
        total.first += first
        total.second += second
        return second.sum(axis=0)

    def expect(
        self, total: FullStatistics, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add expected statistics; return means (q, n) and products of all (q, q)."""
        products = self._add(total, weights)
        return self.mean(weights), products

    def mean(self, weights: FloatArray) -> FloatArray:
        """Return expected latent variables, summed over components with weights."""
        result = np.dot(self.regression.offsets.T, weights)
        for covariance, own in zip(self.regression.covariances, weights, strict=True):
            result += np.dot(covariance, self.rows.scores[:-1] * own)
        return result

    def draw(self, generator: np.random.Generator) -> FloatArray:
        """Draw latent variables (q, n), if there is a single component."""
        n_rows = len(self.rows.constants)
        whitener = self.regression.whiteners[0]
        noise = generator.standard_normal((len(whitener), n_rows))
        return self.mean(np.ones((1, n_rows))) + whitener.T @ noise
