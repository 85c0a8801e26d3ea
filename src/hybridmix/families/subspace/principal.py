"""Subspaces by probabilistic principal components, also of rows with holes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from hybridmix._chunks import row_chunks
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.families.moments import FullStatistics
from hybridmix.families.prior import VariancePrior
from hybridmix.families.subspace.family import SubspaceGaussian, weights_of
from hybridmix.families.subspace.parameters import (
    LoadingStatistics,
    Subspace,
    SubspaceParameters,
)
from hybridmix.families.subspace.projections import group_latent_rows

# Noise of columns of their own is drawn to the mean of all columns by this share.
_COMMON_NOISE = 0.1
# Numbers of factors that are tried, if their number is not given.
_CANDIDATES = (1, 2, 4, 8, 16, 32, 64)
# EM over rows with holes sees so many of them, times squared number of factors.
_MOST_NUMBERS, _FEWEST_ROWS = 10_000_000, 1000
_MOST_ITERATIONS, _TOLERANCE = 50, 1e-3
# Rows with holes that the number of factors is chosen by.
_MOST_ROWS = 1000
# From this size on, a few eigenvectors are found faster without all others.
_LARGE = 500


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenvalues and eigenvectors of a covariance.

    Attributes
    ----------
    centre, variances : ndarray of shape (d,)
        Means and variances of the columns.
    values : ndarray of shape (k,)
        Largest eigenvalues, in descending order.
    vectors : ndarray of shape (d, k)
        Their eigenvectors.
    """

    centre: FloatArray
    variances: FloatArray
    values: FloatArray
    vectors: FloatArray

    def remainders(self) -> FloatArray:
        """Return the mean variance beside the first q directions, q = 1, 2, ..., (k,)."""
        d = len(self.variances)
        left = self.variances.sum() - np.cumsum(self.values)
        return np.maximum(left, 0.0) / np.maximum(d - 1 - np.arange(len(self.values)), 1)

    def subspace(self, n_factors: int, floor: float, equal_noise: bool) -> Subspace:
        r"""Return the subspace of so many factors.

        With the mean variance :math:`\sigma^2` beside the leading directions, the loading
        of highest likelihood for equal noise is
        :math:`V = U (\Lambda - \sigma^2 I)^{1/2}` (Tipping and Bishop 1999).
        """
        remainder = self.remainders()[n_factors - 1]
        strength = np.sqrt(np.maximum(self.values[:n_factors] - remainder, 0.0))
        loading = self.vectors[:, :n_factors] * strength
        left = np.maximum(self.variances - np.square(loading).sum(axis=1), 0.0)
        return Subspace(self.centre, loading, _noise(left, floor, equal_noise))


def _noise(left: FloatArray, floor: float, equal: bool) -> FloatArray:
    """Draw variances that a loading leaves to their mean, and bound them below.

    Columns that hardly ever vary would outweigh all others without this.
    """
    share = 1.0 if equal else _COMMON_NOISE
    return np.maximum((1.0 - share) * left + share * left.mean(), floor)


