"""Margins between the label and its rivals, and losses of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from hybridmix._logsumexp import grouped_logsumexp
from hybridmix._registered import registered
from hybridmix._require import require_number, require_positive
from hybridmix._typing import FloatArray, IntArray
from hybridmix.objectives.base import Objective, labelled_rows


@dataclass(frozen=True)
class MarginObjective(Objective):
    r"""Base of objectives of the log margin of a row.

    .. math:: \beta_n = \log p(x_n, y_n)
              - \tfrac1\eta \log \sum_{c \ne y_n} p(x_n, c)^\eta

    is a smooth version of the log ratio of the label's joint density to that of its best
    rival; it is negative where a row is misclassified. Unlabelled rows count nothing.

    Parameters
    ----------
    sharpness : float
        :math:`\eta`, at least 1; the larger, the closer to the best rival alone.
    """

    sharpness: float = 10.0
    needs_rivals = True
    signed = True
    parts = ("margin",)

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_positive("sharpness", self.sharpness)

    @abstractmethod
    def of_margins(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values of log margins and their derivatives."""

    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        values, weights = np.zeros(log_joint.shape[1]), np.zeros(log_joint.shape)
        if len(log_joint) == 1:
            return values[None], weights  # a class without rivals has no margin
        rows, own = labelled_rows(labels)
        margins, rivals = self._margins(log_joint[:, rows], own)
        values[rows], slopes = self.of_margins(margins)
        weights[:, rows] = -slopes * rivals
        weights[own, rows] = slopes
        return values[None], weights

    def _margins(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the margins (n,) and the shares (C, n) of the rivals in them."""
        columns = np.arange(len(labels))
        scaled = self.sharpness * log_joint
        scaled[labels, columns] = -np.inf
        logs, sums = grouped_logsumexp(scaled, (0, len(scaled)))
        rivals = scaled / sums
        rivals[labels, columns] = 0.0
        return log_joint[labels, columns] - logs[0] / self.sharpness, rivals


def soft_hinge(t: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    """Return ``max(0, t)``, rounded within ``width`` of 0, and its slope."""
    inside = np.clip(t, -width, width) + width
    values = np.where(t > width, t, inside**2 / (4.0 * width))
    return values, inside / (2.0 * width)


@registered
@dataclass(frozen=True)
class Margin(MarginObjective):
    r"""Minus the soft hinge loss of margins below a desired one.

    .. math:: -\sum_n h_\epsilon(\gamma - \beta_n)

    Parameters
    ----------
    sharpness : float
        Of the soft maximum over rivals.
    margin : float
        :math:`\gamma`, the desired log margin.
    width : float
        :math:`\epsilon`, how far the hinge is rounded.
    largest_loss : float or None
        No row loses more (the ramp loss, rounded in the same way), so that outliers far
        on the wrong side do not steer the boundary; None for no bound.
    """

    margin: float = 1.0
    width: float = 0.5
    largest_loss: float | None = None

    def check_consistent(self) -> None:
        super().check_consistent()
        require_number("margin", self.margin)
        require_positive("width", self.width)
        if self.largest_loss is not None:
            require_number("largest_loss", self.largest_loss, 0.0)

    def of_margins(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        loss, slope = soft_hinge(self.margin - margins, self.width)
        if self.largest_loss is not None:
            excess = soft_hinge(self.margin - margins - self.largest_loss, self.width)
            loss, slope = loss - excess[0], slope - excess[1]
        return -loss, slope


@registered
@dataclass(frozen=True)
class ScaledMargin(MarginObjective):
    r"""Logarithm of a bounded, smooth function of the margin's power.

    .. math:: \sum_n \log h(e^{\lambda \beta_n}), \qquad
              h(y) = \begin{cases} y + \tfrac12 & y \le 1 \\
              2 - \tfrac12 (y - 2)^2 & 1 < y < 2 \\ 2 & y \ge 2 \end{cases}

    as in Pernkopf and Wohlmayr (2010).

    Parameters
    ----------
    sharpness : float
        Of the soft maximum over rivals.
    power : float
        :math:`\lambda`, positive.
    """

    power: float = 0.1

    def check_consistent(self) -> None:
        super().check_consistent()
        require_positive("power", self.power)

    def of_margins(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        y = np.exp(np.minimum(self.power * margins, 1.0))  # all is flat beyond log 2
        middle = np.clip(y, 1.0, 2.0)
        bent = 2.0 - 0.5 * (middle - 2.0) ** 2
        low = np.minimum(y, 1.0)
        values = np.log(np.where(y <= 1.0, low + 0.5, bent))
        slopes = np.where(y <= 1.0, low / (low + 0.5), middle * (2.0 - middle) / bent)
        return values, self.power * slopes
