"""Parameters and statistics of Gaussian components in a common subspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_instance, require_rank
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.families.base import Parameters, Statistics
from hybridmix.families.moments import (
    FullParameters,
    FullStatistics,
    factorised,
    inverse_lower,
)
from hybridmix.families.prior import LOG_2PI

# Products of loadings are formed for this many numbers at a time.
_BLOCK = 1 << 20


@registered
@dataclass(frozen=True, eq=False)
class Subspace:
    r"""Where rows lie, up to noise: :math:`x = m + V t + \varepsilon`.

    Attributes
    ----------
    centre : ndarray of shape (d,)
        :math:`m`.
    loading : ndarray of shape (d, q)
        :math:`V`.
    noise : ndarray of shape (d,)
        Variances :math:`\Psi` of the noise.
    """

    centre: FloatArray
    loading: FloatArray
    noise: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless all is finite and the noise is positive."""
        require_rank("loading", self.loading, 2)
        require_array("loading", self.loading, self.loading.shape)
        require_array("centre", self.centre, self.loading.shape[:1])
        require_array("noise", self.noise, self.loading.shape[:1], positive=True)

    @cached_property
    def scaled(self) -> FloatArray:
        r""":math:`\Psi^{-1} V`, (d, q)."""
        return self.loading / self.noise[:, None]

    @cached_property
    def log_volumes(self) -> FloatArray:
        r""":math:`\log 2\pi\psi_i` of the columns, (d,)."""
        return np.log(self.noise) + LOG_2PI

    @cached_property
    def gram(self) -> FloatArray:
        r""":math:`V^\top \Psi^{-1} V`, (q, q)."""
        return self.loading.T @ self.scaled

    @property
    def n_factors(self) -> int:
        """Dimension of the latent variables."""
        return self.loading.shape[1]

    def affine(self, scale: FloatArray, shift: FloatArray) -> Subspace:
        """Return the subspace of ``scale * x + shift``."""
        return Subspace(
            self.centre * scale + shift,
            self.loading * scale[:, None],
            self.noise * scale * scale,
        )

    def marginal(self, columns: IntArray | list[int] | None) -> Subspace:
        """Return the subspace of some of the columns; None for all."""
        if columns is None:
            return self
        return Subspace(self.centre[columns], self.loading[columns], self.noise[columns])

    def grams(self, observed: BoolArray) -> FloatArray:
        """Return ``G`` of rows with this mask (d, n), as (n, q, q)."""
        q = self.n_factors
        lower = np.tril_indices(q)
        packed = np.zeros((observed.shape[1], len(lower[0])))
        for block in self.blocks():
            products = self.scaled[block][:, lower[0]]
            products *= self.loading[block][:, lower[1]]
            # Unlike `@`, np.dot lets other threads run even when the result is small.
            packed += np.dot(observed[block].T.astype(float), products)
        grams = np.empty((len(packed), q, q))
        grams[:, lower[0], lower[1]] = packed
        grams[:, lower[1], lower[0]] = packed
        return grams

    def explained(self, observed: BoolArray, second: FloatArray) -> FloatArray:
        r"""Return :math:`\sum_n B_n V_i` over rows that have the column, (d, q).

        Parameters
        ----------
        observed : ndarray of shape (d, n)
            Mask of the rows.
        second : ndarray of shape (n, q, q)
            Symmetric matrices :math:`B_n` of the rows.
        """
        n_rows, q, _ = second.shape
        result = np.empty_like(self.loading)
        for block in self.blocks():
            sums = np.dot(observed[block].astype(float), second.reshape(n_rows, q * q))
            loading = self.loading[block, :, None]
            result[block] = np.squeeze(sums.reshape(-1, q, q) @ loading, axis=2)
        return result

    def blocks(self) -> Iterator[slice]:
        """Cut the columns into blocks that products of loadings fit into memory for."""
        d, q = self.loading.shape
        size = max(1, _BLOCK // max(1, q * q))
        return (slice(first, first + size) for first in range(0, d, size))


@dataclass(frozen=True, eq=False)
class LatentRegression:
    r"""How latent variables follow from scores ``h``, where rows share the matrix ``G``.

    The posterior of component ``j`` has the precision :math:`M = S_j^{-1} + G` and the
    mean :math:`a_j + M^{-1} (h - G a_j)`.

    Attributes
    ----------
    latent : FullParameters
        Gaussians of the latent variables.
    gram : ndarray of shape (q, q)
        :math:`G`.
    """

    latent: FullParameters
    gram: FloatArray

    @cached_property
    def whiteners(self) -> FloatArray:
        r"""Lower triangular :math:`B` with :math:`B M B^\top = I`, (J, q, q)."""
        return inverse_lower(factorised(self.latent.precisions + self.gram)[1])

    @cached_property
    def covariances(self) -> FloatArray:
        r"""Posterior covariances :math:`M^{-1}`, (J, q, q)."""
        return np.swapaxes(self.whiteners, 1, 2) @ self.whiteners

    @cached_property
    def pulls(self) -> FloatArray:
        r""":math:`G a_j`, (J, q)."""
        return self.latent.means @ self.gram

    @cached_property
    def offsets(self) -> FloatArray:
        """Posterior means where ``h`` is zero, (J, q)."""
        pulled = np.squeeze(self.covariances @ self.pulls[:, :, None], axis=2)
        return self.latent.means - pulled

    @cached_property
    def half_log_determinants(self) -> FloatArray:
        r""":math:`\tfrac12 \log|I + S_j G|`, (J,)."""
        diagonals = np.diagonal(self.whiteners, axis1=1, axis2=2)
        return self.latent.half_log_determinants - np.log(diagonals).sum(axis=1)

    @cached_property
    def quadratic(self) -> FloatArray:
        r""":math:`(B_j, -B_j G a_j)` of all components, (J q, q + 1).

        Half the square of its product with the scores above ones is a part of the log
        density; the other is linear.
        """
        shifts = self.whiteners @ self.pulls[:, :, None]
        stacked = np.concatenate([self.whiteners, -shifts], axis=2)
        return stacked.reshape(-1, stacked.shape[2])

    @cached_property
    def linear(self) -> FloatArray:
        r"""Coefficients of the scores above ones, (J, q + 1).

        These are :math:`a_j` and
        :math:`-\tfrac12 a_j^\top G a_j - \tfrac12 \log|I + S_j G|`.
        """
        means = self.latent.means
        constants = 0.5 * np.sum(self.pulls * means, axis=1) + self.half_log_determinants
        return np.hstack([means, -constants[:, None]])


@registered
@dataclass(frozen=True, eq=False)
class SubspaceParameters(Parameters):
    """Gaussians of the latent variables, and the subspace that all components share."""

    latent: FullParameters
    subspace: Subspace

    @property
    def n_components(self) -> int:
        return self.latent.n_components

    def check_consistent(self) -> None:
        """Raise ValueError unless the Gaussians have the dimensions of the subspace."""
        require_instance("latent", self.latent, FullParameters)
        require_instance("subspace", self.subspace, Subspace)
        same = self.latent.means.shape[1] == self.subspace.n_factors
        require(same, "the latent variables are not those of the subspace")

    def take(self, components: slice | IntArray) -> Self:
        return replace(self, latent=self.latent.take(components))

    def affine(self, scale: FloatArray, shift: FloatArray) -> Self:
        return replace(self, subspace=self.subspace.affine(scale, shift))

    @property
    def means(self) -> FloatArray:
        """Means of the columns, (J, d)."""
        return self.subspace.centre + self.latent.means @ self.subspace.loading.T

    @property
    def full_covariances(self) -> FloatArray:
        """Covariances of the columns, (J, d, d)."""
        loading = self.subspace.loading
        explained = loading @ self.latent.full_covariances @ loading.T
        return explained + np.diag(self.subspace.noise)

    @cached_property
    def regression(self) -> LatentRegression:
        """Regression of the latent variables of complete rows."""
        return LatentRegression(self.latent, self.subspace.gram)

    @classmethod
    def standard(cls, subspace: Subspace) -> Self:
        """Return a single Gaussian, whose latent variables are standard normal."""
        q = subspace.n_factors
        return cls(FullParameters.of(np.zeros((1, q)), np.eye(q)[None]), subspace)


@dataclass
class LoadingStatistics(Statistics):
    r"""What a gradient by the loading and the noise needs to know, column by column.

    All are sums over the rows that have the column and over all components, with the
    signed weights :math:`r`.

    Attributes
    ----------
    weights : ndarray of shape (d,)
        :math:`\sum r`.
    squares : ndarray of shape (d,)
        :math:`\sum r (x_i - m_i)^2`.
    crossed : ndarray of shape (d, q)
        :math:`\sum r (x_i - m_i)\, E[t]`.
    explained : ndarray of shape (d, q)
        :math:`\sum r\, E[t t^\top] V_i` at the present loading.
    """

    weights: FloatArray
    squares: FloatArray
    crossed: FloatArray
    explained: FloatArray

    shared: ClassVar[frozenset[str]] = frozenset(
        {"weights", "squares", "crossed", "explained"}
    )

    @classmethod
    def zero(cls, n_columns: int, n_factors: int) -> LoadingStatistics:
        """Return empty statistics."""
        return cls(
            np.zeros(n_columns),
            np.zeros(n_columns),
            np.zeros((n_columns, n_factors)),
            np.zeros((n_columns, n_factors)),
        )


@dataclass
class SubspaceStatistics(Statistics):
    """Statistics of the latent variables and of the loading."""

    latent: FullStatistics
    loading: LoadingStatistics

    def add(self, other: Self, components: slice = slice(None)) -> None:
        self.latent.add(other.latent, components)
        self.loading.add(other.loading)
