"""How far to trust the evidence: two numbers that are fitted to held-out rows."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from hybridmix._logsumexp import class_posterior
from hybridmix._typing import FloatArray, IntArray
from hybridmix.models.calibration import Calibration

# A temperature of e^7 makes all classes of any table about as probable.
_LOG_TEMPERATURES = (-3.0, 7.0)
_SHARES = (1e-9, 0.5)


def fitted_calibration(
    log_joint: FloatArray, labels: IntArray, weights: FloatArray
) -> Calibration:
    """Return the calibration of highest posterior density.

    The prior counts like a row or so: it keeps the logarithm of the temperature near 0
    and the share near 0 where held-out rows are few.

    Parameters
    ----------
    log_joint : ndarray of shape (C, n)
        Of rows that the model was not trained on.
    labels : ndarray of shape (n,)
        Their class numbers.
    weights : ndarray of shape (n,)
        Their sample weights.
    """
    rows = np.arange(len(labels))

    def best_share(log_temperature: float) -> tuple[float, float]:
        """Return the share for a temperature, and the loss of both with the prior."""
        tempered = log_joint * np.exp(-log_temperature)
        evidence, _ = class_posterior(tempered)
        own = np.exp(tempered[labels, rows] - evidence)

        def log_loss(share: float) -> float:
            mixed = (1.0 - share) * own + share / len(log_joint)
            return -float(weights @ np.log(mixed)) - np.log1p(-share)

        found = minimize_scalar(log_loss, bounds=_SHARES, method="bounded")
        return float(found.x), float(found.fun) + 0.5 * log_temperature**2

    # The loss may have several minima: a grid shows which to go to.
    grid = np.linspace(*_LOG_TEMPERATURES, 21)
    nearest = int(np.argmin([best_share(point)[1] for point in grid]))
    best = minimize_scalar(
        lambda log_temperature: best_share(log_temperature)[1],
        bounds=(grid[max(nearest - 1, 0)], grid[min(nearest + 1, len(grid) - 1)]),
        method="bounded",
    )
    return Calibration(float(np.exp(best.x)), best_share(best.x)[0])
