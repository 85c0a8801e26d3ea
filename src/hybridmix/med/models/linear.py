"""Linear and kernel models: Gaussian priors over discriminant functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from hybridmix._typing import FloatArray
from hybridmix.med.block_matrix import BlockMatrix
from hybridmix.med.models.base import Tilted, TiltedModel


class LinearModel(TiltedModel):
    r"""One weight vector per output, standard normal a priori.

    .. math:: \log Z(w) = \tfrac12 \sum_c \lVert v_c \rVert^2, \qquad
              v_c = \sum_n w_{cn} x_n

    The posterior is the array of expected weight vectors :math:`v` (C, p).

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, p)
        Rows.
    n_outputs : int
        C.
    """

    def __init__(self, X: FloatArray | sparse.csr_array, n_outputs: int = 1) -> None:
        self.X, self.n_outputs = X, n_outputs
        self.n_rows = X.shape[0]

    def tilted(self, weights: FloatArray) -> Tilted:
        vectors = statistics(self.X, weights)
        return Tilted(
            0.5 * float(np.sum(vectors**2)), outputs_of(self.X, vectors), vectors
        )


class KernelModel(TiltedModel):
    r"""Gaussian processes: a prior over functions whose covariance is a kernel.

    .. math:: \log Z(w) = \tfrac12 \sum_c w_c^\top K w_c

    The posterior is the array of signed weights (C, n) itself.

    Parameters
    ----------
    kernel : ndarray of shape (n, n), or an object with ``@``
        Of the training rows with each other.
    n_outputs : int
        C.
    """

    def __init__(self, kernel: Any, n_outputs: int = 1) -> None:
        self.kernel, self.n_outputs = kernel, n_outputs
        self.n_rows = kernel.shape[0]

    def tilted(self, weights: FloatArray) -> Tilted:
        outputs = np.ascontiguousarray((self.kernel @ weights.T).T)
        return Tilted(0.5 * float(np.sum(weights * outputs)), outputs, weights)


def statistics(
    X: FloatArray | sparse.csr_array | BlockMatrix, weights: FloatArray
) -> FloatArray:
    """Return sums of rows by signed weights, (C, p)."""
    return np.ascontiguousarray((X.T @ weights.T).T)


def outputs_of(
    X: FloatArray | sparse.csr_array | BlockMatrix, vectors: FloatArray
) -> FloatArray:
    """Return the outputs (C, n) of weight vectors (C, p)."""
    return np.ascontiguousarray((X @ vectors.T).T)
