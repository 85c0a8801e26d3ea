"""Where encoded blocks of rows are, and blocks that are made of others when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from hybridmix._typing import FloatArray, IntArray, Sum
from hybridmix.data.rows import Dataset, LabelledUnits

T = TypeVar("T")


@dataclass(frozen=True)
class BlockSize:
    """How many rows of each label a block has, and their weight.

    Attributes
    ----------
    counts : ndarray of int, shape (C + 1,)
        Numbers of rows; first of the unlabelled ones, then of each class.
    weights : ndarray of shape (C + 1,)
        Sums of their sample weights.
    has_holes : bool
        Whether real cells are missing.
    """

    counts: IntArray
    weights: FloatArray
    has_holes: bool

    @classmethod
    def of(cls, block: LabelledUnits, n_classes: int) -> BlockSize:
        """Count the rows of a block."""
        places, size = block.labels + 1, n_classes + 1
        return cls(
            np.bincount(places, minlength=size),
            np.bincount(places, block.weights, size).astype(np.float64),
            block.has_holes,
        )


class EncodedBlocks(Protocol):
    """Where encoded blocks of rows are: in a file, or on the workers of a cluster."""

    def map(
        self,
        numbers: Sequence[int],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for some blocks, in their order.

        Parameters
        ----------
        numbers : sequence of int
            Which blocks.
        function : callable
            Takes a block, a `Dataset`, and its own element of each of the arguments.
        *arguments : sequences
            With an element for each block of these numbers.
        """
        ...

    def summed(
        self,
        numbers: Sequence[int],
        function: Callable[..., Sum],
        *arguments: Sequence[object],
    ) -> Sum:
        """Add up what a function returns for some blocks, always in the same order."""
        ...

    def close(self) -> None:
        """Give back what the blocks take."""
        ...


@dataclass(frozen=True)
class DerivedBlocks:
    """What a function makes of encoded blocks, one by one; nothing of it is kept.

    Attributes
    ----------
    blocks : EncodedBlocks
        The blocks.
    function : callable
        Takes a block and its own element of each of the arguments, and returns another.
    arguments : sequence of sequences
        With an element for each of the blocks.
    """

    blocks: EncodedBlocks
    function: Callable[..., Dataset]
    arguments: Sequence[Sequence[object]]

    def map(
        self,
        numbers: Sequence[int],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for some blocks; see `EncodedBlocks`."""
        return self.blocks.map(
            numbers, self._after(function), *self._own(numbers), *arguments
        )

    def summed(
        self,
        numbers: Sequence[int],
        function: Callable[..., Sum],
        *arguments: Sequence[object],
    ) -> Sum:
        """Add up what a function returns for some blocks; see `EncodedBlocks`."""
        return self.blocks.summed(
            numbers, self._after(function), *self._own(numbers), *arguments
        )

    def close(self) -> None:
        """Give back what the blocks take."""
        self.blocks.close()

    def _after(self, function: Callable[..., T]) -> _After[T]:
        return _After(self.function, len(self.arguments), function)

    def _own(self, numbers: Sequence[int]) -> list[list[object]]:
        return [[given[number] for number in numbers] for given in self.arguments]


@dataclass(frozen=True)
class _After(Generic[T]):
    """Applies one function after another; can be sent elsewhere."""

    first: Callable[..., Dataset]
    n_first: int
    second: Callable[..., T]

    def __call__(self, block: Dataset, *arguments: object) -> T:
        made = self.first(block, *arguments[: self.n_first])
        return self.second(made, *arguments[self.n_first :])
