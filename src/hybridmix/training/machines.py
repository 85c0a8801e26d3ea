"""Training of linear and kernel machines: which solver, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.med.block_matrix import BlockMatrix
from hybridmix.med.constraints import Constraints, SignedRows, TargetSides
from hybridmix.med.dual import Dual
from hybridmix.med.gram import GivenMatrix, Gram, KernelMatrix
from hybridmix.med.kernels import Kernel
from hybridmix.med.machines import KernelMachine, LinearMachine, Machine
from hybridmix.med.margins import MarginPrior
from hybridmix.med.models.base import TiltedModel
from hybridmix.med.models.linear import KernelModel, LinearModel
from hybridmix.med.models.switches import Switched, SwitchedColumns, SwitchedKernels
from hybridmix.med.models.transduction import GaussianTargets
from hybridmix.med.solvers.ascent import Ascent, maximised
from hybridmix.med.solvers.axes import maximise_by_axes
from hybridmix.med.solvers.newton import newton
from hybridmix.med.solvers.pairs import maximise_by_pairs
from hybridmix.med.solvers.single_output import KernelSolution

Matrix: TypeAlias = "FloatArray | sparse.csr_array"

# Steps of one or two multipliers are much shorter than iterations of other solvers.
_STEPS_PER_ITERATION = 10_000
SOLVERS = ("auto", "newton", "pairs", "ascent", "axes", "learned")


@dataclass(frozen=True)
class MachineOptions:
    """How a machine is trained.

    Attributes
    ----------
    prior : MarginPrior
        Of the margins.
    bias_variance : float
        Of the biases a priori: infinite for flat ones, 0 for none.
    inclusion : float
        Prior probability of the switches of columns or kernels; 1 for no switches.
    shared : bool
        Whether outputs share the switches of columns.
    kernels : tuple of Kernel
        Empty for linear functions.
    precomputed : bool
        Whether tables are kernel matrices.
    solver : str
        One of `SOLVERS`.
    tol : float
        Largest relative gap between primal and dual.
    max_iter : int
        Largest number of iterations.
    cache_size : float
        Megabytes that rows of a kernel matrix may take.
    seed : int
        Of solvers that choose at random.
    """

    prior: MarginPrior
    bias_variance: float
    inclusion: float = 1.0
    shared: bool = True
    kernels: tuple[Kernel, ...] = ()
    precomputed: bool = False
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 1000
    cache_size: float = 200.0
    seed: int = 0


@dataclass(frozen=True)
class UnknownTargets:
    """Rows whose targets are normal a priori.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Which rows have no target. The constraints have its mean a priori in its place.
    variance : float
        Of the targets a priori.
    """

    rows: BoolArray
    variance: float


@dataclass(frozen=True)
class TrainedMachine:
    """A machine, and how it came about.

    Attributes
    ----------
    machine : Machine
        For predictions.
    multipliers : ndarray of shape (R,)
        Of the constraints.
    value : float
        Of the dual.
    gap : float
        Primal minus dual.
    divergence : float
        Of the posterior from the prior, biases left out.
    n_iter : int
        Iterations of the solver.
    converged, interrupted : bool
        Whether the gap is below the tolerance; whether the user stopped it.
    inclusion : ndarray or None
        Posterior probabilities of the switches.
    least : float or None
        Mean margin, if training has chosen it.
    """

    machine: Machine
    multipliers: FloatArray
    value: float
    gap: float
    divergence: float
    n_iter: int
    converged: bool
    interrupted: bool
    inclusion: FloatArray | None = None
    least: float | None = None


def train_machine(
    X: Matrix | BlockMatrix,
    constraints: Constraints,
    options: MachineOptions,
    unknown: UnknownTargets | None = None,
) -> TrainedMachine:
    """Train a machine by the solver that suits it, or by the one that was asked for.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p), or BlockMatrix
        Rows, or their kernel matrix; rows in blocks for linear functions without
        switches.
    constraints : Constraints
        What is asked of the outputs.
    options : MachineOptions
        The rest.
    unknown : UnknownTargets or None
        Rows whose targets are not known.
    """
    solver = _chosen_solver(constraints, options)
    if options.kernels or options.precomputed:
        return _train_kernels(X, constraints, options, solver, unknown)
    flat = np.isinf(options.bias_variance)
    # A flat bias makes up for any shift, and centred columns have a better condition.
    shift = flat and isinstance(X, np.ndarray | BlockMatrix)
    centre = X.mean(axis=0) if shift else np.zeros(X.shape[1])
    rows = X - centre if shift else X
    if solver == "newton" and unknown is None:
        return _train_by_newton(rows, constraints, options, centre)
    assert not isinstance(rows, BlockMatrix), "rows in blocks are for Newton's method"
    return _train_columns(rows, constraints, options, centre, unknown)


def _chosen_solver(constraints: Constraints, options: MachineOptions) -> str:
    """Return the solver, or refuse one that does not suit the problem."""
    suited = _suited_solvers(constraints, options)
    if options.solver == "auto":
        return suited[0]
    if options.solver not in suited:
        raise ValueError(
            f"solver={options.solver!r} does not suit this problem: it is for "
            f"{_SUITED_TO[options.solver]}. Use solver='auto', or one of "
            f"{', '.join(suited)}."
        )
    return options.solver


def _suited_solvers(constraints: Constraints, options: MachineOptions) -> list[str]:
    """Return the solvers that suit a problem, the best one first."""
    if options.inclusion < 1.0 or len(options.kernels) > 1:
        return ["ascent"]
    if not options.kernels and not options.precomputed:
        return ["newton", "ascent"]
    if not isinstance(constraints, SignedRows | TargetSides):
        return ["ascent"]
    if np.isinf(options.bias_variance):
        return ["pairs", "ascent"]
    return ["ascent", "axes", "learned"]


_SUITED_TO = {
    "newton": "linear functions without switches",
    "pairs": "a single kernel, a single output and a flat bias",
    "axes": "a single kernel, a single output and a bias with a standard deviation",
    "learned": "a single kernel, a single output and a bias with a standard deviation",
}


def _train_by_newton(
    X: Matrix | BlockMatrix,
    constraints: Constraints,
    options: MachineOptions,
    centre: FloatArray,
) -> TrainedMachine:
    """Train linear functions without switches, in the primal."""
    found = newton(
        X,
        constraints,
        options.prior,
        options.bias_variance,
        tol=options.tol,
        max_iter=options.max_iter,
    )
    return TrainedMachine(
        LinearMachine(found.coef, found.bias).shifted(centre),
        found.multipliers,
        found.value - found.gap,
        found.gap,
        0.5 * float(np.sum(found.coef**2)),
        found.n_iter,
        found.converged,
        found.interrupted,
    )


def _train_columns(
    X: Matrix,
    constraints: Constraints,
    options: MachineOptions,
    centre: FloatArray,
    unknown: UnknownTargets | None,
) -> TrainedMachine:
    """Train linear functions of rows of which a centre has been subtracted."""
    n_outputs = constraints.n_outputs
    if options.inclusion == 1.0:
        ascent = ascended(
            _with_unknown(LinearModel(X, n_outputs), unknown), constraints, options
        )
        coef, inclusion = ascent.point.tilted.posterior, None
    else:
        model = SwitchedColumns(X, options.inclusion, n_outputs, options.shared)
        ascent = ascended(_with_unknown(model, unknown), constraints, options)
        coef, inclusion = ascent.point.tilted.posterior
    machine = LinearMachine(coef, ascent.point.bias).shifted(centre)
    return of_ascent(ascent, machine, inclusion)


def _train_kernels(
    X: Any,
    constraints: Constraints,
    options: MachineOptions,
    solver: str,
    unknown: UnknownTargets | None,
) -> TrainedMachine:
    """Train sums of kernels of the rows of a dense array."""
    whole = solver == "ascent" or unknown is not None
    matrices = _kernel_matrices(X, options, whole)
    if unknown is not None and solver == "pairs":
        if isinstance(matrices[0], GivenMatrix):
            # The functions of unknown targets are independent: they add to the diagonal.
            added = np.diag(np.where(unknown.rows, unknown.variance, 0.0))
            matrices = [GivenMatrix(matrices[0].values + added)]
        else:
            solver = "ascent"
    inclusion = np.ones(len(matrices))
    if solver == "ascent":
        model: TiltedModel
        if options.inclusion == 1.0 and len(matrices) == 1:
            model = KernelModel(matrices[0], constraints.n_outputs)
        else:
            model = SwitchedKernels(matrices, options.inclusion, constraints.n_outputs)
        ascent = ascended(_with_unknown(model, unknown), constraints, options)
        if isinstance(ascent.point.tilted.posterior, Switched):
            inclusion = ascent.point.tilted.posterior.inclusion
        weights = constraints.signed(ascent.point.multipliers)
        machine = _kernel_machine(X, weights, ascent.point.bias, inclusion, options)
        return of_ascent(ascent, machine, inclusion)
    found = _by_few_multipliers(matrices[0], constraints, options, solver)
    weights = constraints.signed(found.multipliers)
    length = float(np.sum(weights * (matrices[0] @ weights.T).T))
    return TrainedMachine(
        _kernel_machine(X, weights, np.array([found.bias]), inclusion, options),
        found.multipliers,
        found.value,
        found.gap,
        0.5 * length,
        found.n_iter,
        found.converged,
        found.interrupted,
    )


def _by_few_multipliers(
    matrix: KernelMatrix, constraints: Constraints, options: MachineOptions, solver: str
) -> KernelSolution:
    """Maximise the dual by steps of one or two multipliers."""
    max_iter = _STEPS_PER_ITERATION * options.max_iter
    if solver == "pairs":
        return maximise_by_pairs(
            matrix, constraints, options.prior, tol=options.tol, max_iter=max_iter
        )
    return maximise_by_axes(
        matrix,
        constraints,
        options.prior,
        bias_variance=options.bias_variance,
        choice="greedy" if solver == "axes" else "learned",
        tol=options.tol,
        max_iter=max_iter,
        random_state=options.seed,
    )


def _kernel_matrices(
    X: FloatArray, options: MachineOptions, whole: bool
) -> list[KernelMatrix]:
    """Return kernel matrices of the training rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows, or their kernel matrix.
    options : MachineOptions
        Kernels, and how much memory they may take.
    whole : bool
        Whether all of a matrix will be asked for again and again, as products with it
        are. It is then computed at once, if it fits.
    """
    if options.precomputed:
        return [GivenMatrix(X)]
    share = options.cache_size / len(options.kernels)
    if whole and len(X) ** 2 * np.dtype(np.float64).itemsize <= share * 2**20:
        return [GivenMatrix(kernel.between(X, X)) for kernel in options.kernels]
    return [Gram(kernel, X, share) for kernel in options.kernels]


def _kernel_machine(
    X: FloatArray,
    weights: FloatArray,
    bias: FloatArray,
    inclusion: FloatArray,
    options: MachineOptions,
) -> Machine:
    """Return what predicts: rows without a weight are not kept."""
    if options.precomputed:
        # Outputs are linear in the kernel values with the rows of training.
        return LinearMachine(weights, bias)
    used = np.flatnonzero(np.any(weights != 0.0, axis=0))
    return KernelMachine(
        options.kernels, inclusion, X[used], np.ascontiguousarray(weights[:, used]), bias
    )


def _with_unknown(model: TiltedModel, unknown: UnknownTargets | None) -> TiltedModel:
    """Return a model that integrates unknown targets out."""
    if unknown is None:
        return model
    return GaussianTargets(model, unknown.rows, unknown.variance)


def ascended(
    model: TiltedModel,
    constraints: Constraints,
    options: MachineOptions,
    bias_mean: FloatArray | None = None,
) -> Ascent:
    """Maximise the dual of any model, with biases around 0 or another mean."""
    mean = np.zeros(constraints.n_outputs) if bias_mean is None else bias_mean
    dual = Dual(model, constraints, options.prior, options.bias_variance, mean)
    return maximised(dual, tol=options.tol, max_iter=options.max_iter)


def of_ascent(
    ascent: Ascent, machine: Machine, inclusion: FloatArray | None
) -> TrainedMachine:
    """Return a machine with what its ascent has reached."""
    point = ascent.point
    return TrainedMachine(
        machine,
        point.multipliers,
        point.value,
        point.gap,
        # Of a tilted distribution from what was tilted.
        divergence=float(point.multipliers @ point.expected) - point.tilted.log_partition,
        n_iter=ascent.n_iter,
        converged=ascent.converged,
        interrupted=ascent.interrupted,
        inclusion=inclusion,
    )
