"""Folders of files that are one table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.dataset as pds

from hybridmix.cli.tables import (
    TEXT_SUFFIXES,
    TYPED_SUFFIXES,
    Chunk,
    InputError,
    Table,
    TextTable,
    TypedTable,
)
from hybridmix.cli.text_format import USUAL, TextFormat
from hybridmix.data.block_readers import files_below, open_dataset, reader_of


class TextFolder(Table):
    """A folder of CSV or TSV files with the same columns; each has a header."""

    def __init__(self, path: Path, files: list[Path], text: TextFormat = USUAL) -> None:
        self._parts = [TextTable(file, text) for file in files]
        super().__init__(path)
        first = self._parts[0]
        self.separator, self.decimal = first.separator, first.decimal
        self.is_tabbed = first.is_tabbed

    def _read_names(self) -> list[str]:
        first = self._parts[0]
        for part in self._parts:
            if part.names != first.names:
                raise InputError(
                    f"{part.path} has other columns than {first.path}, or another order "
                    "of them: name a folder of files that are parts of one table."
                )
            part.decimal = first.decimal
        return first.names

    def _read_chunks(self, n_rows: int) -> Iterator[Chunk]:
        sizes = [part.path.stat().st_size for part in self._parts]
        before = accumulate(sizes, initial=0)
        total, start = max(sum(sizes), 1), 0
        for part, size, read in zip(self._parts, sizes, before, strict=False):
            n_own = 0
            for chunk in part._read_chunks(n_rows):
                share = (read + size * chunk.share_read) / total
                yield Chunk(start + chunk.start, chunk.columns, share)
                n_own = chunk.start + chunk.n_rows
            start += n_own


class TypedFolder(TypedTable):
    """A folder of Parquet or Feather files.

    Names of folders such as ``year=2024`` make a column. Where files disagree about a
    type, it is one that holds the values of all.
    """

    @cached_property
    def _dataset(self) -> pds.Dataset:
        return open_dataset([self.path])

    def _schema(self) -> pa.Schema:
        with self._explaining():
            return self._dataset.schema

    def _batches(self, n_rows: int) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Read batches of rows, with the share that is read."""
        reader = reader_of(self._dataset)
        with self._explaining():
            total, done = max(self._dataset.count_rows(), 1), 0
            for block in reader.blocks(self.names, n_rows):
                table = cast(pa.Table, block).unify_dictionaries().combine_chunks()
                done += table.num_rows
                [batch] = table.to_batches()
                yield batch, done / total


def _ending(files: list[Path], suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files whose names have one of some suffixes."""
    return [file for file in files if file.name.lower().endswith(suffixes)]


def open_folder(path: Path, text: TextFormat = USUAL) -> Table:
    """Open a folder of text files, or of Parquet or Feather files."""
    files = files_below(path)
    texts, typed = _ending(files, TEXT_SUFFIXES), _ending(files, TYPED_SUFFIXES)
    if texts and typed:
        raise InputError(
            f"{path} has {texts[0].name} and {typed[0].name}; name a folder of files "
            "that are parts of one table."
        )
    if texts:
        return TextFolder(path, texts, text)
    if typed:
        return TypedFolder(path)
    known = ", ".join(TEXT_SUFFIXES + TYPED_SUFFIXES)
    raise InputError(f"{path} is a folder without any file of a table ({known}).")
