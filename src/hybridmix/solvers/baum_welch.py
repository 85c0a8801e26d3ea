"""Extended Baum-Welch: damped M-steps for objectives with weights of both signs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_number, require_positive
from hybridmix._typing import FloatArray
from hybridmix.mixture import Mixture, MixtureStatistics
from hybridmix.problem import Problem
from hybridmix.solvers.solution import History, Solution, Watch

# Doubling more often than this leaves the model where it is, in double precision.
_MOST_DOUBLINGS = 60


@registered
@dataclass(frozen=True)
class ExtendedBaumWelch:
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
    learn_prior : bool
        Whether class probabilities are learned, or kept as they are.
    factor : float
        Multiplies the damping.
    monotone : bool
        True: every component has a damping of its own; steps that lower the value are
        taken back and tried with twice the factor, which is halved again after a step
        that raises it. False: the recipe of Pernkopf and Wohlmayr (2010), with one
        damping for all components and the robust derivative of the proportions,
        :math:`W^+_k / \sum W^+ - W^-_k / \sum W^-`; the value may fall.
    verbose : bool
        Print the value every ten iterations.
    """

    max_iter: int = 200
    tol: float = 1e-6
    learn_prior: bool = True
    factor: float = 2.0
    monotone: bool = True
    verbose: bool = False

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_number("max_iter", self.max_iter, 0)
        require_number("tol", self.tol, 0.0)
        require_positive("factor", self.factor)

    def solve(
        self, problem: Problem, start: Mixture, watch: Watch | None = None
    ) -> Solution:
        """Iterate from a start; an interrupt (Ctrl-C) ends it with what it has.

        Parameters
        ----------
        problem : Problem
            What is maximised.
        start : Mixture
            Where to begin.
        watch : callable or None
            Looks at the model of the start and of every iteration; stops if True.
        """
        history = History(problem, "extended Baum-Welch", self.max_iter, self.verbose)
        best, highest = start, -np.inf
        interrupted = converged = False
        try:
            model, statistics = start, self._note(history, problem, start)
            highest = history.traces["value"][0]
            factor = self.factor
            stopped = watch is not None and watch(start)
            while not (stopped or converged or history.n_iter == self.max_iter):
                candidate = self._step(model, statistics, factor)
                assessment = problem.assess(candidate)
                value = history.value(assessment, candidate)
                gain = value - history.traces["value"][-1]
                if self.monotone and gain < 0.0:
                    factor *= 2.0
                    # So short a step that loses is one that rounding decides.
                    converged = factor > self.factor * 2.0**_MOST_DOUBLINGS
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

    def _note(
        self, history: History, problem: Problem, model: Mixture
    ) -> MixtureStatistics:
        assessment = problem.assess(model)
        history.add(assessment, model)
        return assessment.statistics

    def _step(
        self, model: Mixture, statistics: MixtureStatistics, factor: float
    ) -> Mixture:
        """Return the model after one damped M-step."""
        damping = factor * _least_damping(model, statistics, shared=not self.monotone)
        damped = model.family.expected_statistics(model.components, damping)
        damped.add(statistics.components)
        if self.monotone:
            log_mixing, log_prior = _damped_proportions(model, statistics, factor)
        else:
            log_mixing, log_prior = _robust_proportions(model, statistics, damping[0])
        return Mixture(
            model.family,
            model.family.maximise(damped),
            log_mixing,
            log_prior if self.learn_prior else model.log_prior,
            model.offsets,
        )


def _least_damping(
    model: Mixture, statistics: MixtureStatistics, shared: bool
) -> FloatArray:
    """Double the damping of each component until its statistics are of a density."""
    damping = np.ones(model.n_components)
    for _ in range(_MOST_DOUBLINGS):
        damped = model.family.expected_statistics(model.components, damping)
        damped.add(statistics.components)
        improper = ~model.family.proper(damped)
        if not improper.any():
            break
        damping[slice(None) if shared else improper] *= 2.0
    return damping


def _damped_proportions(
    model: Mixture, statistics: MixtureStatistics, factor: float
) -> tuple[FloatArray, FloatArray]:
    """Return log proportions of components and classes, damped like the components."""
    log_mixing = np.empty_like(model.log_mixing)
    for first, last in zip(model.offsets[:-1], model.offsets[1:], strict=True):
        own = slice(first, last)
        log_mixing[own] = _damped_logs(
            model.log_mixing[own], statistics.counts[own], factor
        )
    class_counts = np.add.reduceat(statistics.counts, model.offsets[:-1])
    return log_mixing, _damped_logs(model.log_prior, class_counts, factor)


def _damped_logs(logs: FloatArray, counts: FloatArray, factor: float) -> FloatArray:
    shares = np.exp(logs)
    # The smallest damping that leaves no share negative, and no less than one row.
    damping = factor * max(1.0, 2.0 * float(np.max(-counts / shares)))
    mixed = counts + damping * shares
    return np.log(mixed / mixed.sum())


def _robust_proportions(
    model: Mixture, statistics: MixtureStatistics, damping: float
) -> tuple[FloatArray, FloatArray]:
    """Return log proportions of components and classes, by the robust derivative."""
    positive = statistics.positive
    negative = positive - statistics.counts
    log_mixing = np.empty_like(model.log_mixing)
    for first, last in zip(model.offsets[:-1], model.offsets[1:], strict=True):
        own = slice(first, last)
        log_mixing[own] = _robust_logs(
            model.log_mixing[own], damping, positive[own], negative[own]
        )
    by_class = [
        np.add.reduceat(part, model.offsets[:-1]) for part in (positive, negative)
    ]
    return log_mixing, _robust_logs(model.log_prior, damping, *by_class)


def _robust_logs(
    logs: FloatArray, damping: float, positive: FloatArray, negative: FloatArray
) -> FloatArray:
    tiny = np.finfo(float).tiny
    slope = positive / max(positive.sum(), tiny) - negative / max(negative.sum(), tiny)
    # The slope is at least -1; a damping of one would leave no room.
    mixed = np.exp(logs) * (slope + max(damping, 1.0 + 1e-6))
    return np.log(mixed / mixed.sum())
