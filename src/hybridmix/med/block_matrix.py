"""Matrices whose rows come in blocks, for solvers that ask for products only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.encoded_blocks import EncodedBlocks
from hybridmix.data.rows import Dataset

T = TypeVar("T")


@dataclass(frozen=True)
class BlockMatrix:
    """Rows in blocks, as far as linear models ask for them.

    Products and powers are those of an array (n, p). A column vector of the length n is
    in memory, while at most one block of the rows is.

    Attributes
    ----------
    blocks : EncodedBlocks
        The rows, each block a `Dataset` of real columns.
    positions : tuple of ndarray of int
        For each block, which of its rows are in the matrix.
    centre : ndarray of shape (p,)
        What is subtracted from the rows.
    power : int
        What they are raised to afterwards.
    """

    blocks: EncodedBlocks
    positions: tuple[IntArray, ...]
    centre: FloatArray
    power: int = 1

    def close(self) -> None:
        """Give back what the blocks take."""
        self.blocks.close()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return sum(map(len, self.positions)), len(self.centre)

    @property
    def T(self) -> _Transposed:  # noqa: N802, as NumPy calls it
        """The transposed matrix, which can be multiplied."""
        return _Transposed(self)

    def __matmul__(self, right: FloatArray) -> FloatArray:
        parts = self._map(_Product(right))
        return np.concatenate(list(parts))

    def __sub__(self, centre: FloatArray) -> BlockMatrix:
        return replace(self, centre=self.centre + centre)

    def __pow__(self, power: int) -> BlockMatrix:
        return replace(self, power=self.power * power)

    def mean(self, axis: int = 0) -> FloatArray:
        """Return the mean row, (p,)."""
        return self.T @ np.full(len(self), 1.0 / len(self))

    def sum(self, axis: int = 1) -> FloatArray:
        """Return the sums of the rows, (n,)."""
        return self @ np.ones(self.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def kept(self, rows: IntArray) -> BlockMatrix:
        """Return the matrix of some rows, block by block, without reading them."""
        own = zip(self.positions, self._located(rows), strict=True)
        return replace(self, positions=tuple(place[here] for place, (_, here) in own))

    def __getitem__(self, rows: IntArray) -> FloatArray:
        """Return some rows, in memory."""
        taken = np.empty((len(rows), self.shape[1]))
        filled = [places for places, _ in self._located(rows) if len(places)]
        for places, part in zip(filled, self.kept(rows)._map(_itself), strict=True):
            taken[places] = part
        return taken

    def summed(
        self, function: Callable[..., FloatArray], *by_row: FloatArray
    ) -> FloatArray:
        """Return the sum of a function over the blocks.

        Parameters
        ----------
        function : callable
            Takes rows (m, p) and their parts of arrays.
        *by_row : ndarrays of shape (n, ...)
            With a line for each row.
        """
        numbers, arguments = self._arguments(by_row)
        read = _Read(self.centre, self.power, _Summed(function))
        return self.blocks.summed(numbers, read, *arguments).values

    def _map(self, function: Callable[[FloatArray], FloatArray]) -> Iterator[FloatArray]:
        numbers, arguments = self._arguments(())
        read = _Read(self.centre, self.power, function)
        return self.blocks.map(numbers, read, *arguments)

    def _arguments(
        self, by_row: tuple[FloatArray, ...]
    ) -> tuple[list[int], list[list[np.ndarray]]]:
        """Return which blocks have any rows, and what belongs to their rows."""
        ends = np.cumsum([len(place) for place in self.positions])[:-1]
        numbers = [k for k, place in enumerate(self.positions) if len(place)]
        split = [self.positions, *(np.split(values, ends) for values in by_row)]
        return numbers, [[own[number] for number in numbers] for own in split]

    def _located(self, rows: IntArray) -> list[tuple[IntArray, IntArray]]:
        """Return, for each block, which of the rows it has, and where."""
        sizes = np.array([len(place) for place in self.positions])
        ends = np.cumsum(sizes)
        block = np.searchsorted(ends, rows, side="right")
        found: list[tuple[IntArray, IntArray]] = []
        for number, start in enumerate((ends - sizes).tolist()):
            places = np.flatnonzero(block == number)
            found.append((places, rows[places] - start))
        return found


@dataclass(frozen=True)
class _Transposed:
    """A transposed matrix: only products with it are known."""

    matrix: BlockMatrix

    def __matmul__(self, right: FloatArray) -> FloatArray:
        return self.matrix.summed(_transposed_product, right)


# What is done to blocks are objects of a module, which can be sent elsewhere.


@dataclass(frozen=True)
class _Read(Generic[T]):
    """Applies a function to some rows of a block."""

    centre: FloatArray
    power: int
    function: Callable[..., T]

    def __call__(self, block: Dataset, positions: IntArray, *by_row: FloatArray) -> T:
        real = block.rows.real
        if len(positions) < real.shape[1]:
            real = real[:, positions]
        rows = np.ascontiguousarray(real.T, dtype=np.float64) - self.centre
        return self.function(rows**self.power if self.power > 1 else rows, *by_row)


@dataclass
class _ArraySum:
    """An array that sums up in place."""

    values: FloatArray

    def add(self, other: _ArraySum) -> None:
        """Add another one."""
        self.values = self.values + other.values


@dataclass(frozen=True)
class _Summed:
    """Makes what a function returns a sum."""

    function: Callable[..., FloatArray]

    def __call__(self, rows: FloatArray, *by_row: FloatArray) -> _ArraySum:
        return _ArraySum(np.asarray(self.function(rows, *by_row)))


@dataclass(frozen=True)
class _Product:
    """Multiplies rows by an array."""

    right: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        return rows @ self.right


def _transposed_product(rows: FloatArray, right: FloatArray) -> FloatArray:
    return rows.T @ right


def _itself(rows: FloatArray) -> FloatArray:
    return rows
