"""Classifiers with their defaults, for tables with holes, categories and few labels.

Rivals learn from the labelled rows only. Numbers are standardised and their holes filled
by the five nearest neighbours (distances over numbers only) or by means; categories are
filled by the most frequent one and encoded one-hot. Boosted trees take holes and
categories as they are.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from tables import UNLABELLED, Part

from hybridmix import HybridMixtureClassifier
from hybridmix.metrics import label_losses

CALIBRATION_FOLDS = 5
SMALL_LEAF = 2

DEFAULT, OLD = "default", "version 0.1"
MACHINE, FOREST = "KNN, RBF SVM", "KNN, random forest"
LOGISTIC, BOOSTING = "mean, logistic regression", "boosted trees"
SMALL_LEAVES = "boosted trees, small leaves"
RANKED = (DEFAULT, OLD, MACHINE, FOREST, LOGISTIC, BOOSTING)
# Not a default, and not ranked: of few labelled rows, leaves of 20 rows make no tree.
NAMES = (*RANKED, SMALL_LEAVES)

OLD_OPTIONS: dict[str, Any] = {
    "objective": "hybrid",
    "tradeoff": 10.0,
    "margin": "auto",
    "loss": "auto",
    "solver": "lbfgs",
    "n_steps": 50,
    "validation_fraction": None,
    "calibrate": False,
    "n_components": 1,
    "covariance_type": "full",
    "covariance_prior": "auto",
    "class_prior": "empirical",
    "unlabelled_weight": "auto",
}
# Options that version 0.1 does not have, with the values that do what it does.
LATER_OPTIONS: dict[str, Any] = {"column_shapes": "plain"}


# Ours -----------------------------------------------------------------------------------


def default_classifier() -> HybridMixtureClassifier:
    return HybridMixtureClassifier(random_state=0, n_jobs=1)


def old_classifier() -> HybridMixtureClassifier:
    """Return the default of version 0.1, all of whose options are given."""
    known = default_classifier().get_params()
    later = {name: value for name, value in LATER_OPTIONS.items() if name in known}
    return default_classifier().set_params(**OLD_OPTIONS, **later)


# Rivals ---------------------------------------------------------------------------------


def encoder(imputer: Any) -> Any:
    """Scale numbers and fill their holes; encode categories one-hot."""
    words = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    return make_column_transformer(
        (
            make_pipeline(StandardScaler(), imputer),
            make_column_selector(dtype_include="number"),
        ),
        (words, make_column_selector(dtype_exclude="number")),
    )


class Encoded:
    """A rival behind an encoder, which learns from the labelled rows."""

    def __init__(self, imputer: Any, model: Any) -> None:
        self._encoder, self._model = encoder(imputer), model

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Encoded:
        """Fit encoder and model."""
        labelled = y != UNLABELLED
        self._model.fit(self._encoder.fit_transform(X[labelled]), y[labelled])
        self.classes_ = self._model.classes_
        return self

    def answer(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return classes and probabilities."""
        encoded = self._encoder.transform(X)
        probabilities = self._model.predict_proba(encoded)
        if isinstance(self._model, Machine):
            return self._model.predict(encoded), probabilities
        return self.classes_[probabilities.argmax(axis=1)], probabilities


class Machine:
    """An RBF SVM that decides, and the same after calibration for probabilities.

    `CalibratedClassifierCV` has five folds, or as many as the rarest class has labels. A
    row that is the only one of its class is in the training part of every fold.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> Machine:
        """Fit both."""
        self._machine = SVC().fit(X, y)
        self._calibrated = CalibratedClassifierCV(SVC(), cv=calibration_folds(y))
        self._calibrated.fit(X, y)
        self.classes_ = self._machine.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the classes of the machine trained on all rows."""
        return self._machine.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities."""
        return self._calibrated.predict_proba(X)


def calibration_folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    labels, counts = np.unique(y, return_counts=True)
    single = np.isin(y, labels[counts == 1])
    others = np.flatnonzero(~single)
    number = min(CALIBRATION_FOLDS, counts[counts > 1].min())
    folds = StratifiedKFold(number).split(others, y[others])
    alone = np.flatnonzero(single)
    return [(np.union1d(others[train], alone), others[test]) for train, test in folds]


class Boosting:
    """Boosted trees that are given the holes and the categories."""

    def __init__(self, min_samples_leaf: int = 20) -> None:
        self._leaf = min_samples_leaf

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Boosting:
        """Fit the trees to the labelled rows."""
        labelled = y != UNLABELLED
        self._types = dict.fromkeys(X.select_dtypes(exclude="number"), "category")
        self._model = HistGradientBoostingClassifier(
            categorical_features="from_dtype",
            min_samples_leaf=self._leaf,
            random_state=0,
        )
        self._model.fit(X[labelled].astype(self._types), y[labelled])
        self.classes_ = self._model.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the probabilities."""
        return self._model.predict_proba(X.astype(self._types))


def neighbours() -> KNNImputer:
    return KNNImputer(keep_empty_features=True)


def means() -> SimpleImputer:
    return SimpleImputer(keep_empty_features=True)


MAKERS: dict[str, Callable[[], Any]] = {
    DEFAULT: default_classifier,
    OLD: old_classifier,
    MACHINE: lambda: Encoded(neighbours(), Machine()),
    FOREST: lambda: Encoded(
        neighbours(), RandomForestClassifier(300, n_jobs=1, random_state=0)
    ),
    LOGISTIC: lambda: Encoded(means(), LogisticRegression(max_iter=1000)),
    BOOSTING: Boosting,
    SMALL_LEAVES: lambda: Boosting(SMALL_LEAF),
}


def runs_in(name: str, situation: str) -> bool:
    """Return whether a contestant takes part in a situation."""
    return name != SMALL_LEAVES or situation.startswith("labels")


# Measuring ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """Losses of each test row, and seconds.

    Attributes
    ----------
    wrong : ndarray of shape (n_test,)
    losses : ndarray of shape (n_test,)
        Minus the log probability of the label, as `hybridmix.metrics` bounds it.
    fit_seconds, predict_seconds, cpu_seconds : float
        Of training, of prediction, and of the processor for both.
    """

    wrong: np.ndarray
    losses: np.ndarray
    fit_seconds: float
    predict_seconds: float
    cpu_seconds: float


def answers(model: Any, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and probabilities."""
    if hasattr(model, "answer"):
        return model.answer(X)
    probabilities = model.predict_proba(X)
    return model.classes_[probabilities.argmax(axis=1)], probabilities


def scores(make: Callable[[], Any], part: Part) -> Scores:
    """Train on one part and test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, UserWarning, FutureWarning))
        start, cpu_start = time.perf_counter(), time.process_time()
        model = make().fit(part.X, part.y)
        fitted = time.perf_counter()
        labels, found = answers(model, part.X_test)
        end, cpu_end = time.perf_counter(), time.process_time()
    n_classes = 1 + max(int(model.classes_.max()), int(part.y_test.max()))
    probabilities = np.zeros((len(part.y_test), n_classes))
    probabilities[:, model.classes_] = found
    of_label = probabilities[np.arange(len(part.y_test)), part.y_test]
    with np.errstate(divide="ignore"):
        losses = label_losses(np.log(of_label))
    return Scores(
        labels != part.y_test,
        losses,
        fitted - start,
        end - fitted,
        cpu_end - cpu_start,
    )
