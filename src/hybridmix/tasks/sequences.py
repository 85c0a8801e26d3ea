"""Classification and description of sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Table
from hybridmix.estimators import HMMDensity
from hybridmix.tasks.base import FEWEST_ROWS, Cases, Entrant, Metric
from hybridmix.tasks.baselines import plain_matrix
from hybridmix.tasks.classify import Classify
from hybridmix.tasks.describe import Describe


class ClassifySequences(Classify):
    """Predict the classes of sequences."""

    unit = "sequence"
    row = "labelled sequence", "labelled sequences"
    others = (
        "Logistic regression sees the mean and standard deviation of each column over "
        "the frames of a sequence, the share of each category, and the number of "
        "frames. It knows nothing about their order: where it does as well, the order "
        "does not matter. It learns from labelled sequences only."
    )
    metrics = tuple(
        replace(
            metric,
            meaning=metric.meaning.replace("rows", "sequences").replace(
                "a row", "a sequence"
            ),
        )
        for metric in Classify.metrics
    )

    def fresh_model(self, cases: Cases) -> Any:
        """Return an unfitted classifier with the options of the one that was given."""
        return _fresh(cases)

    def baselines(
        self, cases: Cases, used: IntArray, folds: IntArray
    ) -> Iterator[Entrant]:
        """Make classifiers of scikit-learn that do not know the order of frames."""
        from sklearn.dummy import DummyClassifier
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        X: Any = cases.part(used)
        matrix = frame_summaries(cases.model._encode(X, None).table, X.lengths)
        is_labelled = cases.truth[used] != UNLABELLED
        # Where there is no label, this is some class, which no model is trained on.
        y = cases.model.classes_[cases.truth[used]]
        makers = {
            "logistic regression": lambda: make_pipeline(
                SimpleImputer(keep_empty_features=True),
                StandardScaler(),
                LogisticRegression(max_iter=1000),
            ),
            "most frequent class": lambda: DummyClassifier(strategy="prior"),
        }
        for name, make in makers.items():
            yield Entrant(name, matrix, y, is_labelled, make)


class DescribeSequences(Describe):
    """Model sequences themselves."""

    unit = "sequence"
    row = "sequence", "sequences"
    others = (
        "The other model is the same one without an order: its frames come from a "
        "mixture of as many components as there are states, independently of each other."
    )
    metrics = (
        Metric(
            "log density per frame",
            "Log density of a sequence divided by its number of frames, in the units of "
            "the table, and the mean of that over the sequences. Models can be compared "
            "by it on the same sequences: the higher, the better they know them.",
        ),
    )
    headline = ("log density per frame",)

    def groups(self, cases: Cases) -> IntArray:
        """Return one group of all sequences."""
        return np.zeros(len(cases.truth), dtype=np.intp)

    def obstacle(self, cases: Cases) -> str | None:
        """Say whether there are too few sequences."""
        n = len(cases.truth)
        if n < FEWEST_ROWS:
            return f"Scores need {FEWEST_ROWS} sequences or more; the table has {n}."
        return None

    def fresh_model(self, cases: Cases) -> HMMDensity:
        """Return an unfitted density with the structure of the one that was given."""
        model = cases.model
        return _fresh(cases).set_params(
            n_states=int(model.n_states_),
            topology=model.topology_,
            covariance_type=model.covariance_type_ or model.covariance_type,
        )

    def keeps_choice(self, cases: Cases) -> bool:
        """Return whether states and their order were chosen with all sequences."""
        model = cases.model
        given = model.n_states, model.topology, model.covariance_type
        return any(isinstance(value, str) and value == "auto" for value in given)

    def baselines(
        self, cases: Cases, used: IntArray, folds: IntArray
    ) -> Iterator[Entrant]:
        """Make the same density without an order of the frames."""
        n_components = int(cases.model.n_states_) * int(cases.model.n_components)

        def unordered() -> HMMDensity:
            return self.fresh_model(cases).set_params(
                n_states=1,
                topology="ergodic",
                n_components=n_components,
                autoregressive=False,
            )

        everyone = np.ones(len(used), dtype=bool)
        yield Entrant("frames in any order", cases.part(used), None, everyone, unordered)

    def outputs(self, cases: Cases, model: Any, X: Any, truth: IntArray) -> FloatArray:
        """Return log densities per frame, (n,)."""
        return model.score_samples(X) / X.lengths

    def scores(self, truth: IntArray, outputs: FloatArray) -> dict[str, Any]:
        """Return the mean log density per frame."""
        [score] = super().scores(truth, outputs).values()
        return {"log density per frame": score}


def _fresh(cases: Cases) -> Any:
    """Return an unfitted model with the options of the one that was given."""
    from sklearn.base import clone

    fresh = clone(cases.model).set_params(verbose=0)
    if cases.model.random_state is None:
        fresh.set_params(random_state=cases.seed)
    return fresh


def frame_summaries(table: Table, lengths: IntArray) -> FloatArray:
    """Describe sequences by numbers that do not depend on the order of their frames.

    Parameters
    ----------
    table : Table
        The frames of all sequences, encoded.
    lengths : ndarray of shape (n,)
        Number of frames of each sequence.

    Returns
    -------
    summaries : ndarray of shape (n, 2 r + s + 1)
        Means and standard deviations of the r real columns, NaN for those without any
        value; shares of the s categories; number of frames.
    """
    starts = np.cumsum(lengths) - lengths
    schema = table.schema
    scaled = plain_matrix(table, np.arange(table.n_rows))[:, list(schema.real)]
    observed = ~np.isnan(scaled)
    counts = np.add.reduceat(observed, starts, axis=0, dtype=float)
    counts[counts == 0.0] = np.nan
    filled = np.where(observed, scaled, 0.0)
    means = np.add.reduceat(filled, starts, axis=0) / counts
    squares = np.add.reduceat(filled**2, starts, axis=0) / counts
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    shares = [
        np.add.reduceat(codes[:, None] == np.arange(size), starts, axis=0, dtype=float)
        / lengths[:, None]
        for codes, size in zip(table.codes[:].T, schema.n_categories, strict=True)
    ]
    return np.column_stack([means, deviations, *shares, lengths])
