"""Compiled kernels: which there are, which are used, and how they are called.

The library is loaded by `ctypes`, which lets other threads run during a call. Where it is
missing, callers fall back to NumPy, which is also the reference in tests. The environment
variable HYBRIDMIX_KERNELS chooses a variant, or with ``0`` none.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from hybridmix._kernels.build import LIBRARY

# INTERFACE of kernels.c.
_INTERFACE = 3
# Number of rows that a vector holds, the narrowest first, as `hybridmix_level` counts.
_WIDTHS = {"plain": 2, "avx2": 4, "avx512": 8}
_OFF = ("0", "numpy", "off")
_MEANINGS = {
    "plain": "C, with vectors that every processor of its kind has",
    "avx2": "C, with AVX2",
    "avx512": "C, with AVX-512",
}


class RowsArgument(ctypes.Structure):
    """The structure ``Rows`` of kernels.c."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("n_rows", "n_columns", "by_missing")),
        *(
            (name, ctypes.c_void_p)
            for name in (
                "values",
                "observed",
                "n_observed",
                "sizes",
                "members",
                "first_member",
                "first_factor",
            )
        ),
    ]


class FramesArgument(ctypes.Structure):
    """The structure ``Frames`` of kernels.c."""

    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in ("n_planes", "n_states", "n_frames", "n_times", "n_groups")
        ),
        *((name, ctypes.c_void_p) for name in ("sizes", "offsets")),
    ]


@dataclass(frozen=True)
class Kernels:
    """The kernels of one instruction set.

    Attributes
    ----------
    name : str
        Which one.
    width : int
        Number of rows that a vector holds.
    """

    name: str
    width: int
    _library: ctypes.CDLL

    def call(
        self, name: str, about: ctypes.Structure, *arguments: int | np.ndarray
    ) -> None:
        """Call a kernel with a structure, whole numbers and contiguous arrays."""
        function = getattr(self._library, f"{name}_{self.name}")
        function(ctypes.byref(about), *(_passed(argument) for argument in arguments))


def _passed(argument: int | np.ndarray) -> ctypes.c_int64 | ctypes.c_void_p:
    if isinstance(argument, int):
        return ctypes.c_int64(argument)
    return ctypes.c_void_p(address(argument))


def address(array: np.ndarray) -> int:
    """Return where the numbers of an array are, which have to stand in a row."""
    if not array.flags.c_contiguous:
        raise ValueError("an array for a compiled kernel is not contiguous")
    return array.ctypes.data


@dataclass(frozen=True)
class Choice:
    """Which kernels are used; None for NumPy.

    Attributes
    ----------
    kernels : Kernels or None
        The kernels.
    reason : str
        Why these.
    """

    kernels: Kernels | None
    reason: str


@cache
def _load() -> tuple[ctypes.CDLL | None, str]:
    """Return the library, and what there is to say about it."""
    if not LIBRARY.exists():
        return None, "there was no C compiler when hybridmix was installed"
    try:
        library = ctypes.CDLL(str(LIBRARY))
        for name in ("hybridmix_interface", "hybridmix_level"):
            getattr(library, name).restype = ctypes.c_int64
    except (OSError, AttributeError) as error:
        return None, f"{LIBRARY.name} cannot be loaded: {error}"
    if library.hybridmix_interface() != _INTERFACE:
        return None, f"{LIBRARY.name} was built by another version; install again"
    return library, "the best that this processor has"


def variants() -> list[str]:
    """Return the names of the kernels that can run here, the narrowest first."""
    library, _ = _load()
    return [] if library is None else list(_WIDTHS)[: library.hybridmix_level() + 1]


def choose(name: str | None) -> Choice:
    """Choose kernels by name; None for the best there are."""
    library, reason = _load()
    if name in _OFF:
        return Choice(None, "HYBRIDMIX_KERNELS says so")
    if library is None:
        return Choice(None, reason)
    possible = variants()
    if name is None:
        name = possible[-1]
    elif name in possible:
        reason = "HYBRIDMIX_KERNELS says so"
    else:
        known = ", ".join(["0", *possible])
        raise ValueError(f"HYBRIDMIX_KERNELS is {name!r}; here it can be one of {known}.")
    return Choice(Kernels(name, _WIDTHS[name], library), reason)


_chosen: list[Choice] = []


def chosen() -> Choice:
    """Return which kernels are used, and why."""
    if not _chosen:
        _chosen.append(choose(os.environ.get("HYBRIDMIX_KERNELS") or None))
    return _chosen[-1]


def active() -> Kernels | None:
    """Return the kernels that are used; None for NumPy."""
    return chosen().kernels


@contextmanager
def using(name: str | None) -> Iterator[None]:
    """Use kernels of this name within a context, in all threads; ``"0"`` for NumPy."""
    chosen()
    _chosen.append(choose(name))
    try:
        yield
    finally:
        _chosen.pop()


def describe() -> str:
    """Say in a line which kernels are used, and why."""
    choice = chosen()
    kernels = choice.kernels
    meaning = "NumPy" if kernels is None else _MEANINGS[kernels.name]
    return f"{meaning} ({choice.reason})"
