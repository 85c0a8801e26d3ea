"""Sample weights, as training can use them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from hybridmix._typing import FloatArray

# A row with less than this part of the largest weight cannot be noticed.
_NEGLIGIBLE = 1e-30
# Sums of weights outside of this range are brought to its ends: there, the prior of one
# row either means nothing or is all that counts, and sums of squares stay finite.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-9, 1e12


def read_weights(sample_weight: object, n_rows: int) -> FloatArray | None:
    """Check sample weights; None when all are one.

    Weights so large or so small that sums of squares would overflow or vanish are scaled;
    rows that cannot be noticed next to the heaviest one get no weight.

    Parameters
    ----------
    sample_weight : array-like of shape (n,), number or None
        What the user gave.
    n_rows : int
        Number of rows.
    """
    if sample_weight is None:
        return None
    weights = _check_sample_weight(
        sample_weight, np.empty((n_rows, 1)), ensure_non_negative=True
    )
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        raise ValueError("All sample weights are zero.")
    if np.all(weights == 1.0):
        return None
    shares = _shares(weights, largest)
    return WeightScale.of(largest, float(shares.sum())).applied(weights)


def _shares(weights: FloatArray, largest: float) -> FloatArray:
    """Return weights over the largest one; 0 for those that cannot be noticed."""
    shares = weights / largest
    shares[shares < _NEGLIGIBLE] = 0.0
    return shares


@dataclass(frozen=True)
class WeightScale:
    """What becomes of sample weights, given the largest one and their sum.

    Attributes
    ----------
    largest : float
        The largest weight.
    factor : float or None
        What weights over the largest one are multiplied by; None to leave them as they
        are.
    """

    largest: float
    factor: float | None

    @classmethod
    def of(cls, largest: float, sum_of_shares: float) -> WeightScale:
        """Scale weights, if their sum is very large or very small.

        Parameters
        ----------
        largest : float
            The largest weight.
        sum_of_shares : float
            Sum of all weights over the largest one.
        """
        with np.errstate(over="ignore"):
            total = float(np.float64(sum_of_shares) * largest)
        if _LEAST_TOTAL <= total <= _LARGEST_TOTAL:
            return cls(largest, None)
        bounded = float(np.clip(total, _LEAST_TOTAL, _LARGEST_TOTAL))
        return cls(largest, bounded / sum_of_shares)

    def applied(self, weights: FloatArray) -> FloatArray:
        """Return the weights of some rows, as training uses them."""
        shares = _shares(weights, self.largest)
        if self.factor is None:
            return np.where(shares > 0.0, weights, 0.0)
        return shares * self.factor


def filled_weights(sample_weight: object, n_rows: int) -> FloatArray:
    """Check sample weights; ones where there are none."""
    weights = read_weights(sample_weight, n_rows)
    return np.ones(n_rows) if weights is None else weights
