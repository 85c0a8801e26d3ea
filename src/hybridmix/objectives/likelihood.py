"""The likelihood of rows and, where they have one, their labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._registered import registered
from hybridmix._require import require_number
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import UNLABELLED
from hybridmix.objectives.base import Objective, labelled_rows


@registered
@dataclass(frozen=True)
class Likelihood(Objective):
    r"""Log-likelihood of labelled and unlabelled rows.

    .. math:: \sum_{\text{labelled}} \log p(x_n, y_n)
              + \kappa \sum_{\text{unlabelled}} \log \sum_c p(x_n, c)

    Parameters
    ----------
    unlabelled_weight : float
        :math:`\kappa`, what an unlabelled row counts, compared with a labelled one.
    """

    unlabelled_weight: float = 1.0
    needs_rivals = False
    signed = False
    parts = ("likelihood",)

    def check_consistent(self) -> None:
        """Raise ValueError unless the weight is a number."""
        require_number("unlabelled_weight", self.unlabelled_weight, 0.0)

    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        if len(log_joint) == 1 and labels.min(initial=0) != UNLABELLED:
            # Rows of one class, evaluated without its rivals: the bulk of a fit.
            return log_joint, np.ones(log_joint.shape)
        labelled, own = labelled_rows(labels)
        if len(labelled) == 0:
            evidence, posterior = class_posterior(log_joint)
            posterior *= self.unlabelled_weight
            return self.unlabelled_weight * evidence[None], posterior
        values = np.empty(log_joint.shape[1])
        weights = np.zeros(log_joint.shape)
        values[labelled] = log_joint[own, labelled]
        weights[own, labelled] = 1.0
        if len(labelled) < len(labels):
            unlabelled = np.flatnonzero(labels == UNLABELLED)
            evidence, posterior = class_posterior(log_joint[:, unlabelled])
            values[unlabelled] = self.unlabelled_weight * evidence
            weights[:, unlabelled] = self.unlabelled_weight * posterior
        return values[None], weights
