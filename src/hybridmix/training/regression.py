"""Training of a regressor: mixtures of rows and targets, averaged."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from hybridmix._checks import check_flag, check_number
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema
from hybridmix.data.targets import TargetPlaces
from hybridmix.models.mixture import Mixture
from hybridmix.models.predictive import Predictive
from hybridmix.progress import announce, listening
from hybridmix.solvers import Solution
from hybridmix.training.budget import Budget
from hybridmix.training.candidates import Candidate, Choice, TableSize
from hybridmix.training.classes import Estimation
from hybridmix.training.families import Structure
from hybridmix.training.holdout import Holdout, distinct_numbers
from hybridmix.training.leaderboard import Trial, mean_and_error, simplest_within_noise
from hybridmix.training.memory import check_memory
from hybridmix.training.record import INTERRUPTED, em_messages, history_in_units
from hybridmix.training.regression_plan import planned, starts_of
from hybridmix.training.targets import SPREADS, TargetTrainer
from hybridmix.training.votes import fitted_shares

# Rows to train on, and rows to score.
Part = tuple[Dataset, Dataset]
_PLAIN = len(SPREADS) // 2
# More members take longer to predict, and are hardly ever better.
_MOST_MEMBERS = 5
# A candidate that trails the best one by this many standard errors on the first part is
# not trained on the others.
_HOPELESS = 3.0
# Tables of up to this many rows are dealt into folds; larger ones are split, and a search
# on this many rows finds what a search on more would.
_FEW_ROWS, _N_FOLDS, _MOST_ROWS = 2_000, 4, 6_000
# EM of a candidate need not come closer to its maximum than candidates are apart.
_ROUGH = Estimation(n_init=1, max_iter=30, tol=1e-3)
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
    """

    density: Mixture
    members: tuple[Member, ...]
    spread: float
    converged: bool
    n_iter: int
    history: Mapping[str, FloatArray]
    messages: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()

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


@dataclass(eq=False)
class Entry:
    """A candidate with a tradeoff, and what it says about held-out rows.

    Attributes
    ----------
    candidate : Candidate
        The structure.
    tradeoff : float
        Weight of the predictive likelihood; 0 for EM alone.
    blocks : list of ndarray of shape (G + 1, n)
        For the held-out rows of each part: log predictive densities for all spreads, then
        log densities of the rows without their targets.
    models : list of Mixture
        One for each start, trained on the first part.
    seconds : float
        What its trainings took.
    """

    candidate: Candidate
    tradeoff: float
    blocks: list[FloatArray] = field(default_factory=list)
    models: list[Mixture] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """What to call it."""
        if self.tradeoff == 0.0:
            return self.candidate.name
        return f"{self.candidate.name}, tradeoff {self.tradeoff:g}"

    @property
    def options(self) -> dict[str, object]:
        """The values of the options that it stands for."""
        own = {**self.candidate.options, "tradeoff": self.tradeoff}
        return {**own, "n_starts": len(self.models)}

    def logs(self) -> FloatArray:
        """Return the blocks of all parts side by side."""
        return np.concatenate(self.blocks, axis=1)