def principal_subspace(
    rows: Rows,
    weights: FloatArray,
    n_factors: int,
    floor: float,
    equal_noise: bool = True,
) -> Subspace:
    """Return the subspace of so many factors, by maximum likelihood for equal noise.

    If the noise is not to be equal, that of each column is then what the subspace leaves
    of its variance, drawn a little to the mean. Rows with holes take EM, over as many
    rows as memory allows, from rows whose holes are filled by the means of the columns.
    There are no more factors than rows.
    """
    n_factors = max(1, min(n_factors, rows.n_rows - 1))
    if rows.observed is None:
        known = spectrum(rows.real, weights, n_factors)
        return known.subspace(n_factors, floor, equal_noise)
    chosen = _sampled(rows.n_rows, max(_MOST_NUMBERS // n_factors**2, _FEWEST_ROWS))
    sample, own = rows[chosen], weights[chosen]
    if sample.observed is None:
        return principal_subspace(sample, own, n_factors, floor, equal_noise)
    filled = _filled_by_means(sample.real, sample.observed, own)
    start = spectrum(filled, own, n_factors).subspace(n_factors, floor, equal_noise)
    loading, left = _expectation_maximisation(sample, own, start, floor)
    return Subspace(start.centre, loading, _noise(left, floor, equal_noise))


def chosen_n_factors(
    rows: Rows, weights: FloatArray, floor: float, explained: float | None = None
) -> int:
    """Choose a number of factors.

    Parameters
    ----------
    rows : Rows
        The rows.
    weights : ndarray of shape (n,)
        Weights of the rows.
    floor : float
        Smallest variance of the noise.
    explained : float or None
        Take the fewest factors that explain this share of the variance. None takes the
        power of two of the highest likelihood on a fifth of the rows.
    """
    d = rows.real.shape[0]
    if explained is None:
        most = max(1, min(d - 1, rows.n_rows - 1, _CANDIDATES[-1]))
        return _most_likely_n_factors(rows, weights, floor, most)
    if rows.observed is not None:
        rows, weights = _filled_by_factors(rows, weights, floor)
    most = max(1, min(d, rows.n_rows - 1))
    known = spectrum(rows.real, weights, most)
    total = max(float(known.variances.sum()), np.finfo(float).tiny)
    # Rounding must not ask for a further factor.
    shares = np.cumsum(known.values) / total + 1e-12
    return int(min(np.searchsorted(shares, explained) + 1, most))


def _most_likely_n_factors(
    rows: Rows, weights: FloatArray, floor: float, most: int
) -> int:
    if rows.observed is not None:
        sample = _sampled(rows.n_rows, _MOST_ROWS)
        rows, weights = rows[sample], weights[sample]
    is_held = np.arange(rows.n_rows) % 5 == 4
    rest, held = rows[np.flatnonzero(~is_held)], rows[np.flatnonzero(is_held)]
    if held.n_rows == 0:
        return 1
    whole = None
    if rest.observed is None:
        whole = spectrum(rest.real, weights[~is_held], most)
    best, best_value = 1, -np.inf
    for q in (q for q in _CANDIDATES if q <= most):
        if whole is not None:
            subspace = whole.subspace(q, floor, equal_noise=True)
        else:
            subspace = principal_subspace(rest, weights[~is_held], q, floor)
        value = _log_likelihood(subspace, held, weights[is_held])
        if not value > best_value:
            break
        best, best_value = q, value
    return best


def _log_likelihood(subspace: Subspace, rows: Rows, weights: FloatArray) -> float:
    family, standard = _single(subspace)
    total = 0.0
    for chunk in row_chunks(rows.n_rows, family.width(1, rows.observed)):
        log_density, _ = family.evaluate(family.prepare(rows[chunk]), standard)
        total += float(log_density[0] @ weights[chunk])
    return total


def _single(subspace: Subspace) -> tuple[SubspaceGaussian, SubspaceParameters]:
    """Return a single Gaussian, whose latent variables are standard normal."""
    family = SubspaceGaussian(VariancePrior(np.ones(subspace.n_factors)), subspace)
    return family, SubspaceParameters.standard(subspace)


def spectrum(real: FloatArray, weights: FloatArray, n_values: int) -> Spectrum:
    """Return the leading eigenvalues and eigenvectors of the covariance of rows (d, n).

    They are found from the products of columns or of rows, whichever are fewer.
    """
    d, n_rows = real.shape
    shares = weights / weights.sum()
    centre = real @ shares
    if d <= n_rows:
        products = np.zeros((d, d))
        for chunk in row_chunks(n_rows, 3 * d):
            error = real[:, chunk] - centre[:, None]
            products += np.dot(error * shares[chunk], error.T)
        variances = np.diagonal(products)
        values, vectors = _leading_eigenvectors(products, n_values)
    else:
        error = (real - centre[:, None]) * np.sqrt(shares)
        variances = np.einsum("dn,dn->d", error, error)
        values, vectors = _leading_eigenvectors(error.T @ error, n_values)
        vectors = error @ vectors
        vectors /= np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(float).tiny)
    return Spectrum(centre, variances, values, vectors)


def _leading_eigenvectors(
    matrix: FloatArray, number: int
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues, in descending order, and their vectors."""
    size = len(matrix)
    values = None
    if size >= _LARGE and 4 * number <= size:
        start = np.random.default_rng(0).standard_normal(size)
        with contextlib.suppress(ArpackError):  # of matrices of zeros, for example
            values, vectors = eigsh(matrix, number, v0=start)
    if values is None:
        values, vectors = np.linalg.eigh(matrix)
    last = slice(None, -number - 1, -1)
    return np.maximum(values[last], 0.0), vectors[:, last]


# Rows with holes ------------------------------------------------------------------------


def _sampled(n_rows: int, most: int) -> slice:
    """Take rows at equal distances, and no more than a number of them."""
    return slice(None, None, -(-n_rows // most))


def _filled_by_means(
    real: FloatArray, observed: BoolArray, weights: FloatArray
) -> FloatArray:
    counts = np.maximum(observed @ weights, np.finfo(float).tiny)
    means = real @ weights / counts
    return np.where(observed, real, means[:, None])


def _filled_by_factors(
    rows: Rows, weights: FloatArray, floor: float
) -> tuple[Rows, FloatArray]:
    """Fill the holes of a sample of the rows by what factors expect."""
    sample = _sampled(rows.n_rows, _MOST_ROWS)
    rows, weights = rows[sample], weights[sample]
    n_factors = min(rows.real.shape[0], _CANDIDATES[-2])
    family, standard = _single(principal_subspace(rows, weights, n_factors, floor))
    return family.impute(rows, standard, np.ones((1, rows.n_rows))), weights


def _expectation_maximisation(
    rows: Rows, weights: FloatArray, start: Subspace, floor: float
) -> tuple[FloatArray, FloatArray]:
    """Improve a subspace for equal noise, by the columns that the rows have.

    Returns the loading (d, q), and the variances that it leaves.
    """
    noise = max(float(start.noise.mean()), floor)
    present, left = start, start.noise
    for _ in range(_MOST_ITERATIONS):
        present = replace(present, noise=np.full_like(left, noise))
        latent, sums, grams = _expected(rows, weights, present)
        loading, left = _regressed(sums, grams, weights.sum() / rows.n_rows)
        # The factors turn out to have another variance than one, which the loading takes
        # over: without this expansion EM changes its length by tiny steps.
        loading = loading @ np.linalg.cholesky(latent.second[0] / latent.counts[0])
        change = np.linalg.norm(loading - present.loading)
        present = replace(present, loading=loading)
        noise = max(float(np.average(left, weights=sums.weights)), floor)
        if change < _TOLERANCE * np.linalg.norm(loading):
            break
    return present.loading, left


def _expected(
    rows: Rows, weights: FloatArray, subspace: Subspace
) -> tuple[FullStatistics, LoadingStatistics, FloatArray]:
    """Return expected moments: of factors, of columns, and of factors by column."""
    family, standard = _single(subspace)
    d, q = subspace.loading.shape
    latent, sums = FullStatistics.zero(1, q), LoadingStatistics.zero(d, q)
    grams = np.zeros((d, q, q))
    for chunk in row_chunks(rows.n_rows, family.width(1, rows.observed)):
        for group in group_latent_rows(rows[chunk]):
            projection = group.project(subspace)
            own = weights_of(projection, weights[None, chunk])
            _, posterior = projection.evaluate(standard)
            means, products = posterior.expect(latent, own)
            group.add_moments(sums, subspace, own[0], means)
            group.add_grams(grams, products)
    return latent, sums, grams


def _regressed(
    sums: LoadingStatistics, grams: FloatArray, weight: float
) -> tuple[FloatArray, FloatArray]:
    """Regress every column on expected factors, over the rows that have it.

    A row at the centre, of a given weight, is added, so that columns that few rows have
    get a small loading instead of a wild one. Returns the loading (d, q), and the
    variances that are left. The products of factors are used up.
    """
    diagonal = np.arange(grams.shape[1])
    grams[:, diagonal, diagonal] += weight  # in place, since they may be large
    solved = np.linalg.solve(grams, sums.crossed[:, :, None])
    loading = np.asarray(solved[:, :, 0], dtype=np.float64)
    # By the normal equations, grams @ loading is what is crossed.
    fitted = -sums.crossed - weight * loading
    left = np.maximum(sums.squares + np.sum(loading * fitted, axis=1), 0.0)
    return loading, left / np.maximum(sums.weights, np.finfo(float).tiny)
