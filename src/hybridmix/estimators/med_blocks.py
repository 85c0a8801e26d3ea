"""Tables in blocks as matrices of linear machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hybridmix._typing import IntArray
from hybridmix.data import Dataset, Rows
from hybridmix.data.block_reading import BlockSource
from hybridmix.data.matrices import finite_matrix
from hybridmix.estimators.blocks import refuse_blocks
from hybridmix.estimators.machines import ROW_MULTIPLIERS
from hybridmix.med.block_matrix import BlockMatrix
from hybridmix.training.discrimination import LabelledRows
from hybridmix.training.tubes import TargetRows

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame

SomeRows = TypeVar("SomeRows", LabelledRows, TargetRows)
# Rows in blocks of which this many at most are in memory to be calibrated by.
_MOST_CALIBRATED = 50_000


def read_block_matrix(
    source: BlockSource, others: Sequence[Any], remedy: str
) -> tuple[Any, dict[str, Any]]:
    """Read a table in blocks as a matrix; return also what to publish about it.

    A table with no more rows than columns is read into memory.

    Parameters
    ----------
    source : BlockSource
        The table.
    others : sequence
        Labels or targets, and weights; those that are names of columns, or lists of
        names, are not in the matrix.
    remedy : str
        What to do about missing values, as a sentence.
    """
    left_out = {name for given in others for name in _names_in(given)}
    source.check_columns(sorted(left_out))
    names = [name for name in source.names if name not in left_out]
    if not names:
        raise ValueError("The table has no column besides those of y and weights.")
    blocks, sizes = source.encoded(names, _MatrixEncoder(names, remedy))
    positions = tuple(map(np.arange, sizes))
    matrix: Any = BlockMatrix(blocks, positions, np.zeros(len(names)))
    if len(matrix) <= len(names):
        with closing_blocks(matrix):
            matrix = matrix[np.arange(len(matrix))]
    attributes: dict[str, Any] = {"n_features_in_": len(names)}
    if source.has_names:
        attributes["feature_names_in_"] = np.array(names, dtype=object)
    return matrix, attributes


def _names_in(given: Any) -> list[str]:
    """Return the columns that an argument names."""
    given = given if isinstance(given, list | tuple) else [given]
    return [name for name in given if isinstance(name, str)]


def refuse_unless_linear(estimator: Any, X: Any) -> None:
    """Refuse tables in blocks unless a solver needs products of rows only."""
    is_linear = isinstance(estimator.model, str) and estimator.model == "linear"
    has_switches = estimator.kernels is not None or estimator.inclusion < 1.0
    by_newton = estimator.solver in ("auto", "newton") and not has_switches
    if not is_linear or not by_newton or estimator.transduction is not None:
        refuse_blocks(estimator, X, ROW_MULTIPLIERS)


@dataclass(frozen=True)
class _MatrixEncoder:
    """Reads a block of complete rows of numbers; can be sent elsewhere."""

    names: list[str]
    remedy: str

    def __call__(self, frame: Frame) -> tuple[Dataset, int]:
        matrix = finite_matrix(frame.select(self.names).to_native(), self.remedy)
        n_rows = len(matrix)
        rows = Rows(np.ascontiguousarray(matrix.T), None, np.empty((0, n_rows), np.int32))
        return Dataset(rows, np.zeros(n_rows, np.intp), None), n_rows


@contextmanager
def closing_blocks(features: Any) -> Iterator[None]:
    """Close a matrix in blocks at the end; others need not be."""
    try:
        yield
    finally:
        if isinstance(features, BlockMatrix):
            features.close()


def kept_rows(rows: SomeRows, index: IntArray) -> SomeRows:
    """Return some rows, in ascending order; those in blocks stay where they are."""
    features = rows.features
    if not isinstance(features, BlockMatrix):
        return rows[index]
    # Indexing would read the features into memory.
    others = replace(rows, features=np.empty((len(features), 0)))[index]
    return replace(others, features=features.kept(index))


def rows_in_memory(rows: LabelledRows) -> LabelledRows:
    """Return all rows in memory, or up to 50,000 of those in blocks, evenly spread."""
    if not isinstance(rows.features, BlockMatrix):
        return rows
    step = max(1, -(-len(rows.labels) // _MOST_CALIBRATED))
    return rows[np.arange(0, len(rows.labels), step)]
