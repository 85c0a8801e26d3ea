"""Where data, model and objective meet; chunks and threads live here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._chunks import chunk_rows
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data.rows import UNLABELLED, Dataset
from hybridmix.families.base import Family
from hybridmix.mixture import Mixture, MixtureStatistics
from hybridmix.objectives.base import Objective

# A fixed number of tasks, summed in a fixed order, gives the same bits on any number of
# threads.
_N_TASKS = 16
# Below this much arithmetic, handing work to threads takes longer than doing it.
_SMALL = 2_000_000
# Rearranged rows are kept between evaluations as long as they fit here.
_KEPT_BYTES = 64 << 20


@dataclass
class Assessment:
    """What a problem says of a model: sums over the rows.

    Attributes
    ----------
    parts : ndarray of shape (P,)
        The terms of the objective.
    wrong : float
        Weight of the labelled rows that the model misclassifies; only objectives that
        look at rivals tell.
    statistics : MixtureStatistics
        Weighted by the derivatives of the objective.
    """

    parts: FloatArray
    wrong: float
    statistics: MixtureStatistics

    @property
    def value(self) -> float:
        """The sum of the objective."""
        return float(self.parts.sum())

    def add(self, other: Assessment, components: slice = slice(None)) -> None:
        """Add what concerns other rows and a run of the components."""
        self.parts += other.parts
        self.wrong += other.wrong
        self.statistics.add(other.statistics, components)


@dataclass(frozen=True)
class _View:
    """A part of a model: the components of one class, or all."""

    model: Mixture
    components: slice
    first_label: int


class Problem:
    """The sum of an objective over the rows of a data set.

    Parameters
    ----------
    dataset : Dataset
        The rows.
    family : Family
        Kind of the component densities.
    objective : Objective
        What is summed.
    n_components : int
        Number of components of all classes, which decides the size of chunks.
    workers : Workers
        Threads to run on.
    """

    def __init__(
        self,
        dataset: Dataset,
        family: Family[Any, Any],
        objective: Objective,
        n_components: int,
        workers: Workers,
    ) -> None:
        self.dataset = dataset
        self.objective = objective
        self._family = family
        width = family.width(n_components, dataset.rows.observed)
        self._chunks = list(_chunks(dataset, chunk_rows(width)))
        self._tasks = _balanced_tasks(self._chunks)
        small = dataset.n_rows * n_components * dataset.rows.real.shape[0] < _SMALL
        self._workers = Workers(1) if small else workers
        kept_width = family.kept_width(dataset.rows.observed)
        keep = dataset.n_rows * kept_width * 8 <= _KEPT_BYTES
        self._kept: list[Any] | None = [None] * len(self._chunks) if keep else None

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return self.dataset.total_weight

    def assess(self, model: Mixture) -> Assessment:
        """Sum the objective, and statistics weighted by its derivatives."""
        total = self._nothing(model)
        views = self._views(model)
        for assessment in self._workers.map(
            lambda task: self._run(task, model, views), self._tasks
        ):
            total.add(assessment)
        return total

    def _nothing(self, model: Mixture) -> Assessment:
        n_components = model.n_components
        statistics = MixtureStatistics(
            np.zeros(n_components),
            np.zeros(n_components),
            model.family.zero_statistics(n_components),
        )
        return Assessment(np.zeros(len(self.objective.parts)), 0.0, statistics)

    def _views(self, model: Mixture) -> dict[int, _View]:
        """Return, for each label, the part of the model that its rows look at."""
        everything = _View(model, slice(0, model.n_components), 0)
        views = dict.fromkeys(range(-1, model.n_classes), everything)
        if not self.objective.needs_rivals:
            for label in range(model.n_classes):
                own = slice(model.offsets[label], model.offsets[label + 1])
                views[label] = _View(model.of_class(label), own, label)
        return views

    def _run(self, task: range, model: Mixture, views: dict[int, _View]) -> Assessment:
        total = self._nothing(model)
        for number in task:
            view = views[int(self.dataset.labels[self._chunks[number].start])]
            total.add(self._assess_chunk(number, view), view.components)
        return total

    def _assess_chunk(self, number: int, view: _View) -> Assessment:
        chunk, model = self._chunks[number], view.model
        labels = self.dataset.labels[chunk] - view.first_label
        prepared = self._prepared(number)
        evaluation = model.evaluate(prepared)
        log_joint = evaluation.log_joint
        values, weights = self.objective.values_and_weights(log_joint, labels)
        missed = np.zeros(len(labels))
        if self.objective.needs_rivals and labels[0] != UNLABELLED:
            missed += log_joint.argmax(axis=0) != labels
        if self.dataset.weights is not None:
            values = values * self.dataset.weights[chunk]
            weights = weights * self.dataset.weights[chunk]
            missed *= self.dataset.weights[chunk]
        spread = evaluation.spread(weights)
        counts = np.dot(spread, np.ones(spread.shape[1]))
        statistics = MixtureStatistics(
            counts,
            # Rows of one label: all weights of a component have the same sign.
            np.maximum(counts, 0.0),
            self._family.accumulate(prepared, model.components, spread, evaluation.notes),
        )
        return Assessment(values.sum(axis=1), float(missed.sum()), statistics)

    def _prepared(self, number: int) -> Any:
        if self._kept is not None and self._kept[number] is not None:
            return self._kept[number]
        prepared = self._family.prepare(self.dataset.rows[self._chunks[number]])
        if self._kept is not None:
            self._kept[number] = prepared
        return prepared


def _chunks(dataset: Dataset, n_rows: int) -> Iterator[slice]:
    """Cut the rows of each label into nearly equal chunks."""
    borders = np.flatnonzero(np.diff(dataset.labels)) + 1
    edges = [0, *borders.tolist(), dataset.n_rows]
    for start, stop in itertools.pairwise(edges):
        pieces = -(-(stop - start) // n_rows)
        cuts = np.linspace(start, stop, pieces + 1).astype(int)
        for first, last in itertools.pairwise(cuts):
            yield slice(int(first), int(last))


def _balanced_tasks(chunks: list[slice]) -> list[range]:
    """Group neighbouring chunks into tasks of about the same number of rows."""
    ends = np.array([chunk.stop for chunk in chunks])
    targets = np.linspace(0, ends[-1], _N_TASKS + 1)[1:]
    cuts = np.unique(np.searchsorted(ends, targets) + 1)
    edges = [0, *np.minimum(cuts, len(chunks)).tolist()]
    return [range(a, b) for a, b in itertools.pairwise(edges) if b > a]
