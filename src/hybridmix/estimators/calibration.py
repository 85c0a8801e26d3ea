"""How far to trust the evidence: one number that is fitted to held-out rows."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from hybridmix._typing import FloatArray, IntArray
from hybridmix.mixture import class_posterior

# A temperature of e^7 makes all classes of any table about as probable.
_LOG_RANGE = (-3.0, 7.0)


def fitted_temperature(
    log_joint: FloatArray, labels: IntArray, weights: FloatArray
) -> float:
    r"""Return the temperature of highest conditional likelihood.

    .. math:: \max_T \sum_n \log \frac{p(x_n, y_n)^{1/T}}{\sum_c p(x_n, c)^{1/T}}

    (Guo et al. 2017). The most probable class stays the same.

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

    def log_loss(log_temperature: float) -> float:
        tempered = log_joint * np.exp(-log_temperature)
        evidence, _ = class_posterior(tempered)
        losses = evidence - tempered[labels, rows]
        return float(np.average(losses, weights=weights))

    best = minimize_scalar(log_loss, bounds=_LOG_RANGE, method="bounded")
    return float(np.exp(best.x))
