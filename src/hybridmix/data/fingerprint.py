"""Fingerprints of training tables: whether a model has seen the rows of another table.

A fingerprint is a bottom-k sketch: every row becomes a number of 64 bits, and the
smallest few distinct numbers are kept. Whether a row was in the table can then be said
of every row whose number is small enough to be among those kept. For a table of up to
`SIZE` distinct rows these are all rows; beyond, they are a random sample of any other
table. Rows themselves are not kept, and cannot be computed from the fingerprint. Anyone
who has a row can check whether it was in the table, though, as with any such record.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridmix._chunks import row_chunks
from hybridmix._registered import registered
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.schema import Schema
from hybridmix.data.table import Table

Hashes = npt.NDArray[np.uint64]

# Distinct rows that are kept: 16 kB at most, with how often each of them occurs.
SIZE = 1024
# What `Fingerprint.look_up` says about a row.
SEEN, UNSEEN, UNJUDGED = 1, 0, -1
# Fewer judged rows than this are not a sample that says anything about the others.
_FEWEST_JUDGED = 20
# That rows of a new table all occur in training by chance is excluded at this level, and
# by this many standard errors that more of them occur there than by chance.
_LEVEL = 1e-3
_ERRORS = 3.0
_UNREPEATED = 0.5 * _LEVEL


class Origin(StrEnum):
    """Where the rows of a table come from, as far as a model can know."""

    SEEN = "seen"
    UNSEEN = "unseen"
    MIXED = "mixed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Overlap:
    """How many rows of a table were in training; overlaps of parts can be added.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    n_judged : int
        Rows of which the fingerprint knows whether they were in training.
    n_seen : int
        Those of them that were.
    """

    n_rows: int = 0
    n_judged: int = 0
    n_seen: int = 0

    @classmethod
    def of(cls, found: IntArray) -> Overlap:
        """Count what `Fingerprint.look_up` has found."""
        return cls(len(found), int(np.sum(found != UNJUDGED)), int(np.sum(found == SEEN)))

    def __add__(self, other: Overlap) -> Overlap:
        return Overlap(
            self.n_rows + other.n_rows,
            self.n_judged + other.n_judged,
            self.n_seen + other.n_seen,
        )


@registered
@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The smallest hashes of the distinct rows of a table.

    The order of the rows, the container and the type of a column make no difference, as
    long as the values are the same. Labels and weights are not part of it.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (k,)
        In ascending order; `SIZE` of them at most.
    counts : ndarray of int64, shape (k,)
        How often each of these rows occurs.
    n_rows : int
        Rows of the table.
    """

    hashes: Hashes
    counts: IntArray
    n_rows: int

    @classmethod
    def of(cls, table: Table, weights: FloatArray | None = None) -> Fingerprint:
        """Take the fingerprint of an encoded table; rows of no weight do not count."""
        result = cls(np.empty(0, np.uint64), np.empty(0, np.int64), 0)
        columns = _ColumnKeys.of(table.schema)
        waiting: list[Hashes] = []
        n_rows = 0
        for block in row_chunks(table.n_rows, _width(table)):
            hashes = columns.row_hashes(table.real[block], table.codes[block])
            if weights is not None:
                hashes = hashes[weights[block] > 0]
            n_rows += len(hashes)
            # Hashes above those of a full sketch can be left out before they are sorted;
            # the few that are left of most blocks wait for others.
            low = hashes[hashes <= result.hashes[-1]] if result.is_full else hashes
            waiting.append(low)
            if sum(map(len, waiting)) >= SIZE:
                result = result.merge(cls.of_hashes(np.concatenate(waiting)))
                waiting = []
        if waiting:
            result = result.merge(cls.of_hashes(np.concatenate(waiting)))
        return replace(result, n_rows=n_rows)

    @classmethod
    def of_hashes(cls, hashes: Hashes) -> Fingerprint:
        """Keep the smallest of some hashes of rows."""
        kept, counts = np.unique(hashes, return_counts=True)
        return cls(kept[:SIZE], counts[:SIZE].astype(np.int64), len(hashes))

    def merge(self, other: Fingerprint) -> Fingerprint:
        """Return the fingerprint of two tables, one below the other."""
        hashes, places = np.unique(
            np.concatenate([self.hashes, other.hashes]), return_inverse=True
        )
        counts = np.zeros(len(hashes), dtype=np.int64)
        np.add.at(counts, places, np.concatenate([self.counts, other.counts]))
        # A full sketch has as many hashes below its threshold, so those that are kept are
        # below both thresholds, where no row has been dropped.
        n_rows = self.n_rows + other.n_rows
        return Fingerprint(hashes[:SIZE], counts[:SIZE], n_rows)

    @property
    def is_full(self) -> bool:
        """Whether further rows can only take the place of others."""
        return len(self.hashes) == SIZE

    @property
    def is_complete(self) -> bool:
        """Whether every row of the table is in the sketch."""
        return int(self.counts.sum()) == self.n_rows

    @property
    def coincidence(self) -> float:
        """Probability that a new row of the same kind occurs in the table by chance.

        It is the share of the rows of the table that occur there more than once (Good and
        Turing's estimate), and never quite zero.
        """
        repeated = int(self.counts[self.counts > 1].sum())
        estimate = (repeated + 1.0) / (int(self.counts.sum()) + 2.0)
        # Where no row repeats another, few rows are no reason to believe that they might.
        return estimate if repeated else min(estimate, _UNREPEATED)

    def look_up(self, table: Table) -> IntArray:
        """Say of each row whether it was in training: `SEEN`, `UNSEEN` or `UNJUDGED`.

        Parameters
        ----------
        table : Table
            Encoded by the schema of training.

        Returns
        -------
        found : ndarray of shape (n,)
        """
        columns = _ColumnKeys.of(table.schema)
        found = np.full(table.n_rows, UNSEEN)
        if len(self.hashes) == 0:
            return found
        threshold = np.uint64(2**64 - 1) if self.is_complete else self.hashes[-1]
        for block in row_chunks(table.n_rows, _width(table)):
            hashes = columns.row_hashes(table.real[block], table.codes[block])
            places = np.searchsorted(self.hashes, hashes)
            nearest = self.hashes[np.minimum(places, len(self.hashes) - 1)]
            part = np.where(nearest == hashes, SEEN, UNSEEN)
            part[hashes > threshold] = UNJUDGED
            found[block] = part
        return found

    def origin(self, overlap: Overlap) -> Origin:
        """Judge from the rows that were found where all rows of a table come from.

        Tables of few columns have rows in common by chance. Rows are called seen only if
        more of them occur in training than rows of training repeat themselves.
        """
        judged, seen, chance = overlap.n_judged, overlap.n_seen, self.coincidence
        is_sample = judged < overlap.n_rows
        if judged == 0 or (is_sample and judged < _FEWEST_JUDGED):
            return Origin.UNKNOWN
        if seen == judged:
            return Origin.SEEN if chance**judged < _LEVEL else Origin.UNKNOWN
        n_known = int(self.counts.sum())
        variance = chance * (1.0 - chance) * (1.0 / judged + 1.0 / n_known)
        # A single row may always be the same by chance.
        if seen <= max(1.0, judged * (chance + _ERRORS * variance**0.5)):
            return Origin.UNSEEN
        return Origin.MIXED

    def check_consistent(self) -> None:
        """Raise ValueError if the parts do not belong together, as in a damaged file."""
        hashes, counts = np.asarray(self.hashes), np.asarray(self.counts)
        is_sound = (
            hashes.dtype == np.uint64
            and counts.dtype == np.int64
            and hashes.ndim == 1
            and hashes.shape == counts.shape
            and len(hashes) <= SIZE
            and type(self.n_rows) is int
        )
        if not is_sound or not self._has_sound_values():
            raise ValueError("The fingerprint of the training rows is damaged.")

    def _has_sound_values(self) -> bool:
        total = int(self.counts.sum())
        return bool(
            np.all(self.hashes[1:] > self.hashes[:-1])
            and np.all(self.counts > 0)
            and total <= self.n_rows
            # Only a full sketch leaves rows out.
            and (total == self.n_rows or len(self.hashes) == SIZE)
        )


