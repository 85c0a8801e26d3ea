"""Rows grouped by the columns that they miss.

Complete rows and rows that share a frequent pattern of holes are treated together, by the
marginal of what they have; the rest by the number of missing columns.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hybridmix import _kernels
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Notes
from hybridmix.families.compiled import CompiledRows
from hybridmix.families.groups import Group, split_by_pattern
from hybridmix.families.moments import FullParameters, FullStatistics
from hybridmix.families.scattered import ScatteredRows
from hybridmix.families.uniform import UniformRows

# From this many rows on, a factorisation for a pattern of its own is worth its overhead.
_FREQUENT = 128
# Multiplications, per covariance, that a call for all rows is worth.
_WASTED = 20_000


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
    # Small systems would lose too many digits in single precision.
    real = rows.real.astype(np.float64, copy=False)
    alike, rest, pattern = split_by_pattern(rows.observed, _FREQUENT)
    groups: list[RowGroup] = [
        UniformRows.of(real[np.ix_(columns, index)], index, columns)
        for index, columns in alike
    ]
    n_missing = np.sum(~rows.observed[:, rest], axis=0)
    # The smaller systems are those of the missing or of the observed columns.
    by_missing = 2 * n_missing <= len(real)
    kernels = _kernels.active()
    if kernels is not None:
        both = (real, rows.observed)
        forms = ((rest[by_missing == form], form) for form in (True, False))
        groups.extend(
            CompiledRows.of(kernels, both, *own) for own in forms if len(own[0])
        )
        return groups
    sizes = np.minimum(n_missing, len(real) - n_missing)
    for form in (True, False):
        for of_size in joined_sizes(sizes[by_missing == form]):
            chosen = (by_missing == form) & np.isin(sizes, of_size)
            groups.append(
                ScatteredRows.of(
                    (real, rows.observed), rest[chosen], pattern[chosen], form
                )
            )
    return groups


def joined_sizes(sizes: IntArray) -> list[list[int]]:
    """Return which sizes of systems are treated as the largest of them, (n,) given.

    This takes more arithmetic, but fewer calls.
    """
    joined: list[list[int]] = []
    wasted = 0
    distinct, counts = np.unique(sizes, return_counts=True)
    for size, count in zip(distinct[::-1].tolist(), counts[::-1].tolist(), strict=True):
        if joined:
            wasted += count * (joined[-1][0] ** 3 - size**3)
        if not joined or wasted > _WASTED:
            joined.append([])
            wasted = 0
        joined[-1].append(size)
    return joined
