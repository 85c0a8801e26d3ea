"""Numbers that repeat although there is room for others between them.

Amounts of money that a law or a price list names, codes, settings of a machine: what one
of them says need not resemble what its neighbours say. Rounded measurements repeat as
well, but fill the grid that they are rounded to.
"""

from __future__ import annotations

import numpy as np

from hybridmix._typing import FloatArray

# A value repeats if it has the weight of this many rows.
_LEAST_WEIGHT = 5.0
# A value with this share of the cells is common by itself, and says nothing of others.
_COMMON = 0.05
# Of the cells that are not common, this share has values that repeat; there are at least
# and at most this many of them; and this many others would fit between two neighbours.
_LEAST_SHARE, _FEWEST, _MOST, _LEAST_ROOM = 0.5, 10, 500, 10.0


def repeated_values(values: FloatArray, weights: FloatArray) -> tuple[float, ...]:
    """Return the values that repeat, if those between them are rare; else none.

    Parameters
    ----------
    values, weights : ndarray of shape (n,)
        Observed cells and their weights.
    """
    distinct, places = np.unique(values, return_inverse=True)
    counts = np.bincount(places, weights)
    is_rare = counts < _COMMON * counts.sum()
    repeats = counts >= _LEAST_WEIGHT
    listed = distinct[repeats & is_rare]
    if not _FEWEST <= len(listed) <= _MOST:
        return ()
    if counts[repeats & is_rare].sum() < _LEAST_SHARE * counts[is_rare].sum():
        return ()
    if np.median(np.diff(listed)) <= _LEAST_ROOM * np.diff(distinct).min():
        return ()
    return tuple((distinct[repeats] + 0.0).tolist())
