"""Gaussian components whose covariances differ within a common subspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import PASSING, Coordinates, Family, Notes, Prepared
from hybridmix.families.full import FullGaussian
from hybridmix.families.groups import assemble, split_by_pattern
from hybridmix.families.moments import FullParameters
from hybridmix.families.prior import VariancePrior
from hybridmix.families.subspace.coordinates import (
    LatentCoordinates,
)
from hybridmix.families.subspace.parameters import (
    Subspace,
    SubspaceParameters,
)
from hybridmix.families.subspace.projections import (
    FREQUENT,
    Posterior,
    Projection,
    group_latent_rows,
    project,
    weights_of,
)

# Passes over rows with given memberships that a start takes: the first one believes all
# rows to be around the centre, and rows with few columns do not contradict at once.
_START_PASSES = 4

# Those of the latent variables; a subspace that moves adds its own.
LatentStatistics: TypeAlias = Any


@registered
@dataclass(frozen=True)
class SubspaceGaussian(Family[SubspaceParameters, LatentStatistics]):
    r"""Gaussians with free covariances in a subspace, and common noise in all columns.

    .. math:: x = m + V t + \varepsilon, \qquad t \mid j \sim \mathcal N(a_j, S_j), \qquad
              \varepsilon \sim \mathcal N(0, \Psi)

    .. math:: x \mid j \sim \mathcal N(m + V a_j,\; V S_j V^\top + \Psi)

    Many columns then cost as little as the few latent variables :math:`t`. These are
    missing in all rows: statistics are expected ones of :math:`t`, and estimation is that
    of full covariances for them. The subspace, which all components share, stays as it
    is.

    Parameters
    ----------
    prior : VariancePrior
        Prior and lower bound of the variances of the latent variables.
    subspace : Subspace
        Loading, noise and centre.
    """

    prior: VariancePrior
    subspace: Subspace

    @property
    def latent(self) -> FullGaussian:
        """The family of the latent variables."""
        return FullGaussian(self.prior)

    @property
    def n_columns(self) -> int:
        """Number of real columns."""
        return len(self.subspace.centre)

    @property
    def n_factors(self) -> int:
        """Number of latent variables."""
        return self.subspace.n_factors

    def layout(self) -> tuple[int, tuple[int, ...]]:
        return self.n_columns, ()

    def check_consistent(self) -> None:
        """Raise ValueError unless the prior is one of the latent variables."""
        require_instance("the prior", self.prior, VariancePrior)
        require_instance("the subspace", self.subspace, Subspace)
        same = len(self.prior.variances) == self.n_factors
        require(same, "the prior is not one of the latent variables")

    def check_parameters(self, parameters: SubspaceParameters, n_components: int) -> None:
        require_instance("a set of parameters", parameters, SubspaceParameters)
        for name in ("centre", "loading", "noise"):
            mine, theirs = (getattr(x.subspace, name) for x in (self, parameters))
            require(np.array_equal(mine, theirs), "the subspaces differ")
        self.latent.check_parameters(parameters.latent, n_components)

    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        width = max(self.n_columns, n_components * (self.n_factors + 1))
        if observed is not None:
            width += self.n_columns + self._systems_width(n_components, observed)
        return width

    def _systems_width(self, n_components: int, observed: BoolArray) -> int:
        """Return how many numbers the small systems occupy, per row.

        Rows with patterns of their own have a gram matrix, a system and its factor each.
        They may meet in one chunk, so that they are never taken for very few. Frequent
        patterns have a system for each component.
        """
        alike, rest, _ = split_by_pattern(observed, FREQUENT)
        n_rows = max(observed.shape[1], 1)
        mixed = 5.0 * max(len(rest) / n_rows, 0.25)
        shared = 4.0 * n_components * len(alike) / n_rows
        return int((mixed + shared) * (self.n_factors + 1) ** 2)

    def kept_width(self, observed: BoolArray | None = None) -> int:
        return self.n_factors + 2 + (0 if observed is None else self.n_factors**2)

    def work(self, n_components: int, observed: BoolArray | None = None) -> int:
        q = self.n_factors
        work = n_components * (q + 1) * (q + PASSING)
        if observed is not None:
            with_holes = 1.0 - float(np.mean(observed.all(axis=0)))
            work += int(with_holes * n_components * q * q * (2 * q + PASSING))
        return work

    def parameter_bytes(self, n_components: int) -> int:
        shared = 8 * self.n_columns * (2 * self.n_factors + 2)
        return shared + self.latent.parameter_bytes(n_components)

    def embed(self, rows: Rows) -> Rows:
        q = self.n_factors
        overall = SubspaceParameters.standard(self.subspace)
        means = np.empty((q, rows.n_rows))
        for chunk in row_chunks(rows.n_rows, self.width(1, rows.observed)):
            means[:, chunk] = self._expected(rows[chunk], overall)
        return Rows(means, None, rows.codes)

    def prepare(self, rows: Rows) -> Prepared:
        return project(group_latent_rows(rows), self.subspace)

    def evaluate(
        self, prepared: Prepared, parameters: SubspaceParameters
    ) -> tuple[FloatArray, Notes]:
        values, posteriors = zip(
            *(group.evaluate(parameters) for group in prepared), strict=True
        )
        return assemble(prepared, values), posteriors

    def accumulate(
        self,
        prepared: Prepared,
        parameters: SubspaceParameters,
        weights: FloatArray,
        notes: Notes,
    ) -> LatentStatistics:
        total = self.latent.zero_statistics(len(weights))
        for group, posterior in zip(prepared, notes, strict=True):
            posterior.add_to(total, weights_of(group, weights))
        return total

    def zero_statistics(self, n_components: int) -> LatentStatistics:
        return self.latent.zero_statistics(n_components)

    def maximise(self, statistics: LatentStatistics) -> SubspaceParameters:
        return SubspaceParameters(self.latent.maximise(statistics), self.subspace)

    def expected_statistics(
        self, parameters: SubspaceParameters, counts: FloatArray
    ) -> LatentStatistics:
        return self.latent.expected_statistics(parameters.latent, counts)

    def proper(self, statistics: LatentStatistics) -> BoolArray:
        return self.latent.proper(statistics)

    def start(self, rows: Rows, weights: FloatArray) -> SubspaceParameters:
        n_components = len(weights)
        covariances = np.repeat(self.prior.covariance[None], n_components, axis=0)
        means = np.zeros((n_components, self.n_factors))
        parameters = SubspaceParameters(
            FullParameters.of(means, covariances), self.subspace
        )
        for _ in range(_START_PASSES):
            parameters = self.maximise(self.summarise(rows, parameters, weights))
        return parameters

    def log_prior(self, parameters: SubspaceParameters) -> float:
        return self.latent.log_prior(parameters.latent)

    def within_bounds(self, parameters: SubspaceParameters) -> SubspaceParameters:
        return replace(parameters, latent=self.latent.within_bounds(parameters.latent))

    def coordinates(
        self, start: SubspaceParameters, counts: FloatArray
    ) -> Coordinates[SubspaceParameters, LatentStatistics]:
        inner = self.latent.coordinates(start.latent, counts)
        return LatentCoordinates(inner, self.subspace)

    def impute(
        self, rows: Rows, parameters: SubspaceParameters, posterior: FloatArray
    ) -> Rows:
        if rows.observed is None:
            return rows
        expected = self._expected(rows, parameters, posterior)
        return self._filled(rows, parameters, expected)

    def _expected(
        self,
        rows: Rows,
        parameters: SubspaceParameters,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return expected latent variables (q, n), given component weights (J, n)."""
        weights = np.ones((1, rows.n_rows)) if weights is None else weights
        groups = project(group_latent_rows(rows), parameters.subspace)
        posteriors = [group.evaluate(parameters)[1] for group in groups]
        pairs = zip(groups, posteriors, strict=True)
        return assemble(groups, [p.mean(weights_of(g, weights)) for g, p in pairs])

    def draw(
        self,
        rows: Rows,
        parameters: SubspaceParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        if rows.observed is None:
            return rows
        latent = np.empty((self.n_factors, rows.n_rows))
        for j in np.unique(components):
            index = np.flatnonzero(components == j)
            one = parameters.take(slice(j, j + 1))
            groups = project(group_latent_rows(rows[index]), parameters.subspace)
            latent[:, index] = assemble(
                groups, [group.evaluate(one)[1].draw(generator) for group in groups]
            )
        return self._filled(rows, parameters, latent, generator)

    def _filled(
        self,
        rows: Rows,
        parameters: SubspaceParameters,
        latent: FloatArray,
        generator: np.random.Generator | None = None,
    ) -> Rows:
        """Fill holes, given latent variables (q, n); with noise, given a generator."""
        assert rows.observed is not None
        real = self._rows_at(parameters.subspace, latent, generator)
        return Rows(np.where(rows.observed, rows.real, real), None, rows.codes)

    def _rows_at(
        self,
        subspace: Subspace,
        latent: FloatArray,
        generator: np.random.Generator | None,
    ) -> FloatArray:
        real = subspace.centre[:, None] + subspace.loading @ latent
        if generator is not None:
            noise = generator.standard_normal(real.shape)
            real += np.sqrt(subspace.noise)[:, None] * noise
        return real

    def sample(
        self,
        parameters: SubspaceParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        drawn = self.latent.sample(parameters.latent, components, generator)
        real = self._rows_at(parameters.subspace, drawn.real, generator)
        return replace(drawn, real=real)

    def marginal(
        self, parameters: SubspaceParameters, real: list[int], codes: list[int]
    ) -> tuple[SubspaceGaussian, SubspaceParameters]:
        subspace = parameters.subspace.marginal(real)
        return (
            SubspaceGaussian(self.prior, subspace),
            SubspaceParameters(parameters.latent, subspace),
        )

    def surprise(
        self, prepared: Prepared, parameters: SubspaceParameters, notes: Notes
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        n_components = len(parameters.latent.means)
        groups, posteriors = self._evaluated(prepared, notes)
        offset = assemble(
            groups,
            [
                np.broadcast_to(
                    posterior.half_log_determinants(),
                    (n_components, len(group.n_observed)),
                )
                for group, posterior in zip(groups, posteriors, strict=True)
            ],
        )
        energy = 0.5 * assemble(groups, [group.n_observed for group in groups])
        mean = np.broadcast_to(energy, offset.shape)
        return offset, mean, mean

    def _evaluated(
        self, prepared: Prepared, notes: Notes
    ) -> tuple[list[Projection], list[Posterior]]:
        """Return the groups that were evaluated, and their posteriors."""
        return prepared, notes

    def concatenate(
        self, parts: list[SubspaceParameters], counts: list[float]
    ) -> SubspaceParameters:
        latent = self.latent.concatenate([part.latent for part in parts], counts)
        return SubspaceParameters(latent, parts[0].subspace)

    def n_parameters(self, n_components: int) -> int:
        d, q = self.n_columns, self.n_factors
        noise = 1 if np.ptp(self.subspace.noise) == 0.0 else d
        # Latent variables can be turned and stretched without any change of a density.
        shared = d + noise + d * q - q * (q + 1)
        full = FullGaussian(VariancePrior(self.subspace.noise))
        return min(
            shared + self.latent.n_parameters(n_components),
            full.n_parameters(n_components),
        )
