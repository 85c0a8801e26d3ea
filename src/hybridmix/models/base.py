"""The contract of a model: a joint density of rows and classes.

Problems and solvers know nothing else of a model. A mixture sums its components, a
network is ``log p(x) + log softmax(scores)``, a hidden Markov model runs forward and
backward; objectives, unlabelled rows and solvers are the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.exceptions import UnsupportedError
from hybridmix.families.base import overrides

P = TypeVar("P")  # prepared rows
S = TypeVar("S", bound="ModelStatistics")


class ModelStatistics(Protocol):
    """Sums over rows that add up, chunk by chunk."""

    def add(self, other: Self, part: slice = ...) -> None:
        """Add statistics that concern a part of the model, as `Model.part` gives it."""
        ...


class Evaluation(ABC, Generic[S]):
    """The log joint densities of a chunk of rows, and the way back from weights.

    Attributes
    ----------
    log_joint : ndarray of shape (C, n)
        Log of ``p(x, c)``.
    """

    log_joint: FloatArray

    @abstractmethod
    def statistics(self, weights: FloatArray) -> S:
        """Pull signed weights (C, n) back to statistics of the model.

        The weights are derivatives of a value by `log_joint`. The statistics hold all
        that a gradient or an M-step needs of the rows. An evaluation may be used up by
        this: its memory goes to the result.
        """


# Where the rows of a class come from: at most a few, with their weights.
RowsOfClass = Callable[[int], tuple[Rows, FloatArray]]


class Model(ABC, Generic[P, S]):
    """A joint density ``p(x, c)`` of rows and classes; immutable.

    A model must be able to evaluate prepared rows and to offer coordinates. The methods
    in the second half are optional; those that a model leaves out raise an
    `UnsupportedError`, and `offers` says so beforehand.
    """

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes."""

    @abstractmethod
    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation.

        The mask (d, n) of the rows to come shows how many holes to expect; None for none.
        """

    @abstractmethod
    def prepare(self, rows: Rows) -> P:
        """Rearrange rows into what `evaluate` reads.

        The result must not depend on parameters: it is kept while these change.
        """

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared row occupies."""
        return self.width(observed)

    def work(self, observed: BoolArray | None = None) -> int:
        """Return about how many multiplications the evaluation of a row takes."""
        return self.width(observed)

    @abstractmethod
    def evaluate(self, prepared: P) -> Evaluation[S]:
        """Evaluate the log joint densities of prepared rows."""

    @abstractmethod
    def zero_statistics(self) -> S:
        """Return the statistics of no rows."""

    @abstractmethod
    def coordinates(
        self, n_rows: float, learn_class_prior: bool = True
    ) -> ModelCoordinates[S]:
        """Return coordinates around this model, whitened for this many rows."""

    def log_prior_density(self) -> float:
        """Return the log density of the prior of the parameters, up to a constant."""
        return 0.0

    def offers(self, capability: str) -> bool:
        """Return whether an optional method of this name can be called."""
        return overrides(self, Model, capability)

    # Optional: objectives that look at no rivals evaluate one class at a time ----------

    def of_class(self, label: int) -> Self:
        """Return the part of one class; its joint density keeps the class probability."""
        raise UnsupportedError(self, "the density of a single class")

    def part(self, label: int) -> slice:
        """Return where the statistics of one class stand among those of all."""
        raise UnsupportedError(self, "statistics of a single class")

    def evaluate_own(self, prepared: P, labels: IntArray) -> Evaluation[S]:
        """Evaluate every row by its own class; other log joint densities are -inf.

        All classes are evaluated together, not one by one. The labels (n,) of prepared
        rows are always the same.
        """
        raise UnsupportedError(self, "an evaluation of own classes")

    # Optional: EM ---------------------------------------------------------------------

    def maximised(self, statistics: S, learn_class_prior: bool = True) -> Self:
        """Return the model that expected statistics call for (the M-step)."""
        raise UnsupportedError(self, "an M-step", "Use a gradient method.")

    @property
    def classes_are_apart(self) -> bool:
        """Whether M-steps of the classes have no parameter in common."""
        return False

    def with_classes(self, other: Self, chosen: BoolArray) -> Self:
        """Return this model with the chosen (C,) classes taken from another one."""
        raise UnsupportedError(self, "an exchange of single classes")

    def with_class_models(self, models: Mapping[int, Self]) -> Self:
        """Return this model with some classes replaced; each has a model of its own."""
        raise UnsupportedError(self, "an exchange of single classes")

    def within_bounds(self) -> Self:
        """Return the nearest model that an M-step may lead to, such as one above floors.

        Coordinates may lead elsewhere, and then an M-step could lower the value.
        """
        return self

    def collapsed(self, statistics: S, class_weights: FloatArray) -> IntArray:
        """Return which parts the last M-step has left without rows or without spread.

        The weights (C,) are those of the rows that each class is learned from.
        """
        return np.empty(0, dtype=np.intp)

    def class_of_part(self, parts: IntArray) -> IntArray:
        """Return the classes that parts found by `collapsed` belong to."""
        raise UnsupportedError(self, "parts of classes")

    def reseeded(self, collapsed: IntArray, rows_of: RowsOfClass) -> Self:
        """Start collapsed parts anew, on rows that the model explains worst."""
        raise UnsupportedError(self, "a new start of its parts")

    # Optional: extended Baum-Welch ------------------------------------------------------

    def damped(
        self, statistics: S, factor: float, *, shared: bool, learn_class_prior: bool
    ) -> Self:
        """Return the model after an M-step that is damped by this model.

        The damping is the factor times the smallest one that leaves a density, for each
        component or, if `shared`, for all of them.
        """
        raise UnsupportedError(self, "damped M-steps", "Use solver='lbfgs'.")


class ModelPoint(ABC, Generic[S]):
    """A vector of coordinates and the model that it stands for.

    Attributes
    ----------
    model : Model
        The model.
    """

    model: Model

    @abstractmethod
    def gradient(self, statistics: S) -> FloatArray:
        """Pull the gradient of a value, given by its statistics, back to the vector."""

    @abstractmethod
    def prior_gradient(self) -> FloatArray:
        """Return the gradient of the log density of the prior."""


class ModelCoordinates(ABC, Generic[S]):
    """An unconstrained vector that stands for a model; zero stands for the start.

    A step of length one changes the log-likelihood of the start by about one half in
    every direction.

    Attributes
    ----------
    size : int
        Length of the vector.
    """

    size: int

    @abstractmethod
    def at(self, vector: FloatArray) -> ModelPoint[S]:
        """Return the model that a vector stands for, with the way back for gradients."""

    @abstractmethod
    def vector(self, model: Model) -> FloatArray:
        """Return the vector that stands for a model; `at` is the way back."""

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector; none by default."""
        return np.full(self.size, -np.inf), np.full(self.size, np.inf)
