"""How predictions compare with the labels or targets of tables of any size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._text import with_article
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.cli.console import Console
from hybridmix.cli.models import Matching
from hybridmix.cli.sequence_results import read_file_sequences
from hybridmix.cli.tables import InputError
from hybridmix.cli.targets import (
    check_distribution,
    labels_of,
    target_columns,
    targets_of,
)
from hybridmix.data import UNLABELLED
from hybridmix.data.fingerprint import Fingerprint, Origin, Overlap
from hybridmix.metrics import LEVELS, RankCounts, RegressionSums, ScoreSums
from hybridmix.tasks import Provenance, looked_up
from hybridmix.tasks.provenance import looked_up_sequences
from hybridmix.tasks.regress import forecasts_of

# Names of scores as keys of JSON.
_KEYS = {
    "balanced accuracy": "balanced_accuracy",
    "log loss": "log_loss",
    "Brier score": "brier_score",
    "ROC AUC": "auc",
    "RMSE": "rmse",
    "MAE": "mae",
    "R²": "r2",
    "interval score": "interval_score",
    "log predictive density": "log_predictive_density",
}
# What to do about rows that a model has seen, or may have seen.
_ADVICE = {
    Origin.SEEN: (
        "It looks too good on them: evaluate it on {units} it has not seen, or let "
        "hybridmix report retrain it by cross-validation."
    ),
    Origin.MIXED: (
        "It looks too good on these: leave them out, or let hybridmix report score the "
        "others."
    ),
    Origin.UNKNOWN: "If it was, it looks too good.",
}


class _Rows:
    """Rows of chunks: how many have no target, and whether they were in training.

    Parameters
    ----------
    fingerprint : Fingerprint or None
        Of the training rows of the model; None for a model that has none.
    units : str
        What is counted: rows or sequences.
    """

    def __init__(self, fingerprint: Fingerprint | None, units: str = "rows") -> None:
        self._fingerprint = fingerprint
        self._units = units
        self._overlap = Overlap()
        self._n_without = 0

    def _note(self, known: BoolArray, found: IntArray | None) -> None:
        """Take note of rows, some of which have a target."""
        self._n_without += int(np.sum(~known))
        if found is not None:
            self._overlap += Overlap.of(found[known])

    @property
    def provenance(self) -> Provenance:
        """Whether the rows were in training."""
        return Provenance(self._fingerprint, self._overlap, self._units)

    def _origin_values(self) -> dict[str, Any]:
        """Return whether the rows were in training, and a warning if they were."""
        provenance = self.provenance
        return {
            "provenance": {
                "origin": str(provenance.origin),
                "sentence": provenance.sentence,
                "judged": self._overlap.n_judged,
                "seen": self._overlap.n_seen,
            },
            "warning": _warning(provenance),
        }


class Tally(_Rows):
    """Compares predictions with labels, chunk by chunk; memory does not grow with rows.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    fingerprint : Fingerprint or None, default=None
        Of the training rows of the model; None for a model that has none.
    units : str, default="rows"
        What is compared: rows or sequences.
    """

    def __init__(
        self,
        n_classes: int,
        fingerprint: Fingerprint | None = None,
        units: str = "rows",
    ) -> None:
        super().__init__(fingerprint, units)
        self._sums: ScoreSums | None = None
        self._ranks = RankCounts(n_classes)
        self._confusion = np.zeros((n_classes, n_classes), dtype=np.int64)

    def add(
        self, truth: IntArray, probabilities: FloatArray, found: IntArray | None = None
    ) -> None:
        """Add rows.

        Parameters
        ----------
        truth : ndarray of shape (n,)
            Class numbers, -1 where there is no label.
        probabilities : ndarray of shape (n, C)
            Probabilities of the classes.
        found : ndarray of shape (n,) or None, default=None
            Whether the rows were in training, as the fingerprint of the model says.
        """
        known = truth != UNLABELLED
        self._note(known, found)
        truth, probabilities = truth[known], probabilities[known]
        if len(truth) == 0:
            return
        sums = ScoreSums.of(truth, probabilities)
        self._sums = sums if self._sums is None else self._sums + sums
        self._ranks.add(truth, probabilities)
        np.add.at(self._confusion, (truth, probabilities.argmax(axis=1)), 1)

    def values(self, classes: list[Any]) -> dict[str, Any]:
        """Return the figures of all rows.

        Returns
        -------
        values : dict
            Numbers of rows with and without a label; whether they were in training, and
            a warning if they were; accuracy, balanced accuracy, log loss, Brier score,
            area under the ROC curve (of the second class; of more, the mean over all) and
            calibration error; the 95 % intervals of these; the classes, and the confusion
            matrix with labels in rows.
        """
        if self._sums is None:
            one = self._units.removesuffix("s")
            raise InputError(f"The table has no {one} with a label.")
        found = self._sums.estimates([self._ranks.of(k) for k in self._sums.ranked])
        error = self._sums.calibration().calibration_error
        return {
            self._units: self._sums.n_rows,
            "unlabelled": self._n_without,
            **self._origin_values(),
            **_score_values(found, error),
            "classes": classes,
            "confusion": self._confusion,
        }


class TargetTally(_Rows):
    """Compares forecasts with targets, chunk by chunk; memory does not grow with rows.

    Parameters
    ----------
    fingerprint : Fingerprint or None, default=None
        Of the training rows of the model; None for a model that has none.
    """

    def __init__(self, fingerprint: Fingerprint | None = None) -> None:
        super().__init__(fingerprint)
        self._sums: RegressionSums | None = None

    def add(
        self, targets: FloatArray, forecasts: FloatArray, found: IntArray | None = None
    ) -> None:
        """Add rows.

        Parameters
        ----------
        targets : ndarray of shape (n,)
            Targets, NaN where there is none.
        forecasts : ndarray of shape (n, 2 + L)
            See `hybridmix.metrics.as_forecasts`.
        found : ndarray of shape (n,) or None, default=None
            Whether the rows were in training, as the fingerprint of the model says.
        """
        known = ~np.isnan(targets)
        self._note(known, found)
        if not known.any():
            return
        origin = None if self._sums is None else self._sums.origin
        sums = RegressionSums.of(targets[known], forecasts[known], origin)
        self._sums = sums if self._sums is None else self._sums + sums

    def values(self) -> dict[str, Any]:
        """Return the figures of all rows.

        Returns
        -------
        values : dict
            Numbers of rows with and without a target; whether they were in training, and
            a warning if they were; the scores of `hybridmix.metrics.regression_scores`,
            with underscores in their names, and the calibration error; the 95 %
            intervals of these; the levels of quantiles, and the shares of targets below.
        """
        if self._sums is None:
            raise InputError("The table has no row with a target.")
        error = self._sums.calibration_error
        return {
            "rows": self._sums.n_rows,
            "without_target": self._n_without,
            **self._origin_values(),
            **_score_values(self._sums.estimates(), error),
            "quantiles": {"levels": LEVELS, "below": self._sums.shares_below},
        }


def _score_values(found: dict[str, Estimate], error: float) -> dict[str, Any]:
    """Return scores, the calibration error and 95 % intervals by the keys of JSON."""
    named = {_KEYS.get(name, name): score for name, score in found.items()}
    return {
        **{name: score.value for name, score in named.items()},
        "calibration_error": error,
        "intervals": {name: [score.low, score.high] for name, score in named.items()},
    }


def _warning(provenance: Provenance) -> str | None:
    """Say what to do about rows that a model has seen, or may have seen."""
    advice = _ADVICE.get(provenance.origin)
    if advice is None:
        return None
    return f"{provenance.sentence} {advice.format(units=provenance.units)}"


def evaluated(
    matching: Matching, target: str | None, chunk_rows: int, console: Console
) -> dict[str, Any]:
    """Compare the predictions of a model with the labels or targets of a table."""
    model, estimator = matching.model, matching.model.estimator
    if not model.predicts:
        raise InputError(
            f"The model is {with_article(type(estimator).__name__)}, which has nothing "
            "to evaluate: fit with --target."
        )
    columns = target_columns(model, matching.table, target)
    if model.is_sequential:
        return _evaluated_sequences(matching, columns[0], console)
    evaluate = _evaluated_numbers if model.is_regressor else _evaluated_classes
    return evaluate(matching, columns, chunk_rows, console)


def _evaluated_numbers(
    matching: Matching, columns: list[str], chunk_rows: int, console: Console
) -> dict[str, Any]:
    """Compare forecasts with targets; of several, each on its own."""
    model, estimator = matching.model, matching.model.estimator
    check_distribution(estimator)
    fingerprint = getattr(estimator, "fingerprint_", None)
    regressors = [estimator.for_target(k) for k in range(len(columns))]
    tallies = [TargetTally(fingerprint) for _ in columns]
    for chunk in console.track(matching.table.chunks(chunk_rows), "predicting"):
        frame = matching.frame(chunk)
        found = looked_up(estimator, frame)
        targets = targets_of(model, matching.table, chunk, columns)
        for regressor, tally, own in zip(regressors, tallies, targets.T, strict=True):
            tally.add(own, forecasts_of(regressor, frame, own), found)
    values = [tally.values() for tally in tallies]
    if len(values) == 1:
        return values[0]
    warnings = [own.pop("warning") for own in values]
    return {"targets": dict(zip(columns, values, strict=True)), "warning": warnings[0]}


def _evaluated_classes(
    matching: Matching, columns: list[str], chunk_rows: int, console: Console
) -> dict[str, Any]:
    """Compare predicted classes with labels."""
    model, estimator = matching.model, matching.model.estimator
    classes = estimator.classes_.tolist()
    votes = Tally(len(classes), getattr(estimator, "fingerprint_", None))
    for chunk in console.track(matching.table.chunks(chunk_rows), "predicting"):
        labels = labels_of(model, matching.table, chunk, columns[0])
        truth = _class_numbers(labels, classes)
        frame = matching.frame(chunk)
        votes.add(truth, estimator.predict_proba(frame), looked_up(estimator, frame))
    return votes.values(classes)


def _evaluated_sequences(
    matching: Matching, target: str, console: Console
) -> dict[str, Any]:
    """Compare predicted classes of sequences with their labels."""
    estimator = matching.model.estimator
    classes = estimator.classes_.tolist()
    read = read_file_sequences(matching, console, target)
    assert read.labels is not None
    fingerprint = getattr(estimator, "fingerprint_", None)
    votes = Tally(len(classes), fingerprint, "sequences")
    votes.add(
        _class_numbers(read.labels, classes),
        estimator.predict_proba(read.sequences),
        looked_up_sequences(estimator, read.sequences),
    )
    return votes.values(classes)


def _class_numbers(labels: Iterable[Any], classes: list[Any]) -> IntArray:
    """Return the numbers of labels among the classes; -1 for None."""
    numbers = {None: UNLABELLED} | {label: k for k, label in enumerate(classes)}
    return np.array([numbers[label] for label in labels])
