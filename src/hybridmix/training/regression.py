"""Training of a regressor: mixtures of rows and targets, averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from hybridmix._checks import check_flag, check_number
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.data.targets import TargetPlaces
from hybridmix.models.mixture import Mixture
from hybridmix.models.predictive import Predictive
from hybridmix.progress import announce, listening
from hybridmix.solvers import Solution
from hybridmix.training.budget import Budget
from hybridmix.training.candidates import Choice, TableSize
from hybridmix.training.classes import Estimation
from hybridmix.training.families import Structure
from hybridmix.training.holdout import Holdout, distinct_numbers
from hybridmix.training.leaderboard import Trial, simplest_within_noise
from hybridmix.training.memory import check_memory
from hybridmix.training.record import INTERRUPTED, em_messages, history_in_units
from hybridmix.training.regression_plan import planned
from hybridmix.training.regression_trials import PLAIN, Entry, Part, RegressionSearch
from hybridmix.training.targets import SPREADS, TargetTrainer
from hybridmix.training.votes import fitted_shares

# Up to eight members were better than five in trials, by means and densities; more of
# them take longer to predict, and were not better still.
_MOST_MEMBERS = 8
# Tables of up to this many rows are dealt into folds; larger ones are split, and a search
# on this many rows finds what a search on more would.
_FEW_ROWS, _N_FOLDS, _MOST_ROWS = 2_000, 3, 8_000
# Subspaces of tables of up to this many rows are fitted anew to all rows.
_FEW_FOR_SUBSPACE = 1_000


@dataclass(frozen=True)
class RegressionOptions:
    """The options of the training of a regressor; checked when made.

    The attributes are those of `MixtureRegressor`.
    """

    structure: Structure
    estimation: Estimation
    n_components: list[int]
    choice: Choice
    tradeoff: float | str
    n_steps: int
    n_starts: int | str
    calibrate: bool
    effort: str | float
    init: str

    def __post_init__(self) -> None:
        check_number("tradeoff", self.tradeoff, 0.0, 1e9, or_word="auto")
        check_number("n_steps", self.n_steps, 1, whole=True)
        check_number("n_starts", self.n_starts, 1, 1000, whole=True, or_word="auto")
        check_flag("calibrate", self.calibrate)


@dataclass(frozen=True)
class Member:
    """A candidate that has a part in the predictions.

    Attributes
    ----------
    models : tuple of Mixture
        One for each start; they count alike.
    share : float
        How much all of them count.
    options : mapping of str to object
        The values of the options that it stands for.
    """

    models: tuple[Mixture, ...]
    share: float
    options: Mapping[str, object]


@dataclass(frozen=True)
class FittedRegression:
    """A trained regressor and how it came about.

    Attributes
    ----------
    density : Mixture
        Of rows and targets, fitted by EM.
    members : tuple of Member
        What predictions are averaged over, by descending share.
    spread : float
        What the conditional deviations of all members are multiplied by.
    converged : bool
        Whether EM of the density met its tolerance.
    n_iter : int
        Its iterations.
    history : mapping of str to ndarray
        What changed over these iterations, in the units of the table.
    messages : tuple of str
        What the user should be warned about.
    trials : tuple of Trial
        What a search has tried; empty without a search.
    n_searched : int
        Rows that the search has seen; 0 without one.
    """

    density: Mixture
    members: tuple[Member, ...]
    spread: float
    converged: bool
    n_iter: int
    history: Mapping[str, FloatArray]
    messages: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    n_searched: int = 0

    @property
    def interrupted(self) -> bool:
        """Whether the user ended training before it was done."""
        return INTERRUPTED in self.messages

    def predictive(self) -> Predictive:
        """Return the average of all members."""
        return pooled(self.members, self.spread)


def pooled(members: Sequence[Member], spread: float) -> Predictive:
    """Average the predictions of members; the starts of one share what it counts."""
    models = [model for member in members for model in member.models]
    shares = [m.share / len(m.models) for m in members for _ in m.models]
    array = np.array(shares)
    return Predictive(tuple(models), array / array.sum(), spread)


def fit_regressor(
    options: RegressionOptions,
    dataset: TrainingRows,
    parts: Sequence[Part] | None,
    schema: Schema,
    places: TargetPlaces,
    generator: np.random.Generator,
    pool: Workers,
) -> FittedRegression:
    """Try candidates on held-out rows, and fit the best of them to all rows.

    Parameters
    ----------
    options : RegressionOptions
        What to do.
    dataset : Dataset or BlockedDataset
        Rows with their targets, as far as they have any.
    parts : sequence of Part or None
        Rows to train candidates on and rows to score them by; None for folds, or one
        split if there are many rows.
    schema : Schema
        Of the joint table.
    places : TargetPlaces
        Where the targets stand in it.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """
    budget = Budget(options.effort)
    seed = int(generator.integers(2**31))
    n_searched = dataset.n_rows
    if parts is None:
        n_searched = min(n_searched, _MOST_ROWS)
        parts = _dealt(dataset, places, budget, np.random.default_rng([seed, 0]))
    plan = planned(
        options.choice,
        options.structure,
        options.n_components,
        options.tradeoff,
        options.n_starts,
        _table_size(parts[0][0] if parts else dataset.in_memory(_MOST_ROWS), schema),
        budget,
    )
    for candidate in plan.candidates:
        check_memory(candidate.structure, len(schema.real), candidate.n_components)
    # Each training goes on where the one before has ended.
    n_steps = -(-options.n_steps // max(len(plan.tradeoffs), 1))
    trainer = TargetTrainer(schema, places, n_steps, pool)
    final = _FinalFit(options, trainer, dataset, seed)
    if not parts or (plan.is_single and not options.calibrate):
        entry = Entry(plan.candidates[0], plan.given_tradeoff)
        return final.alone(entry, plan.starts[entry.candidate.name])
    search = RegressionSearch(trainer, parts, plan, options.init, seed)
    return replace(_searched(search, final, budget), n_searched=n_searched)


def _searched(
    search: RegressionSearch, final: _FinalFit, budget: Budget
) -> FittedRegression:
    """Try candidates, and fit the best of them to all rows."""
    found, interrupted = search.tried(budget)
    weights, plan = search.weights(), search.plan
    voters = found
    if plan.is_given:
        voters = [entry for entry in found if entry.tradeoff == plan.given_tradeoff]
    members, shares, spread = _pool_of(voters, weights, final.options.calibrate)
    density = _best_density([e for e in found if e.tradeoff == 0.0], weights)
    fitted = final.together(members, shares, spread, density, interrupted)
    by_entry = dict(zip(members, shares.tolist(), strict=True))
    trials = (entry.trial(weights, by_entry.get(entry, 0.0)) for entry in voters)
    return replace(fitted, trials=tuple(trials))


def _dealt(
    dataset: TrainingRows,
    places: TargetPlaces,
    budget: Budget,
    generator: np.random.Generator,
) -> list[Part]:
    """Deal out rows to train on and rows to score by, which have targets."""
    if dataset.n_rows > _MOST_ROWS:
        index = generator.choice(dataset.n_rows, _MOST_ROWS, replace=False)
        rows = dataset.take(np.sort(index))
    else:
        rows = dataset.in_memory(_MOST_ROWS)
    n_distinct = int(distinct_numbers(rows.rows).max()) + 1
    are_few = n_distinct <= _FEW_ROWS and budget.searches
    folds = Holdout.deal(rows, int(are_few), _N_FOLDS, generator).folds
    parts = [(fold.rest, _with_target(fold.held, places)) for fold in folds]
    return [
        (rest, held)
        for rest, held in parts
        if held.n_rows and places.has_target(rest.rows).any()
    ]


def _with_target(dataset: Dataset, places: TargetPlaces) -> Dataset:
    return dataset.take(np.flatnonzero(places.has_target(dataset.rows)))


def _table_size(dataset: Dataset, schema: Schema) -> TableSize:
    return TableSize(
        dataset.n_rows,
        float(distinct_numbers(dataset.rows).max() + 1),
        len(schema.real),
        len(schema.categorical),
        dataset.rows.observed is not None,
    )


def _pool_of(
    entries: Sequence[Entry], weights: FloatArray, calibrate: bool
) -> tuple[list[Entry], FloatArray, float]:
    """Return the members of the highest held-out likelihood, shares and spread."""
    logs = np.stack([entry.logs() for entry in entries])
    order, shares = fitted_shares(logs[:, PLAIN], weights, _MOST_MEMBERS)
    if not calibrate:
        return [entries[k] for k in order], shares, 1.0
    averaged = logsumexp(logs[order, :-1] + np.log(shares)[:, None, None], axis=0)
    number = int(np.argmax(averaged @ weights))
    again, shares = fitted_shares(logs[order, number], weights, _MOST_MEMBERS)
    return [entries[order[k]] for k in again], shares, float(SPREADS[number])


def _best_density(entries: Sequence[Entry], weights: FloatArray) -> Entry:
    """Return the simplest entry whose density of held-out rows is the highest."""
    densities = [entry.logs()[-1] for entry in entries]
    return entries[simplest_within_noise(densities, weights)]


@dataclass(frozen=True)
class _FinalFit:
    """Trainings on all rows."""

    options: RegressionOptions
    trainer: TargetTrainer
    dataset: TrainingRows
    seed: int

    def alone(self, entry: Entry, n_starts: int) -> FittedRegression:
        """Train an entry without held-out rows."""
        solutions: list[Solution[Mixture]] = []
        try:
            for number in range(n_starts):
                solution, model = self._trained(entry, self.options.init, number)
                solutions.append(solution)
                entry.models.append(model)
                if solution.interrupted:
                    break
        except KeyboardInterrupt:
            if not solutions:
                raise
            solutions[-1] = replace(solutions[-1], interrupted=True)
        member = Member(tuple(entry.models), 1.0, entry.options)
        interrupted = solutions[-1].interrupted
        return self._record(solutions[0], (member,), 1.0, interrupted)

    def together(
        self,
        members: Sequence[Entry],
        shares: FloatArray,
        spread: float,
        density: Entry,
        interrupted: bool,
    ) -> FittedRegression:
        """Go on with members and the density, from where the first part has led.

        Those that an interrupt leaves out are models of a part of the rows.
        """
        models = {entry: list(entry.models) for entry in (*members, density)}
        first = Solution(density.models[0], float("nan"))
        # A prefix of the starts is all that a density needs.
        todo = [(density, 0), *((e, k) for e in members for k in range(len(e.models)))]
        todo = list(dict.fromkeys(todo))
        try:
            for number, (entry, start) in enumerate([] if interrupted else todo):
                announce("members", number, len(todo), entry.name)
                with listening(None):
                    begin = self._start(entry, start)
                    solution, models[entry][start] = self._trained(entry, begin, start)
                if number == 0:
                    first = solution
                if solution.interrupted:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            interrupted = True
        records = tuple(
            Member(tuple(models[entry]), float(share), entry.options)
            for entry, share in zip(members, shares, strict=True)
        )
        return self._record(first, records, spread, interrupted)

    def _start(self, entry: Entry, start: int) -> str | Mixture:
        """Return where the training on all rows begins."""
        needs_subspace = entry.candidate.structure.covariances.needs_subspace
        if needs_subspace and self.dataset.n_rows <= _FEW_FOR_SUBSPACE:
            return self.options.init
        return entry.models[start]

    def _trained(
        self, entry: Entry, start: str | Mixture, number: int
    ) -> tuple[Solution[Mixture], Mixture]:
        """Train an entry on all rows; return EM's solution, and the trained model."""
        estimation, seed = self.options.estimation, [self.seed, 2, number]
        solution = self.trainer.fitted(
            entry.candidate, self.dataset, estimation, start, seed
        )
        if solution.interrupted or entry.tradeoff == 0.0:
            return solution, solution.model
        trained = self.trainer.conditioned(solution.model, self.dataset, entry.tradeoff)
        return replace(solution, interrupted=trained.interrupted), trained.model

    def _record(
        self,
        first: Solution[Mixture],
        members: tuple[Member, ...],
        spread: float,
        interrupted: bool,
    ) -> FittedRegression:
        options = self.options
        # Users who have not asked for a number of components cannot ask for fewer.
        n_reseeded = 0 if options.choice.n_components else first.n_reseeded
        messages = em_messages(
            first.converged, interrupted, n_reseeded, options.estimation.max_iter
        )
        return FittedRegression(
            first.model,
            members,
            spread,
            first.converged,
            first.n_iter,
            history_in_units(first.traces, self.dataset, self.trainer.schema),
            messages,
        )
