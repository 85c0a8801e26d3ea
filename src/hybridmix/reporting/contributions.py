"""What each cell of a row adds to its prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.holes import punch_holes

# Orders in which cells are revealed; each is followed by its reverse.
_N_ORDERS = 8


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
    r"""Reveal the cells of a row one after the other, and see what each of them changes.

    .. math:: f(x) = f(\emptyset) + \frac{1}{|\Pi|} \sum_{\pi \in \Pi} \sum_j
              \bigl[ f(x_{\pi, \le j}) - f(x_{\pi, < j}) \bigr]

    What is not revealed is integrated out. The order matters where columns depend on each
    other, so the parts are means over several random orders and their reverses: sampled
    Shapley values of the model's own conditional expectations.

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
        Seed of the orders.
    """
    generator = np.random.default_rng(seed)
    halves = [generator.permutation(len(present)) for _ in range(_N_ORDERS)]
    orders = [order for half in halves for order in (half, half[::-1])]
    k = len(present)
    hidden = np.ones((1 + k * len(orders), n_columns), dtype=bool)
    for number, order in enumerate(orders):
        for step in range(1, k + 1):
            hidden[number * k + step, present[order[:step]]] = False
    values = predict(punch_holes(repeat(row, len(hidden)), hidden))
    parts = np.zeros(k)
    for number, order in enumerate(orders):
        own = values[1 + number * k : 1 + (number + 1) * k]
        parts[order] += np.diff(own, prepend=values[0])
    return Contributions(float(values[0]), present, parts / len(orders))
