r"""Rows seen through a subspace: what they say about the latent variables.

Rows ``x = m + V t + noise`` say something about ``t`` by a matrix and a vector of the
size of the subspace, over the columns that they have:

.. math:: G = V_o^\top \Psi_o^{-1} V_o, \qquad h = V_o^\top \Psi_o^{-1} (x_o - m_o).

Rows that have the same columns share ``G``. They are treated together, and the rest by
one small system for each row and component.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.groups import Group, split_by_pattern
from hybridmix.families.moments import (
    FullStatistics,
)
from hybridmix.families.subspace.alike import AlikeRows
from hybridmix.families.subspace.mixed import MixedRows
from hybridmix.families.subspace.parameters import (
    LoadingStatistics,
    Subspace,
    SubspaceParameters,
)

# From this many rows on, a factorisation for a pattern of its own is worth its overhead.
FREQUENT = 8


class Posterior(Protocol):
    """What a mixture believes of the latent variables of some rows."""

    def half_log_determinants(self) -> FloatArray:
        """Half log determinants of what is observed, (J, n) up to broadcasting."""
        ...

    def add_to(self, total: FullStatistics, weights: FloatArray) -> None:
        """Add expected statistics of the latent variables, signed weights (J, n)."""
        ...

    def expect(
        self, total: FullStatistics, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add expected statistics, and return expectations over all components.

        Returns
        -------
        mean : ndarray of shape (q, n)
            Latent variables, summed over components with their weights.
        products : ndarray of shape (n, q, q) or (q, q)
            The same of their products: of every row, or of all rows together.
        """
        ...

    def mean(self, weights: FloatArray) -> FloatArray:
        """Return expected latent variables, summed over components with weights."""
        ...

    def draw(self, generator: np.random.Generator) -> FloatArray:
        """Draw latent variables (q, n), if there is a single component."""
        ...


class Projection(Group, Protocol):
    """Rows of which only what they say about the latent variables is left."""

    @property
    def n_observed(self) -> IntArray:
        """Number of observed columns, (n,)."""
        ...

    def evaluate(self, parameters: SubspaceParameters) -> tuple[FloatArray, Posterior]:
        """Return log densities (J, n), and posteriors of the latent variables."""
        ...


class LatentRows(Protocol):
    """Rows whose holes are treated in the same way."""

    def project(self, subspace: Subspace) -> Projection:
        """Return what the rows say about the latent variables."""
        ...

    def add_moments(
        self,
        total: LoadingStatistics,
        subspace: Subspace,
        weights: FloatArray,
        mean: FloatArray,
    ) -> None:
        """Add moments of the columns, given weights and means of latent variables."""
        ...

    def add_explained(
        self, total: LoadingStatistics, subspace: Subspace, products: FloatArray
    ) -> None:
        """Add what the loading explains, given products of latent variables."""
        ...

    def add_grams(self, total: FloatArray, products: FloatArray) -> None:
        """Add products of latent variables for every column, (d, q, q)."""
        ...


def group_latent_rows(rows: Rows) -> list[LatentRows]:
    """Group rows by what they miss."""
    if rows.observed is None:
        return [AlikeRows(None, None, rows.real)]
    alike, rest, _ = split_by_pattern(rows.observed, FREQUENT)
    groups: list[LatentRows] = [
        AlikeRows(index, columns, rows.real[np.ix_(columns, index)])
        for index, columns in alike
    ]
    if len(rest):
        groups.append(MixedRows(rest, rows.real[:, rest], rows.observed[:, rest]))
    return groups


def project(groups: list[LatentRows], subspace: Subspace) -> list[Projection]:
    """Return what groups of rows say about the latent variables."""
    return [group.project(subspace) for group in groups]


def weights_of(group: Projection, weights: FloatArray) -> FloatArray:
    """Return the weights of the rows of a group, (J, n)."""
    return weights if group.index is None else weights[:, group.index]
