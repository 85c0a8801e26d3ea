"""Log-sum-exp over components and classes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from hybridmix._scratch import empty
from hybridmix._typing import FloatArray

# exp() of less than this is zero next to one in double precision, and far from the
# numbers so small that processors compute with them slowly.
_NEGLIGIBLE = -100.0


def grouped_logsumexp(
    values: FloatArray, offsets: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Log-sum-exp over groups of neighbouring rows of a matrix.

    Parameters
    ----------
    values : ndarray of shape (J, n)
        Overwritten by ``exp(values - largest of the group)``.
    offsets : tuple of int
        Where the groups begin, and where the last one ends.

    Returns
    -------
    logs : ndarray of shape (C, n)
        Log-sum-exp of each group.
    sums : ndarray of shape (C, n)
        Sums of what `values` now holds.
    """
    shape = (len(offsets) - 1, values.shape[1])
    largest, sums = empty(shape, values.dtype), empty(shape, values.dtype)
    for groups, block in group_blocks(values, offsets):
        np.max(block, axis=1, out=largest[groups])
        block -= largest[groups, None]
        np.maximum(block, _NEGLIGIBLE, out=block)
        np.exp(block, out=block)
        np.sum(block, axis=1, out=sums[groups])
    logs = np.log(sums, out=empty(shape))
    logs += largest
    return logs, sums


def group_blocks(
    values: FloatArray, offsets: tuple[int, ...]
) -> Iterator[tuple[slice, FloatArray]]:
    """View groups of rows of a matrix as (groups, K, n): together if of equal size."""
    sizes = {b - a for a, b in itertools.pairwise(offsets)}
    if len(sizes) == 1:
        yield slice(None), values.reshape(len(offsets) - 1, sizes.pop(), values.shape[1])
        return
    for group, (first, last) in enumerate(itertools.pairwise(offsets)):
        yield slice(group, group + 1), values[None, first:last]


def class_posterior(log_joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``log p(x)``, (n,), and ``p(c | x)``, (C, n)."""
    posterior = empty(log_joint.shape)
    posterior[:] = log_joint
    logs, sums = grouped_logsumexp(posterior, (0, len(posterior)))
    posterior /= sums
    return logs[0], posterior