class RegressionRun:
    """One fit of a regressor: what its steps share."""

    def __init__(
        self,
        options: RegressionOptions,
        dataset: Dataset,
        parts: Sequence[Part] | None,
        schema: Schema,
        places: TargetPlaces,
        generator: np.random.Generator,
        pool: Workers,
    ) -> None:
        self._options = options
        self._dataset = dataset
        self._schema = schema
        self._places = places
        self._seed = int(generator.integers(2**31))
        self._budget = Budget(options.effort)
        self._trainer = TargetTrainer(schema, places, options.n_steps, pool)
        self._parts = self._dealt() if parts is None else list(parts)
        rows = self._parts[0][0] if self._parts else dataset
        self._size = _table_size(rows, schema)
        self._plan = planned(
            options.choice,
            options.structure,
            options.n_components,
            options.tradeoff,
            self._size,
            self._budget,
        )

    # Held-out rows ------------------------------------------------------------------

    def _dealt(self) -> list[Part]:
        """Deal out rows to train on and rows to score by."""
        generator = np.random.default_rng([self._seed, 0])
        dataset = self._dataset
        if dataset.n_rows > 2 * _MOST_ROWS:
            index = generator.choice(dataset.n_rows, 2 * _MOST_ROWS, replace=False)
            dataset = dataset.take(np.sort(index))
        n_distinct = int(distinct_numbers(dataset.rows).max()) + 1
        are_few = n_distinct <= _FEW_ROWS and self._budget.searches
        folds = Holdout.deal(dataset, int(are_few), _N_FOLDS, generator).folds
        parts = [(fold.rest, self._with_target(fold.held)) for fold in folds]
        return [
            (rest, held)
            for rest, held in parts
            if held.n_rows and self._with_target(rest).n_rows
        ]

    def _with_target(self, dataset: Dataset) -> Dataset:
        return dataset.take(np.flatnonzero(self._places.has_target(dataset.rows)))

    def _held_weights(self, n_parts: int | None = None) -> FloatArray:
        held = [held.filled_weights for _, held in self._parts[:n_parts]]
        return np.concatenate(held)

    # Search -------------------------------------------------------------------------

    def fit(self) -> FittedRegression:
        """Try candidates on held-out rows, and fit the best of them to all rows."""
        for candidate in self._plan.candidates:
            n_real = len(self._schema.real)
            check_memory(candidate.structure, n_real, candidate.n_components)
        is_single = len(self._plan.candidates) == 1 and (
            not isinstance(self._options.tradeoff, str) or not self._plan.tradeoffs
        )
        if not self._parts or (is_single and not self._options.calibrate):
            return self._direct()
        found, interrupted = self._tried()
        weights = self._held_weights()
        voters = found
        if not is_single and not isinstance(self._options.tradeoff, str):
            voters = [e for e in found if e.tradeoff == self._options.tradeoff] or found
        if is_single:
            voters = found[-1:]
        members, shares, spread = _pool_of(voters, weights, self._options.calibrate)
        density = _best_density([e for e in found if e.tradeoff == 0.0], weights)
        return self._refitted(found, members, shares, spread, density, interrupted)

    def _tried(self) -> tuple[list[Entry], bool]:
        """Try candidates; return entries, and whether the user ended the search."""
        found: list[Entry] = []
        longest = 0.0
        plan = self._plan.candidates
        for number, candidate in enumerate(plan):
            if found and self._budget.is_spent(2.0 * longest):
                break
            began = time.perf_counter()
            try:
                found += self._entries(candidate, found)
                announce("search", number + 1, len(plan), candidate.name)
            except KeyboardInterrupt:
                if not found:
                    raise
                return found, True
            longest = max(longest, time.perf_counter() - began)
        return found, False

    def _entries(self, candidate: Candidate, before: Sequence[Entry]) -> list[Entry]:
        """Train a candidate on all parts; return nothing if it is hopeless."""
        entries = [Entry(candidate, t) for t in (0.0, *self._plan.tradeoffs)]
        n_starts = starts_of(candidate, self._size, self._options.n_starts)
        for number, (rest, held) in enumerate(self._parts):
            logs: list[list[FloatArray]] = [[] for _ in entries]
            # Progress is that of the search, and candidates that do not suit the table
            # show in their scores.
            with listening(None), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for start in range(n_starts):
                    model = None
                    for entry, own in zip(entries, logs, strict=True):
                        began = time.perf_counter()
                        seed = [self._seed, 1, number, start]
                        model = self._advanced(entry, rest, model, seed)
                        own.append(self._trainer.log_predictive(model, held))
                        entry.seconds += time.perf_counter() - began
                        if number == 0:
                            entry.models.append(model)
            for entry, own in zip(entries, logs, strict=True):
                entry.blocks.append(_averaged(own))
            if number == 0 and self._are_hopeless(entries, before):
                return []
        return entries

    def _advanced(
        self, entry: Entry, rows: Dataset, model: Mixture | None, seed: list[int]
    ) -> Mixture:
        """Train an entry from the one before it, or from scratch if it is the first."""
        if model is None:
            init = self._options.init
            return _finished(
                self._trainer.fitted(entry.candidate, rows, _ROUGH, init, seed)
            )
        return _finished(self._trainer.conditioned(model, rows, entry.tradeoff))

    def _are_hopeless(self, entries: list[Entry], before: Sequence[Entry]) -> bool:
        """Return whether all entries trail the best one of before on the first part."""
        if not before or len(self._parts) == 1:
            return False
        weights = self._held_weights(1)
        scores = [entry.blocks[0][_PLAIN] for entry in before]
        best = max(scores, key=lambda own: float(weights @ own))
        for entry in entries:
            lead, error = mean_and_error(best - entry.blocks[0][_PLAIN], weights)
            if lead <= _HOPELESS * error:
                return False
        return True

    # All rows -----------------------------------------------------------------------

    def _direct(self) -> FittedRegression:
        """Fit the only candidate, or the usual one, without held-out rows."""
        candidate = self._plan.candidates[0]
        tradeoff = self._plan.tradeoffs[-1] if self._plan.tradeoffs else 0.0
        if isinstance(self._options.tradeoff, str):
            tradeoff = 0.0
        entry = Entry(candidate, tradeoff)
        n_starts = starts_of(candidate, self._size, self._options.n_starts)
        if isinstance(self._options.n_starts, str):
            n_starts = 1
        first: Solution[Mixture] | None = None
        models: list[Mixture] = []
        interrupted = False
        for start in range(n_starts):
            try:
                solution, model = self._final(entry, self._options.init, start)
            except KeyboardInterrupt:
                if first is None:
                    raise
                interrupted = True
                break
            first = first or solution
            models.append(model)
            interrupted = solution.interrupted
            if interrupted:
                break
        assert first is not None, "there is at least one start"
        entry.models = models
        member = Member(tuple(models), 1.0, entry.options)
        return self._record(first, (member,), 1.0, interrupted)

    def _final(
        self, entry: Entry, start: str | Mixture, number: int
    ) -> tuple[Solution[Mixture], Mixture]:
        """Train an entry on all rows; return EM's solution, and the trained model."""
        estimation, seed = self._options.estimation, [self._seed, 2, number]
        solution = self._trainer.fitted(
            entry.candidate, self._dataset, estimation, start, seed
        )
        if solution.interrupted or entry.tradeoff == 0.0:
            return solution, solution.model
        trained = self._trainer.conditioned(solution.model, self._dataset, entry.tradeoff)
        if trained.interrupted:
            solution = replace(solution, interrupted=True)
        return solution, trained.model

    def _refitted(
        self,
        found: Sequence[Entry],
        members: Sequence[Entry],
        shares: FloatArray,
        spread: float,
        density: Entry,
        interrupted: bool,
    ) -> FittedRegression:
        """Go on with the members and the density on all rows.

        Those that an interrupt leaves out are models of a part of the rows.
        """
        final = {id(entry): list(entry.models) for entry in (*members, density)}
        first = Solution(density.models[0], float("nan"))
        todo = [(e, k) for e in members for k in range(len(e.models))]
        todo += [(density, 0)] if density not in members else []
        try:
            for number, (entry, start) in enumerate(todo):
                if interrupted:
                    break
                announce("members", number, len(todo), entry.name)
                with listening(None):
                    solution, model = self._final(entry, self._start(entry, start), start)
                if solution.interrupted:
                    raise KeyboardInterrupt
                final[id(entry)][start] = model
                if entry is density and start == 0:
                    first = solution
        except KeyboardInterrupt:
            interrupted = True
        records = tuple(
            Member(tuple(final[id(entry)]), float(share), entry.options)
            for entry, share in zip(members, shares, strict=True)
        )
        weights = self._held_weights()
        by_entry = dict(zip(map(id, members), shares.tolist(), strict=True))
        trials = tuple(_trial(e, weights, by_entry.get(id(e), 0.0)) for e in found)
        record = self._record(first, records, spread, interrupted)
        return replace(record, trials=trials)

    def _start(self, entry: Entry, start: int) -> str | Mixture:
        """Return where the training on all rows begins."""
        needs_subspace = entry.candidate.structure.covariances.needs_subspace
        if needs_subspace and self._dataset.n_rows <= _FEW_FOR_SUBSPACE:
            return self._options.init
        return entry.models[start]

    def _record(
        self,
        first: Solution[Mixture],
        members: tuple[Member, ...],
        spread: float,
        interrupted: bool,
    ) -> FittedRegression:
        options = self._options
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
            history_in_units(first.traces, self._dataset, self._schema),
            messages,
        )


