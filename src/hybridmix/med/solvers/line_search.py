"""The minimum of a convex primal along a line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.margins import LossTerms
from hybridmix.med.solvers.hinge import Loss

# A slope this much smaller than at the start is a minimum for Newton's method.
_FLAT = 0.02
_MOST_EVALUATIONS = 60
_ROUNDING = 1e-14


class Line(NamedTuple):
    r"""The primal along a direction, :math:`q t + r t^2 / 2 + \sum w\, \ell(m + t d)`.

    Attributes
    ----------
    margins, direction : ndarray of shape (R,)
        :math:`m` and :math:`d`.
    slope, curvature : float
        :math:`q` and :math:`r`, of the penalty.
    """

    margins: FloatArray
    direction: FloatArray
    slope: float
    curvature: float


class Minimum(NamedTuple):
    """Where a search ended.

    Attributes
    ----------
    step : float
        Length of the step.
    margins : ndarray of shape (R,)
        Margins there.
    terms : LossTerms
        Losses there, without weights.
    """

    step: float
    margins: FloatArray
    terms: LossTerms


def minimise_along(line: Line, loss: Loss, weights: FloatArray | float) -> Minimum:
    """Return nearly the minimum along a line, by Newton's method within brackets.

    Parameters
    ----------
    line : Line
        The direction, one of descent.
    loss : Loss
        Loss of the margins.
    weights : ndarray of shape (R,) or float
        Weights of the losses.
    """
    start = loss.loss(line.margins)
    weighted = weights * line.direction
    steepest = line.slope - float(start.multipliers @ weighted)
    lost = float(np.sum(weights * start.value))
    low, high, following = 0.0, np.inf, 1.0
    for _ in range(_MOST_EVALUATIONS):
        step = following
        margins = line.margins + step * line.direction
        terms = loss.loss(margins)
        slope = line.slope + line.curvature * step - float(terms.multipliers @ weighted)
        if abs(slope) <= _FLAT * abs(steepest):
            change = step * (line.slope + 0.5 * line.curvature * step)
            now = float(np.sum(weights * terms.value))
            if slope <= 0.0 or change + now - lost <= _ROUNDING * lost:
                break
        if slope > 0.0:
            high = step
        else:
            low = step
        if high - low <= _ROUNDING * high:
            break
        bend = line.curvature + float((terms.curvature * line.direction) @ weighted)
        following = _next(step, slope, bend, low, high)
    return Minimum(step, margins, terms)


def _next(step: float, slope: float, bend: float, low: float, high: float) -> float:
    """Return Newton's next step, or another one if it leaves the brackets."""
    newton = step - slope / bend if bend > 0.0 else np.inf
    if high == np.inf:
        return min(newton, 10.0 * step)
    if low < newton < high:
        return newton
    # Steps may be too long by orders of magnitude where there is hardly a curvature.
    return 0.1 * high if low == 0.0 else 0.5 * (low + high)
