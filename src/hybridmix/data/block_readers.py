"""The libraries that read tables block by block."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence, Sized
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import polars
    import pyarrow
    import pyarrow.dataset

# Formats, as pyarrow.dataset calls them, by the suffixes of files.
_FORMATS = {
    ".parquet": "ParquetFileFormat",
    ".pq": "ParquetFileFormat",
    ".feather": "IpcFileFormat",
    ".arrow": "IpcFileFormat",
    ".ipc": "IpcFileFormat",
    ".csv": "CsvFileFormat",
}


class Reader:
    """Reads blocks of a number of rows, the same ones every time.

    Attributes
    ----------
    names : tuple of str
        Columns of the table.
    n_rows : int or None
        Number of rows, once all of them were read.
    """

    names: tuple[str, ...]
    n_rows: int | None = None

    def blocks(self, columns: list[str], n_rows: int) -> Iterator[object]:
        """Yield blocks of exactly this many rows, except for the last one.

        A table of another length than the last time is an error: training needs the same
        rows in every pass.
        """
        n_read = 0
        for block in self._blocks(columns, n_rows):
            n_read += len(block)
            yield block
        if self.n_rows not in (None, n_read):
            raise OSError(
                f"{self} has changed while it was used: it had {self.n_rows} rows, and "
                f"now has {n_read}. Read it again when it is complete."
            )
        self.n_rows = n_read

    def _blocks(self, columns: list[str], n_rows: int) -> Iterator[Sized]:
        raise NotImplementedError


class _ArrowReader(Reader):
    def __init__(self, dataset: pyarrow.dataset.Dataset, paths: str = "") -> None:
        self._dataset = dataset
        self._paths = paths
        self.names = tuple(name for name in dataset.schema.names if not is_index(name))
        self._stamps = {path: _stamp(path) for path in _local_files(dataset)}

    def __repr__(self) -> str:
        return self._paths or f"{type(self._dataset).__name__} of pyarrow"

    def _blocks(self, columns: list[str], n_rows: int) -> Iterator[Sized]:
        arrow = imported("pyarrow", "arrow")
        self._check_unchanged()
        try:
            yield from self._read(columns, n_rows)
        except (OSError, arrow.ArrowInvalid) as error:
            self._check_unchanged()
            if "CSV conversion error" in str(error):
                raise self._explained(error) from error
            raise
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        """Refuse files that others have written to: what is known of them is wrong."""
        for path, stamp in self._stamps.items():
            if _stamp(path) != stamp:
                raise OSError(
                    f"{path} has changed since it was scanned. Scan it again when it is "
                    "complete."
                )

    def _explained(self, error: Exception) -> ValueError:
        """Say what to do about a cell of a CSV file that is not of the expected type."""
        found = re.search(r"CSV column #(\d+): (.*)", str(error))
        parts = [part.physical_schema.names for part in self._dataset.get_fragments()]
        message = str(error)
        if found is not None and all(names == parts[0] for names in parts):
            message = f"Column {parts[0][int(found[1])]!r} of {self}: {found[2]}"
        return ValueError(
            f"{message}. The first rows of a CSV file (1 MB) decide about the types of "
            "its columns. scan(polars.scan_csv(path, infer_schema_length=None)) looks at "
            "all rows; schema=... of pyarrow.dataset.dataset sets types."
        )

    def _read(self, columns: list[str], n_rows: int) -> Iterator[Sized]:
        arrow = imported("pyarrow", "arrow")
        waiting, n_waiting = [], 0
        # Threads of pyarrow read ahead, which takes more memory than the rows do.
        batches = self._dataset.to_batches(
            columns=columns,
            batch_size=n_rows,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=self._options(),
            use_threads=False,
        )
        for batch in batches:
            waiting.append(batch)
            n_waiting += batch.num_rows
            while n_waiting >= n_rows:
                table = arrow.Table.from_batches(waiting)
                yield table.slice(0, n_rows)
                waiting = table.slice(n_rows).to_batches()
                n_waiting -= n_rows
        if n_waiting:
            yield arrow.Table.from_batches(waiting)

    def _options(self) -> pyarrow.dataset.FragmentScanOptions | None:
        """Return options that keep Parquet files from being read whole."""
        arrow = imported("pyarrow.dataset", "arrow")
        file_format = getattr(self._dataset, "format", None)
        if not isinstance(file_format, arrow.ParquetFileFormat):
            return None
        return arrow.ParquetFragmentScanOptions(
            use_buffered_stream=True, pre_buffer=False
        )


class _PolarsReader(Reader):
    def __init__(self, frame: polars.LazyFrame) -> None:
        self._frame = frame
        self.names = tuple(frame.collect_schema().names())

    def __repr__(self) -> str:
        return "LazyFrame of polars"

    def _blocks(self, columns: list[str], n_rows: int) -> Iterator[Sized]:
        import polars

        frame = self._frame.select(columns)
        if not hasattr(frame, "collect_batches"):
            raise ImportError(
                "Reading a LazyFrame block by block needs a newer polars: "
                "pip install -U 'hybridmix[polars]'. Or write it by sink_parquet and "
                "scan the file."
            )
        waiting: polars.DataFrame | None = None
        for batch in frame.collect_batches(chunk_size=n_rows, lazy=True):
            waiting = batch if waiting is None else polars.concat([waiting, batch])
            while waiting.height >= n_rows:
                yield waiting[:n_rows]
                waiting = waiting[n_rows:]
        if waiting is not None and waiting.height:
            yield waiting


def _local_files(dataset: pyarrow.dataset.Dataset) -> list[str]:
    """Return the files of a dataset that are on this machine."""
    arrow = imported("pyarrow.fs", "arrow")
    is_local = isinstance(getattr(dataset, "filesystem", None), arrow.LocalFileSystem)
    return dataset.files if is_local else []


def _stamp(path: str) -> tuple[int, int] | None:
    """Return when a file was written, and its size; None if it is gone."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def is_index(name: str) -> bool:
    """Return whether a column of a file is the index of a data frame of pandas.

    It is no more part of the table than row numbers are; one with a name may be.
    """
    return re.fullmatch(r"__index_level_\d+__", name) is not None


