"""What models say about the rows of tables."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.cli.cells import Column, TypedColumn
from hybridmix.cli.console import Console
from hybridmix.cli.models import Matching, Model, columns_of
from hybridmix.cli.tables import Chunk, InputError, Table
from hybridmix.cli.targets import check_distribution
from hybridmix.cli.values import split
from hybridmix.cli.writing import Write, writing
from hybridmix.data.stacking import take_rows
from hybridmix.estimators.base import outlier_level
from hybridmix.estimators.targets import has_distribution
from hybridmix.metrics import COVERAGE

Columns = dict[str, Column]


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


def predicted(
    matching: Matching,
    kept: list[str],
    with_density: bool,
    coverage: float | None,
    chunk_rows: int,
    console: Console,
) -> Iterator[Columns]:
    """Yield some columns of a table and what a model says about its rows, in chunks."""
    for chunk in console.track(matching.table.chunks(chunk_rows), "predicting"):
        frame = matching.frame(chunk)
        new = predictions(matching.model, frame, with_density, coverage)
        yield joined({name: chunk.columns[name] for name in kept}, new)


def predictions(
    model: Model, frame: Any, with_density: bool, coverage: float | None = None
) -> Columns:
    """Return what a model says about rows, by the names of the columns of the result."""
    estimator = model.estimator
    if coverage is not None and not model.is_regressor:
        raise InputError(
            f"--coverage is for regressors; the model is a {type(estimator).__name__}."
        )
    columns = (
        _predicted_numbers(model, frame, coverage)
        if model.is_regressor
        else predicted_groups(model, frame)
    )
    if with_density:
        model.check_density()
        columns["log_density"] = TypedColumn.of(estimator.score_samples(frame))
        columns |= flags(estimator.typicality(frame), level_of(estimator))
    return columns


def _predicted_numbers(model: Model, frame: Any, coverage: float | None) -> Columns:
    """Return the means of targets, and the ends of their intervals if there are any."""
    estimator, names = model.estimator, model.target_labels
    means = np.reshape(estimator.predict(frame), (-1, len(names))).T
    intervals = _intervals(estimator, frame, coverage)
    columns: Columns = {}
    for k, name in enumerate(names):
        stem = "predicted" if len(names) == 1 else f"predicted_{name}"
        columns[stem] = TypedColumn.of(means[k])
        if intervals is not None:
            columns[f"{stem}_low"], columns[f"{stem}_high"] = map(
                TypedColumn.of, intervals[k]
            )
    return columns


def _intervals(estimator: Any, frame: Any, coverage: float | None) -> FloatArray | None:
    """Return the ends (t, 2, n) of intervals; None for a model of means alone."""
    if coverage is None and not has_distribution(estimator):
        return None
    check_distribution(estimator)
    share = COVERAGE if coverage is None else coverage
    if not 0.0 < share < 1.0:
        raise InputError(f"--coverage {share:g}: give a share between 0 and 1.")
    found: FloatArray = estimator.predict_interval(frame, share)
    return found.reshape(len(found), -1, 2).transpose(1, 2, 0)


def predicted_groups(model: Model, frame: Any) -> Columns:
    """Return labels and probabilities of classes, or of components."""
    estimator = model.estimator
    if not hasattr(estimator, "predict_proba"):
        model.check_density()
        raise InputError(
            f"A {type(estimator).__name__} does not predict; use hybridmix impute or "
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
    return columns


# Filled and drawn rows ----------------------------------------------------------------


def completions(
    matching: Matching, chunk_rows: int, draw: bool, seed: int, console: Console
) -> Iterator[tuple[Chunk, Any]]:
    """Yield the rows of a table in chunks, each with its columns of the model filled."""
    chunks = console.track(matching.table.chunks(chunk_rows), "filling")
    for number, chunk in enumerate(chunks):
        state = np.random.RandomState([seed, number])
        frame = matching.frame(chunk)
        yield chunk, matching.model.estimator.impute(frame, draw, random_state=state)


def drawn(model: Model, n_rows: int, seed: int) -> Columns:
    """Return rows that are drawn from a model, with labels or targets if it has any."""
    if model.is_regressor:
        check_distribution(model.estimator)
    rows, groups = model.estimator.sample(n_rows, random_state=seed)
    columns = drawn_columns(model, rows)
    if model.predicts:
        targets = np.reshape(groups, (n_rows, -1)).T
        for name, values in zip(model.target_labels, targets, strict=True):
            columns[free_name(name, columns)] = TypedColumn.of(values.tolist())
    return columns


def drawn_columns(model: Model, rows: Any) -> Columns:
    """Return the columns of drawn rows by their names."""
    return {
        name: TypedColumn.of(values)
        for name, values in zip(model.column_names, columns_of(rows), strict=True)
    }


def free_name(name: str, columns: Collection[str]) -> str:
    """Return a name that no column has: the given one, or with underscores."""
    while name in columns:
        name += "_"
    return name


# Outliers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class WorstRow:
    """A row or sequence of low typicality.

    Attributes
    ----------
    row : int
        Its number in the table, from 1.
    typicality : float
        How typical it is.
    cells : dict of str to str
        Its cells, as the table has them; of a sequence, its id and length.
    features : data frame or ndarray of shape (T, d)
        What the model sees: one row, or the frames of the sequence.
    """

    row: int
    typicality: float
    cells: dict[str, str]
    features: Any


class Worst:
    """Keeps the rows of lowest typicality out of many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows: list[WorstRow] = []

    def add(
        self, chunk: Chunk, typicality: FloatArray, features: Callable[[int], Any]
    ) -> None:
        """Take note of the worst rows of a chunk.

        Parameters
        ----------
        chunk : Chunk
            The rows.
        typicality : ndarray of shape (n,)
            How typical they are.
        features : callable
            Returns what the model sees of a row, by its position.
        """
        for position in np.argsort(typicality, kind="stable")[: self._most].tolist():
            cells = {
                name: column.written(".", slice(position, position + 1))[0]
                for name, column in chunk.columns.items()
            }
            row = chunk.start + position + 1
            score = float(typicality[position])
            self.rows.append(WorstRow(row, score, cells, features(position)))
        self.rows = heapq.nsmallest(
            self._most, self.rows, key=lambda worst: (worst.typicality, worst.row)
        )


def typicalities(
    matching: Matching, chunk_rows: int, worst: Worst, console: Console
) -> FloatArray:
    """Return the typicality of all rows, and take note of the worst."""
    parts = []
    for chunk in console.track(matching.table.chunks(chunk_rows), "scoring"):
        frame = matching.frame(chunk)
        parts.append(matching.model.estimator.typicality(frame))
        worst.add(chunk, parts[-1], partial(_one_row, frame))
    return np.concatenate(parts)


def _one_row(frame: Any, position: int) -> Any:
    """Return a row of a table, as a table."""
    return take_rows(frame, np.array([position]))


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
    chunks: Iterable[Chunk], scores: FloatArray, level: float, write: Write
) -> None:
    """Write a table with the typicalities of its rows, and flags."""
    for chunk in chunks:
        part = scores[chunk.start : chunk.start + chunk.n_rows]
        write(joined(chunk.columns, flags(part, level)))


def flags(typicality: FloatArray, level: float) -> Columns:
    """Return how typical rows are, and which of them are outliers."""
    return {
        "typicality": TypedColumn.of(typicality),
        "outlier": TypedColumn.of(typicality < level),
    }
