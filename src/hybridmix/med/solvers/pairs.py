r"""Pair updates: the dual of a kernel model with one output and a flat bias.

A flat bias asks that :math:`\sum_r s_r \lambda_r = 0`, so that at least two multipliers
move at a time (sequential minimal optimisation; Platt 1998). The first of a pair has the
largest derivative of those that may rise, the second gains most with it by a quadratic
model (Fan, Chen and Lin 2005).

The pairs are taken from a block of constraints that violate the optimality conditions
most. Within the block a step costs a few operations on short vectors; the outputs of all
rows follow once per block, and only by the rows whose multipliers have changed. Rows
outside of the block rest, as with shrinking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.med.constraints import Constraints
from hybridmix.med.gram import KernelMatrix
from hybridmix.med.margins import MarginPrior
from hybridmix.med.solvers.blocks import Box, solve_block
from hybridmix.med.solvers.single_output import (
    TIGHTER,
    TIGHTEST,
    KernelSolution,
    SingleOutput,
)
from hybridmix.med.solvers.slopes import slope_of
from hybridmix.progress import announce

# Sizes of blocks, and the share of the rows that they are.
_SMALLEST, _LARGEST, _SHARE = 256, 2048, 0.1
# A block is solved until its violation is this part of that of all constraints.
_INNER = 0.5
# Steps within a block, per constraint of it.
_STEPS = 10
# So many blocks without a smaller violation: the kernel's precision allows no more.
_PATIENCE = 500
# Multipliers that would change by more than this part of them are far from the optimum.
_FAR = 1e-3
_TINY = float(np.finfo(np.float64).tiny)
# Outputs are computed afresh if their rounding errors may exceed this part of the aim.
_DRIFT = 0.2


def maximise_by_pairs(
    gram: KernelMatrix,
    constraints: Constraints,
    prior: MarginPrior,
    *,
    tol: float = 1e-3,
    max_iter: int = 10_000_000,
    start: FloatArray | None = None,
) -> KernelSolution:
    """Maximise the dual of a kernel model with one output and a flat bias.

    Parameters
    ----------
    gram : KernelMatrix
        Kernel matrix of the training rows.
    constraints : Constraints
        Signed rows, or sides of targets.
    prior : MarginPrior
        Of the margins.
    tol : float
        Largest violation of the optimality conditions, as in LIBSVM, and largest
        duality gap relative to the primal objective. Both are to be met.
    max_iter : int
        Largest number of pair steps.
    start : ndarray of shape (R,), default=None
        Multipliers to begin with; they need not be feasible.

    Returns
    -------
    solution : KernelSolution
    """
    search = _Search(SingleOutput(gram, constraints, prior), start)
    found, interrupted, aim = None, False, tol
    try:
        while search.goes_on(max_iter):
            ends = search.ends()
            if ends.violation > aim and search.improve(ends, aim, max_iter):
                note = f"violation {ends.violation:.2g}"
                announce("pairs", search.n_steps, max_iter, note)
            elif search.drift > _DRIFT * aim:
                search.refresh()
            else:
                settled = search.found(ends, ends.violation <= tol)
                if settled.relative_gap <= tol or aim < TIGHTEST * tol:
                    found = settled
                    break
                aim *= TIGHTER
    except KeyboardInterrupt:
        interrupted = True
    found = found or search.unfinished()
    met = found.converged and found.relative_gap <= tol
    return replace(found, n_iter=search.n_steps, converged=met, interrupted=interrupted)


@dataclass(frozen=True)
class _Ends:
    r"""How far signed multipliers want to rise and to fall, those that may.

    Derivatives less the bias are multiplied by :math:`K_{rr} / (K_{rr} + h_r)`, with the
    curvature :math:`h` of the margin prior's term: that is by how much a row's output
    changes in a step along its own axis. Without curvature it is LIBSVM's measure.

    Attributes
    ----------
    derivatives : ndarray of shape (2, R)
        Less the bias, and minus infinity and infinity where the multiplier may not rise
        and where it may not fall.
    ease : ndarray of shape (R,)
        The factors.
    bias : float
        What derivatives should not cross.
    """

    derivatives: FloatArray
    ease: FloatArray
    bias: float

    @cached_property
    def wishes(self) -> FloatArray:
        """Scaled violations (2, R), minus infinity where there can be none."""
        return np.stack([self.derivatives[0], -self.derivatives[1]]) * self.ease

    @property
    def violation(self) -> float:
        """By how much the optimality conditions are violated."""
        return max(float(self.wishes.max(axis=1).sum()), 0.0)

    def block(self, kept: IntArray, size: int) -> IntArray:
        """Return constraints that are kept, and then those that violate most."""
        half = size // 2
        # Those that can make a pair which violates the conditions.
        limits = -self.wishes.max(axis=1)[::-1]
        risers, fallers = map(_largest, self.wishes, limits, (half, half))
        turns = np.full((max(len(risers), len(fallers)), 2), -1)
        turns[: len(risers), 0], turns[: len(fallers), 1] = risers, fallers
        order = np.concatenate([kept[:half], turns.ravel()])
        order = order[order >= 0]
        _, first = np.unique(order, return_index=True)
        return order[np.sort(first)[:size]]


def _largest(values: FloatArray, above: float, count: int) -> IntArray:
    """Return where the largest values above a limit are, in falling order."""
    places = np.flatnonzero(values > above)
    if count < len(places):
        places = places[np.argpartition(values[places], -count)[-count:]]
    return places[np.argsort(-values[places], kind="stable")]


class _Search:
    """Multipliers, and the outputs that they make.

    Attributes
    ----------
    n_steps : int
        Pair steps so far.
    drift : float
        Rounding error of the outputs.
    """

    def __init__(self, dual: SingleOutput, start: FloatArray | None) -> None:
        self.dual, self.n_steps = dual, 0
        self._n_in_vain, self._least = 0, np.inf
        self._slope = slope_of(dual.prior)
        self.multipliers = feasible(dual, start)
        self._size = int(np.clip(_SHARE * len(dual.rows), _SMALLEST, _LARGEST))
        self._block: IntArray = np.empty(0, dtype=np.intp)
        self.refresh()

    def refresh(self) -> None:
        """Compute outputs afresh, without the rounding of many updates."""
        self.outputs = self.dual.outputs(self.multipliers)
        self.pulls, self.curvatures = self.dual.pulls(self.multipliers)
        self.drift = 0.0

    def ends(self) -> _Ends:
        """Return the derivatives and the bias."""
        dual = self.dual
        derivatives = self.pulls - self.outputs[dual.rows]
        rise, fall = dual.movable(self.multipliers)
        ends = np.stack([derivatives, derivatives])
        ends[0, ~rise], ends[1, ~fall] = -np.inf, np.inf
        free = rise & fall
        if free.any():
            stiffness = dual.diagonal[free] + self.curvatures[free] + _TINY
            bias = float(np.average(derivatives[free], weights=1.0 / stiffness))
        else:
            limits = np.array([ends[0].max(), ends[1].min()])
            bias = float(np.mean(limits[np.isfinite(limits)]))
        return _Ends(ends - bias, self._ease(derivatives - bias, bias), bias)

    def _ease(self, derivatives: FloatArray, bias: float) -> FloatArray:
        """Return by how much steps along the axes change outputs, per derivative."""
        dual = self.dual
        if self._slope is None:
            return np.ones(len(dual.rows))
        # Far from the optimum the curvature at a multiplier says little about the way
        # to the one that its margin asks for: from close to the bound, it is too large.
        wanted = dual.wanted(self.outputs + bias)
        way = np.abs(wanted - self.multipliers)
        curvatures = self.curvatures.copy()
        far = way > _FAR * wanted
        curvatures[far] = np.abs(derivatives[far]) / way[far]
        return (dual.diagonal + _TINY) / (dual.diagonal + curvatures + _TINY)

    def improve(self, ends: _Ends, aim: float, max_iter: int) -> bool:
        """Solve a block of constraints; return whether anything has changed."""
        dual, multipliers = self.dual, self.multipliers
        self._n_in_vain = 0 if ends.violation < self._least else self._n_in_vain + 1
        self._least = min(self._least, ends.violation)
        last = self._block
        free = (multipliers[last] > 0.0) & (multipliers[last] < dual.upper[last])
        block = ends.block(last[free], self._size)
        parts = (multipliers, dual.upper, dual.signs, dual.weights)
        found, n_steps = solve_block(
            dual.gram.block(dual.rows[block]),
            ends.derivatives[:, block],
            ends.ease[block],
            Box(*(part[block] for part in parts)),
            self._slope,
            max(0.5 * aim, _INNER * ends.violation),
            min(_STEPS * len(block), max_iter - self.n_steps),
        )
        changed = np.flatnonzero(found != multipliers[block])
        moved = block[changed]
        signed = dual.signs[moved] * (found[changed] - multipliers[moved])
        step = dual.gram.combined(*_by_row(dual.rows[moved], signed))
        # From here on nothing takes long: an interrupt hardly comes in between.
        self._block, self.n_steps = block, self.n_steps + n_steps
        self.multipliers[block] = found
        self.outputs += step
        self.pulls[moved], self.curvatures[moved] = dual.pulls(multipliers, moved)
        # Rounding errors of sums over parts of the rows, each in the kernel's precision.
        rounding = 4.0 * dual.gram.precision * float(np.linalg.norm(signed))
        self.drift = float(np.hypot(self.drift, rounding))
        return n_steps > 0

    def goes_on(self, max_iter: int) -> bool:
        """Return whether steps are left, and have been of use."""
        return self.n_steps < max_iter and self._n_in_vain < _PATIENCE

    def unfinished(self) -> KernelSolution:
        """Return the multipliers as they are, with outputs free of rounding errors."""
        self.refresh()
        return self.found(self.ends(), converged=False)

    def found(self, ends: _Ends, converged: bool) -> KernelSolution:
        """Return the multipliers with their bias, value and gap."""
        found = self.dual.solution(self.multipliers, self.outputs, ends.bias)
        return replace(found, converged=converged)


def _by_row(rows: IntArray, signed: FloatArray) -> tuple[IntArray, FloatArray]:
    """Add up the weights of the two sides of a row."""
    distinct, inverse = np.unique(rows, return_inverse=True)
    totals = np.bincount(inverse, signed, len(distinct))
    return distinct, totals.astype(np.float64, copy=False)


def feasible(dual: SingleOutput, start: FloatArray | None) -> FloatArray:
    """Return multipliers near the start that are within bounds and in balance."""
    multipliers = dual.within_bounds(start)
    totals = [float(multipliers[dual.signs == sign].sum()) for sign in (1.0, -1.0)]
    for sign, total in zip((1.0, -1.0), totals, strict=True):
        if total > min(totals):
            multipliers[dual.signs == sign] *= min(totals) / total
    return multipliers
