"""Rows that are held out to compare candidates, and how well a model does on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import Dataset, Schema
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.evaluation import ChunkedRows, log_joint
from hybridmix.models.mixture import Mixture

# Every observed cell of a held-out row is hidden once, a fifth of them at a time.
_HIDDEN_PARTS = 5
# A single split holds out a quarter of the rows.
_N_PARTS = 4
# A smaller part of the weight of a row is rounding.
_TRACE = 1e-6


@dataclass(frozen=True)
class Fold:
    """Rows to fit to, and rows to score by.

    Attributes
    ----------
    rest, held : Dataset
        The rows.
    index : ndarray of shape (m,)
        Numbers of the held rows.
    """

    rest: Dataset
    held: Dataset
    index: IntArray


@dataclass(frozen=True)
class Holdout:
    """Rows of a search, dealt out into folds.

    Attributes
    ----------
    dataset : Dataset
        All rows of the search.
    numbers : ndarray of shape (n,)
        Which distinct row each of them is.
    folds : list of Fold
        A weight of two is two rows: equal rows are in the same fold, so that a model is
        not scored by rows it has seen. Only in tables of nothing but categories, where
        equal rows are what the model is about, are they dealt out one by one.
    """

    dataset: Dataset
    numbers: IntArray
    folds: list[Fold]

    @classmethod
    def deal(
        cls,
        dataset: Dataset,
        n_repetitions: int,
        n_folds: int,
        generator: np.random.Generator,
    ) -> Holdout:
        """Deal out rows; without repetitions, only the first fold is held out.

        Parameters
        ----------
        dataset : Dataset
            All rows of the search.
        n_repetitions : int
            How often to deal out all rows anew; 0 for a single split.
        n_folds : int
            How many folds each time.
        generator : numpy.random.Generator
            Source of randomness.
        """
        numbers = distinct_numbers(dataset.rows)
        n_distinct = int(numbers.max()) + 1
        n_folds = min(n_folds if n_repetitions else _N_PARTS, n_distinct)
        folds = []
        for _ in range(max(n_repetitions, 1)):
            places = generator.permutation(n_distinct)[numbers]
            for place in range(n_folds if n_repetitions else 1):
                if len(dataset.rows.real):
                    held = dataset.filled_weights * (places % n_folds == place)
                else:
                    held = _dealt(places, dataset.filled_weights, n_folds, place)
                fold = _fold(dataset, held)
                folds += [] if fold is None else [fold]
        return cls(dataset, numbers, folds)

    def row_means(self, scores: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Average the scores of the first folds for each row.

        Returns
        -------
        means, weights : ndarray of shape (m,)
            Of the rows that were held out by then.
        """
        totals = np.zeros(self.dataset.n_rows)
        counts = np.zeros(self.dataset.n_rows)
        for fold, own in zip(self.folds, scores, strict=False):
            totals[fold.index] += fold.held.filled_weights * own
            counts[fold.index] += fold.held.filled_weights
        seen = counts > 0.0
        # Repetitions of folds do not make more rows.
        weights = np.minimum(counts, self.dataset.filled_weights)[seen]
        return totals[seen] / counts[seen], weights


def _dealt(places: IntArray, weights: FloatArray, n_folds: int, place: int) -> FloatArray:
    """Return how much of the weight (n,) of each row is in a fold.

    Rows lie along a line, each as long as its weight, and equal ones next to each other.
    Pieces of length one go to the folds in turn.
    """
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(weights[order])

    def before(position: FloatArray) -> FloatArray:
        turns = np.floor(position / n_folds)
        return turns + np.clip(position - n_folds * turns - place, 0.0, 1.0)

    held = np.empty(len(weights))
    held[order] = before(ends) - before(np.r_[0.0, ends[:-1]])
    return held


def _fold(dataset: Dataset, held: FloatArray) -> Fold | None:
    """Hold out some of the weight (n,) of each row; None if one part has no rows."""
    weights = dataset.filled_weights
    rest = weights - held
    is_held, is_rest = (part > _TRACE * weights for part in (held, rest))
    if not is_held.any() or not is_rest.any():
        return None
    index = np.flatnonzero(is_held)
    return Fold(
        replace(dataset, weights=rest).take(np.flatnonzero(is_rest)),
        replace(dataset, weights=held).take(index),
        index,
    )


