"""Scores of class probabilities, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import check_array, check_consistent_length

from hybridmix._checks import check_number
from hybridmix._estimates import Estimate
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import number_labels

# Probabilities below this count as this in the log loss, as in scikit-learn, so that no
# single row decides the mean: a row costs 36.04 at most.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
# Log odds beyond these are certain. Between them are this many levels, fewer if many
# classes would need too much memory.
_MOST_ODDS = 40.0
_MOST_LEVELS, _FEWEST_LEVELS, _MOST_COUNTS = 2**14, 2**9, 2**20


def label_losses(log_probabilities: FloatArray) -> FloatArray:
    """Return the log loss of each row, from the log probabilities of the labels.

    It is minus the log probability of the label, which counts as `LEAST_PROBABILITY` if
    it is smaller: a classifier that is certain of a wrong class in one row of a million
    would otherwise have an infinite loss.
    """
    return -np.maximum(log_probabilities, math.log(LEAST_PROBABILITY))


@dataclass(frozen=True)
class CalibrationReport:
    """What `calibration_report` finds.

    Attributes
    ----------
    accuracy : float
        Share of the rows whose most probable class is right.
    log_loss : float
        Mean of minus the log probability of the label; see `label_losses`.
    brier_score : float
        Mean squared difference between the probabilities of all classes and the label's
        indicator, summed over the classes.
    calibration_error : float
        Expected calibration error: mean difference between confidence and accuracy over
        the bins, weighted by their rows.
    confidence, bin_accuracy : ndarray of shape (n_filled_bins,)
        Mean probability of the most probable class, and how often it is right, for the
        rows of each bin that has any.
    bin_counts : ndarray of shape (n_filled_bins,)
        Rows of these bins.
    """

    accuracy: float
    log_loss: float
    brier_score: float
    calibration_error: float
    confidence: FloatArray
    bin_accuracy: FloatArray
    bin_counts: IntArray

    def __str__(self) -> str:
        lines = [
            f"accuracy {self.accuracy:.3f}, log loss {self.log_loss:.3f}, "
            f"Brier score {self.brier_score:.3f}, "
            f"calibration error {self.calibration_error:.3f}",
            "confidence  accuracy    rows",
        ]
        for confidence, accuracy, count in zip(
            self.confidence, self.bin_accuracy, self.bin_counts, strict=True
        ):
            lines.append(f"{confidence:10.3f}{accuracy:10.3f}{count:8d}")
        return "\n".join(lines)


def calibration_report(
    y_true: Any, probabilities: Any, classes: Any, n_bins: int = 10
) -> CalibrationReport:
    """Compare class probabilities with the labels.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    probabilities : array-like of shape (n, C)
        Probabilities of the classes, as ``predict_proba`` returns them.
    classes : array-like of shape (C,)
        The classes, in the order of the columns: ``classes_`` of a classifier.
    n_bins : int, default=10
        Rows are put into bins of equal width by the probability of their most probable
        class, from chance to one.

    Returns
    -------
    report : CalibrationReport
        Prints as a table.

    Examples
    --------
    >>> from hybridmix.metrics import calibration_report
    >>> probabilities = [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]
    >>> report = calibration_report([0, 1, 1], probabilities, classes=[0, 1])
    >>> round(report.accuracy, 3), round(report.log_loss, 3)
    (0.667, 0.415)
    """
    probabilities = check_array(probabilities, dtype=np.float64)
    check_consistent_length(y_true, probabilities)
    classes = np.asarray(classes)
    if probabilities.shape[1] != len(classes):
        raise ValueError(
            f"probabilities has {probabilities.shape[1]} columns for {len(classes)} "
            "classes."
        )
    labels = number_labels(y_true, classes, unlabelled=None)
    if np.any(labels < 0):
        raise ValueError(f"Row {np.argmin(labels)} has no label; leave such rows out.")
    check_number("n_bins", n_bins, 1, whole=True)
    return ScoreSums.of(labels, probabilities, n_bins).calibration()


@dataclass(frozen=True)
class ScoreSums:
    """What scores of probabilities are made of, summed over rows.

    Sums over parts of a table can be added.

    Attributes
    ----------
    losses, brier : ndarray of shape (2,)
        Sums of the log losses and of the Brier scores of the rows, and of their squares.
    class_counts, class_right : ndarray of shape (C,)
        Rows of each class, and those of them whose most probable class it is.
    bin_counts, bin_right : ndarray of shape (n_bins,)
        Rows in bins of the probability of their most probable class, and those of them
        for which this class is right.
    bin_confidence : ndarray of shape (n_bins,)
        Sums of this probability.
    """

    losses: FloatArray
    brier: FloatArray
    class_counts: IntArray
    class_right: IntArray
    bin_counts: IntArray
    bin_right: IntArray
    bin_confidence: FloatArray

    @classmethod
    def of(
        cls, labels: IntArray, probabilities: FloatArray, n_bins: int = 10
    ) -> ScoreSums:
        """Sum over rows with these class numbers and probabilities of the classes."""
        n_rows, n_classes = probabilities.shape
        own = probabilities[np.arange(n_rows), labels]
        confidence = probabilities.max(axis=1)
        right = probabilities.argmax(axis=1) == labels
        edges = np.linspace(1.0 / n_classes, 1.0, n_bins + 1)
        bins = np.searchsorted(edges, confidence, side="left") - 1
        bins = np.clip(bins, 0, n_bins - 1)
        with np.errstate(divide="ignore"):
            losses = label_losses(np.log(own))
        # The squared difference to the indicator of the label, without the indicator.
        brier = np.square(probabilities).sum(axis=1) - 2.0 * own + 1.0
        return cls(
            losses=np.array([losses.sum(), losses @ losses]),
            brier=np.array([brier.sum(), brier @ brier]),
            class_counts=np.bincount(labels, minlength=n_classes),
            class_right=np.bincount(labels[right], minlength=n_classes),
            bin_counts=np.bincount(bins, minlength=n_bins),
            bin_right=np.bincount(bins[right], minlength=n_bins),
            bin_confidence=np.bincount(bins, confidence, n_bins).astype(np.float64),
        )

    def __add__(self, other: ScoreSums) -> ScoreSums:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return ScoreSums(*(one + another for one, another in pairs))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.class_counts.sum())

    @property
    def ranked(self) -> list[int]:
        """Classes whose areas under the ROC curve make the mean one.

        Some rows have their label, and some do not. Of two classes it is the second; the
        area of the first is the same.
        """
        counts = self.class_counts
        found = np.flatnonzero((counts > 0) & (counts < self.n_rows)).tolist()
        return found[1:] if len(counts) == 2 else found

    def estimates(self, ranks: Sequence[Ranks]) -> dict[str, Estimate]:
        """Return the scores by name.

        Parameters
        ----------
        ranks : sequence of Ranks
            Of the classes in `ranked`.
        """
        accuracy = float(self.class_right.sum() / self.n_rows)
        return {
            "accuracy": Estimate.of_share(accuracy, self.n_rows),
            "balanced accuracy": self._balanced_accuracy(),
            "log loss": Estimate.of_sums(
                float(self.losses[0]), float(self.losses[1]), self.n_rows, least=0.0
            ),
            "Brier score": Estimate.of_sums(
                float(self.brier[0]), float(self.brier[1]), self.n_rows, least=0.0
            ),
            "ROC AUC": _mean_area(ranks),
        }

    def _balanced_accuracy(self) -> Estimate:
        counts = self.class_counts[self.class_counts > 0]
        shares = self.class_right[self.class_counts > 0] / counts
        variance = float(np.sum(shares * (1.0 - shares) / counts)) / len(counts) ** 2
        # As many rows would be needed if all classes were equally hard.
        n_rows = len(counts) ** 2 / float(np.sum(1.0 / counts))
        return _share_of_variance(float(shares.mean()), variance, n_rows)

    def calibration(self) -> CalibrationReport:
        """Return the means, and those of the bins."""
        filled = self.bin_counts > 0
        counts = self.bin_counts[filled]
        confidence = self.bin_confidence[filled] / counts
        accuracy = self.bin_right[filled] / counts
        gaps = np.abs(confidence - accuracy)
        return CalibrationReport(
            accuracy=float(self.class_right.sum() / self.n_rows),
            log_loss=float(self.losses[0] / self.n_rows),
            brier_score=float(self.brier[0] / self.n_rows),
            calibration_error=float(np.average(gaps, weights=counts)),
            confidence=confidence,
            bin_accuracy=accuracy,
            bin_counts=counts,
        )


@dataclass(frozen=True)
class Ranks:
    """How rows of a class and other rows are ordered by the probability of the class.

    Attributes
    ----------
    own, others : ndarray of shape (n_levels,)
        How many of them have each level of the probability, in ascending order.
    """

    own: IntArray
    others: IntArray

    @classmethod
    def of(cls, is_own: BoolArray, probabilities: FloatArray) -> Ranks:
        """Count rows by the distinct values of the probability."""
        levels, places = np.unique(probabilities, return_inverse=True)
        return cls(
            np.bincount(places[is_own], minlength=len(levels)),
            np.bincount(places[~is_own], minlength=len(levels)),
        )

    def area(self) -> tuple[float, float]:
        """Return the area under the ROC curve and its variance (DeLong et al., 1988).

        The area is the share of pairs that are in the right order; ties count by half.
        """
        n_own, n_others = int(self.own.sum()), int(self.others.sum())
        below = (np.cumsum(self.others) - 0.5 * self.others) / n_others
        above = 1.0 - (np.cumsum(self.own) - 0.5 * self.own) / n_own
        area = float(self.own @ below / n_own)
        spread = self.own @ (below - area) ** 2 / n_own**2
        return area, float(spread + self.others @ (above - area) ** 2 / n_others**2)


class RankCounts:
    """Ranks of all classes for rows that come part by part, in constant memory.

    Probabilities are counted by their log odds, in levels so narrow that rows of two
    classes hardly ever share one.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    """

    def __init__(self, n_classes: int) -> None:
        levels = np.clip(_MOST_COUNTS // n_classes, _FEWEST_LEVELS, _MOST_LEVELS)
        # For each class: its own rows and all others.
        self._counts = np.zeros((n_classes, 2, int(levels)), dtype=np.int64)

    def add(self, labels: IntArray, probabilities: FloatArray) -> None:
        """Add rows with these class numbers and probabilities of the classes."""
        n_levels = self._counts.shape[2]
        for k, counts in enumerate(self._counts):
            odds = np.clip(logit(probabilities[:, k]), -_MOST_ODDS, _MOST_ODDS)
            steps = (odds + _MOST_ODDS) * ((n_levels - 1) / (2.0 * _MOST_ODDS))
            levels, is_own = steps.astype(np.intp), labels == k
            counts[0] += np.bincount(levels[is_own], minlength=n_levels)
            counts[1] += np.bincount(levels[~is_own], minlength=n_levels)

    def of(self, label: int) -> Ranks:
        """Return the ranks of a class."""
        return Ranks(*self._counts[label])


def classification_scores(
    labels: IntArray, probabilities: FloatArray
) -> dict[str, Estimate]:
    """Score class probabilities.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class numbers.
    probabilities : ndarray of shape (n, C)
        Probabilities of the classes.

    Returns
    -------
    scores : dict of str to Estimate
        Accuracy, balanced accuracy, log loss, Brier score and ROC AUC (the mean over the
        classes, each against all others), by these names.
    """
    sums = ScoreSums.of(labels, probabilities)
    ranks = [Ranks.of(labels == k, probabilities[:, k]) for k in sums.ranked]
    return sums.estimates(ranks)


def _mean_area(ranks: Sequence[Ranks]) -> Estimate:
    if not ranks:
        return Estimate(math.nan, math.nan, math.nan)
    areas, variances = np.array([own.area() for own in ranks]).T
    # The classes share their rows, so errors add up in the worst case.
    variance = float(np.sqrt(variances).mean() ** 2)
    fewest = min(min(own.own.sum(), own.others.sum()) for own in ranks)
    return _share_of_variance(float(areas.mean()), variance, float(fewest))


def _share_of_variance(share: float, variance: float, n_rows: float) -> Estimate:
    """Return a share of a known variance, or of a number of rows if nothing varies."""
    if variance > 0.0 and 0.0 < share < 1.0:
        n_rows = share * (1.0 - share) / variance
    return Estimate.of_share(share, n_rows)
