"""What models say about the rows of tables."""

from __future__ import annotations

import heapq
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.cli.cells import Column, TypedColumn
from hybridmix.cli.console import Console
from hybridmix.cli.models import Matching, Model, label_column, labels_of
from hybridmix.cli.tables import Chunk, InputError, Table
from hybridmix.cli.workflow import split
from hybridmix.cli.writing import Write, writing
from hybridmix.data import UNLABELLED
from hybridmix.data.fingerprint import Fingerprint, Origin, Overlap
from hybridmix.estimators.base import outlier_level
from hybridmix.metrics import RankCounts, ScoreSums
from hybridmix.tasks import Provenance, looked_up, task_of

Columns = dict[str, Column]
# Names of scores as keys of JSON.
_KEYS = {
    "balanced accuracy": "balanced_accuracy",
    "log loss": "log_loss",
    "Brier score": "brier_score",
    "ROC AUC": "auc",
}
# What to do about rows that a model has seen, or may have seen.
_ADVICE = {
    Origin.SEEN: (
        "It looks too good on them: evaluate it on rows it has not seen, or let "
        "hybridmix report retrain it by cross-validation."
    ),
    Origin.MIXED: (
        "It looks too good on these: leave them out, or let hybridmix report score the "
        "others."
    ),
    Origin.UNKNOWN: "If it was, it looks too good.",
}


def writing_like(
    matching: Matching, output: Path, escape_formulas: bool
) -> AbstractContextManager[Write]:
    """Open a table for the rows of another one, with further columns."""
    table, marks = matching.table, matching.model.marks
    return writing(output, table, matching.numeric, marks, escape_formulas)


# Predictions --------------------------------------------------------------------------


def kept_columns(table: Table, keep: str) -> list[str]:
    """Return the columns that ``--keep`` names: all, none, or a list."""
    if keep in ("all", "none"):
        return table.names if keep == "all" else []
    names = list(split([keep]))
    for name in names:
        table.check_column(name, "--keep")
    return names


def joined(kept: Columns, new: Columns) -> Columns:
    """Put new columns after those of the table."""
    if both := kept.keys() & new.keys():
        raise InputError(
            f"The table already has a column {min(both)!r}, which the result needs: "
            "rename it, or leave it out with --keep."
        )
    return {**kept, **new}


def predictions(model: Model, frame: Any, with_density: bool) -> Columns:
    """Return labels and probabilities of classes, or of components."""
    estimator = model.estimator
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"A {type(estimator).__name__} does not classify; use hybridmix impute or "
            "hybridmix outliers."
        )
    probabilities = estimator.predict_proba(frame)
    best = probabilities.argmax(axis=1)
    if model.is_classifier:
        groups = estimator.classes_.tolist()
        columns: Columns = {"predicted": TypedColumn.of([groups[k] for k in best])}
    else:
        groups = list(range(probabilities.shape[1]))
        columns = {"component": TypedColumn.of(best)}
    for group, share in zip(groups, probabilities.T, strict=True):
        columns[f"probability_{group}"] = TypedColumn.of(share)
    if with_density:
        columns["log_density"] = TypedColumn.of(estimator.score_samples(frame))
        columns |= _flags(estimator.typicality(frame), level_of(estimator))
    return columns


# Outliers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class WorstRow:
    """A row of low typicality, with its number in the table."""

    row: int
    typicality: float
    cells: dict[str, str]


