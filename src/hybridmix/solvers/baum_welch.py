"""Extended Baum-Welch: damped M-steps for objectives with weights of both signs."""

from __future__ import annotations

from dataclasses import dataclass

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
        best, highest = start, -np.inf
        interrupted = converged = False
        try:
            assessment = problem.assess(start)
            highest = history.add(assessment, start)
            model, statistics = start, assessment.statistics
            factor = self.factor
            stopped = watch is not None and watch(start)
            while not (stopped or converged or history.n_iter == self.max_iter):
                candidate = self._step(problem, model, statistics, factor)
                assessment = problem.assess(candidate)
                value = history.value(assessment, candidate)
                gain = value - history.traces["value"][-1]
                if self.monotone and gain < 0.0:
                    factor *= 2.0
                    # So short a step that loses is one that rounding decides.
                    converged = factor > self.factor * 2.0**_MOST_HALVINGS
                    continue
                # A short step gains little, wherever it is.
                converged = factor == self.factor and abs(gain) < self.tol
                factor = max(self.factor, 0.5 * factor)
                history.add(assessment, candidate)
                model, statistics = candidate, assessment.statistics
                if value > highest:
                    best, highest = model, value
                stopped = watch is not None and watch(model)
            converged = converged or stopped
        except KeyboardInterrupt:
            interrupted = True
        return Solution(
            best,
            highest,
            history.traces,
            converged=converged,
            interrupted=interrupted,
            n_iter=history.n_iter,
        )

    def _step(
        self, problem: Problem, model: M, statistics: ModelStatistics, factor: float
    ) -> M:
        return model.damped(
            statistics,
            factor,
            shared=not self.monotone,
            learn_class_prior=problem.learn_class_prior,
        )
