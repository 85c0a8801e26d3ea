r"""What the conjugate prior of a family offers: its log-partition, and nothing else.

The log density of an exponential family is linear in features of a row,
:math:`\log p(x \mid \theta) = \eta(\theta)^\top \phi(x)`. Its conjugate prior has
hyperparameters :math:`\chi` of the same length, and adding rows to it, with weights that
may be negative or fractions, adds their features:

.. math:: p(\theta \mid \chi) \propto e^{\eta(\theta)^\top \chi}, \qquad
          \chi' = \chi + \sum_n w_n \phi(x_n), \qquad
          \frac{\partial K(\chi)}{\partial \chi} = E[\eta(\theta) \mid \chi].

The log-partition :math:`K` and its derivatives are all that there is to know. Terms of
the density that are free of parameters are features as well, whose :math:`\eta` is 1.

Hyperparameters are arrays (J, q), for all components at once; rows are the last axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from hybridmix._require import require, require_array, require_rank
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.exceptions import UnsupportedError

# What `Conjugate.prepare` returns. Nobody looks into it but the prior itself.
Prepared: TypeAlias = Any


class Conjugate(ABC):
    r"""Base of the conjugate priors.

    Columns may form *blocks* that are independent of each other, a priori and given any
    rows: the log-partition is then a sum over the blocks.
    """

    @property
    @abstractmethod
    def blocks(self) -> IntArray:
        """Number of the block, from 0, that each hyperparameter (q,) belongs to."""

    @property
    def n_hyperparameters(self) -> int:
        """Length q of the hyperparameters of a component."""
        return len(self.blocks)

    @property
    def n_blocks(self) -> int:
        """Number m of the blocks."""
        return int(self.blocks.max(initial=-1)) + 1

    @abstractmethod
    def prepare(self, rows: Rows) -> Prepared:
        """Rearrange rows into what `statistics` and `log_densities` read."""

    @abstractmethod
    def statistics(self, prepared: Prepared, weights: FloatArray) -> FloatArray:
        """Return sums (J, q) of the features with signed weights (J, n)."""

    @abstractmethod
    def prior(self, statistics: FloatArray) -> FloatArray:
        """Return hyperparameters (J, q) that know little more than statistics (J, q).

        They expect densities to be those of the statistics, and are proper for any
        statistics of rows, however few.
        """

    @abstractmethod
    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log-partitions and their derivatives.

        Parameters
        ----------
        hyper : ndarray of shape (J, q)
            Hyperparameters.

        Returns
        -------
        log_partitions : ndarray of shape (J, m)
            Of each block, up to a constant; infinite where there is no such density.
        expected : ndarray of shape (J, q)
            Expected natural parameters; meaningless where there is no such density.
        """

    @abstractmethod
    def log_densities(self, prepared: Prepared, expected: FloatArray) -> FloatArray:
        """Return log densities (J, n) of rows by natural parameters (J, q)."""

    def edge_probabilities(self, hyper: FloatArray) -> FloatArray | None:
        """Return how probable edges between columns are, (J, k, k), if there are any."""
        return None

    def check_hyperparameters(self, hyper: FloatArray) -> None:
        """Raise ValueError unless hyperparameters (J, q) are those of densities."""
        require_rank("hyperparameters", hyper, 2)
        require_array("hyperparameters", hyper, (len(hyper), self.n_hyperparameters))
        log_partitions, _ = self.evaluate(hyper)
        proper = np.isfinite(log_partitions).all()
        require(proper, "hyperparameters are not those of a density")


class LinearConjugate(Conjugate):
    """Base of the priors that are computed from a matrix of features."""

    @abstractmethod
    def prepare(self, rows: Rows) -> Prepared:
        """Return the features (q, n), dense or sparse."""

    def statistics(self, prepared: Prepared, weights: FloatArray) -> FloatArray:
        return np.ascontiguousarray((prepared @ weights.T).T)

    def log_densities(self, prepared: Prepared, expected: FloatArray) -> FloatArray:
        return np.ascontiguousarray((prepared.T @ expected.T).T)


def observed_cells(rows: Rows) -> BoolArray:
    """Return the mask (d, n) of the observed real cells, also when all are."""
    if rows.observed is None:
        return np.ones(rows.real.shape, dtype=bool)
    return rows.observed


def refuse_holes(owner: object, found: bool | np.bool_) -> None:
    """Refuse holes, on behalf of priors that are conjugate to complete rows only."""
    if found:
        raise UnsupportedError(
            owner,
            "posteriors of rows with missing values",
            'Use independent columns (model="independent"), HybridMixtureClassifier, '
            "or fill the holes by MixtureImputer.",
        )
