"""A linear output layer for real targets: least squares, and an insensitive loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from scipy.linalg import eigh, solve

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.evaluation import ChunkedRows

# Penalties to choose from, in rows. Quotients of powers of two are exact, so that pairs
# of the same quotient share a decomposition.
STRENGTHS = tuple(4.0**power for power in range(-2, 6))
# Smallest share of rows that parameters leave to the residuals.
_LEAST_FREE = 1e-3
# The insensitive loss is rounded over this length, in deviations of the target.
_ROUNDED = 0.02
_MOST_STEPS = 300
# Newton's method ends when a step promises to lower the loss by this share, or less.
_PRECISION = 1e-16
_LEAST_DAMPING = 1e-8

Features = Callable[[int], FloatArray]


class GivenTargets(Protocol):
    """Features and targets of all rows: what fits ask of them are sums over the rows."""

    def patterns(self) -> list[list[int]]:
        """Return groups of targets that are known in the same rows."""
        ...

    def moments(self, group: Sequence[int], n_features: int) -> Moments:
        """Return sums of products of features and targets that are known together."""
        ...

    def expansion(self, target: int, point: FloatArray, epsilon: float) -> Expansion:
        """Expand the insensitive loss of a target at weights and bias (F + 1,)."""
        ...


@dataclass(frozen=True)
class TargetRows:
    """Features and scaled targets of rows in memory, chunk by chunk.

    Attributes
    ----------
    rows : ChunkedRows
        The rows, cut into chunks.
    features : callable
        Returns the features (F, n) of the chunk of a number.
    targets : ndarray of shape (t, N)
        Centred and scaled, 0 where missing.
    weights : ndarray of shape (t, N)
        What each row counts; 0 where the target is missing.
    """

    rows: ChunkedRows
    features: Features
    targets: FloatArray
    weights: FloatArray

    def bordered(self, number: int) -> FloatArray:
        """Return the features of a chunk, and a one for the bias, (F + 1, n)."""
        features = self.features(number)
        return np.concatenate([features, np.ones((1, features.shape[1]))])

    def patterns(self) -> list[list[int]]:
        """Return groups of targets that are known together; see `GivenTargets`."""
        groups: dict[bytes, list[int]] = {}
        for k, own in enumerate(self.weights):
            groups.setdefault(own.tobytes(), []).append(k)
        return list(groups.values())

    def moments(self, group: Sequence[int], n_features: int) -> Moments:
        """Add up products of features and targets; see `GivenTargets`."""
        return Moments.of(self, group, n_features)

    def expansion(self, target: int, point: FloatArray, epsilon: float) -> Expansion:
        """Expand the insensitive loss; see `GivenTargets`."""
        size = len(point)

        def added(number: int, sums: Expansion) -> None:
            here, features = self.rows.chunks[number], self.bordered(number)
            own = self.weights[target, here]
            error = point @ features - self.targets[target, here]
            beyond = np.maximum(np.abs(error) - epsilon, 0.0)
            near = np.minimum(beyond, _ROUNDED)
            loss = near * (beyond - 0.5 * near) / _ROUNDED
            slope = np.sign(error) * near / _ROUNDED
            bend = np.where((beyond > 0.0) & (beyond < _ROUNDED), own / _ROUNDED, 0.0)
            sums.add(
                Expansion(
                    float(own @ loss),
                    features @ (own * slope),
                    (features * bend) @ features.T,
                )
            )

        return self.rows.sum(
            added, lambda: Expansion(0.0, np.zeros(size), np.zeros((size, size)))
        )


@dataclass
class Moments:
    """Weighted sums over rows; features are bordered by a one.

    Attributes
    ----------
    gram : ndarray of shape (F + 1, F + 1)
        Products of features.
    cross : ndarray of shape (F + 1, t)
        Products of features and targets.
    square : ndarray of shape (t,)
        Squares of targets.
    """

    gram: FloatArray
    cross: FloatArray
    square: FloatArray

    @classmethod
    def of(cls, given: TargetRows, group: Sequence[int], n_features: int) -> Moments:
        """Add up the rows of targets that are known together."""
        targets, weights = given.targets[list(group)], given.weights[group[0]]

        def zero() -> Moments:
            shape = n_features + 1, n_features + 1
            return cls(
                np.zeros(shape), np.zeros((shape[0], len(group))), np.zeros(len(group))
            )

        def added(number: int, sums: Moments) -> None:
            here = given.rows.chunks[number]
            bordered, own = given.bordered(number), targets[:, here]
            weighted = bordered * weights[here]
            sums.add(cls(weighted @ bordered.T, weighted @ own.T, own**2 @ weights[here]))

        return given.rows.sum(added, zero)

    def add(self, other: Moments) -> None:
        """Add the sums of other rows."""
        self.gram += other.gram
        self.cross += other.cross
        self.square += other.square

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.gram[-1, -1])


class Ridge:
    r"""Penalised least squares for all strengths of a penalty, by one decomposition.

    .. math:: \min_{b, w} \tfrac12 \sum_n \omega_n (y_n - b - w^\top g_n)^2
              + \tfrac{\lambda}2 \sum_f \rho_f w_f^2

    With :math:`S` and :math:`c` the centred sums of products, divided by
    :math:`\sqrt{\rho}`, and :math:`S = V \operatorname{diag}(s) V^\top`, the weights are
    :math:`\rho^{-1/2} V (s + \lambda)^{-1} V^\top c`.

    Parameters
    ----------
    moments : Moments
        Sums over the rows.
    relative : ndarray of shape (F,)
        :math:`\rho`, positive.
    """

    def __init__(self, moments: Moments, relative: FloatArray) -> None:
        self.total = moments.total
        self._mean = moments.gram[:-1, -1] / self.total
        self._target_mean = moments.cross[-1] / self.total
        self._root = np.sqrt(relative)
        products = moments.gram[:-1, :-1] - self.total * np.outer(self._mean, self._mean)
        cross = moments.cross[:-1] - np.outer(self._mean, moments.cross[-1])
        self._square = moments.square - self.total * self._target_mean**2
        values, self._vectors = eigh(products / np.outer(self._root, self._root))
        self._values = np.maximum(values, 0.0)
        self._along = self._vectors.T @ (cross / self._root[:, None])

    def solution(self, strength: float) -> FloatArray:
        """Return weights and, as the last, bias (t, F + 1)."""
        scaled = self._vectors @ (self._along / (self._values + strength)[:, None])
        weights = (scaled / self._root[:, None]).T
        return np.column_stack([weights, self._target_mean - weights @ self._mean])

    def score(self, strength: float) -> FloatArray:
        r"""Return the generalised cross-validation (t,) of the targets.

        The mean squared residual, divided by :math:`(1 - p / N)^2` for :math:`N` rows and
        :math:`p = 1 + \sum_f s_f / (s_f + \lambda)` effective parameters: about the mean
        squared error of rows that are left out one by one.
        """
        denominator = (self._values + strength)[:, None]
        explained = self._along**2 * (denominator + strength) / denominator**2
        residual = np.maximum(self._square - explained.sum(axis=0), 0.0)
        n_effective = 1.0 + float(np.sum(self._values / denominator[:, 0]))
        free = max(1.0 - n_effective / self.total, _LEAST_FREE)
        return residual / self.total / free**2


@dataclass(frozen=True)
class LinearOutput:
    """A fitted layer, for scaled targets.

    Attributes
    ----------
    weights : ndarray of shape (t, F)
        Of the features.
    bias : ndarray of shape (t,)
        Without a penalty.
    deviations : ndarray of shape (t,)
        Of the errors of least squares on rows left out, as generalised cross-validation
        estimates them.
    l2, l2_linear : float
        The penalties.
    interrupted : bool
        Whether the user has ended it early.
    """

    weights: FloatArray
    bias: FloatArray
    deviations: FloatArray
    l2: float
    l2_linear: float
    interrupted: bool = False


def fitted_output(
    given: GivenTargets,
    is_linear: BoolArray,
    l2: float | str,
    l2_linear: float | str,
    epsilon: float | None = None,
) -> LinearOutput:
    """Fit a linear layer to features and targets.

    Parameters
    ----------
    given : GivenTargets
        Features and targets.
    is_linear : ndarray of shape (F,)
        Which features have the penalty `l2_linear`.
    l2, l2_linear : float or "auto"
        Penalties, in rows; those that are "auto" are chosen by generalised
        cross-validation of least squares, for all targets together.
    epsilon : float or None
        Errors below this cost nothing, and others their absolute value; None for squares.
    """
    groups = given.patterns()
    moments = [given.moments(group, len(is_linear)) for group in groups]
    own, linear = _chosen(moments, is_linear, l2, l2_linear)
    penalty = np.append(np.where(is_linear, linear, own), 0.0)
    points = np.empty((sum(map(len, groups)), len(penalty)))
    squares = np.empty(len(points))
    for group, sums in zip(groups, moments, strict=True):
        ridge = Ridge(sums, penalty[:-1] / own)
        points[group] = ridge.solution(own)
        squares[group] = ridge.score(own)
    interrupted = False
    if epsilon is not None:
        grams = {
            k: m.gram for group, m in zip(groups, moments, strict=True) for k in group
        }
        for k, gram in grams.items():
            loss = _Insensitive(given, k, penalty, epsilon)
            points[k], interrupted = loss.solved(points[k], gram)
            if interrupted:  # the other targets keep their least squares
                break
    return LinearOutput(
        points[:, :-1], points[:, -1], np.sqrt(squares), own, linear, interrupted
    )


def _chosen(
    moments: Sequence[Moments],
    is_linear: BoolArray,
    l2: float | str,
    l2_linear: float | str,
) -> tuple[float, float]:
    """Return the penalties of the best generalised cross-validation, of those left open.

    Of equal ones, the first is the weakest. A penalty that no feature has is 1.
    """
    own_choices = _candidates(l2, not is_linear.all())
    linear_choices = _candidates(l2_linear, bool(is_linear.any()))
    pairs = list(product(own_choices, linear_choices))
    if len(pairs) == 1:
        return pairs[0]
    scores: dict[tuple[float, float], float] = {}
    for ratio in sorted({linear / own for own, linear in pairs}):
        ridges = [Ridge(sums, np.where(is_linear, ratio, 1.0)) for sums in moments]
        for own, linear in pairs:
            if linear / own == ratio:
                scores[own, linear] = float(sum(np.sum(r.score(own)) for r in ridges))
    return min(pairs, key=lambda pair: scores[pair])


def _candidates(given: float | str, applies: bool) -> tuple[float, ...]:
    if isinstance(given, str):
        return STRENGTHS if applies else (1.0,)
    return (float(given),)


@dataclass
class Expansion:
    """Value, gradient (F + 1,) and curvature (F + 1, F + 1) of a loss at some point."""

    value: float
    gradient: FloatArray
    curvature: FloatArray

    def add(self, other: Expansion) -> None:
        """Add what other rows contribute."""
        self.value += other.value
        self.gradient += other.gradient
        self.curvature += other.curvature


@dataclass(frozen=True)
class _Insensitive:
    r"""The loss :math:`\sum_n \omega_n \max(0, |e_n| - \epsilon)`, with a penalty.

    Its corner is rounded over a short length: it is convex, and quadratic in pieces.

    Attributes
    ----------
    given : GivenTargets
        Features and targets.
    target : int
        Which target.
    penalty : ndarray of shape (F + 1,)
        Of squared weights, and 0 for the bias.
    epsilon : float
        Errors below it cost nothing.
    """

    given: GivenTargets
    target: int
    penalty: FloatArray
    epsilon: float

    def expanded(self, point: FloatArray) -> Expansion:
        """Expand the loss at weights and bias (F + 1,)."""
        sums = self.given.expansion(self.target, point, self.epsilon)
        penalties = Expansion(
            0.5 * float(self.penalty @ point**2),
            self.penalty * point,
            np.diag(self.penalty),
        )
        sums.add(penalties)
        return sums

    def solved(self, start: FloatArray, gram: FloatArray) -> tuple[FloatArray, bool]:
        """Minimise the loss by Newton's method, damped as by Levenberg and Marquardt.

        Parameters
        ----------
        start : ndarray of shape (F + 1,)
            Weights and bias to begin with.
        gram : ndarray of shape (F + 1, F + 1)
            Products of features, by which steps are damped.

        Returns
        -------
        point : ndarray of shape (F + 1,)
            Weights and bias.
        interrupted : bool
            Whether the user has ended it early.
        """
        point, damping = start, 1.0
        metric = gram + np.diag(self.penalty)
        try:
            here = self.expanded(point)
            for _ in range(_MOST_STEPS):
                matrix = here.curvature + damping * metric
                step = -solve(matrix, here.gradient, assume_a="pos")
                promised = -float(step @ (here.gradient + 0.5 * here.curvature @ step))
                if promised <= _PRECISION * here.value:
                    break
                there = self.expanded(point + step)
                kept = (here.value - there.value) / promised
                if kept > 0.0:
                    point, here = point + step, there
                if kept > 0.75:
                    damping = max(0.2 * damping, _LEAST_DAMPING)
                elif kept < 0.25:
                    damping *= 4.0
        except KeyboardInterrupt:
            return point, True
        return point, False
