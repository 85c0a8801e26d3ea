"""M-steps of mixtures that are damped by the mixture at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.families.base import Family, Parameters, Statistics
from hybridmix.models.statistics import MixtureStatistics

if TYPE_CHECKING:
    from hybridmix.models.mixture import Mixture

# Doubling more often than this leaves the model where it is, in double precision.
_MOST_DOUBLINGS = 60
# So does more damping than this, of proportions next to nothing.
_MOST_DAMPING = 1e200


def damped_mixture(
    model: Mixture, statistics: MixtureStatistics, factor: float, shared: bool
) -> tuple[Parameters, FloatArray, FloatArray]:
    """Return components, log proportions and log class probabilities after a step.

    Parameters
    ----------
    model : Mixture
        The mixture at hand.
    statistics : MixtureStatistics
        Signed statistics of the rows.
    factor : float
        Multiplies the smallest damping that leaves a density.
    shared : bool
        Whether all components have the same damping; proportions then follow the robust
        derivative of Pernkopf and Wohlmayr (2010).
    """
    components, damping = damped_components(
        model.family, model.components, statistics.components, factor, shared
    )
    if shared:
        return components, *_robust_proportions(model, statistics, float(damping[0]))
    return components, *_damped_proportions(model, statistics, factor)


def damped_components(
    family: Family,
    components: Parameters,
    statistics: Statistics,
    factor: float,
    shared: bool = False,
) -> tuple[Parameters, FloatArray]:
    """Return components after a damped step, and their damping (J,).

    See `damped_mixture` for the parameters.
    """
    damping = factor * _least_damping(family, components, statistics, shared)
    damped = family.expected_statistics(components, damping)
    damped.add(statistics)
    return family.maximise(damped), damping


def _least_damping(
    family: Family, components: Parameters, statistics: Statistics, shared: bool
) -> FloatArray:
    """Double the damping of each component until its statistics are of a density."""
    damping = np.ones(components.n_components)
    for _ in range(_MOST_DOUBLINGS):
        damped = family.expected_statistics(components, damping)
        damped.add(statistics)
        improper = ~family.proper(damped)
        if not improper.any():
            break
        damping[slice(None) if shared else improper] *= 2.0
    return damping


def _damped_proportions(
    model: Mixture, statistics: MixtureStatistics, factor: float
) -> tuple[FloatArray, FloatArray]:
    """Return log proportions of components and classes, damped like the components."""
    log_mixing = np.empty_like(model.log_mixing)
    for own in map(model.part, range(model.n_classes)):
        log_mixing[own] = damped_logs(
            model.log_mixing[own], statistics.counts[own], factor
        )
    class_counts = np.add.reduceat(statistics.counts, model.offsets[:-1])
    return log_mixing, damped_logs(model.log_class_prior, class_counts, factor)


def damped_logs(logs: FloatArray, counts: FloatArray, factor: float) -> FloatArray:
    """Return log proportions after a step that is damped by them.

    Parameters
    ----------
    logs : ndarray of shape (M,)
        Log proportions.
    counts : ndarray of shape (M,)
        Signed counts.
    factor : float
        Multiplies the smallest damping that leaves no proportion negative.
    """
    shares = np.exp(logs)
    # The smallest damping that leaves no share negative, and no less than one row.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        damping = factor * max(1.0, 2.0 * float(np.nanmax(-counts / shares)))
    if damping > _MOST_DAMPING:
        return logs
    mixed = counts + damping * shares
    return np.log(mixed / mixed.sum())


def _robust_proportions(
    model: Mixture, statistics: MixtureStatistics, damping: float
) -> tuple[FloatArray, FloatArray]:
    """Return log proportions of components and classes, by the robust derivative."""
    positive = statistics.positive
    negative = positive - statistics.counts
    log_mixing = np.empty_like(model.log_mixing)
    for own in map(model.part, range(model.n_classes)):
        log_mixing[own] = _robust_logs(
            model.log_mixing[own], damping, positive[own], negative[own]
        )
    by_class = [
        np.add.reduceat(part, model.offsets[:-1]) for part in (positive, negative)
    ]
    return log_mixing, _robust_logs(model.log_class_prior, damping, *by_class)


def _robust_logs(
    logs: FloatArray, damping: float, positive: FloatArray, negative: FloatArray
) -> FloatArray:
    tiny = np.finfo(float).tiny
    slope = positive / max(positive.sum(), tiny) - negative / max(negative.sum(), tiny)
    # The slope is at least -1; a damping of one would leave no room.
    mixed = np.exp(logs) * (slope + max(damping, 1.0 + 1e-6))
    return np.log(mixed / mixed.sum())
