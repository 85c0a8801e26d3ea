"""Prediction from the joint distribution of rows and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from hybridmix._parallel import workers
from hybridmix._require import require, require_instance, require_positive
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Table
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.blocks import column_of, over_blocks
from hybridmix.estimators.components import class_log_joint, committee_of, voter_of
from hybridmix.evaluation import log_joint
from hybridmix.models.calibration import Calibration
from hybridmix.models.committee import Committee


class MixtureClassifier(ClassifierMixin, FittedMixture):
    """Base of the classifiers: prediction by a fitted joint distribution."""

    classes_: np.ndarray
    component_classes_: IntArray
    temperature_: float
    uniform_share_: float
    # Only if several mixtures are asked for the class; then `model_` is the density.
    committee_: Committee
    purpose = "models each class by a mixture density"
    fitted_attributes = (
        *FittedMixture.fitted_attributes,
        "classes_",
        "component_classes_",
        "temperature_",
        "uniform_share_",
    )

    def check_consistent(self) -> None:
        """Raise ValueError unless classes and calibration belong to the model."""
        super().check_consistent()
        require(np.ndim(self.classes_) == 1, "classes_ is not a list of labels")
        n_distinct = len(set(self.classes_.tolist()))
        require(n_distinct == len(self.classes_), "classes_ has a label twice")
        same = np.array_equal(self.component_classes_, self.model_.class_of)
        require(same, "component_classes_ belongs to another mixture")
        temperature, share = self.temperature_, self.uniform_share_
        require(isinstance(temperature, float), "temperature_ is not a number")
        require_positive("temperature_", temperature)
        is_share = isinstance(share, float) and 0.0 <= share < 1.0
        require(is_share, "uniform_share_ is not a share")
        committee = committee_of(self)
        if committee is not None:
            require_instance("committee_", committee, Committee)
            for member in committee.members:
                self._check_model("committee_", getattr(member, "density", member))

    @over_blocks
    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return the joint log densities ``log p(x, c)`` of rows and classes, (n, C)."""
        return self._class_log_joint(self._encode(X)).T

    @over_blocks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of each row, (n, C)."""
        scores = self._class_scores(self._encode(X))
        return self._calibration.probabilities(scores).T

    @over_blocks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the class probabilities, (n, C)."""
        scores = self._class_scores(self._encode(X))
        return self._calibration.log_probabilities(scores).T

    def _class_scores(self, table: Table) -> FloatArray:
        """Return what says which class is more probable, (C, n), up to a constant.

        For a committee these are the votes alone: next to the log density of a row that
        is far from all others, their differences would be rounded away.
        """
        voter = voter_of(self)
        if voter is None:
            return self._log_joint(table)
        with workers(self._n_threads) as pool:
            return log_joint(voter, table, pool)

    def _class_log_joint(self, table: Table) -> FloatArray:
        """Return ``log p(x, c)`` in the units of the table, (C, n)."""
        with workers(self._n_threads) as pool:
            return class_log_joint(self.model_, voter_of(self), table, pool)

    @property
    def _calibration(self) -> Calibration:
        return Calibration(self.temperature_, self.uniform_share_)

    @over_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        best = self._class_scores(self._encode(X)).argmax(axis=0)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of the rows whose class is predicted.

        Parameters
        ----------
        X : array-like, data frame of shape (n, d) or table in blocks
            Rows, preferably not seen in training.
        y : array-like of shape (n,), or str
            Their labels; the name of their column, if the table comes in blocks.
        sample_weight : array-like of shape (n,), or str, default=None
            Weights of the rows.
        """
        from sklearn.metrics import accuracy_score

        predicted, weights = np.asarray(self.predict(X)), column_of(X, sample_weight)
        return float(accuracy_score(column_of(X, y), predicted, sample_weight=weights))

    @over_blocks
    def predict_component(self, X: Any) -> IntArray:
        """Return the most probable component of each row, over all classes.

        ``component_classes_`` has the class that a component belongs to.
        """
        return self._best_component(self._encode(X))

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[Any, np.ndarray]:
        """Draw rows and labels from the joint distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            None uses the estimator's own.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, d)
            A table like the one of training.
        y : ndarray of shape (n_samples,)
            Labels.
        """
        X, components = self._sample_rows(n_samples, random_state)
        if voter_of(self) is None:
            return X, self.classes_[self.component_classes_[components]]
        # The density says nothing about classes: their probabilities given the row do.
        generator = np.random.default_rng([self._seed(random_state), 1])
        steps = np.cumsum(self.predict_proba(X), axis=1)
        numbers = np.sum(steps[:, :-1] <= generator.random((n_samples, 1)), axis=1)
        return X, self.classes_[numbers]
