"""Tables that do not fit into memory, where models are fitted to them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hybridmix.cli.cells import Marks
from hybridmix.cli.columns import ColumnKind
from hybridmix.cli.console import Console
from hybridmix.cli.frames import as_frame
from hybridmix.cli.labels import Target, class_labels
from hybridmix.cli.models import numbers_of
from hybridmix.cli.tables import CHUNK_ROWS, Chunk, InputError, Table
from hybridmix.cli.values import Texts, without_mark
from hybridmix.data.block_readers import Reader
from hybridmix.data.scanning import ScannedTable, bytes_of

# What a cell takes at the peak of a fit: as it was read, in a data frame, encoded, and
# arranged for training; text also as an object of Python.
_BYTES_OF_NUMBER, _BYTES_OF_TEXT = 48, 150
# A table that takes more than this share of the memory that is free is read in blocks.
_MOST_OF_FREE = 0.7
# Where the system does not say how much memory there is.
_UNKNOWN = 4_000_000_000
# What rows take at a time, unless the limit is lower; more does not make it faster.
_BLOCKS = 256_000_000
# A target of more different values than this has no classes.
_MOST_LABELS = 10_000


@dataclass(frozen=True)
class Memory:
    """How much memory a table may take.

    Attributes
    ----------
    given : int or None
        Bytes that an option allows; None to look how much is free.
    """

    given: int | None = None

    @classmethod
    def parsed(cls, text: str | None) -> Memory:
        """Read an option such as ``2GB``."""
        try:
            return cls(None if text is None else bytes_of(text))
        except ValueError:
            raise InputError(
                f"--memory {text}: give a number of bytes, such as 500MB or 2GB."
            ) from None

    @property
    def limit(self) -> int:
        """Bytes that a table may take."""
        return int(_MOST_OF_FREE * free_memory()) if self.given is None else self.given

    @property
    def of_blocks(self) -> int:
        """Bytes that a block of rows may take."""
        return min(self.limit, _BLOCKS)


# As much as is free.
ANY_FREE = Memory()


def free_memory() -> int:
    """Return how many bytes of memory this process may still take, about."""
    found = [
        _number_in(Path("/proc/meminfo"), "MemAvailable:", 1024),
        _number_in(Path("/sys/fs/cgroup/memory.max")),
        _physical_memory(),
    ]
    return min((number for number in found if number is not None), default=_UNKNOWN)


def _physical_memory() -> int | None:
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _number_in(path: Path, name: str = "", unit: int = 1) -> int | None:
    """Return the number behind a name in a file of the system; None if there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    words = next(
        (line.removeprefix(name).split() for line in lines if line.startswith(name)), []
    )
    return int(words[0]) * unit if words and words[0].isdigit() else None


def estimated_bytes(table: Table, kinds: Sequence[ColumnKind]) -> int:
    """Estimate what a fit to a table takes in memory, by its first rows."""
    first = next(table.chunks(CHUNK_ROWS))
    n_rows = first.n_rows / min(first.share_read, 1.0)
    used = [kind.kind for kind in kinds if kind.kind != "dropped"]
    n_numbers = sum(kind in ("real", "weight") for kind in used)
    n_texts = len(used) - n_numbers
    return int(n_rows * (n_numbers * _BYTES_OF_NUMBER + n_texts * _BYTES_OF_TEXT))


def excess(table: Table, kinds: Sequence[ColumnKind], memory: Memory) -> str | None:
    """Say by how much a table is larger than the memory it may take; None if it fits."""
    needed, limit = estimated_bytes(table, kinds), memory.limit
    if needed <= limit:
        return None
    return (
        f"{table.path} would take about {_in_words(needed)} of memory, and may take "
        f"{_in_words(limit)}"
    )


