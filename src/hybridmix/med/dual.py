"""The dual of maximum entropy discrimination, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.constraints import Constraints
from hybridmix.med.margins import MarginPrior
from hybridmix.med.models.base import Tilted, TiltedModel


@dataclass(frozen=True)
class DualPoint:
    """The dual at some multipliers.

    Attributes
    ----------
    multipliers : ndarray of shape (R,)
        Where it is.
    value : float
        The dual objective; minus infinity where the model has no posterior.
    gradient : ndarray of shape (R,)
        Its derivatives.
    curvature : ndarray of shape (R,)
        Minus the second derivatives of the terms of the margin prior.
    expected : ndarray of shape (R,)
        Derivatives of the log-partition of the model: expected margins without biases.
    gap : float
        Primal minus dual objective: no multipliers have a value that is higher than
        `value` by more than this.
    bias : ndarray of shape (C,)
        Expected biases of the outputs.
    tilted : Tilted
        The posterior of the model.
    """

    multipliers: FloatArray
    value: float
    gradient: FloatArray
    curvature: FloatArray
    expected: FloatArray
    gap: float
    bias: FloatArray
    tilted: Tilted


@dataclass(frozen=True)
class Dual:
    r"""The concave function of the multipliers that training maximises.

    .. math:: J(\lambda) = \sum_r \big[ o_r \lambda_r
              + w_r\, g(\lambda_r / w_r) \big] - \log Z(W \lambda)
              - \sum_c \Big[ \beta_c t_c + \tfrac{\sigma^2}{2} t_c^2 \Big], \qquad
              t = \textstyle\sum_n (W \lambda)_{\cdot n}

    with :math:`W` the adjoint of the constraints, and biases that are normal a priori,
    with mean :math:`\beta` and variance :math:`\sigma^2`.

    The primal objective at the same posterior, its divergence from the prior plus the
    losses of its expected margins :math:`m`, exceeds the dual by

    .. math:: \sum_r w_r \big[ \ell(m_r - o_r) - g(\lambda_r / w_r) \big]
              + \lambda_r (m_r - o_r) \ge 0,

    whatever the model is: the duality gap is a sum over constraints.

    Parameters
    ----------
    model : TiltedModel
        The model.
    constraints : Constraints
        What is asked of its outputs.
    prior : MarginPrior
        Of the margins.
    bias_variance : float
        :math:`\sigma^2`; 0 for outputs without a bias.
    bias_mean : ndarray of shape (C,)
        :math:`\beta`.
    """

    model: TiltedModel
    constraints: Constraints
    prior: MarginPrior
    bias_variance: float
    bias_mean: FloatArray

    @property
    def upper(self) -> FloatArray:
        """Bounds of the multipliers (R,)."""
        weights = np.asarray(self.constraints.weights)
        shape = self.constraints.n_constraints
        return np.broadcast_to(self.prior.upper * weights, shape)

    @cached_property
    def balance(self) -> FloatArray:
        """Derivatives (C, R) of the totals of signed weights by the multipliers."""
        asked = self.constraints
        units = np.eye(asked.n_outputs)[:, :, None]
        spread = np.broadcast_to(units, (*units.shape[:2], asked.n_rows))
        return np.stack([asked.margins(outputs) for outputs in spread])

    def at(self, multipliers: FloatArray) -> DualPoint:
        """Return value, gradient and gap at multipliers (R,)."""
        asked, own = self.constraints, self.constraints.weights
        signed = asked.signed(multipliers)
        tilted = self.model.tilted(signed)
        if not np.isfinite(tilted.log_partition):
            lost = np.full(len(multipliers), np.nan)
            return DualPoint(
                multipliers, -np.inf, lost, lost, lost, np.inf, self.bias_mean, tilted
            )
        totals = signed.sum(axis=1)
        bias = self.bias_mean + self.bias_variance * totals
        expected = asked.margins(tilted.outputs)
        margins = expected + bias @ self.balance - asked.offsets
        terms = self.prior.dual(multipliers / own)
        likely = own * terms.value
        value = (
            float(np.sum(likely + asked.offsets * multipliers))
            - tilted.log_partition
            - 0.5 * float(totals @ (bias + self.bias_mean))
        )
        lost = own * self.prior.loss(margins).value
        return DualPoint(
            multipliers,
            value,
            gradient=terms.slope - margins,
            curvature=terms.curvature / own,
            expected=expected,
            gap=max(float(np.sum(lost - likely + multipliers * margins)), 0.0),
            bias=bias,
            tilted=tilted,
        )
