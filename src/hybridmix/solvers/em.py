"""Expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_instance, require_number
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.problem import Assessment, Problem
from hybridmix.solvers.acceleration import Leaps
from hybridmix.solvers.base import ClassOutcomes, History, M, Solution, Solver, Watch

# A value that falls by a smaller share than this has not fallen: that is rounding.
_ROUNDING = 1e-12
_MOST_RESEEDS = 3
_RESEED_ROWS = 1024


@registered
@dataclass(frozen=True)
class ExpectationMaximisation(Solver):
    """Maximise a likelihood by weighted averages of expected statistics.

    The value never decreases, apart from the moment when a collapsed component is
    started anew. Classes that have nothing in common converge one by one: each pass goes
    over the rows of the classes that have not converged yet.

    An iteration is a pass over the rows. It assesses the model after a plain step of EM
    or, near the end, a leap that extrapolates the last two steps. A leap that lowers the
    value is taken back; the traces then repeat the values of the model that is kept.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when a plain step raises the mean value per row by less.
    accelerate : bool
        Whether to leap, if the model has coordinates both ways.
    """

    max_iter: int = 300
    tol: float = 1e-4
    accelerate: bool = True
    needs = ("maximised",)
    takes_signed_weights = False

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_number("max_iter", self.max_iter, 0)
        require_number("tol", self.tol, 0.0)
        require_instance("accelerate", self.accelerate, bool)

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
        groups = _Groups(problem, start, self.accelerate)
        model = candidate = start
        interrupted = stopped = False
        try:
            for iteration in range(self.max_iter + 1):
                assessment = problem.assess(candidate, groups.pending_classes)
                accepted = groups.note(assessment, candidate, self.tol)
                if accepted.any():
                    model = groups.exchanged(model, candidate, accepted)
                    history.add(assessment, model, groups.mean_value)
                    stopped = watch is not None and watch(model)
                else:
                    history.repeat()
                is_last = iteration == self.max_iter
                if stopped or is_last or not groups.pending.any():
                    break
                candidate = groups.following(model, assessment, accepted, generator)
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


class _Groups(Generic[M]):
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

    def __init__(self, problem: Problem, model: M, accelerate: bool) -> None:
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
        self._leaps = Leaps(model, self._weights, problem.learn_class_prior, accelerate)
        self.pending = np.ones(len(self._weights), dtype=bool)
        self.values = np.full(len(self._weights), -np.inf)
        self._gains = np.full(len(self._weights), np.inf)
        self.n_iter = np.full(len(self._weights), -1)
        self.n_reseeded = np.zeros(len(self._weights), dtype=np.intp)

    @property
    def pending_classes(self) -> BoolArray | None:
        """The classes (C,) whose rows still have to be looked at; None for all rows."""
        return None if self.pending.all() else self.pending[self._group_of]

    def note(self, assessment: Assessment, model: M, tol: float) -> BoolArray:
        """Update the pending groups; return where (G,) the model is accepted.

        Leaps are accepted if the value does not fall and nothing collapses. The gain of a
        leap says nothing about how far off the maximum is: only a plain step that gains
        little ends a group. One that falls ends it as well and is not accepted: some
        M-steps are approximations.
        """
        values = self._group_values(assessment, model)
        self._gains = values - self.values
        leapt = self._leaps.under_way
        fell = self._gains < -_ROUNDING * np.abs(values)
        refused = fell | (leapt & ~(self._gains >= 0.0))
        if leapt.any():
            refused |= self._collapsed(model, assessment, leapt)[1]
        self._leaps.note(refused)
        accepted = self.pending & ~refused
        self.values = np.where(accepted, values, self.values)
        self.n_iter += self.pending
        self.pending &= leapt | ~(fell | (np.abs(self._gains) < tol))
        return accepted

    def _group_values(self, assessment: Assessment, model: M) -> FloatArray:
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

    def exchanged(self, model: M, other: M, groups: BoolArray) -> M:
        """Return a model with some groups (G,) taken from another one."""
        if groups.all() or not groups.any():
            return other if groups.any() else model
        return model.with_classes(other, groups[self._group_of])

    def following(
        self,
        model: M,
        assessment: Assessment,
        accepted: BoolArray,
        generator: np.random.Generator,
    ) -> M:
        """Return what to assess next, given where (G,) the last one was accepted."""
        stepping = self.pending & accepted
        refused = self.pending & ~accepted
        updated = self._leaps.fallback
        may_leap = stepping
        if stepping.any():
            stepped = model.maximised(
                assessment.statistics, self._problem.learn_class_prior
            )
            updated = self.exchanged(
                self.exchanged(model, stepped, stepping), updated, refused
            )
            updated, reseeded = self._reseeded(updated, assessment, stepping, generator)
            may_leap = stepping & ~reseeded
        return self._leaps.following(model, updated, self._gains, may_leap)

    def _reseeded(
        self,
        model: M,
        assessment: Assessment,
        groups: BoolArray,
        generator: np.random.Generator,
    ) -> tuple[M, BoolArray]:
        """Start collapsed parts of some groups (G,) anew; return of which ones."""
        collapsed, reseeding = self._collapsed(model, assessment, groups)
        if len(collapsed) == 0:
            return model, reseeding
        group_of = self._group_of[model.class_of_part(collapsed)]
        self.n_reseeded += np.bincount(group_of, minlength=len(self._weights))
        # Whatever comes of it is better than a collapsed component.
        self.values[reseeding] = -np.inf

        def rows_of(label: int) -> tuple[Rows, FloatArray]:
            return self._problem.sample(label, _RESEED_ROWS, generator)

        return model.reseeded(collapsed, rows_of), reseeding

    def _collapsed(
        self, model: M, assessment: Assessment, groups: BoolArray
    ) -> tuple[IntArray, BoolArray]:
        """Return the collapsed parts of some groups (G,), and which groups have any.

        Groups that have started anew a few times stay as they are.
        """
        class_weights = self._weights[self._group_of]
        collapsed = model.collapsed(assessment.statistics, class_weights)
        if len(collapsed) == 0:
            return collapsed, np.zeros_like(groups)
        group_of = self._group_of[model.class_of_part(collapsed)]
        n_collapsed = np.bincount(group_of, minlength=len(self._weights))
        chosen = groups & (self.n_reseeded < _MOST_RESEEDS * n_collapsed)
        return collapsed[chosen[group_of]], chosen

    def outcomes(self) -> ClassOutcomes:
        """Return how the classes fared."""
        n_iter = np.maximum(self.n_iter, 0)
        return ClassOutcomes(self.values, n_iter, ~self.pending, self.n_reseeded)
