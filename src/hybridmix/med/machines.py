"""What training leaves for predictions: expected discriminant functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_array,
    require_instance,
    require_positive,
    require_rank,
    require_whole,
)
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.med.kernels import Kernel, kernel_outputs
from hybridmix.med.latent import Components
from hybridmix.med.models.families import ClassDensities
from hybridmix.med.models.linear import outputs_of


class Machine(Protocol):
    """Expected outputs of rows under a posterior."""

    def outputs(self, X: Any) -> FloatArray:
        """Return the outputs (C, n) of rows (n, p)."""
        ...

    def check_consistent(self) -> None:
        """Raise ValueError unless the parts fit together."""
        ...


@registered
@dataclass(frozen=True)
class LinearMachine:
    """Linear discriminant functions.

    Attributes
    ----------
    coef : ndarray of shape (C, p)
        Expected weights.
    bias : ndarray of shape (C,)
        Expected biases.
    """

    coef: FloatArray
    bias: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless there is a bias for every weight vector."""
        require_rank("coef", self.coef, 2)
        require_array("coef", self.coef, self.coef.shape)
        require_array("bias", self.bias, (len(self.coef),))

    def outputs(self, X: FloatArray | sparse.csr_array) -> FloatArray:
        """Return the outputs (C, n) of rows (n, p)."""
        return outputs_of(X, self.coef) + self.bias[:, None]

    def shifted(self, centre: FloatArray) -> Self:
        """Return the functions of rows of which a centre has not been subtracted."""
        return replace(self, bias=self.bias - self.coef @ centre)


@registered
@dataclass(frozen=True)
class KernelMachine:
    """Sums of kernels around the rows that have a multiplier.

    Attributes
    ----------
    kernels : tuple of Kernel
        One, or several of which some are included.
    inclusion : ndarray of shape (M,)
        What each kernel counts.
    support : ndarray of shape (S, p)
        Rows of training.
    weights : ndarray of shape (C, S)
        Their signed weights.
    bias : ndarray of shape (C,)
        Expected biases.
    """

    kernels: tuple[Kernel, ...]
    inclusion: FloatArray
    support: FloatArray
    weights: FloatArray
    bias: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless all parts are of the same rows and outputs."""
        for kernel in self.kernels:
            require_instance("a kernel", kernel, Kernel)
        require(len(self.kernels) > 0, "there is no kernel")
        require_array("inclusion", self.inclusion, (len(self.kernels),))
        require_rank("support", self.support, 2)
        require_array("support", self.support, self.support.shape)
        require_array("weights", self.weights, (len(self.bias), len(self.support)))
        require_array("bias", self.bias, (len(self.bias),))

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the outputs (C, n) of rows (n, p)."""
        total = np.repeat(self.bias[:, None], len(X), axis=1)
        for kernel, share in zip(self.kernels, self.inclusion, strict=True):
            if share > 0.0:
                own = share * self.weights
                total += kernel_outputs(kernel, X, self.support, own)
        return total


@registered
@dataclass(frozen=True)
class DensityMachine:
    """Log densities of the classes, and biases.

    Attributes
    ----------
    densities : ClassDensities
        Posterior over the densities of all classes.
    bias : ndarray of shape (C,)
        Expected biases: logarithms of class probabilities, up to a constant.
    """

    densities: ClassDensities
    bias: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless every class has a bias."""
        require_instance("densities", self.densities, ClassDensities)
        require_array("bias", self.bias, (len(self.densities.hyper),))

    def outputs(self, X: Rows) -> FloatArray:
        """Return the outputs (C, n) of encoded rows."""
        return self.densities.expected_log_densities(X) + self.bias[:, None]


@registered
@dataclass(frozen=True)
class RatioMachine:
    """The log ratio of two densities, in units of a target.

    Attributes
    ----------
    densities : ClassDensities
        Posterior over the two densities.
    scale : float
        What the log ratio is multiplied by.
    bias : ndarray of shape (1,)
        Expected bias.
    """

    densities: ClassDensities
    scale: float
    bias: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless there are two densities."""
        require_instance("densities", self.densities, ClassDensities)
        require(len(self.densities.hyper) == 2, "there are not two densities")
        require_positive("scale", self.scale)
        require_array("bias", self.bias, (1,))

    def outputs(self, X: Rows) -> FloatArray:
        """Return the outputs (1, n) of encoded rows."""
        above, below = self.densities.expected_log_densities(X)
        return self.scale * (above - below)[None] + self.bias[:, None]


@registered
@dataclass(frozen=True)
class StackedMachine:
    """Outputs that were trained apart: each class against the rest, or each target.

    Attributes
    ----------
    parts : tuple of Machine
        One for each class or target.
    """

    parts: tuple[LinearMachine | KernelMachine | RatioMachine, ...]

    def check_consistent(self) -> None:
        """Raise ValueError unless all parts are machines of one output."""
        for part in self.parts:
            is_known = isinstance(part, LinearMachine | KernelMachine | RatioMachine)
            require(is_known and len(part.bias) == 1, "a part is not of one output")

    def outputs(self, X: Any) -> FloatArray:
        """Return the outputs (C, n) of rows (n, p)."""
        return np.vstack([part.outputs(X) for part in self.parts])


@registered
@dataclass(frozen=True)
class MixtureMachine:
    r"""Scores of classes that have several components.

    .. math:: S_c(x) = \log \sum_{k \in c} e^{s_k(x)}

    Attributes
    ----------
    components : LinearMachine or KernelMachine
        Outputs :math:`s_k` of all components.
    sizes : tuple of int
        Numbers of components of the classes; those of a class are neighbours.
    """

    components: LinearMachine | KernelMachine
    sizes: tuple[int, ...]

    def check_consistent(self) -> None:
        """Raise ValueError unless every component belongs to a class."""
        is_known = isinstance(self.components, LinearMachine | KernelMachine)
        require(is_known, "the outputs of the components are unknown")
        require_whole("sizes", self.sizes, 1)
        fits = sum(self.sizes) == len(self.components.bias)
        require(fits, "sizes are those of other components")

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the scores (C, n) of rows (n, p)."""
        return Components(self.sizes).class_scores(self.components.outputs(X))
