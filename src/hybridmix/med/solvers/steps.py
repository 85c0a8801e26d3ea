"""Steps along one axis, or two at a time, in plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from hybridmix.med.solvers.slopes import Slope

# Multipliers closer than this to a bound, relative to the other one, are at the bound.
_AT_BOUND = 1e-12
# A step along a smooth term leaves this part of the violation that is aimed at.
_EXACT = 0.05
_MOST_HALVINGS = 100


class Variable:
    """One multiplier and its term in the dual.

    Parameters
    ----------
    lam, upper, sign, weight : float
        The multiplier, its bound, and sign and sample weight of its constraint.

    Attributes
    ----------
    curvature : float
        Minus the second derivative of the term, where `look` has looked at it.
    """

    __slots__ = ("curvature", "lam", "sign", "upper", "weight")

    def __init__(self, lam: float, upper: float, sign: float, weight: float) -> None:
        self.lam, self.upper, self.sign, self.weight = lam, upper, sign, weight
        self.curvature = 0.0

    def pull(self, slope: Slope, signed_step: float) -> tuple[float, float]:
        """Return signed slope and curvature after a step of the signed multiplier."""
        value, bent = slope((self.lam + self.sign * signed_step) / self.weight)
        return self.sign * value, bent / self.weight

    def look(self, slope: Slope) -> float:
        """Return the signed slope where the multiplier is, and note the curvature."""
        value, self.curvature = self.pull(slope, 0.0)
        return value

    def room(self, direction: float) -> tuple[float, float]:
        """Return the ways to zero and to the upper bound; infinite if not that way."""
        if self.sign * direction < 0.0:
            return self.lam, math.inf
        return math.inf, self.upper - self.lam

    def move(self, signed_step: float, is_open: bool) -> None:
        """Take a step; multipliers that come close to a bound are put there.

        An open interval does not have its upper bound, where the term is infinite.
        """
        lam = self.lam + self.sign * signed_step
        if lam <= _AT_BOUND * min(self.upper, 1.0):
            lam = 0.0
        elif is_open:
            lam = min(lam, math.nextafter(self.upper, 0.0))
        elif lam >= self.upper * (1.0 - _AT_BOUND):
            lam = self.upper
        self.lam = lam


def move_pair(
    first: Variable,
    second: Variable,
    violation: float,
    distance: float,
    slope: Slope | None,
    aim: float,
) -> tuple[float, float, float]:
    """Let the first rise and the second fall as far as it gains.

    Parameters
    ----------
    first, second : Variable
        The pair, changed in place.
    violation : float
        Difference of their derivatives, positive.
    distance : float
        Squared distance of their rows in the geometry of the kernel.
    slope : callable or None
        Slope of the margin prior's term; None if it is constant.
    aim : float
        The violation that is aimed at.

    Returns
    -------
    step, first_change, second_change : float
        Length of the step, and changes of the signed slopes of the terms.
    """
    to_zero, to_upper = map(min, first.room(1.0), second.room(-1.0))
    longest = violation / distance
    if slope is None:
        step = min(longest, to_zero, to_upper)
        first.move(step, False)
        second.move(-step, False)
        return step, 0.0, 0.0
    before = first.look(slope), second.look(slope)
    difference = violation - before[0] + before[1]

    def rest(step: float) -> tuple[float, float]:
        (a, p), (b, q) = first.pull(slope, step), second.pull(slope, -step)
        return difference - distance * step + a - b, distance + p + q

    newton = violation / (distance + first.curvature + second.curvature)
    step = _falling_root(rest, newton, longest, to_zero, to_upper, _EXACT * aim)
    first.move(step, True)
    second.move(-step, True)
    return step, first.look(slope) - before[0], second.look(slope) - before[1]


def axis_step(
    variable: Variable,
    derivative: float,
    diagonal: float,
    slope: Slope | None,
    aim: float,
) -> float:
    """Return the step of a signed multiplier to the maximum along its axis."""
    direction, size = math.copysign(1.0, derivative), abs(derivative)
    to_zero, to_upper = variable.room(direction)
    longest = size / diagonal if diagonal > 0.0 else math.inf
    if slope is None or size == 0.0:
        return direction * min(longest, to_zero, to_upper) if size > 0.0 else 0.0
    before = variable.look(slope)

    def rest(step: float) -> tuple[float, float]:
        pull, curvature = variable.pull(slope, direction * step)
        change = direction * (pull - before)
        return size - diagonal * step + change, diagonal + curvature

    newton = size / (diagonal + variable.curvature)
    return direction * _falling_root(
        rest, newton, longest, to_zero, to_upper, _EXACT * aim
    )


def _falling_root(
    rest: Callable[[float], tuple[float, float]],
    step: float,
    longest: float,
    to_zero: float,
    to_upper: float,
    exact: float,
) -> float:
    """Return where a falling function is zero, by Newton's method within a bracket.

    Parameters
    ----------
    rest : callable
        Returns value and minus the derivative after a step; positive at 0.
    step : float
        First guess.
    longest, to_zero, to_upper : float
        The root is not beyond the first. A step to zero may be taken although the
        function is positive there; one to the upper bound is not possible.
    exact : float
        Largest value that is left.
    """
    if to_zero < min(longest, to_upper) and rest(to_zero)[0] >= 0.0:
        return to_zero
    low, high = 0.0, min(longest, to_zero, to_upper)
    for _ in range(_MOST_HALVINGS):
        if not low < step < high:
            step = 0.5 * (low + high)
        left, curvature = rest(step)
        if abs(left) <= exact:
            break
        low, high = (step, high) if left > 0.0 else (low, step)
        step += left / curvature
    return step
