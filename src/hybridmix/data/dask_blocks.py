"""Dask data frames: blocks are partitions, and stay on the workers of a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hybridmix._typing import Sum
from hybridmix.data.block_errors import counting_rows_from
from hybridmix.data.block_reading import BlockSource
from hybridmix.data.dask_balance import balanced
from hybridmix.data.dask_cluster import computed, persisted
from hybridmix.data.dask_columns import DaskColumns
from hybridmix.data.encoded_blocks import EncodedBlocks
from hybridmix.data.rows import LabelledUnits

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
    return _is_of_dask(X, "DataFrame")


def is_dask_series(X: object) -> bool:
    """Return whether this is a column of a Dask data frame, without importing Dask."""
    return _is_of_dask(X, "Series")


def is_dask_array(X: object) -> bool:
    """Return whether a table is a Dask array, without importing Dask."""
    return _is_of_dask(X, "Array")


def _is_of_dask(X: object, name: str) -> bool:
    kind = type(X)
    return kind.__module__.startswith("dask.") and kind.__name__ == name


class DaskTable(BlockSource):
    """A Dask data frame; its partitions are the blocks, except for empty ones.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        The table.
    has_names : bool
        Whether its columns have names, or are those of an array.
    n_rows : tuple of int or None
        Numbers of rows of all partitions, if they are known.
    """

    def __init__(
        self,
        frame: dask.dataframe.DataFrame,
        has_names: bool = True,
        n_rows: tuple[int, ...] | None = None,
    ) -> None:
        self._frame = frame
        self._n_rows = n_rows
        self.names = tuple(frame.columns)
        self.has_names = has_names
        for name in self.names:
            if not isinstance(name, str):
                raise TypeError(
                    f"The name {name!r} of a column is not text. Rename the columns: "
                    "frame.rename(columns=str)."
                )

    @classmethod
    def of_array(cls, array: dask.array.Array) -> DaskTable:
        """Return a table of the rows of an array of two dimensions."""
        if array.ndim != 2 or np.isnan(array.shape[1]):
            raise ValueError(
                f"Expected a Dask array of rows and columns, got one of the shape "
                f"{array.shape}. Reshape it: array.reshape(-1, 1) has one column."
            )
        return cls(
            _frame_of(array, map(str, range(array.shape[1]))), False, _sizes(array)
        )

    @cached_property
    def _partitions(self) -> list[Delayed]:
        # Columns that are asked for one by one may come in different partitions.
        return self._frame.to_delayed()

    @cached_property
    def _filled(self) -> list[tuple[int, Delayed]]:
        """Partitions that have any rows, with their numbers."""
        from dask.delayed import delayed

        sizes = computed([delayed(len)(part) for part in self._partitions])
        return [
            own for own, n in zip(enumerate(self._partitions), sizes, strict=True) if n
        ]

    def added(self, argument: str, given: object) -> tuple[BlockSource, tuple[str, ...]]:
        """Return the table with series or arrays as further columns."""
        other = self._as_frame(argument, given)
        if other.npartitions != self._frame.npartitions:
            raise ValueError(
                f"X has {self._frame.npartitions} partitions and {argument} has "
                f"{other.npartitions}. Make both columns of one data frame, and pass "
                "the name."
            )
        meta = self._frame._meta.assign(
            **{name: other._meta[name] for name in other.columns}
        )
        frame = self._frame.map_partitions(
            _with_columns, other, argument, align_dataframes=False, meta=meta
        )
        table = DaskTable(frame, self.has_names, self._n_rows)
        return table, tuple(other.columns)

    def _as_frame(self, argument: str, given: Any) -> dask.dataframe.DataFrame:
        """Return labels, targets or weights with names that no other column has."""
        if is_dask_array(given):
            sizes = _sizes(given)
            if self._n_rows is not None and sizes is not None:
                n_rows, n_given = sum(self._n_rows), sum(sizes)
                if n_rows != n_given:
                    raise ValueError(f"X has {n_rows} rows and {argument} has {n_given}.")
                given = given.rechunk({0: self._n_rows})
            given = given if given.ndim == 2 else given[:, None]
            return _frame_of(given, self._new_names(argument, range(given.shape[1])))
        if is_dask_frame(given):
            renamed = self._new_names(argument, given.columns)
            return given.rename(columns=dict(zip(given.columns, renamed, strict=True)))
        if not is_dask_series(given):
            raise TypeError(
                f"{argument} must be in blocks as well, since X is of Dask: pass a Dask "
                "series, data frame or array with the same partitions, or the name of a "
                f"column of X; got a {type(given).__name__}."
            )
        return given.to_frame(name=self._new_names(argument, [0])[0])

    def _new_names(self, argument: str, columns: Sequence[object]) -> list[str]:
        names = [argument]
        if len(columns) > 1:
            names = [f"{argument}[{column}]" for column in columns]
        while not set(names).isdisjoint(self.names):
            names = [f"_{name}" for name in names]
        return names

    def _mapped(
        self,
        columns: Sequence[str],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> list[Delayed]:
        from dask.delayed import delayed

        # Part of the graph, so that a block that is lost can be computed again.
        own = DaskColumns.of(self._frame._meta, columns)
        shared = delayed(partial(_on_frame, own, function), traverse=False)
        if not arguments:
            return [shared(*own) for own in self._filled]
        given = zip(self._filled, *arguments, strict=True)
        return [shared(number, part, *rest) for (number, part), *rest in given]

    def map(
        self,
        columns: Sequence[str],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for every block; see `BlockSource`."""
        yield from computed(self._mapped(columns, function, *arguments))

    def encoded(
        self, columns: Sequence[str], function: Callable[[Frame], tuple[LabelledUnits, T]]
    ) -> tuple[EncodedBlocks, list[T]]:
        """Keep the encoded rows of every block on the workers; see `BlockSource`."""
        pairs = persisted(self._mapped(columns, function))
        notes = computed([pair[1] for pair in pairs])
        # Taking the pairs apart would be a task of every block in every iteration.
        blocks = persisted([pair[0] for pair in pairs])
        return DaskBlocks(balanced(blocks)), list(notes)

    def joined(
        self, columns: Sequence[str], function: Callable[[object, int], np.ndarray]
    ) -> dask.array.Array:
        """Return what a function returns for all rows, as a lazy array."""
        import dask.array
        from dask.delayed import delayed

        self.check_columns(columns)
        read = _as_given if self.has_names else _as_array
        with warnings.catch_warnings():
            # The row of the example is made up.
            warnings.simplefilter("ignore")
            example = function(read(_example_row(self._frame[list(columns)])), 0)
        own = DaskColumns.of(self._frame._meta, columns)
        shared = delayed(partial(_on_rows, own, read, function, example[:0]))
        sizes = self._n_rows or (np.nan,) * len(self._partitions)
        parts = [
            dask.array.from_delayed(
                shared(part, number), (sizes[number], *example.shape[1:]), example.dtype
            )
            for number, part in enumerate(self._partitions)
        ]
        return dask.array.concatenate(parts)

    def completed(self, function: Callable[[object, int], object]) -> object:
        """Return the table with what a function makes of it, lazily, as it came."""
        if not self.has_names:
            return self.joined(self.names, function)  # type: ignore[arg-type]
        # Only some partitions have holes, and all are to be of one type.
        types = {
            name: own
            for name, kind in self._frame.dtypes.items()
            if (own := _filled_type(str(kind))) is not None
        }
        filled = partial(_on_filled, function, types)  # type: ignore[arg-type]
        return self._frame.map_partitions(filled, meta=self._frame._meta.astype(types))


