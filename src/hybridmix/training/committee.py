"""Training of a classifier that chooses its structure: a committee of the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.models.calibration import Calibration
from hybridmix.progress import announce
from hybridmix.training.affordable import (
    ENOUGH_ROWS,
    affordable_densities,
    affordable_members,
    taken_together,
)
from hybridmix.training.budget import Budget
from hybridmix.training.classifier import fit_classifier, held_out
from hybridmix.training.leaderboard import Trial, simplest_within_noise
from hybridmix.training.memory import check_memory
from hybridmix.training.network_plan import network_candidates
from hybridmix.training.plan import (
    Automatic,
    Candidate,
    TableSize,
    candidates,
    larger_candidate,
)
from hybridmix.training.record import INTERRUPTED, Fitted, bic_in_units, history_in_units
from hybridmix.training.run import ClassifierOptions, Outcome, finished
from hybridmix.training.selftraining import self_training, taught, voting
from hybridmix.training.trials import Entry, Part, Score, Search
from hybridmix.training.votes import HeldOut, fitted_shares

# With more classes than this there is no search.
_MANY_CLASSES = 200
# More members take longer to predict, and are hardly ever better.
_MOST_MEMBERS = 5
# Tables of up to this many labelled rows are dealt into folds; larger ones are split.
_FEW_ROWS, _N_FOLDS = 1_000, 3
_HELD_SHARE = 0.2
# A search on this many labelled rows finds what a search on more would.
_MOST_ROWS = 6_000
# More unlabelled rows than this add little to what pseudo-labels teach.
_MOST_TAUGHT = 50_000


@dataclass(frozen=True)
class CommitteeOptions:
    """The options of a classifier that chooses its structure.

    Attributes
    ----------
    base : ClassifierOptions
        What the user has fixed; automatic options have any value.
    automatic : Automatic
        Which options are chosen.
    effort : str or float
        How much effort the choice may take.
    init : str
        Method of the starts.
    """

    base: ClassifierOptions
    automatic: Automatic
    effort: str | float
    init: str


def fit_committee(
    options: CommitteeOptions,
    dataset: TrainingRows,
    parts: Sequence[Part] | None,
    schema: Schema,
    generator: np.random.Generator,
    pool: Workers,
    names: Sequence[str],
) -> Fitted:
    """Try candidates on held-out rows, and fit a committee of the best to all rows.

    Parameters
    ----------
    options : CommitteeOptions
        What to do.
    dataset : Dataset or BlockedDataset
        Labelled and unlabelled rows.
    parts : sequence of Part or None
        Rows to train candidates on and rows to score them by; None for folds of the
        labelled rows, or one split if there are many.
    schema : Schema
        Of their table.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    names : sequence of str
        What to call the classes in messages.
    """
    budget = Budget(options.effort)
    if len(names) > _MANY_CLASSES:
        return _single(options, dataset, parts, schema, generator, pool, names)
    if parts is None:
        fraction = options.base.discrimination.validation_fraction
        parts = _parts(dataset, fraction, budget, generator)
    if not parts:
        return _single(options, dataset, None, schema, generator, pool, names)
    size = TableSize.of(parts[0][0], schema, len(names))
    plan = _planned(options, size, budget)
    for candidate in plan:
        fewest = sum(map(min, candidate.options.n_components))
        check_memory(candidate.options.structure, len(schema.real), fewest)
    calibrate = options.base.calibrate
    search = Search(parts, schema, calibrate, options.init, generator, pool, names)
    scores, interrupted = search.scores(plan, budget)
    voters = [score for score in scores if score.entry.station] or scores
    if budget.searches:
        members, shares = _chosen(voters, search, _MOST_MEMBERS, dataset.n_rows)
        plain = [score for score in scores if score.entry.station == 0]
        plain = affordable_densities(plain, search, dataset.n_rows)
        density = _best_density(plain, search.held(), options.base.unlabelled_weight)
        fitted = _voted(search, dataset, members, shares, density, interrupted)
        rows = dataset.thinned(_MOST_TAUGHT, generator)
        n_unlabelled = rows.unlabelled().n_rows
        larger = larger_candidate(options.base, options.automatic, size, n_unlabelled)
        if larger is not None and not fitted.interrupted and not budget.is_spent():
            fitted = _self_trained(fitted, search, larger, members, shares, rows)
    else:
        members, shares = _chosen(voters, search, 1, dataset.n_rows)
        records, interrupted = _refitted(search, dataset, members, interrupted)
        fitted = replace(records[members[0].entry], messages=_messages(interrupted))
    trials = _trials(voters, search, members, shares, fitted.trials)
    n_searched = sum(part.n_rows for part in parts[0])
    return replace(fitted, trials=trials, n_searched=n_searched)


def _planned(
    options: CommitteeOptions, size: TableSize, budget: Budget
) -> list[Candidate]:
    """Return what to try: mixtures that discriminate, or networks."""
    is_network = options.base.network is not None
    plan = network_candidates if is_network else candidates
    return plan(options.base, options.automatic, size, budget)


def _messages(interrupted: bool) -> tuple[str, ...]:
    return (INTERRUPTED,) if interrupted else ()


def _voted(
    search: Search,
    dataset: TrainingRows,
    members: Sequence[Score],
    shares: FloatArray,
    density: Score,
    interrupted: bool,
) -> Fitted:
    """Train members and density on all rows, and let the members vote."""
    entries = [*members, density]
    records, interrupted = _refitted(search, dataset, entries, interrupted)
    return replace(
        _committee(records, members, shares, density),
        calibration=_calibration(search, members, shares),
        messages=_messages(interrupted),
    )


def _trials(
    voters: Sequence[Score],
    search: Search,
    members: Sequence[Score],
    shares: FloatArray,
    further: tuple[Trial, ...],
) -> tuple[Trial, ...]:
    """Return the lines of the leaderboard: those that voted, and further ones."""
    # What has learned from pseudo-labels has its share already.
    rest = 1.0 - sum(trial.share for trial in further)
    by_entry = dict(zip([s.entry for s in members], rest * shares, strict=True))
    held = search.held()
    own = (score.trial(held, float(by_entry.get(score.entry, 0.0))) for score in voters)
    return (*own, *further)


def _chosen(
    voters: Sequence[Score], search: Search, most: int, n_rows: int
) -> tuple[list[Score], FloatArray]:
    """Return the members of the committee, as far as affordable, and their shares."""
    held = search.held()
    voters = affordable_members(voters, search, n_rows)
    log_scores = np.stack([score.log_scores for score in voters])
    order, _ = fitted_shares(log_scores, held.weights, most)
    members = taken_together([voters[number] for number in order], search, n_rows)
    log_scores = np.stack([score.log_scores for score in members])
    order, shares = fitted_shares(log_scores, held.weights, len(members))
    return [members[number] for number in order], shares


def _self_trained(
    fitted: Fitted,
    search: Search,
    larger: Candidate,
    members: Sequence[Score],
    shares: FloatArray,
    dataset: Dataset,
) -> Fitted:
    """Let a larger model learn from pseudo-labels, if held-out labels speak for it.

    It joins the committee. An interrupt leaves the committee as it was.
    """
    try:
        unlabelled = dataset.unlabelled()
        found = self_training(search, larger, members, shares, unlabelled)
        if found is None or fitted.committee is None:
            return fitted
        announce("pseudo-labels", 0, 1, found.score.entry.name)
        entry = found.score.entry
        rows, outcome = taught(found.search, entry, fitted.committee, dataset)
    except KeyboardInterrupt:
        return replace(fitted, messages=_messages(True))
    record = _record(search, rows, found.score, outcome, 1.0)
    records = (record, *fitted.members)
    everyone = [found.score, *members]
    both = np.concatenate([[found.share], (1.0 - found.share) * shares])
    committee = voting([own.model for own in records], everyone, both)
    trial = found.score.trial(found.search.held(), found.share)
    trial = replace(trial, candidate=f"{trial.candidate}, pseudo-labels")
    return replace(
        fitted,
        committee=committee,
        members=records,
        trials=(trial,),
        converged=fitted.converged and record.converged,
        calibration=found.calibration,
    )


def _parts(
    dataset: TrainingRows,
    fraction: float | None,
    budget: Budget,
    generator: np.random.Generator,
) -> list[Part]:
    """Return the rows to train candidates on, and those to score them by.

    There are none if no class has two labelled rows.
    """
    counts = dataset.label_counts()
    are_few = counts.sum() <= _FEW_ROWS and budget.searches
    if fraction is None and (are_few or counts.max() * _HELD_SHARE < 1.0):
        folds = dataset.in_memory(_MOST_TAUGHT).folds(_N_FOLDS, generator)
        return [(rest.thinned(_MOST_ROWS, generator), held) for rest, held in folds]
    share = fraction or _HELD_SHARE
    # Of very many rows, few are copied.
    few = dataset.thinned(round(_MOST_ROWS / share), generator)
    rest, held = held_out(few, share, generator)
    return [(rest.thinned(_MOST_ROWS, generator), held.thinned(_MOST_ROWS, generator))]


def _single(
    options: CommitteeOptions,
    dataset: TrainingRows,
    parts: Sequence[Part] | None,
    schema: Schema,
    generator: np.random.Generator,
    pool: Workers,
    names: Sequence[str],
) -> Fitted:
    """Fit the usual structure, where no row can be held out or classes are too many.

    Discriminative training compares every row with every class: many classes are left to
    EM, unless the tradeoff is given.
    """
    size = TableSize.of(dataset, schema, len(names))
    usual = _planned(options, size, Budget("fast"))[0]
    is_free = options.automatic.tradeoff and len(names) > _MANY_CLASSES
    validation = parts[0][1] if parts and parts[0][0] is dataset else None
    chosen = replace(
        usual.options,
        discrimination=usual.discrimination(0 if is_free else len(usual.stations)),
        unlabelled_weight=options.base.unlabelled_weight,
        calibrate=False,
    )
    init = options.init
    return fit_classifier(
        chosen, dataset, validation, schema, init, generator, pool, names
    )


def _best_density(
    scores: Sequence[Score], held: HeldOut, unlabelled_weight: float | str
) -> Score:
    """Return the simplest structure whose likelihood on held-out rows is the highest.

    A density learns from rows without a label as it does from others.
    """
    densities = [score.log_densities for score in scores]
    best = scores[simplest_within_noise(densities, held.weights)]
    if not isinstance(unlabelled_weight, str):
        return best
    return replace(best, entry=replace(best.entry, weight_of_all=1.0))


def _refitted(
    search: Search, dataset: TrainingRows, scores: Sequence[Score], interrupted: bool
) -> tuple[dict[Entry, Fitted], bool]:
    """Go on with entries on all rows; return records, and whether the user has ended it.

    Of very many rows, a random part is enough. Those that are missing when the user ends
    it are models of a part of the rows.
    """
    first_part = search.parts[0][0]
    records = {}
    for score in scores:
        weight = score.entry.candidate.unlabelled_weight
        records[score.entry] = _record(
            search, first_part, score, score.entry.outcome, weight
        )
    if interrupted:
        return records, interrupted
    is_done = first_part is dataset
    waiting = [s for s in scores if not is_done or s.entry.changes_weight]
    rows = dataset.thinned(ENOUGH_ROWS, search.generator)
    try:
        for number, score in enumerate(waiting):
            announce("members", number, len(waiting), score.entry.name)
            outcome = search.continued(score.entry, rows)
            finished(outcome)
            weight = score.entry.final_weight
            records[score.entry] = _record(search, rows, score, outcome, weight)
    except KeyboardInterrupt:
        return records, True
    return records, False


def _record(
    search: Search,
    dataset: Dataset,
    score: Score,
    outcome: Outcome,
    weight: float,
) -> Fitted:
    """Return the record of an entry that was trained on rows, unlabelled ones weighed."""
    solution, _, _ = outcome
    # A search that goes on from a model has left its criteria with the first part.
    bic = score.entry.outcome.bic
    return Fitted(
        search.schema,
        solution.model,
        solution.converged,
        solution.n_iter,
        history_in_units(solution.traces, dataset, search.schema, weight),
        bic_in_units(bic, dataset, search.schema),
        weight,
        score.calibration,
        options=score.entry.options,
    )


def _committee(
    records: Mapping[Entry, Fitted],
    members: Sequence[Score],
    shares: FloatArray,
    density: Score,
) -> Fitted:
    """Put fitted members and the density together."""
    base = records[density.entry]
    fitted = [records[score.entry] for score in members]
    committee = voting([record.model for record in fitted], members, shares)
    converged = all(record.converged for record in (base, *fitted))
    return replace(base, converged=converged, committee=committee, members=tuple(fitted))


def _calibration(
    search: Search, members: Sequence[Score], shares: FloatArray
) -> Calibration:
    """Return the calibration of the votes of all members."""
    if not search.calibrate:
        return Calibration()
    votes = [
        score.log_probabilities + np.log(share)
        for score, share in zip(members, shares, strict=True)
    ]
    return search.held().calibration(np.logaddexp.reduce(votes, axis=0))
