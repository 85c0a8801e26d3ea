"""The sum of an objective over training rows: all that solvers see of the data."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Generic

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.blocks import BlockedUnits
from hybridmix.data.rows import UNLABELLED, LabelledUnits, Rows
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.base import Model, S
from hybridmix.objectives.base import Objective

# Chunks that show how long an assessment takes.
_TIMED_CHUNKS = 3
# Classes share chunks if, on average, their rows look at fewer numbers than this in an
# evaluation of all classes. Measured with 2 to 26 classes of full covariances.
_SMALL_CLASS = 8000


@dataclass
class Assessment(Generic[S]):
    """What a problem says of a model: sums over the rows.

    Attributes
    ----------
    parts : ndarray of shape (P,)
        The terms of the objective.
    by_class : ndarray of shape (C + 1,)
        The objective of the rows of each class, and last of the unlabelled rows.
    wrong : float
        Weight of the labelled rows that the model misclassifies; only objectives that
        look at rivals find out.
    statistics : ModelStatistics
        Weighted by the derivatives of the objective.
    """

    parts: FloatArray
    by_class: FloatArray
    wrong: float
    statistics: S

    @property
    def value(self) -> float:
        """The sum of the objective."""
        return float(self.parts.sum())

    def add(self, other: Assessment[S]) -> None:
        """Add what concerns other rows."""
        self.parts += other.parts
        self.by_class += other.by_class
        self.wrong += other.wrong
        self.statistics.add(other.statistics)


@dataclass(frozen=True)
class _View(Generic[S]):
    """A part of a model: one class, or all."""

    model: Model[object, S]
    part: slice
    first_label: int


class Problem:
    """The sum of an objective over the rows of a data set, which are in memory.

    Parameters
    ----------
    dataset : Dataset or SequenceDataset
        The rows or sequences.
    objective : Objective
        What is summed.
    model : Model
        A model like the ones to be assessed: of the same kind and size.
    workers : Workers
        Threads to run on.
    learn_class_prior : bool
        Whether class probabilities are learned, or kept as they are.
    keep : bool
        Keep rearranged rows for further evaluations, if they fit into memory.

    Attributes
    ----------
    class_weights : ndarray of shape (C,)
        Sums of the sample weights of the rows of each class.
    total_weight : float
        Sum of all sample weights, those of unlabelled rows included.
    """

    def __init__(
        self,
        dataset: LabelledUnits,
        objective: Objective,
        model: Model,
        workers: Workers,
        learn_class_prior: bool = True,
        keep: bool = True,
    ) -> None:
        self._describe(dataset, objective, model, learn_class_prior)
        self._dataset = dataset
        # Chunks of a single label let rows of a class skip its rivals. On small tables,
        # fewer and larger chunks save more than that.
        self._looks_at_own = not objective.needs_rivals and model.offers("evaluate_own")
        self._labels_are_apart = (
            not (objective.needs_rivals or self._looks_at_own)
            and model.offers("of_class")
            and dataset.n_rows * model.width(dataset.rows.observed)
            > _SMALL_CLASS * model.n_classes
        )
        borders: list[int] = []
        size = model
        if self._looks_at_own:
            n_unlabelled = dataset.unlabelled().n_rows
            borders = [n_unlabelled] if 0 < n_unlabelled < dataset.n_rows else []
            # Rows that look at one class are smaller than rows that look at all.
            size = model if n_unlabelled else model.of_class(0)
        elif self._labels_are_apart:
            borders = (np.flatnonzero(np.diff(dataset.labels)) + 1).tolist()
        self._rows = ChunkedRows(dataset.rows, size, workers, borders, keep)
        self._label_of = [int(dataset.labels[chunk.start]) for chunk in self._rows.chunks]

    def _describe(
        self,
        dataset: LabelledUnits | BlockedUnits,
        objective: Objective,
        model: Model,
        learn_class_prior: bool,
    ) -> None:
        self.objective = objective
        self.learn_class_prior = learn_class_prior
        self.total_weight = dataset.total_weight
        self.class_weights = dataset.class_weights(model.n_classes)
        self._has_unlabelled = dataset.unlabelled().n_rows > 0

    @property
    def labelled_weight(self) -> float:
        """Sum of the sample weights of the labelled rows."""
        return float(self.class_weights.sum())

    def can_separate(self, model: Model) -> bool:
        """Return whether the classes of a model can be maximised one by one."""
        return (
            (model.n_classes == 1 or model.classes_are_apart)
            and not self.learn_class_prior
            and not self.objective.needs_rivals
            and not self._has_unlabelled
        )

    def assess(
        self, model: Model[object, S], classes: BoolArray | None = None
    ) -> Assessment[S]:
        """Sum the objective, and statistics weighted by its derivatives.

        Parameters
        ----------
        model : Model
            What is assessed.
        classes : ndarray of bool, shape (C,), or None
            Sum over the labelled rows of these classes only; None for all rows.
        """
        views = self._views(model)

        def add_chunk(number: int, total: Assessment[S]) -> None:
            label = self._label_of[number]
            with self._rows.memory():
                if not self._labels_are_apart:
                    self._add_chunk(number, views[label], total, classes)
                elif classes is None or (label != UNLABELLED and classes[label]):
                    self._add_chunk(number, views[label], total)

        return self._rows.sum(add_chunk, lambda: self._nothing(model))

    def _nothing(self, model: Model[object, S]) -> Assessment[S]:
        return Assessment(
            np.zeros(len(self.objective.parts)),
            np.zeros(model.n_classes + 1),
            0.0,
            model.zero_statistics(),
        )

    def _views(self, model: Model[object, S]) -> dict[int, _View[S]]:
        """Return, for each label, the part of the model that its rows look at."""
        everything = _View(model, slice(None), 0)
        views = dict.fromkeys(self._label_of, everything)
        if self._labels_are_apart:
            for label in views:
                if label != UNLABELLED:
                    own = model.of_class(label)
                    views[label] = _View(own, model.part(label), label)
        return views

    def _add_chunk(
        self,
        number: int,
        view: _View[S],
        total: Assessment[S],
        classes: BoolArray | None = None,
    ) -> None:
        chunk = self._rows.chunks[number]
        labels = self._dataset.labels[chunk]
        if self._looks_at_own and labels[0] != UNLABELLED:
            evaluation = self._rows.evaluate_own(number, view.model, labels)
        else:
            evaluation = self._rows.evaluate(number, view.model)
        log_joint = evaluation.log_joint
        values, weights = self._objective_of(chunk).values_and_weights(
            log_joint, labels - view.first_label if view.first_label else labels
        )
        is_wrong = np.zeros(len(labels))
        if self.objective.needs_rivals:
            is_wrong += (log_joint.argmax(axis=0) != labels) & (labels != UNLABELLED)
        sample_weights = self._weights(chunk, classes)
        if sample_weights is not None:
            values = values * sample_weights
            weights = weights * sample_weights
            is_wrong *= sample_weights
        parts = values.sum(axis=1)
        total.parts += parts
        _add_by_class(total.by_class, labels, values.sum(axis=0))
        total.wrong += float(is_wrong.sum())
        total.statistics.add(evaluation.statistics(weights), view.part)

    def _objective_of(self, chunk: slice) -> Objective:
        lengths = self._dataset.rows.lengths
        return (
            self.objective if lengths is None else self.objective.of_units(lengths[chunk])
        )

    def _weights(self, chunk: slice, classes: BoolArray | None) -> FloatArray | None:
        """Return the weights of rows; those of other classes count nothing."""
        weights = self._dataset.weights
        own = None if weights is None else weights[chunk]
        if classes is None:
            return own
        labels = self._dataset.labels[chunk]
        is_chosen = (labels != UNLABELLED) & classes[labels]
        return is_chosen * (1.0 if own is None else own)

    def estimated_seconds(self, model: Model) -> float:
        """Return about how long an assessment takes, judging by a few chunks of rows."""
        views, total = self._views(model), self._nothing(model)
        numbers = range(0, len(self._label_of), -(-len(self._label_of) // _TIMED_CHUNKS))
        before = time.perf_counter()
        for number in numbers:
            self._add_chunk(number, views[self._label_of[number]], total)
        passed = time.perf_counter() - before
        return passed * len(self._label_of) / len(numbers) / self._rows.n_threads

    def sample(
        self, label: int, n_rows: int, generator: np.random.Generator
    ) -> tuple[Rows, FloatArray]:
        """Draw rows of a class, or of all if it has none, with their weights."""
        part = self._dataset.drawn(label, n_rows, generator)
        return part.rows, part.filled_weights


class BlockedProblem(Problem):
    """The sum of an objective over rows in blocks: the sum of the problems of the blocks.

    The parameters are those of `Problem`, except that the rows are `BlockedUnits`.
    """

    def __init__(
        self,
        dataset: BlockedUnits,
        objective: Objective,
        model: Model,
        workers: Workers,
        learn_class_prior: bool = True,
    ) -> None:
        self._describe(dataset, objective, model, learn_class_prior)
        self._blocks = dataset
        self._workers = workers

    def assess(
        self, model: Model[object, S], classes: BoolArray | None = None
    ) -> Assessment[S]:
        """Sum the objective and statistics over the blocks; see `Problem.assess`."""
        own = partial(
            _block_assessment,
            model=model,
            classes=classes,
            objective=self.objective,
            workers=self._workers,
            learn_class_prior=self.learn_class_prior,
        )
        return self._blocks.summed(own)

    def estimated_seconds(self, model: Model) -> float:
        """Return about how long an assessment takes, judging by one block of rows."""
        before = time.perf_counter()
        part = self._blocks.first_block()
        Problem(part, self.objective, model, self._workers).assess(model)
        passed = time.perf_counter() - before
        return passed * self._blocks.n_rows / part.n_rows

    def sample(
        self, label: int, n_rows: int, generator: np.random.Generator
    ) -> tuple[Rows, FloatArray]:
        """Draw rows of a class, or of all if it has none, with their weights."""
        part = self._blocks.drawn(label, n_rows, generator)
        return part.rows, part.filled_weights


def _block_assessment(
    block: LabelledUnits,
    model: Model[object, S],
    classes: BoolArray | None,
    objective: Objective,
    workers: Workers,
    learn_class_prior: bool,
) -> Assessment[S]:
    problem = Problem(block, objective, model, workers, learn_class_prior, keep=False)
    return problem.assess(model, classes)


def problem_of(
    dataset: LabelledUnits | BlockedUnits,
    objective: Objective,
    model: Model,
    workers: Workers,
    learn_class_prior: bool = True,
) -> Problem:
    """Return the problem of rows in memory or in blocks; see `Problem`."""
    if isinstance(dataset, BlockedUnits):
        return BlockedProblem(dataset, objective, model, workers, learn_class_prior)
    return Problem(dataset, objective, model, workers, learn_class_prior)


def _add_by_class(total: FloatArray, labels: IntArray, values: FloatArray) -> None:
    """Add values of rows to the sums (C + 1,) of their classes; labels are ascending."""
    if labels[0] == labels[-1]:
        total[labels[0]] += values.sum()
    else:
        # Unlabelled rows come last.
        total += np.bincount(labels % len(total), values, len(total))