def _table_size(dataset: Dataset, schema: Schema) -> TableSize:
    return TableSize(
        dataset.n_rows,
        float(distinct_numbers(dataset.rows).max() + 1),
        len(schema.real),
        len(schema.categorical),
        dataset.rows.observed is not None,
    )


def _finished(solution: Solution[Mixture]) -> Mixture:
    """Return the model of a solution; an interrupt of one fit is meant for all."""
    if solution.interrupted:
        raise KeyboardInterrupt
    return solution.model


def _averaged(logs: Sequence[FloatArray]) -> FloatArray:
    """Return the logs of the mean densities; a density that is lost counts nothing."""
    means = logsumexp(np.stack(logs), axis=0) - np.log(len(logs))
    return np.nan_to_num(means, nan=-1e6, posinf=-1e6, neginf=-1e6)


def _pool_of(
    entries: Sequence[Entry], weights: FloatArray, calibrate: bool
) -> tuple[list[Entry], FloatArray, float]:
    """Return the members of the highest held-out likelihood, shares and spread."""
    logs = np.stack([entry.logs() for entry in entries])
    order, shares = fitted_shares(logs[:, _PLAIN], weights, _MOST_MEMBERS)
    kept = [k for k, share in zip(order, shares, strict=True) if share > 0.0]
    if not calibrate:
        return [entries[k] for k in kept], shares, 1.0
    pooled_logs = logsumexp(logs[kept, :-1] + np.log(shares)[:, None, None], axis=0)
    number = int(np.argmax(pooled_logs @ weights))
    order, shares = fitted_shares(logs[kept, number], weights, _MOST_MEMBERS)
    return [entries[kept[k]] for k in order], shares, float(SPREADS[number])


def _best_density(entries: Sequence[Entry], weights: FloatArray) -> Entry:
    """Return the simplest entry whose density of held-out rows is the highest."""
    densities = [entry.logs()[-1] for entry in entries]
    return entries[simplest_within_noise(densities, weights)]


def _trial(entry: Entry, weights: FloatArray, share: float) -> Trial:
    mean, error = mean_and_error(entry.logs()[_PLAIN], weights)
    return Trial(entry.name, mean, error, entry.seconds, share, entry.options)
