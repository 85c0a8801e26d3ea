"""The libraries that read tables block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import polars
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
    """Reads blocks of a number of rows, the same ones every time."""

    names: tuple[str, ...]

    def blocks(self, columns: list[str], n_rows: int) -> Iterator[object]:
        """Yield blocks of exactly this many rows, except for the last one."""
        raise NotImplementedError


class _ArrowReader(Reader):
    def __init__(self, dataset: pyarrow.dataset.Dataset) -> None:
        self._dataset = dataset
        self.names = tuple(dataset.schema.names)

    def __repr__(self) -> str:
        return f"{type(self._dataset).__name__} of pyarrow"

    def blocks(self, columns: list[str], n_rows: int) -> Iterator[object]:
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

    def blocks(self, columns: list[str], n_rows: int) -> Iterator[object]:
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


def reader_of(source: object) -> Reader:
    """Return what reads files, a dataset of pyarrow or a lazy frame of polars."""
    kind = f"{type(source).__module__}.{type(source).__name__}"
    if kind.startswith("polars.") and kind.endswith(".LazyFrame"):
        return _PolarsReader(cast("polars.LazyFrame", source))
    if kind.startswith("pyarrow._dataset."):
        return _ArrowReader(source)
    if isinstance(source, str | os.PathLike):
        return _ArrowReader(open_dataset([Path(source)]))
    if isinstance(source, Sequence) and source:
        return _ArrowReader(open_dataset([Path(path) for path in source]))
    raise TypeError(
        f"scan takes paths, a pyarrow dataset or a polars LazyFrame, and not a "
        f"{type(source).__name__}. Tables in memory can be passed to fit as they are."
    )


def open_dataset(paths: list[Path]) -> pyarrow.dataset.Dataset:
    """Open files, or a folder of them, which are all of one format.

    Where files disagree about the type of a column, it is one that holds the values of
    all, such as a float for whole numbers and fractions.
    """
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
    first = factory.finish()
    schemas = [fragment.physical_schema for fragment in first.get_fragments()]
    unified = imported("pyarrow", "arrow").unify_schemas(
        [first.schema, *schemas], promote_options="permissive"
    )
    return factory.finish(unified)


def _format_of(files: list[Path], paths: list[Path]) -> str:
    """Return the format of files that were found at some paths."""
    formats = {_FORMATS[file.suffix.lower()] for file in files}
    if len(formats) != 1:
        found = "several formats" if formats else "no Parquet, Feather or CSV file"
        raise ValueError(
            f"There is {found} at {', '.join(map(str, paths))}. Name files of one "
            f"format, with a suffix of {', '.join(_FORMATS)}."
        )
    return formats.pop()


def _files(path: Path) -> list[Path]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in found if file.is_file() and file.suffix.lower() in _FORMATS]


def imported(name: str, extra: str) -> ModuleType:
    """Import an optional library, or say which extra brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"This needs {package}: pip install 'hybridmix[{extra}]'."
        ) from error
