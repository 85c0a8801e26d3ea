"""Holes made on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import BoolArray


def punch_holes(X: Any, holes: BoolArray) -> Any:
    """Return a copy of a table with some of its cells made missing.

    Parameters
    ----------
    X : array-like, pandas or polars data frame of shape (n, d)
        The table.
    holes : ndarray of bool, shape (n, d)
        The cells to make missing.
    """
    if hasattr(X, "with_columns"):  # polars
        import polars

        return X.with_columns(
            polars.when(polars.Series(~hole)).then(polars.col(name)).alias(name)
            for name, hole in zip(X.columns, holes.T, strict=True)
        )
    if hasattr(X, "mask"):  # pandas
        return X.mask(holes)
    array = np.array(X, dtype=None)
    if array.dtype.kind not in "fO":
        array = array.astype(object if array.dtype.kind in "US" else np.float64)
    array[holes] = np.nan
    return array


def random_holes(
    shape: tuple[int, int], rate: float, generator: np.random.Generator
) -> BoolArray:
    """Draw cells completely at random, each with the same probability."""
    return generator.random(shape) < rate
