"""Reading tables from files, chunk by chunk."""

from __future__ import annotations

import codecs
import csv
import gc
import gzip
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from io import TextIOWrapper
from itertools import dropwhile, islice
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from hybridmix.cli.cells import (
    Column,
    TextColumn,
    TypedColumn,
    grouping_of,
    kind_of_type,
)
from hybridmix.cli.stdin import spooled_stdin
from hybridmix.cli.text_format import (
    USUAL,
    TextFormat,
    distinct_names,
    sniffed_decimal,
    sniffed_separator,
)
from hybridmix.cli.text_format import InputError as InputError
from hybridmix.data.block_readers import is_index

TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
TYPED_SUFFIXES = (".parquet", ".feather")
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
CHUNK_ROWS = 20_000
# Lines of a file that show how it writes fractions.
_SNIFFED_LINES = 200
# A cell may hold a whole document; csv's own limit is 131,072 characters.
csv.field_size_limit(2**27)


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file.

    Attributes
    ----------
    start : int
        Number of rows before these.
    columns : dict of str to Column
        In the order of the file.
    share_read : float
        Share of the file that is read, with these rows.
    """

    start: int
    columns: dict[str, Column]
    share_read: float

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))


class Table(ABC):
    """A file with a table; subclasses know the format.

    Attributes
    ----------
    path : Path
        The file.
    names : list of str
        The columns.
    renamed : list of str
        Columns that have another name than in the file, where it occurs twice.
    separator, decimal : str
        How text files separate cells, and write fractions.
    is_tabbed : bool
        Whether names of files say that tabs separate their cells.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.renamed: list[str] = []
        self.separator, self.decimal = ",", "."
        self.is_tabbed = is_tabbed(path)
        self.names = self._read_names()
        if not self.names:
            raise InputError(f"{path} has no columns.")
        repeated = [name for name, n in Counter(self.names).items() if n > 1]
        if repeated:
            raise InputError(
                f"{path} has several columns named {repeated[0]!r}; rename all but one."
            )

    @abstractmethod
    def _read_names(self) -> list[str]:
        """Return the names of the columns."""

    @abstractmethod
    def _read_chunks(self, n_rows: int) -> Iterator[Chunk]:
        """Read the rows, at most `n_rows` at a time; nothing if there are none."""

    def chunks(self, n_rows: int) -> Iterator[Chunk]:
        """Read the rows, at most `n_rows` at a time."""
        is_empty = True
        for chunk in self._read_chunks(n_rows):
            is_empty = False
            yield chunk
        if is_empty:
            raise InputError(f"{self.path} has no rows below its header.")

    def given_kind(self, name: str) -> str | None:
        """Return the kind of a column if the format knows it."""
        return None

    @cached_property
    def whole_with_holes(self) -> set[str]:
        """Columns whose type has no room for the fractions that fill their holes."""
        return set()

    def check_column(self, name: str, option: str) -> None:
        """Raise InputError unless there is such a column."""
        if name not in self.names:
            hint = " Does its header come further down?" if len(self.names) == 1 else ""
            raise InputError(f"{option}: {no_column(name, self.names, self.path)}{hint}")


