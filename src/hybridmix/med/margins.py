r"""Margin priors: how much margin a row is expected to have, and how much it may lack.

A prior :math:`p(\gamma)` over the margin of a constraint enters the dual by the concave

.. math:: g(\lambda) = -\log \int p(\gamma)\, e^{-\lambda \gamma}\, d\gamma,

and the primal by its conjugate, the smooth loss of an expected margin :math:`m`,

.. math:: \ell(m) = \max_{\lambda \ge 0}\; g(\lambda) - \lambda m.

Every prior is scaled by its *smoothness* :math:`\tau`: it is
:math:`\tau\, g(\lambda / \tau)` of a prior whose width is :math:`\tau / C`, so that
multipliers stay below :math:`C` whatever the smoothness is, and :math:`\tau \to 0` is the
hinge of a support vector machine with box :math:`C`.

A row of weight :math:`w` is :math:`w` rows that share one multiplier:
:math:`w\, g(\lambda / w)` in the dual and :math:`w\, \ell(m)` in the primal. Callers
apply the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval

from hybridmix._registered import registered
from hybridmix._require import require_number, require_positive
from hybridmix._typing import FloatArray

# Below this product of multiplier and tube, differences of exponentials lose digits.
_SMALL = 1e-2
# Newton's method for the loss of a tube converges quadratically: after a step that is
# relatively this short, nothing but rounding is left.
_TUBE_ITERATIONS, _TUBE_STEP = 60, 1e-9


class DualTerms(NamedTuple):
    """Value, slope and minus the second derivative of a dual term, elementwise."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


class LossTerms(NamedTuple):
    """Loss of a margin, minus its slope (the multiplier) and its second derivative."""

    value: FloatArray
    multipliers: FloatArray
    curvature: FloatArray


@dataclass(frozen=True)
class MarginPrior(ABC):
    r"""Base of the margin priors.

    Parameters
    ----------
    C : float
        Largest multiplier of a row, positive.
    smoothness : float
        :math:`\tau`, at least 0; 0 is the support vector machine.
    """

    C: float = 1.0
    smoothness: float = 1.0

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        require_positive("C", self.C)
        require_number("smoothness", self.smoothness, 0.0)

    @property
    def upper(self) -> float:
        """Bound of the multipliers; infinity where there is none."""
        return self.C

    @property
    @abstractmethod
    def least(self) -> float:
        """Margin from which on there is no loss: the mean of the prior."""

    @abstractmethod
    def dual(self, multipliers: FloatArray) -> DualTerms:
        """Return the terms of multipliers from 0 to below `upper`."""

    @abstractmethod
    def loss(self, margins: FloatArray) -> LossTerms:
        """Return the loss of expected margins, the conjugate of the dual terms."""


@registered
@dataclass(frozen=True)
class ExponentialMargin(MarginPrior):
    r"""Margins below a level, less and less probable the lower they are.

    .. math:: g(\lambda) = \big(l + \tfrac{\tau}{C}\big) \lambda
              + \tau \log\big(1 - \tfrac{\lambda}{C}\big), \qquad
              \ell(m) = C s - \tau - \tau \log \tfrac{C s}{\tau},
              \quad s = l + \tfrac{\tau}{C} - m,

    for margins below the mean :math:`l` of the prior; there is no loss above it.

    Parameters
    ----------
    C, smoothness : float
        As in `MarginPrior`.
    mean : float
        :math:`l`, the mean margin: rows that have more do not matter.
    """

    mean: float = 1.0

    @property
    def least(self) -> float:
        return self.mean

    def dual(self, multipliers: FloatArray) -> DualTerms:
        tau, room = self.smoothness, self.C - multipliers
        level = self.mean + tau / self.C
        if tau == 0.0:
            flat = np.zeros_like(multipliers)
            return DualTerms(level * multipliers, np.full_like(flat, level), flat)
        value = level * multipliers + tau * np.log1p(-multipliers / self.C)
        return DualTerms(value, level - tau / room, tau / room**2)

    def loss(self, margins: FloatArray) -> LossTerms:
        tau, C = self.smoothness, self.C
        lacking = margins < self.mean
        slack = np.where(lacking, self.mean - margins, 0.0)
        if tau == 0.0:
            return LossTerms(C * slack, np.where(lacking, C, 0.0), np.zeros_like(slack))
        relative = C * slack / tau
        value = tau * (relative - np.log1p(relative))
        multipliers = C * relative / (1.0 + relative)
        curvature = np.where(lacking, C**2 / (tau * (1.0 + relative) ** 2), 0.0)
        return LossTerms(value, multipliers, curvature)


