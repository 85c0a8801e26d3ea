"""The log-linear output layer of a network, with an elastic net penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_rank
from hybridmix._typing import BoolArray, FloatArray

# Curvature of the log probability of a class by its score, at most.
_CURVATURE = 0.25
# Parts of weights below this are at their bound, up to rounding.
_ROUNDING = 1e-12


@registered
@dataclass(frozen=True, eq=False)
class OutputLayer:
    r"""Scores of classes, log-linear in features, with the penalty of an elastic net.

    .. math:: s = b + W g, \qquad
              \sum_{cf} \lambda_{1f} |w_{cf}| + \tfrac12 \lambda_{2f} w_{cf}^2

    Attributes
    ----------
    weights : ndarray of shape (C, F)
        :math:`W`.
    bias : ndarray of shape (C,)
        :math:`b`; it has no penalty.
    l1, l2 : ndarray of shape (F,)
        :math:`\lambda_1` and :math:`\lambda_2`.
    slack : ndarray of shape (C, F) or None
        While weights with an absolute penalty are trained, they are differences of two
        parts that are not negative; this is the smaller one. None is zero.
    """

    weights: FloatArray
    bias: FloatArray
    l1: FloatArray
    l2: FloatArray
    slack: FloatArray | None = None

    @classmethod
    def zero(cls, n_classes: int, l1: FloatArray, l2: FloatArray) -> OutputLayer:
        """Return a layer that gives all classes the same probability."""
        return cls(np.zeros((n_classes, len(l1))), np.zeros(n_classes), l1, l2)

    def check_consistent(self) -> None:
        """Raise ValueError unless the arrays fit together."""
        require_rank("weights", self.weights, 2)
        n_classes, n_features = self.weights.shape
        require_array("weights", self.weights, (n_classes, n_features))
        require_array("bias", self.bias, (n_classes,))
        for name, penalty in (("l1", self.l1), ("l2", self.l2)):
            require_array(name, penalty, (n_features,))
            require((penalty >= 0.0).all(), f"{name} has negative values")
        require(self.slack is None, "weights are still split")

    def settled(self) -> OutputLayer:
        """Return the layer without slack, which has the lower penalty."""
        return replace(self, slack=None)

    def log_probabilities(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log probabilities of classes (C, n), and the probabilities."""
        scores = np.dot(self.weights, features)
        scores += self.bias[:, None]
        log_total, probabilities = class_posterior(scores)
        scores -= log_total
        return scores, probabilities

    def log_prior_density(self) -> float:
        """Return minus the penalty."""
        absolute = np.abs(self.weights)
        if self.slack is not None:
            absolute = absolute + 2.0 * self.slack
        penalty = absolute @ self.l1 + 0.5 * np.square(self.weights) @ self.l2
        return -float(penalty.sum())

    def zero_statistics(self) -> OutputStatistics:
        """Return the statistics of no rows."""
        return OutputStatistics(np.zeros_like(self.weights), np.zeros_like(self.bias))


@dataclass
class OutputStatistics:
    """Derivatives of a value by weights (C, F) and bias (C,)."""

    by_weights: FloatArray
    by_bias: FloatArray

    @classmethod
    def of(cls, by_scores: FloatArray, features: FloatArray) -> OutputStatistics:
        """Pull derivatives by scores (C, n) back."""
        return cls(np.dot(by_scores, features.T), by_scores.sum(axis=1))

    def add(self, other: OutputStatistics, part: slice = slice(None)) -> None:
        """Add statistics of other rows; the layer has no parts."""
        self.by_weights += other.by_weights
        self.by_bias += other.by_bias


