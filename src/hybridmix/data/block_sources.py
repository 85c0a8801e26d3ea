"""Whatever comes in blocks: recognised, and read by what knows it."""

from __future__ import annotations

from hybridmix.data.block_readers import is_scannable
from hybridmix.data.block_reading import BlockSource
from hybridmix.data.dask_blocks import (
    DaskTable,
    is_dask_array,
    is_dask_frame,
    is_dask_series,
)
from hybridmix.data.scanning import scan


def source_of(X: object) -> BlockSource | None:
    """Return a table in blocks, also for what `scan` takes; None for all others."""
    if is_dask_frame(X):
        return DaskTable(X)
    if is_dask_array(X):
        return DaskTable.of_array(X)
    if is_dask_series(X):
        raise ValueError(
            "Expected a table, got a Dask series. X.to_frame() is a table of one column."
        )
    if is_scannable(X):
        return scan(X)
    return X if isinstance(X, BlockSource) else None
