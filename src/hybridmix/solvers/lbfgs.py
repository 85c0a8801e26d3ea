"""Quasi-Newton ascent in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.optimize import Bounds, OptimizeResult, minimize

from hybridmix._registered import registered
from hybridmix._require import require_number, require_positive
from hybridmix._typing import FloatArray
from hybridmix.models.base import Model, ModelCoordinates
from hybridmix.problem import Assessment, Problem
from hybridmix.solvers.base import History, M, Solution, Solver, Watch

# How SciPy says that the largest number of iterations was reached.
_MOST_ITERATIONS = 1


@registered
@dataclass(frozen=True)
class LimitedMemoryBFGS(Solver):
    """Maximise any objective by L-BFGS, from a model that was fitted by EM.

    The coordinates are white for the likelihood at the start.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the mean value per row rises by less, relative to its rise so far if
        that exceeds one.
    curvature : float
        How many times as curved as the likelihood the objective is, roughly.
    memory : int
        Number of steps that the curvature is estimated from.
    """

    max_iter: int = 200
    tol: float = 1e-5
    curvature: float = 1.0
    memory: int = 10
    needs = ("coordinates",)

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_number("max_iter", self.max_iter, 0)
        require_number("tol", self.tol, 0.0)
        require_positive("curvature", self.curvature)
        require_number("memory", self.memory, 1)

    def solve(
        self,
        problem: Problem,
        start: M,
        watch: Watch | None = None,
        generator: np.random.Generator | None = None,
    ) -> Solution[M]:
        """Iterate from a start.

        See `Solver.solve` for the parameters.
        """
        self.check(problem, start)
        coordinates = start.coordinates(
            self.curvature * problem.total_weight, problem.learn_class_prior
        )
        history = History(problem, "L-BFGS", self.max_iter)
        ascent = _Ascent(problem, coordinates, start, watch, history)
        interrupted = converged = False
        try:
            if watch is None or not watch(start):
                result = minimize(
                    ascent.loss,
                    np.zeros(coordinates.size),
                    jac=True,
                    method="L-BFGS-B",
                    callback=ascent.look,
                    bounds=ascent.bounds(),
                    options={
                        "maxiter": self.max_iter,
                        "maxcor": self.memory,
                        "ftol": self.tol,
                        "gtol": 0.0,
                    },
                )
                converged = result.status != _MOST_ITERATIONS
        except KeyboardInterrupt:
            interrupted = True
        return Solution(
            cast(M, ascent.model),
            ascent.value,
            history.traces,
            converged=converged,
            interrupted=interrupted,
            n_iter=history.n_iter,
        )


class _Ascent:
    """What SciPy's minimiser calls: the loss, and a look at every iterate.

    One step of the whitened coordinates changes the sum over rows by one half; for the
    mean over rows, which is minimised, steps are longer by the root of their number.
    """

    def __init__(
        self,
        problem: Problem,
        coordinates: ModelCoordinates,
        start: Model,
        watch: Watch | None,
        history: History,
    ) -> None:
        self._problem = problem
        self._coordinates = coordinates
        self._watch = watch
        self._history = history
        self._unit = float(np.sqrt(problem.total_weight))
        # What was assessed since the last iterate, by its loss.
        self._trials: dict[float, tuple[Model, Assessment]] = {}
        self._vector = np.zeros(coordinates.size)
        self.model = start
        self.value = float("nan")
        # Log densities depend on units and grow with the number of columns: what is
        # minimised is counted from the start.
        self._first = float("nan")

    def bounds(self) -> Bounds:
        """Return the bounds of the vector, in its units."""
        lower, upper = self._coordinates.bounds()
        return Bounds(lower / self._unit, upper / self._unit)

    def loss(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the rise of the mean value with prior, and its gradient."""
        try:
            # The first trial of a line search may be anywhere.
            with np.errstate(all="ignore"):
                loss, gradient = self._evaluate(vector)
        except np.linalg.LinAlgError:
            return self._refusal(vector)
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            return self._refusal(vector)
        return loss, gradient

    def _refusal(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """Return a loss that rises from the last iterate like a parabola."""
        away = vector - self._vector
        rise = 1.0 + abs(self.value)
        return rise - (self.value - self._first), away * (2.0 * rise / float(away @ away))

    def _evaluate(self, vector: FloatArray) -> tuple[float, FloatArray]:
        point = self._coordinates.at(self._unit * vector)
        assessment = self._problem.assess(point.model)
        gradient = point.gradient(assessment.statistics) + point.prior_gradient()
        if not self._history.traces["value"]:
            self._first = self.value = self._history.add(assessment, point.model)
            if not np.isfinite(self._first):
                name = type(self._problem.objective).__name__
                raise ValueError(f"{name} is not finite at the start: {self._first}.")
        loss = self._first - self._history.value(assessment, point.model)
        self._trials[loss] = point.model, assessment
        return loss, -gradient * (self._unit / self._problem.total_weight)

    def look(self, intermediate_result: OptimizeResult) -> None:
        """Keep an iterate, and stop if the watch says so."""
        self._vector = intermediate_result.x.copy()
        found = self._trials.get(float(intermediate_result.fun))
        if found is None:
            # Where no step raises the value, L-BFGS-B goes back to an earlier iterate.
            self._history.repeat()
            return
        self.model, assessment = found
        self.value = self._history.add(assessment, self.model)
        self._trials.clear()
        if self._watch is not None and self._watch(self.model):
            raise StopIteration
