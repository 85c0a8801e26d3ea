"""Figures with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybridmix._typing import FloatArray

# Half the width of a normal interval that holds 95 % of the probability.
_WIDTH = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A score, and the interval in which that of very many rows lies by 95 %.

    Attributes
    ----------
    value : float
        The score.
    low, high : float
        Ends of the interval, for rows that are drawn at random.
    """

    value: float
    low: float
    high: float

    @classmethod
    def of_share(cls, share: float, n_rows: float) -> Estimate:
        """Return a share of independent rows, with Wilson's interval."""
        squared = _WIDTH**2 / n_rows
        centre = share + squared / 2.0
        spread = _WIDTH * math.sqrt(share * (1.0 - share) / n_rows + squared / 4 / n_rows)
        low, high = ((centre + sign * spread) / (1.0 + squared) for sign in (-1.0, 1.0))
        return cls(share, max(min(low, share), 0.0), min(max(high, share), 1.0))

    @classmethod
    def of_sums(
        cls, total: float, squares: float, n_rows: int, least: float = -math.inf
    ) -> Estimate:
        """Return a mean, from sums of values and of their squares.

        Parameters
        ----------
        total, squares : float
            The sums.
        n_rows : int
            Number of the values.
        least : float, default=-inf
            No value is smaller.
        """
        mean = total / n_rows
        variance = max(squares / n_rows - mean**2, 0.0)
        error = math.sqrt(variance / (n_rows - 1)) if n_rows > 1 else math.inf
        return cls.of_error(mean, error, least)

    @classmethod
    def of_error(
        cls,
        value: float,
        standard_error: float,
        least: float = -math.inf,
        most: float = math.inf,
    ) -> Estimate:
        """Return a value of a known standard error that lies between two bounds."""
        spread = _WIDTH * standard_error
        return cls(value, max(value - spread, least), min(value + spread, most))

    @classmethod
    def of_values(cls, values: FloatArray) -> Estimate:
        """Return the mean of some values."""
        # Centred first, since squares of large values would leave nothing of the rest.
        centre = float(np.mean(values))
        rest = values - centre
        found = cls.of_sums(float(rest.sum()), float(rest @ rest), len(values))
        return cls(centre, centre + found.low, centre + found.high)

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Return what an increasing function makes of the score and of its interval."""
        return Estimate(function(self.value), function(self.low), function(self.high))
