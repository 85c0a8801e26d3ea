"""Whether differences between models are more than chance, and what probabilities say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray
from hybridmix.metrics import calibration_report, means_of
from hybridmix.reporting.findings import Findings
from hybridmix.tasks.trials import Trial

# Models that know nothing about the columns.
REFERENCES = ("most frequent class", "the mean")
# A calibration error below the first, or below this many times what chance makes of
# perfect probabilities, is none.
_SMALL_ERROR = 0.02
_CHANCE_ERRORS = 2.0
_FEWEST_IN_BINS = 500


@dataclass(frozen=True)
class Comparison:
    """How much better the model is than another one, on the same rows.

    Attributes
    ----------
    name : str
        The other model.
    theirs : float
        Its mean score.
    gain : Estimate
        Mean score of this model less that of the other, by pairs of rows.
    """

    name: str
    theirs: float
    gain: Estimate


def row_scores(target: str, truth: np.ndarray, outputs: FloatArray) -> FloatArray:
    """Return scores of rows (n,) whose mean says how good a model is; higher is better.

    For classes the mean is the accuracy, for numbers R², and otherwise the mean log
    density.

    Parameters
    ----------
    target : {"classes", "numbers", "none"}
        What the rows are labelled by.
    truth, outputs : ndarray
        As in `hybridmix.tasks.trials.Trial`.
    """
    if target == "classes":
        return (outputs.argmax(axis=1) == truth).astype(np.float64)
    if target == "numbers":
        return 1.0 - (truth - means_of(outputs)) ** 2 / truth.var()
    return outputs


def score_of(target: str, truth: np.ndarray, outputs: FloatArray) -> Estimate:
    """Return the mean of the scores of rows, with its interval."""
    scores = row_scores(target, truth, outputs)
    if target == "classes":
        return Estimate.of_share(float(scores.mean()), len(scores))
    return Estimate.of_values(scores)


def compared(findings: Findings) -> list[Comparison]:
    """Compare the model with all others that were trained on the same folds."""
    trial = next((own for own in findings.trials if len(own.contenders) > 1), None)
    if trial is None:
        return []
    target = findings.subject.task.target
    ours = row_scores(target, trial.truth, trial.ours.outputs)
    found = []
    for other in trial.contenders[1:]:
        theirs = row_scores(target, trial.truth, other.outputs)
        gain = Estimate.of_values(ours - theirs)
        found.append(Comparison(other.name, float(theirs.mean()), gain))
    return found


def best_rival(findings: Findings) -> Comparison | None:
    """Return the best other model that learns from the columns, if there is one."""
    rivals = [own for own in compared(findings) if own.name not in REFERENCES]
    return max(rivals, key=lambda own: own.theirs, default=None)


@dataclass(frozen=True)
class Calibration:
    """How far probabilities of the most probable class are from how often it is right.

    Attributes
    ----------
    error : float
        Expected calibration error.
    by_chance : float
        What it would be on average if all probabilities were right.
    confidence, accuracy : float
        Mean probability of the most probable class, and how often it is right.
    """

    error: float
    by_chance: float
    confidence: float
    accuracy: float

    @classmethod
    def of(cls, trial: Trial) -> Calibration:
        """Compare probabilities (n, C) of scored rows with their classes."""
        outputs = trial.ours.outputs
        found = calibration_report(
            trial.truth, outputs, np.arange(outputs.shape[1]), n_bins_for(trial)
        )
        spread = np.sqrt(found.confidence * (1.0 - found.confidence) * found.bin_counts)
        # The mean distance of a normal variable from its mean.
        by_chance = np.sqrt(2.0 / np.pi) * spread.sum() / len(outputs)
        confidence = float(outputs.max(axis=1).mean())
        return cls(found.calibration_error, float(by_chance), confidence, found.accuracy)

    @property
    def is_fine(self) -> bool:
        """Whether the error is no more than what chance explains."""
        return self.error <= max(_SMALL_ERROR, _CHANCE_ERRORS * self.by_chance)


def n_bins_for(trial: Trial) -> int:
    """Return how many bins of probabilities there are; with few rows, they are wider."""
    return 10 if len(trial.rows) >= _FEWEST_IN_BINS else 5
