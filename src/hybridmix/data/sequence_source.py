"""Long tables in blocks whose rows are the frames of sequences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

import numpy as np

from hybridmix._text import shown
from hybridmix.data.block_labels import BlockLabels, Census, LabelColumns
from hybridmix.data.block_reading import (
    BlockNote,
    BlockSource,
    Wanted,
    encoded_blocks,
    learned_schema,
)
from hybridmix.data.encoded_blocks import EncodedBlocks
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.long_frames import (
    Arrangement,
    arrange_frame,
    as_ids,
    labelled_rows,
    labels_of,
    weights_of,
)
from hybridmix.data.rows import LabelledUnits
from hybridmix.data.schema import Schema
from hybridmix.data.sequence_blocks import BlockedSequences
from hybridmix.data.sequence_rows import SequenceDataset

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame

T = TypeVar("T")


@dataclass(frozen=True)
class LongColumns:
    """The columns of a long table that say which row is which frame.

    Attributes
    ----------
    sequence : tuple of str
        Columns that name the sequence of each row together.
    time : str or None
        The column by which the rows of a sequence are sorted.
    """

    sequence: tuple[str, ...]
    time: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return self.sequence if self.time is None else (*self.sequence, self.time)

    def arrange(self, frame: Frame) -> Arrangement:
        """Bring the rows of a block together by sequence."""
        return arrange_frame(frame, self.sequence, self.time)


class SequenceTable:
    """Sequences in a long table that comes in blocks; see `Sequences.from_long`.

    Every sequence is whole in one block.

    Parameters
    ----------
    source : BlockSource
        The table.
    columns : LongColumns
        Which row is which frame.
    target : str or None
        A column that is not one of the frames.

    Attributes
    ----------
    names : tuple of str
        Columns of the frames.
    ids : ndarray of shape (n,)
        What the sequences are called, in the order of predictions.
    """

    # Readers of tables in memory refuse it by this mark.
    is_block_source: ClassVar[bool] = True

    def __init__(
        self, source: BlockSource, columns: LongColumns, target: str | None = None
    ) -> None:
        others = [*columns.names, *([] if target is None else [target])]
        self.source = source.undivided(columns.sequence)
        self.columns = columns
        self.names = tuple(name for name in source.names if name not in others)
        self.ids = _distinct_ids(
            self.source.map(columns.sequence, partial(_ids_of, columns)), columns
        )

    @classmethod
    def of(
        cls, source: BlockSource, sequence: object, time: object, target: object
    ) -> SequenceTable:
        """Return the sequences of a table; see `Sequences.from_long`."""
        names = sequence if isinstance(sequence, list) else [sequence]
        given = [*names, *(name for name in (time, target) if name is not None)]
        if not source.has_names or not names:
            raise ValueError(
                "Sequences of a table in blocks are named by at least one of its "
                "columns: make a data frame of an array first."
            )
        source.check_columns(given)
        # All of them are columns of the table now, whose names are text.
        columns = LongColumns(cast(tuple[str, ...], tuple(names)), cast(str | None, time))
        return cls(source, columns, cast(str | None, target))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"SequenceTable({len(self)} sequences, columns={list(self.names)})"

    def joined(
        self, columns: Sequence[str], function: Callable[[object, Arrangement], object]
    ) -> object:
        """Put what a function returns for every block one after the other.

        Parameters
        ----------
        columns : sequence of str
            Columns that the function needs.
        function : callable
            Takes a block, as a data frame of the library that has read it, and how its
            rows are arranged. It returns an array.
        """
        needed = list(dict.fromkeys([*columns, *self.columns.names]))
        return self.source.joined(needed, _OnBlock(self.columns, function))

    def column(self, name: str) -> np.ndarray:
        """Return a column of labels, with one label for each sequence."""
        return np.asarray(self.joined([name], partial(_labels, name)))


@dataclass(frozen=True)
class _OnBlock:
    """Arranges a block for a function; can be sent elsewhere."""

    columns: LongColumns
    function: Callable[[object, Arrangement], object]

    def __call__(self, block: object, _number: int) -> np.ndarray:
        arrangement = self.columns.arrange(_frame(block))
        return np.asarray(self.function(block, arrangement))


def _labels(name: str, block: object, arrangement: Arrangement) -> np.ndarray:
    return labels_of(_frame(block), name, arrangement)


def _frame(block: object) -> Frame:
    import narwhals.stable.v2 as nw

    return nw.from_native(block, eager_only=True)


def _ids_of(columns: LongColumns, frame: Frame) -> list[Hashable]:
    return arrange_frame(frame, columns.sequence, None).ids.tolist()


def _distinct_ids(blocks: Iterator[list[Hashable]], columns: LongColumns) -> np.ndarray:
    """Join the ids of blocks, none of which may be in two of them."""
    ids: dict[Hashable, None] = {}
    for own in blocks:
        for name in own:
            if name in ids:
                keys = columns.sequence
                by = repr(keys[0] if len(keys) == 1 else list(keys))
                raise ValueError(
                    f"Sequence {shown(name)} is split: it has rows in two "
                    "partitions or blocks of the table, and every sequence must be whole "
                    f"in one of them. Sort the table by {by} before it is scanned; "
                    f"frame.shuffle({by}) brings the rows of a Dask data frame together."
                )
            ids[name] = None
    if not ids:
        raise ValueError("The table has no rows.")
    return as_ids(list(ids))


# Training -------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedSequences:
    """Sequences in blocks that are ready to be trained on.

    Attributes
    ----------
    schema : Schema
        What the frames show about the columns.
    dataset : BlockedSequences
        The encoded sequences; to be closed after training.
    classes : ndarray of shape (C,)
        The labels.
    fingerprint : Fingerprint
        Of all frames.
    """

    schema: Schema
    dataset: BlockedSequences
    classes: np.ndarray
    fingerprint: Fingerprint


def learned_sequences(table: SequenceTable, wanted: Wanted) -> LearnedSequences:
    """Learn a schema from all frames of a table, and encode the sequences by it.

    Parameters
    ----------
    table : SequenceTable
        The sequences.
    wanted : Wanted
        What to make of the columns.
    """
    keys, labels = table.columns, wanted.labels
    source = _ArrangedTable(table.source, keys, labels)
    by_sequence = _SequenceLabels(labels.target, labels.weight, keys.sequence)
    wanted = replace(wanted, labels=by_sequence)
    schema, known = learned_schema(source, wanted)
    encoder = _SequenceEncoder(schema, wanted, known, keys.sequence)
    dataset, fingerprint = encoded_blocks(
        source, wanted.columns, encoder, BlockedSequences
    )
    return LearnedSequences(schema, dataset, known.classes, fingerprint)


class _ArrangedTable(BlockSource):
    """A long table whose blocks are brought into the order of sequences and times.

    Every row has the label of its sequence.
    """

    def __init__(
        self, source: BlockSource, columns: LongColumns, labels: LabelColumns
    ) -> None:
        self.names = source.names
        self._source = source
        self._columns = columns
        self._labels = labels

    def _needed(self, columns: Sequence[str]) -> list[str]:
        return list(dict.fromkeys([*columns, *self._columns.names, *self._labels.names]))

    def _after(self, function: Callable[..., T]) -> _Arranged[T]:
        return _Arranged(self._columns, self._labels, function)

    def map(
        self,
        columns: Sequence[str],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for every arranged block; see `BlockSource`."""
        needed = self._needed(columns)
        return self._source.map(needed, self._after(function), *arguments)

    def encoded(
        self, columns: Sequence[str], function: Callable[[Frame], tuple[LabelledUnits, T]]
    ) -> tuple[EncodedBlocks, list[T]]:
        """Keep the encoded sequences of every block; see `BlockSource`."""
        return self._source.encoded(self._needed(columns), self._after(function))

    def joined(
        self, columns: Sequence[str], function: Callable[[object, int], np.ndarray]
    ) -> object:
        """Put results for blocks, as they are, one after the other."""
        return self._source.joined(columns, function)

    def completed(self, function: Callable[[object, int], object]) -> object:
        """Return the table, as it is, with what a function makes of its blocks."""
        return self._source.completed(function)


