"""Distinct rows with summed weights: what a choice among rows may depend on.

A row of weight two stands for two equal rows, and a row of weight zero for none. Choices
among rows, such as which ones to hold out, follow this only if they are made among
distinct rows, in an order of their values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hybridmix._chunks import row_chunks
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows


def distinct_rows(rows: Rows, weights: FloatArray) -> tuple[Rows, FloatArray]:
    """Return the distinct rows that have a weight and a value, with summed weights.

    Only real columns count. The order depends on the values alone, and looks random. The
    weights are one on average. If no row says anything, one at the origin is returned.
    """
    says = weights > 0.0
    if rows.observed is not None:
        says &= rows.observed.any(axis=0)
    index = np.flatnonzero(says)
    if len(index) == 0:
        return Rows(np.zeros((len(rows.real), 1)), None, np.empty((0, 1), np.int32)), (
            np.ones(1)
        )
    said = replace(rows, codes=rows.codes[:0])[index]
    _, examples, numbers = np.unique(
        _hashes(said), return_index=True, return_inverse=True
    )
    # Divided first, as a sum of huge weights would overflow.
    sums = np.bincount(numbers, weights[index] / weights[index].max())
    return said[examples], sums / sums.mean()


def _hashes(rows: Rows) -> npt.NDArray[np.uint64]:
    """Return a number for every row that equal rows share, and others do not.

    Sums of 64-bit numbers that wrap around are the same in any order, so that the result
    has no rounding. Two different rows in a million meet with a probability of 1e-7.
    """
    d = len(rows.real)
    odd = np.random.default_rng(0).integers(1 << 63, size=(d, 1), dtype=np.uint64) * 2 + 1
    result = np.empty(rows.n_rows, np.uint64)
    for chunk in row_chunks(rows.n_rows, 3 * d):
        # The sum turns -0 into 0.
        bits = (rows.real[:, chunk].astype(np.float64) + 0.0).view(np.uint64)
        if rows.observed is not None:
            bits[~rows.observed[:, chunk]] = 1
        # Few digits leave the lower half of the bits empty; products only go upwards.
        mixed = (bits ^ (bits >> np.uint64(32))) * odd
        mixed ^= mixed >> np.uint64(29)
        mixed *= odd[::-1]
        result[chunk] = mixed.sum(axis=0, dtype=np.uint64)
    return result
