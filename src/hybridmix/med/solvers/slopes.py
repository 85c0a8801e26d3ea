"""Slopes of the dual terms of margin priors at one multiplier, in plain numbers.

Steps along one or two axes evaluate them one at a time, where calls of NumPy would take
most of the time. They are those of `MarginPrior.dual`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hybridmix.med.margins import (
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
    MarginPrior,
    TubeMargin,
)

# Slope and minus the second derivative at a multiplier.
Slope = Callable[[float], tuple[float, float]]
# Below this product of multiplier and tube, differences of exponentials lose digits.
_SMALL = 1e-2


def slope_of(prior: MarginPrior) -> Slope | None:
    """Return the slope of the dual term of a prior; None if it is constant."""
    if prior.smoothness == 0.0:
        return None
    for kind, make in _SLOPES.items():
        if isinstance(prior, kind):
            return make(prior)
    raise TypeError(
        f"No slope is known for margin priors of type {type(prior).__name__}."
    )


def _exponential(prior: ExponentialMargin) -> Slope:
    tau, C = prior.smoothness, prior.C
    level = prior.mean + tau / C

    def slope(multiplier: float) -> tuple[float, float]:
        inverse = tau / (C - multiplier)
        return level - inverse, inverse * inverse / tau

    return slope


def _laplace(prior: LaplaceMargin) -> Slope:
    tau, C, mean = prior.smoothness, prior.C, prior.mean

    def slope(multiplier: float) -> tuple[float, float]:
        room = (C - multiplier) * (C + multiplier)
        bent = 2.0 * tau * (C * C + multiplier * multiplier) / (room * room)
        return mean - 2.0 * tau * multiplier / room, bent

    return slope


def _gaussian(prior: GaussianMargin) -> Slope:
    variance, mean = prior.smoothness / prior.C**2, prior.mean

    def slope(multiplier: float) -> tuple[float, float]:
        return mean - variance * multiplier, variance

    return slope


def _tube(prior: TubeMargin) -> Slope:
    tau, width = prior.smoothness, prior.epsilon
    c = prior.C / tau

    def slope(multiplier: float) -> tuple[float, float]:
        x = multiplier / tau
        h, h1, h2 = _decay(x, width)
        room = c - x
        q = 1.0 + room * h
        q1 = (room * h1 - h) / q
        q2 = (room * h2 - 2.0 * h1) / q
        bent = (1.0 / (room * room) + q2 - q1 * q1) / tau
        return -width - 1.0 / room - q1, bent

    return slope


def _decay(x: float, width: float) -> tuple[float, float, float]:
    r"""Return :math:`(1 - e^{-\epsilon x}) / x` and its first two derivatives."""
    t = width * x
    if t < _SMALL:
        h = 1 - t / 2 + t**2 / 6 - t**3 / 24 + t**4 / 120
        h1 = -1 / 2 + t / 3 - t**2 / 8 + t**3 / 30 - t**4 / 144
        h2 = 1 / 3 - t / 4 + t**2 / 10 - t**3 / 36 + t**4 / 168
    else:
        e = math.exp(-t)
        h = -math.expm1(-t) / t
        h1 = (e * (1 + t) - 1) / t**2
        h2 = (2 - e * (t**2 + 2 * t + 2)) / t**3
    return width * h, width**2 * h1, width**3 * h2


_SLOPES: dict[type, Callable[..., Slope]] = {
    ExponentialMargin: _exponential,
    LaplaceMargin: _laplace,
    GaussianMargin: _gaussian,
    TubeMargin: _tube,
}
