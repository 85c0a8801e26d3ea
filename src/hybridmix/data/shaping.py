"""Applying the shapes of columns to rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.shapes import ColumnShape


@dataclass(frozen=True)
class Shaping:
    """The shapes of the real columns of a table, by their place among these.

    A column with spikes is two columns to a model: a code, which says whether the value
    is a spike and which one, and the value itself, which is missing where it is a spike.

    Attributes
    ----------
    shapes : mapping of int to ColumnShape
        Places and shapes of the columns that are not plain, in ascending order.
    """

    shapes: Mapping[int, ColumnShape]

    @classmethod
    def of(cls, shapes: Mapping[int, ColumnShape], real: Sequence[int]) -> Shaping:
        """Place shapes, which are given by position in the table, among real columns."""
        if not shapes:
            return cls({})
        return cls({k: shapes[j] for k, j in enumerate(real) if j in shapes})

    @cached_property
    def spiked(self) -> dict[int, ColumnShape]:
        """The columns that have spikes."""
        return {place: shape for place, shape in self.shapes.items() if shape.spikes}

    @property
    def code_sizes(self) -> tuple[int, ...]:
        """Number of codes of each column with spikes: the spikes, and all else."""
        return tuple(1 + len(shape.spikes) for shape in self.spiked.values())

    # Values to rows -------------------------------------------------------------------

    def forward(self, values: FloatArray) -> FloatArray:
        """Map columns (d, n) onto the line where they are modelled; NaN at spikes."""
        if not self.shapes:
            return values
        mapped = values.copy()
        for place, shape in self.shapes.items():
            if shape.spikes:
                mapped[place, shape.spike_codes(values[place]) > 0] = np.nan
            mapped[place] = shape.forward(mapped[place])
        return mapped

    def codes(self, values: FloatArray) -> IntArray:
        """Return the codes (s, n) of the columns with spikes, for columns (d, n)."""
        parts = [shape.spike_codes(values[k]) for k, shape in self.spiked.items()]
        return np.array(parts, dtype=np.int32).reshape(len(parts), values.shape[1])

    def hide(self, observed: BoolArray, codes: IntArray) -> None:
        """Mark values (d, n) as missing where a code (s, n) says that they are spikes."""
        for place, code in zip(self.spiked, codes, strict=True):
            observed[place] &= code <= 0

    def log_volume(self, values: FloatArray) -> FloatArray:
        """Return the log of the volume by which maps shrink the density, (n,).

        Parameters
        ----------
        values : ndarray of shape (d, n)
            Values of the columns, NaN where missing. Spikes have no volume.
        """
        total = np.zeros(values.shape[1])
        for place, shape in self.shapes.items():
            if shape.transform is not None:
                own = -shape.transform.log_derivative(values[place])
                total += np.where(shape.spike_codes(values[place]) == 0, own, 0.0)
        return total

    # Rows to values -------------------------------------------------------------------

    def inverse(self, mapped: FloatArray) -> FloatArray:
        """Undo `forward` for columns (d, n), but for spikes."""
        if not self.shapes:
            return mapped
        values = mapped.copy()
        for place, shape in self.shapes.items():
            values[place] = shape.inverse(mapped[place])
        return values

    def restore(self, values: FloatArray, codes: IntArray) -> None:
        """Give columns (d, n) values that they may have, and spikes by codes (s, n)."""
        for place, shape in self.shapes.items():
            values[place] = shape.allowed(values[place])
        for (place, shape), code in zip(self.spiked.items(), codes, strict=True):
            spikes = np.array((0.0, *shape.spikes))
            values[place] = np.where(code > 0, spikes[code], values[place])
