"""Bins of histograms: of equal width, of whole numbers, or of equal ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import FloatArray, IntArray

# Values that spread over more than this ratio, and mostly near its lower end, are shown
# on a logarithmic axis.
_LEAST_RATIO = 100.0
_LEAST_SKEW = 2.0
# Whole numbers beyond this are not exact in floating point.
_LARGEST_WHOLE = 2.0**52


@dataclass(frozen=True)
class Bins:
    """Where the bins of a histogram begin and end.

    Attributes
    ----------
    edges : ndarray of shape (b + 1,)
        Ends of the bins.
    is_log : bool, default=False
        Whether neighbouring edges have the same ratio, not the same distance.
    """

    edges: FloatArray
    is_log: bool = False

    @classmethod
    def of(cls, values: FloatArray, n_most: int = 40) -> Bins:
        """Choose bins for finite values, more of them for more values.

        Few different whole numbers have a bin each. Positive values with a long tail have
        bins of equal ratio.

        Parameters
        ----------
        values : ndarray of shape (n,)
            At least one.
        n_most : int, default=40
            Largest number of bins.
        """
        n_bins = int(np.clip(2 * len(values) ** (1 / 3) + 1, 5, n_most))
        low, high = float(values.min()), float(values.max())
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            # Bins need a width, and a constant has none.
            margin = abs(low) / 2 or 0.5
            return cls(np.linspace(low - margin, high + margin, n_bins + 1))
        is_whole = _are_whole(values)
        if is_whole and high - low < n_most:
            return cls(np.arange(low - 0.5, high + 1.0))
        if _has_long_tail(values):
            return cls(np.geomspace(low, high, n_bins + 1), is_log=True)
        if is_whole:
            # A step that is not whole would give bins different numbers of values.
            step = np.ceil((high - low + 1.0) / n_bins)
            return cls(np.arange(low - 0.5, high + step, step))
        # Halves, since the range of the largest floats is infinite.
        return cls(2.0 * np.linspace(low / 2.0, high / 2.0, n_bins + 1))

    def count(self, values: FloatArray) -> IntArray:
        """Count the values in each bin, (b,)."""
        if self.is_log:
            # The ends of ratios may miss the extremes by their rounding.
            values = np.clip(values, self.edges[0], self.edges[-1])
        return np.histogram(values / 2.0, self.edges / 2.0)[0]


def _are_whole(values: FloatArray) -> bool:
    """Return whether all values are whole numbers."""
    return bool(
        np.all(np.rint(values) == values) and np.abs(values).max() < _LARGEST_WHOLE
    )


def _has_long_tail(values: FloatArray) -> bool:
    """Return whether a logarithmic axis shows positive values better."""
    low, high = float(values.min()), float(values.max())
    if low <= 0.0 or high / low < _LEAST_RATIO:
        return False
    skew = _skewness(values / high)
    return skew > _LEAST_SKEW and abs(_skewness(np.log(values))) < skew


def _skewness(values: FloatArray) -> float:
    """Return the third standardised moment."""
    rest = values - values.mean()
    deviation = rest.std()
    return float(np.mean((rest / deviation) ** 3)) if deviation > 0.0 else 0.0
