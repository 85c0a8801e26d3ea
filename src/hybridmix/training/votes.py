"""How much each member of a committee counts, from how it did on held-out rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.models.calibration import Calibration
from hybridmix.training.calibration import fitted_calibration

# EM of the shares: this many steps bring them within a thousandth of where they go.
_N_STEPS = 100
# The prior of the shares counts one row for every member.
_PRIOR_ROWS = 1.0


class HeldOut(NamedTuple):
    """Rows that candidates were not trained on.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Their class numbers.
    weights : ndarray of shape (n,)
        Their sample weights.
    """

    labels: IntArray
    weights: FloatArray

    def calibration(self, log_joint: FloatArray) -> Calibration:
        """Return the calibration of log joint densities (C, n) of these rows."""
        if len(log_joint) == 1:
            return Calibration()
        return fitted_calibration(log_joint, self.labels, self.weights)

    def log_scores(self, log_probabilities: FloatArray) -> FloatArray:
        """Return the log probabilities (n,) of the labels, from those of all classes."""
        return log_probabilities[self.labels, np.arange(len(self.labels))]


class Shares(NamedTuple):
    """Which candidates form a committee.

    Attributes
    ----------
    chosen : list of int
        Numbers of the candidates, those of the largest shares first.
    shares : ndarray of shape (M,)
        How much each of them counts.
    """

    chosen: list[int]
    shares: FloatArray


def fitted_shares(log_scores: FloatArray, weights: FloatArray, most: int) -> Shares:
    r"""Return the committee of at most some members of the highest likelihood.

    .. math:: \max_s \sum_n w_n \log \sum_m s_m\, p_m(y_n \mid x_n) + \sum_m \log s_m

    over shares :math:`s`, by EM: members are the components of a mixture whose densities
    are known. This is stacking (Wolpert 1992) of densities (Smyth and Wolpert 1999). The
    members of the largest shares stay, and share anew.

    Parameters
    ----------
    log_scores : ndarray of shape (M, n)
        Log probabilities of the labels of held-out rows, for every candidate.
    weights : ndarray of shape (n,)
        Sample weights of the rows.
    most : int
        Largest number of members.
    """
    relative = np.exp(log_scores - log_scores.max(axis=0))
    shares = _stacked(relative, weights)
    if len(shares) > most:
        chosen = np.argsort(-shares, kind="stable")[:most]
        shares = _stacked(relative[chosen], weights)
    else:
        chosen = np.arange(len(shares))
    order = np.argsort(-shares, kind="stable")
    return Shares(chosen[order].tolist(), shares[order])


def _stacked(relative: FloatArray, weights: FloatArray) -> FloatArray:
    """Return shares (M,) of candidates, from what they give to the labels, (M, n)."""
    shares = np.full(len(relative), 1.0 / len(relative))
    for _ in range(_N_STEPS):
        joint = shares[:, None] * relative
        counts = (joint / joint.sum(axis=0)) @ weights + _PRIOR_ROWS
        shares = counts / counts.sum()
    return shares
