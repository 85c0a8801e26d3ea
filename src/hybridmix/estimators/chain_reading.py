"""Reading sequences: for training, with labels and weights, and for prediction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from hybridmix._text import shown
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema, Table, read_table, read_training_table
from hybridmix.data.columns import Columns
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.sequence_blocks import TrainingSequenceRows
from hybridmix.data.sequence_rows import SequenceDataset, SequenceRows
from hybridmix.data.sequences import Sequences, read_sequences
from hybridmix.data.shape_options import ShapeOption
from hybridmix.data.suspects import warn_of_suspects
from hybridmix.data.weights import read_weights


class TrainingSequences(NamedTuple):
    """Sequences that were read to be trained on.

    Attributes
    ----------
    dataset : SequenceDataset or BlockedSequences
        The sequences, arranged for training.
    schema : Schema
        Of their frames.
    classes : ndarray of shape (C,)
        The labels.
    attributes : dict
        What to publish about them.
    """

    dataset: TrainingSequenceRows
    schema: Schema
    classes: np.ndarray
    attributes: dict[str, Any]


class EncodedSequences(NamedTuple):
    """Sequences that were read to be predicted.

    Attributes
    ----------
    sequences : Sequences
        As they were given.
    columns : Columns
        Their frames, column by column.
    table : Table
        Their frames, encoded.
    rows : SequenceRows
        The encoded sequences.
    """

    sequences: Sequences
    columns: Columns
    table: Table
    rows: SequenceRows

    @property
    def lengths(self) -> IntArray:
        """Numbers of frames, (n,)."""
        return self.rows.lengths

    def log_volume(self) -> FloatArray:
        """Return the log of the volume by which encoding shrank the densities, (n,)."""
        by_frame = np.broadcast_to(self.table.log_volume(), (self.table.n_rows,))
        return np.add.reduceat(by_frame, self.rows.starts)


def read_training_sequences(
    estimator: object,
    X: Any,
    lengths: Any,
    classes: np.ndarray,
    labels: IntArray | None,
    sample_weight: Any,
    categorical_features: Sequence[int | str | bool] | None,
    column_shapes: ShapeOption,
    scaling: str,
) -> TrainingSequences:
    """Read sequences to be trained on, and encode them by what their frames show.

    Parameters
    ----------
    estimator : estimator
        What is trained; it is not changed.
    X, lengths
        Sequences in any form that `read_sequences` knows.
    classes : ndarray of shape (C,)
        The labels.
    labels : ndarray of shape (n,) or None
        Class numbers; None if all sequences are of one class.
    sample_weight : array-like of shape (n,) or None
        Sample weights of the sequences.
    categorical_features, column_shapes, scaling
        As in `Schema.learn`.
    """
    sequences = read_sequences(X, lengths)
    n = len(sequences)
    if labels is not None and len(labels) != n:
        raise ValueError(
            f"y has {len(labels)} labels, but X has {n} sequences: pass one label for "
            "each sequence, not for each frame."
        )
    with naming_frames(sequences):
        columns, attributes = read_training_table(estimator, sequences.frames)
    if np.ndim(sample_weight) == 1 and len(sample_weight) != n:
        raise ValueError(
            f"sample_weight has {len(sample_weight)} weights, but X has {n} sequences: "
            "pass one weight for each sequence, not for each frame."
        )
    weights = read_weights(sample_weight, n)
    own = np.zeros(n, np.intp) if labels is None else labels
    by_frame = None if weights is None else np.repeat(weights, sequences.lengths)
    with naming_frames(sequences):
        schema = Schema.learn(
            columns,
            categorical_features,
            column_shapes,
            weights=by_frame,
            scaling=scaling,
            groups=None if labels is None else np.repeat(labels, sequences.lengths),
        )
        warn_of_suspects(columns, schema, categorical_features)
        table = schema.encode(columns)
    attributes["fingerprint_"] = Fingerprint.of(table, by_frame)
    dataset = SequenceDataset.arrange(table, sequences.lengths, own, weights)
    return TrainingSequences(dataset, schema, classes, attributes)


def read_encoded(
    estimator: object, schema: Schema, X: Any, lengths: Any
) -> EncodedSequences:
    """Read sequences, check their columns against those of training, and encode them."""
    sequences = read_sequences(X, lengths)
    with naming_frames(sequences):
        columns = read_table(estimator, sequences.frames)
        table = schema.encode(columns)
    rows = SequenceRows(table[:], sequences.lengths)
    return EncodedSequences(sequences, columns, table, rows)


@contextmanager
def naming_frames(sequences: Sequences) -> Iterator[None]:
    """Let errors about a row of all frames say of which sequence it is."""
    try:
        yield
    except (TypeError, ValueError) as error:
        named = re.search(r"\brow (\d+)", str(error))
        if named is None:
            raise
        row, ends = int(named[1]), np.cumsum(sequences.lengths)
        number = int(np.searchsorted(ends, row, side="right"))
        frame = row - int(ends[number] - sequences.lengths[number])
        ids = sequences.ids
        name = f"{number}" if ids is None else shown(ids[number])
        raise type(error)(
            f"{error} Of all frames, row {row} is frame {frame} of sequence {name}."
        ) from error
