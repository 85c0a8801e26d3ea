r"""Linear models by Newton's method in the primal.

The margin prior makes the hinge smooth, so that no constraint is left: weights and biases
minimise a convex function with a second derivative almost everywhere. Its minimum and the
maximum of the dual are the same number, and their difference says when to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hybridmix._typing import FloatArray
from hybridmix.med.block_matrix import BlockMatrix
from hybridmix.med.constraints import Constraints
from hybridmix.med.margins import LossTerms, MarginPrior
from hybridmix.med.models.linear import outputs_of, statistics
from hybridmix.med.solvers.hinge import Loss, RoundedHinge
from hybridmix.med.solvers.line_search import Line, minimise_along
from hybridmix.med.solvers.linear_gap import Certificate, certify, mismatch
from hybridmix.med.solvers.linear_systems import LinearSystems

# Widths of rounded hinges: the first one and one for a start near the solution, times the
# mean distance from the corner; from one to the next.
_FIRST, _WARM, _NARROWER = 2.0, 0.1, 0.2
# The last one on the way to a smooth prior, times the smoothness. Tables with this many
# rows per column need them less: few rows may be separated, and multipliers far below C
# are where smooth priors take the most steps.
_TALL, _LAST_OF_TALL, _LAST = 10, 300.0, 10.0
# How exactly they are minimised if they only lead to a start.
_ROUGH = 1e-2


@dataclass(frozen=True)
class LinearSolution:
    r"""Weights of a linear model, and how good they are.

    Attributes
    ----------
    coef : ndarray of shape (C, p)
        Expected weight vectors.
    bias : ndarray of shape (C,)
        Expected biases.
    multipliers : ndarray of shape (R,)
        Feasible multipliers; they are balanced if biases are flat.
    value : float
        The primal objective at `coef` and `bias`.
    gap : float
        `value` minus the dual objective at `multipliers`: no weights have a value that
        is lower by more than this.
    n_iter : int
        Steps of Newton's method.
    converged : bool
        Whether the gap is at most the tolerance times `value`.
    interrupted : bool
        Whether it was stopped from the keyboard.
    """

    coef: FloatArray
    bias: FloatArray
    multipliers: FloatArray
    value: float
    gap: float
    n_iter: int
    converged: bool
    interrupted: bool


def newton(
    X: FloatArray | sparse.csr_array | BlockMatrix,
    constraints: Constraints,
    prior: MarginPrior,
    bias_variance: float,
    *,
    tol: float = 1e-4,
    max_iter: int = 500,
    start: LinearSolution | None = None,
) -> LinearSolution:
    r"""Minimise the primal objective of a linear model.

    .. math:: \tfrac12 \sum_c \lVert w_c \rVert^2 + \sum_c \frac{b_c^2}{2 \sigma^2}
              + \sum_r \omega_r\, \ell(m_r - o_r)

    with the margins :math:`m` of outputs :math:`w X^\top + b`, and weights
    :math:`\omega` and offsets :math:`o` of the constraints.

    Where the prior has little smoothness, or none, problems with a `RoundedHinge` lead
    there, narrower and narrower. Without any smoothness they go on until the gap of the
    hinge itself is small enough.

    Parameters
    ----------
    X : ndarray of float64, csr_array or BlockMatrix of shape (n, p)
        Rows.
    constraints : Constraints
        What is asked of the outputs.
    prior : MarginPrior
        Of the margins.
    bias_variance : float
        :math:`\sigma^2`: 0 for no biases, infinite for flat ones.
    tol : float
        Largest gap relative to the primal objective.
    max_iter : int
        Most steps of Newton's method.
    start : LinearSolution or None
        Where to begin; None for weights of 0.
    """
    search = _Search(LinearSystems(X, constraints, bias_variance), prior, start)
    interrupted = False
    try:
        search.run(tol, max_iter)
    except KeyboardInterrupt:
        interrupted = True
    found = search.certificate()
    return LinearSolution(
        coef=np.ascontiguousarray(search.weights[:, :-1]),
        bias=search.weights[:, -1].copy(),
        multipliers=found.multipliers,
        value=found.value,
        gap=found.gap,
        n_iter=search.n_iter,
        converged=found.gap <= tol * found.value,
        interrupted=interrupted,
    )


class _Place(NamedTuple):
    """The primal at some weights.

    Attributes
    ----------
    value : float
        The objective, with the present loss.
    multipliers, curvature : ndarray of shape (R,)
        Minus the slopes and second derivatives of the losses, with their weights.
    gradient : ndarray of shape (C, p + 1)
        Derivatives by weights and biases.
    apart : float
        The part of the gap that is due to the gradient, without flat biases.
    """

    value: float
    multipliers: FloatArray
    curvature: FloatArray
    gradient: FloatArray
    apart: float


class _Search:
    """Weights on their way to the minimum.

    Attributes
    ----------
    weights : ndarray of shape (C, p + 1)
        Weight vectors, biases last.
    margins : ndarray of shape (R,)
        Their margins, less the offsets.
    loss : Loss
        What is minimised at present.
    n_iter : int
        Steps so far.
    """

    def __init__(
        self, systems: LinearSystems, prior: MarginPrior, start: LinearSolution | None
    ) -> None:
        self.systems, self.prior, self.asked = systems, prior, systems.constraints
        self.n_iter = 0
        self.weights = np.zeros((self.asked.n_outputs, systems.X.shape[1] + 1))
        if start is not None:
            self.weights[:, :-1], self.weights[:, -1] = start.coef, start.bias
        self.margins = self._margins(self.weights) - self.asked.offsets
        # The slope at 0 is the margin from which on there is no loss.
        self.corner = float(prior.dual(np.zeros(1)).slope[0])
        typical = float(np.mean(np.abs(self.corner - self.margins))) or 1.0
        self.width = typical * (_FIRST if start is None else _WARM)
        self.loss: Loss = prior
        if prior.smoothness == 0.0:
            self.loss = RoundedHinge(prior.C, self.corner, self.width)
        self._certified: Certificate | None = None

    def run(self, tol: float, max_iter: int) -> None:
        """Minimise until the relative gap is at most the tolerance."""
        if self._has_gap(tol):
            return
        smoothness, C = self.prior.smoothness, self.prior.C
        if smoothness == 0.0:
            self._narrow(tol, max_iter)
            return
        if np.isfinite(self.prior.upper):
            n, p = self.systems.X.shape
            last = _LAST_OF_TALL if n > _TALL * p else _LAST
            self._narrow(_ROUGH, max_iter, last * smoothness / C)
        self.loss = self.prior

        def is_enough(place: _Place) -> bool:
            return place.apart <= tol * place.value and self._has_gap(tol)

        self._descend(is_enough, max_iter)

    def certificate(self) -> Certificate:
        """Return objective and gap at the weights, with the prior itself."""
        if self._certified is None:
            multipliers = self.asked.weights * self.loss.loss(self.margins).multipliers
            self._certified = certify(
                self.systems, self.prior, self.weights, self.margins, multipliers
            )
        return self._certified

    def _has_gap(self, tol: float) -> bool:
        found = self.certificate()
        return found.gap <= tol * found.value

    def _narrow(self, tol: float, max_iter: int, least: float = 0.0) -> None:
        """Minimise rounded hinges until the gap of the hinge is small enough.

        For a smooth prior they only lead to a start; they end where they are as narrow
        as the smoothness of the prior.
        """
        exact = self.prior.smoothness == 0.0
        least = max(least, 1e-14 * self.width)

        def is_enough(place: _Place) -> bool:
            allowed = tol * place.value
            if exact:
                allowed = max(allowed, self._mismatch(place))
            return place.apart <= 0.25 * allowed

        centre: FloatArray | float = 0.0
        while self.n_iter < max_iter and self.width > least:
            self.loss = RoundedHinge(self.prior.C, self.corner, self.width, centre)
            place = self._descend(is_enough, max_iter)
            if exact and self._has_gap(tol):
                return
            centre = place.multipliers / (self.prior.C * self.asked.weights)
            self.width *= _NARROWER

    def _mismatch(self, place: _Place) -> float:
        return mismatch(self.systems, self.prior, self.margins, place.multipliers)

    # Steps ----------------------------------------------------------------------

    def _descend(self, is_enough: Callable[[_Place], bool], max_iter: int) -> _Place:
        """Take steps, at least one, until it is enough or they lead nowhere."""
        place = self._place(self.loss.loss(self.margins))
        while self.n_iter < max_iter:
            before, place = place, self._step(place)
            stuck = place.value >= before.value - 1e-14 * abs(before.value)
            if is_enough(place) or (stuck and place.apart >= 0.5 * before.apart):
                break
        return place

    def _place(self, terms: LossTerms) -> _Place:
        """Evaluate the primal at the weights, where losses are known."""
        own, variance = self.asked.weights, self.systems.bias_variance
        coef, bias = self.weights[:, :-1], self.weights[:, -1]
        multipliers = own * terms.multipliers
        signed = self.asked.signed(multipliers)
        gradient = np.zeros_like(self.weights)
        gradient[:, :-1] = coef - statistics(self.systems.X, signed)
        value = 0.5 * float(np.vdot(coef, coef)) + float(np.sum(own * terms.value))
        apart = 0.5 * float(np.sum(gradient[:, :-1] ** 2))
        if variance > 0.0:
            gradient[:, -1] = bias / variance - signed.sum(axis=1)
            value += 0.5 * float(bias @ bias) / variance
        if 0.0 < variance < np.inf:
            apart += 0.5 * variance * float(np.sum(gradient[:, -1] ** 2))
        return _Place(value, multipliers, own * terms.curvature, gradient, apart)

    def _step(self, place: _Place) -> _Place:
        """Move to the minimum along Newton's direction."""
        relative = place.apart / max(place.value, place.apart, np.finfo(float).tiny)
        accuracy = float(np.clip(np.sqrt(relative), 1e-3, 0.1))
        direction = -self.systems.solve(place.curvature, place.gradient, accuracy)
        precision = np.ones(self.weights.shape[1])
        variance = self.systems.bias_variance
        precision[-1] = 1.0 / variance if variance > 0.0 else 0.0
        line = Line(
            self.margins,
            self._margins(direction),
            slope=float(np.sum(precision * self.weights * direction)),
            curvature=float(np.sum(precision * direction**2)),
        )
        found = minimise_along(line, self.loss, self.asked.weights)
        self._certified = None
        self.weights = self.weights + found.step * direction
        self.margins = found.margins
        self.n_iter += 1
        return self._place(found.terms)

    def _margins(self, weights: FloatArray) -> FloatArray:
        outputs = outputs_of(self.systems.X, weights[:, :-1])
        return self.asked.margins(outputs + weights[:, -1:])
