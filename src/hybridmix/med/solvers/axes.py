r"""Steps along one axis at a time: the dual of a kernel model with a Gaussian bias.

A bias that is normal a priori adds its variance to the kernel, and leaves multipliers
without a common constraint: each of them can be maximised on its own (Jebara 2004,
appendix). The derivative by a signed multiplier is strictly falling along its axis, so
that its root, or a bound, is the only maximum; for the exponential margin prior it is the
smaller root of

.. math:: A \lambda^2 - \big(A C + l + \tfrac{\tau}{C} - G\big) \lambda
          + C (l - G) = 0,

with :math:`A` the diagonal entry of the kernel, and :math:`G` the margin that all other
multipliers make.

Which axis comes next is a choice. The greedy one needs the derivatives of all axes,
which a step updates anyway. Others are drawn at random, or follow what was learned about
axes that gained much after the current one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.constraints import Constraints
from hybridmix.med.gram import KernelMatrix
from hybridmix.med.margins import MarginPrior
from hybridmix.med.solvers.single_output import (
    TIGHTER,
    TIGHTEST,
    KernelSolution,
    SingleOutput,
)
from hybridmix.med.solvers.slopes import slope_of
from hybridmix.med.solvers.steps import Variable, axis_step
from hybridmix.progress import announce

# Share of random axes among the learned ones, and successors that an axis remembers.
_EXPLORING, _REMEMBERED = 0.2, 8
# How quickly the fit of the decaying gains forgets.
_FORGETTING = 0.01


def maximise_by_axes(
    gram: KernelMatrix,
    constraints: Constraints,
    prior: MarginPrior,
    *,
    bias_variance: float,
    bias_mean: float = 0.0,
    choice: str = "greedy",
    tol: float = 1e-3,
    max_iter: int = 10_000_000,
    start: FloatArray | None = None,
    random_state: int = 0,
) -> KernelSolution:
    """Maximise the dual of a kernel model with one output and a Gaussian bias.

    Parameters
    ----------
    gram : KernelMatrix
        Kernel matrix of the training rows.
    constraints : Constraints
        Signed rows, or sides of targets.
    prior : MarginPrior
        Of the margins.
    bias_variance, bias_mean : float
        Of the bias a priori; a variance of 0 is an output without a bias.
    choice : {"greedy", "random", "learned"}
        Which axis comes next.
    tol : float
        Largest derivative that is left, and largest duality gap relative to the primal
        objective. Both are to be met.
    max_iter : int
        Largest number of steps.
    start : ndarray of shape (R,), default=None
        Multipliers to begin with.
    random_state : int
        Seed of the random choices.

    Returns
    -------
    solution : KernelSolution
    """
    dual = SingleOutput(gram, constraints, prior)
    state = _State(dual, bias_variance, bias_mean, start)
    chooser = _CHOICES[choice](state, np.random.default_rng(random_state))
    found, interrupted, aim, n_steps = None, False, tol, 0
    # Looking at all axes costs as much as a step: others than the greedy choice do so
    # once per round.
    round_length = 1 if choice == "greedy" else len(dual.rows)
    try:
        while n_steps < max_iter:
            violations = state.violations()
            largest = float(np.max(np.abs(violations)))
            if largest <= aim:
                settled = state.found(largest <= tol)
                if settled.relative_gap <= tol or aim < TIGHTEST * tol:
                    found = settled
                    break
                aim *= TIGHTER
                continue
            n_more = min(round_length, max_iter - n_steps)
            _take_steps(state, chooser, violations, n_more, aim)
            n_steps += n_more
            if n_steps % len(dual.rows) == 0:
                announce("axes", n_steps, max_iter, f"violation {largest:.2g}")
    except KeyboardInterrupt:
        interrupted = True
    found = found or state.found(False)
    met = found.converged and found.relative_gap <= tol
    return replace(found, n_iter=n_steps, converged=met, interrupted=interrupted)


def _take_steps(
    state: _State, chooser: _Choice, violations: FloatArray, n_steps: int, aim: float
) -> None:
    for _ in range(n_steps):
        axis = chooser.next(violations)
        chooser.note(axis, state.maximise(axis, aim))


class _State:
    """Multipliers, and the outputs that they make, with the bias."""

    def __init__(
        self, dual: SingleOutput, variance: float, mean: float, start: FloatArray | None
    ) -> None:
        self.dual, self.variance, self.mean = dual, variance, mean
        self.multipliers = dual.within_bounds(start)
        self.diagonal = dual.diagonal + variance
        self._slope = slope_of(dual.prior)
        self.refresh()

    def refresh(self) -> None:
        """Compute outputs and derivatives of the terms afresh."""
        total = float(self.dual.signs @ self.multipliers)
        self.outputs = self.dual.outputs(self.multipliers)
        self.outputs += self.mean + self.variance * total
        self.pulls, self.curvatures = self.dual.pulls(self.multipliers)

    def violations(self) -> FloatArray:
        """Return the derivatives by signed multipliers, 0 where a bound is in the way."""
        derivatives = self.pulls - self.outputs[self.dual.rows]
        rise, fall = self.dual.movable(self.multipliers)
        derivatives[~rise] = np.minimum(derivatives[~rise], 0.0)
        derivatives[~fall] = np.maximum(derivatives[~fall], 0.0)
        return derivatives

    def maximise(self, axis: int, aim: float) -> float:
        """Go to the maximum along an axis; return roughly what was gained."""
        dual, row = self.dual, int(self.dual.rows[axis])
        variable = Variable(
            float(self.multipliers[axis]),
            float(dual.upper[axis]),
            float(dual.signs[axis]),
            float(dual.weights[axis]),
        )
        diagonal, derivative = (
            float(self.diagonal[axis]),
            float(self.pulls[axis] - self.outputs[row]),
        )
        before = variable.lam
        step = axis_step(variable, derivative, diagonal, self._slope, aim)
        variable.move(step, self._slope is not None)
        if variable.lam == before:
            return 0.0
        signed = variable.sign * (variable.lam - before)
        self.outputs += signed * dual.gram.row(row)
        self.outputs += signed * self.variance
        self.multipliers[axis] = variable.lam
        if self._slope is not None:
            pull, self.curvatures[axis] = variable.pull(self._slope, 0.0)
            self.pulls[axis] = pull + variable.sign * dual.offsets[axis]
        # The derivative falls to zero, or to what is left at a bound.
        left = float(self.pulls[axis] - self.outputs[row])
        return 0.5 * signed * (derivative + left)

    def found(self, converged: bool) -> KernelSolution:
        """Return the multipliers with their bias, value and gap."""
        total = float(self.dual.signs @ self.multipliers)
        bias = self.mean + self.variance * total
        cost = total * self.mean + 0.5 * self.variance * total**2
        outputs = self.dual.outputs(self.multipliers)
        found = self.dual.solution(self.multipliers, outputs, bias, cost)
        return replace(found, converged=converged)


class _Choice:
    """Which axis comes next: any, if nothing better is known."""

    def __init__(self, state: _State, generator: np.random.Generator) -> None:
        self.state, self.generator = state, generator
        self.n_axes = len(state.multipliers)

    def next(self, violations: FloatArray) -> int:
        """Return the next axis; violations are those before the round."""
        return int(self.generator.integers(self.n_axes))

    def note(self, axis: int, gain: float) -> None:
        """Learn from the gain of a step along an axis, or not."""


class _Greedy(_Choice):
    """The axis that gains most by a quadratic model."""

    def next(self, violations: FloatArray) -> int:
        state = self.state
        gains = violations**2 / (state.diagonal + state.curvatures)
        return int(gains.argmax())


class _Learned(_Choice):
    r"""Axes that gained much when they came after the current one.

    Gains decay as :math:`\alpha e^{-\beta t}`, fitted as training goes on; what an axis
    gained is compared with that. Every axis remembers its best successors. One choice
    out of five is random, and so is the choice of an axis that knows of no successor.
    """

    def __init__(self, state: _State, generator: np.random.Generator) -> None:
        super().__init__(state, generator)
        self._successors: list[dict[int, float]] = [{} for _ in range(self.n_axes)]
        self._last: int = 0
        self._decay = _Decay()

    def next(self, violations: FloatArray) -> int:
        known = self._successors[self._last]
        if known and self.generator.random() >= _EXPLORING:
            return max(known, key=known.__getitem__)
        return super().next(violations)

    def note(self, axis: int, gain: float) -> None:
        known = self._successors[self._last]
        benefit = gain - self._decay.expected(gain)
        known.pop(axis, None)
        if benefit > 0.0:
            known[axis] = benefit
            if len(known) > _REMEMBERED:
                del known[min(known, key=known.__getitem__)]
        self._last = axis


class _Decay:
    """An exponential curve through gains as they come, by least squares of logarithms."""

    def __init__(self) -> None:
        self._moments = np.zeros(5)  # weight, t, t^2, log gain, t log gain
        self._time = 0

    def expected(self, gain: float) -> float:
        """Return the gain to be expected now, and learn from the one that was made."""
        self._time += 1
        t = float(self._time)
        if gain > 0.0:
            new = np.array([1.0, t, t * t, np.log(gain), t * np.log(gain)])
            self._moments += _FORGETTING * (new - self._moments)
        weight, s, ss, v, sv = self._moments
        if weight == 0.0:
            return 0.0
        mean, level = s / weight, v / weight
        spread = ss / weight - mean**2
        rate = (sv / weight - mean * level) / spread if spread > 1e-9 * t * t else 0.0
        return float(np.exp(level + min(rate, 0.0) * (t - mean)))


_CHOICES: dict[str, type[_Choice]] = {
    "greedy": _Greedy,
    "random": _Choice,
    "learned": _Learned,
}
