"""The automatic choice of a structure by held-out rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.families import Subspace
from hybridmix.models.mixture import Mixture
from hybridmix.progress import announce, listening
from hybridmix.training.budget import Budget
from hybridmix.training.candidates import (
    Candidate,
    Chain,
    Choice,
    TableSize,
    candidate_chains,
    fixed_candidate,
)
from hybridmix.training.classes import ClassTrainer, Estimation
from hybridmix.training.families import Structure, family_maker, fitted_subspace
from hybridmix.training.holdout import (
    Fold,
    Holdout,
    RowScore,
    density_score,
    distinct_numbers,
    filling_score,
)
from hybridmix.training.leaderboard import (
    Trial,
    mean_and_error,
    simplest_within_noise,
    with_shares,
)

# Candidates are compared on at most this many rows, by effort.
_MOST_ROWS, _MOST_ROWS_THOROUGH = 3000, 20_000
# Tables of more rows than this have one split; those of fewer than _FEW repeat folds.
_MANY, _MANY_THOROUGH, _FEW = 800, 5000, 150
_N_FOLDS = 4
# EM of a candidate need not come closer to its maximum than candidates are apart.
_ROUGH = Estimation(n_init=1, max_iter=20, tol=1e-2)
# What is behind by more than this many standard errors after the first folds is dropped,
# and at most this many candidates go on.
_CLEAR, _FINALISTS = 2.0, 3
_FIRST_FOLDS = 2
# A candidate is judged by the mean of several folds, each with its own start; a single
# unlucky start of the final fit would be much worse.
_N_STARTS = 3
# A chain ends when this many candidates in a row are worse than one before, or one that
# is also clearly behind another chain.
_PATIENCE = 2


@dataclass(frozen=True)
class Search:
    """What a search needs to know.

    Attributes
    ----------
    choice : Choice
        What is free.
    structure : Structure
        Options of components, those that are fixed.
    n_components : list of int
        Numbers to try, if they are not free.
    budget : Budget
        How much effort to take.
    fills : bool
        Whether candidates are judged by how they fill hidden cells, and not by the
        density of rows.
    """

    choice: Choice
    structure: Structure
    n_components: list[int]
    budget: Budget
    fills: bool = False


@dataclass(frozen=True)
class Chosen:
    """What a search has found.

    Attributes
    ----------
    candidate : Candidate
        What to fit.
    trials : list of Trial
        Everything that was tried; empty without a search.
    interrupted : bool
        Whether the user ended the search.
    n_starts : int
        How many starts the final fit should have at least.
    n_searched : int
        Rows that the search has seen.
    """

    candidate: Candidate
    trials: list[Trial] = field(default_factory=list)
    interrupted: bool = False
    n_starts: int = 1
    n_searched: int = 0


def choose(
    search: Search,
    dataset: TrainingRows,
    schema: Schema,
    init: str | FloatArray,
    generator: np.random.Generator,
    pool: Workers,
) -> Chosen:
    """Choose a structure and a number of components.

    Parameters
    ----------
    search : Search
        What to choose from, and how.
    dataset : Dataset or BlockedDataset
        All rows, with the label 0.
    schema : Schema
        Of their table. All candidates are fitted in its scale.
    init : str or ndarray
        Method of the starts, or scaled centres.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """
    seed = int(generator.integers(2**31))
    is_thorough = search.budget.is_thorough
    sample = _sampled(dataset, _MOST_ROWS_THOROUGH if is_thorough else _MOST_ROWS, seed)
    n_distinct = int(distinct_numbers(sample.rows).max()) + 1
    size = TableSize(
        sample.n_rows,
        _free_rows(sample, n_distinct),
        len(schema.real),
        len(schema.categorical),
        sample.rows.observed is not None,
    )
    args = (search.choice, search.structure, search.n_components, size)
    fixed = fixed_candidate(*args)
    if not search.budget.searches:
        return Chosen(fixed)
    chains = candidate_chains(*args, is_thorough)
    if sum(map(len, chains)) < 2 or n_distinct < 2:
        return Chosen(chains[0][0] if chains else _too_costly(search.choice, fixed))
    holdout = Holdout.deal(
        sample, *_folding(n_distinct, is_thorough), np.random.default_rng([seed, 1])
    )
    if not holdout.folds:  # all weight is that of a single row
        return Chosen(chains[0][0])
    score = density_score(schema, pool)
    if search.fills:
        score = filling_score(holdout, np.random.default_rng([seed, 2]), pool)
    race = _Race(search, holdout, schema, init, score, seed, pool, dataset.n_rows)
    interrupted = race.run(chains)
    chosen = race.chosen(interrupted)
    kind = chosen.candidate.structure.covariance_type
    whole = replace(size, n_rows=dataset.n_rows)
    is_cheap = whole.is_cheap(kind, chosen.candidate.n_components)
    return replace(
        chosen,
        n_starts=_N_STARTS if is_cheap and not interrupted else 1,
        n_searched=sample.n_rows,
    )


def _too_costly(choice: Choice, fixed: Candidate) -> Candidate:
    """Return what to fit where comparing candidates would take too long."""
    return replace(fixed, n_components=1) if choice.n_components else fixed


def _sampled(dataset: TrainingRows, most: int, seed: int) -> Dataset:
    if dataset.n_rows <= most:
        return dataset.in_memory(most)
    generator = np.random.default_rng([seed, 0])
    return dataset.take(np.sort(generator.choice(dataset.n_rows, most, replace=False)))


def _free_rows(dataset: Dataset, n_distinct: int) -> float:
    """Return how many rows say something of their own; see `TableSize`."""
    if len(dataset.rows.real):
        return n_distinct
    # More components than distinct rows would have nothing to do.
    return min(dataset.total_weight, 5.0 * n_distinct)


def _folding(n_distinct: int, is_thorough: bool) -> tuple[int, int]:
    """Return how often to deal out the rows, and into how many folds."""
    if n_distinct > (_MANY_THOROUGH if is_thorough else _MANY):
        return 0, _N_FOLDS
    return (2 if is_thorough or n_distinct < _FEW else 1), _N_FOLDS


@dataclass(eq=False)
class _Runner:
    """A candidate in the race."""

    candidate: Candidate
    scores: list[FloatArray] = field(default_factory=list)
    seconds: float = 0.0
    n_parameters: int = 0


class _Race:
    """Candidates that are compared on more and more folds."""

    def __init__(
        self,
        search: Search,
        holdout: Holdout,
        schema: Schema,
        init: str | FloatArray,
        score: RowScore,
        seed: int,
        pool: Workers,
        n_rows: int,
    ) -> None:
        self._search = search
        self._holdout = holdout
        self._schema = schema
        self._init = init
        self._score = score
        self._seed = seed
        self._pool = pool
        self._growth = n_rows / holdout.dataset.n_rows
        self._subspaces: dict[int, tuple[Structure, Subspace | None]] = {}
        self._runners: list[_Runner] = []
        self._done = self._total = 0

    # Running ------------------------------------------------------------------------

    def run(self, chains: list[Chain]) -> bool:
        """Compare the candidates; return whether the user interrupted it."""
        folds = self._holdout.folds
        n_first = min(_FIRST_FOLDS, len(folds))
        n_candidates = sum(map(len, chains))
        later = min(_FINALISTS, n_candidates) * (len(folds) - n_first)
        self._total = n_candidates * n_first + later
        try:
            for chain in chains:
                self._run_chain(chain, n_first)
            for runner in self._finalists(n_first):
                self._advance(runner, len(folds))
        except KeyboardInterrupt:
            self._runners = [own for own in self._runners if own.scores]
            if not self._runners:
                raise
            return True
        announce("search", self._total, self._total)
        return False

    def _run_chain(self, chain: Chain, n_folds: int) -> None:
        """Try ascending numbers of components until these are worse."""
        best, n_worse = -np.inf, 0
        for candidate in chain:
            if self._is_spent():
                return
            runner = _Runner(candidate)
            self._runners.append(runner)
            if not self._advance(runner, n_folds):
                return
            mean = mean_and_error(*self._holdout.row_means(runner.scores))[0]
            n_worse = 0 if mean > best else n_worse + 1
            best = max(best, mean)
            if n_worse == _PATIENCE or (n_worse and self._is_behind(runner, n_folds)):
                return

    def _is_behind(self, runner: _Runner, n_folds: int) -> bool:
        """Return whether a candidate is clearly worse than the best one so far."""
        others = [own for own in self._runners if len(own.scores) >= n_folds]
        lead, error = max(self._lead(runner, own, n_folds) for own in others)
        return lead > _CLEAR * error

    def _is_spent(self) -> bool:
        """Return whether only the final fit can still be paid for."""
        if not self._runners:
            return False
        last = self._runners[-1]
        reserve = last.seconds / max(len(last.scores), 1) * self._growth
        return self._search.budget.is_spent(2.0 * reserve)

    def _advance(self, runner: _Runner, n_folds: int) -> bool:
        """Score a candidate on the first folds; return whether there was time for all."""
        for number in range(len(runner.scores), n_folds):
            if runner.scores and self._is_spent():
                return False
            before = time.perf_counter()
            with listening(None):
                model = self._fitted(runner.candidate, number)
                scores = self._score(model, self._holdout.folds[number])
            # A candidate that loses its way on a row must not win by it.
            scores = np.nan_to_num(scores, nan=-1e6, posinf=-1e6, neginf=-1e6)
            runner.scores.append(scores)
            runner.seconds += time.perf_counter() - before
            runner.n_parameters = model.n_parameters
            self._done += 1
            announce("search", self._done, self._total, runner.candidate.name)
        return True

    def _fitted(self, candidate: Candidate, number: int) -> Mixture:
        fold = self._holdout.folds[number]
        structure, subspace = candidate.structure, None
        if structure.covariances.needs_subspace:
            structure, subspace = self._subspace_of(structure, number, fold)
        family_of = family_maker(structure, self._schema, fold.rest, subspace)
        generator = np.random.default_rng([self._seed, 3, number])
        trainer = ClassTrainer(family_of, _ROUGH.solver(), 1, generator, self._pool)
        n_components = fold.rest.rows.n_distinct(candidate.n_components)
        [fit] = trainer.fit(fold.rest, [[n_components]], self._init, ["The table"])
        if fit.interrupted:
            raise KeyboardInterrupt
        return fit.model

    def _subspace_of(
        self, structure: Structure, number: int, fold: Fold
    ) -> tuple[Structure, Subspace | None]:
        """Return the subspace of a fold, which all candidates share.

        The number of factors is that of the first fold: to choose it takes much longer
        than to fit a subspace of a given number.
        """
        if number not in self._subspaces:
            if self._subspaces:
                _, first = next(iter(self._subspaces.values()))
                n_factors = structure.n_factors if first is None else first.n_factors
                structure = replace(structure, n_factors=n_factors)
            found = fitted_subspace(structure, self._schema, fold.rest)
            self._subspaces[number] = (structure, found)
        return self._subspaces[number]

    # Choosing -----------------------------------------------------------------------

    def _finalists(self, n_folds: int) -> list[_Runner]:
        """Return the best of those that are not clearly worse than the best one."""
        runners = [own for own in self._runners if len(own.scores) >= n_folds]
        if not runners:
            return []
        best = max(runners, key=lambda own: self._lead(runners[0], own, n_folds)[0])
        behind = {id(own): self._lead(own, best, n_folds) for own in runners}
        close = [
            own for own in runners if behind[id(own)][0] <= _CLEAR * behind[id(own)][1]
        ]
        return sorted(close, key=lambda own: behind[id(own)][0])[:_FINALISTS]

    def _lead(self, behind: _Runner, ahead: _Runner, n_folds: int) -> tuple[float, float]:
        """Return the mean lead of one candidate over another, and its error."""
        differences = [
            b - a
            for a, b in zip(behind.scores[:n_folds], ahead.scores[:n_folds], strict=True)
        ]
        return mean_and_error(*self._holdout.row_means(differences))

    def chosen(self, interrupted: bool) -> Chosen:
        """Return the simplest candidate that is not worse than the best but for noise."""
        n_folds = max(len(own.scores) for own in self._runners)
        final = [own for own in self._runners if len(own.scores) == n_folds]
        final.sort(key=_complexity)
        pairs = [self._holdout.row_means(own.scores) for own in final]
        place = simplest_within_noise([scores for scores, _ in pairs], pairs[0][1])
        winner = final[place]
        trials = [self._trial(own, final) for own in self._runners]
        name = winner.candidate.name
        return Chosen(winner.candidate, with_shares(trials, {name: 1.0}), interrupted)

    def _trial(self, runner: _Runner, final: Sequence[_Runner]) -> Trial:
        """Describe a candidate; one that was dropped is compared on the folds it had."""
        mean, error = mean_and_error(*self._holdout.row_means(runner.scores))
        n_folds = len(runner.scores)
        if runner not in final:
            own = final[0]
            lead = self._lead(runner, replace(own, scores=own.scores[:n_folds]), n_folds)[
                0
            ]
            mean = mean_and_error(*self._holdout.row_means(own.scores))[0] - lead
        return Trial(
            runner.candidate.name,
            mean,
            error,
            runner.seconds,
            options=runner.candidate.options,
        )


def _complexity(runner: _Runner) -> tuple[int, float]:
    """Return what to order by: parameters, and among equals the stronger prior."""
    prior = runner.candidate.structure.covariance_prior
    return runner.n_parameters, 0.0 if isinstance(prior, str) else -prior
