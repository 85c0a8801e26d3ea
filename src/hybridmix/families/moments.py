"""Parameters and sufficient statistics of Gaussian components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtri

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_rank
from hybridmix._scratch import empty, reused
from hybridmix._typing import FloatArray, IntArray
from hybridmix.families.base import Parameters, Statistics
from hybridmix.families.prior import LOG_2PI

# No mean of scaled rows is farther away, and its square is still a number.
_FARTHEST = 1e100
# So few matrices, up to this size, are inverted at once.
_FEW, _SMALL = 10, 16
# How far covariances may be from symmetric, relatively, and whitened ones from the
# identity, plus this many roundings.
_ASYMMETRY, _WHITE, _ROUNDINGS = 1e-9, 1e-6, 64.0
# Eigenvalues below this share of the largest one are rounding errors.
ROUNDING = 1e-14


@registered
@dataclass(frozen=True, eq=False)
class DiagonalParameters(Parameters):
    """Means and variances, both (J, d)."""

    means: FloatArray
    variances: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless all is finite and the variances are positive."""
        require_rank("means", self.means, 2)
        require_array("means", self.means, self.means.shape)
        require(np.all(np.abs(self.means) <= _FARTHEST), "means are beyond all rows")
        require_array("variances", self.variances, self.means.shape, positive=True)

    def affine(self, scale: FloatArray, shift: FloatArray) -> Self:
        # One after the other: the square of a scale may overflow where variances do not.
        return type(self)(self.means * scale + shift, self.variances * scale * scale)

    @property
    def full_covariances(self) -> FloatArray:
        """Covariances as matrices, (J, d, d)."""
        return self.variances[:, :, None] * np.eye(self.variances.shape[1])

    @cached_property
    def masked_natural(self) -> FloatArray:
        """Coefficients of the features ``(x^2, x, m)``, (J, 3 d)."""
        precisions = 1.0 / self.variances
        scaled = self.means * precisions
        constants = self.means * scaled + np.log(self.variances) + LOG_2PI
        return np.hstack([-0.5 * precisions, scaled, -0.5 * constants])

    @cached_property
    def natural(self) -> FloatArray:
        """Coefficients of the features ``(x^2, x, 1)``, (J, 2 d + 1)."""
        d = self.means.shape[1]
        masked = self.masked_natural
        constants = masked[:, 2 * d :].sum(axis=1, keepdims=True)
        return np.hstack([masked[:, : 2 * d], constants])


@registered
@dataclass
class DiagonalStatistics(Statistics):
    """Weighted counts, sums and sums of squares of the observed values, all (J, d)."""

    counts: FloatArray
    first: FloatArray
    second: FloatArray


