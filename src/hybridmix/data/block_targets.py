"""Tables in blocks with real targets: rows and targets are encoded side by side."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybridmix.data.block_labels import BlockLabels
from hybridmix.data.block_reading import (
    BlockNote,
    BlockSource,
    Wanted,
    encoded_blocks,
    learned_schema,
)
from hybridmix.data.blocks import BlockedDataset
from hybridmix.data.columns import Columns
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.rows import Dataset
from hybridmix.data.schema import Schema
from hybridmix.data.targets import PairedRows, read_targets

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame


@dataclass(frozen=True)
class WantedTargets(Wanted):
    """What to make of the columns of targets.

    Attributes
    ----------
    is_vector : bool
        Whether there is a single target, as a vector.
    """

    is_vector: bool = True

    def read(self, frame: Frame) -> Columns:
        """Read the targets of a block, as those of a table in memory would be."""
        if self.is_vector:
            return read_targets(frame[self.features[0]].to_numpy())[0]
        part = frame.select(list(self.features))
        return read_targets(part.to_native() if self.has_names else part.to_numpy())[0]


@dataclass(frozen=True)
class LearnedPairs:
    """A table in blocks, with targets, that is ready to be trained on.

    Attributes
    ----------
    schema, target_schema : Schema
        What the rows show about the columns, and about the targets.
    dataset : BlockedDataset
        The encoded rows, with targets after all other columns; to be closed after
        training.
    fingerprint : Fingerprint
        Of all rows, without their targets.
    """

    schema: Schema
    target_schema: Schema
    dataset: BlockedDataset
    fingerprint: Fingerprint


def learned_pairs(
    source: BlockSource, wanted: Wanted, targets: WantedTargets
) -> LearnedPairs:
    """Learn the schemas of a table and of its targets, and encode rows by both.

    Parameters
    ----------
    source : BlockSource
        The table.
    wanted, targets : Wanted
        What to make of its columns.
    """
    schema, labels = learned_schema(source, wanted)
    try:
        with warnings.catch_warnings():
            # It warns of empty columns, which are refused as targets.
            warnings.simplefilter("ignore")
            target_schema, _ = learned_schema(source, targets)
    except ValueError as error:
        error.add_note(f"The table in question is y: {', '.join(targets.features)}.")
        raise
    _check_targets(target_schema, targets)
    encoder = _PairEncoder(schema, target_schema, wanted, targets, labels)
    columns = [*wanted.features, *targets.columns]
    dataset, fingerprint = encoded_blocks(source, columns, encoder, BlockedDataset)
    return LearnedPairs(schema, target_schema, dataset, fingerprint)


def _check_targets(schema: Schema, targets: WantedTargets) -> None:
    """Refuse targets that are categories, or have no value in a row of some weight."""
    for place, name in enumerate(targets.features):
        if place in schema.categorical:
            raise ValueError(f"The target {name!r} does not hold numbers.")
        if place not in schema.real:
            raise ValueError(f"The target {name!r} has no observed value.")


@dataclass(frozen=True)
class _PairEncoder:
    """Encodes a block with its targets, and arranges its rows for training."""

    schema: Schema
    target_schema: Schema
    wanted: Wanted
    targets: WantedTargets
    labels: BlockLabels

    def __call__(self, frame: Frame) -> tuple[Dataset, BlockNote]:
        labels, weights = self.labels.read(frame)
        table = self.schema.encode(self.wanted.read(frame))
        targets = self.target_schema.encode(self.targets.read(frame))
        rows = PairedRows(table, targets, self.target_schema)
        block = Dataset.arrange(rows, labels, weights)
        return block, BlockNote.of(block, len(self.labels.classes), table, weights)
