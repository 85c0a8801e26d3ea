r"""Families: every output is the log density of a class, under an uncertain model.

The parameters of each class have a conjugate prior, so that signed weights of rows lead
to a posterior of the same kind, :math:`\chi_c + \sum_n w_{cn} \phi(x_n)`, and

.. math:: \log Z(w) = \sum_c \Big[ K\big(\chi_c + \sum_n w_{cn} \phi(x_n)\big)
          - K(\chi_c) \Big].

Posterior counts have to stay positive, which bounds the weights from below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_instance
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.families.conjugates import (
    Conjugate,
    Dirichlet,
    DirichletTrees,
    Independent,
    NormalGamma,
    NormalWishart,
)
from hybridmix.med.models.base import Tilted, TiltedModel, improper
from hybridmix.med.models.switches import switched


@registered
@dataclass(frozen=True, eq=False)
class ClassDensities:
    """Posterior over the densities of all classes.

    Attributes
    ----------
    conjugate : Conjugate
        Kind of the posteriors.
    hyper : ndarray of shape (C, q)
        Hyperparameters of each class.
    inclusion : ndarray of shape (m,)
        Posterior probability that each block of columns is included; ones without
        switches.
    """

    conjugate: Conjugate
    hyper: FloatArray
    inclusion: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless hyperparameters and inclusions are valid."""
        require_instance("conjugate", self.conjugate, Conjugate)
        self.conjugate.check_hyperparameters(self.hyper)
        require_array("inclusion", self.inclusion, (self.conjugate.n_blocks,))
        inside = np.all((self.inclusion >= 0.0) & (self.inclusion <= 1.0))
        require(inside, "inclusion is not between 0 and 1")

    def edge_probabilities(self) -> FloatArray | None:
        """Return how probable edges between columns are, (C, k, k), if there are any."""
        return self.conjugate.edge_probabilities(self.hyper)

    def expected_log_densities(self, rows: Rows) -> FloatArray:
        """Return the outputs (C, n) of rows: expected log densities of each class."""
        _, expected = self.conjugate.evaluate(self.hyper)
        expected = expected * self.inclusion[self.conjugate.blocks]
        return self.conjugate.log_densities(self.conjugate.prepare(rows), expected)


class ClassFamilies(TiltedModel):
    r"""Log densities of classes whose parameters have conjugate priors.

    Blocks of independent columns may have a switch each, for all classes, so that

    .. math:: \log Z(w) = \sum_b \log\big(1 - \rho + \rho\, e^{q_b}\big), \qquad
              q_b = \sum_c \big[ K_b(\chi_c + \sum_n w_{cn} \phi(x_n)) - K_b(\chi_c)
              \big].

    The posterior is a `ClassDensities`.

    Parameters
    ----------
    conjugate : Conjugate
        Kind of the priors.
    rows : Rows
        Training rows.
    prior : ndarray of shape (C, q)
        Hyperparameters of each class, as `empirical_prior` or `flat_prior` make them.
    inclusion : float
        :math:`\rho`, the prior probability that a block is included; 1 for no switches.
    """

    def __init__(
        self,
        conjugate: Conjugate,
        rows: Rows,
        prior: FloatArray,
        inclusion: float = 1.0,
    ) -> None:
        self.conjugate, self.prior, self.inclusion = conjugate, prior, inclusion
        self.n_outputs, self.n_rows = len(prior), rows.n_rows
        self._prepared = conjugate.prepare(rows)
        self._blocks = conjugate.blocks
        self._prior_partitions, _ = conjugate.evaluate(prior)

    def tilted(self, weights: FloatArray) -> Tilted:
        hyper = self.prior + self.conjugate.statistics(self._prepared, weights)
        partitions, expected = self.conjugate.evaluate(hyper)
        if not np.isfinite(partitions).all():
            return improper(weights)
        gains = (partitions - self._prior_partitions).sum(axis=0)
        value, inclusion = switched(gains, self.inclusion)
        if self.inclusion < 1.0:
            expected = expected * inclusion[self._blocks]
        return Tilted(
            float(value.sum()),
            self.conjugate.log_densities(self._prepared, expected),
            ClassDensities(self.conjugate, hyper, inclusion),
        )


class LogRatio(TiltedModel):
    r"""One output: the log ratio of two densities, for regression or two classes.

    .. math:: f(x) = \log p(x \mid \theta_+) - \log p(x \mid \theta_-)

    It is linear in the row if the two differ by means only, and curved if they have
    covariances of their own. The posterior is that of the two densities.

    Parameters
    ----------
    densities : ClassFamilies
        A model of two outputs.
    """

    n_outputs = 1

    def __init__(self, densities: ClassFamilies) -> None:
        self.densities = densities
        self.n_rows = densities.n_rows

    def tilted(self, weights: FloatArray) -> Tilted:
        tilted = self.densities.tilted(np.vstack([weights, -weights]))
        difference = tilted.outputs[:1] - tilted.outputs[1:]
        return Tilted(tilted.log_partition, difference, tilted.posterior)


def conjugate_of(model: str, n_real: int, n_categories: tuple[int, ...]) -> Conjugate:
    """Return the kind of priors for a table of real and categorical columns.

    Parameters
    ----------
    model : {"gaussian", "independent", "tree"}
        Full covariances of the real columns; all columns independent; a tree that
        connects the categorical columns.
    n_real : int
        Number of real columns.
    n_categories : tuple of int
        Numbers of categories of the categorical columns.
    """
    parts: list[Conjugate] = []
    if n_real:
        real = NormalWishart if model == "gaussian" else NormalGamma
        parts.append(real(n_real))
    if n_categories:
        codes = DirichletTrees if model == "tree" else Dirichlet
        parts.append(codes(n_categories))
    return parts[0] if len(parts) == 1 else Independent(tuple(parts))


def empirical_prior(
    conjugate: Conjugate,
    rows: Rows,
    members: FloatArray,
    strength: float = 1.0,
    pseudo_rows: float = 1.0,
) -> FloatArray:
    """Return the priors (C, q) that expect each class to be like its own rows.

    Parameters
    ----------
    conjugate : Conjugate
        Kind of the priors.
    rows : Rows
        Training rows.
    members : ndarray of shape (C, n)
        Weights of the rows of each class, at least 0.
    strength : float
        How much a row of a class counts. The larger it is, the more a posterior is tied
        to the likelihood of its class.
    pseudo_rows : float
        How many rows that are like the whole table every class has as well.
    """
    prepared = conjugate.prepare(rows)
    own = conjugate.statistics(prepared, members)
    pooled = _pooled(own, members)
    return conjugate.prior(strength * own + pseudo_rows * pooled)


def flat_prior(
    conjugate: Conjugate, rows: Rows, members: FloatArray, pseudo_rows: float = 1.0
) -> FloatArray:
    """Return priors (C, q) that expect every class to be like the whole table.

    Parameters are those of `empirical_prior`.
    """
    own = conjugate.statistics(conjugate.prepare(rows), members)
    pooled = _pooled(own, members)
    return conjugate.prior(np.repeat(pseudo_rows * pooled, len(members), axis=0))


def _pooled(own: FloatArray, members: FloatArray) -> FloatArray:
    """Return mean statistics (1, q) of a row of the table."""
    return own.sum(axis=0, keepdims=True) / members.sum()
