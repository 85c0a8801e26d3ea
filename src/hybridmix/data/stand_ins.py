"""Numbers that stand for missing values, such as -999 and 9999."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hybridmix._typing import FloatArray

# What people write where a number is missing, as whole numbers without any other digit.
_NINES = [10**digits - 1 for digits in range(1, 7)]
_CANDIDATES = np.sort([-1.0, *(-number for number in _NINES), *_NINES[1:]])
# A negative one is out of place among numbers that reach from zero to at least this.
_LEAST_SPAN = 10.0
_LEAST_ROWS = 2


@dataclass
class StandIns:
    """What the rows so far show about stand-ins among the numbers of a column.

    Attributes
    ----------
    counts : ndarray of shape (12,)
        How often each candidate occurs.
    low, high : float
        The least and the largest of all other numbers.
    n_others : int
        How many other numbers there are.
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros(len(_CANDIDATES), int))
    low: float = math.inf
    high: float = -math.inf
    n_others: int = 0

    def add(self, numbers: FloatArray) -> None:
        """Take more rows into account; NaN and infinite numbers are passed over."""
        numbers = numbers[np.isfinite(numbers)]
        is_candidate = np.isin(numbers, _CANDIDATES)
        places = np.searchsorted(_CANDIDATES, numbers[is_candidate])
        self.counts += np.bincount(places, minlength=len(_CANDIDATES))
        others = numbers[~is_candidate]
        if len(others):
            self.low = min(self.low, float(others.min()))
            self.high = max(self.high, float(others.max()))
            self.n_others += len(others)

    @property
    def found(self) -> dict[int, int]:
        """In how many rows each number is that probably stands for a missing value.

        It is there more than once, but not most of the time, and further from all other
        numbers than these are from each other; or the only one below zero.
        """
        if not self.low < self.high:
            return {}
        return {
            int(number): int(count)
            for number, count in zip(_CANDIDATES, self.counts, strict=True)
            if _LEAST_ROWS <= count < self.n_others and self._is_out_of_place(number)
        }

    def _is_out_of_place(self, number: float) -> bool:
        span = self.high - self.low
        if number < 0.0 <= self.low and span >= _LEAST_SPAN:
            return True
        return max(self.low - number, number - self.high) > span


def stand_ins(numbers: FloatArray) -> dict[int, int]:
    """Return in how many rows each number is that probably stands for a missing value."""
    seen = StandIns()
    seen.add(numbers)
    return seen.found
