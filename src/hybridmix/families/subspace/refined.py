"""The same components, for gradient methods that also move the subspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Prepared
from hybridmix.families.subspace.coordinates import SubspaceCoordinates
from hybridmix.families.subspace.family import SubspaceGaussian
from hybridmix.families.subspace.parameters import (
    LoadingStatistics,
    SubspaceParameters,
    SubspaceStatistics,
)
from hybridmix.families.subspace.projections import (
    LatentRows,
    Posterior,
    Projection,
    group_latent_rows,
    project,
    weights_of,
)


class _Refined(NamedTuple):
    """Notes of an evaluation with the subspace of the parameters."""

    projections: list[Projection]
    posteriors: list[Posterior]


@dataclass(frozen=True)
class RefinedSubspaceGaussian(SubspaceGaussian):
    r"""The same densities, for gradient methods that also move the subspace.

    M-steps leave the subspace as it is. The noise has a prior, too, of the same strength
    :math:`\nu` and around the noise :math:`\Psi_0` to begin with: a column that the
    latent variables can copy would lose all of its noise otherwise (a Heywood case).

    .. math:: \log p(\Psi) = -\tfrac{\nu}{2} \sum_i \big[ \log\psi_i
              + \psi_{0i} / \psi_i \big]

    Parameters
    ----------
    prior : VariancePrior
        Prior and lower bound of the variances of the latent variables.
    subspace : Subspace
        Loading, noise and centre to begin with.
    """

    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        width = super().width(n_components, observed) + self.n_columns
        return width if observed is None else width + 2 * self.n_factors**2

    def kept_width(self, observed: BoolArray | None = None) -> int:
        return self.n_columns if observed is None else 3 * self.n_columns

    def prepare(self, rows: Rows) -> Prepared:
        return group_latent_rows(rows)

    def evaluate(
        self, prepared: list[LatentRows], parameters: SubspaceParameters
    ) -> tuple[FloatArray, _Refined]:
        projections = project(prepared, parameters.subspace)
        values, posteriors = super().evaluate(projections, parameters)
        return values, _Refined(projections, posteriors)

    def accumulate(
        self,
        prepared: list[LatentRows],
        parameters: SubspaceParameters,
        weights: FloatArray,
        notes: _Refined,
    ) -> SubspaceStatistics:
        total = self.zero_statistics(len(weights))
        for rows, group, posterior in zip(prepared, *notes, strict=True):
            own = weights_of(group, weights)
            mean, products = posterior.expect(total.latent, own)
            subspace = parameters.subspace
            rows.add_moments(total.loading, subspace, own.sum(axis=0), mean)
            rows.add_explained(total.loading, subspace, products)
        return total

    def zero_statistics(self, n_components: int) -> SubspaceStatistics:
        return SubspaceStatistics(
            self.latent.zero_statistics(n_components),
            LoadingStatistics.zero(self.n_columns, self.n_factors),
        )

    def maximise(self, statistics: SubspaceStatistics) -> SubspaceParameters:
        return super().maximise(statistics.latent)

    def expected_statistics(
        self, parameters: SubspaceParameters, counts: FloatArray
    ) -> SubspaceStatistics:
        result = self.zero_statistics(len(counts))
        result.latent.add(super().expected_statistics(parameters, counts))
        return result

    def proper(self, statistics: SubspaceStatistics) -> BoolArray:
        return super().proper(statistics.latent)

    def log_prior(self, parameters: SubspaceParameters) -> float:
        noise = parameters.subspace.noise
        penalty = float(np.sum(np.log(noise) + self.subspace.noise / noise))
        return super().log_prior(parameters) - 0.5 * self.prior.strength * penalty

    def coordinates(
        self, start: SubspaceParameters, counts: FloatArray
    ) -> SubspaceCoordinates:
        inner = self.latent.coordinates(start.latent, counts)
        noise_prior = replace(
            self.prior, variances=self.subspace.noise, correlations=None
        )
        return SubspaceCoordinates(inner, start, counts, noise_prior)

    def _evaluated(
        self, prepared: Prepared, notes: _Refined
    ) -> tuple[list[Projection], list[Posterior]]:
        return notes.projections, notes.posteriors
