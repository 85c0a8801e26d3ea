"""Pair steps within a block of constraints whose kernel matrix is at hand."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.kernels import Block
from hybridmix.med.solvers.slopes import Slope

# Rows closer than this, relative to the largest diagonal entry, count as this far apart.
_SAME = 1e-7
# Multipliers closer than this to a bound, relative to the other one, are at the bound.
_AT_BOUND = 1e-12
# A step along a smooth term leaves this part of the violation that is aimed at.
_EXACT = 0.05
_MOST_HALVINGS = 60


class Box(NamedTuple):
    """Multipliers of a block with their bounds, signs and weights, each (q,)."""

    multipliers: FloatArray
    upper: FloatArray
    signs: FloatArray
    weights: FloatArray


class Variable:
    """One multiplier and its term in the dual, in plain numbers."""

    __slots__ = ("lam", "sign", "upper", "weight")

    def __init__(self, lam: float, upper: float, sign: float, weight: float) -> None:
        self.lam, self.upper, self.sign, self.weight = lam, upper, sign, weight

    def pull(self, slope: Slope, signed_step: float) -> tuple[float, float]:
        """Return signed slope and curvature after a step of the signed multiplier."""
        value, bent = slope((self.lam + self.sign * signed_step) / self.weight)
        return self.sign * value, bent / self.weight

    def curvature(self, slope: Slope) -> float:
        """Return minus the second derivative of the term."""
        return slope(self.lam / self.weight)[1] / self.weight

    def room(self, direction: float) -> tuple[float, float]:
        """Return the ways to zero and to the upper bound; infinite if not that way."""
        if self.sign * direction < 0.0:
            return self.lam, math.inf
        return math.inf, self.upper - self.lam

    def move(self, signed_step: float, is_open: bool) -> None:
        """Take a step; multipliers that come close to a bound are put there."""
        lam = self.lam + self.sign * signed_step
        if lam <= _AT_BOUND * min(self.upper, 1.0):
            lam = 0.0
        elif is_open:
            lam = min(lam, math.nextafter(self.upper, 0.0))
        elif lam >= self.upper * (1.0 - _AT_BOUND):
            lam = self.upper
        self.lam = lam


class Variables(dict[int, Variable]):
    """The variables of a block that have been used."""

    def __init__(self, box: Box) -> None:
        self._box = box

    def __missing__(self, place: int) -> Variable:
        variable = Variable(*(float(part[place]) for part in self._box))
        self[place] = variable
        return variable

    def multipliers(self) -> FloatArray:
        """Return the multipliers (q,) of all, used or not."""
        found = self._box.multipliers.copy()
        found[list(self)] = [variable.lam for variable in self.values()]
        return found


class Distances:
    """Distances of the rows of a block in the geometry of the kernel, at first use."""

    def __init__(self, block: Block) -> None:
        self._block, self._diagonal = block, block.diagonal
        self._nearest = _SAME * float(self._diagonal.max())
        self._steepness: dict[int, FloatArray] = {}

    def ease(self, i: int, curvature: float) -> float:
        """Return by how much a step along an axis changes the output, per derivative."""
        diagonal = float(self._diagonal[i])
        return diagonal / (diagonal + curvature)

    def steepness(self, i: int) -> FloatArray:
        """Return the inverse distances (q,) of a row from all.

        The gain of a pair is half of the square of violation times steepness.
        """
        found = self._steepness.get(i)
        if found is None:
            found = self._diagonal - 2.0 * self._block.row(i)
            found += self._diagonal[i]
            np.maximum(found, self._nearest, out=found)
            np.sqrt(found, out=found)
            np.divide(1.0, found, out=found)
            self._steepness[i] = found
        return found


def solve_block(
    block: Block,
    ends: FloatArray,
    ease: FloatArray,
    box: Box,
    slope: Slope | None,
    aim: float,
    max_steps: int,
) -> tuple[FloatArray, int]:
    """Take pair steps until the violation within a block is small.

    Parameters
    ----------
    block : Block
        Kernel values (q, q) of the constraints' rows.
    ends : ndarray of shape (2, q)
        Derivatives by the signed multipliers, less the bias, where these may rise, else
        minus infinity, and where they may fall, else infinity. They are changed in place.
    ease : ndarray of shape (q,)
        Factors of derivatives that make violations of them, 1 if the slope is constant.
        They are changed in place.
    box : Box
        The multipliers.
    slope : callable or None
        Slope of the margin prior's term; None if it is constant.
    aim : float
        The violation to reach.
    max_steps : int
        Largest number of steps.

    Returns
    -------
    multipliers : ndarray of shape (q,)
        The new ones.
    n_steps : int
        How many steps were taken.
    """
    distances = Distances(block)
    variables = Variables(box)
    rising, falling = ends
    buffer, wishes = np.empty(len(rising)), rising
    is_open = slope is not None
    n_steps = 0
    while n_steps < max_steps:
        if is_open:
            wishes = np.multiply(rising, ease, out=buffer)
        i = int(wishes.argmax())
        top = float(rising[i])
        steepness = distances.steepness(i)
        np.subtract(top, falling, out=buffer)
        np.multiply(buffer, steepness, out=buffer)
        if is_open:
            np.multiply(buffer, ease, out=buffer)
        j = int(buffer.argmax())
        bottom = float(falling[j])
        wish = top * ease[i]
        if not wish - bottom * ease[j] > aim and not wish - _least(falling, ease) > aim:
            break
        if not top > bottom:
            break
        first, second = variables[i], variables[j]
        distance = float(steepness[j]) ** -2
        step, pulled = _pair_step(first, second, top - bottom, distance, slope, aim)
        first.move(step, is_open)
        second.move(-step, is_open)
        np.subtract(block.row(i), block.row(j), out=buffer)
        np.multiply(buffer, step, out=buffer)
        np.subtract(ends, buffer, out=ends)
        _mark(ends, i, first, top - float(buffer[i]) + pulled[0])
        _mark(ends, j, second, bottom - float(buffer[j]) + pulled[1])
        if slope is not None:
            ease[i] = distances.ease(i, first.curvature(slope))
            ease[j] = distances.ease(j, second.curvature(slope))
        n_steps += 1
    return variables.multipliers(), n_steps


def _least(falling: FloatArray, ease: FloatArray) -> float:
    return float((falling * ease).min())


def _mark(ends: FloatArray, place: int, variable: Variable, derivative: float) -> None:
    """Note the derivative of a variable where it may move, and infinity elsewhere."""
    above, below = variable.lam > 0.0, variable.lam < variable.upper
    rise, fall = (below, above) if variable.sign > 0.0 else (above, below)
    ends[0, place] = derivative if rise else -math.inf
    ends[1, place] = derivative if fall else math.inf


def _pair_step(
    first: Variable,
    second: Variable,
    violation: float,
    distance: float,
    slope: Slope | None,
    aim: float,
) -> tuple[float, tuple[float, float]]:
    """Return how far the first rises and the second falls, and how their pulls change."""
    to_zero, to_upper = map(min, first.room(1.0), second.room(-1.0))
    longest = violation / distance
    if slope is None:
        return min(longest, to_zero, to_upper), (0.0, 0.0)
    before, bent = zip(first.pull(slope, 0.0), second.pull(slope, 0.0), strict=True)

    def rest(step: float) -> tuple[float, float, tuple[float, float]]:
        (a, p), (b, q) = first.pull(slope, step), second.pull(slope, -step)
        change = a - before[0], b - before[1]
        return (
            violation - distance * step + change[0] - change[1],
            distance + p + q,
            change,
        )

    if to_zero < min(longest, to_upper):
        left, _, change = rest(to_zero)
        if left >= 0.0:
            return to_zero, change
    low, high = 0.0, min(longest, to_zero, to_upper)
    step = violation / (distance + sum(bent))
    for _ in range(_MOST_HALVINGS):
        if not low < step < high:
            step = 0.5 * (low + high)
        left, curvature, change = rest(step)
        if abs(left) <= _EXACT * aim:
            break
        low, high = (step, high) if left > 0.0 else (low, step)
        step += left / curvature
    return step, change
