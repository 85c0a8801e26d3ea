"""What models say about the sequences of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hybridmix.cli.cells import Column, TypedColumn
from hybridmix.cli.choices import refuse
from hybridmix.cli.console import Console
from hybridmix.cli.models import Matching
from hybridmix.cli.results import flags, joined, level_of, predicted_groups
from hybridmix.cli.sequences import one_label_each
from hybridmix.cli.tables import CHUNK_ROWS, Chunk, InputError
from hybridmix.cli.targets import read_all
from hybridmix.data.long_frames import Arrangement
from hybridmix.data.sequences import Sequences
from hybridmix.data.stacking import take_rows

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
    ids: Columns = {
        name: TypedColumn.of(values)
        for name, values in model.keys.id_columns(read.arrangement.ids).items()
    }
    new: Columns = {"frames": TypedColumn.of(read.sequences.lengths)}
    if model.is_classifier:
        new |= predicted_groups(model, read.sequences)
    if with_density or not model.is_classifier:
        new["log_density"] = TypedColumn.of(estimator.score_samples(read.sequences))
    if with_density:
        new |= flags(estimator.typicality(read.sequences), level_of(estimator))
    return joined(ids, new)


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
