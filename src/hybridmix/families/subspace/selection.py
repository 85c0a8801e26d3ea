"""How many factors a subspace should have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.families.subspace.distinct import distinct_rows
from hybridmix.families.subspace.parameters import Subspace
from hybridmix.families.subspace.principal import (
    principal_subspace,
    sampled,
    single_gaussian,
    spectrum,
)

# A subspace spares nothing in tables of so few columns. Classes and clusters differ in
# all directions there, and what all rows have in common does not show these.
_FEW_COLUMNS = 16
# Numbers of factors that are tried, if their number is not given.
_CANDIDATES = (1, 2, 4, 8, 16, 32, 64)
# Rows with holes take EM for every candidate: a part of them has to do, and more factors
# than this are tried only while they improve.
_MOST_ROWS, _CHEAP = 1000, 16
# One of this many rows is held out.
_FOLDS = 5


def chosen_n_factors(
    rows: Rows, weights: FloatArray, floor: float, explained: float | None = None
) -> int:
    """Choose a number of factors.

    The choice is made among distinct rows: a row of weight two acts like two rows.

    Parameters
    ----------
    rows : Rows
        The rows.
    weights : ndarray of shape (n,)
        Weights of the rows.
    floor : float
        Smallest variance of the noise.
    explained : float or None
        Take the fewest factors that explain this share of the variance. None takes all
        directions of a table of few columns, and else the power of two of the highest
        likelihood on a fifth of the rows.
    """
    rows, weights = distinct_rows(rows, weights)
    d = len(rows.real)
    if explained is not None:
        return _n_explaining(rows, weights, floor, explained)
    if d <= _FEW_COLUMNS and d < rows.n_rows:
        return d
    return _most_likely_n_factors(rows, weights, floor)


def _n_explaining(rows: Rows, weights: FloatArray, floor: float, explained: float) -> int:
    if rows.observed is not None:
        rows, weights = _filled_by_factors(rows, weights, floor)
    most = max(1, min(len(rows.real), rows.n_rows - 1))
    known = spectrum(rows.real, weights, most)
    total = max(float(known.variances.sum()), np.finfo(float).tiny)
    # Rounding must not ask for a further factor.
    shares = np.cumsum(known.values) / total + 1e-12
    return min(int(np.searchsorted(shares, explained)) + 1, most)


def _filled_by_factors(
    rows: Rows, weights: FloatArray, floor: float
) -> tuple[Rows, FloatArray]:
    """Fill the holes of a sample of the rows by what factors expect."""
    rows, weights = sampled(rows, weights, _MOST_ROWS)
    n_factors = min(len(rows.real), _CANDIDATES[-2])
    subspace = principal_subspace(rows, weights, n_factors, floor)
    family, standard = single_gaussian(subspace)
    return family.impute(rows, standard, np.ones((1, rows.n_rows))), weights


def _most_likely_n_factors(rows: Rows, weights: FloatArray, floor: float) -> int:
    if rows.observed is not None:
        rows, weights = sampled(rows, weights, _MOST_ROWS)
    is_held = np.arange(rows.n_rows) % _FOLDS == _FOLDS - 1
    rest, held = rows[np.flatnonzero(~is_held)], rows[np.flatnonzero(is_held)]
    if held.n_rows == 0:
        return 1
    most = max(1, min(len(rows.real) - 1, rest.n_rows - 1, _CANDIDATES[-1]))
    best, best_value = 1, -np.inf
    for subspace in _subspaces(rest, weights[~is_held], floor, most):
        q = subspace.n_factors
        value = _log_likelihood(subspace, held, weights[is_held])
        if value > best_value:
            best, best_value = q, value
        elif rest.observed is not None and q >= _CHEAP:
            break
    return best


def _subspaces(
    rows: Rows, weights: FloatArray, floor: float, most: int
) -> Iterator[Subspace]:
    """Yield the subspaces of more and more factors."""
    candidates = [q for q in _CANDIDATES if q <= most]
    if rows.observed is None:
        whole = spectrum(rows.real, weights, most)
        yield from (whole.subspace(q, floor, equal_noise=True) for q in candidates)
    else:
        yield from (principal_subspace(rows, weights, q, floor) for q in candidates)


def _log_likelihood(subspace: Subspace, rows: Rows, weights: FloatArray) -> float:
    family, standard = single_gaussian(subspace)
    total = 0.0
    for chunk in row_chunks(rows.n_rows, family.width(1, rows.observed)):
        log_density, _ = family.evaluate(family.prepare(rows[chunk]), standard)
        total += float(log_density[0] @ weights[chunk])
    return total