class TextTable(Table):
    """A CSV or TSV file, perhaps compressed."""

    def __init__(self, path: Path, text: TextFormat = USUAL) -> None:
        self._text = text
        super().__init__(path)

    @contextmanager
    def _opened(self) -> Iterator[tuple[TextIOWrapper, BinaryIO]]:
        """Open the text, and the bytes of the file below it."""
        with self._explaining(None), open(self.path, "rb") as raw:
            is_packed = self.path.suffix.lower() == ".gz"
            stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
            # Spreadsheets start their files with a mark of the encoding.
            is_wide = stream.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            encoding = self._text.encoding or ("utf-16" if is_wide else "utf-8-sig")
            text = TextIOWrapper(cast(BinaryIO, stream), encoding=encoding, newline="")
            yield text, raw

    def _read_names(self) -> list[str]:
        with self._opened() as (text, _), self._explaining(None):
            lines = list(islice(text, _SNIFFED_LINES))
        lines = list(dropwhile(str.isspace, lines))
        if not lines:
            raise InputError(f"{self.path} is empty.")
        self.separator = "\t" if is_tabbed(self.path) else sniffed_separator(lines[0])
        self.decimal = sniffed_decimal(lines[1:], self.separator)
        with self._explaining(None):
            header = next(csv.reader(lines, delimiter=self.separator, strict=True))
        names = distinct_names([name.strip() for name in header])
        # Trailing separators make columns without names, which need no warning.
        pairs = zip(header, names, strict=True)
        self.renamed = [new for old, new in pairs if old.strip() not in ("", new)]
        return names

    def _read_chunks(self, n_rows: int) -> Iterator[Chunk]:
        size = max(self.path.stat().st_size, 1)
        start = 0
        with self._opened() as (text, raw):
            rows = self._rows(text)
            while block := _transposed(rows, n_rows):
                columns: dict[str, Column] = {
                    name: TextColumn(cells, self.decimal, self._text.thousands)
                    for name, cells in zip(self.names, block, strict=True)
                }
                chunk = Chunk(start, columns, raw.tell() / size)
                yield chunk
                start += chunk.n_rows

    def _rows(self, text: TextIOWrapper) -> Iterator[list[str]]:
        reader = csv.reader(text, delimiter=self.separator, strict=True)
        with self._explaining(reader):
            rows = filter(None, reader)  # without blank lines
            next(dropwhile(_is_blank, rows))
            for row in rows:
                if len(row) != len(self.names):
                    raise InputError(
                        f"{self.path}, line {reader.line_num}: {len(row)} cells, but the "
                        f"header has {len(self.names)}."
                    )
                yield row

    @contextmanager
    def _explaining(self, reader: Any) -> Iterator[None]:
        """Say where a file is broken, and what to do."""
        try:
            yield
        except UnicodeDecodeError as error:
            byte, encoding = error.object[error.start], error.encoding.upper()
            where = "" if reader is None else f", after line {reader.line_num}"
            raise InputError(
                f"{self.path}{where}: byte 0x{byte:02x} is not {encoding}. If the "
                "file comes from Windows, add --encoding cp1252."
            ) from error
        except UnicodeError as error:
            raise InputError(
                f"{self.path} is not in {self._text.encoding}: {error}."
            ) from error
        except csv.Error as error:
            line = 1 if reader is None else reader.line_num
            raise InputError(f"{self.path}, line {line}: {error}.") from error
        except (EOFError, gzip.BadGzipFile) as error:
            raise InputError(
                f"{self.path} is not a complete gzip file: {error}"
            ) from error