@dataclass(frozen=True)
class _ColumnKeys:
    """Random numbers for the columns of a schema and their categories.

    Attributes
    ----------
    real, categorical : ndarray of uint64, shape (d,) and (f,)
        One for each column, so that equal values of two columns differ.
    categories : tuple of ndarray of uint64, shape (c + 1,)
        For each categorical column: one for each category, then one for
        missing cells.
    """

    real: Hashes
    categorical: Hashes
    categories: tuple[Hashes, ...]

    @classmethod
    def of(cls, schema: Schema) -> _ColumnKeys:
        keys = _mixed(np.arange(1, schema.n_columns + 1, dtype=np.uint64))
        return cls(
            keys[list(schema.real)],
            keys[list(schema.categorical)],
            tuple(
                np.array([*map(_text_key, map(_text_of, values)), _text_key("")])
                for values in schema.categories
            ),
        )

    def row_hashes(self, real: FloatArray, codes: IntArray) -> Hashes:
        """Return one number for each row, from real values and category numbers."""
        # Adding zero turns minus zero into zero; NaN has many patterns of bits.
        values = np.ascontiguousarray(real, dtype=np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        bits = values.view(np.uint64)
        bits ^= self.real
        total = _mixed(bits).sum(axis=1, dtype=np.uint64)
        for keys, key, column in zip(
            self.categories, self.categorical, codes.T, strict=True
        ):
            # The code of a missing cell, -1, picks the last key.
            total += _mixed(keys ^ key)[column]
        return _mixed(total)


def _width(table: Table) -> int:
    # Hashing goes over its numbers many times: small blocks stay in the cache.
    return 16 * max(table.real.shape[1] + table.codes.shape[1], 1)


def _mixed(values: Hashes) -> Hashes:
    """Spread numbers over all 64 bits, one to one: the last steps of splitmix64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def _text_of(value: Any) -> str:
    """Write a category so that 1 and 1.0 are the same, and text is not a number."""
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    return f"number {float(value)!r}" if is_number else f"text {value}"


def _text_key(text: str) -> np.uint64:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return np.uint64(int.from_bytes(digest.digest(), "little"))
