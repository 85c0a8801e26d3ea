"""Training of regressors by maximum entropy discrimination: targets within tubes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import Rows
from hybridmix.families.conjugates import Conjugate
from hybridmix.med.constraints import TargetSides
from hybridmix.med.machines import RatioMachine
from hybridmix.med.models.families import ClassFamilies, LogRatio, flat_prior
from hybridmix.training.machines import (
    MachineOptions,
    TrainedMachine,
    UnknownTargets,
    ascended,
    of_ascent,
    train_machine,
)


@dataclass(frozen=True)
class TargetRows:
    """Training rows of one target.

    Attributes
    ----------
    features : ndarray, csr_array or Rows
        The rows.
    targets : ndarray of shape (n,)
        NaN for rows without a target.
    weights : ndarray of shape (n,)
        Sample weights, positive.
    """

    features: Any
    targets: FloatArray
    weights: FloatArray

    def __getitem__(self, rows: BoolArray | IntArray) -> TargetRows:
        return TargetRows(self.features[rows], self.targets[rows], self.weights[rows])

    @property
    def unknown(self) -> BoolArray:
        """Which rows have no target."""
        return np.isnan(self.targets)

    def moments(self) -> tuple[float, float]:
        """Return mean and variance of the targets that are known."""
        known = ~self.unknown
        targets, weights = self.targets[known], self.weights[known]
        mean = float(np.average(targets, weights=weights))
        return mean, float(np.average((targets - mean) ** 2, weights=weights))


TrainTarget: TypeAlias = Callable[[TargetRows], TrainedMachine]


@dataclass(frozen=True)
class TubeFunctions:
    """How linear and kernel functions are trained on a target.

    Attributes
    ----------
    options : MachineOptions
        Of a machine.
    unlabelled_weight : float
        What a row without a target counts, compared with one that has it.
    """

    options: MachineOptions
    unlabelled_weight: float

    def __call__(self, rows: TargetRows) -> TrainedMachine:
        """Train on rows; targets that are missing are normal, like those observed."""
        unknown, targets, weights = rows.unknown, rows.targets, rows.weights
        if not unknown.any():
            asked = TargetSides(targets, weights)
            return train_machine(rows.features, asked, self.options)
        mean, variance = rows.moments()
        asked = TargetSides(
            np.where(unknown, mean, targets),
            weights * np.where(unknown, self.unlabelled_weight, 1.0),
        )
        prior = UnknownTargets(unknown, variance)
        return train_machine(rows.features, asked, self.options, prior)


@dataclass(frozen=True)
class TubeRatios:
    r"""How log ratios of two densities are trained on a target.

    .. math:: f(x) = s \log \frac{p(x \mid \theta_+)}{p(x \mid \theta_-)} + b

    with the standard deviation :math:`s` of the targets, since a log ratio has no unit.
    A priori both densities are that of the table, so that the function is constant.

    Attributes
    ----------
    options : MachineOptions
        Of the dual.
    conjugate : Conjugate
        Kind of the priors.
    strength : float
        What a row counts in the priors.
    """

    options: MachineOptions
    conjugate: Conjugate
    strength: float

    def __call__(self, rows: TargetRows) -> TrainedMachine:
        """Train on rows that have a target."""
        encoded: Rows = rows.features
        mean, variance = rows.moments()
        scale = float(np.sqrt(variance)) or 1.0
        standard = (rows.targets - mean) / scale
        members = np.stack([rows.weights, rows.weights])
        pseudo_rows = self.strength * float(rows.weights.sum())
        prior = flat_prior(self.conjugate, encoded, members, pseudo_rows)
        model = ClassFamilies(self.conjugate, encoded, prior, self.options.inclusion)
        # In standard deviations of the target, C and the tube are C s and epsilon / s.
        margins = self.options.prior
        units = replace(
            margins,
            C=margins.C * scale,
            epsilon=margins.epsilon / scale,  # type: ignore[call-arg, attr-defined]
        )
        ascent = ascended(
            LogRatio(model),
            TargetSides(standard, rows.weights),
            replace(self.options, prior=units),
        )
        densities = ascent.point.tilted.posterior
        machine = RatioMachine(densities, scale, mean + scale * ascent.point.bias)
        inclusion = densities.inclusion if self.options.inclusion < 1.0 else None
        return of_ascent(ascent, machine, inclusion)
