"""Classification: class probabilities against labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, number_labels
from hybridmix.data.labels import as_labels
from hybridmix.estimators import HybridMixtureClassifierCV
from hybridmix.estimators.chosen import AUTO, USUAL_TRADEOFF
from hybridmix.metrics import classification_scores
from hybridmix.tasks.base import FEWEST_ROWS, Cases, Entrant, Metric, Task
from hybridmix.training.covariances import covariance_type_of


class Classify(Task):
    """Predict the classes of rows."""

    target = "classes"
    row = "labelled row", "labelled rows"
    others = (
        "Logistic regression gets medians and most frequent categories for missing "
        "cells, scaled columns and one-hot categories; boosted trees (scikit-learn's "
        "HistGradientBoosting) take missing cells and categories as they are. Both have "
        "their default options, except for smaller leaves where labels are few, and "
        "learn from labelled rows only."
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("accuracy", "Share of rows whose most probable class is right."),
        Metric(
            "balanced accuracy", "The accuracy within each class, averaged over classes."
        ),
        Metric(
            "log loss",
            "Mean of minus the log probability of the right class. 0 is perfect; being "
            "certain and wrong costs most, at most 36 for a row, since probabilities "
            "below 2e\N{MINUS SIGN}16 count as that.",
            is_loss=True,
        ),
        Metric(
            "ROC AUC",
            "Probability that a row of a class gets a higher probability of it than a "
            "row of another class, averaged over classes. 0.5 is chance.",
        ),
    )
    headline = ("accuracy", "log loss")

    def read(self, model: Any, y: Any, n_rows: int) -> tuple[np.ndarray | None, IntArray]:
        """Return labels, and class numbers; -1 where there is no label."""
        if y is None:
            return None, np.full(n_rows, UNLABELLED)
        labels = as_labels(y)
        check_consistent_length(np.empty(n_rows), labels)
        return labels, number_labels(labels, model.classes_, model.unlabelled)

    def given(self, model: Any, truth: IntArray) -> np.ndarray:
        """Return the classes of some numbers."""
        return model.classes_[truth]

    def groups(self, cases: Cases) -> IntArray:
        """Return the classes, so that every fold has its share of each."""
        return cases.truth

    def obstacle(self, cases: Cases) -> str | None:
        """Say why predictions cannot be compared with labels."""
        if cases.y is None:
            return (
                "No labels were given, so predictions cannot be compared with anything."
            )
        if len(cases.model.classes_) == 1:
            return "The model knows a single class, so every prediction is the same."
        n_labelled = int(np.sum(cases.truth != UNLABELLED))
        if n_labelled < FEWEST_ROWS:
            return (
                f"Scores need {FEWEST_ROWS} {self.row[1]} or more; there are "
                f"{n_labelled} {self.row[1]}."
            )
        return None

    def fold_obstacle(self, cases: Cases) -> str | None:
        """Say why there are too few labels, or not the right ones, for folds."""
        model = cases.model
        known = cases.truth[cases.truth != UNLABELLED]
        counts = np.bincount(known, minlength=len(model.classes_))
        if np.sum(counts > 1) < 2:
            return f"Cross-validation needs two classes of two {self.unit}s or more."
        # Networks have neither of these two options.
        prior = getattr(model, "class_prior", "empirical")
        if not isinstance(prior, str) and counts.min() == 0:
            return (
                "The model has fixed class probabilities, but a class has no "
                f"{self.unit} here."
            )
        largest = int(counts.max())
        kept = largest - -(-largest // min(cases.n_folds, largest))
        calibrates = model.calibrate is True or hasattr(model, "leaderboard_")
        has_too_few = calibrates and kept < 2
        if (
            has_too_few
            or (getattr(model, "validation_fraction", None) or 1.0) * kept < 1.0
        ):
            return (
                f"The classes have too few {self.row[1]}: after a fold is held out, none "
                "are left for calibration or for validation_fraction."
            )
        return None

    def fresh_model(self, cases: Cases) -> Any:
        """Return an unfitted classifier with the options of the one that was given.

        What that one has chosen by itself, this one chooses anew: the choice is part of
        what is judged.
        """
        from sklearn.base import clone

        model = cases.model
        fresh = clone(model).set_params(verbose=0)
        if isinstance(cases.given, HybridMixtureClassifierCV):
            fresh.set_params(n_steps=model.n_steps * _n_stations(cases.given))
        if not isinstance(model.init, str):
            # A fitted model as a start has seen the rows that are to be held out.
            numbers = map(int, model.n_components_)
            components = dict(zip(model.classes_.tolist(), numbers, strict=True))
            fresh.set_params(init="kmeans", n_components=components)
            # Training from a model does not search either.
            if model.covariance_type == AUTO:
                fresh.set_params(covariance_type=covariance_type_of(model.model_.family))
            if model.tradeoff == AUTO:
                fresh.set_params(tradeoff=USUAL_TRADEOFF)
        if model.random_state is None:
            fresh.set_params(random_state=cases.seed)
        return fresh

    def keeps_choice(self, cases: Cases) -> bool:
        """Return whether a search of the user's own has chosen options of the model."""
        return isinstance(cases.given, HybridMixtureClassifierCV)

    def baselines(
        self, cases: Cases, used: IntArray, folds: IntArray
    ) -> Iterator[Entrant]:
        """Make classifiers of scikit-learn, for labelled rows as plain numbers."""
        from hybridmix.tasks.baselines import baselines, plain_matrix, seen_columns

        matrix = plain_matrix(cases.table, used)
        is_labelled = cases.truth[used] != UNLABELLED
        columns = seen_columns(matrix, is_labelled, folds)
        # Where there is no label, this is some class, which no model is trained on.
        y = cases.model.classes_[cases.truth[used]]
        makers = baselines(
            cases.table.schema, columns, int(is_labelled.sum()), cases.seed
        )
        for name, make in makers.items():
            yield Entrant(name, matrix, y, is_labelled, make)

    def outputs(self, cases: Cases, model: Any, X: Any, truth: IntArray) -> FloatArray:
        """Return probabilities of the classes, (n, C); 0 for those the model lacks."""
        predicted = model.predict_proba(X)
        probabilities = np.zeros((len(predicted), len(cases.model.classes_)))
        places = np.searchsorted(cases.model.classes_, model.classes_)
        probabilities[:, places] = predicted
        return probabilities

    def scores(self, truth: IntArray, outputs: FloatArray) -> dict[str, Estimate]:
        """Return the metrics of some rows by name."""
        found = classification_scores(truth, outputs)
        return {metric.name: found[metric.name] for metric in self.metrics}


def _n_stations(search: HybridMixtureClassifierCV) -> int:
    """Return how many trainings in a row led a search to its tradeoff."""
    tried = {params["tradeoff"] for params in search.cv_results_["params"]}
    return max(sum(0 < t <= search.best_params_["tradeoff"] for t in tried), 1)
