"""Subspaces by probabilistic principal components, also of rows with holes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.families.moments import FullParameters, FullStatistics
from hybridmix.families.subspace.parameters import Subspace
from hybridmix.families.subspace.projections import MixedRows

# Noise of columns of their own is drawn to the mean of all columns by this share.
_COMMON_NOISE = 0.1
# Numbers of factors that are tried, if their number is not given.
_CANDIDATES = (1, 2, 4, 8, 16, 32, 64)
# EM over rows with holes sees so many numbers: rows times squared number of factors.
_MOST_NUMBERS = 10_000_000
_MOST_ITERATIONS, _TOLERANCE = 50, 1e-3
# Directions beyond those asked for, and products, in the search for eigenvectors.
_OVERSAMPLED, _POWERS = 10, 8


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
    chosen = _sampled(rows.n_rows, max(_MOST_NUMBERS // n_factors**2, 2 * n_factors))
    sample, own = rows[chosen], weights[chosen]
    if sample.observed is None:
        return principal_subspace(sample, own, n_factors, floor, equal_noise)
    filled = _filled_by_means(sample.real, sample.observed, own)
    start = spectrum(filled, own, n_factors).subspace(n_factors, floor, equal_noise)
    mixed = MixedRows(np.arange(sample.n_rows), sample.real, sample.observed)
    loading, left = _expectation_maximisation(mixed, own, start, floor)
    return Subspace(start.centre, loading, _noise(left, floor, equal_noise))


def chosen_n_factors(
    rows: Rows, weights: FloatArray, explained: float | None = None
) -> int:
    """Choose a number of factors, on rows whose holes are filled by means of columns.

    Parameters
    ----------
    rows : Rows
        The rows.
    weights : ndarray of shape (n,)
        Weights of the rows.
    explained : float or None
        Take the fewest factors that explain this share of the variance. None takes the
        number of the highest likelihood on a fifth of the rows, of powers of two.
    """
    real = rows.real
    if rows.observed is not None:
        real = _filled_by_means(real, rows.observed, weights)
    d, n_rows = real.shape
    most = max(1, min(d - 1, n_rows - 1))
    if explained is not None:
        shares = np.cumsum(spectrum(real, weights, most).values)
        total = max(shares[-1], np.finfo(float).tiny)
        return int(min(np.searchsorted(shares / total, explained) + 1, most))
    is_held = np.arange(n_rows) % 5 == 4
    rest = spectrum(real[:, ~is_held], weights[~is_held], min(most, _CANDIDATES[-1]))
    candidates = [q for q in _CANDIDATES if q <= min(most, len(rest.values))]
    values = _log_likelihoods(rest, real[:, is_held], weights[is_held])
    return max(candidates, key=lambda q: values[q - 1]) if is_held.any() else 1


def _log_likelihoods(
    known: Spectrum, real: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return log-likelihoods of rows for one factor, two, and so on, up to a constant."""
    error = real - known.centre[:, None]
    projected = np.square(known.vectors.T @ error) @ weights
    squares = float(np.square(error).sum(axis=0) @ weights)
    least = 1e-9 * max(float(known.variances.mean()), np.finfo(float).tiny)
    values, noise = np.maximum(known.values, least), np.maximum(known.remainders(), least)
    n_left = len(real) - 1 - np.arange(len(values))
    inside = np.cumsum(weights.sum() * np.log(values) + projected / values)
    outside = n_left * weights.sum() * np.log(noise)
    return -0.5 * (inside + outside + (squares - np.cumsum(projected)) / noise)


