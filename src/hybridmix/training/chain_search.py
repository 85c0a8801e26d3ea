"""Search for the form of hidden Markov models, by held-out sequences."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.evaluation import log_joint
from hybridmix.models.calibration import Calibration
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.models.chains import Chains
from hybridmix.progress import announce
from hybridmix.solvers import Solution
from hybridmix.training.budget import Budget
from hybridmix.training.chain_plan import (
    AutomaticChains,
    ChainCandidate,
    chain_candidates,
)
from hybridmix.training.chains import (
    ChainOptions,
    ChainRun,
    FittedChains,
    chosen_weight,
    finished,
    fit_chains,
    sequence_history,
)
from hybridmix.training.leaderboard import (
    Trial,
    mean_and_error,
    simplest_within_noise,
    with_shares,
)
from hybridmix.training.record import INTERRUPTED
from hybridmix.training.votes import HeldOut, fitted_shares

# Labelled sequences are dealt into this many folds, if there are at most this many.
_N_FOLDS, _FEW = 3, 1000
# Otherwise this share of them is held out, and at most this many are trained on.
_HELD_SHARE, _MOST = 0.3, 1000
_MOST_MEMBERS = 3

Part = tuple[SequenceDataset, SequenceDataset]


@dataclass(frozen=True, eq=False)
class _Score:
    """How a candidate did on held-out sequences, after some of its stations.

    Attributes
    ----------
    candidate : ChainCandidate
        What was tried.
    station : int
        After this many discriminative trainings; 0 for EM alone.
    calibration : Calibration
        Of its class probabilities.
    log_probabilities : ndarray of shape (C, n)
        Of the classes of the held-out sequences, calibrated.
    log_densities : ndarray of shape (n,)
        Of the held-out sequences with their labels, per frame.
    seconds : float
        What its fits took.
    """

    candidate: ChainCandidate
    station: int
    calibration: Calibration
    log_probabilities: FloatArray
    log_densities: FloatArray
    seconds: float

    @property
    def name(self) -> str:
        """What to call it."""
        return self.candidate.name(self.station)


class ChainSearch:
    """A search: its sequences, and what it has found.

    Parameters
    ----------
    parts : sequence of (SequenceDataset, SequenceDataset)
        Sequences to train on, and to hold out.
    schema : Schema
        Of the frames.
    n_classes : int
        Number of classes.
    unlabelled_weight : float
        What an unlabelled sequence counts.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        schema: Schema,
        n_classes: int,
        unlabelled_weight: float,
        generator: np.random.Generator,
        pool: Workers,
    ) -> None:
        self._parts = parts
        self._schema = schema
        self._n_classes = n_classes
        self._weight = unlabelled_weight
        # Every run begins with the same seed: candidates differ by their options alone.
        self._seed = int(generator.integers(2**31))
        self._pool = pool
        self.held = HeldOut(
            np.concatenate([held.labels for _, held in parts]),
            np.concatenate([held.filled_weights for _, held in parts]),
        )

    def run_of(self, options: ChainOptions) -> ChainRun:
        """Return a run of training with some options."""
        generator = np.random.default_rng(self._seed)
        return ChainRun(options, self._schema, self._n_classes, generator, self._pool)

    def solutions(
        self, candidate: ChainCandidate, dataset: SequenceDataset, last: int
    ) -> list[Solution[Chains]]:
        """Run EM and then the stations up to the last one, each from the one before."""
        run = self.run_of(candidate.options)
        found = [run.solve_likelihood(dataset, self._weight)]
        for station in candidate.stations[:last]:
            start = finished(found[-1])
            found.append(run.discriminated(station, dataset, None, start, self._weight))
        return found

    def scores(self, plan: Sequence[ChainCandidate], budget: Budget) -> list[_Score]:
        """Score candidates one by one, until the user or the budget ends it.

        The first candidate is always scored, unless the user interrupts it.
        """
        scores: list[_Score] = []
        for number, candidate in enumerate(plan):
            if scores and budget.is_spent(reserve=0.5 * budget.elapsed):
                break
            announce("search", number, len(plan), candidate.name(0))
            scores.extend(self._scores_of(candidate))
        return scores

    def _scores_of(self, candidate: ChainCandidate) -> list[_Score]:
        """Fit a candidate to every part; return a score for each of its stations."""
        began = time.perf_counter()
        n_stations = len(candidate.stations) + 1
        joints: list[list[FloatArray]] = [[] for _ in range(n_stations)]
        densities: list[list[FloatArray]] = [[] for _ in range(n_stations)]
        run = self.run_of(candidate.options)
        for rest, held in self._parts:
            solutions = self.solutions(candidate, rest, n_stations - 1)
            for station, solution in enumerate(solutions):
                model = finished(solution)
                joint = log_joint(model, held.rows, self._pool)
                density = joint[held.labels, np.arange(held.n_rows)]
                densities[station].append(density / held.rows.lengths)
                joints[station].append(run.scaled(joint, held))
        seconds = (time.perf_counter() - began) / n_stations
        result = []
        for station in range(n_stations):
            scores = np.concatenate(joints[station], axis=1)
            calibration = self.held.calibration(scores)
            result.append(
                _Score(
                    candidate,
                    station,
                    calibration,
                    calibration.log_probabilities(scores),
                    np.concatenate(densities[station]),
                    seconds,
                )
            )
        return result


