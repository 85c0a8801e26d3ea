r"""The hinge with a rounded corner, on the way to problems with little smoothness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.margins import LossTerms


class Loss(Protocol):
    """What the primal needs of a margin prior."""

    def loss(self, margins: FloatArray) -> LossTerms:
        """Return the loss of margins, minus its slope and its second derivative."""


@dataclass(frozen=True)
class RoundedHinge:
    r"""The hinge :math:`C \max(l - m, 0)` with a parabola in place of its corner.

    It is what becomes of the hinge if multipliers :math:`\lambda` from 0 to :math:`C`
    have to pay for their distance from others, :math:`C \kappa`:

    .. math:: \ell(m) &= \max_\lambda\; \lambda (l - m)
              - \frac{\delta}{2 C} (\lambda - C \kappa)^2 \\
              &= C \delta \Big[ \tfrac12 \min(\max(x, 0), 1)^2 + \max(x - 1, 0)
              - \tfrac12 \kappa^2 \Big], \qquad x = \frac{l - m}{\delta} + \kappa.

    Only rows in the parabola have a curvature, so that Newton's systems are small. If
    :math:`\kappa` are the multipliers of the problem before, a sequence of such problems
    is the proximal method for the dual: it leads to the hinge even before the width does.

    Parameters
    ----------
    C : float
        Largest multiplier.
    corner : float
        :math:`l`, where the corner is.
    width : float
        :math:`\delta` of the parabola, positive.
    centre : ndarray of shape (R,) or float
        :math:`\kappa`, from 0 to 1.
    """

    C: float
    corner: float
    width: float
    centre: FloatArray | float = 0.0

    def loss(self, margins: FloatArray) -> LossTerms:
        x = (self.corner - margins) / self.width + self.centre
        share = np.clip(x, 0.0, 1.0)
        beyond = np.maximum(x - 1.0, 0.0)
        areas = 0.5 * (share**2 - np.square(self.centre)) + beyond
        curvature = np.where(x == share, self.C / self.width, 0.0)
        return LossTerms(self.C * self.width * areas, self.C * share, curvature)
