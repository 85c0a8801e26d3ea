"""Pair steps within a block of constraints whose kernel matrix is at hand."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.gram import Block
from hybridmix.med.solvers.slopes import Slope
from hybridmix.med.solvers.steps import Variable, move_pair

# Rows closer than this, relative to the largest diagonal entry, count as this far apart.
_SAME = 1e-7


class Box(NamedTuple):
    """Multipliers of a block with their bounds, signs and weights, each (q,)."""

    multipliers: FloatArray
    upper: FloatArray
    signs: FloatArray
    weights: FloatArray


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
        step, *pulled = move_pair(first, second, top - bottom, distance, slope, aim)
        np.subtract(block.row(i), block.row(j), out=buffer)
        np.multiply(buffer, step, out=buffer)
        np.subtract(ends, buffer, out=ends)
        _mark(ends, i, first, top - float(buffer[i]) + pulled[0])
        _mark(ends, j, second, bottom - float(buffer[j]) + pulled[1])
        if is_open:
            ease[i] = distances.ease(i, first.curvature)
            ease[j] = distances.ease(j, second.curvature)
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
