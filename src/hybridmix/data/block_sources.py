"""Whatever comes in blocks: recognised, and read by what knows it."""

from __future__ import annotations

from os import PathLike

from hybridmix.data.block_reading import BlockSource
from hybridmix.data.dask_blocks import DaskTable, is_dask_array, is_dask_frame
from hybridmix.data.scanning import scan


def source_of(X: object) -> BlockSource | None:
    """Return a table in blocks, also for the path of one; None for all other tables."""
    if is_dask_frame(X):
        return DaskTable(X)
    if is_dask_array(X):
        return DaskTable.of_array(X)
    if isinstance(X, str | PathLike):
        return scan(X)
    return X if isinstance(X, BlockSource) else None
