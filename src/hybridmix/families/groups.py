"""Rows are treated in groups that miss the same columns, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hybridmix._scratch import empty
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import pattern_numbers


class Group(Protocol):
    """Some of the rows of a chunk."""

    @property
    def index(self) -> IntArray | None:
        """Which rows these are; None for all."""
        ...


def split_by_pattern(
    observed: BoolArray, frequent: int
) -> tuple[list[tuple[IntArray, IntArray]], IntArray, IntArray]:
    """Find rows that have the same columns, from a mask (d, n).

    Returns
    -------
    alike : list of (index, columns)
        Rows of each pattern that is frequent, and the columns that they have.
    rest : ndarray
        The other rows.
    pattern : ndarray
        Numbers of the patterns of the other rows.
    """
    pattern, examples, counts = pattern_numbers(observed.T)
    alike: list[tuple[IntArray, IntArray]] = [
        (np.flatnonzero(pattern == number), np.flatnonzero(observed[:, examples[number]]))
        for number in np.flatnonzero(counts >= frequent)
    ]
    rest = np.flatnonzero(counts[pattern] < frequent)
    return alike, rest, pattern[rest]


def assemble(groups: Sequence[Group], parts: Sequence[np.ndarray]) -> FloatArray:
    """Put results of groups, (..., n) each, into the order of the rows."""
    if len(parts) == 1 and groups[0].index is None:
        return parts[0]
    n_rows = sum(part.shape[-1] for part in parts)
    result = empty((*parts[0].shape[:-1], n_rows))
    for group, part in zip(groups, parts, strict=True):
        result[..., slice(None) if group.index is None else group.index] = part
    return result