def _in_words(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"


# Rows ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """How cells of the target become labels.

    Attributes
    ----------
    name : str
        The column.
    unlabelled : str or None
        A label that means none.
    task : {"classify", "regress"}
        Whether the cells are classes or numbers.
    whole : dict of str to int or None
        The whole numbers that the cells spell; None if labels are text.
    counts : Counter
        Numbers of rows of the labels.
    """

    name: str
    unlabelled: str | None
    task: str
    whole: dict[str, int] | None
    counts: Counter[str]

    def of(self, texts: Texts) -> np.ndarray:
        """Return the labels of some cells, None where missing."""
        return class_labels(without_mark(texts, self.unlabelled), self.whole)


class _ChunkReader(Reader):
    """Reads the columns of a fit as they would be read into memory, in blocks.

    Parameters
    ----------
    table : Table
        The file or folder.
    kinds : sequence of ColumnKind
        What to read its columns as.
    marks : frozenset of str
        Cells that count as missing.
    labels : Labels or None
        How to read the target.
    """

    def __init__(
        self,
        table: Table,
        kinds: Sequence[ColumnKind],
        marks: Marks,
        labels: Labels | None,
    ) -> None:
        self._table = table
        self._kinds = {k.name: k.kind for k in kinds if k.kind != "dropped"}
        self._marks = marks
        self._labels = labels
        self.names = tuple(self._kinds)

    def __repr__(self) -> str:
        return str(self._table.path)

    def _blocks(self, columns: list[str], n_rows: int) -> Iterator[Sized]:
        waiting: list[pd.DataFrame] = []
        n_waiting = 0
        for chunk in self._table.chunks(min(n_rows, CHUNK_ROWS)):
            waiting.append(self._frame(chunk, columns))
            n_waiting += chunk.n_rows
            while n_waiting >= n_rows:
                frame = pd.concat(waiting, ignore_index=True)
                yield frame[:n_rows]
                waiting = [frame[n_rows:]]
                n_waiting -= n_rows
        if n_waiting:
            yield pd.concat(waiting, ignore_index=True)

    def _frame(self, chunk: Chunk, columns: list[str]) -> pd.DataFrame:
        cells: dict[str, Any] = {}
        kinds: list[str] = []
        for name in columns:
            is_real = self._kinds[name] in ("real", "weight")
            kinds.append("real" if is_real else "categorical")
            if is_real:
                cells[name] = numbers_of(self._table, chunk, name, self._marks)
                continue
            cells[name] = texts = chunk.columns[name].texts(self._marks)
            if self._labels is not None and name == self._labels.name:
                cells[name] = self._labels.of(texts)
        return as_frame(cells, kinds, as_array=False)


class LargeTable(ScannedTable):
    """A table of the command line that estimators read in blocks.

    Parameters
    ----------
    table : Table
        The file or folder.
    kinds : sequence of ColumnKind
        What to read its columns as.
    marks : frozenset of str
        Cells that count as missing.
    labels : Labels or None
        How to read the target.
    memory : Memory
        How much memory it may take.
    """

    def __init__(
        self,
        table: Table,
        kinds: Sequence[ColumnKind],
        marks: Marks,
        labels: Labels | None,
        memory: Memory,
    ) -> None:
        self._chunks = _ChunkReader(table, kinds, marks, labels)
        super().__init__(
            self._chunks, self._chunks.names, memory.of_blocks, None, "float64"
        )

    @property
    def n_rows(self) -> int:
        """Number of rows, once they were read."""
        return self._chunks.n_rows or 0


@dataclass(frozen=True)
class CountedTarget(Target):
    """Classes of a table in blocks, whose ``values`` are the name of their column.

    Attributes
    ----------
    counts : Counter
        Numbers of rows of the labels.
    """

    counts: Counter[str]

    @classmethod
    def of(cls, labels: Labels) -> CountedTarget:
        """Return the target that some labels make."""
        reason = f"{len(labels.counts)} labels"
        return cls(labels.task, labels.name, reason, labels.counts)

    @property
    def n_known(self) -> int:
        """How many rows have a label."""
        return self.counts.total()

    @property
    def n_different(self) -> int:
        """How many classes there are."""
        return len(self.counts)


def count_labels(
    table: Table, name: str, unlabelled: str | None, marks: Marks, console: Console
) -> Counter[str]:
    """Count the cells of a target; there is an end to it where they are too many."""
    counts: Counter[str | None] = Counter()
    for chunk in console.track(table.chunks(CHUNK_ROWS), "counting labels"):
        counts.update(without_mark(chunk.columns[name].texts(marks), unlabelled))
        if len(counts) > _MOST_LABELS:
            break
    return Counter({text: n for text, n in counts.items() if text is not None})
