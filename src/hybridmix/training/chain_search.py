"""Search for the form of hidden Markov models, by held-out sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.models.chains import Chains
from hybridmix.solvers import Solution
from hybridmix.training.budget import Budget
from hybridmix.training.chain_plan import AutomaticChains, chain_candidates
from hybridmix.training.chain_trials import ChainScore, ChainSearch, Part
from hybridmix.training.chains import (
    ChainOptions,
    ChainRun,
    FittedChains,
    chosen_weight,
    fit_chains,
    sequence_history,
)
from hybridmix.training.leaderboard import Trial, simplest_within_noise, with_shares
from hybridmix.training.record import INTERRUPTED
from hybridmix.training.votes import fitted_shares

# Labelled sequences are dealt into this many folds, if there are at most this many.
_N_FOLDS, _FEW = 3, 1000
# Otherwise this share of them is held out, and at most this many are trained on.
_HELD_SHARE, _MOST = 0.3, 1000
_MOST_MEMBERS = 3


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
    first = ChainRun(plan[0].options, schema, n_classes, generator, pool)
    weight = chosen_weight(first, dataset)
    search = ChainSearch(parts, schema, n_classes, weight, generator, pool)
    scores, interrupted = search.scores(plan, budget)
    fitted = _fitted_density if n_classes == 1 else _fitted_committee
    return fitted(search, scores, dataset, schema, interrupted)


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


def _best_density(search: ChainSearch, scores: Sequence[ChainScore]) -> ChainScore:
    """Return the simplest EM fit within the noise of the best held-out likelihood."""
    densities = [score.log_densities for score in scores]
    return scores[simplest_within_noise(densities, search.held.weights)]


def _fitted_density(
    search: ChainSearch,
    scores: Sequence[ChainScore],
    dataset: SequenceDataset,
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
    dataset: SequenceDataset,
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
    rows = dataset if density in found else search.first_part
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
