"""Data frames and arrays of the columns that were read from a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd


def as_frame(columns: dict[str, Any], kinds: Sequence[str], as_array: bool) -> Any:
    """Make a data frame of columns, or an array."""
    n_rows = len(next(iter(columns.values())))
    if as_array:
        dtype = object if "categorical" in kinds else float
        return _stacked(columns.values(), np.empty((n_rows, len(columns)), dtype))
    kind_of = dict(zip(columns, kinds, strict=True))
    numbers, words = {}, {}
    for name, values in columns.items():
        if kind_of[name] == "categorical":
            words[name] = pd.Series(values, dtype=object)
        else:
            numbers[name] = values
    # Numbers go into one block: a frame that is made column by column takes minutes for a
    # hundred thousand of them.
    block = _stacked(numbers.values(), np.empty((len(numbers), n_rows)).T)
    frame = pd.DataFrame(block, columns=pd.Index(list(numbers), dtype=object))
    if words:
        frame = pd.concat([frame, pd.DataFrame(words)], axis=1)[list(columns)]
    return frame


def _stacked(columns: Iterable[Any], block: np.ndarray) -> np.ndarray:
    """Write columns next to each other into an empty array; return it."""
    for j, values in enumerate(columns):
        block[:, j] = values
    return block