@registered
@dataclass(frozen=True, eq=False)
class FullParameters(Parameters):
    r"""Means and covariances, with the factors that densities are computed from.

    Attributes
    ----------
    means : ndarray of shape (J, d)
    covariances : ndarray of shape (G, d, d)
        G is J, or 1 when all components share one.
    whiteners : ndarray of shape (G, d, d)
        Lower triangular :math:`A` with :math:`A \Sigma A^\top = I`.
    """

    means: FloatArray
    covariances: FloatArray
    whiteners: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless the whiteners are those of the covariances."""
        require_rank("means", self.means, 2)
        require_array("means", self.means, self.means.shape)
        require(np.all(np.abs(self.means) <= _FARTHEST), "means are beyond all rows")
        require_rank("covariances", self.covariances, 3)
        n_components, d = self.means.shape
        shape = (len(self.covariances), d, d)
        require(shape[0] in (1, n_components), "covariances and means differ in number")
        require_array("covariances", self.covariances, shape)
        require_array("whiteners", self.whiteners, shape)
        check_whiteners(self.covariances, self.whiteners)

    @classmethod
    def of(cls, means: FloatArray, covariances: FloatArray) -> FullParameters:
        """Factorise covariances."""
        covariances, factors = factorised(covariances)
        return cls(means, covariances, inverse_lower(factors))

    def affine(self, scale: FloatArray, shift: FloatArray) -> Self:
        return type(self)(
            self.means * scale + shift,
            # One factor after the other: zero times infinity would not be zero.
            self.covariances * scale[:, None] * scale,
            self.whiteners / scale,
        )

    @property
    def is_tied(self) -> bool:
        """Whether several components share one covariance."""
        return len(self.covariances) < len(self.means)

    def is_shared(self, name: str) -> bool:
        return name != "means" and self.is_tied

    @property
    def full_covariances(self) -> FloatArray:
        """Covariances of all components, (J, d, d)."""
        shape = (len(self.means), *self.covariances.shape[1:])
        return np.broadcast_to(self.covariances, shape)

    @cached_property
    def highest(self) -> FloatArray:
        """What no log density exceeds, whatever columns are observed, (G, 1)."""
        # Inverse deviations of columns given all before them; given fewer, lower.
        inverse = np.diagonal(self.whiteners, axis1=1, axis2=2)
        by_column = np.log(inverse) - 0.5 * np.log(2.0 * np.pi)
        return np.maximum(by_column, 0.0).sum(axis=1, keepdims=True)

    @cached_property
    def half_log_determinants(self) -> FloatArray:
        r""":math:`\tfrac12 \log|\Sigma|`, (G,)."""
        diagonal = np.diagonal(self.whiteners, axis1=1, axis2=2)
        return -np.log(diagonal).sum(axis=1)

    @cached_property
    def stacked_whiteners(self) -> FloatArray:
        r""":math:`(A_j, -A_j \mu_j)` of all components, (J d, d + 1)."""
        shifts = self.whiteners @ self.means[:, :, None]
        stacked = np.concatenate([self.whiteners, -shifts], axis=2)
        return stacked.reshape(-1, stacked.shape[2])

    @cached_property
    def precisions(self) -> FloatArray:
        r""":math:`\Sigma^{-1} = A^\top A`, (G, d, d)."""
        return self.whiteners.transpose(0, 2, 1) @ self.whiteners

    def marginal(self, columns: IntArray | None) -> FullParameters:
        """Return the parameters of the marginal over some columns; None for all."""
        if columns is None:
            return self
        return FullParameters.of(
            self.means[:, columns], self.covariances[:, columns[:, None], columns]
        )

    def log_density(self, augmented: FloatArray) -> FloatArray:
        """Return log densities (J, n) of complete rows above a row of ones."""
        n_components, d = self.means.shape
        constants = -self.half_log_determinants - 0.5 * d * LOG_2PI
        if not self.is_tied:
            n_rows, dtype = augmented.shape[1], augmented.dtype
            stacked = self.stacked_whiteners.astype(dtype, copy=False)
            result = empty((n_components, n_rows), dtype)
            with reused():
                white = empty((n_components, d, n_rows), dtype)
                np.dot(stacked, augmented, out=white.reshape(-1, n_rows))
                np.einsum("jdn,jdn->jn", white, white, out=result)
            result *= -0.5
            result += constants[:, None]
            return result
        shared = self.whiteners[0].astype(augmented.dtype, copy=False) @ augmented[:-1]
        shifts = self.means @ self.whiteners[0].T
        result = shifts.astype(augmented.dtype, copy=False) @ shared
        result -= 0.5 * np.einsum("dn,dn->n", shared, shared)
        result += (constants - 0.5 * np.square(shifts).sum(axis=1))[:, None]
        return result

    def sharing(self, covariance: int) -> range:
        """Components that have the covariance of this number."""
        if self.is_tied:
            return range(len(self.means))
        return range(covariance, covariance + 1)


@registered
@dataclass
class FullStatistics(Statistics):
    """Weighted counts (J,), sums (J, d) and sums of products (J, d, d)."""

    counts: FloatArray
    first: FloatArray
    second: FloatArray

    @classmethod
    def zero(
        cls, n_components: int, n_columns: int, n_matrices: int | None = None
    ) -> Self:
        """Return empty statistics; the number of matrices is that of the components."""
        n_matrices = n_components if n_matrices is None else n_matrices
        return cls(
            np.zeros(n_components),
            np.zeros((n_components, n_columns)),
            np.zeros((n_matrices, n_columns, n_columns)),
        )


@registered
@dataclass
class TiedStatistics(FullStatistics):
    """The same, with the products summed over the components, (1, d, d)."""

    shared: ClassVar[frozenset[str]] = frozenset({"second"})


def moved_moments(
    counts: FloatArray,
    first: FloatArray,
    second: FloatArray,
    gain: FloatArray,
    offsets: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return moments of :math:`y = G x + b`, from weighted moments of :math:`x`.

    .. math:: \sum r\, y = G s + n b, \qquad \sum r\, y y^\top
              = G S G^\top + \big[ G s b^\top + b s^\top G^\top + n b b^\top \big]

    Parameters
    ----------
    counts, first, second : ndarray of shape (J,), (J, o), (G, o, o)
        Sums :math:`n, s, S`; the products may be summed over components (G = 1).
    gain, offsets : ndarray of shape (G, d, o), (J, d)
        Of the map.

    Returns
    -------
    first : ndarray of shape (J, d)
    moved : ndarray of shape (G, d, d)
        The first term of the second moments.
    rest : ndarray of shape (J, d, d)
        The terms in brackets.
    """
    carried = np.squeeze(gain @ first[:, :, None], axis=2)
    expected = carried + counts[:, None] * offsets
    rest = (
        expected[:, :, None] * offsets[:, None, :]
        + offsets[:, :, None] * carried[:, None, :]
    )
    return expected, gain @ second @ np.swapaxes(gain, 1, 2), rest


