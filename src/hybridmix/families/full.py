"""Gaussian components with full covariances, one each or one for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Family
from hybridmix.families.coordinates import FullCoordinates
from hybridmix.families.diagonal import DiagonalGaussian
from hybridmix.families.moments import (
    FullParameters,
    FullStatistics,
    TiedStatistics,
    inverse_lower,
    raised,
)
from hybridmix.families.patterns import Group, ScatteredGroup, UniformGroup, group_rows
from hybridmix.families.prior import LOG_2PI, VariancePrior
from hybridmix.families.regression import (
    Regression,
    filled_uniform,
    scattered_log_density,
)

Notes = list[FullParameters | list[Regression]]


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

    def width(self, n_components: int) -> int:
        copies = 1 if self.tied else n_components
        return max(n_components, copies * (self.n_columns + 1))

    def prepare(self, rows: Rows) -> list[Group]:
        return group_rows(rows)

    def evaluate(
        self, prepared: list[Group], parameters: FullParameters
    ) -> tuple[FloatArray, Notes]:
        notes: Notes = []
        results: list[FloatArray] = []
        for group in prepared:
            if isinstance(group, UniformGroup):
                marginal = parameters.marginal(group.columns)
                results.append(marginal.log_density(group.augmented))
                notes.append(marginal)
            else:
                values, regressions = scattered_log_density(group, parameters)
                results.append(values)
                notes.append(regressions)
        return _assemble(prepared, results), notes

    def accumulate(
        self,
        prepared: list[Group],
        parameters: FullParameters,
        weights: FloatArray,
        notes: Notes,
    ) -> FullStatistics:
        total = self.zero_statistics(len(weights))
        for group, note in zip(prepared, notes, strict=True):
            w = weights if group.index is None else weights[:, group.index]
            if isinstance(group, ScatteredGroup):
                assert isinstance(note, list)
                self._add_scattered(total, group, parameters, w, note)
            else:
                assert isinstance(note, FullParameters)
                self._add_uniform(total, group, parameters, w, note)
        return total

    def _add_uniform(
        self,
        total: FullStatistics,
        group: UniformGroup,
        parameters: FullParameters,
        weights: FloatArray,
        marginal: FullParameters,
    ) -> None:
        """Add rows that share a pattern: moments of what is observed, then regression.

        The expected row is affine in the observed one, so that its moments follow from
        theirs, per pattern and not per row.
        """
        x = group.augmented
        # Unlike `@`, np.dot lets other threads run even when the result is small.
        if self.tied:
            sums = np.dot(weights, x.T)
            moments = np.dot(x * weights.sum(axis=0), x.T)[None]
        else:
            scaled = weights[:, None, :] * x
            moments = np.dot(scaled.reshape(-1, x.shape[1]), x.T)
            moments = moments.reshape(len(weights), len(x), len(x))
            sums = moments[:, -1]
        if group.columns is not None:
            sums, moments = self._regress(
                sums, moments, group.columns, parameters, marginal
            )
        total.counts += sums[:, -1]
        total.first += sums[:, :-1]
        total.second += moments[:, :-1, :-1]

    def _regress(
        self,
        sums: FloatArray,
        moments: FloatArray,
        columns: IntArray,
        parameters: FullParameters,
        marginal: FullParameters,
    ) -> tuple[FloatArray, FloatArray]:
        """Extend moments of observed columns to expected moments of all columns."""
        d = self.n_columns
        gain = np.swapaxes(parameters.covariances[:, columns], 1, 2) @ marginal.precisions
        remainder = parameters.covariances - gain @ parameters.covariances[:, columns]
        offsets = parameters.means - np.squeeze(
            gain @ parameters.means[:, columns, None], axis=2
        )
        counts = sums[:, -1]
        observed = sums[:, :-1, None]
        first = np.squeeze(gain @ observed, axis=2) + counts[:, None] * offsets
        transposed = np.swapaxes(gain, 1, 2)
        # With one covariance for all, the moments are summed over components already.
        cross = first[:, :, None] * offsets[:, None, :]
        second = gain @ moments[:, :-1, :-1] @ transposed
        mixed = np.squeeze(gain @ observed, axis=2)[:, None, :] * offsets[:, :, None]
        spread = counts[:, None, None] * remainder
        if self.tied:
            cross, mixed, spread = (
                array.sum(axis=0, keepdims=True) for array in (cross, mixed, spread)
            )
        extended = np.zeros((len(second), d + 1, d + 1))
        extended[:, :-1, :-1] = second + cross + mixed + spread
        return np.column_stack([first, counts]), extended

    def _add_scattered(
        self,
        total: FullStatistics,
        group: ScatteredGroup,
        parameters: FullParameters,
        weights: FloatArray,
        regressions: list[Regression],
    ) -> None:
        d = self.n_columns
        cells = group.cells(d).ravel()
        total.counts += weights.sum(axis=1)
        for number, regression in enumerate(regressions):
            sharing = parameters.sharing(number)
            for j, filled in zip(sharing, regression.filled, strict=True):
                scaled = filled * weights[j]
                total.first[j] += scaled.sum(axis=1)
                total.second[number] += np.dot(scaled, filled.T)
            of_covariance = weights[sharing.start : sharing.stop].sum(axis=0)
            scattered = regression.inverses * group.of_patterns(of_covariance)
            spread = np.bincount(cells, scattered.ravel(), d * d).reshape(d, d)
            if not group.by_missing:
                covariance = parameters.covariances[number]
                spread = (
                    of_covariance.sum() * covariance - covariance @ spread @ covariance
                )
            total.second[number] += spread

    def zero_statistics(self, n_components: int) -> FullStatistics:
        d = self.n_columns
        kind = TiedStatistics if self.tied else FullStatistics
        return kind(
            np.zeros(n_components),
            np.zeros((n_components, d)),
            np.zeros((1 if self.tied else n_components, d, d)),
        )

    def maximise(self, statistics: FullStatistics) -> FullParameters:
        counts = np.maximum(statistics.counts, 0.0)
        seen = counts > np.finfo(float).tiny
        divisor = np.where(seen, counts, 1.0)[:, None]
        means = np.where(seen[:, None], statistics.first / divisor, 0.0)
        between = statistics.first[:, :, None] * means[:, None, :]
        if self.tied:
            counts = counts.sum(keepdims=True)
            between = between.sum(axis=0, keepdims=True)
        covariances = self.prior.posterior_mean(
            statistics.second - between,
            counts[:, None, None],
            np.diag(self.prior.variances),
        )
        covariances = 0.5 * (covariances + np.swapaxes(covariances, 1, 2))
        return FullParameters.of(means, raised(covariances, self.prior.floor))

    def start(self, rows: Rows, weights: FloatArray) -> FullParameters:
        rough = DiagonalGaussian(self.prior).start(rows, weights)
        covariances = np.zeros((*rough.variances.shape, self.n_columns))
        diagonal = np.arange(self.n_columns)
        covariances[:, diagonal, diagonal] = rough.variances
        if self.tied:
            share = np.maximum(weights.sum(axis=1), np.finfo(float).tiny)
            covariances = np.average(covariances, axis=0, weights=share)[None]
        parameters = FullParameters.of(rough.means, covariances)
        prepared = self.prepare(rows)
        _, notes = self.evaluate(prepared, parameters)
        return self.maximise(self.accumulate(prepared, parameters, weights, notes))

    def log_prior(self, parameters: FullParameters) -> float:
        precision_diagonal = np.square(parameters.whiteners).sum(axis=1)
        return -self.prior.strength * float(
            parameters.half_log_determinants.sum()
            + 0.5 * (precision_diagonal @ self.prior.variances).sum()
        )

    def prior_statistics(self, parameters: FullParameters) -> FullStatistics:
        result = self.zero_statistics(len(parameters.means))
        strength, means = self.prior.strength, parameters.means
        if self.tied:
            # One prior for one covariance: its rows are spread over the components.
            strength = strength / len(means)
        result.counts += strength
        result.first += strength * means
        result.second += self.prior.strength * np.diag(self.prior.variances)
        products = strength * means[:, :, None] * means[:, None, :]
        result.second += products.sum(axis=0, keepdims=True) if self.tied else products
        return result

    def collapsed(self, parameters: FullParameters) -> BoolArray:
        if self.tied:
            return np.zeros(len(parameters.means), dtype=bool)
        diagonal = np.diagonal(parameters.covariances, axis1=1, axis2=2)
        return np.all(diagonal <= self.prior.floor * (1.0 + 1e-6), axis=1)

    def coordinates(self, start: FullParameters, counts: FloatArray) -> FullCoordinates:
        return FullCoordinates(start, counts)

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
        shape = (len(parameters.means), self.n_columns, rows.n_rows)
        expected = np.empty(shape)
        for group, note in zip(prepared, notes, strict=True):
            index = slice(None) if group.index is None else group.index
            if isinstance(note, list):
                for number, regression in enumerate(note):
                    for j, filled in zip(
                        parameters.sharing(number), regression.filled, strict=True
                    ):
                        expected[j][:, index] = filled
            else:
                assert isinstance(group, UniformGroup)
                expected[:, :, index] = filled_uniform(group, parameters, note)
        return expected

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

    def restrict(
        self, parameters: FullParameters, real: list[int], codes: list[int]
    ) -> tuple[FullGaussian, FullParameters]:
        family = FullGaussian(self.prior.restricted(real), self.tied)
        return family, parameters.marginal(np.asarray(real, dtype=np.intp))

    def reads(self, real: list[int], codes: list[int]) -> bool:
        return bool(real)

    def surprise(
        self, prepared: list[Group], parameters: FullParameters
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        log_density, notes = self.evaluate(prepared, parameters)
        half_log_volumes, n_observed = [], []
        for group, note in zip(prepared, notes, strict=True):
            if isinstance(note, list):
                assert isinstance(group, ScatteredGroup)
                size = group.observed.sum(axis=0)
                halves = np.stack([r.half_log_determinants for r in note])
            else:
                assert isinstance(group, UniformGroup)
                size = np.full(group.augmented.shape[1], len(group.augmented) - 1)
                halves = note.half_log_determinants[:, None]
            volume = np.broadcast_to(
                halves + 0.5 * LOG_2PI * size, (len(log_density), len(size))
            )
            half_log_volumes.append(volume)
            n_observed.append(np.broadcast_to(0.5 * size, volume.shape))
        energy = -log_density - _assemble(prepared, half_log_volumes)
        mean = _assemble(prepared, n_observed)
        return energy, mean, mean

    def concatenate(
        self, parts: list[FullParameters], counts: list[float]
    ) -> FullParameters:
        means = np.concatenate([part.means for part in parts])
        if self.tied:
            shared = np.average(
                [part.covariances[0] for part in parts], axis=0, weights=counts
            )
            return FullParameters.of(means, shared[None])
        return FullParameters(
            means,
            np.concatenate([part.covariances for part in parts]),
            np.concatenate([part.whiteners for part in parts]),
        )

    def n_parameters(self, n_components: int) -> int:
        d = self.n_columns
        copies = 1 if self.tied else n_components
        return n_components * d + copies * d * (d + 1) // 2


def _assemble(prepared: list[Group], parts: list[FloatArray]) -> FloatArray:
    """Put results of groups, (J, n) each, into the order of the rows."""
    if len(parts) == 1 and prepared[0].index is None:
        return parts[0]
    n_rows = sum(part.shape[1] for part in parts)
    result = np.empty((len(parts[0]), n_rows))
    for group, part in zip(prepared, parts, strict=True):
        result[:, slice(None) if group.index is None else group.index] = part
    return result