# What is done to blocks are objects of a module, which can be sent elsewhere.


@dataclass(frozen=True)
class _Arranged(Generic[T]):
    """Applies a function to an arranged block."""

    columns: LongColumns
    labels: LabelColumns
    function: Callable[..., T]

    def __call__(self, frame: Frame, *arguments: object) -> T:
        arrangement = self.columns.arrange(frame)
        arranged = frame[arrangement.order]
        target, weight = self.labels.target, self.labels.weight
        if target is not None:
            rows = labelled_rows(frame, target, arrangement)
            filled = frame[target][np.repeat(rows, arrangement.lengths)]
            arranged = arranged.with_columns(filled.alias(target))
        if weight is not None:
            weights_of(frame, weight, arrangement)
        return self.function(arranged, *arguments)


@dataclass(frozen=True)
class _SequenceLabels(LabelColumns):
    """The columns of labels and weights of sequences, whose frames all have them.

    Attributes
    ----------
    sequence : tuple of str
        Columns that name sequences.
    """

    sequence: tuple[str, ...]

    def census(self, frame: Frame) -> Census:
        """Count the labels of sequences; rows of positive weight are counted as rows."""
        starts = arrange_frame(frame, self.sequence, None).starts
        by_row = super().census(frame)
        return {
            label: replace(tally, n_weighted=by_row[label].n_weighted)
            for label, tally in super().census(frame[starts]).items()
        }


@dataclass(frozen=True)
class _SequenceEncoder:
    """Encodes the sequences of an arranged block."""

    schema: Schema
    wanted: Wanted
    labels: BlockLabels
    sequence: tuple[str, ...]

    def __call__(self, frame: Frame) -> tuple[SequenceDataset, BlockNote]:
        arrangement = arrange_frame(frame, self.sequence, None)
        labels, weights = self.labels.read(frame)
        table = self.schema.encode(self.wanted.read(frame))
        starts = arrangement.starts
        block = SequenceDataset.arrange(
            table,
            arrangement.lengths,
            labels[starts],
            None if weights is None else weights[starts],
        )
        return block, BlockNote.of(block, len(self.labels.classes), table, weights)
