"""Unconstrained coordinates of mixtures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.families.base import Point
from hybridmix.models.base import Model, ModelCoordinates, ModelPoint
from hybridmix.models.statistics import MixtureStatistics

if TYPE_CHECKING:
    from hybridmix.models.mixture import Mixture


class MixtureCoordinates(ModelCoordinates[MixtureStatistics]):
    """The family's coordinates, then logits of proportions and of class probabilities.

    The logits of the class probabilities are there only if these are to be learned.

    Parameters
    ----------
    start : Mixture
        Stands at zero.
    counts : ndarray of shape (J,)
        Row counts of its components; a step of a logit is one over their square root.
    learn_class_prior : bool
        Whether class probabilities are free.
    """

    def __init__(
        self, start: Mixture, counts: FloatArray, learn_class_prior: bool = True
    ) -> None:
        self._start = start
        self._family = start.family.coordinates(start.components, counts)
        self.learn_class_prior = learn_class_prior
        self.mixing_step = 1.0 / np.sqrt(np.maximum(counts, 1.0))
        class_counts = np.add.reduceat(counts, start.offsets[:-1])
        self.class_step = 1.0 / np.sqrt(np.maximum(class_counts, 1.0))
        self._ends = np.cumsum([self._family.size, start.n_components])
        self.size = int(self._ends[-1]) + (start.n_classes if learn_class_prior else 0)

    def at(self, vector: FloatArray) -> MixturePoint:
        """Return the mixture that a vector stands for."""
        by_family, by_mixing, by_class = np.split(vector, self._ends)
        start = self._start
        log_mixing = start.log_mixing + by_mixing * self.mixing_step
        for own in map(start.part, range(start.n_classes)):
            log_mixing[own] -= np.logaddexp.reduce(log_mixing[own])
        log_class_prior = start.log_class_prior
        if self.learn_class_prior:
            log_class_prior = log_class_prior + by_class * self.class_step
            log_class_prior = log_class_prior - np.logaddexp.reduce(log_class_prior)
        point = self._family.at(by_family)
        model = replace(
            start,
            components=point.parameters,
            log_mixing=log_mixing,
            log_class_prior=log_class_prior,
        )
        return MixturePoint(self, model, point)

    def vector(self, model: Model) -> FloatArray:
        """Return the vector that stands for a mixture of the same shape."""
        mixture: Mixture = model  # type: ignore[assignment]
        start = self._start
        parts = [
            self._family.vector(mixture.components),
            (mixture.log_mixing - start.log_mixing) / self.mixing_step,
        ]
        if self.learn_class_prior:
            moved = mixture.log_class_prior - start.log_class_prior
            parts.append(moved / self.class_step)
        return np.concatenate(parts)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector."""
        lower, upper = super().bounds()
        own = slice(0, self._ends[0])
        lower[own], upper[own] = self._family.bounds()
        return lower, upper


@dataclass(frozen=True)
class MixturePoint(ModelPoint[MixtureStatistics]):
    """A mixture, and the way back for gradients.

    Attributes
    ----------
    coordinates : MixtureCoordinates
        Where the vector lives.
    model : Mixture
        What it stands for.
    family : Point
        Its part that concerns the components.
    """

    coordinates: MixtureCoordinates
    model: Mixture
    family: Point

    def gradient(self, statistics: MixtureStatistics) -> FloatArray:
        """Pull the gradient of a value, given by its statistics, back to the vector."""
        model, counts = self.model, statistics.counts
        class_counts = np.add.reduceat(counts, model.offsets[:-1])
        shares = class_counts[model.class_of] * np.exp(model.log_mixing)
        parts = [
            self.family.gradient(statistics.components),
            (counts - shares) * self.coordinates.mixing_step,
        ]
        if self.coordinates.learn_class_prior:
            expected = class_counts.sum() * np.exp(model.log_class_prior)
            parts.append((class_counts - expected) * self.coordinates.class_step)
        return np.concatenate(parts)

    def prior_gradient(self) -> FloatArray:
        """Return the gradient of the log density of the priors."""
        own = self.family.prior_gradient()
        return np.concatenate([own, np.zeros(self.coordinates.size - len(own))])
