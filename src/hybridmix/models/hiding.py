"""A mixture of rows and targets that sees every row twice: with its targets and without.

This is what makes the conditional likelihood of targets an objective like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.data.targets import TargetPlaces
from hybridmix.families.base import Prepared
from hybridmix.models.base import Evaluation, Model, ModelCoordinates, ModelPoint
from hybridmix.models.mixture import Mixture, MixtureEvaluation
from hybridmix.models.statistics import MixtureStatistics


class SeenAndHidden(NamedTuple):
    """Prepared rows, with and without their targets."""

    seen: Prepared
    hidden: Prepared


@dataclass(frozen=True, eq=False)
class TargetModel(Model[SeenAndHidden, MixtureStatistics]):
    r"""The joint density of rows and targets, next to the density of the rows alone.

    Its log joint densities have two lines, :math:`\log p(x, y)` and :math:`\log p(x)`.
    Both are exact marginals of one mixture, whatever else is missing. Where a row has no
    target, they are the same.

    Attributes
    ----------
    mixture : Mixture
        Of rows and targets; it has one class.
    places : TargetPlaces
        Where the targets stand.
    """

    mixture: Mixture
    places: TargetPlaces

    @property
    def n_classes(self) -> int:
        """Number of lines: targets seen, targets hidden."""
        return 2

    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation."""
        seen, hidden = self._views(observed)
        return self.mixture.width(seen) + self.mixture.width(hidden)

    def _views(self, observed: BoolArray | None) -> tuple[BoolArray, BoolArray]:
        """Return masks (d, n) of the real cells of rows with targets, and without."""
        if observed is None:
            observed = np.ones((max(self.places.real) + 1, 1), dtype=bool)
        hidden = observed.copy()
        hidden[list(self.places.real)] = False
        return observed, hidden

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared row occupies."""
        return 2 * self.mixture.kept_width(observed)

    def work(self, observed: BoolArray | None = None) -> int:
        """Return about how many multiplications the evaluation of a row takes."""
        seen, hidden = self._views(observed)
        return self.mixture.work(seen) + self.mixture.work(hidden)

    def prepare(self, rows: Rows) -> SeenAndHidden:
        """Rearrange rows with their targets, and without them."""
        prepare = self.mixture.prepare
        return SeenAndHidden(prepare(rows), prepare(self.places.hidden(rows)))

    def evaluate(self, prepared: SeenAndHidden) -> TargetEvaluation:
        """Evaluate both log densities."""
        seen, hidden = map(self.mixture.evaluate, prepared)
        log_joint = np.concatenate([seen.log_joint, hidden.log_joint])
        return TargetEvaluation(log_joint, seen, hidden)

    def zero_statistics(self) -> MixtureStatistics:
        """Return the statistics of no rows."""
        return self.mixture.zero_statistics()

    def coordinates(
        self, n_rows: float, learn_class_prior: bool = True
    ) -> TargetCoordinates:
        """Return the coordinates of the mixture."""
        return TargetCoordinates(self, n_rows)

    def log_prior_density(self) -> float:
        """Return the log density of the priors of the component parameters."""
        return self.mixture.log_prior_density()


@dataclass(frozen=True)
class TargetEvaluation(Evaluation[MixtureStatistics]):
    """Log densities of rows with their targets and without them, (2, n)."""

    log_joint: FloatArray
    seen: MixtureEvaluation
    hidden: MixtureEvaluation

    def statistics(self, weights: FloatArray) -> MixtureStatistics:
        """Pull signed weights (2, n) back: the statistics of both views add up."""
        total = self.seen.model.zero_statistics()
        total.add(self.seen.statistics(weights[:1]))
        total.add(self.hidden.statistics(weights[1:]))
        return total


class TargetCoordinates(ModelCoordinates[MixtureStatistics]):
    """The coordinates of the mixture of a `TargetModel`."""

    def __init__(self, start: TargetModel, n_rows: float) -> None:
        self.places = start.places
        self._mixture = start.mixture.coordinates(n_rows, learn_class_prior=False)
        self.size = self._mixture.size

    def at(self, vector: FloatArray) -> TargetPoint:
        """Return the model that a vector stands for."""
        own = self._mixture.at(vector)
        return TargetPoint(TargetModel(own.model, self.places), own)

    def vector(self, model: Model) -> FloatArray:
        """Return the vector that stands for a model of the same shape."""
        assert isinstance(model, TargetModel), "it has the shape of the start"
        return self._mixture.vector(model.mixture)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector."""
        return self._mixture.bounds()


@dataclass(frozen=True)
class TargetPoint(ModelPoint[MixtureStatistics]):
    """A `TargetModel`, and the way back for gradients."""

    model: TargetModel
    mixture: ModelPoint[MixtureStatistics]

    def gradient(self, statistics: MixtureStatistics) -> FloatArray:
        """Pull the gradient of a value, given by its statistics, back to the vector."""
        return self.mixture.gradient(statistics)

    def prior_gradient(self) -> FloatArray:
        """Return the gradient of the log density of the priors."""
        return self.mixture.prior_gradient()
