"""Expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_number
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.models.base import Model
from hybridmix.problem import Assessment, Problem
from hybridmix.solvers.base import ClassOutcomes, History, M, Solution, Solver, Watch

_MOST_RESEEDS = 3
_RESEED_ROWS = 1024


@registered
@dataclass(frozen=True)
class ExpectationMaximisation(Solver):
    """Maximise a likelihood by weighted averages of expected statistics.

    The value never decreases, apart from the moment when a collapsed component is
    started anew. Classes that have nothing in common converge one by one: each pass goes
    over the rows of the classes that have not converged yet.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the mean value per row rises by less.
    """

    max_iter: int = 300
    tol: float = 1e-4
    needs = ("maximised",)
    takes_signed_weights = False

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_number("max_iter", self.max_iter, 0)
        require_number("tol", self.tol, 0.0)

    def solve(
        self,
        problem: Problem,
        start: M,
        watch: Watch | None = None,
        generator: np.random.Generator | None = None,
    ) -> Solution[M]:
        """Iterate from a start; collapsed components start anew on rows drawn by chance.

        See `Solver.solve` for the parameters.
        """
        self.check(problem, start)
        generator = np.random.default_rng(0) if generator is None else generator
        history = History(problem, "EM", self.max_iter)
        groups = _Groups(problem, start)
        model = candidate = start
        interrupted = stopped = False
        try:
            for iteration in range(self.max_iter + 1):
                assessment = problem.assess(candidate, groups.pending_classes)
                groups.note(assessment, candidate, self.tol)
                history.add(assessment, candidate, groups.mean_value)
                model = candidate
                stopped = watch is not None and watch(model)
                is_last = iteration == self.max_iter
                if stopped or is_last or not groups.pending.any():
                    break
                candidate = groups.maximised(candidate, assessment)
                candidate = groups.reseeded(candidate, assessment, generator)
        except KeyboardInterrupt:
            interrupted = True
        return Solution(
            model,
            history.traces["value"][-1] if history.traces["value"] else -np.inf,
            history.traces,
            converged=stopped or not groups.pending.any(),
            interrupted=interrupted,
            n_reseeded=int(groups.n_reseeded.sum()),
            n_iter=history.n_iter,
            classes=groups.outcomes() if groups.are_classes else None,
        )


class _Groups:
    """Classes that converge together: each on its own, or all as one group.

    Attributes
    ----------
    are_classes : bool
        Whether each class is a group of its own.
    pending : ndarray of bool, shape (G,)
        Groups that have not converged.
    values, n_iter, n_reseeded : ndarray of shape (G,)
        Mean value of each group, its iterations, and how often parts of it were started
        anew.
    """

    def __init__(self, problem: Problem, model: Model) -> None:
        self._problem = problem
        self.are_classes = problem.can_separate(model)
        if self.are_classes:
            self._weights = problem.class_weights
        else:
            self._weights = np.array([problem.total_weight])
        self._group_of = (
            np.arange(model.n_classes)
            if self.are_classes
            else np.zeros(model.n_classes, np.intp)
        )
        self.pending = np.ones(len(self._weights), dtype=bool)
        self.values = np.full(len(self._weights), -np.inf)
        self.n_iter = np.full(len(self._weights), -1)
        self.n_reseeded = np.zeros(len(self._weights), dtype=np.intp)

    @property
    def pending_classes(self) -> BoolArray | None:
        """The classes (C,) whose rows still have to be looked at; None for all rows."""
        return None if self.pending.all() else self.pending[self._group_of]

    def note(self, assessment: Assessment, model: Model, tol: float) -> None:
        """Update the values of the pending groups; those that rise by less are done."""
        values = self._group_values(assessment, model)
        gains = values - self.values
        self.values = np.where(self.pending, values, self.values)
        self.n_iter += self.pending
        self.pending &= ~((gains >= 0.0) & (gains < tol))

    def _group_values(self, assessment: Assessment, model: Model) -> FloatArray:
        if not self.are_classes:
            total = assessment.value + model.log_prior_density()
            return np.array([total]) / self._weights
        values = self.values.copy()
        for label in np.flatnonzero(self.pending):
            prior = model.of_class(int(label)).log_prior_density()
            total = assessment.by_class[label] + prior
            values[label] = total / self._weights[label]
        return values

    @property
    def mean_value(self) -> float:
        """The mean value of all rows, those of groups that are done included."""
        return float(self._weights @ self.values / self._weights.sum())

    def maximised(self, model: M, assessment: Assessment) -> M:
        """Return the model after an M-step of the pending groups."""
        updated = model.maximised(assessment.statistics, self._problem.learn_class_prior)
        if self.pending.all():
            return updated
        return model.with_classes(updated, self.pending[self._group_of])

    def reseeded(
        self, model: M, assessment: Assessment, generator: np.random.Generator
    ) -> M:
        """Start collapsed parts of the pending groups anew, a few times at most."""
        class_weights = self._weights[self._group_of]
        collapsed = model.collapsed(assessment.statistics, class_weights)
        if len(collapsed) == 0:
            return model
        group_of = self._group_of[model.class_of_part(collapsed)]
        n_collapsed = np.bincount(group_of, minlength=len(self._weights))
        may_reseed = self.pending & (self.n_reseeded < _MOST_RESEEDS * n_collapsed)
        chosen: IntArray = collapsed[may_reseed[group_of]]
        self.n_reseeded += np.where(may_reseed, n_collapsed, 0)

        def rows_of(label: int) -> tuple[Rows, FloatArray]:
            return self._problem.sample(label, _RESEED_ROWS, generator)

        return model.reseeded(chosen, rows_of) if len(chosen) else model

    def outcomes(self) -> ClassOutcomes:
        """Return how the classes fared."""
        n_iter = np.maximum(self.n_iter, 0)
        return ClassOutcomes(self.values, n_iter, ~self.pending, self.n_reseeded)
