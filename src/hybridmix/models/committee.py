"""Several mixtures that vote on the class of a row, next to one that is its density."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from hybridmix._logsumexp import class_posterior
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
    r"""A density of rows, and class probabilities that mixtures agree on.

    .. math:: p(x, c) = p_0(x) \sum_m s_m\, p_m(c \mid x)

    The density :math:`p_0` is one mixture. Every member :math:`m` is another one, with
    its own calibration, of which only the class probabilities count. For a row with
    holes, each of the factors is an exact marginal; their product is not the marginal of
    the joint density above.

    Attributes
    ----------
    density : Mixture
        Where densities, fills and new rows come from.
    members : tuple of Mixture
        What is asked for the class.
    shares : ndarray of shape (M,)
        How much each member counts; they sum to one.
    temperatures, uniform_shares : ndarray of shape (M,)
        Calibrations of the members.
    """

    density: Mixture
    members: tuple[Mixture, ...]
    shares: FloatArray
    temperatures: FloatArray
    uniform_shares: FloatArray

    def check_consistent(self) -> None:
        """Raise ValueError unless all mixtures have the same classes, and shares sum."""
        require_instance("density", self.density, Mixture)
        require_instance("members", self.members, tuple)
        require(len(self.members) > 0, "there are no members")
        layout = self.density.family.layout()
        for member in self.members:
            require_instance("members", member, Mixture)
            same = member.n_classes == self.n_classes
            require(same, "members have other classes than the density")
            same = member.family.layout() in (None, layout)
            require(same, "members have other columns than the density")
        shape = (len(self.members),)
        require_array("shares", self.shares, shape, positive=True)
        require(bool(np.isclose(self.shares.sum(), 1.0)), "shares do not sum to one")
        require_array("temperatures", self.temperatures, shape, positive=True)
        require_array("uniform_shares", self.uniform_shares, shape)
        are_shares = bool(np.all((0 <= self.uniform_shares) & (self.uniform_shares < 1)))
        require(are_shares, "uniform_shares are not shares")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.density.n_classes

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of all mixtures."""
        return sum(mixture.n_parameters for mixture in (self.density, *self.members))

    def voters(self) -> Iterator[tuple[Mixture, float, Calibration]]:
        """Yield the members with their shares and calibrations."""
        numbers = (self.shares, self.temperatures, self.uniform_shares)
        columns = zip(self.members, *(array.tolist() for array in numbers), strict=True)
        for member, share, temperature, uniform_share in columns:
            yield member, share, Calibration(temperature, uniform_share)

    # Evaluation -----------------------------------------------------------------------

    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation."""
        widest = max(m.width(observed) for m in (self.density, *self.members))
        return widest + 3 * self.n_classes

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared row occupies."""
        return self.density.kept_width(observed)

    @property
    def work(self) -> int:
        """About how many multiplications the evaluation of a row takes."""
        return sum(mixture.work for mixture in (self.density, *self.members))

    def prepare(self, rows: Rows) -> Rows:
        """Return the rows: every mixture prepares them when its turn comes."""
        return rows

    def evaluate(self, prepared: Rows) -> CommitteeEvaluation:
        """Evaluate the log joint densities of rows."""
        log_density, _ = class_posterior(_log_joint(self.density, prepared))
        votes = np.full((self.n_classes, prepared.n_rows), -np.inf)
        for member, share, calibration in self.voters():
            vote = calibration.log_probabilities(_log_joint(member, prepared))
            vote += np.log(share)
            np.logaddexp(votes, vote, out=votes)
        votes += log_density
        return CommitteeEvaluation(votes)

    def marginal(self, real: list[int], codes: list[int]) -> Committee:
        """Return the committee over some of the columns: every mixture's own marginal."""
        return replace(
            self,
            density=self.density.marginal(real, codes),
            members=tuple(member.marginal(real, codes) for member in self.members),
        )

    def zero_statistics(self) -> NoReturn:
        """Refuse: a committee is not trained."""
        raise UnsupportedError(self, "statistics", _NOT_TRAINED)

    def coordinates(self, n_rows: float, learn_class_prior: bool = True) -> NoReturn:
        """Refuse: a committee is not trained."""
        raise UnsupportedError(self, "coordinates", _NOT_TRAINED)


@dataclass(frozen=True)
class CommitteeEvaluation(Evaluation[MixtureStatistics]):
    """The log joint densities of some rows."""

    log_joint: FloatArray

    def statistics(self, weights: FloatArray) -> NoReturn:
        """Refuse: a committee is not trained."""
        raise UnsupportedError(self, "statistics", _NOT_TRAINED)


def _log_joint(mixture: Mixture, rows: Rows) -> FloatArray:
    return mixture.evaluate(mixture.prepare(rows)).log_joint
