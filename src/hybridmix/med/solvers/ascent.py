r"""Ascent of the dual of any model, by a projected Newton or quasi-Newton method.

Minus the Hessian of the dual is a sum of three parts. The margin prior's is diagonal and
known, and grows without bound towards the bounds of the multipliers. That of the biases
has a low rank and is known. The log-partition's is known where a model has a factor of it
that is small enough, and is estimated elsewhere from differences of gradients, as in
L-BFGS. In either case the sum is a diagonal plus a low rank, and a step costs a small
linear system.

SciPy's L-BFGS-B knows nothing of this structure, and its line search cannot leave a place
where a model has no posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.med.dual import Dual, DualPoint
from hybridmix.progress import announce

# Multipliers stay this far from bounds at which the dual is minus infinity, relatively.
_ROOM = 1e-10
# Steps that the curvature of the log-partition is estimated from.
_MEMORY = 12
# A step must raise the dual by at least this share of what its slope promises.
_RISE = 1e-4
# Shortest step, as a share of the one proposed.
_SHORTEST = 1e-10
# Factors of the curvature have at most this many rows, and numbers.
_FACTOR_ROWS, _FACTOR_SIZE = 600, 1 << 23
# Where the margin prior has no curvature, a share of the largest one takes its place.
_LEAST_CURVATURE = 1e-9
# The first step leads this share of the way to the bounds, or this far without any.
_FIRST = 0.1
# Standard deviation of the prior that stands for a flat bias at first, in mean margins.
# It moves along with the bias, and its variance grows from round to round: a wide one at
# the start would tie the multipliers together while many of them still meet their bounds.
_FLAT, _WIDER = 0.3, 4.0
_BIAS_ROUNDS = 30
# Weights that balance up to this share cannot be balanced further: what is left does not
# show in the gap, by which steps are taken.
_BALANCED = 1e-10


@dataclass(frozen=True)
class Ascent:
    """A maximum of the dual, and how it was reached.

    Attributes
    ----------
    point : DualPoint
        Multipliers, value, gap, biases and posterior.
    n_iter : int
        Number of steps.
    converged : bool
        Whether the relative gap is below the tolerance.
    interrupted : bool
        Whether the user stopped it.
    """

    point: DualPoint
    n_iter: int
    converged: bool
    interrupted: bool


def maximised(
    dual: Dual,
    start: FloatArray | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> Ascent:
    """Maximise the dual until its gap is below a tolerance.

    An infinite `Dual.bias_variance` stands for flat biases: their prior is a wide normal
    distribution that is moved to the posterior, until it stays there.

    Parameters
    ----------
    dual : Dual
        What to maximise.
    start : ndarray of shape (R,) or None
        Multipliers to begin with; None for zero.
    tol : float
        Largest gap between primal and dual, relative to the larger of 1 and the value.
    max_iter : int
        Largest number of steps.
    """
    flat = np.isinf(dual.bias_variance)
    if flat:
        width = _FLAT * max(abs(dual.prior.least), 1e-3)
        dual = replace(dual, bias_variance=width**2)
    climb = _Climb(dual, start, max_iter)
    converged = interrupted = False
    try:
        for _ in range(_BIAS_ROUNDS):
            balanced = max(tol, _BALANCED)
            converged = climb.rise(tol) and not (flat and climb.imbalance() > balanced)
            if not flat or converged or climb.is_stuck:
                break
            climb.widen()
    except KeyboardInterrupt:
        interrupted = True
    return Ascent(climb.point, climb.n_iter, converged, interrupted)


def _size(point: DualPoint) -> float:
    return max(1.0, abs(point.value))


class _Climb:
    """A place on the dual, and what is known of its curvature."""

    def __init__(self, dual: Dual, start: FloatArray | None, max_iter: int) -> None:
        self.dual, self.n_iter, self.is_stuck = dual, 0, False
        barrier = dual.prior.smoothness > 0.0
        self._upper = dual.upper * (1.0 - _ROOM) if barrier else dual.upper
        zero = np.zeros(dual.constraints.n_constraints)
        self.point = dual.at(zero)
        self._memory = _Memory(len(zero))
        n_factors = dual.model.factor_size
        self._has_factor = n_factors is not None and (
            n_factors <= min(_FACTOR_ROWS, len(zero))
            and n_factors * len(zero) <= _FACTOR_SIZE
        )
        self._max_iter = max_iter
        if start is not None:
            self._jump(np.clip(start, 0.0, self._upper))

    def _jump(self, multipliers: FloatArray) -> None:
        """Go somewhere else, if the model has a posterior there."""
        found = self.dual.at(multipliers)
        if np.isfinite(found.value):
            self._memory.learn(self.point, found)
            self.point = found

    def imbalance(self) -> float:
        """Return how far the multipliers are from those of a flat bias, relatively."""
        totals = (self.point.bias - self.dual.bias_mean) / self.dual.bias_variance
        cost = float(np.sum(np.abs(totals) * (1.0 + np.abs(self.point.bias))))
        return cost / _size(self.point)

    def widen(self) -> None:
        """Move the prior of the biases to where they are, and make it wider."""
        self.dual = replace(
            self.dual,
            bias_mean=self.point.bias,
            bias_variance=_WIDER * self.dual.bias_variance,
        )
        self.point = self.dual.at(self.point.multipliers)

    def rise(self, tol: float) -> bool:
        """Go up until the gap is small; return whether it is."""
        while self.point.gap > tol * _size(self.point):
            self.is_stuck = self.n_iter >= self._max_iter or not self._step()
            if self.is_stuck:
                return False
            self.n_iter += 1
            note = f"value {self.point.value:.6g}, gap {self.point.gap:.2g}"
            announce("multipliers", self.n_iter, self._max_iter, note)
        return True

    def _step(self) -> bool:
        """Take one step; return whether there was one to take."""
        point, free = self.point, self._free()
        for direction in self._directions(free):
            found = self._search(direction)
            if found is not None:
                self._memory.learn(point, found)
                self.point = found
                return True
            self._memory.forget()
        return False

    def _free(self) -> BoolArray:
        """Return which multipliers are not held by a bound."""
        here, gradient = self.point.multipliers, self.point.gradient
        held = ((here <= 0.0) & (gradient <= 0.0)) | (
            (here >= self._upper) & (gradient >= 0.0)
        )
        return ~held

    def _directions(self, free: BoolArray) -> list[FloatArray]:
        """Return where to go: by the curvature, or else by the slope alone."""
        point = self.point
        gradient = np.where(free, point.gradient, 0.0)
        steepest = float(np.abs(gradient).max())
        if steepest == 0.0:
            return []
        reach = np.where(np.isfinite(self._upper), self._upper, 1.0)
        plain = gradient * (_FIRST * reach / steepest)
        if not (self._has_factor or len(self._memory)):
            return [plain]
        newton = np.zeros_like(gradient)
        newton[free] = self._curvature().solve(point.gradient, free)
        return [newton, plain]

    def _curvature(self) -> LowRank:
        """Return minus the Hessian of the dual, as far as it is known."""
        dual, point = self.dual, self.point
        if self._has_factor:
            factor = dual.model.factor(point.tilted)
            columns = np.stack([dual.constraints.margins(part) for part in factor])
            known = LowRank(
                np.zeros(len(point.multipliers)), columns, np.eye(len(columns))
            )
        else:
            known = self._memory.curvature()
        if dual.bias_variance > 0.0:
            inner = np.eye(len(dual.balance)) / dual.bias_variance
            known = known.plus(dual.balance, inner)
        return replace(known, diagonal=known.diagonal + point.curvature)

    def _search(self, direction: FloatArray) -> DualPoint | None:
        """Return a higher place along a direction, kept within the bounds."""
        point, share = self.point, 1.0
        while share > _SHORTEST:
            target = np.clip(point.multipliers + share * direction, 0.0, self._upper)
            promised = float(point.gradient @ (target - point.multipliers))
            found = self.dual.at(target)
            rise = found.value - point.value
            if promised > 0.0 and rise >= _RISE * promised:
                return found
            # The parabola through what is known, if it is of any use.
            best = 0.5 * promised / (promised - rise) if promised > rise else 0.0
            share *= min(max(best, 0.1), 0.5)
        return None


class _Memory:
    r"""Curvature of the log-partition, estimated from the last steps.

    .. math:: B = \varsigma I - U M^{-1} U^\top, \qquad U = [\varsigma S, Y], \quad
              M = \begin{bmatrix} \varsigma S^\top S & L \\ L^\top & -D \end{bmatrix}

    with steps :math:`S`, differences :math:`Y` of gradients, and the strictly lower and
    the diagonal part, :math:`L` and :math:`D`, of :math:`S^\top Y`: the compact form of
    Byrd, Nocedal and Schnabel (1994).
    """

    def __init__(self, size: int) -> None:
        self._steps = np.empty((0, size))
        self._rises = np.empty((0, size))

    def __len__(self) -> int:
        return len(self._steps)

    def forget(self) -> None:
        """Drop everything."""
        self._steps, self._rises = self._steps[:0], self._rises[:0]

    def learn(self, before: DualPoint, after: DualPoint) -> None:
        """Keep a step, if the log-partition has a curvature along it."""
        step = after.multipliers - before.multipliers
        rise = after.expected - before.expected
        if float(step @ rise) <= 1e-10 * np.linalg.norm(step) * np.linalg.norm(rise):
            return
        self._steps = np.vstack([self._steps[-_MEMORY + 1 :], step])
        self._rises = np.vstack([self._rises[-_MEMORY + 1 :], rise])

    def curvature(self) -> LowRank:
        """Return the estimate."""
        products = self._steps @ self._rises.T
        slopes = np.diag(products)
        scale = float(np.sum(self._rises[-1] ** 2)) / slopes[-1]
        lower = np.tril(products, -1)
        squares = scale * self._steps @ self._steps.T
        inner = -np.block([[squares, lower], [lower.T, -np.diag(slopes)]])
        columns = np.vstack([scale * self._steps, self._rises])
        return LowRank(np.full(self._steps.shape[1], scale), columns, inner)


@dataclass(frozen=True)
class LowRank:
    r"""A diagonal plus a matrix of low rank, :math:`D + V^\top N^{-1} V`.

    Attributes
    ----------
    diagonal : ndarray of shape (R,)
        D.
    columns : ndarray of shape (q, R)
        V.
    inner : ndarray of shape (q, q)
        N.
    """

    diagonal: FloatArray
    columns: FloatArray
    inner: FloatArray

    def plus(self, columns: FloatArray, inner: FloatArray) -> LowRank:
        """Add another matrix of low rank."""
        return LowRank(
            self.diagonal,
            np.vstack([self.columns, columns]),
            block_diag(self.inner, inner),
        )

    def solve(self, right: FloatArray, free: BoolArray) -> FloatArray:
        """Solve the system of some of the rows and columns, by Woodbury's identity."""
        diagonal, columns = self.diagonal[free], self.columns[:, free]
        inverse = 1.0 / np.maximum(diagonal, _LEAST_CURVATURE * diagonal.max(initial=1.0))
        scaled = columns * inverse
        first = right[free] * inverse
        system = self.inner + scaled @ columns.T
        try:
            small = np.linalg.solve(system, columns @ first)
        except np.linalg.LinAlgError:
            small = np.linalg.lstsq(system, columns @ first, rcond=None)[0]
        return first - small @ scaled
