"""Quasi-Newton ascent in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from hybridmix._registered import registered
from hybridmix._require import require_number, require_positive
from hybridmix._typing import FloatArray
from hybridmix.mixture import Mixture, MixtureCoordinates
from hybridmix.problem import Assessment, Problem
from hybridmix.solvers.solution import History, Solution, Watch

# How SciPy says that the largest number of iterations was reached.
_MOST_ITERATIONS = 1


@registered
@dataclass(frozen=True)
class LimitedMemoryBFGS:
    """Maximise any objective by L-BFGS, from a mixture that was fitted by EM.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the mean value per row rises by less, relative to its rise so far if
        that exceeds one.
    learn_prior : bool
        Whether class probabilities are learned, or kept as they are.
    curvature : float
        How many times as curved as the likelihood the objective is, roughly.
    memory : int
        Number of steps that the curvature is estimated from.
    verbose : bool
        Print the value every ten iterations.
    """

    max_iter: int = 200
    tol: float = 1e-5
    learn_prior: bool = True
    curvature: float = 1.0
    memory: int = 10
    verbose: bool = False

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_number("max_iter", self.max_iter, 0)
        require_number("tol", self.tol, 0.0)
        require_positive("curvature", self.curvature)
        require_number("memory", self.memory, 1)

    def solve(
        self, problem: Problem, start: Mixture, watch: Watch | None = None
    ) -> Solution:
        """Iterate from a start; an interrupt (Ctrl-C) ends it with what it has.

        Parameters
        ----------
        problem : Problem
            What is maximised.
        start : Mixture
            Where to begin; the coordinates are white for the likelihood there.
        watch : callable or None
            Looks at the model of the start and of every iteration; stops if True.
        """
        counts = self.curvature * problem.total_weight * np.exp(start.log_weights)
        coordinates = MixtureCoordinates(start, counts, self.learn_prior)
        history = History(problem, "L-BFGS", self.max_iter, self.verbose)
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
            ascent.model,
            ascent.value,
            ascent.history.traces,
            converged=converged,
            interrupted=interrupted,
            n_iter=ascent.history.n_iter,
        )


class _Ascent:
    """What SciPy's minimiser calls: the loss, and a look at every iterate.

    One step of the whitened coordinates changes the sum over rows by one half; for the
    mean over rows, which is minimised, steps are longer by the root of their number.
    """

    def __init__(
        self,
        problem: Problem,
        coordinates: MixtureCoordinates,
        start: Mixture,
        watch: Watch | None,
        history: History,
    ) -> None:
        self._problem = problem
        self._coordinates = coordinates
        self._watch = watch
        self._unit = float(np.sqrt(problem.total_weight))
        self._assessments: dict[float, Assessment] = {}
        self._vector = np.zeros(coordinates.size)
        self.history = history
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
        point = self._unit * vector
        model = self._coordinates.mixture(point)
        assessment = self._problem.assess(model)
        gradient = self._coordinates.gradient(point, assessment.statistics)
        gradient += self._coordinates.prior_gradient(point)
        if not self.history.traces["value"]:
            self._first = self.value = self.history.add(assessment, model)
        loss = self._first - self.history.value(assessment, model)
        self._assessments[loss] = assessment
        return loss, -gradient * (self._unit / self._problem.total_weight)

    def look(self, intermediate_result: Any) -> None:
        """Keep an iterate, and stop if whoever watches says so."""
        self._vector = intermediate_result.x.copy()
        self.model = self._coordinates.mixture(self._unit * self._vector)
        assessment = self._assessments[float(intermediate_result.fun)]
        self.value = self.history.add(assessment, self.model)
        self._assessments.clear()
        if self._watch is not None and self._watch(self.model):
            raise StopIteration
