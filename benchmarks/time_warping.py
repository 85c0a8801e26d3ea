"""Nearest neighbours under dynamic time warping, compiled by numba."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def distance(a: np.ndarray, b: np.ndarray, window: float, limit: float) -> float:
    """Return the squared distance of two sequences; infinity if it exceeds the limit.

    The path may leave the diagonal by `window` times the length of the longer sequence.
    """
    n, m = len(a), len(b)
    reach = max(int(window * max(n, m)), abs(n - m) + 1)
    before = np.full(m + 1, np.inf)
    row = np.full(m + 1, np.inf)
    before[0] = 0.0
    for i in range(1, n + 1):
        row[:] = np.inf
        least = np.inf
        for j in range(max(1, i - reach), min(m, i + reach) + 1):
            cost = 0.0
            for k in range(a.shape[1]):
                difference = a[i - 1, k] - b[j - 1, k]
                cost += difference * difference
            row[j] = cost + min(before[j], row[j - 1], before[j - 1])
            least = min(least, row[j])
        # Every path crosses this row, and costs only add up.
        if least >= limit:
            return np.inf
        before, row = row, before
    return before[m]


@numba.njit(cache=True)
def nearest(
    queries: np.ndarray,
    query_starts: np.ndarray,
    query_groups: np.ndarray,
    frames: np.ndarray,
    starts: np.ndarray,
    groups: np.ndarray,
    window: float,
) -> np.ndarray:
    """Return the nearest sequence of another group, for each query.

    Sequences are stacked frames that begin at ``starts[i]`` and end before
    ``starts[i + 1]``.
    """
    found = np.zeros(len(query_starts) - 1, np.int64)
    for i in range(len(found)):
        query = queries[query_starts[i] : query_starts[i + 1]]
        best = np.inf
        for j in range(len(starts) - 1):
            if query_groups[i] == groups[j]:
                continue
            other = frames[starts[j] : starts[j + 1]]
            d = distance(query, other, window, best)
            if d < best:
                best = d
                found[i] = j
    return found
