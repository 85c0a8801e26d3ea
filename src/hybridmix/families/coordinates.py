"""Whitened coordinates of Gaussian components, for gradient methods."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.families.base import Coordinates, Point
from hybridmix.families.moments import (
    DiagonalParameters,
    DiagonalStatistics,
    FullParameters,
    FullStatistics,
    inverse_lower,
)
from hybridmix.families.prior import VariancePrior

# A deviation that is nearer to the floor than this, relatively, is at the floor.
_AT_THE_FLOOR = 1e-3
# No deviation grows by more than this factor. Rivals that nothing speaks for can be
# driven to be broader and broader, up to where double precision ends.
_MOST_GROWTH = 100.0


def room_above(floor: float, deviations: FloatArray) -> FloatArray:
    """Return how far log deviations may fall to keep variances above a floor.

    There is no room for those at the floor: columns that never vary say nothing about the
    classes, and their variances are not moved at all.
    """
    room = np.log(deviations) - 0.5 * np.log(floor)
    return np.where(room > _AT_THE_FLOOR, room, 0.0)


class DiagonalCoordinates(Coordinates[DiagonalParameters, DiagonalStatistics]):
    r"""Whitened coordinates of diagonal Gaussians.

    With :math:`y = (x - \mu_0) / \sigma_0` at the start, a component is
    :math:`z = e^{b} y - u`, a standard normal: :math:`\sigma = \sigma_0 e^{-b}` and
    :math:`\mu = \mu_0 + \sigma u`. The vector holds ``u`` and ``b`` times the square root
    of the component's row count.
    """

    def __init__(
        self,
        start: DiagonalParameters,
        counts: FloatArray,
        prior: VariancePrior,
        spherical: bool,
    ) -> None:
        self.prior_strength = prior.strength
        self.prior_ratio = prior.variances / start.variances
        self.means = start.means
        self.deviations = np.sqrt(start.variances)
        self._room = room_above(prior.floor, self.deviations)
        self._step = 1.0 / np.sqrt(np.maximum(counts, 1.0))[:, None]
        self._n_scales = 1 if spherical else start.means.shape[1]
        self.size = start.means.size + len(start.means) * self._n_scales

    def at(self, vector: FloatArray) -> DiagonalPoint:
        return DiagonalPoint(self, vector)

    def vector(self, parameters: DiagonalParameters) -> FloatArray:
        deviations = np.sqrt(parameters.variances)
        shift = (parameters.means - self.means) / deviations
        log_scale = np.log(self.deviations / deviations)[:, : self._n_scales]
        return np.concatenate(
            [(shift / self._step).ravel(), (log_scale / self._step).ravel()]
        )

    def split(self, vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shifts ``u`` (J, d), and the log scales ``b`` (J, d or 1)."""
        n_shifts = self.means.size
        shift = vector[:n_shifts].reshape(self.means.shape) * self._step
        log_scale = vector[n_shifts:].reshape(-1, self._n_scales) * self._step
        return shift, log_scale

    def joined(self, by_shift: FloatArray, by_scale: FloatArray) -> FloatArray:
        """Join derivatives by shifts and log scales to those by the vector."""
        if self._n_scales == 1:
            by_scale = by_scale.sum(axis=1, keepdims=True)
        return np.concatenate(
            [(by_shift * self._step).ravel(), (by_scale * self._step).ravel()]
        )

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = super().bounds()
        room = self._room[:, : self._n_scales]
        growth = np.where(room > 0.0, np.log(_MOST_GROWTH), 0.0)
        lower[self.means.size :] = -(growth / self._step).ravel()
        upper[self.means.size :] = (room / self._step).ravel()
        return lower, upper


class DiagonalPoint(Point[DiagonalParameters, DiagonalStatistics]):
    """A place in the coordinates of diagonal Gaussians."""

    def __init__(self, frame: DiagonalCoordinates, vector: FloatArray) -> None:
        self.vector = vector
        self._frame = frame
        self._shift, self._log_scale = frame.split(vector)
        deviations = frame.deviations * np.exp(-self._log_scale)
        self.parameters = DiagonalParameters(
            frame.means + deviations * self._shift, deviations**2
        )

    def gradient(self, statistics: DiagonalStatistics) -> FloatArray:
        frame, shift = self._frame, self._shift
        counts = statistics.counts
        first = (statistics.first - counts * frame.means) / frame.deviations
        second = (
            statistics.second
            - 2.0 * frame.means * statistics.first
            + counts * frame.means**2
        ) / frame.deviations**2
        scale = np.exp(self._log_scale)
        by_shift = scale * first - counts * shift
        by_scale = counts - scale**2 * second + shift * scale * first
        return frame.joined(by_shift, by_scale)

    def prior_gradient(self) -> FloatArray:
        frame = self._frame
        ratio = np.exp(2.0 * self._log_scale) * frame.prior_ratio
        return frame.joined(
            np.zeros_like(frame.means), frame.prior_strength * (1.0 - ratio)
        )


