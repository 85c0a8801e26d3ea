"""Conjugate priors of categories and of counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import gammaln, psi

from hybridmix._registered import registered
from hybridmix._require import require_instance, require_positive, require_whole
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.families.conjugates.base import (
    LinearConjugate,
    observed_cells,
    refuse_holes,
)


@registered
@dataclass(frozen=True)
class Dirichlet(LinearConjugate):
    r"""Priors of the probabilities of independent categorical columns.

    .. math:: p(\theta) \propto \prod_k \theta_k^{\alpha_k - 1}, \qquad
              K = \sum_k \log \Gamma(\alpha_k) - \log \Gamma\big(\sum_k \alpha_k\big)

    Each column is a block; holes contribute nothing.

    Parameters
    ----------
    n_categories : tuple of int
        Number of categories of each column.
    smoothing : float
        Number of rows, spread evenly over all cells, that `prior` adds: a category, or a
        pair of them, may not have been seen.
    """

    n_categories: tuple[int, ...]
    smoothing: float = 1.0

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_instance("n_categories", self.n_categories, tuple)
        require_whole("numbers of categories", self.n_categories, 1)
        require_positive("smoothing", self.smoothing)

    @property
    def blocks(self) -> IntArray:
        return np.repeat(np.arange(len(self.n_categories)), self.n_categories)

    @property
    def starts(self) -> IntArray:
        """Where the categories of each column begin."""
        return np.concatenate([[0], np.cumsum(self.n_categories)])[:-1].astype(int)

    def prepare(self, rows: Rows) -> sparse.csr_array:
        """Return whether rows have each category (M, n) of all columns."""
        column, row = np.nonzero(rows.codes != MISSING_CODE)
        category = rows.codes[column, row] + self.starts[column]
        shape = (self.n_hyperparameters, rows.n_rows)
        return sparse.csr_array((np.ones(len(row)), (category, row)), shape=shape)

    def prior(self, statistics: FloatArray) -> FloatArray:
        return statistics + self.smoothing / np.repeat(
            self.n_categories, self.n_categories
        )

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        totals = np.add.reduceat(hyper, self.starts, axis=1)
        logs = np.add.reduceat(gammaln(hyper), self.starts, axis=1)
        proper = np.logical_and.reduceat(hyper > 0.0, self.starts, axis=1)
        with np.errstate(invalid="ignore"):
            values = np.where(proper, logs - gammaln(totals), np.inf)
            spread = np.repeat(psi(totals), self.n_categories, axis=1)
            return values, psi(hyper) - spread


@registered
@dataclass(frozen=True)
class GammaPoisson(LinearConjugate):
    r"""Priors of the rates of independent Poisson columns.

    .. math:: p(\theta) \propto \theta^{a - 1} e^{-b \theta}, \qquad
              K = \log \Gamma(a) - a \log b + l

    The hyperparameters are :math:`(a, b, l)`, with the features :math:`(x, 1, -\log
    x!)`. The real columns are counts, neither centred nor scaled; each is a block, and
    holes contribute nothing.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    """

    n_columns: int

    def check_consistent(self) -> None:
        """Raise ValueError unless there are columns."""
        require_whole("numbers of columns", [self.n_columns], 1)

    @property
    def blocks(self) -> IntArray:
        return np.tile(np.arange(self.n_columns), 3)

    def prepare(self, rows: Rows) -> FloatArray:
        _check_counts(rows)
        return np.vstack([rows.real, observed_cells(rows), -gammaln(rows.real + 1.0)])

    def prior(self, statistics: FloatArray) -> FloatArray:
        totals, rows, constants = np.split(statistics, 3, axis=1)
        # Half an event is Jeffreys' prior, and keeps a column of zeros proper.
        return np.hstack([totals + 0.5, np.where(rows > 0.0, rows, 1.0), constants])

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        totals, rows, constants = np.split(hyper, 3, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(rows)
            values = gammaln(totals) - totals * logs + constants
            by_totals, by_rows = psi(totals) - logs, -totals / rows
        values = np.where((totals > 0.0) & (rows > 0.0), values, np.inf)
        return values, np.hstack([by_totals, by_rows, np.ones_like(logs)])


@registered
@dataclass(frozen=True)
class DirichletMultinomial(LinearConjugate):
    r"""Prior of the probabilities of a multinomial: columns share out a row's events.

    .. math:: K = \sum_k \log \Gamma(\alpha_k) - \log \Gamma\big(\sum_k \alpha_k\big) + l

    The hyperparameters are :math:`(\alpha, l)`, with the counts and the logarithm of
    the multinomial coefficient as features. Rows have to be complete; the real columns
    are counts, neither centred nor scaled.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    """

    n_columns: int

    def check_consistent(self) -> None:
        """Raise ValueError unless there are columns."""
        require_whole("numbers of columns", [self.n_columns], 1)

    @property
    def blocks(self) -> IntArray:
        return np.zeros(self.n_columns + 1, dtype=int)

    def prepare(self, rows: Rows) -> FloatArray:
        refuse_holes(self, rows.observed is not None)
        _check_counts(rows)
        events = rows.real.sum(axis=0)
        coefficients = gammaln(events + 1.0) - gammaln(rows.real + 1.0).sum(axis=0)
        return np.vstack([rows.real, coefficients])

    def prior(self, statistics: FloatArray) -> FloatArray:
        prior = statistics.copy()
        prior[:, :-1] += 1.0 / self.n_columns
        return prior

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        counts = hyper[:, :-1]
        totals = counts.sum(axis=1, keepdims=True)
        proper = np.all(counts > 0.0, axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            values = gammaln(counts).sum(axis=1, keepdims=True) - gammaln(totals)
            by_counts = psi(counts) - psi(totals)
        values = np.where(proper, values + hyper[:, -1:], np.inf)
        return values, np.hstack([by_counts, np.ones_like(totals)])


def _check_counts(rows: Rows) -> None:
    if (rows.real < 0.0).any():
        column = int(np.argmax((rows.real < 0.0).any(axis=1)))
        raise ValueError(
            f"Negative values in data: those of column {column} are not counts. Use "
            'model="independent" for columns of any numbers.'
        )
