r"""Latent maximum entropy discrimination: margins between mixtures, by bounds.

Class :math:`c` has :math:`K_c` components with outputs :math:`s_k(x)`, and the score
:math:`S_c(x) = \log \sum_k e^{s_k(x)}`. A margin :math:`S_y(x) - S_c(x)` is not linear in
the outputs. Two bounds make it so: for probabilities :math:`q` of the components of the
label, with entropy :math:`H(q)`, and a rival class :math:`c`,

.. math:: S_y \ge \sum_k q_k s_k + H(q), \qquad
          S_c \le \max_j s_j + \log K_c.

So a row has a margin if it has one over *every* component :math:`j` of every rival class:

.. math:: \sum_k q_k s_k(x) - s_j(x) \;\ge\; \gamma - H(q) + \log K_c.

Jensen's bound is tight where :math:`q` are the posteriors of the components, so that
training alternates: outputs for fixed posteriors, and posteriors of these outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from scipy.special import entr

from hybridmix._logsumexp import grouped_logsumexp
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.med.constraints import Constraints


@dataclass(frozen=True)
class Components:
    """Which components belong to which class.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of components (C,), at least 1. Those of a class are neighbours.
    """

    sizes: tuple[int, ...]

    @property
    def total(self) -> int:
        """J, the number of components of all classes."""
        return sum(self.sizes)

    @cached_property
    def classes(self) -> IntArray:
        """The class number of each component, (J,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def own(self, labels: IntArray) -> BoolArray:
        """Return whether components belong to the labels of rows, (J, n)."""
        return self.classes[:, None] == labels

    def class_scores(self, outputs: FloatArray) -> FloatArray:
        """Return log-sum-exps (C, n) of the outputs (J, n) over components."""
        offsets = tuple(accumulate(self.sizes, initial=0))
        return grouped_logsumexp(outputs.copy(), offsets)[0]

    def posteriors(
        self, outputs: FloatArray, labels: IntArray, temperature: float = 1.0
    ) -> FloatArray:
        """Return probabilities (J, n) of the components of each row's label.

        Parameters
        ----------
        outputs : ndarray of shape (J, n)
            Outputs of the components.
        labels : ndarray of shape (n,)
            Class numbers.
        temperature : float
            What outputs are divided by: the higher, the more equal the probabilities.
        """
        logs = np.where(self.own(labels), outputs / temperature, -np.inf)
        shares = np.exp(logs - logs.max(axis=0))
        return shares / shares.sum(axis=0)


class LatentRivals(Constraints):
    """One output per component; the label's mean output exceeds each rival's.

    Margins are without the entropies and logarithms, which are the offsets. There is one
    for each pair of a component and a row of another class, by components first.

    Parameters
    ----------
    posteriors : ndarray of shape (J, n)
        Probabilities of the components of each row's label; 0 for other components.
    labels : ndarray of shape (n,)
        Class numbers.
    components : Components
        Of all classes.
    weights : ndarray of shape (n,)
        Sample weights.
    """

    def __init__(
        self,
        posteriors: FloatArray,
        labels: IntArray,
        components: Components,
        weights: FloatArray,
    ) -> None:
        self.posteriors = posteriors
        self.n_outputs, self.n_rows = posteriors.shape
        self._rivals = np.flatnonzero(~components.own(labels))
        self.n_constraints = len(self._rivals)
        logs = np.log(np.array(components.sizes, dtype=float))[components.classes]
        reduced = logs[:, None] - entr(posteriors).sum(axis=0)
        self.offsets = reduced.ravel()[self._rivals]
        self.weights = weights[self.rows]

    @property
    def rows(self) -> IntArray:
        return self._rivals % self.n_rows

    def margins(self, outputs: FloatArray) -> FloatArray:
        own = np.einsum("jn,jn->n", self.posteriors, outputs)
        return (own - outputs).ravel()[self._rivals]

    def signed(self, multipliers: FloatArray) -> FloatArray:
        by_rival = self.by_rival(multipliers)
        return self.posteriors * by_rival.sum(axis=0) - by_rival

    def by_rival(self, multipliers: FloatArray) -> FloatArray:
        """Return multipliers (R,) as an array (J, n), 0 for the label's components."""
        spread = np.zeros((self.n_outputs, self.n_rows))
        spread.ravel()[self._rivals] = multipliers
        return spread
