"""Kernel matrices that are computed as far as they are needed.

A `Gram` is the kernel matrix of the training rows. It keeps the rows that solvers ask for
within a bound of memory, in single precision where the kernel says that this is enough;
sums of its rows are added to numbers in double precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.blas import daxpy, saxpy

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.med.kernels import Kernel, block_rows

# A row is kept from this request on. Most rows are asked for once or twice, and memory
# that was never touched costs more than computing them again.
_KEPT_FROM = 3
# Part of the rows of a block that are computed one by one before all are.
_FEW = 0.1


class Block:
    """Values of some rows with each other, computed as far as they are needed.

    Single rows are computed one by one, until there are so many of them that computing
    all at once is cheaper.

    Parameters
    ----------
    one, whole : callable
        Return the values (q,) of a row, by its place, and (q, q) of all rows. The values
        of one row are copied at once; those of all are there until the next block.
    diagonal : ndarray of shape (q,)
        Values of the rows with themselves.
    """

    def __init__(
        self,
        one: Callable[[int], FloatArray],
        whole: Callable[[], FloatArray],
        diagonal: FloatArray,
    ) -> None:
        self.diagonal = diagonal
        self._one, self._all = one, whole
        self._rows: dict[int, FloatArray] = {}
        self._whole: FloatArray | None = None

    def row(self, i: int) -> FloatArray:
        """Return the values (q,) of a row with all, in double precision."""
        found = self._rows.get(i)
        if found is None:
            if self._whole is None and len(self._rows) > _FEW * len(self.diagonal):
                self._whole = self._all()
            own = self._one(i) if self._whole is None else self._whole[i]
            found = self._rows[i] = own.astype(np.float64)
            found[i] = self.diagonal[i]
        return found


class KernelMatrix(ABC):
    """What solvers ask of the kernel matrix of the training rows.

    Attributes
    ----------
    shape : tuple of int
        (n, n).
    precision : float
        Relative error of a value.
    """

    shape: tuple[int, int]
    precision: float

    @property
    @abstractmethod
    def diagonal(self) -> FloatArray:
        """The values (n,) of rows with themselves."""

    @abstractmethod
    def rows(self, indices: IntArray) -> FloatArray:
        """Return rows of the matrix, (m, n)."""

    @abstractmethod
    def block(self, indices: IntArray) -> Block:
        """Return the values (m, m) of some rows with each other."""

    @abstractmethod
    def combined(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        """Return the sum (n,) of rows of the matrix by weights (m,)."""

    @abstractmethod
    def product(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        """Return the same sum (n,), of rows that are not to be kept for it."""

    def row(self, index: int) -> FloatArray:
        """Return a row of the matrix, (n,)."""
        return self.rows(np.array([index]))[0]

    def __matmul__(self, weights: FloatArray) -> FloatArray:
        """Return the product (n, C) with weights (n, C), by the rows that have any."""
        columns = []
        for own in weights.T:
            used = np.flatnonzero(own)
            columns.append(self.product(used, own[used]))
        return np.stack(columns, axis=1)


class GivenMatrix(KernelMatrix):
    """A kernel matrix that was computed before.

    Parameters
    ----------
    values : ndarray of shape (n, n)
        The matrix.
    """

    precision = float(np.finfo(np.float64).eps)

    def __init__(self, values: FloatArray) -> None:
        self.values, self.shape = values, (len(values), len(values))

    @property
    def diagonal(self) -> FloatArray:
        return self.values.diagonal()

    def rows(self, indices: IntArray) -> FloatArray:
        return self.values[indices]

    def block(self, indices: IntArray) -> Block:
        def one(i: int) -> FloatArray:
            return self.values[indices[i]].take(indices)

        def whole() -> FloatArray:
            return self.values[np.ix_(indices, indices)]

        return Block(one, whole, self.diagonal[indices])

    def combined(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        return weights @ self.values[indices]

    product = combined

    def __matmul__(self, weights: FloatArray) -> FloatArray:
        return self.values @ weights


class Gram(KernelMatrix):
    """A kernel matrix whose rows are computed when they are asked for.

    Rows that are asked for several times are kept, until others need the room that were
    asked for more recently. The whole matrix is never there unless it fits.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : ndarray of shape (n, p)
        Training rows.
    cache_size : float
        Megabytes that the rows may take.
    """

    def __init__(self, kernel: Kernel, X: FloatArray, cache_size: float = 200.0) -> None:
        n = len(X)
        self.kernel, self.X, self.shape = kernel, X, (n, n)
        self.precision = float(np.finfo(kernel.dtype).eps)
        self._fill = kernel.against(X)
        itemsize = np.dtype(kernel.dtype).itemsize
        n_kept = min(max(int(cache_size * 2**20 / (n * itemsize)), 1), n)
        self._kept = np.empty((n_kept, n), kernel.dtype)
        self._place = np.full(n, -1)  # of each row among those kept
        self._owner = np.full(n_kept, -1)  # and the inverse
        self._asked = np.zeros(n_kept, dtype=np.int64)
        self._time, self._n_used = 0, 0
        self._asks = np.zeros(n, dtype=np.int64)  # how often a row was summed up
        self._step = min(block_rows(n, itemsize), n_kept)
        self._passing = np.empty((self._step, n), kernel.dtype)
        self._square = np.empty(0, kernel.dtype)

    @property
    def diagonal(self) -> FloatArray:
        return self.kernel.diagonal(self.X)

    def rows(self, indices: IntArray) -> FloatArray:
        found = np.empty((len(indices), self.shape[1]), self._kept.dtype)
        for part in self._parts(len(indices)):
            found[part] = self._kept[self._places(indices[part])]
        return found

    def block(self, indices: IntArray) -> Block:
        rows, size = self.X[indices], len(indices)
        fill, places = self.kernel.against(rows), self._place[indices]

        def one(i: int) -> FloatArray:
            if places[i] >= 0:
                return self._kept[places[i]].take(indices)
            values = np.empty((1, size), self._kept.dtype)
            fill(rows[i : i + 1], values)
            return values[0]

        def whole() -> FloatArray:
            if len(self._square) < size**2:
                self._square = np.empty(size**2, self._kept.dtype)
            values = self._square[: size**2].reshape(size, size)
            fill(rows, values)
            return values

        return Block(one, whole, self.kernel.diagonal(rows))

    def combined(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        self._asks[indices] += 1
        is_kept = self._asks[indices] >= _KEPT_FROM
        return self._sum(indices, weights, is_kept)

    def product(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        return self._sum(indices, weights, self._place[indices] >= 0)

    def _sum(
        self, indices: IntArray, weights: FloatArray, is_kept: BoolArray
    ) -> FloatArray:
        total = np.zeros(self.shape[0])
        self._add_passing(indices[~is_kept], weights[~is_kept], total)
        self._add_kept(indices[is_kept], weights[is_kept], total)
        return total

    def _add_passing(
        self, indices: IntArray, weights: FloatArray, total: FloatArray
    ) -> None:
        factors = weights.astype(self._kept.dtype)
        for part in self._parts(len(indices)):
            rows = self._passing[: len(indices[part])]
            self._fill(self.X[indices[part]], rows)
            total += factors[part] @ rows

    def _add_kept(
        self, indices: IntArray, weights: FloatArray, total: FloatArray
    ) -> None:
        # Adding rows one by one is faster than collecting them for one product.
        add = saxpy if self._kept.dtype == np.float32 else daxpy
        sums = np.empty(self.shape[0], self._kept.dtype)
        for part in self._parts(len(indices)):
            sums[:] = 0.0
            places = self._places(indices[part]).tolist()
            for place, weight in zip(places, weights[part].tolist(), strict=True):
                add(self._kept[place], sums, a=weight)
            total += sums

    def _parts(self, count: int) -> Iterator[slice]:
        """Cut into parts that the processor's cache holds.

        Sums over a part are in the precision of the kernel, and sums of parts in double.
        """
        return (slice(i, i + self._step) for i in range(0, count, self._step))

    def _places(self, indices: IntArray) -> IntArray:
        """Return where distinct rows are kept, at most `_step`, after computing them."""
        self._time += 1
        places = self._place[indices]
        is_kept = places >= 0
        self._asked[places[is_kept]] = self._time
        if not is_kept.all():
            places[~is_kept] = self._keep(indices[~is_kept])
        return places

    def _keep(self, missing: IntArray) -> IntArray:
        """Compute rows in place of those that were asked for least recently."""
        m, first = len(missing), self._n_used
        if first + m <= len(self._kept):
            places, self._n_used = np.arange(first, first + m), first + m
        else:
            places = np.argpartition(self._asked, m - 1)[:m]
            self._n_used = len(self._kept)
        former = self._owner[places]
        self._place[former[former >= 0]] = -1
        rows = self._passing[:m]
        self._fill(self.X[missing], rows)
        self._kept[places] = rows
        self._place[missing], self._owner[places] = places, missing
        self._asked[places] = self._time
        return places