class FullCoordinates(Coordinates[FullParameters, FullStatistics]):
    r"""Whitened coordinates of full Gaussians.

    With the whitener :math:`A_0` of the start and :math:`y = A_0 (x - \mu_0)`, a
    component is :math:`z = B y - u`, a standard normal, with ``B`` lower triangular and
    given by the logarithms of its diagonal: :math:`A = B A_0` and
    :math:`\mu = \mu_0 + A^{-1} u`. The vector holds ``u`` and ``B`` times the square root
    of the row count.
    """

    def __init__(
        self, start: FullParameters, counts: FloatArray, prior: VariancePrior
    ) -> None:
        self.start = start
        self.prior_strength = prior.strength
        # The prior's covariance, where the start is white.
        self.prior = (
            start.whiteners @ prior.covariance @ np.swapaxes(start.whiteners, 1, 2)
        )
        pivots = 1.0 / np.diagonal(start.whiteners, axis1=1, axis2=2)
        self._room = room_above(prior.floor, pivots)
        n_components, d = start.means.shape
        filled = np.maximum(counts, 1.0)
        self._shift_step = 1.0 / np.sqrt(filled)[:, None]
        per_matrix = filled if len(start.whiteners) == n_components else filled.sum()
        self._matrix_step = 1.0 / np.sqrt(np.atleast_1d(per_matrix))[:, None]
        self._lower = np.tril_indices(d)
        self._is_diagonal = self._lower[0] == self._lower[1]
        self.size = start.means.size + len(start.whiteners) * len(self._lower[0])

    def at(self, vector: FloatArray) -> FullPoint:
        return FullPoint(self, vector)

    def vector(self, parameters: FullParameters) -> FloatArray:
        moved = (parameters.means - self.start.means)[:, :, None]
        shift = np.squeeze(parameters.whiteners @ moved, axis=2)
        matrices = parameters.whiteners @ inverse_lower(self.start.whiteners)
        packed = matrices[:, self._lower[0], self._lower[1]]
        packed[:, self._is_diagonal] = np.log(packed[:, self._is_diagonal])
        return np.concatenate(
            [(shift / self._shift_step).ravel(), (packed / self._matrix_step).ravel()]
        )

    def split(self, vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shifts ``u`` (J, d), and the matrices ``B`` (G, d, d)."""
        n_shifts = self.start.means.size
        shift = vector[:n_shifts].reshape(self.start.means.shape) * self._shift_step
        packed = vector[n_shifts:].reshape(len(self.start.whiteners), -1)
        packed = packed * self._matrix_step
        matrices = np.zeros_like(self.start.whiteners)
        matrices[:, self._lower[0], self._lower[1]] = np.where(
            self._is_diagonal, np.exp(packed), packed
        )
        return shift, matrices

    def joined(
        self,
        by_shift: FloatArray,
        by_matrix: FloatArray,
        matrices: FloatArray,
        counts: FloatArray | float,
    ) -> FloatArray:
        """Join derivatives; those by the diagonals are by their logarithms.

        Each logarithm of a diagonal also counts in the log determinant.
        """
        packed = by_matrix[:, self._lower[0], self._lower[1]]
        packed[:, self._is_diagonal] *= np.diagonal(matrices, axis1=1, axis2=2)
        packed[:, self._is_diagonal] += counts
        return np.concatenate(
            [(by_shift * self._shift_step).ravel(), (packed * self._matrix_step).ravel()]
        )

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = super().bounds()
        n_shifts = self.start.means.size
        # Views, so that the diagonals can be set in place.
        least = lower[n_shifts:].reshape(len(self._room), -1)
        largest = upper[n_shifts:].reshape(len(self._room), -1)
        growth = np.where(self._room > 0.0, np.log(_MOST_GROWTH), 0.0)
        least[:, self._is_diagonal] = -growth / self._matrix_step
        largest[:, self._is_diagonal] = self._room / self._matrix_step
        return lower, upper


class FullPoint(Point[FullParameters, FullStatistics]):
    """A place in the coordinates of full Gaussians."""

    def __init__(self, frame: FullCoordinates, vector: FloatArray) -> None:
        self.vector = vector
        self._frame = frame
        self._shift, self._matrices = frame.split(vector)
        whiteners = self._matrices @ frame.start.whiteners
        factors = inverse_lower(whiteners)
        moved = np.squeeze(factors @ self._shift[:, :, None], axis=2)
        self.parameters = FullParameters(
            frame.start.means + moved, factors @ np.swapaxes(factors, 1, 2), whiteners
        )

    def gradient(self, statistics: FullStatistics) -> FloatArray:
        shift, matrices = self._shift, self._matrices
        whiteners, means = self._frame.start.whiteners, self._frame.start.means
        counts = statistics.counts[:, None]
        centred = statistics.first - counts * means
        first = np.squeeze(whiteners @ centred[:, :, None], axis=2)
        crossed = means[:, :, None] * centred[:, None, :]
        crossed = crossed + statistics.first[:, :, None] * means[:, None, :]
        pulled = shift[:, :, None] * first[:, None, :]
        if len(whiteners) < len(means):
            crossed = crossed.sum(axis=0, keepdims=True)
            pulled = pulled.sum(axis=0, keepdims=True)
            counts = counts.sum(keepdims=True)
        second = whiteners @ (statistics.second - crossed) @ np.swapaxes(whiteners, 1, 2)
        by_shift = np.squeeze(matrices @ first[:, :, None], axis=2)
        by_shift -= statistics.counts[:, None] * shift
        return self._frame.joined(by_shift, pulled - matrices @ second, matrices, counts)

    def prior_gradient(self) -> FloatArray:
        return self._spread_gradient(self._frame.prior_strength, self._frame.prior)

    def spread_gradient(self, strength: float, scatter: FloatArray) -> FloatArray:
        r"""Return the gradient of what rows about their means would add.

        It is that of :math:`-\tfrac{\nu}{2} [\log|\Sigma| +
        \operatorname{tr}(\Sigma^{-1} S)]` for the strength ``nu`` and the scatter ``S``,
        (G, d, d).
        """
        whiteners = self._frame.start.whiteners
        white = whiteners @ scatter @ np.swapaxes(whiteners, 1, 2)
        return self._spread_gradient(strength, white)

    def _spread_gradient(self, strength: float, white: FloatArray) -> FloatArray:
        """Return the same for a scatter where the start is white."""
        by_matrix = -strength * (self._matrices @ white)
        return self._frame.joined(
            np.zeros_like(self._shift), by_matrix, self._matrices, strength
        )
