"""Whether the values of a column form two heaps, as components or classes do."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import BoolArray, FloatArray

_N_ITERATIONS = 20
# Where EM begins to tell the heaps apart, in standard deviations from the mean.
_STARTS = (-2.0, 0.0, 2.0)
# The smaller heap has this share, and between the tops the density falls to this share of
# the lower one.
_LEAST_SHARE, _VALLEY = 0.03, 0.5
# Heaps are at least this wide, compared with all values.
_NARROWEST = 0.02
_N_POINTS = 50


def have_two_heaps(values: FloatArray, resolution: float) -> BoolArray:
    """Return whether mixtures of two Gaussians have a valley between their means, (G,).

    Parameters
    ----------
    values : ndarray of shape (G, m)
        Equally probable values of each group.
    resolution : float
        How far apart neighbouring values are; no heap is narrower.
    """
    deviations = values.std(axis=1, keepdims=True)
    varies = deviations[:, 0] > 0.0
    deviations = np.where(deviations > 0.0, deviations, 1.0)
    values = (values - values.mean(axis=1, keepdims=True)) / deviations
    floor = np.maximum(_NARROWEST, resolution / deviations) ** 2
    found = [_has_valley(*_two_gaussians(values, floor, start)) for start in _STARTS]
    return np.any(found, axis=0) & varies


def _two_gaussians(
    values: FloatArray, floor: FloatArray, start: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit shares, means and deviations (G, 2) by EM, from the values on either side."""
    upper = (values > start).astype(float)
    posterior = np.stack([1.0 - upper, upper], axis=1)
    n_values = values.shape[1]
    shares = means = variances = np.ones((len(values), 2))
    for _ in range(_N_ITERATIONS):
        counts = np.maximum(posterior.sum(axis=2), 1e-12)
        shares = counts / n_values
        means = (posterior @ values[:, :, None])[:, :, 0] / counts
        squares = np.square(values[:, None] - means[:, :, None])
        variances = (posterior * squares).sum(axis=2) / counts + floor
        logs = np.log(shares / np.sqrt(variances))[:, :, None]
        logs = logs - 0.5 * squares / variances[:, :, None]
        logs -= logs.max(axis=1, keepdims=True)
        posterior = np.exp(logs)
        posterior /= posterior.sum(axis=1, keepdims=True)
    return shares, means, np.sqrt(variances)


def _has_valley(
    shares: FloatArray, means: FloatArray, deviations: FloatArray
) -> BoolArray:
    """Return whether densities of mixtures (G, 2) fall between the means, (G,)."""
    points = np.linspace(means[:, 0], means[:, 1], _N_POINTS, axis=1)
    steps = (points[:, None] - means[:, :, None]) / deviations[:, :, None]
    heights = (shares / deviations)[:, :, None] * np.exp(-0.5 * np.square(steps))
    density = heights.sum(axis=1)
    lower = np.minimum(density[:, 0], density[:, -1])
    return (density.min(axis=1) < _VALLEY * lower) & (shares.min(axis=1) > _LEAST_SHARE)
