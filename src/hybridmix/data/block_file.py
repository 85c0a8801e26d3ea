"""Encoded blocks of rows or sequences in a file that nobody else sees."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TypeVar

import numpy as np

from hybridmix._typing import Sum
from hybridmix.data.rows import Dataset, LabelledUnits, Rows
from hybridmix.data.sequence_rows import SequenceDataset, SequenceRows

T = TypeVar("T")
# No room on the disk, or none left of a user's quota, which not all systems have.
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


@dataclass(frozen=True)
class _Place:
    """Where an array is in the file."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype


class BlockFile:
    """Blocks of encoded rows or sequences in a temporary file.

    The file has no name: the system removes it when it is closed, when the program ends
    and when it is killed.

    Parameters
    ----------
    folder : path-like or None
        Where the file is; None for the folder of temporary files.
    dtype : dtype
        Type of the real values in the file.
    """

    def __init__(
        self, folder: str | PathLike[str] | None, dtype: type[np.floating]
    ) -> None:
        self._folder = folder
        self._dtype = dtype
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        self._blocks: list[list[_Place | None]] = []

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def append(self, block: LabelledUnits) -> None:
        """Write a block after the others."""
        lengths = block.rows.lengths
        frames = block.rows if lengths is None else block.rows.frames
        rows = frames.astype(self._dtype)
        arrays = (
            rows.real,
            rows.observed,
            rows.codes,
            block.labels,
            block.weights,
            lengths,
        )
        try:
            self._blocks.append([self._written(array) for array in arrays])
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise OSError(
                errno.ENOSPC,
                "There is no room for the encoded table; name a folder with more, as in "
                "scan(..., cache=folder)",
                tempfile.gettempdir() if self._folder is None else str(self._folder),
            ) from None

    def _written(self, array: np.ndarray | None) -> _Place | None:
        if array is None:
            return None
        place = _Place(self._file.tell(), array.shape, array.dtype)
        view = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        while len(view):
            view = view[self._file.write(view) :]
        return place

    def _read(self, place: _Place | None) -> np.ndarray | None:
        if place is None:
            return None
        array = np.empty(place.shape, place.dtype)
        view = memoryview(array.reshape(-1).view(np.uint8).data)
        self._file.seek(place.offset)
        while len(view):
            n_read = self._file.readinto(view)
            if not n_read:
                raise OSError("The temporary file of the encoded table was cut short.")
            view = view[n_read:]
        return array

    def _block(self, number: int) -> Dataset | SequenceDataset:
        real, observed, codes, labels, weights, lengths = map(
            self._read, self._blocks[number]
        )
        assert real is not None, "a block has real values"
        assert codes is not None, "a block has codes"
        assert labels is not None, "a block has labels"
        rows = Rows(real, observed, codes)
        if lengths is None:
            return Dataset(rows, labels, weights)
        return SequenceDataset(SequenceRows(rows, lengths), labels, weights)

    def map(
        self,
        numbers: Sequence[int],
        function: Callable[..., T],
        *arguments: Sequence[object],
    ) -> Iterator[T]:
        """Yield what a function returns for some blocks; see `EncodedBlocks`."""
        for number, *own in zip(numbers, *arguments, strict=True):
            yield function(self._block(number), *own)

    def summed(
        self,
        numbers: Sequence[int],
        function: Callable[..., Sum],
        *arguments: Sequence[object],
    ) -> Sum:
        """Add up what a function returns for some blocks; see `EncodedBlocks`."""
        found = self.map(numbers, function, *arguments)
        total = next(found)
        for other in found:
            total.add(other)
        return total
