"""Tables that are read from files block by block, in bounded memory."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hybridmix._checks import check_word
from hybridmix.data.block_errors import counting_rows_from
from hybridmix.data.block_file import BlockFile
from hybridmix.data.block_readers import Reader, imported, reader_of, unified_schema
from hybridmix.data.block_reading import BlockSource
from hybridmix.data.encoded_blocks import EncodedBlocks
from hybridmix.data.frames import as_frame
from hybridmix.data.rows import DTYPES, LabelledUnits

if TYPE_CHECKING:
    import pyarrow

    from hybridmix.data.frames import Frame

T = TypeVar("T")

# What the parts of a block take at their widest, compared with a table of floats: as
# read, as a matrix, encoded, arranged, and what an evaluation makes of it.
_COPIES = 12
_FEWEST_ROWS, _MOST_ROWS = 256, 1 << 20
_UNITS = {"": 1.0} | {
    f"{prefix}{kind}": base**power
    for kind, base in (("", 1e3), ("I", 2.0**10))
    for power, prefix in enumerate("KMGT", start=1)
}


def scan(
    source: object,
    *,
    columns: Sequence[str] | None = None,
    memory: int | str = "256MB",
    cache: str | os.PathLike[str] | None = None,
    dtype: str = "float64",
) -> ScannedTable:
    """Read a table block by block, so that it need not fit into memory.

    What it returns takes the place of ``X``: in ``fit`` of the estimators that are listed
    on the page about large tables, with names of columns as ``y`` and ``sample_weight``,
    and in everything that predicts. `Sequences.from_long` reads sequences from it. If you
    pass any other ``source`` than a list as ``X``, it is scanned by default options.

    Parameters
    ----------
    source : path, list of paths, pyarrow.dataset.Dataset or polars.LazyFrame
        Parquet, Feather or CSV files, or folders of them, which need the extra
        ``hybridmix[arrow]``; or a table that one of these libraries reads lazily.
    columns : sequence of str or None, default=None
        Columns of the table; None for all.
    memory : int or str, default="256MB"
        About how much memory the rows may take at a time, in bytes or with a unit. The
        program itself takes 150 to 250 MB more.
    cache : path or None, default=None
        Folder for encoded rows, which training reads again and again: 8 bytes for each
        number. The file has no name there, and is gone when training ends or is killed.
        None for the system's folder of temporary files; name another one if that is in
        memory.
    dtype : {"float64", "float32"}, default="float64"
        Type of the encoded numbers in that file, which training multiplies as they are;
        sums over rows are float64. "float32" takes half the room, and log densities are
        rounded to about four decimals.

    Returns
    -------
    table : ScannedTable
        The table. Iterating over it yields its blocks.

    Examples
    --------
    >>> import tempfile
    >>> import polars
    >>> from hybridmix import MixtureDensity, scan
    >>> table = scan(polars.LazyFrame({"x": [0.1, 0.3, 0.2, 5.1, 5.3], "y": range(5)}))
    >>> MixtureDensity(1, covariance_type="full").fit(table).means_.round(1)
    array([[2.2, 2. ]])
    """
    check_word("dtype", dtype, DTYPES)
    n_bytes = bytes_of(memory)
    _check_folder(cache)
    reader = reader_of(source)
    names = reader.names if columns is None else columns
    return ScannedTable(reader, reader.names, n_bytes, cache, dtype).select(names)


class ScannedTable(BlockSource):
    """A table in files, or one that is read lazily; see `scan`.

    Attributes
    ----------
    names : tuple of str
        Columns of the table.
    """

    def __init__(
        self,
        reader: Reader,
        names: tuple[str, ...],
        memory: int,
        cache: str | os.PathLike[str] | None,
        dtype: str,
        undivided: tuple[str, ...] = (),
    ) -> None:
        self._reader = reader
        self.names = names
        self._memory = memory
        self._cache = cache
        self._dtype = dtype
        self._undivided = undivided

    def __repr__(self) -> str:
        return f"ScannedTable({self._reader}, columns={list(self.names)})"

    def select(self, columns: Iterable[str]) -> ScannedTable:
        """Return the table with some of its columns only."""
        names = tuple(columns)
        if isinstance(columns, str) or len(set(names)) < len(names):
            raise ValueError(
                f"columns={columns!r}: give a list of columns, each of them once."
            )
        self.check_columns(names)
        return self._with(names, self._undivided)

    def undivided(self, columns: Sequence[str]) -> ScannedTable:
        """Return the table in blocks that end where the values of columns change."""
        return self._with(self.names, tuple(columns))

    def _with(self, names: tuple[str, ...], undivided: tuple[str, ...]) -> ScannedTable:
        return ScannedTable(
            self._reader, names, self._memory, self._cache, self._dtype, undivided
        )

    def __iter__(self) -> Iterator[object]:
        """Yield blocks of rows: tables of pyarrow, or data frames of polars."""
        return (block.to_native() for block in self._blocks(self.names))

    def write(
        self,
        path: str | os.PathLike[str],
        function: Callable[[object], object] | None = None,
    ) -> None:
        """Write what a function makes of each block, as a folder of Parquet files.

        The folder appears whole or not at all.

        Parameters
        ----------
        path : path
            A folder that does not exist yet.
        function : callable or None, default=None
            Takes a block and returns a data frame, or a dictionary from names to arrays:
            ``model.impute``, or ``lambda block: {"score": model.typicality(block)}``.
            None for the block itself.
        """
        parquet = imported("pyarrow.parquet", "arrow")
        target = Path(path)
        if target.exists():
            raise FileExistsError(f"{target} exists: name a folder that does not.")
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".hybridmix-", dir=target.parent))
        try:
            schemas = []
            for number, block in enumerate(self):
                made = _arrow_table(block if function is None else function(block))
                parquet.write_table(made, _part(folder, number))
                schemas.append(made.schema)
            _unify_parts(folder, schemas)
            folder.chmod(0o777 & ~_umask())
            folder.rename(target)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    # What training asks for ---------------------------------------------------------

    def _blocks(self, columns: Sequence[str]) -> Iterator[Frame]:
        import narwhals.stable.v2 as nw

        n_rows = int(self._memory / (8 * _COPIES * max(len(self.names), 1)))
        n_rows = min(max(n_rows, _FEWEST_ROWS), _MOST_ROWS)
        needed = list(dict.fromkeys([*columns, *self._undivided]))
        blocks: Iterator[Frame] = (
            nw.from_native(block, eager_only=True)
            for block in self._reader.blocks(needed, n_rows)
        )
        if self._undivided:
            blocks = _recut(blocks, self._undivided)
        return (block.select(list(columns)) for block in blocks)

    def map(
        self,
        columns: Sequence[str],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for every block; see `BlockSource`."""
        n_before = 0
        for block, *own in zip(self._blocks(columns), *arguments, strict=bool(arguments)):
            with counting_rows_from(f"row {n_before} of the table"):
                result = function(block, *own)
            yield result
            n_before += block.shape[0]

    def encoded(
        self, columns: Sequence[str], function: Callable[[Frame], tuple[LabelledUnits, T]]
    ) -> tuple[EncodedBlocks, list[T]]:
        """Write the encoded rows of every block to a file; see `BlockSource`."""
        file = BlockFile(self._cache, DTYPES[self._dtype])
        notes = []
        try:
            for block, note in self.map(columns, function):
                file.append(block)
                notes.append(note)
        except BaseException:
            file.close()
            raise
        return file, notes

    def joined(
        self, columns: Sequence[str], function: Callable[[object, int], np.ndarray]
    ) -> object:
        """Put what a function returns for every block one after the other."""
        self.check_columns(columns)
        parts, n_before = [], 0
        for number, block in enumerate(self._blocks(columns)):
            with counting_rows_from(f"row {n_before} of the table"):
                parts.append(function(block.to_native(), number))
            n_before += block.shape[0]
        if not parts:
            raise ValueError("The table has no rows.")
        return np.concatenate(parts)

    def completed(self, function: Callable[[object, int], object]) -> object:
        """Refuse to make a copy of the table in memory."""
        raise TypeError(
            "A completed copy of this table may not fit into memory. Write it block by "
            "block: scan(...).write(folder, model.impute)."
        )


