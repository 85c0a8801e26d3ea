"""Which cells make a row or a sequence unusual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hybridmix._typing import FloatArray
from hybridmix.cli.models import Matching, Model, columns_of
from hybridmix.data.sequences import Sequences
from hybridmix.tasks.base import quiet

# At most this many cells of a row are named.
_MOST_CELLS = 3
# Cells of copies in memory at a time.
_MOST_COPIED = 2_000_000
# Smaller rises of the log probability are not worth a word.
_LEAST_RISE = 0.1


@dataclass(frozen=True)
class GuiltyCell:
    """A cell without which a row is more typical.

    Attributes
    ----------
    column : str
        Its column; of a sequence, all of its cells in the column.
    expected : object
        What the model would put there, given the cells that are not guilty; None for
        sequences.
    typicality : float
        That of the row without this cell and the guilty ones before it.
    """

    column: str
    expected: Any
    typicality: float


def guilty_cells(
    matching: Matching, rows: Any, typicality: float, level: float
) -> list[GuiltyCell]:
    """Find the cells that make a row or a sequence unusual.

    The cell without which it is most typical is hidden, then the next one, until it is
    not an outlier any more, three cells are hidden, or hiding more does not help.

    Parameters
    ----------
    matching : Matching
        The model, and where it finds its columns in the table.
    rows : data frame or ndarray of shape (T, d)
        The row, or the frames of the sequence.
    typicality : float
        How typical it is.
    level : float
        Below this it is an outlier; others have no guilty cells.
    """
    model = matching.model
    found: list[tuple[int, float]] = []
    with quiet():
        while typicality < level and len(found) < _MOST_CELLS:
            scores = _scores_without_each(model, rows)
            best = int(scores.argmax())
            if scores[best] < typicality + _LEAST_RISE:
                break
            typicality = float(scores[best])
            rows = _without(rows, best)
            found.append((best, typicality))
        expected: Any = [None] * len(model.column_names)
        if found and not model.is_sequential:
            expected = [values[0] for values in columns_of(model.estimator.impute(rows))]
    return [
        GuiltyCell(str(matching.sources[j]), expected[j], score) for j, score in found
    ]


def _scores_without_each(model: Model, rows: Any) -> FloatArray:
    """Return how typical a row or sequence is without each of its columns, (d,)."""
    n_frames, n_columns = rows.shape
    step = max(_MOST_COPIED // rows.size, 1)
    parts = [
        _typicality(model, [_without(rows, j) for j in columns], n_frames)
        for columns in np.array_split(range(n_columns), -(-n_columns // step))
    ]
    return np.concatenate(parts)


def _typicality(model: Model, copies: Sequence[Any], n_frames: int) -> FloatArray:
    """Return how typical some rows, or sequences of a length, are."""
    is_array = isinstance(copies[0], np.ndarray)
    stacked = np.concatenate(copies) if is_array else pd.concat(copies, ignore_index=True)
    if model.is_sequential:
        stacked = Sequences(stacked, np.full(len(copies), n_frames))
    scores: FloatArray = model.estimator.typicality(stacked)
    return scores


def _without(rows: Any, column: int) -> Any:
    """Return a copy of rows that lack a column."""
    copy = rows.copy()
    if isinstance(copy, np.ndarray):
        copy[:, column] = np.nan if copy.dtype.kind == "f" else None
        return copy
    dtype = copy.dtypes.iloc[column]
    empty: Any = [np.nan if dtype.kind == "f" else None] * len(copy)
    copy[copy.columns[column]] = pd.Series(empty, index=copy.index, dtype=dtype)
    return copy
