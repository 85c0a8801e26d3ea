r"""What training asks of a model: one constraint per row, rival or side of a target.

A model has outputs (C, n): one discriminant function, one score per class or per task.
A constraint asks a signed sum of them to exceed a margin. `Constraints` are the linear
map from outputs to margins, and its adjoint, which turns multipliers (R,) into signed
weights (C, n) of the rows: with these, a posterior adds up sufficient statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hybridmix._typing import FloatArray, IntArray


class Constraints(ABC):
    """Base of the constraints.

    Attributes
    ----------
    n_outputs, n_rows, n_constraints : int
        C, n and R.
    offsets : ndarray of shape (R,) or float
        What margins are reduced by before they are compared with their prior.
    weights : ndarray of shape (R,) or float
        Sample weights, positive: a weight of two is two equal constraints.
    """

    n_outputs: int
    n_rows: int
    n_constraints: int
    offsets: FloatArray | float = 0.0
    weights: FloatArray | float = 1.0

    @property
    def rows(self) -> IntArray:
        """The row (R,) whose outputs each constraint is about."""
        return np.arange(self.n_constraints) % self.n_rows

    @abstractmethod
    def margins(self, outputs: FloatArray) -> FloatArray:
        """Return the margins (R,) of outputs (C, n), without the offsets."""

    @abstractmethod
    def signed(self, multipliers: FloatArray) -> FloatArray:
        """Return the signed weights (C, n) of multipliers (R,): the adjoint."""


class SignedRows(Constraints):
    """One output per row, of the sign of its label: ``y f(x)``.

    Parameters
    ----------
    signs : ndarray of shape (n,)
        1 and -1.
    weights : ndarray of shape (n,) or float
        Sample weights.
    """

    n_outputs = 1

    def __init__(self, signs: FloatArray, weights: FloatArray | float = 1.0) -> None:
        self.signs, self.weights = signs, weights
        self.n_rows = self.n_constraints = len(signs)

    def margins(self, outputs: FloatArray) -> FloatArray:
        return self.signs * outputs[0]

    def signed(self, multipliers: FloatArray) -> FloatArray:
        return (self.signs * multipliers)[None]


class TaskRows(Constraints):
    """One output per task; a row counts for its own task, with the sign of its label.

    Parameters
    ----------
    signs : ndarray of shape (n,)
        1 and -1.
    tasks : ndarray of shape (n,)
        Task numbers.
    n_tasks : int
        Number of tasks.
    weights : ndarray of shape (n,) or float
        Sample weights.
    """

    def __init__(
        self,
        signs: FloatArray,
        tasks: IntArray,
        n_tasks: int,
        weights: FloatArray | float = 1.0,
    ) -> None:
        self.signs, self.tasks, self.weights = signs, tasks, weights
        self.n_outputs = n_tasks
        self.n_rows = self.n_constraints = len(signs)
        self._rows = np.arange(len(signs))

    def margins(self, outputs: FloatArray) -> FloatArray:
        return self.signs * outputs[self.tasks, self._rows]

    def signed(self, multipliers: FloatArray) -> FloatArray:
        weights = np.zeros((self.n_outputs, self.n_rows))
        weights[self.tasks, self._rows] = self.signs * multipliers
        return weights


class Rivals(Constraints):
    """One output per class; the label's exceeds that of each of the C - 1 rivals.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class numbers.
    n_classes : int
        C.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """

    def __init__(
        self, labels: IntArray, n_classes: int, weights: FloatArray | None = None
    ) -> None:
        self.labels = labels
        self.n_outputs, self.n_rows = n_classes, len(labels)
        self.n_constraints = (n_classes - 1) * len(labels)
        if weights is not None:
            self.weights = np.tile(weights, n_classes - 1)
        self._rows = np.arange(len(labels))
        ranks = np.arange(n_classes - 1)[:, None]
        self._rivals = ranks + (ranks >= labels)  # (C - 1, n)

    def margins(self, outputs: FloatArray) -> FloatArray:
        own = outputs[self.labels, self._rows]
        return (own - np.take_along_axis(outputs, self._rivals, axis=0)).ravel()

    def signed(self, multipliers: FloatArray) -> FloatArray:
        per_rival = multipliers.reshape(self.n_outputs - 1, self.n_rows)
        weights = np.zeros((self.n_outputs, self.n_rows))
        np.put_along_axis(weights, self._rivals, -per_rival, axis=0)
        weights[self.labels, self._rows] = per_rival.sum(axis=0)
        return weights


class TargetSides(Constraints):
    """Two constraints per row: the output is at least, and at most, its target.

    Margins are ``f - y`` of the first n constraints, and ``y - f`` of the others.

    Parameters
    ----------
    targets : ndarray of shape (n,)
        Real targets.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """

    n_outputs = 1

    def __init__(self, targets: FloatArray, weights: FloatArray | None = None) -> None:
        self.n_rows, self.n_constraints = len(targets), 2 * len(targets)
        self.offsets = np.concatenate([targets, -targets])
        if weights is not None:
            self.weights = np.tile(weights, 2)

    def margins(self, outputs: FloatArray) -> FloatArray:
        return np.concatenate([outputs[0], -outputs[0]])

    def signed(self, multipliers: FloatArray) -> FloatArray:
        above, below = multipliers.reshape(2, self.n_rows)
        return (above - below)[None]


class TaskTargets(Constraints):
    """Two constraints per row on the output of its task: the sides of its target.

    Margins are ``f - y`` of the first n constraints, and ``y - f`` of the others.

    Parameters
    ----------
    targets : ndarray of shape (n,)
        Real targets.
    tasks : ndarray of shape (n,)
        Task numbers.
    n_tasks : int
        Number of tasks.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """

    def __init__(
        self,
        targets: FloatArray,
        tasks: IntArray,
        n_tasks: int,
        weights: FloatArray | None = None,
    ) -> None:
        self._sides = TargetSides(targets, weights)
        self._own = TaskRows(np.ones(len(targets)), tasks, n_tasks)
        self.n_outputs, self.n_rows = n_tasks, len(targets)
        self.n_constraints = self._sides.n_constraints
        self.offsets, self.weights = self._sides.offsets, self._sides.weights

    def margins(self, outputs: FloatArray) -> FloatArray:
        return self._sides.margins(self._own.margins(outputs)[None])

    def signed(self, multipliers: FloatArray) -> FloatArray:
        return self._own.signed(self._sides.signed(multipliers)[0])
