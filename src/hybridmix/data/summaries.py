"""What blocks of rows show about the columns of a table, in a form that can be merged.

A schema needs no table in memory, only the summary of all of its rows; it does not matter
how the rows were cut into blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_rank
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.cells import distinct, label_of
from hybridmix.data.columns import Columns
from hybridmix.data.shapes import ColumnShape
from hybridmix.data.shaping import Shaping

# Rows of less weight, relative to the heaviest one, get this weight. It is far
# too small to be seen in a sum, and large enough that products with it do not vanish.
_LEAST_WEIGHT = 2.0**-500
# Rows are summarised in blocks of this part of the usual size, which stay in the cache.
_ARRAYS = 16
# Powers of two up to this exponent are ordinary floats, and so are their inverses.
_ORDINARY = 1000


@registered
@dataclass(frozen=True)
class RealSummary:
    """Moments of real columns over a block of rows.

    Values are divided by a power of two before they are squared, so that columns of any
    magnitude have finite moments: by ``2**e``, where e is the exponent of the largest
    magnitude in the column (`numpy.frexp`).

    Attributes
    ----------
    weight : ndarray of shape (d,)
        Sum of the weights of the rows in which the column is observed.
    largest : ndarray of shape (d,)
        Largest magnitude among these rows; 0 if there are none.
    mean : ndarray of shape (d,)
        Mean, over ``2**e``.
    squares : ndarray of shape (d,)
        Weighted sum of squared deviations from the mean, over ``4**e``.
    """

    weight: FloatArray
    largest: FloatArray
    mean: FloatArray
    squares: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless all moments are possible ones of the same columns."""
        require_rank("weight", self.weight, 1)
        for name in ("weight", "largest", "mean", "squares"):
            array = getattr(self, name)
            require_array(name, array, self.weight.shape)
            is_possible = np.abs(array) <= 1.0 if name == "mean" else array >= 0.0
            require(is_possible.all(), f"{name} has values that no column has")

    @classmethod
    def of(cls, values: FloatArray, weights: FloatArray | None) -> RealSummary:
        """Summarise rows.

        Parameters
        ----------
        values : ndarray of shape (n, d)
            Finite values, NaN where missing.
        weights : ndarray of shape (n,) or None
            Weights of the rows, of at most one; None when all are one.
        """
        # Sums in another order of memory would differ in the last bits; columns that
        # are contiguous are summed fastest.
        values = np.ascontiguousarray(values.T)
        present: FloatArray | None = None
        hole = np.isnan(values)
        weight = np.full(len(values), float(values.shape[1]))
        if weights is not None or hole.any():
            present = ~hole * (1.0 if weights is None else weights)
            values = np.where(present > 0.0, values, 0.0)
            weight = present.sum(axis=1)
        largest = np.abs(values).max(axis=1, initial=0.0)
        values = _in_units(values, np.frexp(largest)[1])
        mean = _quotient(_weighted(values, present).sum(axis=1), weight)
        # A mean of many rows is rounded. The mean of what is left corrects it, so that
        # equal values have no deviation.
        values -= mean[:, None]
        rest = _weighted(values, present)
        shift = _quotient(rest.sum(axis=1), weight)
        squares = (rest * values).sum(axis=1) - weight * shift**2
        return cls(weight, largest, mean + shift, np.maximum(squares, 0.0))

    @classmethod
    def of_blocks(
        cls,
        values: FloatArray,
        weights: FloatArray | None,
        shaping: Shaping | None = None,
    ) -> RealSummary:
        """Summarise rows block by block, in their order, as in `of`; shaped, if asked."""
        n_rows, n_columns = values.shape
        shaping = Shaping({}) if shaping is None else shaping
        blocks = (
            cls.of(
                shaping.forward(np.asarray(values[block].T, np.float64)).T,
                None if weights is None else weights[block],
            )
            for block in row_chunks(n_rows, _ARRAYS * max(n_columns, 1))
        )
        return reduce(cls.merged, blocks)

    def merged(self, other: RealSummary) -> RealSummary:
        """Return the summary of the rows of both (Chan, Golub and LeVeque, 1979)."""
        largest = np.maximum(self.largest, other.largest)
        exponent = np.frexp(largest)[1]
        own, theirs = self._in(exponent), other._in(exponent)
        weight = own.weight + theirs.weight
        share = _quotient(theirs.weight, weight)
        step = theirs.mean - own.mean
        squares = own.squares + theirs.squares + step**2 * own.weight * share
        return RealSummary(weight, largest, own.mean + step * share, squares)

    def _in(self, exponent: IntArray) -> RealSummary:
        """Express the moments in the unit of columns that have larger values."""
        unit = np.ldexp(1.0, np.minimum(np.frexp(self.largest)[1] - exponent, 0))
        return replace(self, mean=self.mean * unit, squares=self.squares * unit**2)

    @property
    def is_seen(self) -> BoolArray:
        """Whether any value of a column is observed, (d,)."""
        return self.weight > 0.0

    @property
    def centre(self) -> FloatArray:
        """Means of the columns, (d,)."""
        return np.ldexp(self.mean, np.frexp(self.largest)[1])

    def scales(self) -> tuple[FloatArray, BoolArray]:
        """Return by what to divide columns, and which are constant, (d,) each.

        Columns that vary are divided by their standard deviation, others by their value.
        """
        share, exponent = np.frexp(self.largest)
        deviation = np.sqrt(_quotient(self.squares, self.weight))
        is_constant = deviation <= 8.0 * np.finfo(float).eps * share
        size = np.where(self.largest > 0.0, self.largest, 1.0)
        scale = np.where(is_constant, size, np.ldexp(deviation, exponent))
        # The deviation of the smallest floats may be less than any float.
        return np.maximum(scale, np.finfo(float).smallest_subnormal), is_constant


