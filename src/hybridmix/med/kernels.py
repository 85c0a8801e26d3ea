"""Kernels: covariances of functions, and outputs of new rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_number, require_positive
from hybridmix._typing import FloatArray

# Blocks of a kernel matrix have about this many bytes, to stay in the processor's cache.
_BLOCK_BYTES = 1 << 19
# Squared distances are differences of squared lengths. In single precision, a kernel
# value has an error of 1e-7 times the lengths; beyond this they are taken in double.
_SAFE_LENGTH = 50.0

# Fills an array (m, n) with the kernel values of m rows and n others.
Fill = Callable[[FloatArray, Any], None]


class Kernel(ABC):
    """A covariance of functions: how similar two rows are.

    Attributes
    ----------
    dtype : dtype
        In which its values are kept.
    """

    dtype: ClassVar[Any] = np.float64

    @abstractmethod
    def against(self, X: FloatArray, exact: bool = False) -> Fill:
        """Return a function of rows (m, p) and an array (m, n) for their values with X.

        It does now what depends on `X` (n, p) alone. Values are computed in double
        precision if they are to be exact, and else in that of the kernel.
        """

    @abstractmethod
    def diagonal(self, X: FloatArray) -> FloatArray:
        """Return the kernel values (n,) of rows with themselves."""

    def between(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the exact kernel values (m, n) of rows (m, p) and (n, p)."""
        values = np.empty((len(A), len(B)))
        self.against(B, exact=True)(A, values)
        return values


@registered
@dataclass(frozen=True)
class LinearKernel(Kernel):
    r"""Inner products: :math:`k(x, z) = x^\top z`."""

    def against(self, X: FloatArray, exact: bool = False) -> Fill:
        def fill(A: FloatArray, out: Any) -> None:
            np.matmul(A, X.T, out=out)

        return fill

    def diagonal(self, X: FloatArray) -> FloatArray:
        return np.einsum("ij,ij->i", X, X)


@registered
@dataclass(frozen=True)
class PolynomialKernel(Kernel):
    r"""Powers of inner products: :math:`k(x, z) = (\gamma x^\top z + c_0)^d`.

    Parameters
    ----------
    degree : int
        :math:`d`, at least 1.
    gamma : float
        Positive.
    coef0 : float
        :math:`c_0`, at least 0: the kernel would not be a covariance below it.
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require(
            type(self.degree) is int and self.degree >= 1,
            "degree is not a whole number of at least 1",
        )
        require_positive("gamma", self.gamma)
        require_number("coef0", self.coef0, 0.0)

    def against(self, X: FloatArray, exact: bool = False) -> Fill:
        scaled = self.gamma * X.T

        def fill(A: FloatArray, out: Any) -> None:
            np.matmul(A, scaled, out=out)
            out += self.coef0
            np.power(out, self.degree, out=out)

        return fill

    def diagonal(self, X: FloatArray) -> FloatArray:
        lengths = np.einsum("ij,ij->i", X, X)
        return (self.gamma * lengths + self.coef0) ** self.degree


@registered
@dataclass(frozen=True)
class RBFKernel(Kernel):
    r"""Gaussian bumps: :math:`k(x, z) = e^{-\gamma \lVert x - z \rVert^2}`.

    Parameters
    ----------
    gamma : float
        Positive.
    """

    gamma: float = 1.0

    dtype: ClassVar[Any] = np.float32

    def check_consistent(self) -> None:
        """Raise ValueError unless the width is a positive number."""
        require_positive("gamma", self.gamma)

    def against(self, X: FloatArray, exact: bool = False) -> Fill:
        # The exponent is one inner product of rows that have two columns more. Moving
        # the origin to the mean keeps its terms small.
        centre, scale = X.mean(axis=0), np.sqrt(2.0 * self.gamma)
        others, halves = _scaled(X, centre, scale)
        is_safe = halves.max(initial=0.0) < _SAFE_LENGTH
        dtype = self.dtype if is_safe and not exact else np.float64
        right = np.empty((X.shape[1] + 2, len(X)), dtype)
        right[:-2], right[-2], right[-1] = others.T, -1.0, -halves

        def fill(A: FloatArray, out: Any) -> None:
            rows, own = _scaled(A, centre, scale)
            left = np.empty((len(A), right.shape[0]), dtype)
            left[:, :-2], left[:, -2], left[:, -1] = rows, own, 1.0
            step = block_rows(right.shape[1], right.itemsize)
            for first in range(0, len(A), step):
                part = slice(first, first + step)
                if out.dtype == dtype:
                    np.matmul(left[part], right, out=out[part])
                else:
                    out[part] = left[part] @ right
                np.exp(out[part], out=out[part])

        return fill

    def diagonal(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A function of two arrays of rows, (m, p) and (n, p), that returns values (m, n).

    Model files cannot hold it.

    Parameters
    ----------
    function : callable
        The function.
    """

    function: Callable[[FloatArray, FloatArray], FloatArray]

    def against(self, X: FloatArray, exact: bool = False) -> Fill:
        def fill(A: FloatArray, out: Any) -> None:
            values = np.asarray(self.function(A, X))
            if values.shape != out.shape:
                raise ValueError(
                    f"The kernel function returned an array of shape {values.shape} for "
                    f"{len(A)} rows and {len(X)} others; it should be {out.shape}."
                )
            out[...] = values

        return fill

    def diagonal(self, X: FloatArray) -> FloatArray:
        step = 64
        parts = [X[first : first + step] for first in range(0, len(X), step)]
        return np.concatenate([self.between(rows, rows).diagonal() for rows in parts])


def _scaled(
    X: FloatArray, centre: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Return rows around a centre, scaled, and half of their squared lengths."""
    rows = (X - centre) * scale
    return rows, 0.5 * np.einsum("ij,ij->i", rows, rows)


def block_rows(width: int, itemsize: int) -> int:
    """Return how many rows of a kernel matrix the processor's cache holds."""
    return max(_BLOCK_BYTES // max(width * itemsize, 1), 1)


def kernel_outputs(
    kernel: Kernel, X: FloatArray, support: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the outputs (C, m) of new rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : ndarray of shape (m, p)
        New rows.
    support : ndarray of shape (S, p)
        Training rows that have a weight.
    weights : ndarray of shape (C, S)
        Their signed weights.
    """
    outputs = np.zeros((len(weights), len(X)))
    if not len(support):
        return outputs
    # In double precision, outputs of a row do not depend on the rows around it.
    fill = kernel.against(support, exact=True)
    step = block_rows(len(support), weights.itemsize)
    values = np.empty((min(step, len(X)), len(support)))
    for first in range(0, len(X), step):
        rows = X[first : first + step]
        fill(rows, values[: len(rows)])
        outputs[:, first : first + step] = (values[: len(rows)] @ weights.T).T
    return outputs
