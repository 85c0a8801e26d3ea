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
    rows = np.arange(len(labels))
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    indicator = np.zeros_like(probabilities)
    indicator[rows, labels] = 1.0
    edges = np.linspace(1.0 / len(classes), 1.0, n_bins + 1)
    bins = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    filled = counts > 0
    mean_confidence = np.bincount(bins, confidence, n_bins)[filled] / counts[filled]
    bin_accuracy = np.bincount(bins, right, n_bins)[filled] / counts[filled]
    gaps = np.abs(mean_confidence - bin_accuracy)
    return CalibrationReport(
        accuracy=float(right.mean()),
        log_loss=float(
            -np.log(np.maximum(probabilities[rows, labels], _SMALLEST)).mean()
        ),
        brier_score=float(np.square(probabilities - indicator).sum(axis=1).mean()),
        calibration_error=float(np.average(gaps, weights=counts[filled])),
        confidence=mean_confidence,
        bin_accuracy=bin_accuracy,
        bin_counts=counts[filled],
    )
