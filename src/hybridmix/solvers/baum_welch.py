"""Extended Baum-Welch: damped M-steps for objectives with weights of both signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_number, require_positive
from hybridmix.models.base import ModelStatistics
from hybridmix.problem import Problem
from hybridmix.solvers.base import History, M, Solution, Solver, Watch

# A step that was halved more often than this leaves the model where it is.
_MOST_HALVINGS = 60


@registered
@dataclass(frozen=True)
class ExtendedBaumWelch(Solver):
    r"""Maximise any objective by M-steps that are damped by the present model.

    With signed statistics ``S`` and counts ``W``, and the mean parameters ``m`` of a
    component at hand, the next ones are

    .. math:: \bar m = \frac{S + D m}{W + D}.

    The damping ``D`` is doubled until these belong to a density, and then multiplied by a
    factor. The larger it is, the shorter is the step, and the nearer to the gradient.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the mean value per row changes by less.
    factor : float
        Multiplies the damping.
    monotone : bool
        True: every component has a damping of its own; steps that lower the value are
        taken back and tried with twice the factor, which is halved again after a step
        that raises it. False: the recipe of Pernkopf and Wohlmayr (2010), with one
        damping for all components and the robust derivative of the proportions,
        :math:`W^+_k / \sum W^+ - W^-_k / \sum W^-`; the value may fall.
    """

    max_iter: int = 200
    tol: float = 1e-6
    factor: float = 2.0
    monotone: bool = True
    needs = ("damped",)

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_number("max_iter", self.max_iter, 0)
        require_number("tol", self.tol, 0.0)
        require_positive("factor", self.factor)

    def solve(
        self,
        problem: Problem,
        start: M,
        watch: Watch | None = None,
        generator: np.random.Generator | None = None,
    ) -> Solution[M]:
        """Iterate from a start; the best model is kept.

        See `Solver.solve` for the parameters.
        """
        self.check(problem, start)
        history = History(problem, "extended Baum-Welch", self.max_iter)
        ascent = _Ascent(self, problem, start, history)
        interrupted = stopped = False
        try:
            ascent.begin()
            stopped = watch is not None and watch(start)
            while not (stopped or ascent.converged or history.n_iter == self.max_iter):
                if ascent.step():
                    stopped = watch is not None and watch(ascent.model)
        except KeyboardInterrupt:
            interrupted = True
        return Solution(
            ascent.best,
            ascent.highest,
            history.traces,
            converged=ascent.converged or stopped,
            interrupted=interrupted,
            n_iter=history.n_iter,
        )


class _Ascent(Generic[M]):
    """The state of an ascent: the model at hand, the best one, and the damping."""

    def __init__(
        self, options: ExtendedBaumWelch, problem: Problem, start: M, history: History
    ) -> None:
        self._options = options
        self._problem = problem
        self._history = history
        self._factor = options.factor
        self._statistics: ModelStatistics | None = None
        self.model = self.best = start
        self.highest = -np.inf
        self.converged = False

    def begin(self) -> None:
        """Assess the start."""
        assessment = self._problem.assess(self.model)
        self.highest = self._history.add(assessment, self.model)
        self._statistics = assessment.statistics

    def step(self) -> bool:
        """Try a step; return whether it was taken."""
        candidate = self.model.damped(
            self._statistics,
            self._factor,
            shared=not self._options.monotone,
            learn_class_prior=self._problem.learn_class_prior,
        )
        assessment = self._problem.assess(candidate)
        value = self._history.value(assessment, candidate)
        gain = value - self._history.traces["value"][-1]
        least = self._options.factor
        if self._options.monotone and gain < 0.0:
            self._factor *= 2.0
            # If so short a step still loses, that is rounding.
            self.converged = self._factor > least * 2.0**_MOST_HALVINGS
            return False
        # A short step gains little, wherever it is.
        self.converged = self._factor == least and abs(gain) < self._options.tol
        self._factor = max(least, 0.5 * self._factor)
        self._history.add(assessment, candidate)
        self.model, self._statistics = candidate, assessment.statistics
        if value > self.highest:
            self.best, self.highest = candidate, value
        return True
