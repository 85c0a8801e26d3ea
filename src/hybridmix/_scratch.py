"""Memory for arrays that live no longer than the work on a chunk of rows.

The arrays of a chunk are large, and an allocator may return their memory to the system
when they are freed; so it is under ``MALLOC_TRIM_THRESHOLD_``, which Dask sets for its
workers. Memory from the system has to be mapped and cleared page by page, which takes
about as long as some passes over it. Every thread therefore keeps some memory, and hands
it out anew for each chunk.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from hybridmix._typing import FloatArray

# Arrays start where a line of the cache does; this many bytes make one.
_LINE = 64
# No thread keeps more bytes than this.
_MOST = 64 << 20


class _Thread(threading.local):
    """What a thread keeps.

    Attributes
    ----------
    memory : ndarray
        What arrays are cut from.
    n_used : int
        How much of it is in use, or would be if there was enough of it.
    n_wanted : int
        The most that was in use at a time, or would have been.
    reuses : bool
        Whether the end of the arrays that are taken is known.
    """

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)
        self.n_used = 0
        self.n_wanted = 0
        self.reuses = False


_thread = _Thread()


def empty(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> FloatArray:
    """Return an array that is not initialised, as `numpy.empty` does.

    If it is taken within `reused`, its memory belongs to other arrays after the end of
    the context.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    dtype : dtype
        Of its numbers.
    """
    if not _thread.reuses:
        return np.empty(shape, dtype)
    first, size = _thread.n_used, math.prod(shape) * np.dtype(dtype).itemsize
    _thread.n_used += -(-size // _LINE) * _LINE
    _thread.n_wanted = max(_thread.n_wanted, _thread.n_used)
    if first + size > len(_thread.memory):
        return np.empty(shape, dtype)
    return _thread.memory[first : first + size].view(dtype).reshape(shape)


@contextmanager
def reused() -> Iterator[None]:
    """Let arrays that this thread takes within the context end with it."""
    first, before = _thread.n_used, _thread.reuses
    _thread.reuses = True
    try:
        yield
    finally:
        _give_back(first)
        _thread.reuses = before


def _give_back(first: int) -> None:
    """Let memory from a place on be used again; keep as much as was wanted."""
    wanted = min(_thread.n_wanted, _MOST)
    if first == 0 and len(_thread.memory) < wanted:
        _thread.memory = np.empty(wanted, np.uint8)
    _thread.n_used = first


@contextmanager
def lasting() -> Iterator[None]:
    """Let arrays that this thread takes within the context stay, also within `reused`."""
    before = _thread.reuses
    _thread.reuses = False
    try:
        yield
    finally:
        _thread.reuses = before


def release() -> None:
    """Give back what this thread has kept."""
    _thread.memory = np.empty(0, np.uint8)
