"""Statistics of mixtures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._logsumexp import group_blocks
from hybridmix._registered import registered
from hybridmix._require import require_array, require_instance
from hybridmix._scratch import empty
from hybridmix._typing import FloatArray
from hybridmix.families.base import Statistics


@registered
@dataclass
class MixtureStatistics:
    """What an M-step or a gradient needs to know of the rows.

    Attributes
    ----------
    counts : ndarray of shape (J,)
        Sums of the signed weights of the components.
    positive : ndarray of shape (J,)
        Of these, the part of the rows that speak for the component.
    components : Statistics
        Of the family.
    """

    counts: FloatArray
    positive: FloatArray
    components: Statistics

    def add(self, other: MixtureStatistics, part: slice = slice(None)) -> None:
        """Add statistics that concern a run of the components."""
        self.counts[part] += other.counts
        self.positive[part] += other.positive
        self.components.add(other.components, part)

    def scale(self, factor: float) -> None:
        """Multiply all statistics, as if every row had counted this much."""
        self.counts *= factor
        self.positive *= factor
        self.components.scale(factor)

    def check_like(self, other: MixtureStatistics) -> None:
        """Raise ValueError unless these are finite statistics of the same shapes."""
        require_array("counts", self.counts, other.counts.shape)
        require_array("positive counts", self.positive, other.positive.shape)
        require_instance("statistics", self.components, Statistics)
        self.components.check_like(other.components)


def positive_counts(
    counts: FloatArray, spread: FloatArray, weights: FloatArray, offsets: tuple[int, ...]
) -> FloatArray:
    """Sum the weights (J, n) of components over rows that speak for them, (J,).

    Posteriors are positive: weights of components have the signs of those of their
    classes, (C, n). Where these have one sign, so do the counts (J,).
    """
    has_both = (weights.min(axis=1) < 0.0) & (weights.max(axis=1) > 0.0)
    if not has_both.any():
        return np.maximum(counts, 0.0)
    speaks = np.greater(weights, 0.0, out=empty(weights.shape, spread.dtype))
    sums = [
        np.einsum("ckn,cn->ck", block, speaks[groups]).ravel()
        for groups, block in group_blocks(spread, offsets)
    ]
    return np.concatenate(sums)
