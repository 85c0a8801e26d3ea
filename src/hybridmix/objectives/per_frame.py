"""Objectives of sequences that do not grow with their length."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybridmix._registered import registered
from hybridmix._require import require_instance, require_number
from hybridmix._typing import FloatArray, IntArray
from hybridmix.models.calibration import per_frame_scales
from hybridmix.objectives.base import Objective


@registered
@dataclass(frozen=True)
class PerFrame(Objective):
    r"""An objective of log joint densities that are divided by a power of the length.

    .. math:: g\big( \kappa_n \log p(x_n, \cdot),\, y_n \big), \qquad
              \kappa_n = T_n^{-\rho}

    The frames of a sequence depend on each other more than a model says, so that log
    joint densities of long sequences are overconfident by far. With them, discriminative
    terms would see no difference between sequences that are told apart well and barely.

    Parameters
    ----------
    term : Objective
        :math:`g`.
    power : float
        :math:`\rho`; 1 for log densities per frame, 0 for those of whole sequences.
    scales : ndarray of shape (n,) or None
        :math:`\kappa_n` of the sequences at hand, which `of_units` sets; None for one.
    """

    term: Objective
    power: float = 1.0
    scales: FloatArray | None = None

    def check_consistent(self) -> None:
        """Raise ValueError unless it holds an objective and a power."""
        require_instance("the term", self.term, Objective)
        require_number("power", self.power, 0.0)

    @property
    def needs_rivals(self) -> bool:  # type: ignore[override]
        """Whether the term looks at rivals."""
        return self.term.needs_rivals

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether the term has negative weights."""
        return self.term.signed

    @property
    def parts(self) -> tuple[str, ...]:  # type: ignore[override]
        """The terms of the term."""
        return self.term.parts

    def of_units(self, lengths: IntArray) -> Objective:
        return replace(self, scales=per_frame_scales(lengths, self.power))

    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        if self.scales is None:
            return self.term.values_and_weights(log_joint, labels)
        scaled = log_joint * self.scales
        values, weights = self.term.values_and_weights(scaled, labels)
        return values, weights * self.scales
