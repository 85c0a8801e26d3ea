"""How far to trust the evidence: two numbers that are fitted to held-out rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from hybridmix._logsumexp import class_posterior
from hybridmix._typing import FloatArray, IntArray

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
