"""Choosing the shape of a real column by penalised likelihood.

Likelihoods of a column by itself and of its mapped values are compared in the units of
the column. Spikes are not found in this way: a probability and a density cannot be
compared. They are values that repeat far more often than all others; and where there are
such values, others that repeat as amounts from a list do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.heaps import has_two_heaps
from hybridmix.data.repeats import repeated_values
from hybridmix.data.shapes import ColumnShape, Logarithm, Logit, SinhArcsinh, Transform

# A column of less weight says too little about its shape.
FEWEST = 50.0
# Columns with values or spreads beyond these are left as they are.
_LARGEST, _SMALLEST = 1e100, 1e-100
# Larger whole numbers cannot be told from others.
_LARGEST_WHOLE = 2.0**53
# A spike has this share of the observed cells, and is this many times as frequent as any
# value that is not one. It leaves this many distinct values: otherwise the column is one
# of few values, all of which repeat.
_SPIKE_SHARE, _SPIKE_RATIO, _MOST_SPIKES, _FEWEST_OTHERS = 0.05, 3.0, 3, 20
# Classes of fewer rows on average do not say enough: in small tables, spikes and
# transforms cost more than they gain.
FEWEST_PER_GROUP = 100.0
# Below this many distinct values a transform would follow the gaps between them.
_FEWEST_DISTINCT = 8
# A transform has to gain this much log-likelihood, and this much per row, besides what
# its parameters cost.
_CLEAR, _CLEAR_PER_ROW = 10.0, 0.05
# Columns that could gain less than this per row, at a guess, are not looked at further.
_LEAST_NEGENTROPY = 0.02
_SKEWS, _TAILS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0), (0.4, 0.6, 0.8, 1.0)
_STEPS = (-0.75, -0.25, 0.25, 0.75)
_BOUNDS = ((0.0, 1.0), (0.0, 100.0))
# Variances of classes are drawn to the one within all classes as if by this many rows.
_SHARED_ROWS = 5.0
_LEAST_MASS = 1e-300
# Quantiles that stand for the values of a column.
_LEVELS = tuple((np.arange(100) + 0.5) / 100.0)


@dataclass(frozen=True)
class Cells:
    """Observed cells of one column.

    Attributes
    ----------
    values, weights : ndarray of shape (n,)
        The cells and their weights.
    groups : ndarray of shape (n,)
        Numbers of their classes, from 0 on.
    """

    values: FloatArray
    weights: FloatArray
    groups: IntArray

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @property
    def is_moderate(self) -> bool:
        """Whether values vary, and squares of them are in the range of floats."""
        largest = float(np.abs(self.values).max(initial=0.0))
        spread = float(np.ptp(self.values)) if largest < _LARGEST else 0.0
        return spread > max(_SMALLEST, 1e-9 * largest)

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        is_whole = self.values == np.rint(self.values)
        return bool(np.all(is_whole & (np.abs(self.values) < _LARGEST_WHOLE)))

    @property
    def are_enough(self) -> bool:
        """Whether there are enough cells for each group, on average."""
        return self.total >= FEWEST_PER_GROUP * len(np.unique(self.groups))

    def part(self, kept: BoolArray) -> Cells:
        """Return some of the cells."""
        return Cells(self.values[kept], self.weights[kept], self.groups[kept])

    def quantiles(self, levels: tuple[float, ...]) -> list[float]:
        """Return quantiles by cumulated weight: a weight of two is two rows."""
        order = np.argsort(self.values, kind="stable")
        cumulated = np.cumsum(self.weights[order])
        places = np.searchsorted(cumulated, np.array(levels) * cumulated[-1])
        return self.values[order][places].tolist()

    @cached_property
    def resolution(self) -> float:
        """How far apart neighbouring values are, if values repeat; 0 if none does."""
        distinct = np.unique(self.values)
        if len(distinct) == len(self.values) or len(distinct) == 1:
            return 0.0
        return float(np.median(np.diff(distinct)))

    def log_likelihood(self, transform: Transform | None) -> float:
        """Return that of Gaussians of the mapped values in each group, and a constant.

        Where values repeat, it is the probability of cells around them. A density could
        be as high as one likes at a value that repeats, which says nothing about others.
        """
        mapped = self.values if transform is None else transform.forward(self.values)
        means, deviations, entropy = self._fitted(mapped)
        if not np.isfinite(entropy):
            return -np.inf
        if self.resolution == 0.0:
            if transform is None:
                return -entropy
            return float(self.weights @ transform.log_derivative(self.values)) - entropy
        ends = (self.values - 0.5 * self.resolution, self.values + 0.5 * self.resolution)
        low, high = (
            ((end if transform is None else transform.forward(end)) - means) / deviations
            for end in ends
        )
        # Both ends are moved to the lower tail, where differences keep their digits.
        low, high = np.where(low > 0.0, -high, low), np.where(low > 0.0, -low, high)
        mass = np.maximum(ndtr(high) - ndtr(low), _LEAST_MASS)
        return float(self.weights @ np.log(mass))

    @property
    def negentropy(self) -> float:
        """About how much likelihood per row the Gaussians of the groups lose.

        It is an expansion in skewness and kurtosis (Jones and Sibson, 1987).
        """
        means, deviations, entropy = self._fitted(self.values)
        if not np.isfinite(entropy):
            return 0.0
        scores = (self.values - means) / deviations
        shares = self.weights / self.total
        skewness, kurtosis = shares @ scores**3, shares @ scores**4 - 3.0
        return float(skewness**2 / 12.0 + kurtosis**2 / 48.0)

    def _fitted(self, mapped: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return means and deviations of the groups of all cells, and the entropy."""
        counts = np.bincount(self.groups, self.weights)
        counts = np.maximum(counts, np.finfo(float).tiny)
        means = np.bincount(self.groups, self.weights * mapped) / counts
        squares = self.weights * np.square(mapped - means[self.groups])
        sums = np.bincount(self.groups, squares)
        pooled = sums.sum() / counts.sum()
        if not 0.0 < pooled < np.inf:
            return means[self.groups], np.ones(len(mapped)), np.inf
        variances = (sums + _SHARED_ROWS * pooled) / (counts + _SHARED_ROWS)
        entropy = 0.5 * float(counts @ np.log(variances))
        return means[self.groups], np.sqrt(variances)[self.groups], entropy


