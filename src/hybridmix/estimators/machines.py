"""The options and the reading that estimators of maximum entropy discrimination share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import (
    check_number,
    check_verbosity,
    check_word,
    is_learned,
)
from hybridmix._require import require
from hybridmix._typing import FloatArray
from hybridmix.data.matrices import read_matrix, read_training_matrix
from hybridmix.med.kernels import (
    CallableKernel,
    Kernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
)
from hybridmix.med.margins import MarginPrior
from hybridmix.training.machines import (
    SOLVERS,
    MachineOptions,
    Matrix,
    TrainedMachine,
)
from hybridmix.training.record import INTERRUPTED

KERNELS = ("linear", "rbf", "poly")
FUNCTIONS = (*KERNELS, "precomputed")


# Why tables in blocks are refused.
ROW_MULTIPLIERS = (
    "It finds a multiplier for every row. Fit it to some of them, such as "
    "X.sample(frac=0.01).compute() of Dask or next(iter(X)) of a scanned table, or use a "
    "mixture or a MixtureNetworkClassifier, which sum over blocks."
)


class FittedMachine(BaseEstimator):
    """Base of the estimators of maximum entropy discrimination. It has no options.

    Attributes
    ----------
    machine_ : Machine
        What predicts.
    dual_gap_ : float
        How far the dual may be from its maximum.
    """

    machine_: Any
    dual_gap_: float

    def _publish(self, attributes: dict[str, Any]) -> None:
        """Replace everything that an earlier fit has learned, in one statement."""
        kept = {k: v for k, v in vars(self).items() if not is_learned(k)}
        self.__dict__ = {**kept, **attributes}


@dataclass(eq=False, repr=False)
class FunctionEstimator(FittedMachine):
    """Base of the estimators whose outputs are linear or kernel functions.

    The options are documented in `MEDClassifier`.
    """

    model: Any = "linear"
    _: KW_ONLY
    C: float = 1.0
    smoothness: float | str = 1.0
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 1.0
    tol: float = 1e-4
    max_iter: int = 1000
    verbose: int = 0

    _models: ClassVar[tuple[str, ...]] = FUNCTIONS
    # What the smoothness may be instead of a number.
    _smoothness_word: ClassVar[str | None] = None
    # What to do about missing values.
    _remedy: ClassVar[str] = (
        "Linear and kernel models need complete rows: fill the holes with a "
        "MixtureImputer in a pipeline."
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.model, str) and self.model == "precomputed"

    @property
    def _accepts_sparse(self) -> bool:
        return False

    # Options --------------------------------------------------------------------------

    def _check_options(self) -> None:
        """Refuse options that make no sense, as far as that shows without rows."""
        if not callable(self.model):
            hint = " It may also be a function of two arrays of rows."
            check_word("model", self.model, self._models, hint)
        check_number("C", self.C, 1e-12, 1e12)
        word = self._smoothness_word
        check_number("smoothness", self.smoothness, 0.0, 1e12, or_word=word)
        check_number("gamma", self.gamma, 1e-300, or_word="scale")
        check_number("degree", self.degree, 1, 100, whole=True)
        check_number("coef0", self.coef0, 0.0)
        check_number("tol", self.tol, 1e-12, 1.0)
        check_number("max_iter", self.max_iter, 0, whole=True)
        check_verbosity(self.verbose)

    def _kernel(self, kernel: Any, gamma: float) -> Kernel:
        """Return a kernel by its name, function or object."""
        if isinstance(kernel, Kernel):
            return kernel
        if callable(kernel):
            return CallableKernel(kernel)
        check_word("kernels", kernel, KERNELS, " It may also be a function or a Kernel.")
        known: dict[str, Kernel] = {
            "linear": LinearKernel(),
            "rbf": RBFKernel(gamma),
            "poly": PolynomialKernel(int(self.degree), gamma, float(self.coef0)),
        }
        return known[kernel]

    def _own_kernels(self, gamma: float) -> tuple[Kernel, ...]:
        """Return the kernel of the model, if it is not linear or given as a matrix."""
        if callable(self.model) or self.model in ("rbf", "poly"):
            return (self._kernel(self.model, gamma),)
        return ()

    def _gamma(self, X: Matrix, weights: FloatArray | None) -> float:
        if self.gamma != "scale":
            return float(self.gamma)
        if not isinstance(X, np.ndarray):
            return 1.0  # kernels refuse sparse tables
        # Over all cells, each with the weight of its row.
        mean = np.average(X.mean(axis=1), weights=weights)
        squares = np.einsum("ij,ij->i", X, X) / X.shape[1]
        variance = float(np.average(squares, weights=weights) - mean**2)
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0

    # Reading --------------------------------------------------------------------------

    def _read_training(self, X: Any) -> tuple[Matrix, dict[str, Any]]:
        matrix, attributes = read_training_matrix(
            self, X, self._accepts_sparse, self._remedy
        )
        if self._is_precomputed and matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                "model='precomputed' needs the square kernel matrix of the training "
                f"rows, but X has the shape {matrix.shape}."
            )
        return matrix, attributes

    def _read(self, X: Any) -> Matrix:
        """Read rows to predict."""
        check_is_fitted(self, "machine_")
        return read_matrix(self, X, self._accepts_sparse, self._remedy)

    def _outputs(self, X: Any) -> FloatArray:
        """Return the expected outputs (C, n) of rows."""
        matrix = self._read(X)
        return self.machine_.outputs(matrix)

    def _has_code(self) -> bool:
        """Return whether an option is a function, which no file can hold."""
        return callable(self.model)

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        check_is_fitted(self, "machine_")
        if self._has_code():
            raise ValueError(
                f"A {type(self).__name__} with a function as its kernel cannot be saved: "
                "a model file never holds code. Use one of the kernels by name, or "
                "model='precomputed'."
            )
        self._check_options()
        self.machine_.check_consistent()
        require(np.isfinite(self.dual_gap_), "dual_gap_ is not finite")


@dataclass(eq=False, repr=False)
class MachineEstimator(FunctionEstimator):
    """Base of the estimators that train discriminant functions by margins.

    The options are documented in `MEDClassifier`.
    """

    _: KW_ONLY
    bias: float | str = "flat"
    inclusion: float = 1.0
    kernels: Any = None
    solver: str = "auto"
    cache_size: float = 200.0

    @property
    def _accepts_sparse(self) -> bool:
        is_linear = isinstance(self.model, str) and self.model == "linear"
        return is_linear and self.kernels is None

    def _check_options(self) -> None:
        super()._check_options()
        check_number("bias", self.bias, 0.0, 1e12, or_word="flat")
        check_number("inclusion", self.inclusion, 1e-300, 1.0)
        check_word("solver", self.solver, SOLVERS)
        check_number("cache_size", self.cache_size, 0.0)
        self._check_kernels()

    def _check_kernels(self) -> None:
        if self.kernels is None:
            return
        if self._is_precomputed:
            raise ValueError("kernels cannot be combined with model='precomputed'.")
        is_list = isinstance(self.kernels, Iterable) and not isinstance(self.kernels, str)
        if not is_list or not list(self.kernels):
            raise ValueError(
                f"kernels={self.kernels!r} is not valid: it must be a list of kernels, "
                "or None."
            )
        for kernel in self.kernels:
            self._kernel(kernel, 1.0)

    def _options(
        self, X: Matrix, prior: MarginPrior, weights: FloatArray | None = None
    ) -> MachineOptions:
        """Return how to train on a table with sample weights."""
        gamma = self._gamma(X, weights)
        if self.kernels is not None:
            kernels = tuple(self._kernel(kernel, gamma) for kernel in self.kernels)
        else:
            kernels = self._own_kernels(gamma)
        if kernels and self.kernels is None and self.inclusion < 1.0:
            raise ValueError(
                f"inclusion={self.inclusion!r} is for columns of model='linear', or for "
                "several kernels: it would switch the only kernel off."
            )
        return MachineOptions(
            prior,
            np.inf if self.bias == "flat" else float(self.bias) ** 2,
            float(self.inclusion),
            kernels=kernels,
            precomputed=self._is_precomputed,
            solver=self.solver,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            cache_size=float(self.cache_size),
        )

    def _has_code(self) -> bool:
        return super()._has_code() or any(map(callable, self.kernels or ()))


def training_attributes(trained: TrainedMachine) -> dict[str, Any]:
    """Return what all estimators publish about their training."""
    return {
        "machine_": trained.machine,
        "dual_value_": trained.value,
        "dual_gap_": trained.gap,
        "n_iter_": trained.n_iter,
        "converged_": trained.converged,
        "interrupted_": trained.interrupted,
    }


def training_messages(trained: TrainedMachine, max_iter: int) -> tuple[str, ...]:
    """Say what a user should know of the training."""
    if trained.interrupted:
        return (INTERRUPTED,)
    if not trained.converged:
        return (
            f"The solver stopped with a gap of {trained.gap:.3g} between primal and "
            f"dual, after {trained.n_iter} iterations. Raise max_iter={max_iter} or tol, "
            "scale the columns, or lower C.",
        )
    return ()
