"""EM of the classes of a data set: numbers of components, restarts, joint passes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np

from hybridmix._checks import check_number
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import TrainingRows
from hybridmix.families import Family
from hybridmix.models.mixture import Mixture, joined_classes
from hybridmix.objectives import Likelihood
from hybridmix.problem import problem_of
from hybridmix.solvers import ExpectationMaximisation, Solution
from hybridmix.training.families import FamilyOf
from hybridmix.training.starts import start_mixture

Components = int | Iterable[int]


@dataclass(frozen=True)
class Estimation:
    """The options of EM; checked when made.

    The attributes are those of `MixtureDensity`.
    """

    n_init: int
    max_iter: int
    tol: float

    def __post_init__(self) -> None:
        check_number("n_init", self.n_init, 1, whole=True)
        check_number("max_iter", self.max_iter, 1, whole=True)
        check_number("tol", self.tol, 0.0)

    def solver(self, least_tol: float = 0.0) -> ExpectationMaximisation:
        """Return the solver, with a tolerance that is not below a given one."""
        return ExpectationMaximisation(self.max_iter, max(self.tol, least_tol))


@dataclass(frozen=True)
class ClassFit:
    """A fitted mixture of one class.

    Attributes
    ----------
    model : Mixture
        Of the class alone; its class probability is one.
    value : float
        Mean log-likelihood of its rows, with the log density of the priors.
    converged : bool
        Whether EM met its tolerance.
    n_iter, n_reseeded : int
        Iterations, and how often components were started anew.
    interrupted : bool
        Whether the user ended the search for a better fit.
    traces : mapping of str to list of float
        What changed over the iterations, if the class was fitted by itself.
    bic : mapping of int to float
        The criterion for each number of components that was tried.
    """

    model: Mixture
    value: float
    converged: bool
    n_iter: int
    n_reseeded: int
    interrupted: bool = False
    traces: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bic: Mapping[int, float] = field(default_factory=dict)

    def criterion(self, total_weight: float) -> float:
        """Return the Bayesian information criterion, for rows of this total weight."""
        log_likelihood = self.value * total_weight - self.model.log_prior_density()
        penalty = self.model.n_parameters * float(np.log(total_weight))
        return penalty - 2.0 * log_likelihood


@dataclass(frozen=True)
class ClassTrainer:
    """Fits a mixture to each class, all classes in the same passes over the rows.

    Attributes
    ----------
    family_of : callable
        Returns the family for a number of components.
    solver : ExpectationMaximisation
        Runs from each start.
    n_init : int
        Number of starts.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """

    family_of: FamilyOf
    solver: ExpectationMaximisation
    n_init: int
    generator: np.random.Generator
    pool: Workers

    def fit(
        self,
        dataset: TrainingRows,
        candidates: Sequence[Sequence[int]],
        init: str | FloatArray | Mixture,
        names: Sequence[str],
    ) -> list[ClassFit]:
        """Try numbers of components in ascending order and keep the best by BIC.

        The search of a class ends when the criterion has risen twice in a row: more
        components take longer, and are hardly ever better from there on.

        Parameters
        ----------
        dataset : Dataset or BlockedDataset
            Labelled rows.
        candidates : sequence of sequence of int
            For each class: numbers of components to try.
        init : str, ndarray or Mixture
            How to start; see `start_mixture`. A mixture is for a single class.
        names : sequence of str
            What to call the classes in messages.
        """
        weights = dataset.class_weights(len(candidates)).tolist()
        possible = [
            _possible(list(wanted), dataset.of_class(label))
            for label, wanted in enumerate(candidates)
        ]
        _warn_of_few_rows(candidates, possible, names)
        searches = list(map(_Search, possible, weights))
        while pending := [c for c, search in enumerate(searches) if not search.is_done]:
            try:
                self._round(dataset, searches, pending, init)
            except KeyboardInterrupt:
                if any(not search.fits for search in searches):
                    raise
                for search in searches:
                    search.interrupted = True
        return [search.best() for search in searches]

    def _round(
        self,
        dataset: TrainingRows,
        searches: list[_Search],
        pending: list[int],
        init: str | FloatArray | Mixture,
    ) -> None:
        """Fit the next number of components of every class that is still searching."""
        wanted = {label: searches[label].next_number for label in pending}
        for n_components in sorted(set(wanted.values())):
            labels = [label for label in pending if wanted[label] == n_components]
            family = self.family_of(n_components)
            # What components share would tie classes that are fitted in one pass.
            passes = [[label] for label in labels] if family.ties_components else [labels]
            for together in passes:
                part = dataset.of_classes(together)
                fits = self._fit_pass(part, family, n_components, len(together), init)
                for label, fit in zip(together, fits, strict=True):
                    searches[label].note(fit)
        if any(search.interrupted for search in searches):
            # All classes have a fit by now, and that is all the user wants to wait for.
            for search in searches:
                search.interrupted = True

    def _fit_pass(
        self,
        dataset: TrainingRows,
        family: Family,
        n_components: int,
        n_classes: int,
        init: str | FloatArray | Mixture,
    ) -> list[ClassFit]:
        """Fit classes with the same number of components; keep the best start of each."""
        best: list[ClassFit] = []
        interrupted = False
        n_starts = self.n_init if isinstance(init, str) else 1
        try:
            start = self._start(dataset, family, n_components, n_classes, init)
            problem = problem_of(dataset, Likelihood(), start, self.pool, False)
            for left in reversed(range(n_starts)):
                solution = self.solver.solve(problem, start, generator=self.generator)
                if solution.interrupted and solution.n_iter == 0:
                    raise KeyboardInterrupt  # a start is not a fit
                fits = _class_fits(solution)
                best = list(map(_better, best or fits, fits))
                interrupted = solution.interrupted
                if interrupted or not left:
                    break
                start = self._start(dataset, family, n_components, n_classes, init)
        except KeyboardInterrupt:
            if not best:
                raise
            interrupted = True
        return [replace(fit, interrupted=interrupted) for fit in best]

    def _start(
        self,
        dataset: TrainingRows,
        family: Family,
        n_components: int,
        n_classes: int,
        init: str | FloatArray | Mixture,
    ) -> Mixture:
        if isinstance(init, Mixture):
            return replace(init, family=family)
        starts = [
            start_mixture(
                dataset.of_class(label), family, n_components, init, self.generator
            )
            for label in range(n_classes)
        ]
        return joined_classes(family, starts, dataset.class_weights(n_classes))


@dataclass
class _Search:
    """The search of one class for its number of components."""

    candidates: list[int]
    weight: float
    fits: dict[int, ClassFit] = field(default_factory=dict)
    bic: dict[int, float] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def next_number(self) -> int:
        return self.candidates[len(self.fits)]

    @property
    def is_done(self) -> bool:
        if self.interrupted or len(self.fits) == len(self.candidates):
            return True
        last = list(self.bic.values())[-3:]
        return len(last) == 3 and last == sorted(last)

    def note(self, fit: ClassFit) -> None:
        number = self.next_number
        self.fits[number] = fit
        self.bic[number] = fit.criterion(self.weight)
        self.interrupted |= fit.interrupted

    def best(self) -> ClassFit:
        best = self.fits[min(self.bic, key=self.bic.__getitem__)]
        return replace(best, bic=self.bic, interrupted=self.interrupted)


def _better(old: ClassFit, new: ClassFit) -> ClassFit:
    return new if new.value > old.value else old


def _class_fits(solution: Solution[Mixture]) -> list[ClassFit]:
    """Take a model of classes that were fitted apart into its classes."""
    model, outcomes = solution.model, solution.classes
    assert outcomes is not None, "classes that are fitted in one pass are apart"
    return [
        ClassFit(
            model.of_class(label),
            float(outcomes.values[label]),
            bool(outcomes.converged[label]),
            int(outcomes.n_iter[label]),
            int(outcomes.n_reseeded[label]),
            traces=solution.traces if model.n_classes == 1 else {},
        )
        for label in range(model.n_classes)
    ]


def _possible(candidates: list[int], dataset: TrainingRows) -> list[int]:
    """Drop numbers of components that exceed the number of distinct rows."""
    n_distinct = dataset.n_distinct(max(candidates))
    return [k for k in candidates if k <= n_distinct] or [n_distinct]


def _warn_of_few_rows(
    candidates: Sequence[Sequence[int]], possible: list[list[int]], names: Sequence[str]
) -> None:
    """Warn once of classes that get fewer components than the fewest asked for."""
    fewest = [min(wanted) for wanted in candidates]
    short = [label for label, own in enumerate(possible) if own[0] < fewest[label]]
    if not short:
        return
    first = short[0]
    others = f" So do {len(short) - 1} other classes." if len(short) > 1 else ""
    warnings.warn(
        f"{names[first]} has only {possible[first][0]} distinct row(s), fewer than the "
        f"{fewest[first]} components asked for; it gets no more than these."
        f"{others}",
        UserWarning,
        stacklevel=2,
    )


def component_range(n_components: object, or_auto: bool = False) -> list[int]:
    """Return the numbers of components to try, in ascending order.

    The message of an error says whether "auto" would do instead.
    """
    listed: list[object] = [n_components]
    if isinstance(n_components, Iterable) and not isinstance(n_components, str):
        listed = list(n_components)
    candidates = [
        int(k) for k in listed if isinstance(k, Integral) and not isinstance(k, bool)
    ]
    if not candidates or len(candidates) < len(listed) or min(candidates) < 1:
        word = ", or 'auto'" if or_auto else ""
        raise ValueError(
            f"n_components={n_components!r} must be a whole number of at least 1, or a "
            f"range or list of such numbers to choose from{word}."
        )
    return sorted(set(candidates))