class DaskBlocks:
    """Encoded blocks on the workers of a cluster, or in memory without one.

    Parameters
    ----------
    blocks : list of Delayed
        The blocks, each a `Dataset` or a `SequenceDataset`.
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
        yield from computed(self._mapped(numbers, function, *arguments))

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
        [total] = computed(parts)
        return total


# What workers do ------------------------------------------------------------------------


def _on_frame(
    columns: DaskColumns,
    function: Callable[..., T],
    number: int,
    part: pandas.DataFrame,
    *arguments: object,
) -> T:
    import narwhals.stable.v2 as nw

    with _counting_rows(number):
        own = columns.taken_from(part)
        return function(nw.from_native(own, eager_only=True), *arguments)


def _called(function: Callable[..., T], *arguments: object) -> T:
    return function(*arguments)


def _as_given(part: pandas.DataFrame) -> pandas.DataFrame:
    return part


def _as_array(part: pandas.DataFrame) -> np.ndarray:
    return part.to_numpy()


def _on_rows(
    columns: DaskColumns,
    read: Callable[[pandas.DataFrame], object],
    function: Callable[[object, int], np.ndarray],
    nothing: np.ndarray,
    part: pandas.DataFrame,
    number: int,
) -> np.ndarray:
    with _counting_rows(number):
        return function(read(columns.taken_from(part)), number) if len(part) else nothing


def _on_filled(
    function: Callable[[object, int], pandas.DataFrame],
    dtypes: dict[str, str],
    part: pandas.DataFrame,
    partition_info: dict[str, int] | None = None,
) -> pandas.DataFrame:
    number = partition_info["number"] if partition_info else 0
    with _counting_rows(number):
        return (function(part, number) if len(part) else part).astype(dtypes)


def _counting_rows(number: int) -> AbstractContextManager[None]:
    return counting_rows_from(f"the first row of partition {number}")


def _with_columns(
    part: pandas.DataFrame, others: pandas.DataFrame, argument: str
) -> pandas.DataFrame:
    if len(part) != len(others):
        raise ValueError(
            f"X has {len(part)} rows in a partition in which {argument} has "
            f"{len(others)}. Make both columns of one data frame, and pass the name."
        )
    return part.assign(**{name: others[name].to_numpy() for name in others.columns})


def _example_row(frame: dask.dataframe.DataFrame) -> pandas.DataFrame:
    """Make up a row of a table; its text also passes for a number."""
    row = frame._meta_nonempty[:1]
    is_text = {name: isinstance(row[name].iloc[0], str) for name in row.columns}
    return row.assign(**{name: "1" for name, is_one in is_text.items() if is_one})


def _filled_type(name: str) -> str | None:
    """Return the type of numbers that were filled; None where they have none.

    Filled whole numbers need not be whole.
    """
    if name.startswith(("Int", "UInt")):
        return "Float64"
    if name.endswith("[pyarrow]") and name.startswith(("int", "uint")):
        return "double[pyarrow]"
    is_float = name.startswith(("float", "Float", "double", "halffloat"))
    return name if is_float else None


def _total(parts: list[Sum]) -> Sum:
    # Results of other tasks may be needed again, and must not be changed.
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total.add(part)
    return total


# Arrays ---------------------------------------------------------------------------------


def _frame_of(array: dask.array.Array, names: Iterable[str]) -> dask.dataframe.DataFrame:
    import dask.dataframe

    return dask.dataframe.from_dask_array(array, columns=list(names))


def _sizes(array: dask.array.Array) -> tuple[int, ...] | None:
    """Return the numbers of rows of the chunks; None if they are unknown."""
    sizes = array.chunks[0]
    return None if np.isnan(sizes).any() else sizes
