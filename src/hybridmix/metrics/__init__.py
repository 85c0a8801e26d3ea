"""Scores of predictions, with their uncertainty.

Accuracy, log loss, RMSE, coverage and the others are defined here and nowhere else:
reports, the command line and the plots all show these. Sums over parts of a table can be
added, so that tables of any size are scored in constant memory.
"""

from hybridmix.metrics.classification import (
    LEAST_PROBABILITY,
    CalibrationReport,
    RankCounts,
    Ranks,
    ScoreSums,
    calibration_report,
    classification_scores,
    label_losses,
)
from hybridmix.metrics.drift import DriftScore, drift_score
from hybridmix.metrics.regression import (
    COVERAGE,
    LEVELS,
    RegressionSums,
    as_forecasts,
    intervals_of,
    means_of,
    regression_scores,
)

__all__ = [
    "COVERAGE",
    "LEAST_PROBABILITY",
    "LEVELS",
    "CalibrationReport",
    "DriftScore",
    "RankCounts",
    "Ranks",
    "RegressionSums",
    "ScoreSums",
    "as_forecasts",
    "calibration_report",
    "classification_scores",
    "drift_score",
    "intervals_of",
    "label_losses",
    "means_of",
    "regression_scores",
]