class OutputCoordinates:
    """A vector that stands for an output layer; zero stands for the start.

    With an absolute penalty, weights are differences of two parts with a lower bound of
    zero each: at such a bound they are exactly zero, and the penalty is linear.

    Parameters
    ----------
    start : OutputLayer
        Stands at zero.
    n_rows : float
        Number of rows, which a step of length one depends on.
    squares : ndarray of shape (F,)
        Mean squares of the features, about.
    seen : ndarray of bool, shape (C, F), or None
        Which weights are free; the others stay zero.
    """

    def __init__(
        self,
        start: OutputLayer,
        n_rows: float,
        squares: FloatArray,
        seen: BoolArray | None = None,
    ) -> None:
        self.start = start
        curvatures = _CURVATURE * n_rows * squares + start.l2
        steps = np.broadcast_to(
            1.0 / np.sqrt(np.maximum(curvatures, 1.0)), start.weights.shape
        )
        self.free = np.ones(steps.shape, bool) if seen is None else seen
        self.step = steps[self.free]
        self.bias_step = 1.0 / np.sqrt(max(_CURVATURE * n_rows, 1.0))
        self.is_split = bool(start.l1.any())
        self._absolute = np.broadcast_to(start.l1, steps.shape)[self.free]
        n_weights = len(self.step) * (2 if self.is_split else 1)
        self.size = n_weights + len(start.bias)

    def at(self, vector: FloatArray) -> OutputPoint:
        """Return the layer that a vector stands for."""
        by_weights, by_bias = np.split(vector, [self.size - len(self.start.bias)])
        weights, slack = np.zeros(self.free.shape), None
        own = self.start.weights[self.free]
        if self.is_split:
            moves = np.split(by_weights, 2)
            up, down = map(self._moved, self._parts(self.start), moves)
            weights[self.free] = up - down
            slack = np.zeros(self.free.shape)
            slack[self.free] = np.minimum(up, down)
        else:
            weights[self.free] = own + by_weights * self.step
        bias = self.start.bias + by_bias * self.bias_step
        output = replace(self.start, weights=weights, bias=bias, slack=slack)
        return OutputPoint(self, output)

    def vector(self, output: OutputLayer) -> FloatArray:
        """Return the vector that stands for a layer."""
        both = zip(self._parts(output), self._parts(self.start), strict=True)
        moved = [(own - start) / self.step for own, start in both]
        bias = (output.bias - self.start.bias) / self.bias_step
        return np.concatenate([*moved, bias])

    def _parts(self, output: OutputLayer) -> list[FloatArray]:
        """Return the free weights: in two parts of which none is negative, if split."""
        own = output.weights[self.free]
        if not self.is_split:
            return [own]
        slack = 0.0 if output.slack is None else output.slack[self.free]
        return [np.maximum(own, 0.0) + slack, np.maximum(-own, 0.0) + slack]

    def _moved(self, part: FloatArray, move: FloatArray) -> FloatArray:
        moved = part + move * self.step
        return np.where(moved < _ROUNDING, 0.0, moved)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector."""
        lower, upper = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        if self.is_split:
            least = [-part / self.step for part in self._parts(self.start)]
            lower[: 2 * len(self.step)] = np.concatenate(least)
        return lower, upper


@dataclass(frozen=True)
class OutputPoint:
    """A layer, and the way back for gradients."""

    coordinates: OutputCoordinates
    output: OutputLayer

    def gradient(self, statistics: OutputStatistics) -> FloatArray:
        """Pull derivatives by weights and bias back to the vector."""
        return self._vector(statistics.by_weights, statistics.by_bias, 0.0)

    def prior_gradient(self) -> FloatArray:
        """Return the gradient of minus the penalty."""
        by_weights = -self.output.l2 * self.output.weights
        return self._vector(
            by_weights, np.zeros(len(self.output.bias)), self.coordinates._absolute
        )

    def _vector(
        self, by_weights: FloatArray, by_bias: FloatArray, absolute: FloatArray | float
    ) -> FloatArray:
        frame = self.coordinates
        own = by_weights[frame.free]
        signs = (1.0, -1.0) if frame.is_split else (1.0,)
        parts = [(sign * own - absolute) * frame.step for sign in signs]
        return np.concatenate([*parts, by_bias * frame.bias_step])