def spectrum(real: FloatArray, weights: FloatArray, n_values: int) -> Spectrum:
    """Return the leading eigenvalues and eigenvectors of the covariance of rows (d, n).

    The covariance is formed if it is smaller than the rows. Its eigenvectors are found by
    products with a few more directions than asked for (Halko et al. 2011): the rest of
    them is not needed, and takes most of the time of a complete decomposition.
    """
    d, n_rows = real.shape
    shares = weights / weights.sum()
    centre = real @ shares
    variances = np.zeros(d)
    is_formed = d <= n_rows
    covariance = np.zeros((d, d) if is_formed else (0, 0))
    for chunk in row_chunks(n_rows, 3 * d):
        error = real[:, chunk] - centre[:, None]
        scaled = error * shares[chunk]
        variances += np.einsum("dn,dn->d", scaled, error)
        if is_formed:
            covariance += np.dot(scaled, error.T)
    error = np.empty((0, 0)) if is_formed else (real - centre[:, None]) * np.sqrt(shares)

    def multiplied(vectors: FloatArray) -> FloatArray:
        if is_formed:
            return np.dot(covariance, vectors)
        return np.dot(error, np.dot(error.T, vectors))

    size = min(n_values + _OVERSAMPLED, d, n_rows)
    basis = np.random.default_rng(0).standard_normal((d, size))
    for _ in range(_POWERS):
        basis, _ = np.linalg.qr(multiplied(basis))
    values, rotation = np.linalg.eigh(basis.T @ multiplied(basis))
    vectors = basis @ rotation[:, ::-1]
    values = np.maximum(values[::-1], 0.0)
    return Spectrum(centre, variances, values[:n_values], vectors[:, :n_values])


# Rows with holes ------------------------------------------------------------------------


def _sampled(n_rows: int, most: int) -> slice:
    """Take every so manieth row, to have no more than a number of them."""
    return slice(None, None, -(-n_rows // most))


def _filled_by_means(
    real: FloatArray, observed: BoolArray, weights: FloatArray
) -> FloatArray:
    counts = np.maximum(observed @ weights, np.finfo(float).tiny)
    means = real @ weights / counts
    return np.where(observed, real, means[:, None])


def _expectation_maximisation(
    rows: MixedRows, weights: FloatArray, start: Subspace, floor: float
) -> tuple[FloatArray, FloatArray]:
    """Improve a subspace for equal noise, by the columns that the rows have.

    Returns the loading (d, q), and the variances that it leaves.
    """
    q = start.n_factors
    standard = FullParameters.of(np.zeros((1, q)), np.eye(q)[None])
    seen = np.dot(rows.observed, weights)
    noise = max(float(start.noise.mean()), floor)
    present, left = start, start.noise
    for _ in range(_MOST_ITERATIONS):
        present = replace(present, noise=np.full_like(left, noise))
        means, products = rows.project(present).expect(
            FullStatistics.zero(1, q), standard, weights[None]
        )
        loading, left = _regressed(rows, present, weights, means, products)
        present = replace(present, loading=loading)
        before, noise = noise, max(float(left @ seen / seen.sum()), floor)
        if abs(np.log(noise / before)) < _TOLERANCE:
            break
    return present.loading, left


def _regressed(
    rows: MixedRows,
    subspace: Subspace,
    weights: FloatArray,
    means: FloatArray,
    products: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Regress every column on expected factors, over the rows that have it.

    One row at the centre is added, so that columns that few rows have get a small loading
    instead of a wild one. Returns the loading (d, q), and the variances that are left.
    """
    q = subspace.n_factors
    error = np.where(rows.observed, rows.real - subspace.centre[:, None], 0.0)
    crossed = np.dot(error, means.T)
    squares = np.dot(np.square(error), weights)
    seen = np.dot(rows.observed, weights)
    loading, left = np.empty_like(crossed), np.empty(len(error))
    flat = products.reshape(len(products), q * q)
    for block in subspace.blocks():
        grams = np.dot(rows.observed[block].astype(float), flat).reshape(-1, q, q)
        solved = np.linalg.solve(grams + np.eye(q), crossed[block, :, None])
        loading[block] = solved[:, :, 0]
        fitted = np.squeeze(grams @ solved, axis=2) - 2.0 * crossed[block]
        left[block] = squares[block] + np.sum(loading[block] * fitted, axis=1)
    return loading, np.maximum(left, 0.0) / np.maximum(seen, np.finfo(float).tiny)
