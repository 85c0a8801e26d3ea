"""Class-conditional mixtures: the model that everything else evaluates and fits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_array,
    require_instance,
    require_log_probabilities,
    require_whole,
)
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Coordinates, Family

# exp() of less than this is zero beside one in double precision, and far from the
# numbers so small that processors compute with them slowly.
_NEGLIGIBLE = -100.0


@registered
@dataclass(frozen=True, eq=False)
class Mixture:
    r"""Classes that are mixtures of components of one family.

    .. math:: p(x, c) = \pi_c \sum_{k=1}^{K_c} \alpha_{ck}\, p(x \mid c, k)

    The components of all classes stand in one row, those of a class side by side.

    Attributes
    ----------
    family : Family
        Kind of the component densities.
    components : Parameters
        Parameters of all ``J`` components.
    log_mixing : ndarray of shape (J,)
        Log proportions of the components within their class.
    log_prior : ndarray of shape (C,)
        Log class probabilities.
    offsets : tuple of int
        Where the components of each class begin, and where the last ones end.
    """

    family: Family[Any, Any]
    components: Any
    log_mixing: FloatArray
    log_prior: FloatArray
    offsets: tuple[int, ...]

    def check_consistent(self) -> None:
        """Raise ValueError unless components, proportions and classes fit together."""
        require_instance("the family", self.family, Family)
        require_instance("offsets", self.offsets, tuple)
        require_whole("offsets", self.offsets)
        increasing = all(a < b for a, b in itertools.pairwise(self.offsets))
        starts = len(self.offsets) > 1 and self.offsets[0] == 0
        require(increasing and starts, "offsets do not increase from 0")
        n_classes = len(self.offsets) - 1
        require_array("log_prior", self.log_prior, (n_classes,))
        require_log_probabilities("log_prior", self.log_prior)
        require_array("log_mixing", self.log_mixing, (self.n_components,))
        require_log_probabilities("log_mixing", self.log_mixing, self.offsets[:-1])
        self.family.check_parameters(self.components, self.n_components)

    @property
    def n_components(self) -> int:
        """Number of components of all classes."""
        return self.offsets[-1]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.log_prior)

    @cached_property
    def class_of(self) -> IntArray:
        """Class of each component."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.offsets))

    @cached_property
    def log_weights(self) -> FloatArray:
        """Log probability of each component, over all classes."""
        return self.log_mixing + self.log_prior[self.class_of]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.family.n_parameters(self.n_components) + self.n_components - 1

    def of_class(self, label: int) -> Mixture:
        """Return the part of one class; its joint density keeps the class probability."""
        first, last = self.offsets[label : label + 2]
        return Mixture(
            self.family,
            self.components.take(slice(first, last)),
            self.log_mixing[first:last],
            self.log_prior[label : label + 1],
            (0, last - first),
        )

    def log_prior_density(self) -> float:
        """Log density of the priors of the component parameters."""
        return self.family.log_prior(self.components)

    def evaluate(self, prepared: Any) -> Evaluation:
        """Evaluate log joint densities and component posteriors of prepared rows."""
        log_density, notes = self.family.evaluate(prepared, self.components)
        log_density += self.log_weights[:, None]
        log_joint, sums = grouped_logsumexp(log_density, self.offsets)
        return Evaluation(log_joint, log_density, sums, self.offsets, notes)

    def restrict(self, real: list[int], codes: list[int]) -> Mixture:
        """Return the exact marginal over some of the columns."""
        family, components = self.family.restrict(self.components, real, codes)
        return Mixture(family, components, self.log_mixing, self.log_prior, self.offsets)

    def impute(self, rows: Rows) -> Rows:
        """Fill holes by conditional means and modes."""
        evaluation = self.evaluate(self.family.prepare(rows))
        posterior = evaluation.component_posterior()
        return self.family.impute(rows, self.components, posterior)

    def draw(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Fill holes by a draw given what is observed."""
        evaluation = self.evaluate(self.family.prepare(rows))
        steps = np.cumsum(evaluation.component_posterior(), axis=0)
        level = generator.random(rows.n_rows) * steps[-1]
        components = np.sum(steps[:-1] <= level, axis=0)
        return self.family.draw(rows, self.components, components, generator)

    def sample(
        self, n_rows: int, generator: np.random.Generator
    ) -> tuple[Rows, IntArray]:
        """Draw rows and the components that they come from."""
        probabilities = np.exp(self.log_weights)
        counts = generator.multinomial(n_rows, probabilities / probabilities.sum())
        components = np.repeat(np.arange(self.n_components), counts)
        return self.family.sample(self.components, components, generator), components


@dataclass(frozen=True)
class Evaluation:
    """Log joint densities of rows, with what is needed to weigh their components.

    Attributes
    ----------
    log_joint : ndarray of shape (C, n)
        Log of ``p(x, c)``.
    relative : ndarray of shape (J, n)
        Component densities divided by the largest one of their class.
    sums : ndarray of shape (C, n)
        Their sums within the classes.
    offsets : tuple of int
        The components of the classes.
    notes : object
        What the family noted for its statistics.
    """

    log_joint: FloatArray
    relative: FloatArray
    sums: FloatArray
    offsets: tuple[int, ...]
    notes: Any

    def spread(self, weights: FloatArray) -> FloatArray:
        """Spread weights of classes (C, n) over components (J, n), by their posteriors.

        This uses up `relative`, whose memory the result takes.
        """
        shares = weights / self.sums
        result = self.relative
        for groups, block in _blocks(result, self.offsets):
            block *= shares[groups, None]
        return result

    def component_posterior(self) -> FloatArray:
        """Return the probabilities (J, n) of all components given the row."""
        return self.spread(class_posterior(self.log_joint)[1])


def grouped_logsumexp(
    values: FloatArray, offsets: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Log-sum-exp over groups of neighbouring rows of a matrix.

    Parameters
    ----------
    values : ndarray of shape (J, n)
        Overwritten by ``exp(values - largest of the group)``.
    offsets : tuple of int
        Where the groups begin, and where the last one ends.

    Returns
    -------
    logs : ndarray of shape (C, n)
        Log-sum-exp of each group.
    sums : ndarray of shape (C, n)
        Sums of what `values` now holds.
    """
    shape = (len(offsets) - 1, values.shape[1])
    logs, sums = np.empty(shape), np.empty(shape)
    for groups, block in _blocks(values, offsets):
        np.max(block, axis=1, out=logs[groups])
        block -= logs[groups, None]
        np.maximum(block, _NEGLIGIBLE, out=block)
        np.exp(block, out=block)
        np.sum(block, axis=1, out=sums[groups])
    logs += np.log(sums)
    return logs, sums


def _blocks(
    values: FloatArray, offsets: tuple[int, ...]
) -> Iterator[tuple[slice, FloatArray]]:
    """View groups of rows of a matrix as (groups, K, n): together if of equal size."""
    sizes = {b - a for a, b in itertools.pairwise(offsets)}
    if len(sizes) == 1:
        yield slice(None), values.reshape(len(offsets) - 1, sizes.pop(), values.shape[1])
        return
    for group, (first, last) in enumerate(itertools.pairwise(offsets)):
        yield slice(group, group + 1), values[None, first:last]


def class_posterior(log_joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``log p(x)``, (n,), and ``p(c | x)``, (C, n)."""
    posterior = log_joint.copy()
    logs, sums = grouped_logsumexp(posterior, (0, len(posterior)))
    posterior /= sums
    return logs[0], posterior


@dataclass
class MixtureStatistics:
    """What an M-step or a gradient needs to know of the rows.

    Attributes
    ----------
    counts : ndarray of shape (J,)
        Sums of the signed weights of the components.
    positive : ndarray of shape (J,)
        Of these, the part of the rows that speak for the component.
    components : Statistics
        Of the family.
    """

    counts: FloatArray
    positive: FloatArray
    components: Any

    def add(self, other: MixtureStatistics, components: slice = slice(None)) -> None:
        """Add statistics that concern a run of the components."""
        self.counts[components] += other.counts
        self.positive[components] += other.positive
        self.components.add(other.components, components)


class MixtureCoordinates:
    """An unconstrained vector that stands for a mixture; zero stands for the start.

    The family's coordinates are followed by logits of the component proportions and,
    where class probabilities are to be learned, of these.
    """

    def __init__(
        self, start: Mixture, counts: FloatArray, learn_prior: bool = True
    ) -> None:
        self._start = start
        self._family: Coordinates[Any, Any] = start.family.coordinates(
            start.components, counts
        )
        self._learn_prior = learn_prior
        self._step = 1.0 / np.sqrt(np.maximum(counts, 1.0))
        class_counts = np.add.reduceat(counts, start.offsets[:-1])
        self._prior_step = 1.0 / np.sqrt(np.maximum(class_counts, 1.0))
        self._ends = np.cumsum([self._family.size, start.n_components])
        self.size = int(self._ends[-1]) + (start.n_classes if learn_prior else 0)

    def mixture(self, vector: FloatArray) -> Mixture:
        """Return the mixture that a vector stands for."""
        by_family, by_mixing, by_prior = np.split(vector, self._ends)
        start = self._start
        log_mixing = start.log_mixing + by_mixing * self._step
        for first, last in zip(start.offsets[:-1], start.offsets[1:], strict=True):
            log_mixing[first:last] -= np.logaddexp.reduce(log_mixing[first:last])
        log_prior = start.log_prior
        if self._learn_prior:
            log_prior = log_prior + by_prior * self._prior_step
            log_prior = log_prior - np.logaddexp.reduce(log_prior)
        components = self._family.parameters(by_family)
        return Mixture(start.family, components, log_mixing, log_prior, start.offsets)

    def gradient(self, vector: FloatArray, statistics: MixtureStatistics) -> FloatArray:
        """Pull the gradient of a value, given by its statistics, back to the vector."""
        model = self.mixture(vector)
        counts = statistics.counts
        class_counts = np.add.reduceat(counts, model.offsets[:-1])
        shares = class_counts[model.class_of] * np.exp(model.log_mixing)
        parts = [
            self._family.gradient(vector[: self._ends[0]], statistics.components),
            (counts - shares) * self._step,
        ]
        if self._learn_prior:
            prior_shares = class_counts.sum() * np.exp(model.log_prior)
            parts.append((class_counts - prior_shares) * self._prior_step)
        return np.concatenate(parts)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector."""
        lower, upper = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        own = slice(0, self._ends[0])
        lower[own], upper[own] = self._family.bounds()
        return lower, upper

    def prior_gradient(self, vector: FloatArray) -> FloatArray:
        """Return the gradient of the log density of the priors."""
        gradient = np.zeros(self.size)
        own = slice(0, self._ends[0])
        gradient[own] = self._family.prior_gradient(vector[own])
        return gradient
