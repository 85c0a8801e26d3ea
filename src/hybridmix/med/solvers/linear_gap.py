r"""The duality gap of a linear model: how far from the minimum it can be at most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.med.margins import MarginPrior
from hybridmix.med.models.linear import statistics
from hybridmix.med.solvers.linear_systems import LinearSystems

# A multiplier equal to its bound has no likelihood left under a smooth prior.
_BELOW = 1.0 - 2.0**-51


class Certificate(NamedTuple):
    """Primal and dual at weights and multipliers.

    Attributes
    ----------
    multipliers : ndarray of shape (R,)
        Within the bounds, and balanced if biases are flat.
    value : float
        The primal objective.
    gap : float
        By how much it exceeds the dual objective.
    """

    multipliers: FloatArray
    value: float
    gap: float


def certify(
    systems: LinearSystems,
    prior: MarginPrior,
    weights: FloatArray,
    margins: FloatArray,
    multipliers: FloatArray,
) -> Certificate:
    r"""Return primal, dual and feasible multipliers near the given ones.

    With vectors :math:`v` and totals :math:`t` of the signed multipliers, the gap is
    a sum of terms none of which is negative,

    .. math:: \sum_r w_r \big[ \ell(m_r) - g(\lambda_r / w_r) \big] + \lambda_r m_r
              + \tfrac12 \lVert w - v \rVert^2
              + \frac{\lVert b - \sigma^2 t \rVert^2}{2 \sigma^2},

    where the last one is 0 if biases are flat, since multipliers are balanced then. If
    they cannot be, or if that is better, multipliers of 0 take their place: the gap is
    the primal objective.

    Parameters
    ----------
    systems : LinearSystems
        Rows, constraints and the prior of the biases.
    prior : MarginPrior
        Of the margins.
    weights : ndarray of shape (C, p + 1)
        Weight vectors, biases last.
    margins : ndarray of shape (R,)
        Their margins, less the offsets.
    multipliers : ndarray of shape (R,)
        Multipliers within their bounds, not balanced.
    """
    asked, variance = systems.constraints, systems.bias_variance
    upper = prior.upper * np.asarray(asked.weights)
    if prior.smoothness > 0.0:
        multipliers = np.minimum(multipliers, _BELOW * upper)
    if variance == np.inf:
        multipliers = balanced(systems, multipliers, upper)
    signed = asked.signed(multipliers)
    vectors = statistics(systems.X, signed)
    coef, bias = weights[:, :-1], weights[:, -1]
    lost = float(np.sum(asked.weights * prior.loss(margins).value))
    smoothing = mismatch(systems, prior, margins, multipliers)
    apart = 0.5 * float(np.sum((coef - vectors) ** 2))
    penalty = 0.5 * float(np.sum(coef**2))
    if 0.0 < variance < np.inf:
        penalty += 0.5 * float(bias @ bias) / variance
        apart += 0.5 * float(
            np.sum((bias - variance * signed.sum(axis=1)) ** 2) / variance
        )
    value, gap = penalty + lost, smoothing + apart
    if gap >= value:  # multipliers of 0 have a dual objective of 0
        return Certificate(np.zeros_like(multipliers), value, value)
    return Certificate(multipliers, value, gap)


def mismatch(
    systems: LinearSystems,
    prior: MarginPrior,
    margins: FloatArray,
    multipliers: FloatArray,
) -> float:
    """Return the part of the gap due to multipliers that are not those of the margins."""
    own = systems.constraints.weights
    lost, likely = prior.loss(margins).value, prior.dual(multipliers / own).value
    # Rounding may leave something negative.
    return max(float(np.sum(own * (lost - likely) + multipliers * margins)), 0.0)


def balanced(
    systems: LinearSystems, multipliers: FloatArray, upper: FloatArray
) -> FloatArray:
    r"""Return multipliers near the given ones whose signed totals are 0.

    Each one moves in proportion to its room :math:`\lambda (1 - \lambda / C)`.
    """
    asked = systems.constraints
    room = multipliers * (1.0 - multipliers / upper)
    balances = [systems.balance(output) for output in range(asked.n_outputs)]
    moves = np.array([asked.signed(room * own).sum(axis=1) for own in balances])
    found = multipliers
    for _ in range(2):  # the second time for what rounding has left
        totals = asked.signed(found).sum(axis=1)
        slopes = np.linalg.lstsq(moves, totals, rcond=1e-12)[0]
        shift = sum(slope * own for slope, own in zip(slopes, balances, strict=True))
        found = found - room * shift
    totals = asked.signed(found).sum(axis=1)
    outside = np.any(found < 0.0) or np.any(found > upper)
    if outside or np.abs(totals).max() > 1e-12 * np.abs(multipliers).sum():
        return np.zeros_like(multipliers)
    return found