def chosen_shape(
    cells: Cells,
    *,
    transforms: bool = True,
    spikes: bool = True,
    more: Cells | None = None,
) -> ColumnShape:
    """Return the shape of a column that its cells speak for.

    Parameters
    ----------
    cells : Cells
        What is observed.
    transforms, spikes : bool
        Whether the column may be mapped, and whether it may have spikes.
    more : Cells or None
        More cells of the column, to find rare values that repeat.
    """
    if cells.total < FEWEST or not cells.is_moderate:
        return ColumnShape()
    found = _all_spikes(cells, more or cells) if spikes else ()
    others = cells.part(~np.isin(cells.values, found)) if found else cells
    transform = None
    if transforms and cells.are_enough and others.total >= FEWEST:
        transform = _clear_transform(others)
    return shape_with(transform, found, cells)


def _all_spikes(cells: Cells, more: Cells) -> tuple[float, ...]:
    """Return frequent values and, if there are any, others of more cells that repeat."""
    found = spikes_of(cells)
    return (found and repeated_values(more.values, more.weights)) or found


def shape_with(
    transform: Transform | None, spikes: tuple[float, ...], cells: Cells
) -> ColumnShape:
    """Return a shape, with the values that fills and samples may have."""
    whole = cells.is_whole
    low, high = -np.inf, np.inf
    if isinstance(transform, Logit):
        low, high = transform.low, transform.high
    elif isinstance(transform, Logarithm):
        low = 1.0 if whole else 0.01 * transform.least
    elif whole and cells.values.min(initial=0.0) >= 0.0:
        low = 0.0
    if transform is None:
        return ColumnShape(None, spikes, whole, low, high)
    least, most = float(cells.values.min()), float(cells.values.max())
    return ColumnShape(transform, spikes, whole, low, high, least, most)


