"""Checks that fitted objects make of themselves, before they are saved or after a load.

All of them raise a ValueError that names what is wrong. Shapes are not enough: a file
that was tampered with may have the right shapes and senseless values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray

# Probabilities sum to one up to this.
_ROUNDING = 1e-6


def require(condition: bool | np.bool_, problem: str) -> None:
    """Refuse unless a condition holds; the problem is a clause such as "x is missing"."""
    if not condition:
        raise ValueError(f"The parts of the model do not fit together: {problem}.")


def require_array(
    name: str, array: Any, shape: tuple[int, ...], *, positive: bool = False
) -> None:
    """Refuse all but an array of finite double-precision numbers of this shape."""
    is_array = isinstance(array, np.ndarray) and array.dtype == np.float64
    require(is_array, f"{name} is not an array of double-precision numbers")
    require_shape(name, array, shape)
    require(np.isfinite(array).all(), f"{name} has values that are not finite")
    if positive:
        require((array > 0.0).all(), f"{name} has values that are not positive")


def require_shape(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    require(array.shape == shape, f"{name} does not have the shape {shape}")


def require_rank(name: str, array: Any, rank: int) -> None:
    """Refuse all but an array of this many axes."""
    is_array = isinstance(array, np.ndarray) and array.ndim == rank
    require(is_array, f"{name} is not an array of {rank} axes")


def require_log_probabilities(
    name: str, logs: FloatArray, offsets: Sequence[int] = (0,)
) -> None:
    """Refuse logarithms whose exponentials do not sum to one.

    Parameters
    ----------
    name : str
        What they are.
    logs : ndarray of shape (..., M)
        Finite logarithms.
    offsets : sequence of int
        Where the groups begin, each of which sums to one.
    """
    with np.errstate(over="ignore"):
        totals = np.add.reduceat(np.exp(logs), list(offsets), axis=-1)
    normalised = np.all(np.abs(totals - 1.0) <= _ROUNDING)
    require(normalised, f"{name} are not logarithms of probabilities that sum to one")


def require_number(name: str, value: Any, least: float = -np.inf) -> None:
    """Refuse all but a finite number of at least this."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    require(is_number and np.isfinite(float(value)), f"{name} is not a finite number")
    require(float(value) >= least, f"{name} is less than {least:g}")


def require_positive(name: str, value: Any) -> None:
    """Refuse all but a finite positive number."""
    require_number(name, value)
    require(float(value) > 0.0, f"{name} is not positive")


def require_whole(name: str, numbers: Iterable[Any], least: int = 0) -> None:
    """Refuse all but whole numbers of at least this."""
    whole = all(type(number) is int and number >= least for number in numbers)
    require(whole, f"{name} are not whole numbers of at least {least}")


def require_instance(name: str, value: Any, cls: type) -> None:
    """Refuse objects of other classes."""
    found = type(value).__name__
    require(isinstance(value, cls), f"{name} is a {found} and not a {cls.__name__}")
