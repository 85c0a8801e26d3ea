"""Conjugate priors of Gaussians: full covariances, independent columns, means only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.special import gammaln, psi

from hybridmix._registered import registered
from hybridmix._require import require_positive, require_whole
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.conjugates.base import (
    Conjugate,
    LinearConjugate,
    observed_cells,
    refuse_holes,
)
from hybridmix.families.conjugates.quadratic import quadratic_forms, second_moments
from hybridmix.families.prior import LOG_2PI

_LOG_2 = float(np.log(2.0))


@registered
@dataclass(frozen=True)
class NormalWishart(Conjugate):
    r"""Prior of the mean and the precision matrix of complete Gaussian rows.

    .. math:: p(\mu, \Lambda) \propto |\Lambda|^{(f - d)/2} \exp\big( -\tfrac12
              \operatorname{tr} \Lambda S - \tfrac{N}{2} (\mu - m)^\top \Lambda (\mu - m)
              \big), \quad m = \frac sN, \quad S = Q - \frac{s s^\top}{N}

    .. math:: K = \log \Gamma_d(\tfrac f2) - \tfrac f2 \log |\tfrac12 S|
              - \tfrac d2 \log N - \tfrac d2 N \log 2 \pi

    The hyperparameters are :math:`(N, f, s, Q)`, with the features :math:`(1, 1, x, x
    x^\top)`: rows add as much to the degrees of freedom :math:`f` as to the count
    :math:`N`, but these may begin at different values.

    Parameters
    ----------
    n_columns : int
        d, the number of real columns.
    floor : float
        Added to variances by `prior`, which keeps it proper for columns that depend on
        each other.
    """

    n_columns: int
    floor: float = 1e-6

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_whole("numbers of columns", [self.n_columns], 1)
        require_positive("floor", self.floor)

    @property
    def blocks(self) -> IntArray:
        return np.zeros(2 + self.n_columns + self.n_columns**2, dtype=int)

    def prepare(self, rows: Rows) -> FloatArray:
        refuse_holes(self, rows.observed is not None)
        return rows.real

    def statistics(self, prepared: FloatArray, weights: FloatArray) -> FloatArray:
        counts = np.repeat(weights.sum(axis=1, keepdims=True), 2, axis=1)
        second = second_moments(prepared, weights).reshape(len(weights), -1)
        return np.hstack([counts, weights @ prepared.T, second])

    def prior(self, statistics: FloatArray) -> FloatArray:
        d = self.n_columns
        counts, _, first, second = self._split(statistics)
        means = first / counts[:, None]
        outer = means[:, :, None] * means[:, None, :]
        covariances = second / counts[:, None, None] - outer + self.floor * np.eye(d)
        # Degrees of freedom that are enough for any count, spread like the rows.
        freedom = counts + d
        second = counts[:, None, None] * outer + freedom[:, None, None] * covariances
        parts = [
            counts[:, None],
            freedom[:, None],
            first,
            second.reshape(len(counts), -1),
        ]
        return np.hstack(parts)

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        d = self.n_columns
        values, expected = np.full((len(hyper), 1), np.inf), np.full_like(hyper, np.nan)
        split = self._split(hyper)
        for j, (count, freedom, first, second) in enumerate(zip(*split, strict=True)):
            if not (count > 0.0 and freedom > d - 1.0):
                continue
            mean = first / count
            factor, failed = dpotrf(second - np.outer(mean, first), lower=True)
            if failed or not np.isfinite(factor[-1, -1]):
                continue
            log_determinant = 2.0 * np.sum(np.log(np.diagonal(factor)))
            lower = np.tril(dpotri(factor, lower=True)[0])
            inverse = lower + np.tril(lower, -1).T
            halves = 0.5 * (freedom - np.arange(d))
            values[j] = (
                gammaln(halves).sum()
                + 0.5 * freedom * (d * _LOG_2 - log_determinant)
                - 0.5 * d * (np.log(count) + count * LOG_2PI)
            )
            towards = freedom * (inverse @ mean)
            by_count = -0.5 * (d / count + d * LOG_2PI + mean @ towards)
            by_freedom = 0.5 * (psi(halves).sum() + d * _LOG_2 - log_determinant)
            by_second = -0.5 * freedom * inverse
            expected[j] = np.concatenate(
                [[by_count, by_freedom], towards, by_second.ravel()]
            )
        return values, expected

    def log_densities(self, prepared: FloatArray, expected: FloatArray) -> FloatArray:
        by_count, by_freedom, linear, quadratic = self._split(expected)
        constant = (by_count + by_freedom)[:, None]
        return constant + linear @ prepared + quadratic_forms(prepared, quadratic)

    def _split(
        self, hyper: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return counts (J,), degrees of freedom (J,), (J, d) and (J, d, d)."""
        d = self.n_columns
        second = hyper[:, 2 + d :].reshape(len(hyper), d, d)
        return hyper[:, 0], hyper[:, 1], hyper[:, 2 : 2 + d], second


