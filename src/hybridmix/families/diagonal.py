"""Gaussian components with diagonal or spherical covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_instance, require_shape
from hybridmix._scratch import empty
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Family
from hybridmix.families.conjugates import Conjugate, NormalGamma
from hybridmix.families.coordinates import DiagonalCoordinates
from hybridmix.families.moments import DiagonalParameters, DiagonalStatistics
from hybridmix.families.prior import LOG_2PI, VariancePrior


@dataclass(frozen=True)
class _Features:
    """Stacked features of some rows.

    ``values`` is ``[x^2; x; 1]`` with one row of ones, or ``[x^2; x; m]`` with a row of
    the mask per column when values are missing.
    """

    values: FloatArray
    n_columns: int

    @property
    def is_masked(self) -> bool:
        return len(self.values) == 3 * self.n_columns


@registered
@dataclass(frozen=True)
class DiagonalGaussian(Family[DiagonalParameters, DiagonalStatistics]):
    r"""Gaussians with independent columns.

    .. math::

        \log p_j(x) = -\tfrac12 \sum_{i \in \text{observed}}
        \Big[ \frac{(x_i - \mu_{ji})^2}{\sigma_{ji}^2} + \log 2\pi\sigma_{ji}^2 \Big]

    The log density is linear in the features :math:`(m x^2, m x, m)`, with ``m`` the mask
    of observed values, so that densities and statistics are one matrix product each.

    Parameters
    ----------
    prior : VariancePrior
        Prior and lower bound of the variances.
    spherical : bool
        One variance for all columns of a component.
    """

    prior: VariancePrior
    spherical: bool = False

    @property
    def n_columns(self) -> int:
        """Number of real columns."""
        return len(self.prior.variances)

    def layout(self) -> tuple[int, tuple[int, ...]]:
        return self.n_columns, ()

    def check_consistent(self) -> None:
        """Raise ValueError unless the hyperparameters are of the right kind."""
        require_instance("the prior", self.prior, VariancePrior)
        require_instance("spherical", self.spherical, bool)

    def check_parameters(self, parameters: DiagonalParameters, n_components: int) -> None:
        require_instance("a set of parameters", parameters, DiagonalParameters)
        require_shape("means", parameters.means, (n_components, self.n_columns))

    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        n_masks = 1 if observed is None else self.n_columns
        return max(n_components, 2 * self.n_columns + n_masks)

    def prepare(self, rows: Rows) -> _Features:
        d = self.n_columns
        n_masks = 1 if rows.observed is None else d
        values = empty((2 * d + n_masks, rows.n_rows), rows.real.dtype)
        np.multiply(rows.real, rows.real, out=values[:d])
        values[d : 2 * d] = rows.real
        values[2 * d :] = 1.0 if rows.observed is None else rows.observed
        return _Features(values, d)

    def evaluate(
        self, prepared: _Features, parameters: DiagonalParameters
    ) -> tuple[FloatArray, None]:
        natural = parameters.masked_natural if prepared.is_masked else parameters.natural
        values = prepared.values
        natural = natural.astype(values.dtype, copy=False)
        out = empty((len(natural), values.shape[1]), values.dtype)
        return np.dot(natural, values, out=out), None

    def accumulate(
        self,
        prepared: _Features,
        parameters: DiagonalParameters,
        weights: FloatArray,
        notes: None = None,
    ) -> DiagonalStatistics:
        d = prepared.n_columns
        # Unlike `@`, np.dot lets other threads run even when the result is small.
        values = prepared.values
        sums = empty((len(weights), len(values)), values.dtype)
        np.dot(weights.astype(values.dtype, copy=False), values.T, out=sums)
        counts = np.broadcast_to(sums[:, 2 * d :], (len(weights), d))
        return DiagonalStatistics(counts, sums[:, d : 2 * d], sums[:, :d])

    def zero_statistics(self, n_components: int) -> DiagonalStatistics:
        shape = (n_components, self.n_columns)
        return DiagonalStatistics(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def offers(self, capability: str) -> bool:
        lacks = self.spherical and capability == "conjugate"
        return super().offers(capability) and not lacks

    def conjugate(self) -> Conjugate:
        if self.spherical:
            return super().conjugate()
        return NormalGamma(self.n_columns, self.prior.floor)

    def maximise(self, statistics: DiagonalStatistics) -> DiagonalParameters:
        counts = np.maximum(statistics.counts, 0.0)
        seen = counts > np.finfo(float).tiny
        means = np.divide(statistics.first, counts, out=np.zeros_like(counts), where=seen)
        squares = np.maximum(statistics.second - means * statistics.first, 0.0)
        if self.spherical:
            total = self.prior.posterior_mean(
                squares.sum(axis=1, keepdims=True),
                counts.sum(axis=1, keepdims=True),
                self.prior.variances.mean(),
                pseudo_counts=self.prior.strength * self.n_columns,
            )
            variances = np.repeat(total, self.n_columns, axis=1)
        else:
            variances = self.prior.posterior_mean(squares, counts, self.prior.variances)
        return DiagonalParameters(means, np.maximum(variances, self.prior.floor))

    def expected_statistics(
        self, parameters: DiagonalParameters, counts: FloatArray
    ) -> DiagonalStatistics:
        means = parameters.means
        filled = np.repeat(counts[:, None], self.n_columns, axis=1)
        return DiagonalStatistics(
            filled, filled * means, filled * (parameters.variances + means**2)
        )

    def proper(self, statistics: DiagonalStatistics) -> BoolArray:
        counted = statistics.counts > 0.0
        divisor = np.where(counted, statistics.counts, 1.0)
        with np.errstate(over="ignore"):  # few counts, large sums: improper
            squares = statistics.second - statistics.first**2 / divisor
        if self.spherical:
            squares = squares.sum(axis=1, keepdims=True)
        return np.all(counted, axis=1) & np.all(squares > 0.0, axis=1)

    def _prior_variances(self) -> FloatArray:
        if self.spherical:
            return np.full(self.n_columns, self.prior.variances.mean())
        return self.prior.variances

    def log_prior(self, parameters: DiagonalParameters) -> float:
        ratio = self._prior_variances() / parameters.variances
        return (
            -0.5
            * self.prior.strength
            * float(np.sum(np.log(parameters.variances) + ratio))
        )

    def collapsed(self, parameters: DiagonalParameters) -> BoolArray:
        return np.all(parameters.variances <= self.prior.floor, axis=1)

    def coordinates(
        self, start: DiagonalParameters, counts: FloatArray
    ) -> DiagonalCoordinates:
        prior = replace(self.prior, variances=self._prior_variances())
        return DiagonalCoordinates(start, counts, prior, self.spherical)

    def impute(
        self, rows: Rows, parameters: DiagonalParameters, posterior: FloatArray
    ) -> Rows:
        if rows.observed is None:
            return rows
        mean = parameters.means.T @ posterior
        return Rows(np.where(rows.observed, rows.real, mean), None, rows.codes)

    def draw(
        self,
        rows: Rows,
        parameters: DiagonalParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        if rows.observed is None:
            return rows
        drawn = self.sample(parameters, components, generator).real
        return Rows(np.where(rows.observed, rows.real, drawn), None, rows.codes)

    def sample(
        self,
        parameters: DiagonalParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        noise = generator.standard_normal((len(components), self.n_columns))
        deviation = np.sqrt(parameters.variances[components])
        real = parameters.means[components] + deviation * noise
        return Rows(real.T, None, np.empty((0, len(components)), np.int32))

    def marginal(
        self, parameters: DiagonalParameters, real: list[int], codes: list[int]
    ) -> tuple[DiagonalGaussian, DiagonalParameters]:
        kept = DiagonalParameters(
            parameters.means[:, real], parameters.variances[:, real]
        )
        return DiagonalGaussian(self.prior.marginal(real), self.spherical), kept

    def surprise(
        self, prepared: _Features, parameters: DiagonalParameters, notes: None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        half_log_volume = 0.5 * (np.log(parameters.variances) + LOG_2PI)
        if prepared.is_masked:
            mask = prepared.values[2 * prepared.n_columns :]
        else:
            mask = np.ones((prepared.n_columns, prepared.values.shape[1]))
        offset = half_log_volume @ mask
        mean = np.broadcast_to(0.5 * mask.sum(axis=0), offset.shape)
        return offset, mean, mean

    def n_parameters(self, n_components: int) -> int:
        per_component = self.n_columns + (1 if self.spherical else self.n_columns)
        return n_components * per_component
