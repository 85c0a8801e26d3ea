"""From a table in blocks to a schema and to encoded blocks, by a few passes over it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.block_errors import check_same_columns
from hybridmix.data.block_labels import BlockLabels, LabelColumns
from hybridmix.data.blocks import BlockedDataset, BlockedUnits
from hybridmix.data.columns import Columns, as_frame, read_columns
from hybridmix.data.encoded_blocks import BlockSize, EncodedBlocks
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.naming import column_roles
from hybridmix.data.rows import Dataset, LabelledUnits
from hybridmix.data.schema import Schema
from hybridmix.data.shape_options import (
    MOST_SEARCHED,
    PLAIN,
    ShapeOption,
    learned_shapes,
)
from hybridmix.data.shapes import ColumnShape
from hybridmix.data.summaries import TableSummary, relative_weights

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame
    from hybridmix.data.table import Table

T = TypeVar("T")
B = TypeVar("B", bound=BlockedUnits)


class BlockSource(ABC):
    """A table that comes in blocks of rows: the same ones in every pass.

    Attributes
    ----------
    names : tuple of str
        Columns of the table.
    has_names : bool
        Whether these are names of the user's; otherwise, they are positions.
    """

    names: tuple[str, ...]
    has_names: bool = True
    # Readers of tables in memory refuse it by this mark.
    is_block_source: ClassVar[bool] = True

    @abstractmethod
    def map(
        self,
        columns: Sequence[str],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for every block, in their order.

        Parameters
        ----------
        columns : sequence of str
            Columns that the function needs.
        function : callable
            Takes a block, as a narwhals frame, and its own element of each argument.
        *arguments : sequences
            With an element for each block.
        """

    @abstractmethod
    def encoded(
        self, columns: Sequence[str], function: Callable[[Frame], tuple[LabelledUnits, T]]
    ) -> tuple[EncodedBlocks, list[T]]:
        """Keep the encoded rows of every block; return what else there is to say of it.

        Parameters
        ----------
        columns : sequence of str
            Columns that the function needs.
        function : callable
            Encodes a block, a narwhals frame, and says something about it.
        """

    @abstractmethod
    def joined(
        self, columns: Sequence[str], function: Callable[[object, int], np.ndarray]
    ) -> object:
        """Put what a function returns for every block one after the other.

        The function takes a block, as what a user would pass in its place (a frame of the
        library that has read it, or an array), and its number. It returns an array with
        one line for each row.
        """

    def undivided(self, columns: Sequence[str]) -> BlockSource:
        """Return the table in blocks that end where the values of columns change.

        Blocks that cannot be cut anew are left as they are.
        """
        return self

    def column(self, name: str) -> object:
        """Return a column, such as one of labels, as an array."""
        return self.joined([name], partial(_array, name=name))

    def added(self, argument: str, given: object) -> tuple[BlockSource, tuple[str, ...]]:
        """Return the table with labels or weights, and the names of their columns.

        Parameters
        ----------
        argument : str
            What is given: ``"y"`` or ``"sample_weight"``.
        given : object
            What a user gave for it, which is not the name of a column.
        """
        raise TypeError(
            f"{argument} must name a column of the table, since that is read block by "
            f"block; got a {type(given).__name__}."
        )

    @abstractmethod
    def completed(self, function: Callable[[object, int], object]) -> object:
        """Return the table with what a function makes of its blocks and their numbers."""

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse columns that the table does not have."""
        for name in columns:
            if name not in self.names:
                raise ValueError(
                    f"There is no column {name!r} in the table; it has "
                    f"{', '.join(self.names)}."
                )


def _array(block: object, _number: int, name: str) -> np.ndarray:
    frame = as_frame(block)
    if frame is None:
        return np.asarray(block)[:, 0]
    return np.asarray(frame[name].to_numpy())


@dataclass(frozen=True)
class Wanted:
    """What to make of the columns of a table.

    Attributes
    ----------
    features : tuple of str
        Columns to be modelled.
    labels : LabelColumns
        Columns of labels and weights.
    categorical, shapes : object
        The options ``categorical_features`` and ``column_shapes``.
    scaling : str
        As in `Schema.learn`.
    unlabelled, class_weight : object
        As in `HybridMixtureClassifier`.
    has_names : bool
        Whether the columns have names, or are those of an array.
    """

    features: tuple[str, ...]
    labels: LabelColumns
    categorical: Sequence[int | str | bool] | None
    shapes: ShapeOption
    scaling: str
    unlabelled: object = None
    class_weight: object = None
    has_names: bool = True

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [*self.features, *self.labels.names]

    def read(self, frame: Frame) -> Columns:
        """Read the features of a block, as those of a table in memory would be."""
        part = frame.select(list(self.features))
        return read_columns(part.to_native() if self.has_names else part.to_numpy())


@dataclass(frozen=True)
class LearnedBlocks:
    """A table in blocks that is ready to be trained on.

    Attributes
    ----------
    schema : Schema
        What the rows show about the columns.
    dataset : BlockedDataset
        The encoded rows; to be closed after training.
    classes : ndarray of shape (C,)
        The labels.
    fingerprint : Fingerprint
        Of all rows.
    """

    schema: Schema
    dataset: BlockedDataset
    classes: np.ndarray
    fingerprint: Fingerprint


def learned_blocks(source: BlockSource, wanted: Wanted) -> LearnedBlocks:
    """Learn a schema from all rows of a table, and encode them by it.

    There are four passes over the table: three of `learned_schema`, and one to encode.

    Parameters
    ----------
    source : BlockSource
        The table.
    wanted : Wanted
        What to make of its columns.
    """
    schema, labels = learned_schema(source, wanted)
    encoder = _Encoder(schema, wanted, labels)
    dataset, fingerprint = encoded_blocks(source, wanted.columns, encoder, BlockedDataset)
    return LearnedBlocks(schema, dataset, labels.classes, fingerprint)


def learned_schema(source: BlockSource, wanted: Wanted) -> tuple[Schema, BlockLabels]:
    """Learn a schema from all rows of a table, and which labels and weights they have.

    There are three passes: over labels and weights, over rows that show the shapes of
    columns, and over all rows for categories and moments. The parameters are those of
    `learned_blocks`.
    """
    source.check_columns(wanted.columns)
    if not wanted.features:
        raise ValueError("The table has no column besides those of y and weights.")
    reader = _Reader(source, wanted)
    labels = reader.labels()
    shapes = reader.shapes(labels)
    return reader.schema(labels, shapes), labels


def encoded_blocks(
    source: BlockSource,
    columns: Sequence[str],
    encoder: Callable[[Frame], tuple[LabelledUnits, BlockNote]],
    kind: type[B],
) -> tuple[B, Fingerprint]:
    """Encode all blocks of a table; return also the fingerprint of its rows."""
    blocks, notes = source.encoded(columns, encoder)
    fingerprint = reduce(Fingerprint.merge, [own.fingerprint for own in notes])
    return kind.of(blocks, [own.size for own in notes]), fingerprint


class _Reader:
    """The passes over a table that come before its rows are encoded."""

    def __init__(self, source: BlockSource, wanted: Wanted) -> None:
        self._source = source
        self._wanted = wanted
        self._n_eligible: list[int] = []

    def labels(self) -> BlockLabels:
        """Count labels and weights."""
        columns = self._wanted.labels
        names = columns.names or self._wanted.features[:1]
        censuses = list(self._source.map(names, columns.census))
        if not any(tally.n_rows for own in censuses for tally in own.values()):
            raise ValueError(
                "Found array with 0 sample(s) while a minimum of 1 is required: the "
                "table has no rows."
            )
        labels = BlockLabels.of(
            columns, censuses, self._wanted.unlabelled, self._wanted.class_weight
        )
        self._n_eligible = [labels.n_eligible(own) for own in censuses]
        return labels

    def shapes(self, labels: BlockLabels) -> dict[int, ColumnShape]:
        """Choose shapes of columns by rows that are spread over all blocks."""
        if self._wanted.shapes == PLAIN:
            return {}
        import narwhals.stable.v2 as nw

        step = max(1, -(-sum(self._n_eligible) // MOST_SEARCHED))
        firsts = list(accumulate(self._n_eligible, initial=0))[:-1]
        spread = _Spread(labels, step)
        parts = list(self._source.map(self._wanted.columns, spread, firsts))
        sample = nw.concat([frame for frame, _, _ in parts])
        columns = self._wanted.read(sample)
        real, _ = column_roles(columns, self._wanted.categorical)
        groups = np.concatenate([own for _, own, _ in parts])
        weights = None
        if labels.scale is not None:
            weights = np.concatenate([own for _, _, own in parts])
        has_classes = self._wanted.labels.target is not None
        return learned_shapes(
            self._wanted.shapes,
            columns,
            real,
            weights,
            groups if has_classes else None,
            self._wanted.scaling,
        )

    def schema(self, labels: BlockLabels, shapes: dict[int, ColumnShape]) -> Schema:
        """Find categories and moments of all rows."""
        summarise = _Summariser(self._wanted, labels, shapes)
        notes = list(self._source.map(self._wanted.columns, summarise))
        _, columns = notes[0]
        real, categorical = column_roles(columns, self._wanted.categorical)
        for _, others in notes[1:]:
            own, _ = column_roles(others, self._wanted.categorical)
            check_same_columns(real, own, self._wanted.features)
        summary = reduce(TableSummary.merged, [own for own, _ in notes])
        return Schema.from_summary(
            columns, real, categorical, summary, self._wanted.scaling, shapes
        )


# What is done to blocks are objects of a module, which can be sent elsewhere.


@dataclass(frozen=True)
class _Spread:
    """Takes every step-th row of those that have a label and a weight."""

    labels: BlockLabels
    step: int

    def __call__(
        self, frame: Frame, n_before: int
    ) -> tuple[Frame, IntArray, FloatArray | None]:
        labels, weights = self.labels.read(frame)
        is_eligible = labels >= 0 if weights is None else (labels >= 0) & (weights > 0.0)
        rows = np.flatnonzero(is_eligible)
        rows = rows[-n_before % self.step :: self.step]
        return frame[rows], labels[rows], None if weights is None else weights[rows]


@dataclass(frozen=True)
class _Summariser:
    """Summarises the columns of a block."""

    wanted: Wanted
    labels: BlockLabels
    shapes: dict[int, ColumnShape]

    def __call__(self, frame: Frame) -> tuple[TableSummary, Columns]:
        _, weights = self.labels.read(frame)
        relative = None
        if weights is not None and self.labels.scale is not None:
            relative = relative_weights(weights, self.labels.scale.largest)
        columns = self.wanted.read(frame)
        real, categorical = column_roles(columns, self.wanted.categorical)
        summary = TableSummary.of(columns, real, categorical, relative, self.shapes)
        # Rows that are picked are copied; a slice would keep the whole block in memory.
        return summary, self.wanted.read(frame[[0]])


@dataclass(frozen=True)
class BlockNote:
    """What is known of an encoded block."""

    size: BlockSize
    fingerprint: Fingerprint

    @classmethod
    def of(
        cls,
        block: LabelledUnits,
        n_classes: int,
        table: Table,
        weights: FloatArray | None,
    ) -> BlockNote:
        """Look at the rows of a block, arranged and as they came."""
        return cls(BlockSize.of(block, n_classes), Fingerprint.of(table, weights))


@dataclass(frozen=True)
class _Encoder:
    """Encodes a block, and arranges its rows for training."""

    schema: Schema
    wanted: Wanted
    labels: BlockLabels

    def __call__(self, frame: Frame) -> tuple[Dataset, BlockNote]:
        labels, weights = self.labels.read(frame)
        table = self.schema.encode(self.wanted.read(frame))
        block = Dataset.arrange(table, labels, weights)
        return block, BlockNote.of(block, len(self.labels.classes), table, weights)
