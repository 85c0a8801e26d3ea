r"""Switches: columns or kernels that a model may do without.

A switch is a Bernoulli variable of prior probability :math:`\rho` in front of some
weights. Integrated out, it turns the quadratic log-partition :math:`q` of these into

.. math:: \log\big(1 - \rho + \rho\, e^{q}\big),

whose derivative by :math:`q` is the posterior probability that they are included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hybridmix._typing import FloatArray, IntArray
from hybridmix.med.models.base import Tilted, TiltedModel
from hybridmix.med.models.linear import outputs_of, statistics


class Switched(NamedTuple):
    """Posterior of a model with switches.

    Attributes
    ----------
    weights : ndarray of shape (C, p), or of shape (C, n) for kernels
        Expected weight vectors; signed weights of the rows.
    inclusion : ndarray of shape (p,), (C, p) or (M,)
        Posterior probability of each switch.
    """

    weights: FloatArray
    inclusion: FloatArray


def switched(quadratic: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
    """Return ``log(1 - rho + rho exp(q))``, and its derivative, the inclusion."""
    if rho >= 1.0:
        return quadratic, np.ones_like(quadratic)
    on, off = np.log(rho) + quadratic, np.log1p(-rho)
    value = np.logaddexp(on, off)
    return value, np.exp(on - value)


class SwitchedColumns(TiltedModel):
    r"""Linear outputs of columns that have a switch each.

    .. math:: \log Z(w) = \sum_j \log\Big(1 - \rho + \rho
              \exp \tfrac12 \sum_c v_{cj}^2 \Big), \qquad v_c = \sum_n w_{cn} x_n

    A switch is shared by all outputs, classes or tasks, or each has its own.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, p)
        Rows.
    inclusion : float
        :math:`\rho`, the prior probability that a column is included.
    n_outputs : int
        C.
    shared : bool
        Whether outputs share the switch of a column.
    """

    def __init__(
        self,
        X: FloatArray | sparse.csr_array,
        inclusion: float,
        n_outputs: int = 1,
        shared: bool = True,
    ) -> None:
        self.X, self.inclusion, self.n_outputs, self.shared = (
            X,
            inclusion,
            n_outputs,
            shared,
        )
        self.n_rows, n_columns = X.shape
        if not sparse.issparse(X):
            shared_once = n_outputs if n_outputs == 1 or not shared else n_outputs + 1
            self.factor_size = n_columns * shared_once

    def tilted(self, weights: FloatArray) -> Tilted:
        vectors = self._statistics(weights)
        quadratic = 0.5 * vectors**2
        if self.shared:
            quadratic = quadratic.sum(axis=0)
        value, inclusion = switched(quadratic, self.inclusion)
        expected = vectors * inclusion
        return Tilted(
            float(value.sum()),
            self._outputs(expected),
            Switched(expected, inclusion),
        )

    def _statistics(self, weights: FloatArray) -> FloatArray:
        return statistics(self.X, weights)

    def _outputs(self, vectors: FloatArray) -> FloatArray:
        return outputs_of(self.X, vectors)

    def factor(self, tilted: Tilted) -> FloatArray:
        """Return F (q, C, n): covariances of the weights, times the columns.

        The weights of a column have the second derivatives ``s I + s (1 - s) v v'``, with
        its inclusion s and its statistics v.
        """
        expected, inclusion = tilted.posterior
        inclusion = np.broadcast_to(inclusion, expected.shape)
        tiny = np.finfo(float).tiny
        tilts = expected * np.sqrt((1.0 - inclusion) / np.maximum(inclusion, tiny))
        alone = self.n_outputs == 1 or not self.shared
        roots = np.sqrt(inclusion + tilts**2) if alone else np.sqrt(inclusion)
        columns = np.asarray(self.X).T
        own = np.zeros((self.n_outputs, len(columns), self.n_outputs, self.n_rows))
        for c, root in enumerate(roots):
            own[c, :, c] = root[:, None] * columns
        factors = own.reshape(-1, self.n_outputs, self.n_rows)
        if alone:
            return factors
        return np.concatenate([factors, tilts.T[:, :, None] * columns[:, None, :]])


class TaskColumns(SwitchedColumns):
    r"""Linear outputs of tasks that have rows of their own.

    .. math:: v_t = \sum_{n \in t} w_{tn} x_n

    It is `SwitchedColumns` for constraints that look at no other output of a row than
    that of its task. All other weights are taken for zero, and other outputs are not
    computed: a step costs as much as with a single task.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, p)
        Rows, those of a task next to each other.
    sizes : ndarray of shape (T,)
        How many rows each task has, in this order.
    inclusion, shared
        As in `SwitchedColumns`.
    """

    def __init__(
        self,
        X: FloatArray | sparse.csr_array,
        sizes: IntArray,
        inclusion: float,
        shared: bool = True,
    ) -> None:
        super().__init__(X, inclusion, len(sizes), shared)
        # Steps by a factor of T p rows take more time than they save.
        self.factor_size = None
        ends = np.cumsum(sizes)
        self._slices = [slice(e - s, e) for s, e in zip(sizes, ends, strict=True)]
        self._parts = [X[own] for own in self._slices]

    def _statistics(self, weights: FloatArray) -> FloatArray:
        return np.stack(
            [
                part.T @ own[rows]
                for part, own, rows in zip(
                    self._parts, weights, self._slices, strict=True
                )
            ]
        )

    def _outputs(self, vectors: FloatArray) -> FloatArray:
        outputs = np.zeros((self.n_outputs, self.n_rows))
        for part, own, vector, rows in zip(
            self._parts, outputs, vectors, self._slices, strict=True
        ):
            own[rows] = part @ vector
        return outputs


class SwitchedKernels(TiltedModel):
    r"""Sums of functions of several kernels that have a switch each.

    .. math:: \log Z(w) = \sum_m \log\Big(1 - \rho + \rho
              \exp \tfrac12 \sum_c w_c^\top K_m w_c \Big)

    Parameters
    ----------
    kernels : sequence of ndarray of shape (n, n), or of objects with ``@``
        Of the training rows with each other.
    inclusion : float
        :math:`\rho`, the prior probability that a kernel is included.
    n_outputs : int
        C.
    """

    def __init__(self, kernels: Any, inclusion: float, n_outputs: int = 1) -> None:
        self.kernels, self.inclusion, self.n_outputs = kernels, inclusion, n_outputs
        self.n_rows = kernels[0].shape[0]

    def tilted(self, weights: FloatArray) -> Tilted:
        parts = np.stack([(kernel @ weights.T).T for kernel in self.kernels])
        quadratic = 0.5 * np.sum(weights * parts, axis=(1, 2))
        value, inclusion = switched(quadratic, self.inclusion)
        outputs = np.tensordot(inclusion, parts, 1)
        return Tilted(float(value.sum()), outputs, Switched(weights, inclusion))
