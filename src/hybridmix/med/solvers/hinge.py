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

    .. math:: \ell(m) = C \delta \Big[ \tfrac12 \min(\max(x, 0), 1)^2
              + \max(x - 1, 0) \Big], \qquad x = \frac{l - m}{\delta} + \tfrac12

    The parabola has its middle in the corner. Only the rows in it have a curvature, so
    that Newton's systems are small, and only they add to the duality gap of the hinge,
    at most :math:`C \delta / 16` each: the gap falls with the square of the width.

    Parameters
    ----------
    C : float
        Largest multiplier.
    mean : float
        :math:`l`, where the corner is.
    width : float
        :math:`\delta`, positive.
    """

    C: float
    mean: float
    width: float

    def loss(self, margins: FloatArray) -> LossTerms:
        x = (self.mean - margins) / self.width + 0.5
        inside = np.clip(x, 0.0, 1.0)
        scale = self.C * self.width
        value = scale * (0.5 * inside**2 + np.maximum(x - 1.0, 0.0))
        curvature = np.where(x == inside, self.C / self.width, 0.0)
        return LossTerms(value, self.C * inside, curvature)
