"""Where EM begins: memberships from k-means."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.blocks import TrainingRows
from hybridmix.data.rows import MISSING_CODE, Dataset, Rows
from hybridmix.families.base import Family
from hybridmix.models.mixture import Mixture

# k-means sees at most this many rows: a start need not be better than that.
MOST_ROWS = 10_000
METHODS = ("kmeans", "k-means++")


def start_mixture(
    dataset: TrainingRows,
    family: Family,
    n_components: int,
    init: str | FloatArray,
    generator: np.random.Generator,
) -> Mixture:
    """Return a first mixture of one class, from memberships of a sample of its rows."""
    few = dataset.drawn(0, MOST_ROWS, generator)
    index, memberships = start_memberships(few, family, n_components, init, generator)
    shares = memberships.sum(axis=1)
    return Mixture(
        family,
        family.start(few.rows[index], memberships),
        np.log(shares / shares.sum()),
        np.zeros(1),
        (0, n_components),
    )


def start_memberships(
    dataset: Dataset,
    family: Family,
    n_components: int,
    init: str | FloatArray,
    generator: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """Assign a sample of rows to components.

    Rows are put into an order that depends on their values alone, and random choices are
    made by cumulated weight: a row of weight two acts exactly like two rows.

    Parameters
    ----------
    dataset : Dataset
        Rows of one class.
    family : Family
        Says where distances of rows mean most.
    n_components : int
        Number of components.
    init : {"kmeans", "k-means++"} or ndarray of shape (n_components, d)
        Run k-means from k-means++ centres, stop at these centres, or take centres as
        they are given.
    generator : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    index : ndarray of shape (m,)
        Numbers of the rows.
    memberships : ndarray of shape (n_components, m)
        Sample weights of the rows, in the line of their component.
    """
    index = sampled(dataset.n_rows, generator)
    weights = np.ones(len(index)) if dataset.weights is None else dataset.weights[index]
    if n_components == 1:
        return index, weights[None]
    if not isinstance(init, str):
        return index, _one_hot(_nearest(dataset.rows[index], init), weights, len(init))
    points = as_points(family.embed(dataset.rows[index]), weights)
    order = np.lexsort(points.T[::-1])
    index, weights, points = index[order], weights[order], points[order]
    seed = int(generator.integers(2**31))
    labels = _cluster(points, weights, n_components, init, seed)
    return index, _one_hot(labels, weights, n_components)


def _one_hot(labels: IntArray, weights: FloatArray, n_components: int) -> FloatArray:
    memberships = np.zeros((n_components, len(labels)))
    memberships[labels, np.arange(len(labels))] = weights
    # A component that no row is nearest to begins with a trace of all of them.
    memberships[memberships.sum(axis=1) == 0] = weights / len(weights)
    return memberships


def _nearest(rows: Rows, centres: FloatArray) -> IntArray:
    """Return the nearest centre of each row, over its observed real columns."""
    observed = True if rows.observed is None else rows.observed
    distances = [
        (np.where(observed, rows.real - centre[:, None], 0.0) ** 2).sum(axis=0)
        for centre in centres
    ]
    return np.argmin(distances, axis=0)


def sampled(n_rows: int, generator: np.random.Generator) -> IntArray:
    """Return the numbers of the rows that a start looks at, ascending."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(generator.choice(n_rows, MOST_ROWS, replace=False))


def as_points(rows: Rows, weights: FloatArray) -> FloatArray:
    """Turn rows into points of a Euclidean space, (n, D).

    Categories become one-hot columns divided by the square root of two, so that two
    different categories are at distance one; holes are filled by column means.
    """
    real = rows.real
    if rows.observed is not None:
        counts = np.maximum(rows.observed @ weights, np.finfo(float).tiny)
        means = (real @ weights) / counts
        real = np.where(rows.observed, real, means[:, None])
    blocks = [real.T]
    for codes in rows.codes:
        one_hot = (codes[:, None] == np.arange(codes.max(initial=0) + 1)).astype(float)
        hole = codes == MISSING_CODE
        shares = weights @ one_hot
        one_hot[hole] = shares / max(shares.sum(), np.finfo(float).tiny)
        blocks.append(one_hot / np.sqrt(2.0))
    return np.hstack(blocks)


def _cluster(
    points: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    method: str,
    seed: int,
) -> IntArray:
    # Imported here, since scikit-learn's clusterers take a tenth of a second to load.
    from sklearn.cluster import KMeans, kmeans_plusplus

    n_distinct = 1 + int(np.any(points[1:] != points[:-1], axis=1).sum())
    if n_distinct <= n_clusters:
        # Each distinct point gets its own component; further ones stay empty.
        return np.cumsum(np.r_[False, np.any(points[1:] != points[:-1], axis=1)])
    centres, _ = kmeans_plusplus(
        points, n_clusters, sample_weight=weights, random_state=seed
    )
    iterations = 100 if method == "kmeans" else 1
    kmeans = KMeans(
        n_clusters, init=centres, n_init=1, max_iter=iterations, random_state=seed
    )
    return kmeans.fit_predict(points, sample_weight=weights)
