r"""The dual of one output of a kernel model, as vectors over its constraints.

A constraint :math:`r` belongs to a row :math:`i_r` and has a sign :math:`s_r`: that of a
label, or of a side of a target. With :math:`a_r = s_r \lambda_r`, outputs are
:math:`f = K a` summed over the constraints of a row, and the derivative by :math:`a_r` is

.. math:: d_r = s_r \big( g'(\lambda_r / w_r) + o_r \big) - f_{i_r} - b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.med.constraints import Constraints
from hybridmix.med.gram import KernelMatrix
from hybridmix.med.margins import MarginPrior

# Tolerances are tightened by this factor until the gap is met, but not below this part.
TIGHTER, TIGHTEST = 0.3, 1e-6
# A start leaves this part of the way to a bound that a smooth prior keeps off.
_OFF = 1e-12


@dataclass(frozen=True)
class KernelSolution:
    """Multipliers of a kernel model with one output, and how good they are.

    Attributes
    ----------
    multipliers : ndarray of shape (R,)
        One per constraint.
    bias : float
        Expected bias of the output.
    value : float
        The dual objective.
    gap : float
        Primal minus dual objective: no multipliers have a value that is higher than
        `value` by more than this.
    n_iter : int
        Number of steps.
    converged : bool
        Whether the optimality conditions and the gap met the tolerance.
    interrupted : bool
        Whether the user stopped it; it is the best so far then.
    """

    multipliers: FloatArray
    bias: float
    value: float
    gap: float
    n_iter: int
    converged: bool
    interrupted: bool

    @property
    def relative_gap(self) -> float:
        """The gap as a part of the primal objective."""
        primal = abs(self.value + self.gap)
        return self.gap / primal if primal > 0.0 else self.gap


class SingleOutput:
    """Vectors over the constraints of one output.

    Parameters
    ----------
    gram : KernelMatrix
        Of the training rows.
    constraints : Constraints
        Of one output.
    prior : MarginPrior
        Of the margins.

    Attributes
    ----------
    signs : ndarray of shape (R,)
        1 and -1.
    rows : ndarray of int, shape (R,)
        The row that a constraint belongs to.
    weights, offsets, upper : ndarray of shape (R,)
        Sample weights, offsets and bounds of the multipliers.
    diagonal : ndarray of shape (R,)
        Kernel values of the rows with themselves.
    """

    def __init__(
        self, gram: KernelMatrix, constraints: Constraints, prior: MarginPrior
    ) -> None:
        if constraints.n_outputs != 1:
            raise ValueError(
                "Steps along axes solve problems of one output; this one has "
                f"{constraints.n_outputs}."
            )
        self.gram, self.constraints, self.prior = gram, constraints, prior
        n, shape = constraints.n_rows, constraints.n_constraints
        self.signs: FloatArray = constraints.margins(np.ones((1, n)))
        places = constraints.margins(np.arange(n, dtype=float)[None])
        self.rows: IntArray = (self.signs * places).astype(np.intp)
        self.weights = np.broadcast_to(np.asarray(constraints.weights, float), shape)
        self.offsets = np.broadcast_to(np.asarray(constraints.offsets, float), shape)
        self.upper: FloatArray = prior.upper * self.weights
        self.diagonal: FloatArray = gram.diagonal[self.rows]

    def within_bounds(self, start: FloatArray | None) -> FloatArray:
        """Return multipliers to start with: those given as far as bounds allow, or 0."""
        if start is None:
            return np.zeros(len(self.rows))
        part = 1.0 if self.prior.smoothness == 0.0 else 1.0 - _OFF
        return np.clip(start, 0.0, part * self.upper)

    def outputs(self, multipliers: FloatArray) -> FloatArray:
        """Return the outputs (n,) without bias."""
        return (self.gram @ self.constraints.signed(multipliers).T)[:, 0]

    def pulls(
        self, multipliers: FloatArray, at: IntArray | slice = slice(None)
    ) -> tuple[FloatArray, FloatArray]:
        """Return the part of the derivatives that outputs are taken from, and curvatures.

        Curvatures are minus the second derivatives of the terms of the margin prior.
        """
        terms = self.prior.dual(multipliers[at] / self.weights[at])
        pulls = self.signs[at] * (terms.slope + self.offsets[at])
        return pulls, terms.curvature / self.weights[at]

    def movable(self, multipliers: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Return which signed multipliers may rise, and which may fall."""
        above, below = multipliers > 0.0, multipliers < self.upper
        positive = self.signs > 0.0
        return np.where(positive, below, above), np.where(positive, above, below)

    def wanted(self, outputs: FloatArray) -> FloatArray:
        """Return the multipliers (R,) that margins of outputs with bias ask for."""
        margins = self.signs * outputs[self.rows] - self.offsets
        return self.weights * self.prior.loss(margins).multipliers

    def solution(
        self,
        multipliers: FloatArray,
        outputs: FloatArray,
        bias: float,
        bias_cost: float = 0.0,
    ) -> KernelSolution:
        """Return value and gap at multipliers whose outputs and bias are known.

        `bias_cost` is the log-partition of the bias, 0 for a flat prior.
        """
        margins = self.signs * (outputs[self.rows] + bias) - self.offsets
        likely = self.weights * self.prior.dual(multipliers / self.weights).value
        lost = self.weights * self.prior.loss(margins).value
        signed = self.constraints.signed(multipliers)[0]
        value = float(np.sum(likely + self.offsets * multipliers) - bias_cost)
        value -= 0.5 * float(signed @ outputs)
        gap = max(float(np.sum(lost - likely + multipliers * margins)), 0.0)
        return KernelSolution(multipliers, bias, value, gap, 0, False, False)
