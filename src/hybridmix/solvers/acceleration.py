"""Leaps of EM: where its last two steps would lead if it went on like that."""

from __future__ import annotations

from typing import Generic, cast

import numpy as np

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.exceptions import UnsupportedError
from hybridmix.solvers.base import M

# The first steps of EM decide which maximum it ends at: no leaps before a step gains less
# than this per row.
_SETTLED = 1e-2
# A shorter leap leads hardly further than the steps it is made of.
_SHORTEST = 1.01
# The longest leap at first, and how it changes with what becomes of leaps of this length.
_LONGEST = 4.0
_GROWTH = 4.0


class Leaps(Generic[M]):
    r"""SQUAREM (Varadhan and Roland 2008), for groups that converge one by one.

    Let :math:`\theta_1` and :math:`\theta_2` be what EM makes of :math:`\theta_0` in one
    and two steps, :math:`r = \theta_1 - \theta_0` the first step, and
    :math:`v = (\theta_2 - \theta_1) - r` how the second one differs from it. A leap is

    .. math:: \theta_0 + 2 \alpha r + \alpha^2 v, \qquad \alpha = \|r\| / \|v\|,

    which is :math:`\theta_2` if :math:`\alpha = 1`. Differences and lengths are those of
    the coordinates of the model, which are white around :math:`\theta_0`.

    Every group has its own length. A leap is to be refused if it lowers the value below
    that of :math:`\theta_1`; the group then goes on from :math:`\theta_2`.

    Parameters
    ----------
    start : Model
        Where EM begins.
    weights : ndarray of shape (G,)
        Sums of the sample weights of the groups.
    learn_class_prior : bool
        Whether class probabilities are learned.
    are_wanted : bool
        Whether to leap at all.

    Attributes
    ----------
    under_way : ndarray of bool, shape (G,)
        Groups whose model that is to be assessed next is a leap.
    fallback : Model
        What is to be assessed after a leap that was refused.
    """

    def __init__(
        self,
        start: M,
        weights: FloatArray,
        learn_class_prior: bool,
        are_wanted: bool,
    ) -> None:
        self._weights = weights
        self._learn_class_prior = learn_class_prior
        self._are_possible = (
            are_wanted
            and start.offers("coordinates")
            and (len(weights) == 1 or start.offers("with_class_models"))
        )
        self._lengths = np.ones(len(weights))
        self._longest = np.full(len(weights), _LONGEST)
        self._before = start
        self._has_before = np.zeros(len(weights), dtype=bool)
        self.under_way = np.zeros(len(weights), dtype=bool)
        self.fallback = start

    def note(self, refused: BoolArray) -> None:
        """Allow longer leaps where one of full length succeeded, shorter ones elsewhere.

        The mask (G,) says which of the groups that have leapt are worse off.
        """
        is_full = self.under_way & ~refused & (self._lengths == self._longest)
        shorter = np.maximum(_LONGEST, self._longest / _GROWTH)
        self._longest = np.where(refused, shorter, self._longest)
        self._longest[is_full] *= _GROWTH

    def following(
        self, model: M, updated: M, gains: FloatArray, may_leap: BoolArray
    ) -> M:
        """Return what to assess next: the model after a plain step, or leaps beyond it.

        Parameters
        ----------
        model : Model
            What was assessed last.
        updated : Model
            What a plain step makes of it.
        gains : ndarray of shape (G,)
            By how much it rose, per row.
        may_leap : ndarray of bool, shape (G,)
            Groups where the plain step starts from a model that is kept.
        """
        if not self._are_possible:
            return updated
        is_settled = ~self.under_way & (gains >= 0.0) & (gains < _SETTLED)
        leaping = may_leap & self._has_before & is_settled
        leaps = self._leaps(np.flatnonzero(leaping).tolist(), model, updated)
        self.under_way = np.zeros_like(leaping)
        self.under_way[list(leaps)] = True
        self._has_before = may_leap & ~self.under_way
        self._before, self.fallback = model, updated
        if not leaps:
            return updated
        return leaps[0] if len(self._weights) == 1 else updated.with_class_models(leaps)

    def _leaps(self, groups: list[int], model: M, updated: M) -> dict[int, M]:
        """Return the models of the groups that leap, and note the lengths."""
        leaps = {}
        try:
            for group in groups:
                steps = [self._own(m, group) for m in (self._before, model, updated)]
                leap = self._leap(group, *steps)
                if leap is not None:
                    leaps[group] = leap
        except UnsupportedError:  # coordinates without a way from models to vectors
            self._are_possible = False
        return leaps

    def _own(self, model: M, group: int) -> M:
        return model if len(self._weights) == 1 else model.of_class(group)

    def _leap(self, group: int, before: M, model: M, updated: M) -> M | None:
        frame = before.coordinates(self._weights[group], self._learn_class_prior)
        # The model before is at zero.
        first = frame.vector(model)
        change = frame.vector(updated) - 2.0 * first
        size = float(np.linalg.norm(change))
        length = float(np.linalg.norm(first)) / size if size > 0.0 else 1.0
        length = min(length, self._longest[group])
        if not length > _SHORTEST:
            return None
        self._lengths[group] = length
        place = np.clip(2.0 * length * first + length**2 * change, *frame.bounds())
        return cast(M, frame.at(place).model).within_bounds()
