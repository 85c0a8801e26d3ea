"""Expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_number
from hybridmix._typing import FloatArray, IntArray
from hybridmix.mixture import Mixture, MixtureStatistics, class_posterior
from hybridmix.problem import Problem
from hybridmix.solvers.solution import History, Solution

# A component with less than this share of the rows has died.
_DEAD_SHARE = 1e-8
_MOST_RESEEDS = 3
_RESEED_ROWS = 1024


@registered
@dataclass(frozen=True)
class ExpectationMaximisation:
    """Maximise a likelihood by weighted averages of expected statistics.

    The value never decreases, apart from the moment when a collapsed component is
    started anew.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the mean value per row rises by less.
    learn_prior : bool
        Whether class probabilities are estimated, or kept as they are.
    verbose : bool
        Print the value every ten iterations.
    """

    max_iter: int = 300
    tol: float = 1e-4
    learn_prior: bool = True
    verbose: bool = False

    def check(self, problem: Problem) -> None:
        """Refuse objectives that EM cannot maximise."""
        if problem.objective.signed:
            raise ValueError(
                f"EM cannot maximise {type(problem.objective).__name__}: its weights may "
                "be negative. Use a gradient method."
            )

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_number("max_iter", self.max_iter, 0)
        require_number("tol", self.tol, 0.0)

    def solve(
        self, problem: Problem, start: Mixture, generator: np.random.Generator
    ) -> Solution:
        """Iterate from a start; an interrupt (Ctrl-C) ends it with what it has."""
        self.check(problem)
        history = History(problem, "EM", self.max_iter, self.verbose)
        solution = Solution(start, -np.inf, history.traces)
        candidate = start
        try:
            for iteration in range(self.max_iter + 1):
                assessment = problem.assess(candidate)
                statistics = assessment.statistics
                value = history.add(assessment, candidate)
                gain = value - solution.value
                solution = replace(
                    solution,
                    model=candidate,
                    value=value,
                    n_iter=iteration,
                    converged=0.0 <= gain < self.tol,
                )
                if solution.converged:
                    break
                candidate = maximised(candidate, statistics, self.learn_prior)
                dead = _dead_components(candidate, statistics.counts)
                if len(dead) and solution.n_reseeded < _MOST_RESEEDS * len(dead):
                    candidate = _reseeded(candidate, dead, problem, generator)
                    solution = replace(
                        solution, n_reseeded=solution.n_reseeded + len(dead)
                    )
        except KeyboardInterrupt:
            solution = replace(solution, interrupted=True)
        return solution


def maximised(
    model: Mixture, statistics: MixtureStatistics, learn_prior: bool = True
) -> Mixture:
    """Return the mixture that expected statistics call for (the M-step)."""
    tiny = np.finfo(float).tiny
    counts = np.maximum(statistics.counts, tiny)
    class_counts = np.add.reduceat(counts, model.offsets[:-1])
    log_prior = model.log_prior
    if learn_prior:
        log_prior = np.log(class_counts / class_counts.sum())
    return Mixture(
        model.family,
        model.family.maximise(statistics.components),
        np.log(counts / class_counts[model.class_of]),
        log_prior,
        model.offsets,
    )


def _dead_components(model: Mixture, counts: FloatArray) -> IntArray:
    """Find components without rows, or shrunk to a point; never the only one."""
    dead = (counts < _DEAD_SHARE * counts.sum()) | model.family.collapsed(
        model.components
    )
    alone = np.diff(model.offsets)[model.class_of] == 1
    return np.flatnonzero(dead & ~alone)


def _reseeded(
    model: Mixture,
    dead: IntArray,
    problem: Problem,
    generator: np.random.Generator,
) -> Mixture:
    """Start dead components anew on rows that the model explains worst."""
    family, components = model.family, model.components
    log_mixing = model.log_mixing.copy()
    for j in dead:
        label = int(model.class_of[j])
        rows, weights = _candidate_rows(problem, label, generator)
        sample = problem.dataset.rows[rows]
        log_density, _ = class_posterior(
            model.of_class(label).evaluate(family.prepare(sample)).log_joint
        )
        size = model.offsets[label + 1] - model.offsets[label]
        worst = np.argsort(log_density, kind="stable")[: max(2, len(rows) // size)]
        fresh = family.start(sample[worst], weights[None, worst])
        components = family.concatenate(
            [
                components.take(slice(0, j)),
                fresh,
                components.take(slice(j + 1, None)),
            ],
            [float(j), 1.0, float(model.n_components - j - 1)],
        )
        here = slice(model.offsets[label], model.offsets[label + 1])
        log_mixing[j] = -np.log(size)
        log_mixing[here] -= np.logaddexp.reduce(log_mixing[here])
    return replace(model, components=components, log_mixing=log_mixing)


def _candidate_rows(
    problem: Problem, label: int, generator: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Draw rows of a class, or unlabelled ones if it has none, with their weights."""
    dataset = problem.dataset
    index = np.flatnonzero(dataset.labels == label)
    if len(index) == 0:
        index = np.arange(dataset.n_rows)
    if len(index) > _RESEED_ROWS:
        index = np.sort(generator.choice(index, _RESEED_ROWS, replace=False))
    return index, dataset.filled_weights[index]
