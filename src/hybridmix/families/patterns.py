"""Rows grouped by the columns that they miss.

Complete rows and rows that share a frequent pattern of holes are treated together, by the
marginal of what they have; the rest by the number of missing columns.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Notes
from hybridmix.families.groups import Group, split_by_pattern
from hybridmix.families.moments import FullParameters, FullStatistics
from hybridmix.families.scattered import ScatteredRows
from hybridmix.families.uniform import UniformRows

# From this many rows on, a factorisation for a pattern of its own is worth its overhead.
_FREQUENT = 64


class RowGroup(Group, Protocol):
    """Rows whose holes are treated in the same way."""

    @property
    def n_observed(self) -> IntArray:
        """Number of observed columns, (n,)."""
        ...

    def evaluate(self, parameters: FullParameters) -> tuple[FloatArray, Notes]:
        """Return log densities (J, n), and a note for the other methods."""
        ...

    def add_to(
        self,
        total: FullStatistics,
        parameters: FullParameters,
        weights: FloatArray,
        note: Notes,
    ) -> None:
        """Add expected statistics of the rows, with signed weights (J, n)."""
        ...

    def filled(self, parameters: FullParameters, note: Notes) -> FloatArray:
        """Return the rows with holes filled by each component, (J, d, n)."""
        ...

    def half_log_determinants(self, note: Notes) -> FloatArray:
        """Half the log determinants of what is observed, (J, n) up to broadcasting."""
        ...


def group_rows(rows: Rows) -> list[RowGroup]:
    """Group rows by what they miss."""
    if rows.observed is None:
        return [UniformRows.of(rows.real, None, None)]
    alike, rest, pattern = split_by_pattern(rows.observed, _FREQUENT)
    groups: list[RowGroup] = [
        UniformRows.of(rows.real[np.ix_(columns, index)], index, columns)
        for index, columns in alike
    ]
    n_missing = np.sum(~rows.observed[:, rest], axis=0)
    for number in np.unique(n_missing):
        chosen = n_missing == number
        index = rest[chosen]
        groups.append(
            ScatteredRows.of(
                rows.real[:, index], rows.observed[:, index], index, pattern[chosen]
            )
        )
    return groups
