"""Writing tables to files, chunk by chunk, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from hybridmix._writing import replacing
from hybridmix.cli.cells import MISSING, Column, Marks
from hybridmix.cli.tables import (
    TEXT_SUFFIXES,
    TYPED_SUFFIXES,
    InputError,
    Table,
    is_tabbed,
    unknown_format,
)

STDOUT = Path("-")
Columns = dict[str, Column]
Write = Callable[[Columns], None]


def check_output(path: Path, *inputs: Path, is_table: bool = True) -> None:
    """Refuse, before any work, an output that cannot be written."""
    if path == STDOUT and is_table:
        return
    if is_table and not path.name.lower().endswith(TEXT_SUFFIXES + TYPED_SUFFIXES):
        raise InputError(unknown_format(path))
    if path == STDOUT:
        raise InputError("-o -: only tables go to stdout; name a file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a device or a pipe; name a file.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: no permission to write to {folder}.")
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise InputError(f"-o {path} would replace what is read; name another file.")


@contextmanager
def writing(
    path: Path,
    like: Table | None = None,
    numeric: Collection[str] = (),
    marks: Marks = MISSING,
) -> Iterator[Write]:
    """Open a file for columns of rows.

    Parameters
    ----------
    path : Path
        The file; its suffix tells the format. ``-`` is CSV on stdout.
    like : Table or None
        The table that the rows come from, which text files resemble.
    numeric : collection of str
        Columns of text that typed files hold as numbers.
    marks : frozenset of str
        Missing values of text that typed files hold as null.

    Yields
    ------
    write : callable
        Takes the columns of some rows.
    """
    if path == STDOUT:
        yield _text_writer(sys.stdout, _separator(path, like), like)
        sys.stdout.flush()
        return
    with replacing(path) as stream:
        if path.name.lower().endswith(TEXT_SUFFIXES):
            with _text_stream(path, stream) as text:
                yield _text_writer(text, _separator(path, like), like)
        else:
            with _typed_writer(path, stream, numeric, marks) as write:
                yield write


@contextmanager
def _text_stream(path: Path, stream: BinaryIO) -> Iterator[TextIO]:
    if path.suffix.lower() == ".gz":
        # Without a time in it, equal tables make equal files.
        with (
            gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed,
            TextIOWrapper(cast(BinaryIO, packed), "utf-8", newline="") as text,
        ):
            yield text
        return
    text = TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        # The stream is closed by those who opened it.
        text.detach()


def _separator(path: Path, like: Table | None) -> str:
    if is_tabbed(path):
        return "\t"
    if like is None:
        return ","
    if path != STDOUT and is_tabbed(like.path):
        return ";" if like.decimal == "," else ","
    return like.separator


def _text_writer(stream: TextIO, separator: str, like: Table | None) -> Write:
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    decimal = "." if like is None else like.decimal
    has_header = False

    def write(columns: Columns) -> None:
        nonlocal has_header
        if not has_header:
            writer.writerow(columns)
            has_header = True
        cells = [column.written(decimal) for column in columns.values()]
        writer.writerows(zip(*cells, strict=True))

    return write


@contextmanager
def _typed_writer(
    path: Path, stream: BinaryIO, numeric: Collection[str], marks: Marks
) -> Iterator[Write]:
    opened: list[Any] = []

    def write(columns: Columns) -> None:
        arrays = [
            column.stored(name in numeric, marks) for name, column in columns.items()
        ]
        batch = pa.record_batch(arrays, names=list(columns))
        if not opened:
            is_parquet = path.suffix.lower() == ".parquet"
            opener = pq.ParquetWriter if is_parquet else pa.ipc.new_file
            opened.append(opener(stream, batch.schema))
        opened[0].write_batch(batch)

    try:
        yield write
    finally:
        for writer in opened:
            writer.close()