class TypedTable(Table):
    """A Parquet or Feather file."""

    def _schema(self) -> pa.Schema:
        with self._explaining():
            if self.path.suffix.lower() == ".parquet":
                return pq.read_schema(self.path)
            with pa.memory_map(str(self.path)) as stream:
                return pa.ipc.open_file(stream).schema

    def _read_names(self) -> list[str]:
        schema = self._schema()
        self._types = {f.name: f.type for f in schema if not is_index(f.name)}
        return [name for name in schema.names if name in self._types]

    def given_kind(self, name: str) -> str | None:
        """Return the kind that the type of a column implies."""
        dtype = self._types[name]
        if pa.types.is_dictionary(dtype):
            dtype = dtype.value_type
            return "categorical" if kind_of_type(dtype) == "real" else kind_of_type(dtype)
        return kind_of_type(dtype)

    @cached_property
    def whole_with_holes(self) -> set[str]:
        """Columns whose type has no room for the fractions that fill their holes."""
        whole = [
            name
            for name, dtype in self._types.items()
            if pa.types.is_integer(dtype) or pa.types.is_decimal(dtype)
        ]
        found: set[str] = set()
        for batch, _ in self._batches(100_000):
            found |= {name for name in whole if batch.column(name).null_count}
        return found

    def _read_chunks(self, n_rows: int) -> Iterator[Chunk]:
        start = 0
        for batch, share in self._batches(n_rows):
            columns: dict[str, Column] = {
                name: TypedColumn(_plain(array))
                for name, array in zip(batch.schema.names, batch.columns, strict=True)
                if name in self._types
            }
            yield Chunk(start, columns, share)
            start += batch.num_rows

    def _batches(self, n_rows: int) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Read batches of rows that are not empty, with the share that is read."""
        with self._explaining():
            if self.path.suffix.lower() == ".parquet":
                file = pq.ParquetFile(self.path)
                total, done = max(file.metadata.num_rows, 1), 0
                for batch in file.iter_batches(batch_size=n_rows):
                    done += batch.num_rows
                    if batch.num_rows:
                        yield batch, done / total
                return
            with pa.memory_map(str(self.path)) as stream:
                reader = pa.ipc.open_file(stream)
                total = reader.num_record_batches
                for number in range(total):
                    batch = reader.get_batch(number)
                    for first in range(0, batch.num_rows, n_rows):
                        part = batch.slice(first, n_rows)
                        share = (first + part.num_rows) / batch.num_rows
                        yield part, (number + share) / total

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            kind = self.path.suffix.lstrip(".")
            raise InputError(f"{self.path} is not a {kind} file: {error}") from error


def open_table(path: Path, text: TextFormat = USUAL) -> Table:
    """Open a file by its suffix; ``-`` is stdin."""
    path = spooled_stdin() if str(path) == "-" else path
    name = path.name.lower()
    if path.is_dir():
        # Folders are made of tables.
        from hybridmix.cli.folders import open_folder

        return open_folder(path, text)
    if not path.exists():
        raise InputError(f"{path}: there is no such file.")
    if name.endswith(TEXT_SUFFIXES):
        return TextTable(path, text)
    if name.endswith(TYPED_SUFFIXES):
        return TypedTable(path)
    if name.endswith(_SPREADSHEETS):
        raise InputError(f"{path} is a spreadsheet: save its sheet as CSV.")
    raise InputError(unknown_format(path))


def has_table_suffix(path: Path) -> bool:
    """Return whether the name of a file says that it is a table."""
    return path.name.lower().endswith(TEXT_SUFFIXES + TYPED_SUFFIXES)


def is_tabbed(path: Path) -> bool:
    """Return whether the name of a file says that tabs separate its cells."""
    return path.name.lower().endswith((".tsv", ".tsv.gz"))


def unknown_format(path: Path) -> str:
    """Say which formats there are."""
    known = ", ".join(TEXT_SUFFIXES + TYPED_SUFFIXES)
    return f"{path}: the suffix names the format, and must be one of {known}."


def as_option(*texts: str) -> str:
    """Write names or marks as an option of a command line takes them."""
    escaped = [text.replace('"', '""') for text in texts]
    return quote(
        ",".join(f'"{text}"' if "," in text or '"' in text else text for text in escaped)
    )


def no_column(name: str, names: list[str], where: Any) -> str:
    """Say that a column is not there, and which one may be meant."""
    folded = {other.lower(): other for other in names}
    close = [folded[word] for word in get_close_matches(name.lower(), folded, n=3)]
    hint = f"Did you mean {', '.join(map(repr, close))}?" if close else ""
    if not close:
        listed = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
        hint = f"The columns are {listed}."
    return f"{where} has no column {name!r}. {hint}"


def not_a_number(table: Table, name: str, row: int, text: str) -> str:
    """Say which cell of a real column is not a finite number, and what can be done."""
    return (
        f"{table.path}: column {name!r} is real, but row {row} has {text!r}, which is "
        f"not a finite number. {way_out(text, table.decimal)}"
    )


def way_out(text: str, decimal: str) -> str:
    """Say how a cell that is not a number can be read all the same."""
    mark = grouping_of(text, decimal)
    if mark is not None:
        return f"It looks like a number: --thousands {quote(mark)}."
    return f"If it means a missing value: --na {as_option(text)}."


def _transposed(rows: Iterator[list[str]], n_rows: int) -> list[list[str]]:
    """Read some rows, and return their columns.

    The many new lists would call the garbage collector again and again. It finds nothing
    and takes more time than the reading, so it waits.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [list(cells) for cells in zip(*islice(rows, n_rows), strict=True)]
    finally:
        if was_enabled:
            gc.enable()


def _is_blank(row: list[str]) -> bool:
    return len(row) == 1 and not row[0].strip()


def _plain(array: pa.Array) -> pa.Array:
    """Replace dictionaries, which batches may differ in, and the newest kind of text."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    return array.cast(pa.string()) if str(array.type) == "string_view" else array
