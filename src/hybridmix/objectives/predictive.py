"""The likelihood of targets given the rest of their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._typing import FloatArray, IntArray
from hybridmix.objectives.base import Objective


@registered
@dataclass(frozen=True)
class PredictiveLikelihood(Objective):
    r"""Log predictive density of the targets of rows.

    .. math:: \sum_n \log p(y_n \mid x_n)
              = \sum_n \big[ \log p(x_n, y_n) - \log p(x_n) \big]

    The two log densities are the lines of a `TargetModel`. Labels mean nothing to it, and
    a row without a target counts nothing, as both are the same there.
    """

    needs_rivals = True
    signed = True
    parts = ("conditional",)

    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        seen, hidden = log_joint
        signs = np.array([[1.0], [-1.0]])
        return (seen - hidden)[None], np.broadcast_to(signs, log_joint.shape)
