"""What models say about the rows of tables."""

from __future__ import annotations

import heapq
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit

from hybridmix._typing import FloatArray, IntArray
from hybridmix.cli.cells import Column, TypedColumn
from hybridmix.cli.console import Console
from hybridmix.cli.models import Matching, Model, label_column, labels_of
from hybridmix.cli.tables import Chunk, InputError, Table
from hybridmix.cli.workflow import split
from hybridmix.cli.writing import Write, writing
from hybridmix.data import UNLABELLED
from hybridmix.metrics import CalibrationSums
from hybridmix.models.typicality import LOG_RARE

Columns = dict[str, Column]
# Log odds beyond this are certain; this many bins lie between.
_MOST_ODDS = 40.0
_ODDS_BINS = 2**14


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

    The area under the ROC curve is that of log odds in bins so narrow that rows of two
    classes hardly ever share one.
    """

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes
        self._sums: CalibrationSums | None = None
        self._confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        # For each class: its own rows and all others, by the odds that they are given.
        self._by_odds = np.zeros((n_classes, 2, _ODDS_BINS), dtype=np.int64)
        self._n_unlabelled = 0

    def add(self, truth: IntArray, probabilities: FloatArray) -> None:
        """Add rows by their class numbers, -1 where there is no label."""
        known = truth != UNLABELLED
        self._n_unlabelled += int(np.sum(~known))
        truth, probabilities = truth[known], probabilities[known]
        if len(truth) == 0:
            return
        sums = CalibrationSums.of(truth, probabilities)
        self._sums = sums if self._sums is None else self._sums + sums
        np.add.at(self._confusion, (truth, probabilities.argmax(axis=1)), 1)
        for k in range(self._n_classes):
            bins = _odds_bins(probabilities[:, k])
            for group, rows in enumerate((truth == k, truth != k)):
                counts = np.bincount(bins[rows], minlength=_ODDS_BINS)
                self._by_odds[k, group] += counts

    def values(self, classes: list[Any]) -> dict[str, Any]:
        """Return the figures of all rows.

        Returns
        -------
        values : dict
            Numbers of rows with and without a label; accuracy, balanced accuracy, log
            loss, Brier score, area under the ROC curve (of the second class; of more, the
            mean over all), calibration error; the classes, and the confusion matrix with
            labels in rows.
        """
        if self._sums is None:
            raise InputError("The table has no row with a label.")
        report = self._sums.report()
        counts = self._confusion.sum(axis=1)
        seen = counts > 0
        # A class is ranked if some rows have its label, and some do not.
        ranked = np.flatnonzero(seen & (counts < counts.sum()))
        ranked = ranked[1:] if self._n_classes == 2 else ranked
        areas = [_area(*self._by_odds[k]) for k in ranked]
        shares = np.diag(self._confusion)[seen] / counts[seen]
        return {
            "rows": int(counts.sum()),
            "unlabelled": self._n_unlabelled,
            "accuracy": report.accuracy,
            "balanced_accuracy": float(np.mean(shares)),
            "log_loss": report.log_loss,
            "brier_score": report.brier_score,
            "auc": float(np.mean(areas)) if areas else float("nan"),
            "calibration_error": report.calibration_error,
            "classes": classes,
            "confusion": self._confusion,
        }


def _odds_bins(probabilities: FloatArray) -> IntArray:
    """Return the bins of log odds."""
    odds = np.clip(logit(probabilities), -_MOST_ODDS, _MOST_ODDS)
    return ((odds + _MOST_ODDS) * ((_ODDS_BINS - 1) / (2.0 * _MOST_ODDS))).astype(np.intp)


def _area(own: IntArray, others: IntArray) -> float:
    """Return the share of pairs that are in the right order; ties count by half."""
    below = np.cumsum(others) - others
    right = own @ (below + 0.5 * others)
    return float(right / (own.sum() * others.sum()))


def tallied(
    matching: Matching, target: str | None, chunk_rows: int, console: Console
) -> Tally:
    """Compare the predictions of a model with the labels of a table."""
    model = matching.model
    if not model.is_classifier:
        raise InputError(
            f"A {type(model.estimator).__name__} has no classes to evaluate: fit with "
            "--target."
        )
    column = label_column(model, matching.table, target)
    classes = model.estimator.classes_.tolist()
    numbers = {None: UNLABELLED} | {label: k for k, label in enumerate(classes)}
    tally = Tally(len(classes))
    for chunk in console.track(matching.table.chunks(chunk_rows), "predicting"):
        labels = labels_of(model, matching.table, chunk, column)
        truth = np.array([numbers[label] for label in labels])
        tally.add(truth, model.estimator.predict_proba(matching.frame(chunk)))
    return tally