def _recut(blocks: Iterator[Frame], columns: Sequence[str]) -> Iterator[Frame]:
    """Cut blocks anew, where the values of some columns change."""
    import narwhals.stable.v2 as nw

    left: list[Frame] = []
    for block in blocks:
        joined = nw.concat([*left, block])
        start = max(_start_of_last(joined[name].to_numpy()) for name in columns)
        left = [joined[start:]]
        if start:
            yield joined[:start]
    yield from left


def _start_of_last(values: np.ndarray) -> int:
    """Return where the last run of equal values begins."""
    others = np.flatnonzero(values != values[-1])
    return int(others[-1]) + 1 if len(others) else 0


# Values ---------------------------------------------------------------------------------


def bytes_of(memory: int | str) -> int:
    """Return a number of bytes, such as that of "500MB"."""
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?I?)B?\s*", str(memory).upper())
    n_bytes = float(found[1]) * _UNITS.get(found[2], 0) if found else 0.0
    if n_bytes < 1:
        raise ValueError(
            f"memory={memory!r} is not a number of bytes, such as 500_000_000 or '500MB'."
        )
    return int(n_bytes)


def _check_folder(cache: str | os.PathLike[str] | None) -> None:
    """Refuse a folder that cannot be written to, before tables are read for long."""
    if cache is None:
        return
    if not Path(cache).is_dir():
        raise NotADirectoryError(f"cache={os.fspath(cache)!r} is not a folder.")
    if not os.access(cache, os.W_OK):
        raise PermissionError(f"cache={os.fspath(cache)!r} cannot be written to.")


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.parquet"


def _unify_parts(folder: Path, schemas: list[pyarrow.Schema]) -> None:
    """Give columns the same type in all parts of a table that was written.

    Filled whole numbers, for instance, are floats in those parts that had holes.
    """
    if not schemas:
        raise ValueError("The table has no rows.")
    parquet = imported("pyarrow.parquet", "arrow")
    first = schemas[0]
    other = next((own for own in schemas if own.names != first.names), first)
    if other is not first:
        raise ValueError(
            f"The function returned the columns {', '.join(first.names)} for one block, "
            f"and {', '.join(other.names)} for another."
        )
    unified = unified_schema(schemas, "The function returned blocks that differ")
    for number, schema in enumerate(schemas):
        if not schema.equals(unified):
            path = _part(folder, number)
            parquet.write_table(parquet.read_table(path).cast(unified), path)


def _arrow_table(made: object) -> pyarrow.Table:
    """Return a table of pyarrow for a data frame, or for arrays by name."""
    if isinstance(made, Mapping):
        for name, values in made.items():
            if np.ndim(values) != 1:
                raise ValueError(
                    f"The function returned an array of shape {np.shape(values)} for "
                    f"{name!r}. Return one value for each row under each name."
                )
        return imported("pyarrow", "arrow").table(dict(made))
    frame = as_frame(made, "The result")
    if frame is None:
        raise TypeError(
            f"The function returned a {type(made).__name__}. It must return a data "
            "frame, or a dictionary from names of columns to arrays."
        )
    return frame.to_arrow()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
