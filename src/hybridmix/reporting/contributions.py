"""What each cell of a row adds to its prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.holes import punch_holes
from hybridmix.inspection.coalitions import choose_coalitions

# Subsets of cells that the model is asked about; all of them for up to ten cells.
_N_SUBSETS = 1024


@dataclass(frozen=True)
class Contributions:
    """A prediction as a sum over the cells of a row.

    Attributes
    ----------
    start : float
        The prediction for a row of which nothing is known.
    columns : ndarray of shape (k,)
        Columns that the row has.
    parts : ndarray of shape (k,)
        What their cells add. With the start, they add up to the prediction.
    """

    start: float
    columns: IntArray
    parts: FloatArray

    @property
    def total(self) -> float:
        """The prediction for the whole row."""
        return self.start + float(self.parts.sum())


def contributions(
    row: Any,
    present: IntArray,
    n_columns: int,
    predict: Callable[[Any], FloatArray],
    repeat: Callable[[Any, int], Any],
    seed: int,
) -> Contributions:
    """Return the Shapley values of the cells of a row, for any question to the model.

    What is hidden is integrated out. See `hybridmix.inspection.shapley_values`, which
    answers questions about single classes; here it may be the ratio of two.

    Parameters
    ----------
    row : table of one row
        The row.
    present : ndarray of shape (k,)
        Columns that it has.
    n_columns : int
        Number of all columns.
    predict : callable
        Returns a number for each row of a table.
    repeat : callable
        Returns a table of the row as often as asked for.
    seed : int
        Seed of the subsets, if not all of them are asked about.
    """
    coalitions = choose_coalitions(len(present), _N_SUBSETS, seed)
    hidden = np.ones((len(coalitions.shown), n_columns), dtype=bool)
    hidden[:, present] = ~coalitions.shown
    values = predict(punch_holes(repeat(row, len(hidden)), hidden))
    nothing = int(np.argmin(coalitions.shown.sum(axis=1)))
    parts, _ = coalitions.attributions(values)
    return Contributions(float(values[nothing]), present, parts)
