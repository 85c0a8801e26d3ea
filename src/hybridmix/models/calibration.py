"""Class probabilities that trust the evidence only as far as held-out rows allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._typing import FloatArray, IntArray


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


def per_frame_scales(lengths: IntArray, power: float) -> FloatArray:
    r"""Return :math:`T_n^{-\rho}` for lengths (n,) of sequences."""
    return np.power(lengths.astype(np.float64), -power)
