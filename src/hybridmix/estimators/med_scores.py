"""Labels and probabilities from the outputs of discriminant functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from hybridmix._typing import FloatArray, IntArray
from hybridmix.estimators.blocks import column_of, over_blocks
from hybridmix.models.calibration import Calibration
from hybridmix.training.discrimination import log_scores


class OutputClassifier(ClassifierMixin):
    """Base of the classifiers that have an output for each class, or one for two.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels.
    """

    classes_: np.ndarray
    # Expected outputs of rows, (C, n), or (1, n) for two classes.
    _outputs: Callable[[Any], FloatArray]

    @over_blocks
    def decision_function(self, X: Any) -> FloatArray:
        """Return the expected outputs of rows.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n,) or (n, C)
            Positive for the second of two classes; of several classes, the highest one
            is predicted.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            return outputs[-1] - outputs[0] if len(outputs) == 2 else outputs[0]
        return np.ascontiguousarray(outputs.T)

    @over_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted label of each row."""
        scores = log_scores(self._outputs(X))
        return self.classes_[scores.argmax(axis=0)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose label is predicted correctly.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p), or table in blocks
            Rows.
        y, sample_weight : array-like of shape (n,), or str
            Labels and what rows count; names of columns for a table in blocks.
        """
        known, weights = column_of(X, y), column_of(X, sample_weight)
        found = np.asarray(self.predict(X))
        return float(accuracy_score(known, found, sample_weight=weights))


class ScoredClassifier(OutputClassifier):
    """Base of the classifiers whose outputs are calibrated to probabilities.

    Attributes
    ----------
    temperature_, uniform_share_ : float
        Of the calibration.
    """

    temperature_: float
    uniform_share_: float

    @over_blocks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return log probabilities of the classes, (n, C)."""
        scores = log_scores(self._outputs(X))
        return np.ascontiguousarray(self._calibration.log_probabilities(scores).T)

    @over_blocks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities of the classes, (n, C).

        They are softmax functions of the outputs, on a scale that was fitted to held-out
        rows if ``calibrate=True``.
        """
        scores = log_scores(self._outputs(X))
        return np.ascontiguousarray(self._calibration.probabilities(scores).T)

    @property
    def _calibration(self) -> Calibration:
        return Calibration(self.temperature_, self.uniform_share_)


def check_classes(labels: IntArray, classes: np.ndarray) -> None:
    """Refuse a single class, and classes without a row of positive weight."""
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}: a classifier needs rows of "
            "at least two classes."
        )
    absent = np.flatnonzero(np.bincount(labels[labels >= 0], minlength=len(classes)) == 0)
    if len(absent):
        raise ValueError(
            f"The class {classes.tolist()[absent[0]]!r} has no row of positive weight."
        )