def spikes_of(cells: Cells) -> tuple[float, ...]:
    """Return the values that repeat far more often than all others."""
    values, places = np.unique(cells.values, return_inverse=True)
    if not cells.are_enough or len(values) <= _FEWEST_OTHERS:
        return ()
    shares = np.bincount(places, cells.weights) / cells.total
    order = np.argsort(-shares, kind="stable")
    for n_spikes in range(_MOST_SPIKES, 0, -1):
        own, other = shares[order[n_spikes - 1]], shares[order[n_spikes]]
        enough = len(values) - n_spikes >= _FEWEST_OTHERS
        if enough and own >= _SPIKE_SHARE and own >= _SPIKE_RATIO * other:
            return tuple(sorted((values[order[:n_spikes]] + 0.0).tolist()))
    return ()


# Transforms -----------------------------------------------------------------------------


def _clear_transform(cells: Cells) -> Transform | None:
    """Return the transform of clearly the highest penalised likelihood, if any."""
    if len(np.unique(cells.values)) < _FEWEST_DISTINCT:
        return None
    if cells.negentropy < _LEAST_NEGENTROPY:
        return None
    best = cells.log_likelihood(None) + _CLEAR + _CLEAR_PER_ROW * cells.total
    chosen = None
    for transform, n_parameters in _candidates(cells):
        penalty = 0.5 * n_parameters * np.log(cells.total)
        value = cells.log_likelihood(transform) - penalty
        if value > best:
            best, chosen = value, transform
    return None if chosen is None or _is_heaped(cells) else chosen


def _is_heaped(cells: Cells) -> bool:
    """Return whether values form two heaps in most groups, for components to tell apart.

    Groups of few values are left out.
    """
    heaped = judged = 0.0
    for group in np.unique(cells.groups):
        own = cells.part(cells.groups == group)
        if own.total >= FEWEST_PER_GROUP:
            judged += own.total
            values = np.array(own.quantiles(_LEVELS))
            heaped += own.total * has_two_heaps(values, cells.resolution)
    return judged > 0.0 and heaped >= 0.5 * judged


def _candidates(cells: Cells) -> Iterator[tuple[Transform, int]]:
    """Yield transforms with their numbers of parameters."""
    least, most = float(cells.values.min()), float(cells.values.max())
    if least > 0.0:
        yield logarithm(cells), 1
    for low, high in _BOUNDS:
        if low < least and 0.5 * high < most < high:
            yield logit_between(cells, low, high), 1
    lower, upper = cells.quantiles((0.25, 0.75))
    if lower < upper:  # otherwise half of the values are the same
        yield skewed(cells), 2


def logarithm(cells: Cells) -> Logarithm:
    """Return the logarithm for positive values."""
    return Logarithm(max(0.5 * float(cells.values.min()), np.finfo(float).tiny))


def logit_between(cells: Cells, low: float, high: float) -> Logit:
    """Return the logit between bounds, with room for values that training lacks."""
    u = (cells.values - low) / (high - low)
    gaps = np.minimum(u, 1.0 - u)
    margin = 0.5 * float(gaps[gaps > 0.0].min(initial=0.5))
    return Logit(low, high, max(margin, 1e-9))


def bounds_around(cells: Cells) -> tuple[float, float] | None:
    """Return the usual bounds between which values lie: 0 and 1, or 0 and 100."""
    for low, high in _BOUNDS:
        if low <= cells.values.min() and cells.values.max() <= high:
            return low, high
    return None


def skewed(cells: Cells) -> SinhArcsinh:
    """Return the sinh-arcsinh transform of the highest likelihood, by a short search."""
    lower, centre, upper = cells.quantiles((0.25, 0.5, 0.75))
    spread = (upper - lower) / 1.349
    if spread <= 1e-6 * np.ptp(cells.values):
        spread = float(np.ptp(cells.values)) / 10.0 or 1.0

    def fitted(skew: float, tail: float) -> tuple[float, float, float]:
        transform = SinhArcsinh(centre, spread, skew, tail)
        return cells.log_likelihood(transform), skew, tail

    _, skew, tail = max(fitted(skew, 0.8) for skew in _SKEWS)
    _, skew, tail = max(fitted(skew, tail) for tail in _TAILS)
    steps = (step * max(0.5, abs(skew)) for step in _STEPS)
    _, skew, tail = max(fitted(skew + step, tail) for step in (0.0, *steps))
    return SinhArcsinh(centre, spread, skew, tail)
