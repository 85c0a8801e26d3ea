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
        if len(rows) < len(labels):
            values, weights = np.zeros((1, len(labels))), np.zeros(log_joint.shape)
            found = self.values_and_weights(log_joint[:, rows], own)
            values[:, rows], weights[:, rows] = found
            return values, weights
        evidence, weights = class_posterior(log_joint)
        np.negative(weights, out=weights)
        weights[own, rows] += 1.0
        return (log_joint[own, rows] - evidence)[None], weights
