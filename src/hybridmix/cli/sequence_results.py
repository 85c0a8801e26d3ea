"""What models say about the sequences of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.cli.cells import Column, TypedColumn
from hybridmix.cli.choices import refuse
from hybridmix.cli.console import Console
from hybridmix.cli.models import Matching, Model
from hybridmix.cli.results import (
    Worst,
    drawn_columns,
    flags,
    free_name,
    joined,
    level_of,
    predicted_groups,
)
from hybridmix.cli.sequences import one_label_each
from hybridmix.cli.tables import CHUNK_ROWS, Chunk, InputError
from hybridmix.cli.targets import read_all
from hybridmix.data.long_frames import Arrangement
from hybridmix.data.sequences import Sequences
from hybridmix.data.stacking import slice_rows, take_rows

Columns = dict[str, Column]


@dataclass(frozen=True)
class FileSequences:
    """The sequences of a file.

    Attributes
    ----------
    sequences : Sequences
        As an estimator takes them, with their ids.
    arrangement : Arrangement
        Which rows of the file they are made of.
    labels : ndarray of shape (n,) or None
        Their labels, None where missing; None if the table has none.
    """

    sequences: Sequences
    arrangement: Arrangement
    labels: np.ndarray | None


def read_file_sequences(
    matching: Matching, console: Console, target: str | None = None
) -> FileSequences:
    """Read a whole table as sequences for a model, with their labels if it has any."""
    model, table = matching.model, matching.table
    keys = model.keys
    cells: dict[str, list[str | None]] = {name: [] for name in keys.roles}

    def noted() -> Iterator[Chunk]:
        for chunk in console.track(table.chunks(CHUNK_ROWS), "reading"):
            for name, own in cells.items():
                own.extend(chunk.columns[name].texts(model.marks))
            yield chunk

    X, y = read_all(matching, noted(), target)
    arrangement = keys.arrange(cells, table)
    frames = take_rows(X, arrangement.order)
    sequences = Sequences(frames, arrangement.lengths, arrangement.ids)
    if y is None:
        return FileSequences(sequences, arrangement, None)
    [name] = model.target_columns(target)
    labels = np.array(one_label_each(y.tolist(), name, arrangement), dtype=object)
    return FileSequences(sequences, arrangement, labels)


def predicted(
    matching: Matching,
    keep: str,
    kept: list[str],
    per_frame: bool,
    with_density: bool,
    coverage: float | None,
    chunk_rows: int,
    console: Console,
) -> Iterator[Columns]:
    """Yield what a model says about the sequences of a table, or about its rows."""
    refuse({"--coverage": coverage}, "is for regressors.")
    if per_frame:
        refuse({"--density": with_density}, "is about sequences: leave out --per-frame.")
    elif keep != "all":
        raise InputError(
            f"--keep {keep}: the result has a row for each sequence, with its id. Add "
            "--per-frame to keep rows of the table."
        )
    read = read_file_sequences(matching, console)
    if per_frame:
        yield from _rows_with_states(matching, read, kept, chunk_rows)
    else:
        yield _of_sequences(matching, read, with_density)


def _of_sequences(matching: Matching, read: FileSequences, with_density: bool) -> Columns:
    """Return ids, lengths and predictions, a row for each sequence."""
    model, estimator = matching.model, matching.model.estimator
    new: Columns = {}
    if model.is_classifier:
        new |= predicted_groups(model, read.sequences)
    if with_density or not model.is_classifier:
        new["log_density"] = TypedColumn.of(estimator.score_samples(read.sequences))
    if with_density:
        new |= flags(estimator.typicality(read.sequences), level_of(estimator))
    return joined(_named(matching, read), new)


def _named(matching: Matching, read: FileSequences) -> Columns:
    """Return the ids and lengths of sequences."""
    ids = matching.model.keys.id_columns(read.arrangement.ids)
    columns: Columns = {name: TypedColumn.of(values) for name, values in ids.items()}
    return joined(columns, {"frames": TypedColumn.of(read.sequences.lengths)})


def _rows_with_states(
    matching: Matching, read: FileSequences, kept: list[str], chunk_rows: int
) -> Iterator[Columns]:
    """Yield the rows of a table with their states, in chunks.

    The states are those of the most probable path through the chain of the predicted
    class.
    """
    estimator, sequences = matching.model.estimator, read.sequences
    values: dict[str, np.ndarray] = {}
    if matching.model.is_classifier:
        values["predicted"] = np.repeat(estimator.predict(sequences), sequences.lengths)
    values["state"] = np.concatenate(estimator.decode(sequences)[1])
    places = np.argsort(read.arrangement.order)
    for chunk in matching.table.chunks(chunk_rows):
        rows = places[chunk.start : chunk.start + chunk.n_rows]
        new: Columns = {
            name: TypedColumn.of(own[rows].tolist()) for name, own in values.items()
        }
        yield joined({name: chunk.columns[name] for name in kept}, new)


def completions(
    matching: Matching, chunk_rows: int, console: Console
) -> Iterator[tuple[Chunk, Any]]:
    """Yield the rows of a table in chunks, each with its columns of the model filled.

    What is filled in follows from the whole sequence of a row.
    """
    read = read_file_sequences(matching, console)
    completed = matching.model.estimator.impute(read.sequences).frames
    in_file = take_rows(completed, np.argsort(read.arrangement.order))
    for chunk in matching.table.chunks(chunk_rows):
        yield chunk, slice_rows(in_file, chunk.start, chunk.start + chunk.n_rows)


def typicalities(
    matching: Matching, worst: Worst, console: Console
) -> tuple[list[Chunk], FloatArray]:
    """Return ids and lengths of sequences and how typical they are; note the worst."""
    read = read_file_sequences(matching, console)
    chunk = Chunk(0, _named(matching, read), 1.0)
    scores = matching.model.estimator.typicality(read.sequences)
    frames = read.sequences.frames
    ends = [0, *np.cumsum(read.sequences.lengths).tolist()]
    worst.add(chunk, scores, lambda k: slice_rows(frames, ends[k], ends[k + 1]))
    return [chunk], scores


def drawn(model: Model, n_sequences: int, seed: int) -> Columns:
    """Return frames of sequences that are drawn from a model, with ids and times.

    Sequences have numbers from 1, and so have their frames.
    """
    sequences, labels = model.estimator.sample(n_sequences, random_state=seed)
    lengths = sequences.lengths
    own = drawn_columns(model, sequences.frames)
    ids = np.repeat(np.arange(1, n_sequences + 1), lengths)
    times = np.concatenate([np.arange(1, length + 1) for length in lengths])
    columns: Columns = {}
    for name in model.keys.sequence or ("sequence",):
        columns[free_name(name, own)] = TypedColumn.of(ids)
    columns[free_name(model.keys.time or "time", {**own, **columns})] = TypedColumn.of(
        times
    )
    columns |= own
    if model.is_classifier:
        [name] = model.target_labels
        by_frame = np.repeat(labels, lengths).tolist()
        columns[free_name(name, columns)] = TypedColumn.of(by_frame)
    return columns
