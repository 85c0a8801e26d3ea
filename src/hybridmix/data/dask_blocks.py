"""Dask data frames: blocks are partitions, and stay on the workers of a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hybridmix._typing import Sum
from hybridmix.data.block_reading import BlockSource
from hybridmix.data.blocks import EncodedBlocks
from hybridmix.data.rows import Dataset

if TYPE_CHECKING:
    import dask.array
    import dask.dataframe
    import pandas
    from dask.delayed import Delayed

    from hybridmix.data.frames import Frame

T = TypeVar("T")
# Sums are added on the workers in groups of this many, and then sums of groups.
_GROUP = 8


def is_dask_frame(X: object) -> bool:
    """Return whether a table is a Dask data frame, without importing Dask."""
    kind = type(X)
    return kind.__module__.startswith("dask.") and kind.__name__ == "DataFrame"


class DaskTable(BlockSource):
    """A Dask data frame; its partitions are the blocks, except for empty ones.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        The table.
    """

    def __init__(self, frame: dask.dataframe.DataFrame) -> None:
        self._frame = frame
        self.names = tuple(map(str, frame.columns))

    @cached_property
    def _partitions(self) -> list[Delayed]:
        # Columns that are asked for one by one may come in different partitions.
        return self._frame.to_delayed()

    @cached_property
    def _filled(self) -> list[Delayed]:
        from dask.base import compute
        from dask.delayed import delayed

        sizes = compute(*(delayed(len)(part) for part in self._partitions))
        return [part for part, n in zip(self._partitions, sizes, strict=True) if n]

    def added(self, argument: str, given: object) -> tuple[BlockSource, str]:
        """Return the table with a series of labels or weights as a further column."""
        if not hasattr(given, "map_partitions"):
            return super().added(argument, given)
        name = f"__{argument}__"
        meta = self._frame._meta.assign(**{name: given._meta})  # type: ignore[attr-defined]
        frame = self._frame.map_partitions(
            _with_column, given, name, align_dataframes=False, meta=meta
        )
        return DaskTable(frame), name

    def _mapped(
        self,
        columns: Sequence[str],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> list[Delayed]:
        from dask.delayed import delayed

        # Part of the graph, so that a block that is lost can be computed again.
        shared = delayed(partial(_on_frame, list(columns), function), traverse=False)
        if not arguments:
            return [shared(part) for part in self._filled]
        return [shared(*own) for own in zip(self._filled, *arguments, strict=True)]

    def map(
        self,
        columns: Sequence[str],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for every block; see `BlockSource`."""
        from dask.base import compute

        yield from compute(*self._mapped(columns, function, *arguments))

    def encoded(
        self, columns: Sequence[str], function: Callable[[Frame], tuple[Dataset, T]]
    ) -> tuple[EncodedBlocks, list[T]]:
        """Keep the encoded rows of every block on the workers; see `BlockSource`."""
        from dask.base import compute, persist

        pairs = persist(*self._mapped(columns, function))
        notes = compute(*(pair[1] for pair in pairs))
        # Taking the pairs apart would be a task of every block in every iteration.
        blocks = persist(*(pair[0] for pair in pairs))
        return DaskBlocks(list(blocks)), list(notes)

    def joined(
        self, columns: Sequence[str], function: Callable[[object], np.ndarray]
    ) -> dask.array.Array:
        """Return what a function returns for all rows, as a lazy array."""
        import dask.array
        from dask.delayed import delayed

        self.check_columns(columns)
        with warnings.catch_warnings():
            # The rows of the example are made up.
            warnings.simplefilter("ignore")
            example = function(self._frame._meta_nonempty[list(columns)])
        shared = delayed(partial(_on_rows, list(columns), function, example[:0]))
        shape = (np.nan, *example.shape[1:])
        parts = [
            dask.array.from_delayed(shared(part), shape, example.dtype)
            for part in self._partitions
        ]
        return dask.array.concatenate(parts)

    def completed(self, function: Callable[[object], object]) -> object:
        """Return the table with what a function makes of it, as a lazy data frame."""
        return self._frame.map_partitions(
            partial(_on_filled, function), meta=self._frame._meta
        )


class DaskBlocks:
    """Encoded blocks on the workers of a cluster, or in memory without one.

    Parameters
    ----------
    blocks : list of Delayed
        The blocks, each a `Dataset`.
    """

    def __init__(self, blocks: list[Delayed]) -> None:
        self._blocks = blocks

    def close(self) -> None:
        """Let the workers forget the blocks."""
        self._blocks = []

    def _mapped(
        self,
        numbers: Sequence[int],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> list[Delayed]:
        from dask.delayed import delayed

        # The names of tasks would be made of the function, which prints a whole model.
        shared, call = delayed(function, traverse=False), delayed(_called)
        own = zip(numbers, *arguments, strict=True)
        return [call(shared, self._blocks[number], *rest) for number, *rest in own]

    def map(
        self,
        numbers: Sequence[int],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for some blocks; see `EncodedBlocks`."""
        from dask.base import compute

        yield from compute(*self._mapped(numbers, function, *arguments))

    def summed(
        self,
        numbers: Sequence[int],
        function: Callable[..., Sum],
        *arguments: Sequence[object],
    ) -> Sum:
        """Add up what a function returns for some blocks, by a fixed tree."""
        from dask.delayed import delayed

        parts = self._mapped(numbers, function, *arguments)
        while len(parts) > 1:
            groups = [parts[k : k + _GROUP] for k in range(0, len(parts), _GROUP)]
            parts = [delayed(_total)(group) for group in groups]
        total: Sum = parts[0].compute()
        return total


# What workers do ------------------------------------------------------------------------


def _on_frame(
    columns: list[str],
    function: Callable[..., T],
    part: pandas.DataFrame,
    *arguments: object,
) -> T:
    import narwhals.stable.v2 as nw

    return function(nw.from_native(part[columns], eager_only=True), *arguments)


def _called(function: Callable[..., T], *arguments: object) -> T:
    return function(*arguments)


def _on_rows(
    columns: list[str],
    function: Callable[[object], np.ndarray],
    nothing: np.ndarray,
    part: pandas.DataFrame,
) -> np.ndarray:
    return function(part[columns]) if len(part) else nothing


def _on_filled(function: Callable[[object], object], part: pandas.DataFrame) -> object:
    return function(part) if len(part) else part


def _with_column(
    part: pandas.DataFrame, column: pandas.Series, name: str
) -> pandas.DataFrame:
    if len(part) != len(column):
        raise ValueError(
            f"X has {len(part)} rows in a partition in which {name.strip('_')} has "
            f"{len(column)}. Make both columns of one data frame, and pass the name."
        )
    return part.assign(**{name: column.to_numpy()})


def _total(parts: list[Sum]) -> Sum:
    # Results of other tasks may be needed again, and must not be changed.
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total.add(part)
    return total