@registered
@dataclass(frozen=True)
class LaplaceMargin(MarginPrior):
    r"""Margins around their mean, with exponential tails on both sides.

    .. math:: g(\lambda) = l \lambda + \tau \log\big(1 - \tfrac{\lambda^2}{C^2}\big),
              \qquad \lambda(m) = \frac{C^2 s}{\tau + \sqrt{\tau^2 + C^2 s^2}},
              \quad s = \max(l - m, 0).

    Parameters
    ----------
    C, smoothness, mean : float
        As in `ExponentialMargin`.
    """

    mean: float = 1.0

    @property
    def least(self) -> float:
        return self.mean

    def dual(self, multipliers: FloatArray) -> DualTerms:
        tau, C = self.smoothness, self.C
        if tau == 0.0:
            return ExponentialMargin(C, 0.0, self.mean).dual(multipliers)
        room = (C - multipliers) * (C + multipliers)
        value = self.mean * multipliers + tau * (
            np.log1p(-multipliers / C) + np.log1p(multipliers / C)
        )
        slope = self.mean - 2.0 * tau * multipliers / room
        curvature = 2.0 * tau * (C**2 + multipliers**2) / room**2
        return DualTerms(value, slope, curvature)

    def loss(self, margins: FloatArray) -> LossTerms:
        tau, C = self.smoothness, self.C
        if tau == 0.0:
            return ExponentialMargin(C, 0.0, self.mean).loss(margins)
        slack = np.maximum(self.mean - margins, 0.0)
        relative = C * slack / tau
        root = np.hypot(1.0, relative)
        multipliers = C * relative / (1.0 + root)
        # 1 - (lambda / C)^2 is 2 / (1 + root), free of cancellation.
        value = tau * (relative**2 / (1.0 + root) - np.log1p(0.5 * (root - 1.0)))
        curvature = C**2 / (tau * root * (1.0 + root))
        return LossTerms(value, multipliers, np.where(slack > 0.0, curvature, 0.0))


@registered
@dataclass(frozen=True)
class GaussianMargin(MarginPrior):
    r"""Normal margins: the squared hinge, without a bound of the multipliers.

    .. math:: g(\lambda) = l \lambda - \frac{\tau}{2 C^2} \lambda^2, \qquad
              \ell(m) = \frac{C^2}{2 \tau} \max(l - m, 0)^2.

    Parameters
    ----------
    C, smoothness, mean : float
        As in `ExponentialMargin`; the smoothness must be positive.
    """

    mean: float = 1.0

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        super().check_consistent()
        require_positive("smoothness", self.smoothness)

    @property
    def upper(self) -> float:
        return np.inf

    @property
    def least(self) -> float:
        return self.mean

    def dual(self, multipliers: FloatArray) -> DualTerms:
        variance = self.smoothness / self.C**2
        value = (self.mean - 0.5 * variance * multipliers) * multipliers
        return DualTerms(
            value, self.mean - variance * multipliers, np.full_like(value, variance)
        )

    def loss(self, margins: FloatArray) -> LossTerms:
        precision = self.C**2 / self.smoothness
        slack = np.maximum(self.mean - margins, 0.0)
        curvature = np.where(slack > 0.0, precision, 0.0)
        return LossTerms(0.5 * precision * slack**2, precision * slack, curvature)


