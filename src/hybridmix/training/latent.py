"""Training of mixtures by latent maximum entropy discrimination: a sequence of QPs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.latent import Components, LatentRivals
from hybridmix.med.machines import KernelMachine, LinearMachine, MixtureMachine
from hybridmix.med.models.linear import outputs_of
from hybridmix.med.solvers.newton import LinearSolution, newton
from hybridmix.progress import announce
from hybridmix.training.discrimination import LabelledRows
from hybridmix.training.features import inner_product_features
from hybridmix.training.machines import MachineOptions, TrainedMachine
from hybridmix.training.memory import physical_memory

# Standard deviation of the outputs that a start draws: most rows belong to one component
# of their class almost surely. Softer starts find worse optima.
_START = 10.0
# The QPs are solved to a part of the tolerance of the whole, within this many steps.
_PART, _NEWTON_STEPS = 0.1, 1000
# Arrays of the size of a kernel matrix, and of all pairs of rows and components, that
# training holds at the same time.
_KERNEL_COPIES, _PAIR_COPIES = 5, 12


@dataclass(frozen=True)
class LatentOptions:
    """How mixtures are trained.

    Attributes
    ----------
    machine : MachineOptions
        Margin prior, kernel, tolerance, and the largest number of QPs of a start. Biases
        are flat.
    sizes : tuple of int
        Numbers of components of the classes.
    n_init : int
        Number of starts.
    temperature : float
        Of the first posteriors after the start, at least 1.
    cooling : float
        From one temperature to the next, until it is 1.
    seed : int
        Of the starts.
    """

    machine: MachineOptions
    sizes: tuple[int, ...]
    n_init: int = 10
    temperature: float = 1.0
    cooling: float = 0.8
    seed: int = 0


@dataclass(frozen=True)
class TrainedMixture:
    """The best of several starts.

    Attributes
    ----------
    trained : TrainedMachine
        The machine; value and gap are those of the last QP.
    multipliers : ndarray of shape (n, J)
        Of rows by rival components, 0 for the label's own.
    bounds : ndarray of shape (I,)
        Values of the QPs of this start.
    objectives : ndarray of shape (I,)
        What they bound: the objectives of their solutions.
    starts : ndarray of shape (S,)
        The last objective of each start.
    """

    trained: TrainedMachine
    multipliers: FloatArray
    bounds: FloatArray
    objectives: FloatArray
    starts: FloatArray


def train_latent(rows: LabelledRows, options: LatentOptions) -> TrainedMixture:
    """Train mixtures from several starts, and keep the one of the lowest objective.

    All rows have a label, and the features are a dense table or a kernel matrix.
    """
    check_latent_memory(len(rows.labels), options)
    features, basis = inner_product_features(rows.features, options.machine)
    # Flat biases make up for the shift, and centred features have a better condition.
    centre = features.mean(axis=0)
    problem = _Problem(features - centre, rows, options)
    generator = np.random.default_rng(options.seed)
    # Without a choice between components, all starts are the same.
    n_starts = options.n_init if max(options.sizes) > 1 else 1
    runs: list[_Run] = []
    for number in range(1, n_starts + 1):
        start = _random_posteriors(generator, rows, problem.components)
        run = _Descent(problem, start).go()
        if run is None:
            break
        runs.append(run)
        announce("starts", number, n_starts, f"objective {run.objectives[-1]:.6g}")
        if run.interrupted:
            break
    if not runs:  # interrupted before there was anything to keep
        raise KeyboardInterrupt
    finals = np.array([run.objectives[-1] for run in runs])
    best = runs[int(finals.argmin())]
    place, solution = best.place, best.place.solution
    trained = TrainedMachine(
        _machine(solution, rows.features, options, basis, centre),
        place.multipliers.ravel(),
        solution.value - solution.gap,
        solution.gap,
        0.5 * float(np.sum(solution.coef**2)),
        len(best.objectives),
        best.converged,
        interrupted=len(runs) < n_starts or runs[-1].interrupted,
    )
    return TrainedMixture(
        trained,
        np.ascontiguousarray(place.multipliers.T),
        np.array(best.bounds),
        np.array(best.objectives),
        finals,
    )


def check_latent_memory(n_rows: int, options: LatentOptions) -> None:
    """Refuse tables whose kernel matrix or margins do not fit into memory."""
    n_components = sum(options.sizes)
    machine = options.machine
    has_kernel = bool(machine.kernels) or machine.precomputed
    numbers = _PAIR_COPIES * n_rows * n_components
    numbers += has_kernel * _KERNEL_COPIES * n_rows**2
    needed = float(numbers * np.dtype(np.float64).itemsize)
    available = physical_memory()
    if needed > available:
        remedy = "model='linear', fewer rows" if has_kernel else "fewer rows"
        raise ValueError(
            f"{n_rows} rows and {n_components} components need about "
            f"{needed / 2**30:.0f} GiB, and this machine has {available / 2**30:.0f} "
            f"GiB. Use {remedy} or fewer components (n_components)."
        )


def _random_posteriors(
    generator: np.random.Generator, rows: LabelledRows, components: Components
) -> FloatArray:
    """Return posteriors (J, n) of random linear outputs of the standardised columns.

    They cut each class into half-spaces, which a mixture of linear outputs can keep, and
    do not depend on the number or order of rows.
    """
    mean = np.average(rows.features, axis=0, weights=rows.weights)
    centred = rows.features - mean
    scale = np.sqrt(np.average(centred**2, axis=0, weights=rows.weights))
    n_columns = rows.features.shape[1]
    drawn = generator.normal(size=(components.total, n_columns + 1))
    drawn *= _START / np.sqrt(n_columns + 1)
    vectors = drawn[:, :-1] / np.where(scale > 0.0, scale, 1.0)
    outputs = outputs_of(centred, vectors) + drawn[:, -1:]
    return components.posteriors(outputs, rows.labels)


@dataclass(frozen=True)
class _Place:
    """The solution of a QP.

    Attributes
    ----------
    solution : LinearSolution
        Weights of the features, and the value of the QP.
    outputs : ndarray of shape (J, n)
        Outputs of the components.
    objective : float
        The primal with the posteriors of these outputs, which is at most that value.
    multipliers : ndarray of shape (J, n)
        Of the QP.
    """

    solution: LinearSolution
    outputs: FloatArray
    objective: float
    multipliers: FloatArray


class _Problem:
    """Features, labels and priors that all QPs share."""

    def __init__(
        self, features: FloatArray, rows: LabelledRows, options: LatentOptions
    ) -> None:
        self.features, self.rows, self.options = features, rows, options
        self.components = Components(options.sizes)

    def posteriors(self, outputs: FloatArray, temperature: float = 1.0) -> FloatArray:
        return self.components.posteriors(outputs, self.rows.labels, temperature)

    def solved(self, posteriors: FloatArray, start: _Place | None) -> _Place:
        """Solve the QP of some posteriors."""
        machine = self.options.machine
        asked = self._rivals(posteriors)
        solution = newton(
            self.features,
            asked,
            machine.prior,
            np.inf,
            tol=_PART * machine.tol,
            max_iter=_NEWTON_STEPS,
            start=None if start is None else start.solution,
        )
        outputs = outputs_of(self.features, solution.coef) + solution.bias[:, None]
        return _Place(
            solution,
            outputs,
            self._objective(solution.coef, outputs),
            asked.by_rival(solution.multipliers),
        )

    def _objective(self, coef: FloatArray, outputs: FloatArray) -> float:
        """Return the primal with the posteriors that are best for these outputs."""
        asked = self._rivals(self.posteriors(outputs))
        lost = self.options.machine.prior.loss(asked.margins(outputs) - asked.offsets)
        return 0.5 * float(np.sum(coef**2)) + float(np.sum(asked.weights * lost.value))

    def _rivals(self, posteriors: FloatArray) -> LatentRivals:
        rows = self.rows
        return LatentRivals(posteriors, rows.labels, self.components, rows.weights)


@dataclass(frozen=True)
class _Run:
    """A start that has ended.

    Attributes
    ----------
    place : _Place
        Where.
    bounds, objectives : list of float
        Values of its QPs, and what they bound.
    converged, interrupted : bool
        How it ended.
    """

    place: _Place
    bounds: list[float]
    objectives: list[float]
    converged: bool
    interrupted: bool


class _Descent:
    """A start on its way to a minimum."""

    def __init__(self, problem: _Problem, posteriors: FloatArray) -> None:
        self._problem, self._posteriors = problem, posteriors
        self._place: _Place | None = None
        self._bounds: list[float] = []
        self._objectives: list[float] = []
        self._converged = self._interrupted = False
        self._temperature = problem.options.temperature
        # Whether the posteriors are those of the place: only then QPs cannot rise.
        self._is_tight = False

    def go(self) -> _Run | None:
        """Solve QPs until the objective stays, or the user has enough.

        Returns None if there was not even one QP.
        """
        max_iter = self._problem.options.machine.max_iter
        try:
            for number in range(1, max_iter + 1):
                if self._step():
                    break
                note = f"objective {self._objectives[-1]:.6g}"
                announce("quadratic programs", number, max_iter, note)
        except KeyboardInterrupt:
            self._interrupted = True
        if self._place is None:
            return None
        return _Run(
            self._place,
            self._bounds,
            self._objectives,
            self._converged,
            self._interrupted,
        )

    def _step(self) -> bool:
        """Solve one QP and update the posteriors; return whether it was the last one."""
        options, before = self._problem.options, self._place
        found = self._problem.solved(self._posteriors, before)
        drop = np.inf
        if before is not None and self._is_tight:
            drop = before.objective - found.objective
        if drop >= 0.0:  # else it rose within the tolerance of the QP
            self._place = found
            self._bounds.append(found.solution.value)
            self._objectives.append(found.objective)
        self._interrupted = found.solution.interrupted
        posteriors = self._problem.posteriors(found.outputs, self._temperature)
        # Posteriors that stay, as those of single components do, have the same QP again.
        is_last = drop <= options.machine.tol * found.objective or (
            self._temperature == 1.0 and np.array_equal(posteriors, self._posteriors)
        )
        self._converged = is_last and found.solution.converged
        self._posteriors = posteriors
        self._is_tight = self._temperature == 1.0
        self._temperature = max(1.0, options.cooling * self._temperature)
        return is_last or self._interrupted


def _machine(
    solution: LinearSolution,
    X: FloatArray,
    options: LatentOptions,
    basis: FloatArray,
    centre: FloatArray,
) -> MixtureMachine:
    """Return outputs in terms of columns, or of kernels, from weights of features."""
    # A constant that is added to all outputs is arbitrary.
    bias = solution.bias - solution.coef @ centre
    bias -= bias.mean()
    weights = np.ascontiguousarray(solution.coef @ basis.T)
    functions: LinearMachine | KernelMachine = LinearMachine(weights, bias)
    if options.machine.kernels:
        functions = KernelMachine(options.machine.kernels, np.ones(1), X, weights, bias)
    return MixtureMachine(functions, options.sizes)
