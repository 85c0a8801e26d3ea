"""How far class probabilities can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from hybridmix._checks import check_number
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import number_labels

_SMALLEST = np.finfo(float).tiny


@dataclass(frozen=True)
class CalibrationReport:
    """What `calibration_report` finds.

    Attributes
    ----------
    accuracy : float
        Share of the rows whose most probable class is right.
    log_loss : float
        Mean of minus the log probability of the label.
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
    """Compare class probabilities with what the labels turned out to be.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    probabilities : array-like of shape (n, C)
        Of the classes, as of ``predict_proba``.
    classes : array-like of shape (C,)
        The classes, as of ``classes_``.
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
    return CalibrationSums.of(labels, probabilities, n_bins).report()


@dataclass(frozen=True)
class CalibrationSums:
    """What a `CalibrationReport` is made of, summed over rows.

    Sums of parts of a table, added, are those of the table.

    Attributes
    ----------
    log_loss, brier : float
        Sums of minus the log probability of the label, and of the squared differences.
    counts : ndarray of shape (n_bins,)
        Rows in each bin.
    confidence, right : ndarray of shape (n_bins,)
        Sums of the probability of the most probable class, and how often it is right.
    """

    log_loss: float
    brier: float
    counts: IntArray
    confidence: FloatArray
    right: FloatArray

    @classmethod
    def of(
        cls, labels: IntArray, probabilities: FloatArray, n_bins: int = 10
    ) -> CalibrationSums:
        """Sum over rows with these class numbers and probabilities of the classes."""
        n_rows, n_classes = probabilities.shape
        own = probabilities[np.arange(n_rows), labels]
        confidence = probabilities.max(axis=1)
        right = probabilities.argmax(axis=1) == labels
        edges = np.linspace(1.0 / n_classes, 1.0, n_bins + 1)
        bins = np.searchsorted(edges, confidence, side="left") - 1
        bins = np.clip(bins, 0, n_bins - 1)
        # The squared difference to the indicator of the label, without the indicator.
        brier = np.square(probabilities).sum(axis=1) - 2.0 * own + 1.0
        return cls(
            log_loss=float(-np.log(np.maximum(own, _SMALLEST)).sum()),
            brier=float(brier.sum()),
            counts=np.bincount(bins, minlength=n_bins),
            confidence=np.bincount(bins, confidence, n_bins).astype(np.float64),
            right=np.bincount(bins, right, n_bins).astype(np.float64),
        )

    def __add__(self, other: CalibrationSums) -> CalibrationSums:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return CalibrationSums(*(one + another for one, another in pairs))

    def report(self) -> CalibrationReport:
        """Return the means."""
        n_rows = int(self.counts.sum())
        filled = self.counts > 0
        counts = self.counts[filled]
        confidence = self.confidence[filled] / counts
        accuracy = self.right[filled] / counts
        gaps = np.abs(confidence - accuracy)
        return CalibrationReport(
            accuracy=float(self.right.sum() / n_rows),
            log_loss=self.log_loss / n_rows,
            brier_score=self.brier / n_rows,
            calibration_error=float(np.average(gaps, weights=counts)),
            confidence=confidence,
            bin_accuracy=accuracy,
            bin_counts=counts,
        )
