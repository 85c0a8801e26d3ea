"""The contract of a solver: what it needs, what it returns, how it is watched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.exceptions import UnsupportedError
from hybridmix.models.base import Model
from hybridmix.problem import Assessment, Problem
from hybridmix.progress import announce

Watch = Callable[[Model], bool]
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Solution(Generic[M]):
    """What a solver found.

    Attributes
    ----------
    model : Model
        The best model.
    value : float
        Mean objective of the rows, with the log density of the priors.
    traces : dict of str to list of float
        What changed from the start over the iterations; see `History`.
    converged : bool
        Whether the tolerance was met, or the watch said to stop.
    interrupted : bool
        Whether the user stopped the solver.
    n_reseeded : int
        How often a collapsed component was started anew.
    n_iter : int
        Number of iterations.
    classes : ClassOutcomes or None
        How single classes fared, if the solver could take them one by one.
    """

    model: M
    value: float
    traces: dict[str, list[float]] = field(default_factory=dict)
    converged: bool = False
    interrupted: bool = False
    n_reseeded: int = 0
    n_iter: int = 0
    classes: ClassOutcomes | None = None

    @property
    def trace(self) -> list[float]:
        """The value at the start and after every iteration."""
        return self.traces.get("value", [])


@dataclass(frozen=True)
class ClassOutcomes:
    """How the classes of a model fared that were maximised apart from each other.

    Attributes
    ----------
    values : ndarray of shape (C,)
        Mean objective of the rows of each class, with the log density of its priors.
    n_iter : ndarray of shape (C,)
        Iterations of each class.
    converged : ndarray of bool, shape (C,)
        Whether it met the tolerance.
    n_reseeded : ndarray of shape (C,)
        How often one of its components was started anew.
    """

    values: FloatArray
    n_iter: IntArray
    converged: BoolArray
    n_reseeded: IntArray


class Solver(ABC):
    """A way to maximise the value of a problem from a start.

    Attributes
    ----------
    needs : tuple of str
        Names of the optional methods of a `Model` that the solver calls.
    takes_signed_weights : bool
        Whether it can maximise objectives whose weights may be negative.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    takes_signed_weights: ClassVar[bool] = True

    def check(self, problem: Problem, start: Model) -> None:
        """Refuse an objective or a model that the solver cannot work with."""
        name = type(self).__name__
        if problem.objective.signed and not self.takes_signed_weights:
            raise ValueError(
                f"{name} cannot maximise {type(problem.objective).__name__}: its weights "
                "may be negative. Use a gradient method."
            )
        for need in self.needs:
            if not start.offers(need):
                raise UnsupportedError(
                    start, f"'{need}', which {name} needs", "Use another solver."
                )

    @abstractmethod
    def solve(
        self,
        problem: Problem,
        start: M,
        watch: Watch | None = None,
        generator: np.random.Generator | None = None,
    ) -> Solution[M]:
        """Iterate from a start; an interrupt (Ctrl-C) ends it with what it has.

        Parameters
        ----------
        problem : Problem
            What is maximised.
        start : Model
            Where to begin.
        watch : callable or None
            Is shown the model of the start and of every iteration; stops if True.
        generator : numpy.random.Generator or None
            Source of randomness, for solvers that need one.
        """


class History:
    """The traces of a solver, which also announces its progress.

    Parameters
    ----------
    problem : Problem
        What is maximised.
    task : str
        Name of the solver.
    max_iter : int
        Largest number of iterations.

    Attributes
    ----------
    traces : dict of str to list of float
        "value": mean objective of the rows, with the log density of the priors; the name
        of every term of the objective: its mean over the rows; "training_error": share of
        the labelled rows that are misclassified, if the objective looks at rivals.
    """

    def __init__(self, problem: Problem, task: str, max_iter: int) -> None:
        self._task = task
        self._max_iter = max_iter
        self._total = problem.total_weight
        self._labelled = problem.labelled_weight
        self._parts = problem.objective.parts
        names = ["value", *self._parts]
        if problem.objective.needs_rivals:
            names.append("training_error")
        self.traces: dict[str, list[float]] = {name: [] for name in names}

    @property
    def n_iter(self) -> int:
        """Number of iterations after the start."""
        return max(0, len(self.traces["value"]) - 1)

    def value(self, assessment: Assessment, model: Model) -> float:
        """Return the mean objective of the rows, with the log density of the priors."""
        return (assessment.value + model.log_prior_density()) / self._total

    def add(
        self, assessment: Assessment, model: Model, value: float | None = None
    ) -> float:
        """Note the start or an iteration; return its value, computed unless given."""
        if value is None:
            value = self.value(assessment, model)
        self.traces["value"].append(value)
        for name, part in zip(self._parts, assessment.parts, strict=True):
            self.traces[name].append(float(part) / self._total)
        if "training_error" in self.traces:
            share = assessment.wrong / self._labelled if self._labelled else float("nan")
            self.traces["training_error"].append(share)
        self._announce()
        return value

    def repeat(self) -> None:
        """Note an iteration that was taken back: the traces stay where they are."""
        for trace in self.traces.values():
            trace.append(trace[-1])
        self._announce()

    def _announce(self) -> None:
        value = self.traces["value"][-1]
        announce(self._task, self.n_iter, self._max_iter, f"mean value {value:.4f}")


class EarlyStopping:
    r"""A watch that keeps the model of the lowest validation loss, and says when to stop.

    Parameters
    ----------
    loss : callable
        Validation loss of a model.
    patience : int
        Stop after this many iterations without a lower loss.
    generalisation_loss : float
        Stop when the loss has risen by this share of the lowest one so far,
        :math:`l(t) / \min_{t' \le t} l(t') - 1` (Prechelt 1998).

    Attributes
    ----------
    losses : list of float
        Validation loss of the start and of every iteration.
    best_model : Model or None
        The model of the lowest loss.
    """

    def __init__(
        self,
        loss: Callable[[Model], float],
        patience: int,
        generalisation_loss: float = np.inf,
    ) -> None:
        self._loss = loss
        self._patience = patience
        self._generalisation_loss = generalisation_loss
        self.losses: list[float] = []
        self.best_model: Model | None = None

    def __call__(self, model: Model) -> bool:
        """Look at the model of an iteration; return True to stop."""
        loss = self._loss(model)
        if not self.losses or loss < min(self.losses):
            self.best_model = model
        self.losses.append(loss)
        lowest = min(self.losses)
        waited = len(self.losses) - 1 - self.losses.index(lowest)
        if waited >= self._patience:
            return True
        return waited > 0 and loss - lowest > self._generalisation_loss * lowest
