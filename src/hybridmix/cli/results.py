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
from hybridmix.estimators.typicality import LOG_RARE
from hybridmix.metrics import calibration_report

Columns = dict[str, Column]


def writing_like(matching: Matching, output: Path) -> AbstractContextManager[Write]:
    """Open a table for the rows of another one, with further columns."""
    return writing(output, matching.table, matching.numeric, matching.model.marks)


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
    """Put new columns behind those of the table."""
    if both := kept.keys() & new.keys():
        raise InputError(
            f"The table already has a column {min(both)!r}, which would be written: "
            "rename it, or keep others by --keep."
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
    return float(getattr(estimator, "offset_", LOG_RARE))


def write_flags(
    matching: Matching, chunk_rows: int, scores: FloatArray, level: float, output: Path
) -> None:
    """Write a table with the typicalities of its rows, and flags."""
    with writing_like(matching, output) as write:
        for chunk in matching.table.chunks(chunk_rows):
            part = scores[chunk.start : chunk.start + chunk.n_rows]
            write(joined(chunk.columns, _flags(part, level)))


def _flags(typicality: FloatArray, level: float) -> Columns:
    return {
        "typicality": TypedColumn.of(typicality),
        "outlier": TypedColumn.of(typicality < level),
    }


# Evaluation ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted:
    """What is kept of the rows of a table to compare predictions with labels.

    Attributes
    ----------
    truth : ndarray of shape (n,)
        Class numbers of the rows that have a label.
    probabilities : ndarray of shape (n, C)
        Of the classes, for these rows.
    n_unlabelled : int
        Number of the other rows.
    """

    truth: IntArray
    probabilities: FloatArray
    n_unlabelled: int


def labelled_predictions(
    matching: Matching, target: str | None, chunk_rows: int, console: Console
) -> Predicted:
    """Predict the rows of a table that have a label."""
    model = matching.model
    if not model.is_classifier:
        raise InputError(
            f"A {type(model.estimator).__name__} has no classes to evaluate: fit with "
            "--target."
        )
    column = label_column(model, matching.table, target)
    numbers: dict[Any, int] = {None: UNLABELLED}
    numbers |= {label: k for k, label in enumerate(model.estimator.classes_.tolist())}
    truths, parts, n_rows = [], [], 0
    for chunk in console.track(matching.table.chunks(chunk_rows), "predicting"):
        labels = labels_of(model, matching.table, chunk, column)
        truth = np.array([numbers[label] for label in labels], dtype=np.int32)
        known = truth != UNLABELLED
        probabilities = model.estimator.predict_proba(matching.frame(chunk))
        truths.append(truth[known])
        parts.append(probabilities[known])
        n_rows += chunk.n_rows
    found = np.concatenate(truths)
    return Predicted(found, np.concatenate(parts), n_rows - len(found))


def evaluation(predicted: Predicted, classes: list[Any]) -> dict[str, Any]:
    """Compare probabilities of classes with the labels.

    Returns
    -------
    values : dict
        Numbers of rows with and without a label; accuracy, balanced accuracy, log loss,
        Brier score, area under the ROC curve (of the second class; of more, the mean over
        all), calibration error; the classes, and the confusion matrix with labels in
        rows.
    """
    from sklearn.metrics import confusion_matrix, roc_auc_score

    truth, probabilities = predicted.truth, predicted.probabilities
    if len(truth) == 0:
        raise InputError("The table has no row with a label.")
    report = calibration_report(truth, probabilities, np.arange(len(classes)))
    guess = probabilities.argmax(axis=1)
    confusion = confusion_matrix(truth, guess, labels=range(len(classes)))
    counts = confusion.sum(axis=1)
    # A class is ranked if some rows have its label, and some do not.
    ranked = np.flatnonzero((counts > 0) & (counts < len(truth)))
    ranked = ranked[1:] if len(classes) == 2 else ranked
    areas = [roc_auc_score(truth == k, probabilities[:, k]) for k in ranked]
    seen = counts > 0
    return {
        "rows": len(truth),
        "unlabelled": predicted.n_unlabelled,
        "accuracy": report.accuracy,
        "balanced_accuracy": float(np.mean(np.diag(confusion)[seen] / counts[seen])),
        "log_loss": report.log_loss,
        "brier_score": report.brier_score,
        "auc": float(np.mean(areas)) if areas else float("nan"),
        "calibration_error": report.calibration_error,
        "classes": classes,
        "confusion": confusion,
    }