def inverse_lower(lower: npt.NDArray[np.floating[Any]]) -> FloatArray:
    """Invert lower triangular matrices, (..., d, d).

    Few small ones are inverted one by one. Of more, the halves are inverted together, and
    theirs again, which leaves nearly all of the work to products of matrices. NumPy's
    inverse is slower, and exchanges rows: it finds matrices singular that are not, if
    numbers below their diagonal are large.
    """
    size = lower.shape[-1]
    result = np.zeros(lower.shape)
    if size == 0:  # of rows without any value; LAPACK complains about them
        return result
    if size <= _SMALL and lower.size <= _FEW * size * size:
        for place in np.ndindex(lower.shape[:-2]):
            # The transpose is in the order that LAPACK reads.
            transposed, info = dtrtri(lower[place].T)
            if info > 0:
                raise np.linalg.LinAlgError(f"Entry {info} of a diagonal is zero.")
            result[place] = transposed.T
        return np.tril(result)
    if size == 1:
        return np.divide(1.0, lower, out=result)
    half = -(-size // 2)
    halves = np.empty((2, *lower.shape[:-2], half, half))
    if size % 2:
        halves[1] = np.eye(half)  # the last row and column stay
    upper_left, lower_right = slice(half), slice(half, size)
    halves[0] = lower[..., upper_left, upper_left]
    halves[1, ..., : size - half, : size - half] = lower[..., lower_right, lower_right]
    first, second = inverse_lower(halves)
    second = second[..., : size - half, : size - half]
    result[..., upper_left, upper_left] = first
    result[..., lower_right, lower_right] = second
    crossed = second @ (lower[..., lower_right, upper_left] @ first)
    np.negative(crossed, out=result[..., lower_right, upper_left])
    return result


def check_whiteners(covariances: FloatArray, whiteners: FloatArray) -> None:
    r"""Raise ValueError unless :math:`A \Sigma A^\top = I` with lower triangular ``A``.

    What rounding adds grows with the condition of a covariance: an entry of the product
    is a sum of terms of up to the size of those below.
    """
    diagonals = np.diagonal(whiteners, axis1=1, axis2=2)
    require((diagonals > 0.0).all(), "a whitener has a diagonal that is not positive")
    require(not np.triu(whiteners, 1).any(), "a whitener is not lower triangular")
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    require((variances > 0.0).all(), "a covariance has variances that are not positive")
    deviations = np.sqrt(variances)
    asymmetry = np.abs(covariances - np.swapaxes(covariances, 1, 2))
    scale = deviations[:, :, None] * deviations[:, None, :]
    require((asymmetry <= _ASYMMETRY * scale).all(), "a covariance is not symmetric")
    with np.errstate(over="ignore", invalid="ignore"):
        white = whiteners @ covariances @ np.swapaxes(whiteners, 1, 2)
        sizes = np.squeeze(np.abs(whiteners) @ deviations[:, :, None], axis=2)
        room = _WHITE + _ROUNDINGS * len(white[0]) * np.finfo(float).eps * (
            sizes[:, :, None] * sizes[:, None, :]
        )
        close = np.abs(white - np.eye(len(white[0]))) <= room
    require(
        np.isfinite(room).all() and close.all(),
        "whiteners and covariances do not belong together",
    )


def raised(covariances: FloatArray, floor: float) -> FloatArray:
    """Raise eigenvalues to a floor, where any is below it.

    Among the covariances whose eigenvalues are at least the floor this is the one of
    highest likelihood, as far as double precision can tell eigenvalues apart.
    """
    identity = np.eye(covariances.shape[1])
    try:
        np.linalg.cholesky(covariances - floor * identity)
        return covariances
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        raised = np.maximum(values, floor)
        rebuilt = (vectors * raised[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        low = values[:, 0] < floor
        result = np.where(low[:, None, None], rebuilt, covariances)
        # Rounding of the largest eigenvalue would drown the floor.
        wide = values[:, -1] * ROUNDING > floor
        result[wide] = conditioned(covariances[wide], floor)
        return result


def conditioned(covariances: FloatArray, floor: float = 0.0) -> FloatArray:
    """Return covariances that can be factorised, near some that are too ill-conditioned.

    Columns may differ in scale by any factor: a Cholesky factorisation depends on their
    correlations alone.
    """
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    deviations = np.sqrt(np.maximum(diagonals, max(floor, np.finfo(float).tiny)))
    scale = deviations[:, :, None] * deviations[:, None, :]
    values, vectors = np.linalg.eigh(covariances / scale)
    values = np.maximum(values, ROUNDING * len(deviations.T))
    correlations = (vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    result = scale * correlations
    return 0.5 * (result + np.swapaxes(result, 1, 2)) + floor * np.eye(scale.shape[1])


def factorised(
    covariances: FloatArray,
) -> tuple[FloatArray, npt.NDArray[np.floating[Any]]]:
    """Return covariances (G, d, d), moved a little if need be, and Cholesky factors."""
    try:
        return covariances, np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        covariances = conditioned(covariances)
        return covariances, np.linalg.cholesky(covariances)
