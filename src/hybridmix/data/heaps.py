"""Whether the values of a column form two heaps, as clusters of rows do."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import FloatArray

_N_ITERATIONS = 20
# Where EM begins to tell the heaps apart, in standard deviations from the mean.
_STARTS = (-2.0, 0.0, 2.0)
# The smaller heap has this share, and between the tops the density falls to this share of
# the lower one.
_LEAST_SHARE, _VALLEY = 0.03, 0.5
# Heaps are at least this wide, compared with all values.
_NARROWEST = 0.02
_N_POINTS = 50


def has_two_heaps(values: FloatArray, resolution: float) -> bool:
    """Return whether a mixture of two Gaussians has a valley between its means.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Equally probable values.
    resolution : float
        How far apart neighbouring values are; no heap is narrower.
    """
    deviation = float(values.std())
    if deviation == 0.0:
        return False
    values = (values - values.mean()) / deviation
    floor = max(_NARROWEST, resolution / deviation) ** 2
    return any(_has_valley(*_two_gaussians(values, floor, start)) for start in _STARTS)


def _two_gaussians(
    values: FloatArray, floor: float, start: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit shares, means and deviations (2,) by EM, from the values on either side."""
    upper = (values > start).astype(float)
    posterior = np.stack([1.0 - upper, upper])
    shares = means = variances = np.ones(2)
    for _ in range(_N_ITERATIONS):
        counts = np.maximum(posterior.sum(axis=1), 1e-12)
        shares = counts / len(values)
        means = posterior @ values / counts
        squares = np.square(values - means[:, None])
        variances = (posterior * squares).sum(axis=1) / counts + floor
        logs = np.log(shares / np.sqrt(variances))[:, None]
        logs = logs - 0.5 * squares / variances[:, None]
        posterior = np.exp(logs - np.logaddexp(*logs))
    return shares, means, np.sqrt(variances)


def _has_valley(shares: FloatArray, means: FloatArray, deviations: FloatArray) -> bool:
    if shares.min() < _LEAST_SHARE:
        return False
    points = np.linspace(means[0], means[1], _N_POINTS)
    steps = (points - means[:, None]) / deviations[:, None]
    density = (shares / deviations) @ np.exp(-0.5 * np.square(steps))
    return bool(density.min() < _VALLEY * min(density[0], density[-1]))
