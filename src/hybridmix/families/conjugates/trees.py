r"""Distributions over all trees that may connect categorical columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, psi

from hybridmix._registered import registered
from hybridmix._require import require, require_instance, require_positive, require_whole
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.families.conjugates.base import Conjugate, refuse_holes
from hybridmix.families.conjugates.quadratic import quadratic_forms, second_moments

# Logarithm of the weight of a loop, which is never taken.
_NO_EDGE = -1e300
# How far tables may be from symmetric, relatively.
_ASYMMETRY = 1e-9


@registered
@dataclass(frozen=True)
class DirichletTrees(Conjugate):
    r"""Prior of the tree that connects categorical columns, and of its tables.

    Given a tree of edges :math:`E`, whose tables have Dirichlet priors that agree on
    each column,

    .. math:: \log p(x) = \sum_u \log \theta_u(x_u) + \sum_{uv \in E}
              \log \frac{\theta_{uv}(x_u, x_v)}{\theta_u(x_u)\, \theta_v(x_v)}.

    All trees are equally probable a priori. Their sum is a determinant (the matrix-tree
    theorem),

    .. math:: K = \sum_u B(\alpha_u) + \log \sum_E \prod_{uv \in E} w_{uv}, \qquad
              \log w_{uv} = B(\alpha_{uv}) - B(\alpha_u) - B(\alpha_v),

    with :math:`B(\alpha) = \sum_k \log \Gamma(\alpha_k) - \log \Gamma(\sum_k \alpha_k)`.
    The hyperparameters are the tables :math:`\alpha_{uv}` of all pairs of columns, as a
    symmetric matrix (M, M) over the categories of all columns, with :math:`\alpha_u` on
    its diagonal. Categories have to be complete; real columns are for another prior, next
    to this one.

    Parameters
    ----------
    n_categories : tuple of int
        Number of categories of each column.
    smoothing : float
        Number of rows, spread evenly over all cells, that `prior` adds: a category, or a
        pair of them, may not have been seen.
    """

    n_categories: tuple[int, ...]
    # Tables of pairs have many cells that few rows reach.
    smoothing: float = 10.0

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_instance("n_categories", self.n_categories, tuple)
        require_whole("numbers of categories", self.n_categories, 1)
        require_positive("smoothing", self.smoothing)

    def check_hyperparameters(self, hyper: FloatArray) -> None:
        super().check_hyperparameters(hyper)
        tables = self._tables(hyper)
        gap = np.abs(tables - tables.transpose(0, 2, 1)).max()
        require(gap <= _ASYMMETRY * tables.max(), "tables are not symmetric")

    @property
    def blocks(self) -> IntArray:
        return np.zeros(sum(self.n_categories) ** 2, dtype=int)

    @property
    def starts(self) -> IntArray:
        """Where the categories of each column begin."""
        return np.concatenate([[0], np.cumsum(self.n_categories)])[:-1].astype(int)

    def prepare(self, rows: Rows) -> FloatArray:
        """Return whether rows have each category (M, n) of all columns."""
        refuse_holes(self, (rows.codes == MISSING_CODE).any())
        column = np.repeat(np.arange(len(self.n_categories)), self.n_categories)
        category = np.arange(len(column)) - self.starts[column]
        return (rows.codes[column] == category[:, None]).astype(float)

    def statistics(self, prepared: FloatArray, weights: FloatArray) -> FloatArray:
        return second_moments(prepared, weights).reshape(len(weights), -1)

    def prior(self, statistics: FloatArray) -> FloatArray:
        sizes = np.repeat(self.n_categories, self.n_categories)
        even = self.smoothing / np.where(self._within, sizes, np.outer(sizes, sizes))
        return statistics + np.where(self._cells, even, 0.0).ravel()

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        tables, totals = self._filled(hyper)
        if not ((tables > 0.0).all() and (totals > 0.0).all()):
            return np.full((len(hyper), 1), np.inf), np.full_like(hyper, np.nan)
        singles, log_weights = self._weighed(tables, totals)
        log_trees, edges = sum_over_trees(log_weights)
        # An edge replaces the probabilities of its two columns by that of the pair, which
        # the matrix holds twice.
        counted = 0.5 * edges
        column = np.arange(len(self.n_categories))
        counted[:, column, column] = 1.0 - edges.sum(axis=2)
        logs = psi(tables) - self._spread(psi(totals))
        expected = np.where(self._cells, self._spread(counted) * logs, 0.0)
        values = singles.sum(axis=1) + log_trees
        return values[:, None], expected.reshape(len(hyper), -1)

    def log_densities(self, prepared: FloatArray, expected: FloatArray) -> FloatArray:
        return quadratic_forms(prepared, self._tables(expected))

    def edge_probabilities(self, hyper: FloatArray) -> FloatArray:
        """Return how probable each edge is, (J, d, d), given hyperparameters (J, q)."""
        return sum_over_trees(self._weighed(*self._filled(hyper))[1])[1]

    def _filled(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return tables (J, M, M), with ones where no cell is, and totals (J, d, d)."""
        tables = self._tables(hyper)
        totals = self._summed(np.where(self._cells, tables, 0.0))
        return np.where(self._cells, tables, 1.0), totals

    def _weighed(
        self, tables: FloatArray, totals: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the B of single columns (J, d), and log weights of edges (J, d, d)."""
        norms = self._summed(gammaln(tables)) - gammaln(totals)
        singles = np.diagonal(norms, axis1=1, axis2=2)
        return singles, norms - singles[:, :, None] - singles[:, None, :]

    @property
    def _within(self) -> BoolArray:
        """Pairs (M, M) of categories of the same column."""
        column = np.repeat(np.arange(len(self.n_categories)), self.n_categories)
        return column[:, None] == column

    @property
    def _cells(self) -> BoolArray:
        """Pairs (M, M) of categories that a row may have."""
        return ~self._within | np.eye(sum(self.n_categories), dtype=bool)

    def _tables(self, hyper: FloatArray) -> FloatArray:
        size = sum(self.n_categories)
        return hyper.reshape(len(hyper), size, size)

    def _summed(self, tables: FloatArray) -> FloatArray:
        """Sum over the cells of each pair of columns, (J, d, d)."""
        rows = np.add.reduceat(tables, self.starts, axis=1)
        return np.add.reduceat(rows, self.starts, axis=2)

    def _spread(self, per_pair: FloatArray) -> FloatArray:
        """Repeat a value of each pair of columns for its cells, (J, M, M)."""
        rows = np.repeat(per_pair, self.n_categories, axis=1)
        return np.repeat(rows, self.n_categories, axis=2)


def sum_over_trees(log_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Sum the products of edge weights over all trees that span a graph.

    Nodes are eliminated one by one: the edges :math:`w_{ik}` of node :math:`k` turn into
    edges :math:`w_{ik} w_{jk} / s_k` between its neighbours, and its total weight
    :math:`s_k` is a factor of the sum. This is Gaussian elimination of the Laplacian
    without a difference, so that logarithms will do: weights may be of any magnitude.

    Parameters
    ----------
    log_weights : ndarray of shape (J, d, d)
        Logarithms of the weights of J graphs, symmetric; diagonals are ignored.

    Returns
    -------
    log_sums : ndarray of shape (J,)
        Logarithms of the sums.
    edges : ndarray of shape (J, d, d)
        Their derivatives: the share of the trees that have each edge.
    """
    n_graphs, d, _ = log_weights.shape
    log_sums = np.zeros(n_graphs)
    inner = _without_loops(log_weights)
    steps = []
    for k in range(d - 1, 0, -1):
        star, inner = inner[:, k, :k], inner[:, :k, :k]
        total = np.logaddexp.reduce(star, axis=1)
        log_sums += total
        around = star - total[:, None]
        detours = _without_loops(around[:, :, None] + star[:, None, :])
        merged = np.logaddexp(inner, detours)
        steps.append((around, inner - merged, detours - merged))
        inner = merged
    edges = np.zeros((n_graphs, 1, 1))
    for around, kept, detoured in reversed(steps):
        edges = _edges_before(edges, np.exp(around), np.exp(kept), np.exp(detoured))
    return log_sums, edges


def _edges_before(
    edges: FloatArray, around: FloatArray, kept: FloatArray, detoured: FloatArray
) -> FloatArray:
    """Return the shares of edges before a node was eliminated.

    Parameters
    ----------
    edges : ndarray of shape (J, k, k)
        Shares after the elimination.
    around : ndarray of shape (J, k)
        Shares that the edges of the node had of its total weight.
    kept, detoured : ndarray of shape (J, k, k)
        Parts of the merged edges that are edges of before, and detours by the node.
    """
    n_graphs, k = around.shape
    detours = edges * detoured
    twice = detours.sum(axis=(1, 2))[:, None]
    own = around * (1.0 - 0.5 * twice) + detours.sum(axis=2)
    before = np.zeros((n_graphs, k + 1, k + 1))
    before[:, :k, :k] = edges * kept
    before[:, k, :k] = before[:, :k, k] = np.clip(own, 0.0, 1.0)
    return before


def _without_loops(log_weights: FloatArray) -> FloatArray:
    """Return logarithms whose diagonals are negligible, but differ by numbers."""
    node = np.arange(log_weights.shape[-1])
    log_weights = log_weights.copy()
    log_weights[:, node, node] = _NO_EDGE
    return log_weights
