"""Online EM: learn from rows that come in batches and are not kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_instance,
    require_number,
    require_positive,
)
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.models.mixture import Mixture
from hybridmix.models.statistics import MixtureStatistics
from hybridmix.problem import Problem

# Steps that decrease with this power of the number of batches. Between a half and one
# they converge; near one, what the first models made of the first rows is never forgotten
# (Cappé and Moulines, 2009).
_POWER = 0.6
# Collapsed components start anew on rows like the worst of this many.
_RESEED_ROWS = 2000


@registered
@dataclass(frozen=True, eq=False)
class Memory:
    """What online EM remembers of the rows so far.

    Attributes
    ----------
    statistics : MixtureStatistics
        Sums over rows, of which older ones count less.
    weight : float
        How many rows these sums count for.
    seen : float
        How many rows the sums would count for if nothing faded.
    labelled, unlabelled : float
        Sample weights of all rows so far, with a label and without one.
    """

    statistics: MixtureStatistics
    weight: float
    seen: float
    labelled: float
    unlabelled: float

    def check_consistent(self) -> None:
        """Raise ValueError unless there are statistics and positive weights."""
        require_instance("statistics", self.statistics, MixtureStatistics)
        are_counts = np.all(np.asarray(self.statistics.counts) >= 0.0)
        require(are_counts, "statistics have counts that are negative")
        require_positive("the weight of the statistics", self.weight)
        for name in ("seen", "labelled", "unlabelled"):
            require_number(f"the weight of rows {name}", getattr(self, name), 0.0)

    @classmethod
    def of_rows(cls, problem: Problem, statistics: MixtureStatistics) -> Memory:
        """Remember the statistics of the rows of a first batch."""
        weight, labelled = float(statistics.counts.sum()), problem.labelled_weight
        unlabelled = problem.total_weight - labelled
        return cls(statistics, weight, weight, labelled, unlabelled)

    @classmethod
    def of_model(cls, model: Mixture, n_rows: float) -> Memory:
        """Let a model stand for rows that are gone: by their expected statistics."""
        counts = n_rows * np.exp(model.log_weights)
        components = model.family.expected_statistics(model.components, counts)
        statistics = MixtureStatistics(counts, counts.copy(), components)
        return cls(statistics, n_rows, n_rows, n_rows, 0.0)

    def class_weights(self, model: Mixture) -> FloatArray:
        """Return how many rows the statistics of each class count for, (C,)."""
        return np.add.reduceat(self.statistics.counts, model.offsets[:-1])


@dataclass(frozen=True)
class OnlineStep:
    """What a step of online EM returns.

    Attributes
    ----------
    model : Mixture
        The model after the step.
    memory : Memory
        What it remembers.
    value : float
        Sum of the objective over the rows, by the model before the step.
    """

    model: Mixture
    memory: Memory
    value: float


@dataclass(frozen=True)
class OnlineEM:
    r"""EM whose statistics are averages over batches, each seen once.

    .. math:: s_t = (1 - \rho_t)\, s_{t-1} + \rho_t\, \bar s(\text{batch}; \theta_{t-1}),
              \qquad \theta_t = \arg\max_\theta Q(\theta; s_t)

    Without forgetting, a batch of weight :math:`w` has the step
    :math:`\rho_t = (w / w_{1:t})^{0.6}`, where :math:`w_{1:t}` is the weight of all rows
    so far: the steps decrease, slowly enough that what early models made of early rows
    fades. With forgetting, a row counts :math:`(1 - \gamma)^k` after :math:`k` more
    rows, for ever: the model follows a source that drifts.

    Parameters
    ----------
    forgetting : float or None
        :math:`\gamma`, between 0 and 1; None for decreasing steps.
    """

    forgetting: float | None = None

    def step(
        self,
        problem: Problem,
        model: Mixture,
        memory: Memory,
        generator: np.random.Generator,
    ) -> OnlineStep:
        """Learn from one batch.

        Parameters
        ----------
        problem : Problem
            The likelihood of the batch.
        model : Mixture
            The model so far.
        memory : Memory
            What it remembers.
        generator : numpy.random.Generator
            Where collapsed components start anew.
        """
        assessment = problem.assess(model)
        added = assessment.statistics
        weight = float(added.counts.sum())
        if weight == 0.0:  # unlabelled rows that count nothing
            return OnlineStep(model, memory, 0.0)
        seen = memory.seen + weight
        kept = self._kept(weight, memory.weight, seen)
        total = model.zero_statistics()
        total.add(memory.statistics)
        total.scale(kept)
        total.add(added)
        labelled = problem.labelled_weight
        memory = Memory(
            total,
            kept * memory.weight + weight,
            seen,
            memory.labelled + labelled,
            memory.unlabelled + problem.total_weight - labelled,
        )
        model = model.maximised(total, problem.learn_class_prior)
        model, memory = _reseeded(problem, model, memory, generator)
        return OnlineStep(model, memory, assessment.value)

    def _kept(self, weight: float, remembered: float, seen: float) -> float:
        """Return what the statistics so far are multiplied by."""
        if self.forgetting is not None:
            return (1.0 - self.forgetting) ** weight
        step = (weight / seen) ** _POWER
        return weight * (1.0 / step - 1.0) / remembered


def _reseeded(
    problem: Problem, model: Mixture, memory: Memory, generator: np.random.Generator
) -> tuple[Mixture, Memory]:
    """Start components that have collapsed anew, if the batch has rows for them."""
    collapsed = model.collapsed(memory.statistics, memory.class_weights(model))
    has_rows = (problem.class_weights > 0.0) | (model.n_classes == 1)
    collapsed = collapsed[has_rows[model.class_of[collapsed]]]
    if len(collapsed) == 0 or not model.family.offers("expected_statistics"):
        return model, memory

    def rows_of(label: int) -> tuple[Rows, FloatArray]:
        return problem.sample(label, _RESEED_ROWS, generator)

    model = model.reseeded(collapsed, rows_of)
    fresh = Memory.of_model(model, memory.weight)
    return model, replace(memory, statistics=fresh.statistics)
