"""Several mixtures that vote on the class of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_instance
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.exceptions import UnsupportedError
from hybridmix.models.base import Evaluation, Model
from hybridmix.models.calibration import Calibration
from hybridmix.models.mixture import Mixture
from hybridmix.models.statistics import MixtureStatistics

_NOT_TRAINED = "Its members are trained one by one."


@registered
@dataclass(frozen=True, eq=False)
class Committee(Model[Rows, MixtureStatistics]):
    r"""Class probabilities that several mixtures agree on.

    .. math:: p(c \mid x) = \sum_m s_m\, p_m(c \mid x)

    Every member :math:`m` is a mixture with its own calibration, of which only the class
    probabilities count. For a row with holes, each of them is an exact marginal; their
    mean is not the marginal of one joint density. A committee knows nothing of
    :math:`p(x)`: its log joint densities are the logarithms of the class probabilities.

    Attributes
    ----------
    members : tuple of Mixture
        What is asked for the class.
    shares : ndarray of shape (M,)
        How much each member counts; they sum to one.
    temperatures, uniform_shares : ndarray of shape (M,)
        Calibrations of the members.
    """

    members: tuple[Mixture, ...]
    shares: FloatArray
    temperatures: FloatArray
    uniform_shares: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless members share their classes, and shares sum to one."""
        require_instance("members", self.members, tuple)
        require(len(self.members) > 0, "there are no members")
        for member in self.members:
            require_instance("members", member, Mixture)
            same = member.n_classes == self.n_classes
            require(same, "members have different classes")
        shape = (len(self.members),)
        require_array("shares", self.shares, shape, positive=True)
        require(bool(np.isclose(self.shares.sum(), 1.0)), "shares do not sum to one")
        require_array("temperatures", self.temperatures, shape, positive=True)
        require_array("uniform_shares", self.uniform_shares, shape)
        are_shares = bool(np.all((self.uniform_shares >= 0) & (self.uniform_shares < 1)))
        require(are_shares, "uniform_shares are not shares")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.members[0].n_classes

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of all members."""
        return sum(member.n_parameters for member in self.members)

    def voters(self) -> Iterator[tuple[Mixture, float, Calibration]]:
        """Yield the members with their shares and calibrations."""
        numbers = (self.shares, self.temperatures, self.uniform_shares)
        columns = zip(self.members, *(array.tolist() for array in numbers), strict=True)
        for member, share, temperature, uniform_share in columns:
            yield member, share, Calibration(temperature, uniform_share)

    # Evaluation -----------------------------------------------------------------------

    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation."""
        widest = max(member.width(observed) for member in self.members)
        return widest + 3 * self.n_classes

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared row occupies."""
        return self.members[0].kept_width(observed)

    def work(self, observed: BoolArray | None = None) -> int:
        """Return about how many multiplications the evaluation of a row takes."""
        return sum(member.work(observed) for member in self.members)

    def prepare(self, rows: Rows) -> Rows:
        """Return the rows: every member prepares them when its turn comes."""
        return rows

    def evaluate(self, prepared: Rows) -> CommitteeEvaluation:
        """Evaluate the log class probabilities of rows."""
        votes = np.full((self.n_classes, prepared.n_rows), -np.inf)
        for member, share, calibration in self.voters():
            evaluation = member.evaluate(member.prepare(prepared))
            vote = calibration.log_probabilities(evaluation.log_joint)
            vote += np.log(share)
            np.logaddexp(votes, vote, out=votes)
        return CommitteeEvaluation(votes)

    def marginal(self, real: list[int], codes: list[int]) -> Committee:
        """Return the committee over some of the columns: every member's own marginal."""
        members = tuple(member.marginal(real, codes) for member in self.members)
        return replace(self, members=members)

    def zero_statistics(self) -> NoReturn:
        """Refuse: a committee is not trained."""
        raise UnsupportedError(self, "statistics", _NOT_TRAINED)

    def coordinates(self, n_rows: float, learn_class_prior: bool = True) -> NoReturn:
        """Refuse: a committee is not trained."""
        raise UnsupportedError(self, "coordinates", _NOT_TRAINED)


@dataclass(frozen=True)
class CommitteeEvaluation(Evaluation[MixtureStatistics]):
    """The log class probabilities of some rows."""

    log_joint: FloatArray

    def statistics(self, weights: FloatArray) -> NoReturn:
        """Refuse: a committee is not trained."""
        raise UnsupportedError(self, "statistics", _NOT_TRAINED)