def distinct_numbers(rows: Rows) -> IntArray:
    """Return numbers (n,) of the distinct rows, ascending with their values.

    The order depends on the values alone, not on how rows are arranged.
    """
    parts: list[np.ndarray] = [rows.codes, rows.real]
    if rows.observed is not None:
        parts.append(rows.observed)
    cells = np.vstack(parts)
    order = np.lexsort(cells)
    is_new = np.any(cells[:, order[1:]] != cells[:, order[:-1]], axis=0)
    numbers = np.empty(rows.n_rows, np.intp)
    numbers[order] = np.cumsum(np.r_[False, is_new])
    return numbers


# Scores of rows -----------------------------------------------------------------------

RowScore = Callable[[Mixture, Fold], FloatArray]


def density_score(schema: Schema, pool: Workers) -> RowScore:
    """Score rows by their log densities, in the units of the table."""

    def score(model: Mixture, fold: Fold) -> FloatArray:
        [log_density] = log_joint(model, fold.held.rows, pool)
        return log_density - schema.log_volumes(fold.held.rows)

    return score


def filling_score(
    holdout: Holdout, generator: np.random.Generator, pool: Workers
) -> RowScore:
    """Score rows by how well their cells are filled once they are hidden.

    The score is minus the mean squared error, in standard deviations of the columns; a
    wrong category counts like an error of one. What counts for filling is the expected
    value given the other cells, and not how well the shape of a density is met: the best
    density of skewed columns is one of many components that fill no better than means.
    """
    rows = holdout.dataset.rows
    variances = _variances(rows, holdout.dataset.filled_weights)
    n_distinct = int(holdout.numbers.max()) + 1
    parts = generator.integers(
        _HIDDEN_PARTS, size=(n_distinct, len(rows.real) + len(rows.codes))
    )
    n_cells = np.sum(_observed(rows)) + np.sum(rows.codes != MISSING_CODE)
    cells_per_row = max(float(n_cells) / rows.n_rows, 1.0)

    def score(model: Mixture, fold: Fold) -> FloatArray:
        own = parts[holdout.numbers[fold.index]].T
        total = np.zeros(fold.held.n_rows)
        for part in range(_HIDDEN_PARTS):
            total += _errors(model, fold.held.rows, own == part, variances, pool)
        return -total / cells_per_row

    return score


def _errors(
    model: Mixture,
    rows: Rows,
    hidden: BoolArray,
    variances: FloatArray,
    pool: Workers,
) -> FloatArray:
    """Hide cells (d + f, n) and return the sums (n,) of the errors of filling them."""
    hide_real, hide_codes = np.split(hidden, [len(rows.real)])
    observed = _observed(rows)
    kept = observed & ~hide_real
    holed = Rows(
        np.where(kept, rows.real, 0.0),
        kept,
        np.where(hide_codes, MISSING_CODE, rows.codes),
    )
    chunked = ChunkedRows(holed, model, pool)
    filled = list(chunked.map(lambda number: model.impute(holed[chunked.chunks[number]])))
    real = np.concatenate([part.real for part in filled], axis=1)
    codes = np.concatenate([part.codes for part in filled], axis=1)
    squares = np.square(real - rows.real) / variances[:, None]
    wrong = (codes != rows.codes) & hide_codes & (rows.codes != MISSING_CODE)
    return np.where(observed & hide_real, squares, 0.0).sum(axis=0) + wrong.sum(axis=0)


def _observed(rows: Rows) -> BoolArray:
    return np.ones(rows.real.shape, bool) if rows.observed is None else rows.observed


def _variances(rows: Rows, weights: FloatArray) -> FloatArray:
    """Return the variances (d,) of the observed cells; infinite for constant columns."""
    w = _observed(rows) * weights
    counts = np.maximum(w.sum(axis=1), np.finfo(float).tiny)
    means = (w * rows.real).sum(axis=1) / counts
    variances = (w * np.square(rows.real - means[:, None])).sum(axis=1) / counts
    return np.where(variances > 0.0, variances, np.inf)
