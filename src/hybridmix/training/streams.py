"""Training on rows that come in batches: what begins a stream, and what goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Dataset, Schema
from hybridmix.data.rows import Rows, RowSource
from hybridmix.models.mixture import Mixture, joined_classes
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import Memory, OnlineEM
from hybridmix.training.classes import Estimation
from hybridmix.training.classifier import fit_classifier
from hybridmix.training.record import history_in_units
from hybridmix.training.run import ClassifierOptions
from hybridmix.training.starts import start_mixture

# A large batch is learned from in steps of this many rows, or as many as there are
# parameters: many small steps lead farther than a few large ones, until the noise of a
# step outweighs what it gains.
_STEP_ROWS = 1000


@dataclass(frozen=True)
class Batch:
    """Some rows of a stream.

    Attributes
    ----------
    rows : RowSource
        The rows.
    labels : ndarray of shape (n,)
        Class numbers; -1 for unlabelled rows.
    weights : ndarray of shape (n,) or None
        Sample weights; None when all are one.
    """

    rows: RowSource[Rows]
    labels: IntArray
    weights: FloatArray | None

    def dataset(self, index: slice | IntArray = slice(None)) -> Dataset:
        """Return some of the rows, arranged for training."""
        weights = None if self.weights is None else self.weights[index]
        return Dataset.arrange(self.rows[index], self.labels[index], weights)


@dataclass(frozen=True)
class Streamed:
    """What a stream has taught so far.

    Attributes
    ----------
    model : Mixture
        The model.
    memory : Memory
        What it remembers.
    likelihood : float
        Mean log-likelihood of the rows of the last batch, in the units of the table, by
        models that had not seen them; of the first batch, by the model fitted to it.
    unlabelled_weight : float
        What an unlabelled row counted.
    """

    model: Mixture
    memory: Memory
    likelihood: float
    unlabelled_weight: float


@dataclass(frozen=True)
class StreamTrainer:
    """Learns from one batch after the other.

    Attributes
    ----------
    solver : OnlineEM
        Takes the steps.
    estimation : Estimation
        Options of EM, for classes that begin later than others.
    schema : Schema
        Of all batches.
    unlabelled_weight : float or "auto"
        What an unlabelled row counts; "auto" keeps all of them together from counting
        more than all labelled ones so far.
    learn_class_prior : bool
        Whether class probabilities are learned.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """

    solver: OnlineEM
    estimation: Estimation
    schema: Schema
    unlabelled_weight: float | str
    learn_class_prior: bool
    generator: np.random.Generator
    pool: Workers

    def begun(self, model: Mixture, batch: Batch) -> Streamed:
        """Remember the first batch, which the model was fitted to."""
        dataset = batch.dataset()
        weight = self._unlabelled_weight(dataset, None)
        problem = self._problem(dataset, model, weight)
        assessment = problem.assess(model)
        total = self._in_units(assessment.value, dataset, weight)
        memory = Memory.of_rows(problem, assessment.statistics)
        return Streamed(model, memory, total / dataset.total_weight, weight)

    def continued(self, model: Mixture, memory: Memory, batch: Batch) -> Streamed:
        """Learn from a further batch.

        Its rows are dealt out to steps in turn, so that a batch that is sorted is not
        learned from in this order.
        """
        model = self._with_new_classes(model, memory, batch)
        n_rows = len(batch.labels)
        n_steps = max(1, n_rows // max(_STEP_ROWS, model.n_parameters))
        total = total_weight = weight = 0.0
        for first in range(n_steps):
            dataset = batch.dataset(slice(first, None, n_steps))
            if dataset.n_rows == 0:  # none of them has any weight
                continue
            weight = self._unlabelled_weight(dataset, memory)
            problem = self._problem(dataset, model, weight)
            step = self.solver.step(problem, model, memory, self.generator)
            model, memory = step.model, step.memory
            total += self._in_units(step.value, dataset, weight)
            total_weight += dataset.total_weight
        return Streamed(model, memory, total / total_weight, weight)

    def _problem(self, dataset: Dataset, model: Mixture, weight: float) -> Problem:
        objective = Likelihood(weight)
        return Problem(dataset, objective, model, self.pool, self.learn_class_prior)

    def _unlabelled_weight(self, dataset: Dataset, memory: Memory | None) -> float:
        """Return what an unlabelled row of these counts."""
        if not isinstance(self.unlabelled_weight, str):
            return float(self.unlabelled_weight)
        labelled = dataset.labelled().total_weight
        unlabelled = dataset.unlabelled().total_weight
        if memory is not None:
            labelled += memory.labelled
            unlabelled += memory.unlabelled
        return labelled / max(labelled, unlabelled)

    def _in_units(self, value: float, dataset: Dataset, weight: float) -> float:
        """Return a log-likelihood of rows in the units of the table."""
        mean = value / dataset.total_weight
        history = history_in_units(
            {"likelihood": [mean], "value": [mean]}, dataset, self.schema, weight
        )
        return float(history["value"][0]) * dataset.total_weight

    def _with_new_classes(self, model: Mixture, memory: Memory, batch: Batch) -> Mixture:
        """Fit classes that have had no row so far to their first rows."""
        fits = {}
        for label in np.flatnonzero(memory.class_weights(model) == 0.0).tolist():
            own = batch.dataset(np.flatnonzero(batch.labels == label)).of_class(label)
            if own.n_rows == 0:
                continue
            n_components = model.part(label).stop - model.part(label).start
            start = start_mixture(
                own, model.family, n_components, "kmeans", self.generator
            )
            problem = Problem(own, Likelihood(), start, self.pool, False)
            solution = self.estimation.solver().solve(
                problem, start, generator=self.generator
            )
            prior = model.log_class_prior[label : label + 1]
            fits[label] = replace(solution.model, log_class_prior=prior)
        return model.with_class_models(fits) if fits else model


def begin_classes(
    options: ClassifierOptions,
    dataset: Dataset,
    schema: Schema,
    init: str | Mixture,
    generator: np.random.Generator,
    pool: Workers,
    names: Sequence[str],
) -> tuple[Mixture, tuple[str, ...]]:
    """Fit the classes of a first batch; those without rows wait for some.

    A class that waits has components like those of the prior, and next to no probability.

    Parameters
    ----------
    options, dataset, schema, init, generator, pool, names
        As in `fit_classifier`.

    Returns
    -------
    model : Mixture
        Of all classes.
    messages : tuple of str
        What the user should be warned about.
    """
    counts = dataset.class_weights(len(names))
    present = np.flatnonzero(counts > 0.0).tolist()
    if len(present) == 0:
        raise ValueError(
            "The first batch has no row with a label: begin with one that has some."
        )
    if len(present) == len(names):
        fitted = fit_classifier(
            options, dataset, None, schema, init, generator, pool, names
        )
        return fitted.model, fitted.messages
    if isinstance(init, Mixture):
        absent = names[int(np.argmin(counts))]
        raise ValueError(
            f"{absent} has no row in the first batch: init may be a fitted model only if "
            "all classes have some."
        )
    numbers = np.searchsorted(present, dataset.labels)
    numbers[dataset.labels == UNLABELLED] = UNLABELLED
    fitted = fit_classifier(
        replace(
            options,
            n_components=[options.n_components[c] for c in present],
            class_prior="empirical",
        ),
        replace(dataset, labels=numbers),
        None,
        schema,
        init,
        generator,
        pool,
        [names[c] for c in present],
    )
    model = _with_absent_classes(fitted.model, options, present, counts)
    return model, fitted.messages


def _with_absent_classes(
    model: Mixture, options: ClassifierOptions, present: list[int], counts: FloatArray
) -> Mixture:
    """Put classes that wait for rows between those that have some."""
    family = model.family
    own = {c: model.of_class(place) for place, c in enumerate(present)}
    for label, candidates in enumerate(options.n_components):
        if label not in own:
            size = min(candidates)
            own[label] = Mixture(
                family,
                family.maximise(family.zero_statistics(size)),
                np.full(size, -np.log(size)),
                np.zeros(1),
                (0, size),
            )
    joint = joined_classes(family, [own[c] for c in sorted(own)], counts)
    filled = np.maximum(counts, np.finfo(float).tiny)
    prior = options.class_prior
    if not isinstance(prior, str):
        filled = prior
    elif prior == "uniform":
        filled = np.ones(len(counts))
    return replace(joint, log_class_prior=np.log(filled / filled.sum()))
