"""The columns of a Dask data frame, whose partitions may differ in their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class DaskColumns:
    """Some columns of a data frame; can be sent to workers.

    pandas calls a column without any value one of numbers or of objects, whatever it
    holds in other partitions.

    Attributes
    ----------
    names : tuple of str
        The columns.
    are_numbers : tuple of bool
        Whether the data frame says that they hold numbers.
    """

    names: tuple[str, ...]
    are_numbers: tuple[bool, ...]

    @classmethod
    def of(cls, example: pandas.DataFrame, names: Sequence[str]) -> Self:
        """Return some columns of the example that a Dask data frame has of itself."""
        return cls(tuple(names), tuple(_holds_numbers(example[name]) for name in names))

    def taken_from(self, part: pandas.DataFrame) -> pandas.DataFrame:
        """Return the columns of a partition, those without a value of the right type."""
        lacking = [name for name in self.names if name not in part.columns]
        if lacking:
            raise ValueError(
                f"Column {lacking[0]!r} of the data frame is not there. Add it to every "
                "partition, with missing values where there are none."
            )
        part = part[list(self.names)]
        types = {
            name: float if is_number else object
            for name, is_number in zip(self.names, self.are_numbers, strict=True)
            if _holds_numbers(part[name]) != is_number and part[name].isna().all()
        }
        return part.astype(types) if types else part


def _holds_numbers(column: pandas.Series) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype)
