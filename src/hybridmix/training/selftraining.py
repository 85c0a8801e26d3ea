"""A larger model that also learns from the classes a committee is sure of."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import UNLABELLED, Dataset
from hybridmix.evaluation import log_joint
from hybridmix.models.base import Model
from hybridmix.models.calibration import Calibration
from hybridmix.models.committee import Committee
from hybridmix.models.mixture import Mixture
from hybridmix.progress import listening
from hybridmix.training.leaderboard import simplest_within_noise
from hybridmix.training.plan import Candidate
from hybridmix.training.run import Outcome, finished
from hybridmix.training.trials import Entry, Score, Search
from hybridmix.training.votes import fitted_shares

# What a true label counts, next to the label of a committee.
_TRUE_WEIGHT = 5.0
# A model is labelled by the committee first, then by itself.
_N_ROUNDS = 3
# Fewer held-out labels say too little about whether it helps; a few more rows than labels
# add too little.
_FEWEST_HELD, _FEWEST_TIMES = 100, 5


class SelfTraining(NamedTuple):
    """What pseudo-labels lead to.

    Attributes
    ----------
    score : Score
        Of the model that learned from them, on the rows that the first part holds out.
    share : float
        How much it counts, next to the committee it has learned from.
    search : Search
        The first part alone.
    calibration : Calibration
        Of the votes of both together.
    """

    score: Score
    share: float
    search: Search
    calibration: Calibration


def self_training(
    search: Search,
    larger: Candidate,
    members: Sequence[Score],
    shares: FloatArray,
    unlabelled: Dataset,
) -> SelfTraining | None:
    """Try pseudo-labels on the first part of a search.

    Returns None where there is too little to learn from them, or to judge them by, and
    where they do not improve on the committee by more than noise.

    Parameters
    ----------
    search : Search
        With what has been tried.
    larger : Candidate
        What learns from pseudo-labels.
    members : sequence of Score
        The members of the committee that gives the labels.
    shares : ndarray of shape (M,)
        How much they count.
    unlabelled : Dataset
        All rows without a label: the first part may have fewer.
    """
    rest, held = search.parts[0]
    labelled = rest.labelled()
    enough = unlabelled.n_rows >= _FEWEST_TIMES * labelled.n_rows
    if not enough or held.n_rows < _FEWEST_HELD or len(search.names) == 1:
        return None
    models = [score.entry.outcome.solution.model for score in members]
    committee = voting(models, members, shares)
    own = replace(search, parts=[(unlabelled.followed_by(labelled), held)])
    entry = _tried(own, larger, committee)
    rows = own.held()
    score = Score.of(entry, rows, search.calibrate)
    votes = log_joint(committee, held.rows, search.pool)
    rivals = [rows.log_scores(votes), score.log_scores]
    if simplest_within_noise(rivals, rows.weights) == 0:
        return None
    order, both = fitted_shares(np.stack(rivals), rows.weights, 2)
    share = float(both[order.index(1)])
    calibration = Calibration()
    if search.calibrate:
        old, new = votes + np.log1p(-share), score.log_probabilities + np.log(share)
        calibration = rows.calibration(np.logaddexp(old, new))
    return SelfTraining(score, share, own, calibration)


def _tried(search: Search, larger: Candidate, committee: Committee) -> Entry:
    """Teach a candidate what a committee says about the first part."""
    rest, held = search.parts[0]
    began = time.perf_counter()
    entry = Entry(larger, len(larger.stations))
    with listening(None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, entry.first = taught(search, entry, committee, rest)
    entry.blocks = [log_joint(entry.outcome.solution.model, held.rows, search.pool)]
    entry.seconds = time.perf_counter() - began
    return entry


def taught(
    search: Search, entry: Entry, committee: Committee, dataset: Dataset
) -> tuple[Dataset, Outcome]:
    """Train an entry on the labels of a committee, then on those that it gives itself.

    If it has been trained before, it goes on from there. Returns the rows of the last
    round with their labels, and what they have led to.
    """
    teacher: Model = committee
    for _ in range(_N_ROUNDS):
        rows = with_pseudo_labels(dataset, teacher, search.pool)
        if entry.first is None:
            *_, outcome = search.path(entry.candidate, rows)
        else:
            # Criteria are those of the first training.
            outcome = search.continued(entry, rows)._replace(bic=entry.first.bic)
        teacher = finished(outcome)
        entry = replace(entry, first=outcome)
    return rows, outcome


def voting(
    models: Sequence[Mixture], members: Sequence[Score], shares: FloatArray
) -> Committee:
    """Return the committee of some models, with the calibrations of its members."""
    return Committee(
        tuple(models),
        shares,
        np.array([score.calibration.temperature for score in members]),
        np.array([score.calibration.uniform_share for score in members]),
    )


def with_pseudo_labels(dataset: Dataset, teacher: Model, pool: Workers) -> Dataset:
    """Give unlabelled rows the class that a teacher finds most probable.

    True labels count more.
    """
    labels = dataset.labels.copy()
    is_new = labels == UNLABELLED
    weights = np.where(is_new, 1.0, _TRUE_WEIGHT) * dataset.filled_weights
    votes = log_joint(teacher, dataset.unlabelled().rows, pool)
    labels[is_new] = votes.argmax(axis=0)
    return Dataset.arrange(dataset.rows, labels, weights)
