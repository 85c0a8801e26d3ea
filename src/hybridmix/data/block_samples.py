"""Some rows of a table in blocks, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from hybridmix.data.block_reading import BlockSource

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame


def spread_rows(source: BlockSource, columns: Sequence[str], most: int) -> Frame:
    """Return up to this many rows of a table, at equal distances from each other.

    Parameters
    ----------
    source : BlockSource
        The table.
    columns : sequence of str
        Columns to return.
    most : int
        The largest number of rows.
    """
    import narwhals.stable.v2 as nw

    source.check_columns(columns)
    sizes = list(source.map(columns[:1], _n_rows))
    step = max(1, -(-sum(sizes) // most))
    firsts = list(accumulate(sizes, initial=0))[:-1]
    return nw.concat(list(source.map(columns, _EveryNth(step), firsts)))


def _n_rows(frame: Frame) -> int:
    return int(frame.shape[0])


@dataclass(frozen=True)
class _EveryNth:
    """Takes every step-th row of the table; can be sent elsewhere."""

    step: int

    def __call__(self, frame: Frame, n_before: int) -> Frame:
        return frame[-n_before % self.step :: self.step]