def fit_chosen(
    options: ChainOptions,
    automatic: AutomaticChains,
    effort: str | float,
    dataset: SequenceDataset,
    schema: Schema,
    n_classes: int,
    generator: np.random.Generator,
    pool: Workers,
) -> FittedChains:
    """Choose what is automatic by held-out sequences, and fit it to all of them.

    With several classes, a committee of the best candidates votes on the class, and the
    density is the EM fit of the highest held-out likelihood. With one class, the simplest
    candidate within the noise of the best held-out likelihood is fitted.

    Parameters
    ----------
    options : ChainOptions
        What the user has fixed; automatic options have usual values.
    automatic : AutomaticChains
        Which ones are chosen.
    effort : str or float
        How much to spend.
    dataset, schema, n_classes, generator, pool
        As in `fit_chains`.
    """
    budget = Budget(effort)
    parts = _parts(dataset, generator)
    if not parts or not budget.searches:
        plan = chain_candidates(options, automatic, dataset, schema, Budget("fast"))
        usual = plan[0]
        chosen = replace(
            usual.options, discrimination=usual.discrimination(len(usual.stations))
        )
        can_hold = bool(parts) and n_classes > 1
        chosen = replace(chosen, calibrate=options.calibrate and can_hold)
        return fit_chains(chosen, dataset, schema, n_classes, generator, pool)
    plan = chain_candidates(options, automatic, parts[0][0], schema, budget)
    weight = _search_weight(plan, options, dataset, schema, n_classes, generator, pool)
    search = ChainSearch(parts, schema, n_classes, weight, generator, pool)
    scores = search.scores(plan, budget)
    densities = [score for score in scores if score.station == 0]
    chosen_density = densities[
        simplest_within_noise([s.log_densities for s in densities], search.held.weights)
    ]
    if n_classes == 1:
        return _fitted_density(search, chosen_density, densities, dataset, schema, weight)
    return _fitted_committee(
        search, chosen_density, scores, options, dataset, schema, weight
    )


def _parts(dataset: SequenceDataset, generator: np.random.Generator) -> list[Part]:
    """Return sequences to train candidates on, and to score them by; none if too few."""
    counts = np.bincount(dataset.labelled().labels)
    if counts.max() < 2:
        return []
    if counts.sum() <= _FEW:
        return list(dataset.folds(_N_FOLDS, generator))
    rest, held = dataset.split(_HELD_SHARE, generator)
    return [(_thinned(rest, generator), _thinned(held, generator))]


def _thinned(dataset: SequenceDataset, generator: np.random.Generator) -> SequenceDataset:
    """Return a random part of the sequences; every class keeps some."""
    kept = []
    share = min(1.0, _MOST / max(dataset.labelled().n_rows, 1))
    for label in np.unique(dataset.labels):
        own = np.flatnonzero(dataset.labels == label)
        size = max(1, round(share * len(own)))
        kept.append(np.sort(generator.choice(own, size, replace=False)))
    return dataset.take(np.concatenate(kept))


def _search_weight(
    plan: Sequence[ChainCandidate],
    options: ChainOptions,
    dataset: SequenceDataset,
    schema: Schema,
    n_classes: int,
    generator: np.random.Generator,
    pool: Workers,
) -> float:
    """Return the weight of unlabelled sequences that suits the first candidate."""
    run = ChainRun(plan[0].options, schema, n_classes, generator, pool)
    return chosen_weight(run, dataset)


def _fitted_density(
    search: ChainSearch,
    chosen: _Score,
    scores: Sequence[_Score],
    dataset: SequenceDataset,
    schema: Schema,
    weight: float,
) -> FittedChains:
    """Fit the chosen density to all sequences."""
    run = search.run_of(chosen.candidate.options)
    [solution] = search.solutions(chosen.candidate, dataset, 0)
    trials = [_trial(s, s.log_densities, search.held.weights) for s in scores]
    return FittedChains(
        schema,
        solution.model,
        chosen.candidate.options,
        solution.converged,
        solution.n_iter,
        sequence_history(solution, dataset, schema, weight),
        weight,
        messages=run.messages(solution),
        trials=tuple(with_shares(trials, {chosen.name: 1.0})),
    )


def _fitted_committee(
    search: ChainSearch,
    density: _Score,
    scores: Sequence[_Score],
    options: ChainOptions,
    dataset: SequenceDataset,
    schema: Schema,
    weight: float,
) -> FittedChains:
    """Fit members and the density to all sequences, and let the members vote."""
    held = search.held
    voters = [score for score in scores if score.station] or list(scores)
    log_scores = np.stack([held.log_scores(s.log_probabilities) for s in voters])
    numbers, shares = fitted_shares(log_scores, held.weights, _MOST_MEMBERS)
    members = [voters[number] for number in numbers]
    models, solution = [], None
    for number, member in enumerate(members):
        announce("members", number, len(members), member.name)
        found = search.solutions(member.candidate, dataset, member.station)
        models.append(finished(found[-1]))
        if member.candidate is density.candidate:
            solution = found[0]
    if solution is None:
        [solution] = search.solutions(density.candidate, dataset, 0)
    committee = ChainCommittee(
        tuple(models),
        shares,
        np.array([member.calibration.temperature for member in members]),
        np.array([member.calibration.uniform_share for member in members]),
        options.length_power,
    )
    trials = [
        _trial(score, held.log_scores(score.log_probabilities), held.weights)
        for score in voters
    ]
    by_name = {m.name: float(s) for m, s in zip(members, shares, strict=True)}
    return FittedChains(
        schema,
        solution.model,
        density.candidate.options,
        solution.converged,
        solution.n_iter,
        sequence_history(solution, dataset, schema, weight),
        weight,
        messages=(INTERRUPTED,) if solution.interrupted else (),
        trials=tuple(with_shares(trials, by_name)),
        committee=committee,
    )


def _trial(score: _Score, values: FloatArray, weights: FloatArray) -> Trial:
    """Return a line of the leaderboard, by the values (n,) of held-out sequences."""
    mean, error = mean_and_error(values, weights)
    return Trial(score.name, mean, error, score.seconds)
