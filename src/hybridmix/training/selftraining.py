"""A larger model that also learns from the classes a committee is sure of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import UNLABELLED, Dataset
from hybridmix.evaluation import log_joint
from hybridmix.models.calibration import Calibration
from hybridmix.models.committee import Committee
from hybridmix.models.mixture import Mixture
from hybridmix.models.network import Network
from hybridmix.training.plan import Candidate
from hybridmix.training.trials import Part, Score, Search
from hybridmix.training.votes import fitted_shares

# Of the rows that a committee assigns to a class, this share is believed; a true label
# counts as much as this many of them.
_BELIEVED, _TRUE_WEIGHT = 0.95, 5.0
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
        The first part, with pseudo-labels.
    calibration : Calibration
        Of the votes of both together.
    """

    score: Score
    share: float
    search: Search
    calibration: Calibration


def self_training(
    search: Search, larger: Candidate, members: Sequence[Score], shares: FloatArray
) -> SelfTraining | None:
    """Try pseudo-labels on the first part of a search.

    Returns None where there is too little to learn from them, or to judge them by, and
    where held-out labels speak against them.

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
    """
    rest, held = search.parts[0]
    n_labelled, n_unlabelled = rest.labelled().n_rows, rest.unlabelled().n_rows
    enough = n_unlabelled >= _FEWEST_TIMES * n_labelled and held.n_rows >= _FEWEST_HELD
    if not enough or len(search.names) == 1:
        return None
    models = [score.entry.outcome.solution.model for score in members]
    committee = voting(models, members, shares)
    part: Part = (with_pseudo_labels(rest, committee, search.pool), held)
    own = replace(search, parts=[part])
    entry = own.tried(larger)[-1]
    score = Score.of(entry, own.held(), search.calibrate)
    votes = log_joint(committee, held.rows, search.pool)
    rows = own.held()
    rivals = np.stack([rows.log_scores(votes), score.log_scores])
    order, both = fitted_shares(rivals, rows.weights, 2)
    share = float(both[order.index(1)])
    if share <= 0.5:
        return None
    calibration = Calibration()
    if search.calibrate:
        old, new = votes + np.log1p(-share), score.log_probabilities + np.log(share)
        calibration = rows.calibration(np.logaddexp(old, new))
    return SelfTraining(score, share, own, calibration)


def voting(
    models: Sequence[Mixture | Network], members: Sequence[Score], shares: FloatArray
) -> Committee:
    """Return the committee of some models, with the calibrations of its members."""
    return Committee(
        tuple(own.readout if isinstance(own, Network) else own for own in models),
        shares,
        np.array([score.calibration.temperature for score in members]),
        np.array([score.calibration.uniform_share for score in members]),
    )


def with_pseudo_labels(dataset: Dataset, committee: Committee, pool: Workers) -> Dataset:
    """Label the rows that a committee is surest of, the same share of every class.

    Other unlabelled rows are left out; true labels count more.
    """
    labels = dataset.labels.copy()
    weights = np.where(labels == UNLABELLED, 1.0, _TRUE_WEIGHT) * dataset.filled_weights
    unlabelled = np.flatnonzero(labels == UNLABELLED)
    votes = log_joint(committee, dataset.rows[unlabelled], pool)
    best = votes.argmax(axis=0)
    ordered = np.partition(votes, -2, axis=0)
    lead = ordered[-1] - ordered[-2]
    for label in range(len(votes)):
        own = np.flatnonzero(best == label)
        if len(own):
            sure = own[lead[own] >= np.quantile(lead[own], 1.0 - _BELIEVED)]
            labels[unlabelled[sure]] = label
    weights[labels == UNLABELLED] = 0.0
    return Dataset.arrange(dataset.rows, labels, weights)