@registered
@dataclass(frozen=True)
class TubeMargin(MarginPrior):
    r"""Errors of a regression: uniform up to a width, then less and less probable.

    Each side of a target is a constraint :math:`\gamma - (y - f) \ge 0`, or
    :math:`\gamma - (f - y) \ge 0`, with the prior
    :math:`p(\gamma) \propto \min(1, e^{-C (\gamma - \epsilon)/\tau})` for
    :math:`\gamma \ge 0`. With :math:`x = \lambda / \tau` and :math:`c = C / \tau`,

    .. math:: g(\lambda) = -\tau \log \frac{1}{\epsilon + 1/c}
              \Big[ \frac{e^{\epsilon x} - 1}{x} + \frac{e^{\epsilon x}}{c - x} \Big].

    Margins are :math:`m = f - y` of the one side and :math:`y - f` of the other: a side
    loses something where :math:`-m` exceeds the mean of the prior, which tends to
    :math:`\epsilon / 2` for a smoothness of 1 and a large C, and to :math:`\epsilon` as
    the smoothness goes to 0.

    Parameters
    ----------
    C, smoothness : float
        As in `MarginPrior`.
    epsilon : float
        Width of the tube, at least 0.
    """

    epsilon: float = 0.1

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are numbers in their range."""
        super().check_consistent()
        require_number("epsilon", self.epsilon, 0.0)

    @property
    def least(self) -> float:
        if self.smoothness == 0.0:
            return -self.epsilon
        width, rest = self.epsilon, self.smoothness / self.C
        return -(0.5 * width**2 + width * rest + rest**2) / (width + rest)

    def dual(self, multipliers: FloatArray) -> DualTerms:
        tau, width = self.smoothness, self.epsilon
        if tau == 0.0:
            flat = np.zeros_like(multipliers)
            return DualTerms(-width * multipliers, np.full_like(flat, -width), flat)
        c, x = self.C / tau, multipliers / tau
        h, h1, h2 = _decay(x, width)
        q = 1.0 + (c - x) * h
        q1 = -h + (c - x) * h1
        q2 = -2.0 * h1 + (c - x) * h2
        # -log of the bracket, less its value at 0, where c h is c times the width.
        normaliser = np.log1p(c * width) - np.log(q)
        value = tau * (-width * x + np.log1p(-x / c) + normaliser)
        slope = -width - 1.0 / (c - x) - q1 / q
        curvature = (1.0 / (c - x) ** 2 + q2 / q - (q1 / q) ** 2) / tau
        return DualTerms(value, slope, curvature)

    def loss(self, margins: FloatArray) -> LossTerms:
        tau, C = self.smoothness, self.C
        lacking = margins < self.least
        if tau == 0.0:
            slack = np.where(lacking, self.least - margins, 0.0)
            return LossTerms(C * slack, np.where(lacking, C, 0.0), np.zeros_like(slack))
        multipliers = np.zeros_like(margins)
        multipliers[lacking] = self._multipliers(margins[lacking])
        value, _, curvature = self.dual(multipliers)
        value = np.where(lacking, value - multipliers * margins, 0.0)
        return LossTerms(value, multipliers, np.where(lacking, 1.0 / curvature, 0.0))

    def _multipliers(self, margins: FloatArray) -> FloatArray:
        """Return where the slope of the dual term is the margin, by Newton's method.

        The slope behaves like ``-1 / (c - x)`` near the bound, so that it is the
        reciprocal of the room left that steps are taken in.
        """
        tau, C = self.smoothness, self.C
        # Closer to the bound, what is left of it would be lost to rounding.
        low, high = np.zeros_like(margins), np.full_like(margins, C * (1.0 - 1e-12))
        # Exact for a tube of width 0, and a bound from above otherwise.
        start = C - tau / np.maximum(-margins, tau / C)
        multipliers = np.clip(start, low, high)
        for _ in range(_TUBE_ITERATIONS):
            _, slope, curvature = self.dual(multipliers)
            rest = slope - margins
            rising = rest > 0.0
            low = np.where(rising, multipliers, low)
            high = np.where(rising, high, multipliers)
            room = C - multipliers
            # d slope / d (1 / room) = -curvature room^2
            inverse = 1.0 / room + rest / (curvature * room**2)
            step = C - 1.0 / np.maximum(inverse, 1.0 / C)
            # At the solution a step ends where it began, which is one of the ends.
            outside = (step < low) | (step > high) | ~np.isfinite(step)
            step = np.where(outside, 0.5 * (low + high), step)
            moved = np.abs(step - multipliers)
            multipliers = step
            if np.all(moved <= 4e-16 * C + _TUBE_STEP * np.minimum(room, multipliers)):
                break
        return multipliers


def _decay(x: FloatArray, width: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return :math:`(1 - e^{-\epsilon x}) / x` and its first two derivatives."""
    t = width * x
    small = t < _SMALL
    s = np.where(small, 1.0, t)
    e = np.exp(-s)
    h = -np.expm1(-s) / s
    h1 = (e - h) / s
    h2 = -(e + 2.0 * h1) / s
    if small.any():  # differences of nearly equal numbers: series instead
        t = t[small]
        h[small] = polyval(t, [1, -1 / 2, 1 / 6, -1 / 24, 1 / 120, -1 / 720])
        h1[small] = polyval(t, [-1 / 2, 1 / 3, -1 / 8, 1 / 30, -1 / 144, 1 / 840])
        h2[small] = polyval(t, [1 / 3, -1 / 4, 1 / 10, -1 / 36, 1 / 168, -1 / 960])
    return width * h, width**2 * h1, width**3 * h2