@registered
@dataclass(frozen=True)
class NormalGamma(Conjugate):
    r"""Priors of means and precisions of independent Gaussian columns.

    Each column has a `NormalWishart` prior of one dimension, and is a block of its own;
    holes contribute nothing. The hyperparameters are :math:`(N, f, s, Q)`, of all columns
    each.

    Parameters
    ----------
    n_columns : int
        d, the number of real columns.
    floor : float
        Added to variances by `prior`, which keeps it proper for constant columns.
    """

    n_columns: int
    floor: float = 1e-6

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_whole("numbers of columns", [self.n_columns], 1)
        require_positive("floor", self.floor)

    @property
    def blocks(self) -> IntArray:
        return np.tile(np.arange(self.n_columns), 4)

    def prepare(self, rows: Rows) -> FloatArray:
        """Return ``[x; x^2; 1]``, or ``[x; x^2; m]`` with the mask if there are holes."""
        count = np.ones((1, rows.n_rows)) if rows.observed is None else rows.observed
        return np.vstack([rows.real, rows.real**2, count])

    def statistics(self, prepared: FloatArray, weights: FloatArray) -> FloatArray:
        d = self.n_columns
        sums = weights @ prepared.T
        counts = np.broadcast_to(sums[:, 2 * d :], (len(weights), d))
        return np.hstack([counts, counts, sums[:, : 2 * d]])

    def prior(self, statistics: FloatArray) -> FloatArray:
        counts, _, first, second = np.split(statistics, 4, axis=1)
        # A column without any value could be anything: one value at 0, of unit spread.
        empty = counts <= 0.0
        counts = np.where(empty, 1.0, counts)
        means = first / counts
        variances = np.where(empty, 1.0, second / counts - means**2 + self.floor)
        freedom = counts + 1.0
        return np.hstack(
            [counts, freedom, first, counts * means**2 + freedom * variances]
        )

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        counts, freedom, first, second = np.split(hyper, 4, axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            means = first / counts
            spread = second - means * first
            logs = _LOG_2 - np.log(spread)
            values = (
                gammaln(0.5 * freedom)
                + 0.5 * freedom * logs
                - 0.5 * (np.log(counts) + counts * LOG_2PI)
            )
            proper = (counts > 0.0) & (freedom > 0.0) & (spread > 0.0)
            values = np.where(proper, values, np.inf)
            precisions = freedom / spread
            towards = means * precisions
            by_count = -0.5 * (1.0 / counts + LOG_2PI + means * towards)
            by_freedom = 0.5 * (psi(0.5 * freedom) + logs)
        return values, np.hstack([by_count, by_freedom, towards, -0.5 * precisions])

    def log_densities(self, prepared: FloatArray, expected: FloatArray) -> FloatArray:
        d = self.n_columns
        by_count, by_freedom, linear, quadratic = np.split(expected, 4, axis=1)
        constant = by_count + by_freedom
        if len(prepared) == 2 * d + 1:
            constant = constant.sum(axis=1, keepdims=True)
        return np.hstack([linear, quadratic, constant]) @ prepared


@registered
@dataclass(frozen=True)
class NormalMeans(LinearConjugate):
    r"""Priors of the means of independent Gaussian columns of a known variance.

    .. math:: K = \frac{s^2}{2 \sigma^2 N} - \frac{Q}{2 \sigma^2} - \tfrac12 \log N
              - \frac{n}{2} \log 2 \pi \sigma^2

    The hyperparameters are :math:`(N, n, s, Q)`, with the features :math:`(1, 1, x,
    x^2)`, where the constant of the density goes with :math:`n`. Log ratios of two of
    them are linear in the row. Each column is a block; holes contribute nothing.

    Parameters
    ----------
    n_columns : int
        d, the number of real columns.
    variance : float
        :math:`\sigma^2` of every column, in scaled units.
    """

    n_columns: int
    variance: float = 1.0

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_whole("numbers of columns", [self.n_columns], 1)
        require_positive("variance", self.variance)

    @property
    def blocks(self) -> IntArray:
        return np.tile(np.arange(self.n_columns), 4)

    def prepare(self, rows: Rows) -> FloatArray:
        observed = observed_cells(rows)
        return np.vstack([observed, observed, rows.real, rows.real**2])

    def prior(self, statistics: FloatArray) -> FloatArray:
        counts, rows, first, second = np.split(statistics, 4, axis=1)
        return np.hstack([np.where(counts > 0.0, counts, 1.0), rows, first, second])

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        counts, rows, first, second = np.split(hyper, 4, axis=1)
        precision = 1.0 / self.variance
        log_volume = LOG_2PI + np.log(self.variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = first / counts
            values = 0.5 * (
                precision * (means * first - second) - np.log(counts) - rows * log_volume
            )
            by_count = -0.5 * (precision * means**2 + 1.0 / counts)
        values = np.where(counts > 0.0, values, np.inf)
        by_rows = np.full_like(means, -0.5 * log_volume)
        by_second = np.full_like(means, -0.5 * precision)
        return values, np.hstack([by_count, by_rows, precision * means, by_second])