class Worst:
    """Keeps the rows of lowest typicality out of many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows: list[WorstRow] = []

    def add(self, chunk: Chunk, typicality: FloatArray) -> None:
        """Take note of the worst rows of a chunk."""
        for position in np.argsort(typicality, kind="stable")[: self._most].tolist():
            cells = {
                name: column.written(".", slice(position, position + 1))[0]
                for name, column in chunk.columns.items()
            }
            row = chunk.start + position + 1
            self.rows.append(WorstRow(row, float(typicality[position]), cells))
        self.rows = heapq.nsmallest(
            self._most, self.rows, key=lambda worst: (worst.typicality, worst.row)
        )


def typicalities(
    matching: Matching, chunk_rows: int, worst: Worst, console: Console
) -> FloatArray:
    """Return the typicality of all rows, and take note of the worst."""
    parts = []
    for chunk in console.track(matching.table.chunks(chunk_rows), "scoring"):
        parts.append(matching.model.estimator.typicality(matching.frame(chunk)))
        worst.add(chunk, parts[-1])
    return np.concatenate(parts)


def level_of(
    estimator: Any,
    scores: FloatArray | None = None,
    threshold: float | None = None,
    share: float | None = None,
) -> float:
    """Return the typicality below which rows are outliers."""
    if share is not None and scores is not None:
        n_flagged = round(share * len(scores))
        ordered = np.append(np.sort(scores), np.inf)
        return float(ordered[n_flagged])
    if threshold is not None:
        return float(np.log(threshold)) if threshold > 0 else -np.inf
    return outlier_level(estimator)


def write_flags(
    matching: Matching, chunk_rows: int, scores: FloatArray, level: float, write: Write
) -> None:
    """Write a table with the typicalities of its rows, and flags."""
    for chunk in matching.table.chunks(chunk_rows):
        part = scores[chunk.start : chunk.start + chunk.n_rows]
        write(joined(chunk.columns, _flags(part, level)))


def _flags(typicality: FloatArray, level: float) -> Columns:
    return {
        "typicality": TypedColumn.of(typicality),
        "outlier": TypedColumn.of(typicality < level),
    }


# Evaluation ---------------------------------------------------------------------------


class Tally:
    """Compares predictions with labels, chunk by chunk; memory does not grow with rows.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    fingerprint : Fingerprint or None, default=None
        Of the training rows of the model; None for a model that has none.
    """

    def __init__(self, n_classes: int, fingerprint: Fingerprint | None = None) -> None:
        self._sums: ScoreSums | None = None
        self._ranks = RankCounts(n_classes)
        self._confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        self._n_unlabelled = 0
        self._fingerprint = fingerprint
        self._overlap = Overlap()

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
        self._n_unlabelled += int(np.sum(~known))
        if found is not None:
            self._overlap += Overlap.of(found[known])
        truth, probabilities = truth[known], probabilities[known]
        if len(truth) == 0:
            return
        sums = ScoreSums.of(truth, probabilities)
        self._sums = sums if self._sums is None else self._sums + sums
        self._ranks.add(truth, probabilities)
        np.add.at(self._confusion, (truth, probabilities.argmax(axis=1)), 1)

    @property
    def provenance(self) -> Provenance:
        """Whether the rows were in training."""
        return Provenance(self._fingerprint, self._overlap)

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
            raise InputError("The table has no row with a label.")
        found = self._sums.estimates([self._ranks.of(k) for k in self._sums.ranked])
        named = {_KEYS.get(name, name): score for name, score in found.items()}
        provenance = self.provenance
        return {
            "rows": self._sums.n_rows,
            "unlabelled": self._n_unlabelled,
            "provenance": {
                "origin": str(provenance.origin),
                "sentence": provenance.sentence,
                "judged": self._overlap.n_judged,
                "seen": self._overlap.n_seen,
            },
            "warning": _warning(provenance),
            **{name: score.value for name, score in named.items()},
            "calibration_error": self._sums.calibration().calibration_error,
            "intervals": {n: [score.low, score.high] for n, score in named.items()},
            "classes": classes,
            "confusion": self._confusion,
        }


def _warning(provenance: Provenance) -> str | None:
    """Say what to do about rows that a model has seen, or may have seen."""
    advice = _ADVICE.get(provenance.origin)
    return None if advice is None else f"{provenance.sentence} {advice}"


def tallied(
    matching: Matching, target: str | None, chunk_rows: int, console: Console
) -> Tally:
    """Compare the predictions of a model with the labels of a table."""
    model, estimator = matching.model, matching.model.estimator
    if task_of(estimator).target != "classes":
        raise InputError(
            f"A {type(estimator).__name__} has no classes to evaluate: fit with --target."
        )
    column = label_column(model, matching.table, target)
    classes = estimator.classes_.tolist()
    numbers = {None: UNLABELLED} | {label: k for k, label in enumerate(classes)}
    tally = Tally(len(classes), getattr(estimator, "fingerprint_", None))
    for chunk in console.track(matching.table.chunks(chunk_rows), "predicting"):
        labels = labels_of(model, matching.table, chunk, column)
        truth = np.array([numbers[label] for label in labels])
        frame = matching.frame(chunk)
        tally.add(truth, estimator.predict_proba(frame), looked_up(estimator, frame))
    return tally
