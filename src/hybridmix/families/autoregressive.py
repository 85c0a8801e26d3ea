"""Gaussian components of a frame given the frame before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import (
    Coordinates,
    Family,
    Notes,
    Parameters,
    Point,
    Statistics,
)
from hybridmix.families.coordinates import FullCoordinates, FullPoint
from hybridmix.families.full import FullGaussian
from hybridmix.families.moments import FullParameters, FullStatistics, inverse_lower
from hybridmix.families.patterns import RowGroup


@registered
@dataclass(frozen=True, eq=False)
class AutoregressiveParameters(Parameters):
    """Gaussians of pairs of frames: the columns of the one before, then those of a frame.

    Attributes
    ----------
    joint : FullParameters
        Means (J, 2 d) and covariances (G, 2 d, 2 d), with G = 1 if components share it.
    """

    joint: FullParameters

    @property
    def n_components(self) -> int:
        return self.joint.n_components

    def take(self, components: slice | IntArray) -> Self:
        return type(self)(self.joint.take(components))

    def affine(self, scale: FloatArray, shift: FloatArray) -> Self:
        return type(self)(self.joint.affine(np.tile(scale, 2), np.tile(shift, 2)))

    @property
    def n_columns(self) -> int:
        """Number of columns of a frame."""
        return self.joint.means.shape[1] // 2

    @property
    def means(self) -> FloatArray:
        """Means of a frame before which nothing is known, (J, d)."""
        return self.joint.means[:, self.n_columns :]

    @cached_property
    def previous(self) -> FullParameters:
        """Marginal density of the frame before."""
        own = slice(0, self.n_columns)
        return FullParameters(
            self.joint.means[:, own],
            self.joint.covariances[:, own, own],
            # Triangular factors of a leading block are leading blocks themselves.
            self.joint.whiteners[:, own, own],
        )

    @cached_property
    def current(self) -> FullParameters:
        """Marginal density of a frame, of which nothing is known before."""
        return self.joint.marginal(np.arange(self.n_columns, 2 * self.n_columns))

    @cached_property
    def residuals(self) -> FullParameters:
        """Density of what regressions leave; its means are zero."""
        own = slice(self.n_columns, None)
        whiteners = self.joint.whiteners[:, own, own]
        factors = inverse_lower(whiteners)
        return FullParameters(
            np.zeros_like(self.joint.means[:, own]),
            factors @ np.swapaxes(factors, 1, 2),
            whiteners,
        )

    @cached_property
    def regressions(self) -> FloatArray:
        """Coefficients of the frame before, (G, d, d)."""
        d = self.n_columns
        across = self.joint.covariances[:, d:, :d]
        return across @ self.previous.precisions

    @cached_property
    def intercepts(self) -> FloatArray:
        """What regressions begin with, (J, d)."""
        before = self.previous.means[:, :, None]
        return self.means - np.squeeze(self.regressions @ before, axis=2)


@dataclass
class AutoregressiveStatistics(Statistics):
    """Statistics of pairs of frames, and of the frames before alone."""

    joint: FullStatistics
    previous: FullStatistics

    def add(self, other: Self, components: slice = slice(None)) -> None:
        self.joint.add(other.joint, components)
        self.previous.add(other.previous, components)


@dataclass(frozen=True)
class _PreparedPairs:
    """Pairs of frames and the frames before alone, as Gaussians read them."""

    joint: list[RowGroup]
    previous: list[RowGroup]


@registered
@dataclass(frozen=True)
class AutoregressiveGaussian(Family[AutoregressiveParameters, AutoregressiveStatistics]):
    r"""Gaussians of a frame :math:`x` given the frame :math:`z` before it.

    .. math::

        \log p_j(x \mid z) = \log \mathcal N_j(z_o, x_o) - \log \mathcal N_j(z_o)

    over the observed columns ``o`` of both, where :math:`\mathcal N_j` is a Gaussian of
    pairs. For complete pairs this is a linear regression,
    :math:`x = a_j + B_j z + e` with :math:`e \sim \mathcal N(0, R_j)`. Where the frame
    before has holes, and before the first frame, the Gaussian of pairs says what to
    expect there.

    An M-step fits the Gaussian of pairs. For complete pairs that is the best regression;
    holes make it an approximation, since the marginal of the frame before counts as well.

    Rows have the real columns of the frame before, then those of the frame.

    Parameters
    ----------
    pairs : FullGaussian
        Of the pairs.
    """

    pairs: FullGaussian

    @property
    def n_columns(self) -> int:
        """Number of columns of a frame."""
        return self.pairs.n_columns // 2

    @cached_property
    def _before(self) -> FullGaussian:
        """The family of the frames before alone."""
        own = list(range(self.n_columns))
        return FullGaussian(self.pairs.prior.marginal(own), self.pairs.tied)

    @property
    def ties_components(self) -> bool:
        return self.pairs.ties_components

    def layout(self) -> tuple[int, tuple[int, ...]]:
        return self.n_columns, ()

    def check_consistent(self) -> None:
        """Raise ValueError unless pairs have two frames."""
        require_instance("the family of pairs", self.pairs, FullGaussian)
        require(self.pairs.n_columns % 2 == 0, "pairs have an odd number of columns")

    def check_parameters(
        self, parameters: AutoregressiveParameters, n_components: int
    ) -> None:
        require_instance("a set of parameters", parameters, AutoregressiveParameters)
        self.pairs.check_parameters(parameters.joint, n_components)

    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        return self.pairs.width(n_components, observed) + n_components

    def kept_width(self, observed: BoolArray | None = None) -> int:
        return self.pairs.kept_width(observed) + self.n_columns

    def work(self, n_components: int, observed: BoolArray | None = None) -> int:
        before = None if observed is None else observed[: self.n_columns]
        own = self._before.work(n_components, before)
        return self.pairs.work(n_components, observed) + own

    def parameter_bytes(self, n_components: int) -> int:
        own = self._before.parameter_bytes(n_components)
        return self.pairs.parameter_bytes(n_components) + own

    def embed(self, rows: Rows) -> Rows:
        return self.pairs.embed(rows)

    def prepare(self, rows: Rows) -> _PreparedPairs:
        return _PreparedPairs(
            self.pairs.prepare(rows), self._before.prepare(self._previous(rows))
        )

    def _previous(self, rows: Rows) -> Rows:
        """Return the frames before, without those that follow."""
        own = slice(0, self.n_columns)
        observed = None if rows.observed is None else rows.observed[own]
        return Rows(rows.real[own], observed, rows.codes)

    def evaluate(
        self, prepared: _PreparedPairs, parameters: AutoregressiveParameters
    ) -> tuple[FloatArray, tuple[Notes, Notes]]:
        joint, joint_notes = self.pairs.evaluate(prepared.joint, parameters.joint)
        before, before_notes = self._before.evaluate(
            prepared.previous, parameters.previous
        )
        # The difference of huge numbers is rounding, which must not pass for a gain.
        log_density = np.minimum(joint - before, parameters.residuals.highest)
        return log_density, (joint_notes, before_notes)

    def accumulate(
        self,
        prepared: _PreparedPairs,
        parameters: AutoregressiveParameters,
        weights: FloatArray,
        notes: tuple[Notes, Notes],
    ) -> AutoregressiveStatistics:
        joint, before = notes
        return AutoregressiveStatistics(
            self.pairs.accumulate(prepared.joint, parameters.joint, weights, joint),
            self._before.accumulate(
                prepared.previous, parameters.previous, weights, before
            ),
        )

    def zero_statistics(self, n_components: int) -> AutoregressiveStatistics:
        return AutoregressiveStatistics(
            self.pairs.zero_statistics(n_components),
            self._before.zero_statistics(n_components),
        )

    def maximise(self, statistics: AutoregressiveStatistics) -> AutoregressiveParameters:
        return AutoregressiveParameters(self.pairs.maximise(statistics.joint))

    def start(self, rows: Rows, weights: FloatArray) -> AutoregressiveParameters:
        return AutoregressiveParameters(self.pairs.start(rows, weights))

    def log_prior(self, parameters: AutoregressiveParameters) -> float:
        # The prior counts like pairs of which the frames before are given.
        return self.pairs.log_prior(parameters.joint) - self._before.log_prior(
            parameters.previous
        )

    def within_bounds(
        self, parameters: AutoregressiveParameters
    ) -> AutoregressiveParameters:
        return AutoregressiveParameters(self.pairs.within_bounds(parameters.joint))

    def collapsed(self, parameters: AutoregressiveParameters) -> BoolArray:
        return self.pairs.collapsed(parameters.joint)

    def coordinates(
        self, start: AutoregressiveParameters, counts: FloatArray
    ) -> AutoregressiveCoordinates:
        return AutoregressiveCoordinates(self, start, counts)

    def impute(
        self, rows: Rows, parameters: AutoregressiveParameters, posterior: FloatArray
    ) -> Rows:
        return self.pairs.impute(rows, parameters.joint, posterior)

    def draw(
        self,
        rows: Rows,
        parameters: AutoregressiveParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        return self.pairs.draw(rows, parameters.joint, components, generator)

    def sample(
        self,
        parameters: AutoregressiveParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        """Draw frames before which nothing is known."""
        return self._before.sample(parameters.current, components, generator)

    def surprise(
        self,
        prepared: _PreparedPairs,
        parameters: AutoregressiveParameters,
        notes: tuple[Notes, Notes],
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        joint = self.pairs.surprise(prepared.joint, parameters.joint, notes[0])
        before = self._before.surprise(prepared.previous, parameters.previous, notes[1])
        offset, mean, variance = (
            both - one for both, one in zip(joint, before, strict=True)
        )
        return offset, mean, variance

    def concatenate(
        self, parts: list[AutoregressiveParameters], counts: list[float]
    ) -> AutoregressiveParameters:
        joint = [part.joint for part in parts]
        return AutoregressiveParameters(self.pairs.concatenate(joint, counts))

    def n_parameters(self, n_components: int) -> int:
        return self.pairs.n_parameters(n_components) - self._before.n_parameters(
            n_components
        )


class AutoregressiveCoordinates(
    Coordinates[AutoregressiveParameters, AutoregressiveStatistics]
):
    """The coordinates of the Gaussians of pairs."""

    def __init__(
        self,
        family: AutoregressiveGaussian,
        start: AutoregressiveParameters,
        counts: FloatArray,
    ) -> None:
        self.prior = family.pairs.prior
        self._pairs = FullCoordinates(start.joint, counts, self.prior)
        self.size = self._pairs.size

    def at(self, vector: FloatArray) -> AutoregressivePoint:
        return AutoregressivePoint(self, self._pairs.at(vector))

    def vector(self, parameters: AutoregressiveParameters) -> FloatArray:
        return self._pairs.vector(parameters.joint)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        return self._pairs.bounds()


class AutoregressivePoint(Point[AutoregressiveParameters, AutoregressiveStatistics]):
    """A place in the coordinates of Gaussians of pairs."""

    def __init__(self, frame: AutoregressiveCoordinates, pairs: FullPoint) -> None:
        self.vector = pairs.vector
        self.parameters = AutoregressiveParameters(pairs.parameters)
        self._prior = frame.prior
        self._pairs = pairs

    def gradient(self, statistics: AutoregressiveStatistics) -> FloatArray:
        lifted = with_expected_frames(statistics.previous, self.parameters)
        return self._pairs.gradient(statistics.joint) - self._pairs.gradient(lifted)

    def prior_gradient(self) -> FloatArray:
        d, prior = self.parameters.n_columns, self._prior
        regressions = self.parameters.regressions
        before = prior.covariance[:d, :d]
        explained = regressions @ before
        scatter = np.empty_like(self.parameters.joint.covariances)
        scatter[:, :d, :d] = before
        scatter[:, d:, :d] = explained
        scatter[:, :d, d:] = np.swapaxes(explained, 1, 2)
        scatter[:, d:, d:] = explained @ np.swapaxes(regressions, 1, 2)
        scatter[:, d:, d:] += self.parameters.residuals.covariances
        return self._pairs.prior_gradient() - self._pairs.spread_gradient(
            prior.strength, scatter
        )


def with_expected_frames(
    statistics: FullStatistics, parameters: AutoregressiveParameters
) -> FullStatistics:
    r"""Return the expected statistics of pairs, given those of the frames before.

    With counts ``n``, sums ``f`` and sums of products ``S`` of the frames before, the
    expected sums of the frames that follow are :math:`n a + B f`, and so on.
    """
    d = parameters.n_columns
    regressions, intercepts = parameters.regressions, parameters.intercepts
    counts = statistics.counts
    explained = np.squeeze(regressions @ statistics.first[:, :, None], axis=2)
    first = np.hstack([statistics.first, counts[:, None] * intercepts + explained])
    crossed = intercepts[:, :, None] * statistics.first[:, None]
    own = intercepts[:, :, None] * explained[:, None]
    own = own + np.swapaxes(own, 1, 2)
    own += counts[:, None, None] * intercepts[:, :, None] * intercepts[:, None]
    if parameters.joint.is_tied:
        crossed = crossed.sum(axis=0, keepdims=True)
        own = own.sum(axis=0, keepdims=True)
        counts = counts.sum(keepdims=True)
    products = regressions @ statistics.second
    second = np.empty((len(products), 2 * d, 2 * d))
    second[:, :d, :d] = statistics.second
    second[:, d:, :d] = crossed + products
    second[:, :d, d:] = np.swapaxes(second[:, d:, :d], 1, 2)
    second[:, d:, d:] = own + products @ np.swapaxes(regressions, 1, 2)
    second[:, d:, d:] += counts[:, None, None] * parameters.residuals.covariances
    return type(statistics)(statistics.counts, first, second)
