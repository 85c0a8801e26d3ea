"""Rows that have different columns, seen through a subspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.families.moments import (
    FullParameters,
    FullStatistics,
    factorised,
    inverse_lower,
)
from hybridmix.families.subspace.parameters import (
    LoadingStatistics,
    Subspace,
    SubspaceParameters,
)

# Weights that are smaller than this share of the largest one change nothing.
_NEGLIGIBLE = 1e-14


@dataclass(frozen=True)
class MixedRows:
    """Rows that have different columns observed.

    Attributes
    ----------
    index : ndarray
        Which rows these are.
    real, observed : ndarray of shape (d, n)
        Values, 0 where missing, and mask.
    """

    index: IntArray
    real: FloatArray
    observed: BoolArray

    def _error(self, subspace: Subspace) -> FloatArray:
        return np.where(self.observed, self.real - subspace.centre[:, None], 0.0)

    def project(self, subspace: Subspace) -> MixedProjection:
        """Return what the rows say about the latent variables."""
        error = self._error(subspace)
        scores = np.dot(subspace.scaled.T, error)
        squares = np.dot(1.0 / subspace.noise, np.square(error, out=error))
        return MixedProjection(
            self.index,
            np.ascontiguousarray(scores.T),
            subspace.grams(self.observed),
            squares,
            np.dot(subspace.log_volumes, self.observed),
            self.observed.sum(axis=0),
        )

    def add_moments(
        self,
        total: LoadingStatistics,
        subspace: Subspace,
        weights: FloatArray,
        mean: FloatArray,
    ) -> None:
        """Add moments of the columns, given weights and means of latent variables."""
        error = self._error(subspace)
        total.weights += np.dot(self.observed, weights)
        total.crossed += np.dot(error, mean.T)
        total.squares += np.dot(np.square(error, out=error), weights)

    def add_explained(
        self, total: LoadingStatistics, subspace: Subspace, products: FloatArray
    ) -> None:
        """Add what the loading explains, given products of latent variables."""
        total.explained += subspace.explained(self.observed, products)

    def add_grams(self, total: FloatArray, products: FloatArray) -> None:
        """Add products of latent variables (n, q, q) for every column."""
        n_rows, q, _ = products.shape
        sums = np.dot(self.observed.astype(float), products.reshape(n_rows, q * q))
        total += sums.reshape(total.shape)


@dataclass(frozen=True)
class MixedProjection:
    r"""What rows that have different columns say about the latent variables.

    Every row and component has a posterior precision :math:`M_{nj} = S_j^{-1} + G_n` of
    its own.

    Attributes
    ----------
    index : ndarray
        Which rows these are.
    scores : ndarray of shape (n, q)
        :math:`h` of the rows.
    grams : ndarray of shape (n, q, q)
        :math:`G` of the rows.
    squares : ndarray of shape (n,)
        Squared distances from the centre, in units of the noise.
    log_volumes : ndarray of shape (n,)
        Sums of :math:`\log 2\pi\psi_i` over the observed columns.
    n_observed : ndarray of shape (n,)
        Number of observed columns.
    """

    index: IntArray
    scores: FloatArray
    grams: FloatArray
    squares: FloatArray
    log_volumes: FloatArray
    n_observed: IntArray

    def evaluate(
        self, parameters: SubspaceParameters
    ) -> tuple[FloatArray, MixedPosterior]:
        r"""Return log densities (J, n), and posteriors of the latent variables.

        With :math:`e = x_o - m_o - V_o a_j` and :math:`g = h - G a_j`, the quadratic form
        is :math:`e^\top \Psi_o^{-1} e - g^\top M^{-1} g`. Bordered by ``g``, the Cholesky
        factor of ``M`` has a last row of the square :math:`g^\top M^{-1} g`.
        """
        latent = parameters.latent
        n_rows, q = self.scores.shape
        shape = (len(latent.means), n_rows)
        result, halves = np.empty(shape), np.empty(shape)
        bordered = np.zeros((n_rows, q + 1, q + 1))
        triples = zip(
            latent.means, latent.precisions, latent.half_log_determinants, strict=True
        )
        for j, (mean, precision, half) in enumerate(triples):
            pulls = self.grams @ mean
            crossed = (pulls - 2.0 * self.scores) @ mean
            squares = self.squares + crossed
            np.add(self.grams, precision, out=bordered[:, :q, :q])
            np.subtract(self.scores, pulls, out=bordered[:, q, :q])
            # Any number that is larger than the square would do, also after rounding.
            bordered[:, q, q] = 1.0 + 2.0 * (self.squares + np.abs(crossed))
            _, factors = factorised(bordered)
            diagonals = np.diagonal(factors, axis1=1, axis2=2)[:, :q]
            halves[j] = half + np.log(diagonals).sum(axis=1)
            last = factors[:, q, :q]
            explained = np.einsum("nq,nq->n", last, last)
            result[j] = 0.5 * np.minimum(explained - squares, 0.0)
        halves += 0.5 * self.log_volumes
        return result - halves, MixedPosterior(self, latent, halves)


class Belief(NamedTuple):
    """Posteriors of the latent variables of some rows, for one component.

    Attributes
    ----------
    component : int
        Number of the component.
    rows, weights : ndarray of shape (m,)
        Which rows these are, and their weights.
    means : ndarray of shape (m, q)
    covariances : ndarray of shape (m, q, q)
    """

    component: int
    rows: IntArray
    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    def add_to(self, total: FullStatistics) -> None:
        """Add weighted moments."""
        scaled = self.means * self.weights[:, None]
        spread = np.tensordot(self.weights, self.covariances, axes=1)
        total.counts[self.component] += self.weights.sum()
        total.first[self.component] += scaled.sum(axis=0)
        total.second[self.component] += np.dot(scaled.T, self.means) + spread


@dataclass(frozen=True)
class MixedPosterior:
    """Posteriors of rows that have different columns.

    They are computed where they are needed, since those of all components would not fit
    into memory.

    Attributes
    ----------
    rows : MixedProjection
        The rows.
    latent : FullParameters
        The mixture.
    halves : ndarray of shape (J, n)
        Half log determinants of what is observed.
    """

    rows: MixedProjection
    latent: FullParameters
    halves: FloatArray

    def half_log_determinants(self) -> FloatArray:
        """Half log determinants of what is observed, (J, n)."""
        return self.halves

    def _beliefs(self, weights: FloatArray) -> Iterator[Belief]:
        """Yield posteriors of the components, for the rows whose weights count."""
        least = _NEGLIGIBLE * np.abs(weights).max(initial=0.0)
        pairs = zip(self.latent.means, self.latent.precisions, strict=True)
        for j, (mean, precision) in enumerate(pairs):
            rows = np.flatnonzero(np.abs(weights[j]) > least)
            if len(rows) == 0:
                continue
            grams = self.rows.grams
            if len(rows) < len(grams):
                grams = grams[rows]
            whiteners = inverse_lower(factorised(grams + precision)[1])
            covariances = np.swapaxes(whiteners, 1, 2) @ whiteners
            pulls = self.rows.scores[rows] - grams @ mean
            means = mean + np.squeeze(covariances @ pulls[:, :, None], axis=2)
            yield Belief(j, rows, weights[j, rows], means, covariances)

    def add_to(self, total: FullStatistics, weights: FloatArray) -> None:
        """Add expected statistics of the latent variables, signed weights (J, n)."""
        for belief in self._beliefs(weights):
            belief.add_to(total)

    def expect(
        self, total: FullStatistics, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add expected statistics; return means (q, n) and products (n, q, q)."""
        mean = np.zeros(self.rows.scores.shape)
        products = np.zeros(self.rows.grams.shape)
        for belief in self._beliefs(weights):
            belief.add_to(total)
            own = belief.means * belief.weights[:, None]
            mean[belief.rows] += own
            products[belief.rows] += own[:, :, None] * belief.means[:, None, :]
            products[belief.rows] += belief.weights[:, None, None] * belief.covariances
        return mean.T, products

    def mean(self, weights: FloatArray) -> FloatArray:
        """Return expected latent variables, summed over components with weights."""
        result = np.zeros(self.rows.scores.shape)
        for belief in self._beliefs(weights):
            result[belief.rows] += belief.means * belief.weights[:, None]
        return result.T

    def draw(self, generator: np.random.Generator) -> FloatArray:
        """Draw latent variables (q, n), if there is a single component."""
        noise = generator.standard_normal((*self.rows.scores.shape, 1))
        _, factors = factorised(self.rows.grams + self.latent.precisions)
        spread = np.linalg.solve(np.swapaxes(factors, 1, 2), noise)
        mean = self.mean(np.ones((1, len(self.rows.scores))))
        return mean + np.squeeze(spread, axis=2).T
