"""How far to trust the evidence: two numbers that are fitted to held-out rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from hybridmix._typing import FloatArray, IntArray
from hybridmix.mixture import class_posterior

# A temperature of e^7 makes all classes of any table about as probable.
_LOG_TEMPERATURES = (-3.0, 7.0)
_SHARES = (1e-9, 0.5)


class Calibration(NamedTuple):
    r"""A correction of class probabilities.

    .. math:: (1 - \epsilon) \frac{p(x, c)^{1/T}}{\sum_{c'} p(x, c')^{1/T}}
              + \frac{\epsilon}{C}

    The temperature :math:`T` weakens the evidence of all rows alike (Guo et al. 2017);
    the share :math:`\epsilon` is for rows so far from all that was seen that their
    evidence means nothing, and which the temperature alone would be left to account for.
    The most probable class stays the same.
    """

    temperature: float = 1.0
    uniform_share: float = 0.0

    def probabilities(self, log_joint: FloatArray) -> FloatArray:
        """Return the class probabilities (C, n) of log joint densities."""
        _, posterior = class_posterior(log_joint / self.temperature)
        posterior *= 1.0 - self.uniform_share
        posterior += self.uniform_share / len(posterior)
        return posterior

    def log_probabilities(self, log_joint: FloatArray) -> FloatArray:
        """Return their logarithms, exact also where they are very small."""
        tempered = log_joint / self.temperature
        evidence, _ = class_posterior(tempered)
        logs = tempered - evidence
        if self.uniform_share == 0.0:
            return logs
        return np.logaddexp(
            logs + np.log1p(-self.uniform_share),
            np.log(self.uniform_share / len(log_joint)),
        )


def fitted_calibration(
    log_joint: FloatArray, labels: IntArray, weights: FloatArray
) -> Calibration:
    """Return the calibration of highest conditional likelihood.

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
        """Return the share for a temperature, and the log loss of both."""
        tempered = log_joint * np.exp(-log_temperature)
        evidence, _ = class_posterior(tempered)
        own = np.exp(tempered[labels, rows] - evidence)

        def log_loss(share: float) -> float:
            mixed = (1.0 - share) * own + share / len(log_joint)
            return -float(np.average(np.log(mixed), weights=weights))

        found = minimize_scalar(log_loss, bounds=_SHARES, method="bounded")
        return float(found.x), float(found.fun)

    best = minimize_scalar(
        lambda log_temperature: best_share(log_temperature)[1],
        bounds=_LOG_TEMPERATURES,
        method="bounded",
    )
    return Calibration(float(np.exp(best.x)), best_share(best.x)[0])