def is_lazy_frame(source: object) -> bool:
    """Return whether this is a lazy frame of polars, without importing it."""
    kind = type(source)
    return kind.__module__.startswith("polars.") and kind.__name__ == "LazyFrame"


def is_dataset(source: object) -> bool:
    """Return whether this is a dataset of pyarrow, without importing it."""
    kind = type(source)
    return kind.__module__ == "pyarrow._dataset" and kind.__name__.endswith("Dataset")


def is_scannable(source: object) -> bool:
    """Return whether `scan` takes this in place of a table."""
    is_path = isinstance(source, str | os.PathLike)
    return is_path or is_lazy_frame(source) or is_dataset(source)


def reader_of(source: object) -> Reader:
    """Return what reads files, a dataset of pyarrow or a lazy frame of polars."""
    if is_lazy_frame(source):
        return _PolarsReader(cast("polars.LazyFrame", source))
    if is_dataset(source):
        return _ArrowReader(source)
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, Sequence):
        paths = [Path(path) for path in source]
        return _ArrowReader(open_dataset(paths), ", ".join(map(str, paths)))
    raise TypeError(
        "scan takes paths, a pyarrow dataset or a polars LazyFrame; got "
        f"{type(source).__name__}. Tables in memory can be passed to fit as they are."
    )


def open_dataset(paths: list[Path]) -> pyarrow.dataset.Dataset:
    """Open files, or a folder of them, which are all of one format.

    Where files disagree about the type of a column, it is one that holds the values of
    all, such as a float for whole numbers and fractions.
    """
    if not paths:
        raise ValueError("scan needs at least one path, and the list is empty.")
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise FileNotFoundError(f"There is no file or folder {missing}.")
    files = [file for path in paths for file in _files(path)]
    arrow = imported("pyarrow.dataset", "arrow")
    options = arrow.FileSystemFactoryOptions()
    if len(paths) == 1:
        # Names of folders within the one that is given, such as year=2024, make columns.
        options.partition_base_dir = str(paths[0].absolute())
        options.partitioning_factory = arrow.HivePartitioning.discover()
    factory = arrow.FileSystemDatasetFactory(
        imported("pyarrow.fs", "arrow").LocalFileSystem(),
        [str(file.absolute()) for file in files],
        getattr(arrow, _format_of(files, paths))(),
        options,
    )
    # By itself, pyarrow takes the types of the first file.
    return factory.finish(_unified_schema(factory.finish()))


def _unified_schema(dataset: pyarrow.dataset.Dataset) -> pyarrow.Schema:
    """Return a schema that holds the values of all files of a dataset."""
    unified = dataset.schema
    for part in dataset.get_fragments():
        problem = f"{part.path} and the files before it are not parts of one table"
        unified = unified_schema([unified, part.physical_schema], problem)
    return unified


def unified_schema(schemas: Sequence[pyarrow.Schema], problem: str) -> pyarrow.Schema:
    """Return a schema that holds the values of tables of several.

    Parameters
    ----------
    schemas : sequence of pyarrow.Schema
        The schemas.
    problem : str
        What is wrong if there is none, as the beginning of a sentence.
    """
    arrow = imported("pyarrow", "arrow")
    try:
        return arrow.unify_schemas(schemas, promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        reason = str(error).removeprefix("Unable to merge: ")
        raise ValueError(
            f"{problem}: {reason}. Give the column the same type in all of them."
        ) from error


def _format_of(files: list[Path], paths: list[Path]) -> str:
    """Return the format of files that were found at some paths."""
    formats = {_FORMATS[file.suffix.lower()] for file in files}
    if len(formats) != 1:
        found = "There are files of several formats"
        if not formats:
            found = "There is no Parquet, Feather or CSV file"
        raise ValueError(
            f"{found} at {', '.join(map(str, paths))}. Name files of one format, with a "
            f"suffix of {', '.join(_FORMATS)}."
        )
    return formats.pop()


def _files(path: Path) -> list[Path]:
    found = files_below(path) if path.is_dir() else [path]
    return [file for file in found if file.is_file() and file.suffix.lower() in _FORMATS]


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and in those within it, in order.

    Names that begin with a dot or an underscore are those of hidden and of unfinished
    files, or of folders of these.
    """
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(
            name.startswith((".", "_")) for name in path.relative_to(folder).parts
        )
    ]


def imported(name: str, extra: str) -> ModuleType:
    """Import an optional library, or say which extra brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"This needs {package}: pip install 'hybridmix[{extra}]'."
        ) from error
