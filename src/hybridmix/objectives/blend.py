"""Sums of objectives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_instance, require_number
from hybridmix._scratch import empty
from hybridmix._typing import FloatArray, IntArray
from hybridmix.objectives.base import Objective


@registered
@dataclass(frozen=True)
class Blend(Objective):
    r"""A generative objective plus a discriminative one: the hybrid objective.

    .. math:: f(\theta) + \lambda\, g(\theta)

    Parameters
    ----------
    first, second : Objective
        :math:`f`, mostly the likelihood, and :math:`g`.
    tradeoff : float
        :math:`\lambda`.
    """

    first: Objective
    second: Objective
    tradeoff: float

    def check_consistent(self) -> None:
        """Raise ValueError unless it blends two objectives."""
        require_instance("a part of the objective", self.first, Objective)
        require_instance("a part of the objective", self.second, Objective)
        require_number("tradeoff", self.tradeoff, 0.0)

    @property
    def needs_rivals(self) -> bool:  # type: ignore[override]
        """Whether either looks at rivals."""
        return self.first.needs_rivals or self.second.needs_rivals

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether either has negative weights."""
        return self.first.signed or self.second.signed

    @property
    def parts(self) -> tuple[str, ...]:  # type: ignore[override]
        """The terms of both, those of the second times the tradeoff."""
        return self.first.parts + self.second.parts

    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        values, weights = self.first.values_and_weights(log_joint, labels)
        more_values, more_weights = self.second.values_and_weights(log_joint, labels)
        total = np.multiply(more_weights, self.tradeoff, out=empty(log_joint.shape))
        total += weights
        return np.concatenate([values, self.tradeoff * more_values]), total

    def of_units(self, lengths: IntArray) -> Objective:
        return replace(
            self,
            first=self.first.of_units(lengths),
            second=self.second.of_units(lengths),
        )
