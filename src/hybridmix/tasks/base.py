"""What a task is: metrics, folds, and models to compare with."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import Table

# With fewer rows, a score says hardly anything.
FEWEST_ROWS = 10


@dataclass(frozen=True)
class Metric:
    """A score.

    Attributes
    ----------
    name : str
        Its name.
    meaning : str
        What it measures, in a sentence or two.
    is_loss : bool, default=False
        Whether smaller is better.
    ideal : float or None, default=None
        The value that it should have; None if it is best at an end of its range.
    has_unit : bool, default=False
        Whether it is in the units of the target, and so of any size.
    """

    name: str
    meaning: str
    is_loss: bool = False
    ideal: float | None = None
    has_unit: bool = False

    def best(self, values: Sequence[float]) -> float:
        """Return the best of some values; NaN unless two of them or more are known."""
        known = [value for value in values if not math.isnan(value)]
        if len(known) < 2:
            return math.nan
        ideal = self.ideal
        if ideal is not None:
            return min(known, key=lambda value: abs(value - ideal))
        return min(known) if self.is_loss else max(known)


class Cases(Protocol):
    """A fitted model and rows to judge it by.

    Attributes
    ----------
    given : estimator
        The model as it was given: perhaps a search.
    model : FittedMixture
        The fitted mixture itself.
    table : Table
        The rows, encoded by the model.
    y : ndarray of shape (n,) or (n, t), or None
        Labels or targets, as models are trained on them.
    truth : ndarray of shape (n,) or (n, t)
        The same as the task reads them; see `Task.read`.
    n_folds : int
        Folds to make, if there are enough rows.
    seed : int
        Seed for everything that is drawn.
    """

    @property
    def given(self) -> Any: ...  # noqa: D102
    @property
    def model(self) -> Any: ...  # noqa: D102
    @property
    def table(self) -> Table: ...  # noqa: D102
    @property
    def y(self) -> np.ndarray | None: ...  # noqa: D102
    @property
    def truth(self) -> np.ndarray: ...  # noqa: D102
    @property
    def n_folds(self) -> int: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102

    def part(self, rows: IntArray) -> Any:
        """Return some rows, as a table of the kind that was given."""
        ...


class Entrant(NamedTuple):
    """A model that takes part in a cross-validation.

    Attributes
    ----------
    name : str
        Name of the model.
    X, y : table and labels
        Rows that take part, as the model takes them.
    learns_from : ndarray of shape (n,)
        Which of them it can be trained on.
    make : callable
        Returns an unfitted model.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights that it is trained with.
    """

    name: str
    X: Any
    y: np.ndarray | None
    learns_from: BoolArray
    make: Callable[[], Any]
    weights: FloatArray | None = None


class Task(ABC):
    """What a model is for, and so how it is judged.

    Attributes
    ----------
    target : {"classes", "numbers", "none"}
        What the rows are labelled by.
    unit : str
        What is predicted: a row, or a sequence of rows.
    row : tuple of str
        What a row that can be scored is called, and several of them.
    others : str
        What the models of `baselines` are, in a few sentences.
    metrics : tuple of Metric
        Scores, the most telling first.
    headline : tuple of str
        Names of those that a summary shows.
    """

    target: ClassVar[str]
    unit: ClassVar[str] = "row"
    row: ClassVar[tuple[str, str]]
    others: ClassVar[str]
    metrics: ClassVar[tuple[Metric, ...]]
    headline: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(
        self, model: Any, y: Any, n_rows: int
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """Read the targets of rows, which may be None.

        Parameters
        ----------
        model : FittedMixture
            A fitted model of the task.
        y : array-like of shape (n_rows,) or (n_rows, t), or None
            Targets as they were given.
        n_rows : int
            How many there should be.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, t), or None
            Targets to train models on; None if there are none.
        truth : ndarray of shape (n_rows,) or (n_rows, t)
            What predictions are compared with: numbers of classes (-1 for none), real
            targets (NaN for none), or zeros for a task without targets.
        """

    def given(self, model: Any, truth: np.ndarray) -> np.ndarray:
        """Turn some of the truth, none of it missing, into targets as users have them."""
        return truth

    @abstractmethod
    def groups(self, cases: Cases) -> IntArray:
        """Return the groups that every fold has its share of; -1 for rows not scored."""

    @abstractmethod
    def obstacle(self, cases: Cases) -> str | None:
        """Say why the rows cannot be scored by any model; None if they can be."""

    @abstractmethod
    def fold_obstacle(self, cases: Cases) -> str | None:
        """Say why there can be no cross-validation; None if there can be."""

    @abstractmethod
    def fresh_model(self, cases: Cases) -> Any:
        """Return an unfitted model with the options of the one that was given."""

    def keeps_choice(self, cases: Cases) -> bool:
        """Return whether `fresh_model` keeps options that a search has chosen.

        The search has seen all rows, so that scores on some of them flatter a little.
        """
        return False

    @abstractmethod
    def baselines(
        self, cases: Cases, used: IntArray, folds: IntArray
    ) -> Iterator[Entrant]:
        """Make other models to compare with, for rows that are dealt into folds."""

    @abstractmethod
    def outputs(self, cases: Cases, model: Any, X: Any, truth: np.ndarray) -> FloatArray:
        """Return what metrics are computed from, for rows and any model of the task."""

    @abstractmethod
    def scores(self, truth: np.ndarray, outputs: FloatArray) -> dict[str, Estimate]:
        """Return the metrics of some rows by name."""

    def metric(self, name: str) -> Metric:
        """Return a metric by its name."""
        return next(metric for metric in self.metrics if metric.name == name)


def dealt_folds(
    groups: IntArray, n_folds: int, generator: np.random.Generator
) -> IntArray:
    """Deal out the rows of each group; -1 for rows that are never held out.

    These are rows without a group, and the only row of a group. There are never more
    folds than rows in the largest group.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Numbers of the groups, such as classes; -1 for none.
    n_folds : int
        Folds to make.
    generator : numpy.random.Generator
        Random numbers.
    """
    counts = np.bincount(groups[groups >= 0])
    n_folds = min(n_folds, int(counts.max()))
    folds = np.full(len(groups), -1)
    dealt = 0
    for group in np.flatnonzero(counts > 1):
        rows = generator.permutation(np.flatnonzero(groups == group))
        # Going on where the last group ended makes folds of equal size.
        folds[rows] = (dealt + np.arange(len(rows))) % n_folds
        dealt += len(rows)
    return folds


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings about parts of a table.

    A model that is trained again on a fold may miss a category or stop early. Its scores
    show that, and the user has been warned about the table already.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
