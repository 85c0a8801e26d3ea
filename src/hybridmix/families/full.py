"""Gaussian components with full covariances, one each or one for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_instance, require_shape
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import PASSING, Family, Notes
from hybridmix.families.conjugates import Conjugate, NormalWishart
from hybridmix.families.coordinates import FullCoordinates
from hybridmix.families.diagonal import DiagonalGaussian
from hybridmix.families.groups import assemble
from hybridmix.families.moments import (
    FullParameters,
    FullStatistics,
    TiedStatistics,
    inverse_lower,
    raised,
)
from hybridmix.families.patterns import RowGroup, group_rows
from hybridmix.families.prior import LOG_2PI, VariancePrior

# Matrices that a covariance takes in training: itself, whitener and precision, products
# of rows, and what an M-step computes on the way.
_MATRICES = 8


@registered
@dataclass(frozen=True)
class FullGaussian(Family[FullParameters, FullStatistics]):
    r"""Gaussians with any covariance.

    .. math::

        \log p_j(x) = -\tfrac12 \big[ (x_o - \mu_o)^\top \Sigma_{oo}^{-1} (x_o - \mu_o)
        + \log|2\pi\Sigma_{oo}| \big]

    over the observed columns ``o`` of each row. The statistics of a missing block are its
    conditional mean and second moment, with the conditional covariance.

    Parameters
    ----------
    prior : VariancePrior
        Prior and lower bound of the variances.
    tied : bool
        One covariance for all components.
    """

    prior: VariancePrior
    tied: bool = False

    @property
    def n_columns(self) -> int:
        """Number of real columns."""
        return len(self.prior.variances)

    @property
    def ties_components(self) -> bool:
        return self.tied

    def layout(self) -> tuple[int, tuple[int, ...]]:
        return self.n_columns, ()

    def check_consistent(self) -> None:
        """Raise ValueError unless the hyperparameters are of the right kind."""
        require_instance("the prior", self.prior, VariancePrior)
        require_instance("tied", self.tied, bool)

    def check_parameters(self, parameters: FullParameters, n_components: int) -> None:
        require_instance("a set of parameters", parameters, FullParameters)
        require_shape("means", parameters.means, (n_components, self.n_columns))
        copies = 1 if self.tied else n_components
        require(
            len(parameters.covariances) == copies,
            f"there are not {copies} covariances for {n_components} components",
        )

    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        copies = 1 if self.tied else n_components
        width = copies * (self.n_columns + 1)
        if observed is not None:
            # Every row with holes has an inverse of its own, for each covariance. They
            # are kept, but not gone through time and again, and count less for it.
            n_observed = observed.sum(axis=0)
            size = np.minimum(n_observed, self.n_columns - n_observed)
            width += copies * int(np.mean(np.square(size))) // 8
        return max(n_components, width)

    def work(self, n_components: int, observed: BoolArray | None = None) -> int:
        d = self.n_columns
        copies = 1 if self.tied else n_components
        work = copies * d * (d + PASSING) + n_components * (d + PASSING)
        if observed is not None:
            n_observed = observed.sum(axis=0)
            size = np.minimum(n_observed, d - n_observed).astype(float)
            work += copies * int(np.mean(size * size * (2.0 * size + PASSING)))
        return work

    def parameter_bytes(self, n_components: int) -> int:
        copies = 1 if self.tied else n_components
        vectors = 4 * n_components * self.n_columns
        return 8 * (vectors + _MATRICES * copies * self.n_columns**2)

    def prepare(self, rows: Rows) -> list[RowGroup]:
        return group_rows(rows)

    def evaluate(
        self, prepared: list[RowGroup], parameters: FullParameters
    ) -> tuple[FloatArray, list[Notes]]:
        results, notes = zip(
            *(group.evaluate(parameters) for group in prepared), strict=True
        )
        return assemble(prepared, list(results)), list(notes)

    def accumulate(
        self,
        prepared: list[RowGroup],
        parameters: FullParameters,
        weights: FloatArray,
        notes: list[Notes],
    ) -> FullStatistics:
        total = self.zero_statistics(len(weights))
        for group, note in zip(prepared, notes, strict=True):
            own = weights if group.index is None else weights[:, group.index]
            group.add_to(total, parameters, own, note)
        return total

    def zero_statistics(self, n_components: int) -> FullStatistics:
        if self.tied:
            return TiedStatistics.zero(n_components, self.n_columns, 1)
        return FullStatistics.zero(n_components, self.n_columns)

    def offers(self, capability: str) -> bool:
        lacks = self.tied and capability == "conjugate"
        return super().offers(capability) and not lacks

    def conjugate(self) -> Conjugate:
        if self.tied:
            return super().conjugate()
        return NormalWishart(self.n_columns, self.prior.floor)

    def maximise(self, statistics: FullStatistics) -> FullParameters:
        counts = np.maximum(statistics.counts, 0.0)
        means, scatter = self._centred(statistics)
        if self.tied:
            counts = counts.sum(keepdims=True)
        covariances = self.prior.posterior_mean(
            scatter,
            counts[:, None, None],
            self.prior.covariance,
        )
        covariances = 0.5 * (covariances + np.swapaxes(covariances, 1, 2))
        return FullParameters.of(means, raised(covariances, self.prior.floor))

    def _centred(self, statistics: FullStatistics) -> tuple[FloatArray, FloatArray]:
        """Return means (J, d) and sums of products about them (G, d, d)."""
        seen = statistics.counts > np.finfo(float).tiny
        divisor = np.where(seen, statistics.counts, 1.0)[:, None]
        means = np.where(seen[:, None], statistics.first / divisor, 0.0)
        between = statistics.first[:, :, None] * means[:, None, :]
        if self.tied:
            between = between.sum(axis=0, keepdims=True)
        return means, statistics.second - between

    def expected_statistics(
        self, parameters: FullParameters, counts: FloatArray
    ) -> FullStatistics:
        result = self.zero_statistics(len(counts))
        means = parameters.means
        result.counts += counts
        result.first += counts[:, None] * means
        products = parameters.covariances + means[:, :, None] * means[:, None, :]
        products *= counts[:, None, None]
        result.second += products.sum(axis=0, keepdims=True) if self.tied else products
        return result

    def proper(self, statistics: FullStatistics) -> BoolArray:
        counted = statistics.counts > 0.0
        if self.tied and not counted.all():
            return np.zeros(len(counted), dtype=bool)
        _, scatter = self._centred(statistics)
        symmetric = 0.5 * (scatter + np.swapaxes(scatter, 1, 2))
        return counted & (np.linalg.eigvalsh(symmetric)[:, 0] > 0.0)

    def start(self, rows: Rows, weights: FloatArray) -> FullParameters:
        rough = DiagonalGaussian(self.prior).start(rows, weights)
        covariances = np.zeros((*rough.variances.shape, self.n_columns))
        diagonal = np.arange(self.n_columns)
        covariances[:, diagonal, diagonal] = rough.variances
        if self.tied:
            share = np.maximum(weights.sum(axis=1), np.finfo(float).tiny)
            covariances = np.average(covariances, axis=0, weights=share)[None]
        parameters = FullParameters.of(rough.means, covariances)
        return self.maximise(self.summarise(rows, parameters, weights))

    def log_prior(self, parameters: FullParameters) -> float:
        traces = np.einsum("gij,ij->g", parameters.precisions, self.prior.covariance)
        half_log_determinants = parameters.half_log_determinants.sum()
        return -self.prior.strength * float(half_log_determinants + 0.5 * traces.sum())

    def within_bounds(self, parameters: FullParameters) -> FullParameters:
        covariances = raised(parameters.covariances, self.prior.floor)
        if covariances is parameters.covariances:
            return parameters
        return FullParameters.of(parameters.means, covariances)

    def collapsed(self, parameters: FullParameters) -> BoolArray:
        if self.tied:
            return np.zeros(len(parameters.means), dtype=bool)
        diagonal = np.diagonal(parameters.covariances, axis1=1, axis2=2)
        return np.all(diagonal <= self.prior.floor * (1.0 + 1e-6), axis=1)

    def coordinates(self, start: FullParameters, counts: FloatArray) -> FullCoordinates:
        return FullCoordinates(start, counts, self.prior)

    def impute(
        self, rows: Rows, parameters: FullParameters, posterior: FloatArray
    ) -> Rows:
        if rows.observed is None:
            return rows
        expected = self._expected(rows, parameters)
        mean = np.einsum("jdn,jn->dn", expected, posterior)
        return Rows(np.where(rows.observed, rows.real, mean), None, rows.codes)

    def _expected(self, rows: Rows, parameters: FullParameters) -> FloatArray:
        """Return the rows with holes filled by each component, (J, d, n)."""
        prepared = self.prepare(rows)
        _, notes = self.evaluate(prepared, parameters)
        pairs = zip(prepared, notes, strict=True)
        return assemble(
            prepared, [group.filled(parameters, note) for group, note in pairs]
        )

    def draw(
        self,
        rows: Rows,
        parameters: FullParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        if rows.observed is None:
            return rows
        # A draw z of the whole row has the right spread about its own regression on z_o:
        # E[x_m | x_o] + z_m - E[z_m | z_o] is a draw of x_m given x_o.
        drawn = self.sample(parameters, components, generator).real
        replica = Rows(np.where(rows.observed, drawn, 0.0), rows.observed, rows.codes)
        real = rows.real.copy()
        for j in np.unique(components):
            index = np.flatnonzero(components == j)
            one = parameters.take(slice(j, j + 1))
            filled = self._expected(rows[index], one)[0]
            refilled = self._expected(replica[index], one)[0]
            hole = ~rows.observed[:, index]
            new = filled + drawn[:, index] - refilled
            real[:, index] = np.where(hole, new, rows.real[:, index])
        return Rows(real, None, rows.codes)

    def sample(
        self,
        parameters: FullParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        noise = generator.standard_normal((len(components), self.n_columns))
        factors = inverse_lower(parameters.whiteners)
        if self.tied:
            correlated = noise @ factors[0].T
        else:
            correlated = np.empty_like(noise)
            for j in np.unique(components):
                chosen = components == j
                correlated[chosen] = noise[chosen] @ factors[j].T
        real = parameters.means[components] + correlated
        return Rows(real.T, None, np.empty((0, len(components)), np.int32))

    def marginal(
        self, parameters: FullParameters, real: list[int], codes: list[int]
    ) -> tuple[FullGaussian, FullParameters]:
        family = FullGaussian(self.prior.marginal(real), self.tied)
        return family, parameters.marginal(np.asarray(real, dtype=np.intp))

    def surprise(
        self, prepared: list[RowGroup], parameters: FullParameters, notes: list[Notes]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        n_components = len(parameters.means)
        half_log_determinants = assemble(
            prepared,
            [
                np.broadcast_to(
                    group.half_log_determinants(note),
                    (n_components, len(group.n_observed)),
                )
                for group, note in zip(prepared, notes, strict=True)
            ],
        )
        half = 0.5 * assemble(prepared, [group.n_observed for group in prepared])
        mean = np.broadcast_to(half, half_log_determinants.shape)
        return half_log_determinants + LOG_2PI * half, mean, mean

    def concatenate(
        self, parts: list[FullParameters], counts: list[float]
    ) -> FullParameters:
        if not self.tied:
            return super().concatenate(parts, counts)
        shared = np.average(
            [part.covariances[0] for part in parts], axis=0, weights=counts
        )
        means = np.concatenate([part.means for part in parts])
        return FullParameters.of(means, shared[None])

    def n_parameters(self, n_components: int) -> int:
        d = self.n_columns
        copies = 1 if self.tied else n_components
        return n_components * d + copies * d * (d + 1) // 2
