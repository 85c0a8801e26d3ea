"""Writing tables to files, chunk by chunk, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from hybridmix._text import printable
from hybridmix._writing import replacing
from hybridmix.cli.cells import MISSING, Column, Marks, is_number
from hybridmix.cli.streams import results_to_stdout
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
# Spreadsheets run cells that begin with these (the last four are full-width forms).
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def check_output(
    path: Path, *inputs: Path, is_table: bool = True, escape_formulas: bool = False
) -> None:
    """Refuse, before any work, an output that cannot be written."""
    if path == STDOUT and is_table:
        return
    if path == STDOUT:
        raise InputError("-o -: models do not go to stdout; name a file.")
    if is_table:
        _check_format(path, escape_formulas)
    _check_place(path)
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise InputError(f"-o {path} would replace what is read; name another file.")


def _check_format(path: Path, escape_formulas: bool) -> None:
    name = path.name.lower()
    if not name.endswith(TEXT_SUFFIXES + TYPED_SUFFIXES):
        raise InputError(unknown_format(path))
    if escape_formulas and name.endswith(TYPED_SUFFIXES):
        raise InputError(
            f"--escape-formulas is for CSV and TSV files; {path} keeps text apart from "
            "formulas."
        )


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a device or a pipe; name a file.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: no permission to write to {folder}.")


@contextmanager
def writing(
    path: Path,
    like: Table | None = None,
    numeric: Collection[str] = (),
    marks: Marks = MISSING,
    escape_formulas: bool = False,
) -> Iterator[Write]:
    """Open a file for columns of rows.

    Parameters
    ----------
    path : Path
        The file; its suffix names the format. ``-`` is CSV on stdout.
    like : Table or None
        The table that the rows come from, which text files resemble.
    numeric : collection of str
        Columns of text that typed files hold as numbers.
    marks : frozenset of str
        Missing values of text that typed files hold as null.
    escape_formulas : bool
        Put an apostrophe before text that spreadsheets would take for a formula.

    Yields
    ------
    write : callable
        Takes the columns of some rows.
    """
    layout = _Layout(
        _separator(path, like), "." if like is None else like.decimal, escape_formulas
    )
    if path == STDOUT:
        with results_to_stdout():
            yield _text_writer(sys.stdout, layout)
        return
    with replacing(path) as stream:
        if path.name.lower().endswith(TEXT_SUFFIXES):
            with _text_stream(path, stream) as text:
                yield _text_writer(text, layout)
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
        # The stream is closed where it was opened.
        text.detach()


def _separator(path: Path, like: Table | None) -> str:
    if is_tabbed(path):
        return "\t"
    if like is None:
        return ","
    if path != STDOUT and like.is_tabbed:
        return ";" if like.decimal == "," else ","
    return like.separator


@dataclass(frozen=True)
class _Layout:
    """How a text file writes cells."""

    separator: str
    decimal: str
    escape_formulas: bool

    def changed(self, cells: Iterable[str], is_screen: bool) -> Iterable[str]:
        """Return cells that neither spreadsheets nor terminals obey."""
        if self.escape_formulas:
            cells = [f"'{cell}" if self._is_formula(cell) else cell for cell in cells]
        return [printable(cell, keep="\n") for cell in cells] if is_screen else cells

    def _is_formula(self, cell: str) -> bool:
        return cell.startswith(_FORMULA) and not is_number(cell, self.decimal, True)


def _text_writer(stream: TextIO, layout: _Layout) -> Write:
    writer = csv.writer(stream, delimiter=layout.separator, lineterminator="\n")
    is_screen = stream.isatty()
    has_header = False

    def write(columns: Columns) -> None:
        nonlocal has_header
        if not has_header:
            writer.writerow(layout.changed(columns, is_screen))
            has_header = True
        cells = [
            layout.changed(column.written(layout.decimal), is_screen)
            for column in columns.values()
        ]
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
