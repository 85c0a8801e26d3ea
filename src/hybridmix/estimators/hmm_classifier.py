"""The classifier of sequences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import encode_labels
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.estimators.chain_fitted import FittedChainsEstimator
from hybridmix.estimators.chain_options import ChainEstimator
from hybridmix.estimators.chosen import is_auto
from hybridmix.estimators.labelled import (
    check_labels_given,
    check_mark,
    class_names,
    class_weighted,
)
from hybridmix.estimators.options import warn_of
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.objectives import Objective
from hybridmix.progress import printing
from hybridmix.solvers import Solver
from hybridmix.training.chain_plan import TRADEOFFS, AutomaticChains
from hybridmix.training.chain_search import fit_chosen
from hybridmix.training.chains import FittedChains, fit_chains
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.run import check_probabilities


class ChainClassifier(ClassifierMixin, FittedChainsEstimator):
    """Prediction of classes by fitted hidden Markov models."""

    classes_: np.ndarray
    committee_: ChainCommittee
    purpose = "models the sequences of each class by a hidden Markov model"
    fitted_attributes = (
        *FittedChainsEstimator.fitted_attributes,
        "classes_",
        "committee_",
    )

    def predict_log_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        return self._log_probabilities(self._encode(X, lengths).rows).T

    def predict_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        return np.exp(self.predict_log_proba(X, lengths))

    def predict(self, X: Any, lengths: Any = None) -> np.ndarray:
        best = self._log_probabilities(self._encode(X, lengths).rows).argmax(axis=0)
        return self.classes_[best]

    def score(
        self, X: Any, y: Any, lengths: Any = None, sample_weight: Any = None
    ) -> float:
        found = self.predict(X, lengths)
        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def _log_probabilities(self, rows: SequenceRows) -> FloatArray:
        """Return the log probabilities (C, n) of the classes."""
        return self.committee_.log_probabilities(
            lambda member: self._log_joint(rows, member), rows.lengths
        )

    def _path_classes(self, rows: SequenceRows) -> IntArray:
        return self._log_probabilities(rows).argmax(axis=0)

    def check_consistent(self) -> None:
        """Raise ValueError unless classes and members belong together."""
        super().check_consistent()
        require(np.ndim(self.classes_) == 1, "classes_ is not a list of labels")
        n_distinct = len(set(self.classes_.tolist()))
        require(n_distinct == len(self.classes_), "classes_ has a label twice")
        require_instance("committee_", self.committee_, ChainCommittee)
        for member in self.committee_.members:
            self._check_model("committee_", member)


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class HybridHMMClassifier(ChainClassifier, ChainEstimator):
    n_states: int | str = field(default="auto", kw_only=False)
    objective: str = "hybrid"
    tradeoff: float | str = "auto"
    length_power: float = 1.0
    margin: float | str = "auto"
    loss: str | Objective = "auto"
    solver: str | Solver = "lbfgs"
    n_steps: int = 40
    validation_fraction: float | None = None
    patience: int = 10
    calibrate: bool | str = "auto"
    class_prior: Any = "empirical"
    class_weight: Any = None
    unlabelled: Any = -1
    unlabelled_weight: float | str = "auto"

    def fit(self, X: Any, y: Any, lengths: Any = None, sample_weight: Any = None) -> Self:
        self._check_options()
        check_labels_given(self, y)
        classes, labels = encode_labels(y, self.unlabelled)
        weights = class_weighted(self.class_weight, classes, labels, sample_weight)
        read = self._learn_sequences(X, lengths, labels, weights)
        dataset, names = read.dataset, class_names(classes)
        absent = np.flatnonzero(dataset.class_weights(len(classes)) == 0.0)
        if len(absent):
            raise ValueError(f"{names[absent[0]]} has no sequence of positive weight.")
        options, automatic = self._chain_options(), self._automatic()
        options = replace(options, class_prior=self._given_prior(len(classes)))
        generator = np.random.default_rng(self._seed())
        with workers(self.n_jobs) as pool, printing(self.verbose):
            if automatic:
                fitted = fit_chosen(
                    options,
                    automatic,
                    self.effort,
                    dataset,
                    read.schema,
                    len(classes),
                    generator,
                    pool,
                )
            else:
                fitted = fit_chains(
                    options, dataset, read.schema, len(classes), generator, pool
                )
        self._publish(
            {
                **read.attributes,
                **self._learned_attributes(fitted),
                "classes_": classes,
                "unlabelled_weight_": fitted.unlabelled_weight,
                "committee_": self._committee(fitted),
            }
        )
        warn_of(fitted.messages)
        return self

    def _committee(self, fitted: FittedChains) -> ChainCommittee:
        """Return what is asked for the class: a committee, or the model alone."""
        if fitted.committee is not None:
            return fitted.committee
        return ChainCommittee.of_one(
            fitted.model, fitted.calibration, float(self.length_power)
        )

    # Options ----------------------------------------------------------------------------

    def _check_options(self) -> None:
        super()._check_options()
        check_mark(self.unlabelled)

    def _discrimination(self) -> Discrimination:
        return Discrimination(
            self.objective,
            TRADEOFFS[0] if is_auto(self.tradeoff) else self.tradeoff,  # type: ignore[arg-type]
            self.margin,
            self.loss,
            self.solver,
            self.n_steps,
            self.patience,
            None,
            self.validation_fraction,
            refine_subspace=False,
        )

    def _class_options(self) -> tuple[Any, ...]:
        prior = self.class_prior
        calibrate = bool(self._automatic()) if is_auto(self.calibrate) else self.calibrate
        return (
            self.length_power,
            prior if isinstance(prior, str) else np.asarray(prior, dtype=np.float64),
            self.unlabelled_weight,
            calibrate,
        )

    def _given_prior(self, n_classes: int) -> str | FloatArray:
        prior = self._chain_options().class_prior
        if not isinstance(prior, str):
            check_probabilities(prior, n_classes)
        return prior

    def _automatic(self) -> AutomaticChains:
        is_free = is_auto(self.tradeoff) and self.objective == "hybrid"
        return replace(super()._automatic(), tradeoff=is_free)
