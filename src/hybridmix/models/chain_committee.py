"""Several hidden Markov models that vote on the class of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_instance, require_number
from hybridmix._typing import FloatArray, IntArray
from hybridmix.models.calibration import Calibration, per_frame_scales
from hybridmix.models.chains import Chains

# Returns the log joint densities (C, n) of a model.
LogJointOf = Callable[[Chains], FloatArray]


@registered
@dataclass(frozen=True, eq=False)
class ChainCommittee:
    r"""Class probabilities that several hidden Markov models agree on.

    .. math:: p(c \mid x) = \sum_m s_m\, p_m(c \mid x), \qquad
              p_m(c \mid x) \propto p_m(x, c)^{1 / (\tau_m T^{\rho})}

    for a sequence of ``T`` frames, each with a share of equal probabilities mixed in (see
    `Calibration`).

    Attributes
    ----------
    members : tuple of Chains
        What is asked for the class.
    shares : ndarray of shape (M,)
        How much each member counts; they sum to one.
    temperatures, uniform_shares : ndarray of shape (M,)
        Calibrations of the members.
    length_power : float
        :math:`\rho`.
    """

    members: tuple[Chains, ...]
    shares: FloatArray
    temperatures: FloatArray
    uniform_shares: FloatArray
    length_power: float

    def check_consistent(self) -> None:
        """Raise ValueError unless members share their classes, and shares sum to one."""
        require_instance("members", self.members, tuple)
        require(len(self.members) > 0, "there are no members")
        for member in self.members:
            require_instance("a member", member, Chains)
            same = member.n_classes == self.members[0].n_classes
            require(same, "members have different classes")
        shape = (len(self.members),)
        require_array("shares", self.shares, shape, positive=True)
        require(bool(np.isclose(self.shares.sum(), 1.0)), "shares do not sum to one")
        require_array("temperatures", self.temperatures, shape, positive=True)
        require_array("uniform_shares", self.uniform_shares, shape)
        are_shares = bool(np.all((self.uniform_shares >= 0) & (self.uniform_shares < 1)))
        require(are_shares, "uniform_shares are not shares")
        require_number("length_power", self.length_power, 0.0)

    @classmethod
    def of_one(
        cls, model: Chains, calibration: Calibration, length_power: float
    ) -> ChainCommittee:
        """Return the committee whose only member is a model."""
        return cls(
            (model,),
            np.ones(1),
            np.array([calibration.temperature]),
            np.array([calibration.uniform_share]),
            length_power,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.members[0].n_classes

    def log_probabilities(
        self, log_joint_of: LogJointOf, lengths: IntArray
    ) -> FloatArray:
        """Return the log probabilities (C, n) of the classes of sequences.

        Parameters
        ----------
        log_joint_of : callable
            Returns the log joint densities (C, n) of a member.
        lengths : ndarray of shape (n,)
            Numbers of frames that these are of.
        """
        return self.votes(list(map(log_joint_of, self.members)), lengths)

    def votes(self, log_joints: Sequence[FloatArray], lengths: IntArray) -> FloatArray:
        """Return the same from the log joint densities (C, n) of all members."""
        scales = per_frame_scales(lengths, self.length_power)
        votes = []
        for joint, share, temperature, uniform in zip(
            log_joints,
            self.shares,
            self.temperatures,
            self.uniform_shares,
            strict=True,
        ):
            calibration = Calibration(float(temperature), float(uniform))
            own = calibration.log_probabilities(joint * scales)
            votes.append(own + np.log(share))
        return np.logaddexp.reduce(votes, axis=0)
