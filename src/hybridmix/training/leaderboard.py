"""What a search has tried, and which of the candidates to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hybridmix._typing import FloatArray

# The columns of the published table.
COLUMNS = ("candidate", "score", "standard_error", "seconds", "share")


@dataclass(frozen=True)
class Trial:
    """One candidate of a search, and how it did.

    Attributes
    ----------
    candidate : str
        What to call it, such as "full, 4 components".
    score : float
        Mean held-out log density, or log probability, per row; higher is better.
    standard_error : float
        Of the score, over the held-out rows.
    seconds : float
        What all fits and scores of the candidate took.
    share : float
        The part it has in the final model: 1 for the only one that is chosen.
    options : mapping of str to object
        The values of the options that it stands for.
    """

    candidate: str
    score: float
    standard_error: float
    seconds: float
    share: float = 0.0
    options: Mapping[str, object] = field(default_factory=dict)


def leaderboard(trials: Sequence[Trial]) -> list[dict[str, str | float]]:
    """Return trials as a table of plain values, the best first.

    This is what estimators publish as `leaderboard_`, and what files can hold.
    """
    ordered = sorted(trials, key=lambda trial: trial.score, reverse=True)
    return [{name: getattr(trial, name) for name in COLUMNS} for trial in ordered]


def with_shares(trials: Sequence[Trial], shares: Mapping[str, float]) -> list[Trial]:
    """Note the part that each candidate has in the final model; others have none."""
    return [replace(trial, share=shares.get(trial.candidate, 0.0)) for trial in trials]


def mean_and_error(
    scores: FloatArray, weights: FloatArray | None = None
) -> tuple[float, float]:
    """Return the mean of the scores of rows, and its standard error.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        One for each row: if folds were repeated, the mean of all that the row has had.
    weights : ndarray of shape (n,) or None
        Sample weights; a row of weight two counts like two rows.
    """
    w = np.ones(len(scores)) if weights is None else weights
    total = float(w.sum())
    mean = float(w @ scores) / total
    # A single row says nothing about its own noise: it never tells candidates apart.
    if total <= 1.0:
        return mean, float("inf")
    variance = float(w @ np.square(scores - mean)) / (total - 1.0)
    return mean, float(np.sqrt(variance / total))


def simplest_within_noise(
    scores: Sequence[FloatArray],
    weights: FloatArray | None = None,
    tolerance: float = 1.0,
) -> int:
    """Return the first candidate that is not clearly worse than the best one.

    Rows differ far more than candidates do, and all candidates meet the same rows: what
    counts is the standard error of the paired differences to the best candidate, not of
    the scores (the rule of one standard error of Breiman et al. 1984).

    Parameters
    ----------
    scores : sequence of ndarray of shape (n,)
        For each candidate, from the simplest to the least simple: the scores of the
        same rows.
    weights : ndarray of shape (n,) or None
        Sample weights.
    tolerance : float
        How many standard errors count as noise.
    """
    best = int(np.argmax([mean_and_error(own, weights)[0] for own in scores]))
    for place, own in enumerate(scores[:best]):
        lead, error = mean_and_error(scores[best] - own, weights)
        if lead <= tolerance * error:
            return place
    return best
