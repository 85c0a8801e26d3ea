"""Array types that signatures share."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]


class Addable(Protocol):
    """Something that sums up in place."""

    def add(self, other: Self) -> None:
        """Add another one."""
        ...


Sum = TypeVar("Sum", bound=Addable)
