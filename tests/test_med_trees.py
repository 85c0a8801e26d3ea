"""Sums over all trees, and distributions over the trees of categorical columns."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from hybridmix.data import Rows
from hybridmix.families.conjugates import Dirichlet, DirichletTrees
from hybridmix.families.conjugates.trees import sum_over_trees
from hybridmix.med.models.families import ClassFamilies, empirical_prior


def spanning_trees(d):
    """All trees over d nodes, as lists of edges, by their Prüfer sequences."""
    if d == 1:
        return [[]]
    if d == 2:
        return [[(0, 1)]]
    return [_decoded(sequence, d) for sequence in product(range(d), repeat=d - 2)]


def _decoded(sequence, d):
    degrees = [1 + sequence.count(node) for node in range(d)]
    edges = []
    for node in sequence:
        leaf = degrees.index(1)
        edges.append((leaf, node))
        degrees[leaf] -= 1
        degrees[node] -= 1
    edges.append(tuple(node for node in range(d) if degrees[node] == 1))
    return edges


def random_graphs(d, scale, n_graphs=3, seed=0):
    logs = scale * np.random.default_rng(seed).normal(size=(n_graphs, d, d))
    return logs + logs.transpose(0, 2, 1)


def categories(d, n_rows, n_categories=3, seed=0):
    codes = np.random.default_rng(seed).integers(0, n_categories, (d, n_rows))
    if d > 1:
        codes[1] = np.where(np.arange(n_rows) % 4, codes[0], codes[1])
    return Rows(np.empty((0, n_rows)), None, codes.astype(np.int32))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("scale", [0.5, 30.0, 500.0])
def test_sums_against_enumeration(d, scale):
    logs = random_graphs(d, scale)
    trees = spanning_trees(d)
    assert len(trees) == (d ** (d - 2) if d > 1 else 1)
    each = np.stack([sum((logs[:, i, j] for i, j in t), np.zeros(3)) for t in trees])
    values = np.logaddexp.reduce(each, axis=0)
    found, edges = sum_over_trees(logs)
    np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12)
    shares = np.exp(each - values)
    expected = np.zeros_like(logs)
    for share, tree in zip(shares, trees, strict=True):
        for i, j in tree:
            expected[:, i, j] += share
            expected[:, j, i] += share
    np.testing.assert_allclose(edges, expected, atol=1e-11)


@pytest.mark.parametrize("scale", [1.0, 10.0, 3000.0])
def test_sums_of_many_nodes(scale):
    d = 40
    logs = random_graphs(d, scale)
    found, edges = sum_over_trees(logs)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(edges.sum(axis=(1, 2)) / 2.0, d - 1.0, rtol=1e-10)
    assert edges.min() >= 0.0
    assert edges.max() <= 1.0
    # A factor of the edges of one node changes a term by it once for each of its edges.
    order = np.random.default_rng(0).permutation(d)
    again, moved = sum_over_trees(logs[:, order][:, :, order])
    np.testing.assert_allclose(again, found, rtol=1e-11)
    np.testing.assert_allclose(moved, edges[:, order][:, :, order], atol=1e-9)


def test_sums_against_the_determinant():
    logs = random_graphs(12, 1.0)
    weights = np.exp(logs)
    weights[:, np.arange(12), np.arange(12)] = 0.0
    laplacian = np.eye(12) * weights.sum(axis=2)[:, None] - weights
    _, values = np.linalg.slogdet(laplacian[:, 1:, 1:])
    np.testing.assert_allclose(sum_over_trees(logs)[0], values, rtol=1e-12)


def log_beta(table):
    return gammaln(table).sum() - gammaln(table.sum())


def enumerated(rows, weights, n_categories, prior):
    """Log-partition of one class as a sum over trees of products of Dirichlets."""
    d = len(rows.codes)
    codes = rows.codes

    def table(*columns):
        shape = [n_categories] * len(columns)
        counts = np.full(shape, 1.0 / np.prod(shape))
        np.add.at(counts, tuple(codes[u] for u in columns), prior + weights)
        return log_beta(counts)

    singles = [table(u) for u in range(d)]
    logs = []
    for tree in spanning_trees(d):
        edges = sum(table(u, v) - singles[u] - singles[v] for u, v in tree)
        logs.append(sum(singles) + edges)
    return np.logaddexp.reduce(logs)


@pytest.mark.parametrize("d", [1, 2, 4, 5])
def test_log_partition_against_enumeration(d):
    generator = np.random.default_rng(1)
    rows, weights = categories(d, 40), 0.02 * generator.normal(size=(2, 40))
    members = np.eye(2)[:, np.arange(40) % 2]
    conjugate = DirichletTrees((3,) * d, smoothing=1.0)
    prior = empirical_prior(conjugate, rows, members)
    found = ClassFamilies(conjugate, rows, prior).tilted(weights)
    known = members + 1.0 / 40
    value = sum(
        enumerated(rows, own, 3, start) - enumerated(rows, 0.0 * own, 3, start)
        for own, start in zip(weights, known, strict=True)
    )
    assert found.log_partition == pytest.approx(value, abs=1e-10)


def test_a_single_column_is_a_dirichlet():
    rows, weights = categories(1, 40), np.full((2, 40), 0.1)
    members = np.eye(2)[:, np.arange(40) % 2]
    one, other = (
        ClassFamilies(kind, rows, empirical_prior(kind, rows, members)).tilted(weights)
        for kind in (DirichletTrees((3,), 1.0), Dirichlet((3,), 1.0))
    )
    assert one.log_partition == pytest.approx(other.log_partition, rel=1e-12)
    np.testing.assert_allclose(one.outputs, other.outputs, rtol=1e-12)


def test_a_tree_in_the_data_is_found():
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 3, (6, 600))
    for child, parent in [(1, 0), (2, 0), (3, 1), (4, 3), (5, 2)]:
        copied = generator.random(600) < 0.6
        codes[child] = np.where(copied, codes[parent], codes[child])
    rows = Rows(np.empty((0, 600)), None, codes.astype(np.int32))
    conjugate = DirichletTrees((3,) * 6)
    prior = empirical_prior(conjugate, rows, np.ones((1, 600)))
    edges = conjugate.edge_probabilities(prior)[0]
    truth = np.zeros((6, 6))
    for child, parent in [(1, 0), (2, 0), (3, 1), (4, 3), (5, 2)]:
        truth[child, parent] = truth[parent, child] = 1.0
    np.testing.assert_allclose(edges, truth, atol=0.01)


def test_tables_that_are_not_symmetric_are_refused():
    rows = categories(3, 30)
    conjugate = DirichletTrees((3, 3, 3))
    prior = empirical_prior(conjugate, rows, np.ones((1, 30)))
    conjugate.check_hyperparameters(prior)
    prior[0, 3] += 0.5
    with pytest.raises(ValueError, match="not symmetric"):
        conjugate.check_hyperparameters(prior)
