"""How many rows are worked on at a time."""

from __future__ import annotations

from collections.abc import Iterator

# Large enough that threads seldom meet between calls, small enough for shared caches.
_CHUNK_BYTES = 8 << 20
FEWEST_ROWS, _MOST_ROWS = 64, 32768


def chunk_rows(width: int) -> int:
    """Return how many rows of a given width, in numbers, make a chunk."""
    rows = _CHUNK_BYTES // (8 * width) // 64 * 64
    return min(max(rows, FEWEST_ROWS), _MOST_ROWS)


def row_chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut a number of rows into chunks."""
    size = chunk_rows(width)
    return (slice(first, first + size) for first in range(0, n_rows, size))
