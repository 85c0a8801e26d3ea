"""Search for the form of hidden Markov models, by held-out sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.sequence_blocks import TrainingSequenceRows
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.models.chains import Chains
from hybridmix.solvers import Solution
from hybridmix.training.budget import Budget
from hybridmix.training.chain_plan import AutomaticChains, chain_candidates
from hybridmix.training.chain_record import ChainOptions, FittedChains
from hybridmix.training.chain_trials import ChainScore, ChainSearch, Part
from hybridmix.training.chains import (
    candidate_weights,
    fit_chains,
    sequence_history,
)
from hybridmix.training.discriminative import likelihood_only
from hybridmix.training.leaderboard import Trial, simplest_within_noise, with_shares
from hybridmix.training.record import INTERRUPTED
from hybridmix.training.votes import fitted_shares

# Labelled sequences are dealt into this many folds, if there are at most this many.
_N_FOLDS, _FEW = 3, 1000
# Otherwise this share of them is held out, and at most this many are trained on.
_HELD_SHARE, _MOST = 0.3, 600
# Candidates see about this many frames of labelled sequences at most.
_MOST_FRAMES = 200_000
# Candidates see at most this many unlabelled sequences, which count for all of them.
_MOST_UNLABELLED = 500
_MOST_MEMBERS = 3


def fit_chosen(
    options: ChainOptions,
    automatic: AutomaticChains,
    effort: str | float,
    dataset: TrainingSequenceRows,
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
    if n_classes == 1:  # there is nothing to discriminate
        options = replace(options, discrimination=likelihood_only())
    budget = Budget(effort)
    sample = dataset.sample()
    parts = _parts(sample, generator)
    if not parts or not budget.searches:
        plan = chain_candidates(options, automatic, sample, schema, Budget("fast"))
        usual = plan[0]
        chosen = replace(
            usual.options, discrimination=usual.discrimination(len(usual.stations))
        )
        can_hold = bool(parts) and n_classes > 1
        chosen = replace(chosen, calibrate=options.calibrate and can_hold)
        return fit_chains(chosen, dataset, schema, n_classes, generator, pool)
    plan = chain_candidates(options, automatic, parts[0][0], schema, budget)
    weights = candidate_weights(options.unlabelled_weight, dataset)
    # Labels alone decide about the form: many unlabelled sequences would take long.
    search = ChainSearch(parts, schema, n_classes, weights[-1], generator, pool)
    scores, interrupted = search.scores(plan, budget)
    for weight in weights[:-1] if not interrupted else ():
        search, scores, interrupted = _weighed(search, scores, weight, budget)
    fitted = _fitted_density if n_classes == 1 else _fitted_committee
    found = fitted(search, scores, dataset, schema, interrupted)
    return replace(found, n_searched=sum(part.n_rows for part in parts[0]))


def _parts(dataset: SequenceDataset, generator: np.random.Generator) -> list[Part]:
    """Return sequences to train candidates on, and to score them by; none if too few."""
    counts = np.bincount(dataset.labelled().labels)
    if counts.max() < 2:
        return []
    n_labelled = int(counts.sum())
    by_frames = int(_MOST_FRAMES / dataset.rows.lengths.mean())
    affordable = max(by_frames, _N_FOLDS * len(counts))
    if n_labelled <= _FEW:
        thinned = _thinned(dataset, min(n_labelled, affordable), generator)
        return list(thinned.folds(_N_FOLDS, generator))
    rest, held = dataset.split(_HELD_SHARE, generator)
    most = min(_MOST, affordable)
    return [(_thinned(rest, most, generator), _thinned(held, most, generator))]


def _thinned(
    dataset: SequenceDataset, n_labelled: int, generator: np.random.Generator
) -> SequenceDataset:
    """Return a random part of the sequences; every class keeps some.

    The weights of unlabelled sequences grow so that their sum is about the same.
    """
    shares = {
        is_labelled: min(1.0, most / max(part.n_rows, 1))
        for is_labelled, part, most in (
            (True, dataset.labelled(), n_labelled),
            (False, dataset.unlabelled(), _MOST_UNLABELLED),
        )
    }
    kept, weights = [], []
    for label in np.unique(dataset.labels):
        own = np.flatnonzero(dataset.labels == label)
        share = shares[bool(label >= 0)]
        size = max(1, round(share * len(own)))
        index = np.sort(generator.choice(own, size, replace=False))
        kept.append(index)
        grown = 1.0 if label >= 0 else 1.0 / share
        weights.append(grown * dataset.filled_weights[index])
    thinned = dataset.take(np.concatenate(kept))
    return replace(thinned, weights=np.concatenate(weights))


def _weighed(
    search: ChainSearch, scores: list[ChainScore], weight: float, budget: Budget
) -> tuple[ChainSearch, list[ChainScore], bool]:
    """Try another weight of unlabelled sequences with the members of the committee.

    Return the better search, its scores, and whether the user has ended it.
    """
    members, _, _ = _chosen(search, scores)
    plan = list(dict.fromkeys(member.candidate for member in members))
    other = search.weighing(weight)
    try:
        found, interrupted = other.scores(plan, budget)
    except KeyboardInterrupt:
        return search, scores, True
    if _best_value(other, found) > _best_value(search, scores):
        return other, found, interrupted
    return search, scores, interrupted


def _best_value(search: ChainSearch, scores: Sequence[ChainScore]) -> float:
    """Return the best mean log probability of the classes of held-out sequences."""
    values = [search.held.log_scores(score.log_probabilities) for score in scores]
    return max(float(np.average(v, weights=search.held.weights)) for v in values)


def _best_density(search: ChainSearch, scores: Sequence[ChainScore]) -> ChainScore:
    """Return the simplest EM fit within the noise of the best held-out likelihood."""
    densities = [score.log_densities for score in scores]
    return scores[simplest_within_noise(densities, search.held.weights)]


def _fitted_density(
    search: ChainSearch,
    scores: Sequence[ChainScore],
    dataset: TrainingSequenceRows,
    schema: Schema,
    interrupted: bool,
) -> FittedChains:
    """Fit the best density to all sequences, also if the user has ended the search."""
    chosen, weight = _best_density(search, scores), search.unlabelled_weight
    run = search.run_of(chosen.candidate.options)
    solution = run.solve_likelihood(dataset, weight)
    messages = run.messages(solution)
    if interrupted and not solution.interrupted:
        messages = (INTERRUPTED, *messages)
    trials = [s.trial(s.log_densities, search.held.weights) for s in scores]
    return FittedChains(
        schema,
        solution.model,
        chosen.candidate.options,
        solution.converged,
        solution.n_iter,
        sequence_history(solution, dataset, schema, weight),
        weight,
        messages=messages,
        trials=tuple(with_shares(trials, {chosen.name: 1.0})),
    )


def _fitted_committee(
    search: ChainSearch,
    scores: Sequence[ChainScore],
    dataset: TrainingSequenceRows,
    schema: Schema,
    interrupted: bool,
) -> FittedChains:
    """Fit members and the density to all sequences, and let the members vote.

    Those that are missing when the user ends it are models of the first part.
    """
    density = _best_density(search, [score for score in scores if score.station == 0])
    members, shares, trials = _chosen(search, scores)
    found: dict[ChainScore, Solution[Chains]] = {}
    if not interrupted:
        found, interrupted = search.refitted([*members, density], dataset)
    is_done = density in found
    rows: TrainingSequenceRows = dataset if is_done else search.first_part
    solution, weight = found.get(density, density.first), search.unlabelled_weight
    return FittedChains(
        schema,
        solution.model,
        density.candidate.options,
        solution.converged,
        solution.n_iter,
        sequence_history(solution, rows, schema, weight),
        weight,
        messages=(INTERRUPTED,) if interrupted else (),
        trials=trials,
        committee=_committee(members, [found.get(m, m.first) for m in members], shares),
    )


def _chosen(
    search: ChainSearch, scores: Sequence[ChainScore]
) -> tuple[list[ChainScore], FloatArray, tuple[Trial, ...]]:
    """Return the members of a committee, their shares, and the leaderboard."""
    held = search.held
    voters = [score for score in scores if score.station] or list(scores)
    log_scores = np.stack([held.log_scores(s.log_probabilities) for s in voters])
    numbers, shares = fitted_shares(log_scores, held.weights, _MOST_MEMBERS)
    members = [voters[number] for number in numbers]
    by_name = {m.name: float(s) for m, s in zip(members, shares, strict=True)}
    trials = [
        score.trial(own, held.weights)
        for score, own in zip(voters, log_scores, strict=True)
    ]
    return members, shares, tuple(with_shares(trials, by_name))


def _committee(
    members: Sequence[ChainScore],
    solutions: Sequence[Solution[Chains]],
    shares: FloatArray,
) -> ChainCommittee:
    """Let trained members vote, with the calibrations of the search."""
    return ChainCommittee(
        tuple(solution.model for solution in solutions),
        shares,
        np.array([member.calibration.temperature for member in members]),
        np.array([member.calibration.uniform_share for member in members]),
        members[0].candidate.options.length_power,
    )
