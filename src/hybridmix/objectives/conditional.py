"""The conditional likelihood of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._registered import registered
from hybridmix._typing import FloatArray, IntArray
from hybridmix.objectives.base import Objective, labelled_rows


@registered
@dataclass(frozen=True)
class ConditionalLikelihood(Objective):
    r"""Log probability of the labels given the rows.

    .. math:: \sum_n \log p(y_n \mid x_n)
              = \sum_n \Big[ \log p(x_n, y_n) - \log \sum_c p(x_n, c) \Big]

    Unlabelled rows count nothing.
    """

    needs_rivals = True
    signed = True
    parts = ("conditional",)

    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        rows, own = labelled_rows(labels)
        values, weights = np.zeros(log_joint.shape[1]), np.zeros(log_joint.shape)
        evidence, posterior = class_posterior(log_joint[:, rows])
        values[rows] = log_joint[own, rows] - evidence
        weights[:, rows] = -posterior
        weights[own, rows] += 1.0
        return values[None], weights