@dataclass(frozen=True)
class TableSummary:
    """What rows show about all columns of a table.

    Attributes
    ----------
    real : RealSummary
        Moments of the real columns, in their order.
    categories : tuple of frozenset
        Values of each categorical column that rows of positive weight have.
    """

    real: RealSummary
    categories: tuple[frozenset[object], ...]

    @classmethod
    def of(
        cls,
        columns: Columns,
        real: Sequence[int],
        categorical: Sequence[int],
        weights: FloatArray | None,
        shapes: Mapping[int, ColumnShape] | None = None,
    ) -> TableSummary:
        """Summarise a table, or a block of its rows.

        Parameters
        ----------
        columns : Columns
            The rows.
        real, categorical : sequence of int
            Positions of the real and the categorical columns.
        weights : ndarray of shape (n,) or None
            Weights of the rows, of at most one; None when all are one.
        shapes : mapping of int to ColumnShape or None
            Shapes of real columns, by position. They must be known beforehand: moments
            are those of the shaped columns.
        """
        matrix = columns.real(real, single=True)
        check_finite(matrix, columns.names, real)
        categories = (
            _seen(columns.values(j), weights, label_of(columns.names, j))
            for j in categorical
        )
        shaping = Shaping.of(shapes or {}, real)
        return cls(RealSummary.of_blocks(matrix, weights, shaping), tuple(categories))

    def merged(self, other: TableSummary) -> TableSummary:
        """Return the summary of the rows of both."""
        pairs = zip(self.categories, other.categories, strict=True)
        categories = tuple(own | theirs for own, theirs in pairs)
        return TableSummary(self.real.merged(other.real), categories)


def relative_weights(weights: FloatArray, largest: float | None = None) -> FloatArray:
    """Return weights relative to the largest one, which then lies between 0.5 and 1.

    They are divided by a power of two, which rounds nothing: sums of huge and of tiny
    weights stay in the range of floats. The largest one may be that of other rows.
    """
    exponent = int(np.frexp(weights.max() if largest is None else largest)[1])
    relative = np.maximum(np.ldexp(weights, -exponent), _LEAST_WEIGHT)
    return np.where(weights > 0.0, relative, 0.0)


def check_finite(
    real: FloatArray, names: tuple[str, ...] | None, positions: Sequence[int]
) -> bool:
    """Refuse infinite values; return whether there are missing ones."""
    has_holes = False
    for block in row_chunks(len(real), max(real.shape[1], 1)):
        values = real[block]
        if np.isfinite(values).all():
            continue
        infinite = np.argwhere(np.isinf(values))
        if len(infinite):
            row, position = infinite[0]
            name = label_of(names, positions[position])
            raise ValueError(
                f"Input X contains infinity or a value too large: {name}, row "
                f"{block.start + row}. Replace it by a finite value, or by NaN to treat "
                "it as missing."
            )
        has_holes = True
    return has_holes


def _in_units(values: FloatArray, exponent: IntArray) -> FloatArray:
    """Divide columns (d, n) by powers of two."""
    if np.abs(exponent).max(initial=0) <= _ORDINARY:
        return values * np.ldexp(1.0, -exponent)[:, None]
    return np.ldexp(values, -exponent[:, None])  # several times slower


def _weighted(values: FloatArray, present: FloatArray | None) -> FloatArray:
    """Return values times how much they count; None if all count one."""
    return values if present is None else values * present


def _quotient(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide, with 0 where the denominator is 0."""
    zeros = np.zeros(np.shape(numerator))
    return np.divide(numerator, denominator, out=zeros, where=denominator > 0.0)


def _seen(
    values: list[object], weights: FloatArray | None, label: str
) -> frozenset[object]:
    """Return the distinct values; those of weightless rows do not count."""
    if weights is not None:
        values = [v for v, weight in zip(values, weights, strict=True) if weight > 0.0]
    return frozenset(distinct(values, label))
