"""Subspaces by probabilistic principal components, also of rows with holes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from hybridmix._chunks import row_chunks
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.families.moments import FullStatistics, factorised
from hybridmix.families.prior import VariancePrior
from hybridmix.families.subspace.distinct import distinct_rows
from hybridmix.families.subspace.family import SubspaceGaussian
from hybridmix.families.subspace.parameters import (
    LoadingStatistics,
    Subspace,
    SubspaceParameters,
)
from hybridmix.families.subspace.projections import group_latent_rows, weights_of

# Noise of columns of their own is drawn to the mean of all columns by this share.
_COMMON_NOISE = 0.1
# With as many factors as columns, noise is this share of the smallest eigenvalue.
_LAST_NOISE = 0.01
# EM over rows with holes sees this many of them, divided by the squared number of
# factors.
_MOST_NUMBERS, _FEWEST_ROWS = 10_000_000, 1000
_MOST_ITERATIONS, _TOLERANCE = 15, 1e-3
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
        """Return mean variances outside the first q directions, q = 1, 2, ..., (k,).

        Outside of all directions nothing is left. A small part of the last one is taken
        for noise then: densities divide by it, and lose digits if it is tiny.
        """
        d = len(self.variances)
        left = self.variances.sum() - np.cumsum(self.values)
        means = np.maximum(left, 0.0)
        means /= np.maximum(d - 1 - np.arange(len(self.values)), 1)
        if len(self.values) == d:
            means[-1] = _LAST_NOISE * self.values[-1]
        return means

    def subspace(self, n_factors: int, floor: float, equal_noise: bool) -> Subspace:
        r"""Return the subspace of this many factors.

        With the mean variance :math:`\sigma^2` outside of these directions, the loading
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
    """Return the subspace of this many factors, by maximum likelihood for equal noise.

    If the noise is not to be equal, that of each column is then what the subspace leaves
    of its variance, drawn a little to the mean. Rows with holes take EM, over as many
    rows as memory allows, from rows whose holes are filled by the means of the columns.
    There are no more factors than rows.
    """
    if rows.observed is not None:
        rows, weights = distinct_rows(rows, weights)
        most = max(_MOST_NUMBERS // n_factors**2, _FEWEST_ROWS)
        rows, weights = sampled(rows, weights, most)
    counted = replace(rows, codes=rows.codes[:0])[np.flatnonzero(weights > 0.0)]
    n_factors = max(1, min(n_factors, counted.n_distinct(n_factors + 1) - 1))
    if rows.observed is None:
        known = spectrum(rows.real, weights, n_factors)
        return known.subspace(n_factors, floor, equal_noise)
    filled = _filled_by_means(rows.real, rows.observed, weights)
    start = spectrum(filled, weights, n_factors).subspace(n_factors, floor, equal_noise)
    loading, left = _expectation_maximisation(rows, weights, start, floor)
    return Subspace(start.centre, loading, _noise(left, floor, equal_noise))


def single_gaussian(subspace: Subspace) -> tuple[SubspaceGaussian, SubspaceParameters]:
    """Return a single Gaussian, whose latent variables are standard normal."""
    family = SubspaceGaussian(VariancePrior(np.ones(subspace.n_factors)), subspace)
    return family, SubspaceParameters.standard(subspace)


def spectrum(real: FloatArray, weights: FloatArray, n_values: int) -> Spectrum:
    """Return the leading eigenvalues and eigenvectors of the covariance of rows (d, n).

    They are found from the products of columns or of rows, whichever are fewer.
    """
    d, n_rows = real.shape
    shares = weights / weights.max()
    shares /= shares.sum()
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
    # An eigenvector has no sign; without one, starts would depend on rounding.
    signs = np.sign((1.0 / np.arange(1, d + 1)) @ vectors)
    return Spectrum(centre, variances, values, vectors * np.where(signs < 0, -1.0, 1.0))


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


def sampled(rows: Rows, weights: FloatArray, most: int) -> tuple[Rows, FloatArray]:
    """Take rows at equal distances, and no more than a number of them."""
    step = slice(None, None, -(-rows.n_rows // most))
    return rows[step], weights[step]


def _filled_by_means(
    real: FloatArray, observed: BoolArray, weights: FloatArray
) -> FloatArray:
    counts = np.maximum(observed @ weights, np.finfo(float).tiny)
    means = real @ weights / counts
    return np.where(observed, real, means[:, None])


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
        loading = loading @ factorised(latent.second / latent.counts[0])[1][0]
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
    family, standard = single_gaussian(subspace)
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
