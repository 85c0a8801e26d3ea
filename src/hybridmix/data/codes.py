"""Which columns of whole numbers are codes, and better modelled as categories."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.shape_choice import CLEAR, CLEAR_PER_ROW, Cells

# Codes are this many distinct whole numbers at most, each in this many cells: others would
# often be met in prediction for the first time.
_MOST_CODES, _FEWEST_CELLS = 5, 3.0
FEWEST_CELLS_OF_CODES = 100.0
_SMOOTHING = 1.0


def code_gain(cells: Cells) -> float:
    """Return what categories gain over a Gaussian, in log-likelihood per row.

    Both are probabilities: of a category, and of the cell around a value. The gain is 0
    unless it is a clear one.
    """
    if cells.total < FEWEST_CELLS_OF_CODES or not cells.is_whole:
        return 0.0
    values, places = np.unique(cells.values, return_inverse=True)
    if not 2 <= len(values) <= _MOST_CODES:
        return 0.0
    counts = np.bincount(places, cells.weights)
    if counts.min() < _FEWEST_CELLS:
        return 0.0
    size = int(cells.groups.max()) + 1, len(values)
    table = np.zeros(size)
    np.add.at(table, (cells.groups, places), cells.weights)
    smoothed = table + _SMOOTHING
    logs = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
    # A Gaussian has two parameters in every group, and categories one less than values.
    n_more = np.sum(table.sum(axis=1) > 0.0) * (len(values) - 3)
    penalty = 0.5 * n_more * np.log(cells.total)
    gain = float((table * logs).sum()) - penalty - cells.log_likelihood(None)
    is_clear = gain > CLEAR + CLEAR_PER_ROW * cells.total
    return gain / cells.total if is_clear else 0.0


def codes_among(columns: Mapping[int, Cells], matrix: FloatArray) -> list[int]:
    """Return the columns that are better as categories, all taken together.

    Categories are independent within a component. Gaussian columns need not be, so what
    categories gain has to outweigh what correlations say.

    Parameters
    ----------
    columns : mapping of int to Cells
        Candidates by position.
    matrix : ndarray of shape (k, n)
        Their values minus the means of their groups, 0 where missing.
    """
    gains = np.array([code_gain(cells) for cells in columns.values()])
    chosen = np.flatnonzero(gains > 0.0)
    if len(chosen) == 0:
        return []
    own = matrix[chosen]
    squares = own @ own.T
    scale = np.sqrt(np.maximum(np.diagonal(squares), np.finfo(float).tiny))
    correlations = squares / scale / scale[:, None]
    correlations *= 1.0 - len(chosen) / (len(chosen) + matrix.shape[1])
    np.fill_diagonal(correlations, 1.0)
    information = -0.5 * float(np.linalg.slogdet(correlations)[1])
    if gains.sum() <= information:
        return []
    positions = list(columns)
    return [positions[k] for k in chosen]
