"""Rows grouped by the columns that they miss.

Complete rows and rows that share a frequent pattern of holes are treated together, by the
marginal of what they have; the rest by the number of missing columns.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows, pattern_numbers
from hybridmix.families.moments import FullParameters, FullStatistics
from hybridmix.families.scattered import ScatteredRows
from hybridmix.families.uniform import UniformRows

# From this many rows on, a factorisation for a pattern of its own is worth its overhead.
_FREQUENT = 64


class RowGroup(Protocol):
    """Rows whose holes are treated in the same way."""

    @property
    def index(self) -> IntArray | None:
        """Which rows these are; None for all."""
        ...

    @property
    def n_observed(self) -> IntArray:
        """Number of observed columns, (n,)."""
        ...

    def evaluate(self, parameters: FullParameters) -> tuple[FloatArray, Any]:
        """Return log densities (J, n), and a note for the other methods."""
        ...

    def add_to(
        self,
        total: FullStatistics,
        parameters: FullParameters,
        weights: FloatArray,
        note: Any,
    ) -> None:
        """Add expected statistics of the rows, with signed weights (J, n)."""
        ...

    def filled(self, parameters: FullParameters, note: Any) -> FloatArray:
        """Return the rows with holes filled by each component, (J, d, n)."""
        ...

    def half_log_determinants(self, note: Any) -> FloatArray:
        """Half the log determinants of what is observed, (J, n) up to broadcasting."""
        ...


def group_rows(rows: Rows) -> list[RowGroup]:
    """Group rows by what they miss."""
    if rows.observed is None:
        return [UniformRows.of(rows.real, None, None)]
    pattern, examples, counts = pattern_numbers(rows.observed.T)
    groups: list[RowGroup] = []
    for number in np.flatnonzero(counts >= _FREQUENT):
        index = np.flatnonzero(pattern == number)
        columns = np.flatnonzero(rows.observed[:, examples[number]])
        groups.append(UniformRows.of(rows.real[np.ix_(columns, index)], index, columns))
    rare = counts[pattern] < _FREQUENT
    n_missing = np.sum(~rows.observed, axis=0)
    for number in np.unique(n_missing[rare]):
        index = np.flatnonzero(rare & (n_missing == number))
        groups.append(
            ScatteredRows.of(
                rows.real[:, index], rows.observed[:, index], index, pattern[index]
            )
        )
    return groups


def assemble(groups: list[RowGroup], parts: list[np.ndarray]) -> FloatArray:
    """Put results of groups, (..., n) each, into the order of the rows."""
    if len(parts) == 1 and groups[0].index is None:
        return parts[0]
    n_rows = sum(part.shape[-1] for part in parts)
    result = np.empty((*parts[0].shape[:-1], n_rows))
    for group, part in zip(groups, parts, strict=True):
        result[..., slice(None) if group.index is None else group.index] = part
    return result
