"""Class-conditional mixtures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hybridmix._logsumexp import (
    class_posterior,
    group_blocks,
    grouped_logsumexp,
)
from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_array,
    require_instance,
    require_log_probabilities,
    require_whole,
)
from hybridmix._scratch import empty
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Family, Notes, Parameters, Prepared
from hybridmix.models.base import Evaluation, Model, RowsOfClass
from hybridmix.models.coordinates import MixtureCoordinates
from hybridmix.models.damping import damped_mixture
from hybridmix.models.statistics import MixtureStatistics, positive_counts

# A component with less than this share of its rows has died.
_DEAD_SHARE = 1e-8
# What the methods of a mixture need of its family.
_NEEDED_OF_FAMILY = {
    "coordinates": ("coordinates",),
    "damped": ("expected_statistics", "proper"),
    "marginal": ("marginal",),
    "impute": ("impute",),
    "draw": ("draw",),
    "sample": ("sample",),
}


@registered
@dataclass(frozen=True, eq=False)
class Mixture(Model[Prepared, MixtureStatistics]):
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
    log_class_prior : ndarray of shape (C,)
        Log class probabilities.
    offsets : tuple of int
        Where the components of each class begin, and where the last ones end.
    """

    family: Family
    components: Parameters
    log_mixing: FloatArray
    log_class_prior: FloatArray
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
        require_array("log_class_prior", self.log_class_prior, (n_classes,))
        require_log_probabilities("log_class_prior", self.log_class_prior)
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
        return len(self.log_class_prior)

    @cached_property
    def class_of(self) -> IntArray:
        """Class of each component."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.offsets))

    @cached_property
    def log_weights(self) -> FloatArray:
        """Log probability of each component, over all classes."""
        return self.log_mixing + self.log_class_prior[self.class_of]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.family.n_parameters(self.n_components) + self.n_components - 1

    # Evaluation -----------------------------------------------------------------------

    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation."""
        return self.family.width(self.n_components, observed)

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared row occupies."""
        return self.family.kept_width(observed)

    def work(self, observed: BoolArray | None = None) -> int:
        """Return about how many multiplications the evaluation of a row takes."""
        return self.family.work(self.n_components, observed)

    def prepare(self, rows: Rows) -> Prepared:
        """Rearrange rows into what the family reads."""
        return self.family.prepare(rows)

    def evaluate(self, prepared: Prepared) -> MixtureEvaluation:
        """Evaluate log joint densities, with what weighs the components."""
        log_density, notes = self.family.evaluate(prepared, self.components)
        log_density += self.log_weights.astype(log_density.dtype)[:, None]
        log_joint, sums = grouped_logsumexp(log_density, self.offsets)
        return MixtureEvaluation(self, prepared, log_joint, log_density, sums, notes)

    def zero_statistics(self) -> MixtureStatistics:
        """Return the statistics of no rows."""
        return MixtureStatistics(
            np.zeros(self.n_components),
            np.zeros(self.n_components),
            self.family.zero_statistics(self.n_components),
        )

    def log_prior_density(self) -> float:
        """Return the log density of the priors of the component parameters."""
        return self.family.log_prior(self.components)

    def offers(self, capability: str) -> bool:
        """Return whether a method of this name can be called: some need the family's."""
        needed = _NEEDED_OF_FAMILY.get(capability)
        if needed is None:
            return super().offers(capability)
        return all(map(self.family.offers, needed))

    # Training -------------------------------------------------------------------------

    def coordinates(
        self, n_rows: float, learn_class_prior: bool = True
    ) -> MixtureCoordinates:
        """Return coordinates around this mixture, whitened for this many rows."""
        counts = n_rows * np.exp(self.log_weights)
        return MixtureCoordinates(self, counts, learn_class_prior)

    def of_class(self, label: int) -> Mixture:
        """Return the part of one class; its joint density keeps the class probability."""
        if self.n_classes == 1:
            return self
        own = self.part(label)
        return Mixture(
            self.family,
            self.components.take(own),
            self.log_mixing[own],
            self.log_class_prior[label : label + 1],
            (0, own.stop - own.start),
        )

    def part(self, label: int) -> slice:
        """Return the run of components of one class."""
        return slice(self.offsets[label], self.offsets[label + 1])

    def maximised(
        self, statistics: MixtureStatistics, learn_class_prior: bool = True
    ) -> Mixture:
        """Return the mixture that expected statistics call for (the M-step)."""
        counts = np.maximum(statistics.counts, np.finfo(float).tiny)
        class_counts = np.add.reduceat(counts, self.offsets[:-1])
        log_class_prior = self.log_class_prior
        if learn_class_prior:
            log_class_prior = np.log(class_counts / class_counts.sum())
        return replace(
            self,
            components=self.family.maximise(statistics.components),
            log_mixing=np.log(counts / class_counts[self.class_of]),
            log_class_prior=log_class_prior,
        )

    @property
    def classes_are_apart(self) -> bool:
        """Whether M-steps of the classes have no parameter in common."""
        return not self.family.ties_components

    def with_classes(self, other: Mixture, chosen: BoolArray) -> Mixture:
        """Return this mixture with the chosen (C,) classes taken from another one."""
        is_chosen = chosen[self.class_of]
        places = np.arange(self.n_components) + self.n_components * is_chosen
        both = self.family.concatenate([self.components, other.components], [1.0, 1.0])
        return replace(
            self,
            components=both.take(places),
            log_mixing=np.where(is_chosen, other.log_mixing, self.log_mixing),
            log_class_prior=np.where(chosen, other.log_class_prior, self.log_class_prior),
        )

    def with_class_models(self, models: Mapping[int, Mixture]) -> Mixture:
        """Return this mixture with some classes replaced; each has one of its own."""
        classes = [models.get(c) or self.of_class(c) for c in range(self.n_classes)]
        components = [own.components for own in classes]
        counts = np.diff(self.offsets).astype(float).tolist()
        return replace(
            self,
            components=self.family.concatenate(components, counts),
            log_mixing=np.concatenate([own.log_mixing for own in classes]),
            log_class_prior=np.concatenate([own.log_class_prior for own in classes]),
        )

    def within_bounds(self) -> Mixture:
        """Return the nearest mixture that an M-step may lead to."""
        return replace(self, components=self.family.within_bounds(self.components))

    def collapsed(
        self, statistics: MixtureStatistics, class_weights: FloatArray
    ) -> IntArray:
        """Return the components without rows or shrunk to a point; never an only one."""
        fewest = _DEAD_SHARE * class_weights[self.class_of]
        dead = (statistics.counts < fewest) | self.family.collapsed(self.components)
        alone = np.diff(self.offsets)[self.class_of] == 1
        return np.flatnonzero(dead & ~alone)

    def class_of_part(self, parts: IntArray) -> IntArray:
        """Return the classes of components."""
        return self.class_of[parts]

    def reseeded(self, collapsed: IntArray, rows_of: RowsOfClass) -> Mixture:
        """Start collapsed components anew, on rows that their class explains worst."""
        family, components = self.family, self.components
        log_mixing = self.log_mixing.copy()
        # Components of one class must not start on the same rows: they would stay equal.
        turns = dict.fromkeys(self.class_of[collapsed].tolist(), 0)
        for j in collapsed:
            label = int(self.class_of[j])
            own = self.part(label)
            size = own.stop - own.start
            sample, weights = rows_of(label)
            explained = self.of_class(label).evaluate(self.prepare(sample)).log_joint[0]
            n_worst = max(2, sample.n_rows // size)
            first = turns[label] * n_worst
            turns[label] += 1
            order = np.argsort(explained, kind="stable")
            worst = np.roll(order, -first)[:n_worst]
            fresh = family.start(sample[worst], weights[None, worst])
            before, after = (
                components.take(slice(0, j)),
                components.take(slice(j + 1, None)),
            )
            components = family.concatenate(
                [before, fresh, after], [float(j), 1.0, float(self.n_components - j - 1)]
            )
            log_mixing[j] = -np.log(size)
            log_mixing[own] -= np.logaddexp.reduce(log_mixing[own])
        return replace(self, components=components, log_mixing=log_mixing)

    def damped(
        self,
        statistics: MixtureStatistics,
        factor: float,
        *,
        shared: bool,
        learn_class_prior: bool,
    ) -> Mixture:
        """Return the mixture after an M-step that is damped by this mixture."""
        parts = damped_mixture(self, statistics, factor, shared)
        components, log_mixing, log_class_prior = parts
        if not learn_class_prior:
            log_class_prior = self.log_class_prior
        return replace(
            self,
            components=components,
            log_mixing=log_mixing,
            log_class_prior=log_class_prior,
        )

    # What a fitted mixture can say ------------------------------------------------------

    def marginal(self, real: list[int], codes: list[int]) -> Mixture:
        """Return the exact marginal over some of the columns."""
        family, components = self.family.marginal(self.components, real, codes)
        return replace(self, family=family, components=components)

    def impute(self, rows: Rows) -> Rows:
        """Fill holes by conditional means and modes."""
        posterior = self.evaluate(self.prepare(rows)).component_posterior()
        return self.family.impute(rows, self.components, posterior)

    def draw(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Fill holes by a draw given what is observed."""
        evaluation = self.evaluate(self.prepare(rows))
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
class MixtureEvaluation(Evaluation[MixtureStatistics]):
    """Log joint densities of rows, with what is needed to weigh their components.

    Attributes
    ----------
    model : Mixture
        What was evaluated.
    prepared : object
        The rows, as the family prepared them.
    log_joint : ndarray of shape (C, n)
        Log of ``p(x, c)``.
    relative : ndarray of shape (J, n)
        Component densities divided by the largest one of their class.
    sums : ndarray of shape (C, n)
        Their sums within the classes.
    notes : object
        What the family noted for its statistics.
    """

    model: Mixture
    prepared: Prepared
    log_joint: FloatArray
    relative: FloatArray
    sums: FloatArray
    notes: Notes

    def statistics(self, weights: FloatArray) -> MixtureStatistics:
        """Pull signed weights (C, n) back; this uses up `relative`."""
        spread = self._spread(weights)
        counts = np.dot(spread, np.ones(spread.shape[1], spread.dtype))
        return MixtureStatistics(
            counts,
            positive_counts(counts, spread, weights, self.model.offsets),
            self.model.family.accumulate(
                self.prepared, self.model.components, spread, self.notes
            ),
        )

    def _spread(self, weights: FloatArray) -> FloatArray:
        """Spread weights of classes (C, n) over components (J, n), by their posteriors.

        The result takes the memory of `relative`.
        """
        result = self.relative
        shares = empty(self.sums.shape, result.dtype)
        np.divide(weights, self.sums, out=shares, casting="same_kind")
        for groups, block in group_blocks(result, self.model.offsets):
            block *= shares[groups, None]
        return result

    def component_posterior(self) -> FloatArray:
        """Return the probabilities (J, n) of all components; uses up `relative`."""
        return self._spread(class_posterior(self.log_joint)[1])


def joined_classes(family: Family, classes: list[Mixture], counts: FloatArray) -> Mixture:
    """Put mixtures of one class each into one model.

    Every class has the probability one, so that it is the sum of its classes; callers set
    the class probabilities. The counts (C,) of rows weigh what components share.
    """
    sizes = [model.n_components for model in classes]
    return Mixture(
        family,
        family.concatenate([model.components for model in classes], counts.tolist()),
        np.concatenate([model.log_mixing for model in classes]),
        np.zeros(len(classes)),
        (0, *itertools.accumulate(sizes)),
    )
