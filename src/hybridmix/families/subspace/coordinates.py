"""Whitened coordinates of Gaussian components in a subspace."""

from __future__ import annotations

import numpy as np
from scipy.linalg import orth

from hybridmix._typing import FloatArray
from hybridmix.families.base import Coordinates, Point
from hybridmix.families.coordinates import FullCoordinates, FullPoint, room_above
from hybridmix.families.moments import (
    FullParameters,
    FullStatistics,
    factorised,
    inverse_lower,
)
from hybridmix.families.prior import VariancePrior
from hybridmix.families.subspace.parameters import (
    LoadingStatistics,
    Subspace,
    SubspaceParameters,
    SubspaceStatistics,
)


class LatentCoordinates(Coordinates[SubspaceParameters, FullStatistics]):
    """The coordinates of the latent variables alone."""

    def __init__(self, latent: FullCoordinates, subspace: Subspace) -> None:
        self._latent = latent
        self._subspace = subspace
        self.size = latent.size

    def at(self, vector: FloatArray) -> LatentPoint:
        return LatentPoint(self._latent.at(vector), self._subspace)

    def vector(self, parameters: SubspaceParameters) -> FloatArray:
        return self._latent.vector(parameters.latent)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        return self._latent.bounds()


class LatentPoint(Point[SubspaceParameters, FullStatistics]):
    """A place in the coordinates of the latent variables."""

    def __init__(self, latent: FullPoint, subspace: Subspace) -> None:
        self.vector = latent.vector
        self._latent = latent
        self.parameters = SubspaceParameters(latent.parameters, subspace)

    def gradient(self, statistics: FullStatistics) -> FloatArray:
        return self._latent.gradient(statistics)

    def prior_gradient(self) -> FloatArray:
        return self._latent.prior_gradient()


class SubspaceCoordinates(Coordinates[SubspaceParameters, SubspaceStatistics]):
    r"""The coordinates of the latent variables, of the loading and of the noise.

    With the second moment :math:`T = L L^\top` of the latent variables at the start, the
    loading of a column is :math:`V_i = V_{0i} + \sqrt{\psi_{0i}}\, L^{-\top} u_i` and the
    deviation of its noise :math:`\sqrt{\psi_{0i}}\, e^{b_i}`. The vector holds ``u`` and
    ``b`` times the square root of the number of rows. Changes of the loading within its
    own subspace are left out: the latent variables can make them as well.
    """

    def __init__(
        self,
        latent: FullCoordinates,
        start: SubspaceParameters,
        counts: FloatArray,
        noise_prior: VariancePrior,
    ) -> None:
        self._latent = latent
        self.noise_prior = noise_prior
        self._start = start.subspace
        self._step = 1.0 / np.sqrt(max(counts.sum(), 1.0))
        _, factors = factorised(_second_moment(start.latent, counts)[None])
        self._unmixing = inverse_lower(factors[0])
        self._deviations = np.sqrt(self._start.noise)
        self._within = orth(self._start.loading / self._deviations[:, None])
        self._room = room_above(noise_prior.floor, self._deviations)
        d, q = self._start.loading.shape
        self._ends = latent.size + np.cumsum([0, d * q])
        self.size = latent.size + d * q + d

    def at(self, vector: FloatArray) -> SubspacePoint:
        return SubspacePoint(self, vector)

    def vector(self, parameters: SubspaceParameters) -> FloatArray:
        change = parameters.subspace.loading - self._start.loading
        change /= self._step * self._deviations[:, None]
        by_loading = self._leaving(change @ inverse_lower(self._unmixing))
        by_noise = np.log(parameters.subspace.noise / self._start.noise)
        return np.concatenate(
            [
                self._latent.vector(parameters.latent),
                by_loading.ravel(),
                by_noise / (2.0 * self._step),
            ]
        )

    def split(self, vector: FloatArray) -> tuple[FullPoint, Subspace]:
        """Return the place of the latent variables, and the subspace."""
        own, by_loading, by_noise = np.split(vector, self._ends)
        free = self._leaving(by_loading.reshape(self._start.loading.shape))
        change = self._step * self._deviations[:, None] * (free @ self._unmixing)
        subspace = Subspace(
            self._start.centre,
            self._start.loading + change,
            self._start.noise * np.exp(2.0 * self._step * by_noise),
        )
        return self._latent.at(own), subspace

    def joined(
        self, by_latent: FloatArray, by_loading: FloatArray, by_noise: FloatArray
    ) -> FloatArray:
        """Join derivatives, of the loading (d, q) and of log variances of the noise."""
        by_loading = by_loading * (self._step * self._deviations[:, None])
        free = self._leaving(by_loading @ self._unmixing.T)
        return np.concatenate([by_latent, free.ravel(), 2.0 * self._step * by_noise])

    def _leaving(self, changes: FloatArray) -> FloatArray:
        """Return the part of changes (d, q) that leaves the subspace of the start."""
        return changes - self._within @ (self._within.T @ changes)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = super().bounds()
        own = slice(0, self._ends[0])
        lower[own], upper[own] = self._latent.bounds()
        has_room = self._room > 0.0
        lower[self._ends[1] :] = -self._room / self._step
        upper[self._ends[1] :] = np.where(has_room, np.inf, 0.0)
        return lower, upper


class SubspacePoint(Point[SubspaceParameters, SubspaceStatistics]):
    """A place in the coordinates of the latent variables and of the subspace."""

    def __init__(self, frame: SubspaceCoordinates, vector: FloatArray) -> None:
        self.vector = vector
        self._frame = frame
        self._latent, subspace = frame.split(vector)
        self.parameters = SubspaceParameters(self._latent.parameters, subspace)

    def gradient(self, statistics: SubspaceStatistics) -> FloatArray:
        return self._frame.joined(
            self._latent.gradient(statistics.latent),
            *_subspace_gradient(self.parameters.subspace, statistics.loading),
        )

    def prior_gradient(self) -> FloatArray:
        prior, subspace = self._frame.noise_prior, self.parameters.subspace
        by_noise = 0.5 * prior.strength * (prior.variances / subspace.noise - 1.0)
        return self._frame.joined(
            self._latent.prior_gradient(), np.zeros_like(subspace.loading), by_noise
        )


def _second_moment(latent: FullParameters, counts: FloatArray) -> FloatArray:
    """Return the mean products of the latent variables over all components, (q, q)."""
    means = latent.means
    products = latent.covariances + means[:, :, None] * means[:, None, :]
    return np.average(products, axis=0, weights=np.maximum(counts, 1e-9))


def _subspace_gradient(
    subspace: Subspace, statistics: LoadingStatistics
) -> tuple[FloatArray, FloatArray]:
    r"""Return derivatives by the loading (d, q) and by log variances of the noise (d,).

    .. math:: \frac{\partial}{\partial V_i} = \psi_i^{-1} \sum r \big( (x_i - m_i) E[t]
              - E[t t^\top] V_i \big), \qquad
              \frac{\partial}{\partial \log\psi_i} = \tfrac12 \sum r \big(
              \psi_i^{-1} E[(x_i - m_i - V_i^\top t)^2] - 1 \big)
    """
    loading = subspace.loading
    by_loading = (statistics.crossed - statistics.explained) / subspace.noise[:, None]
    remaining = statistics.squares + np.sum(
        loading * (statistics.explained - 2.0 * statistics.crossed), axis=1
    )
    return by_loading, 0.5 * (remaining / subspace.noise - statistics.weights)
