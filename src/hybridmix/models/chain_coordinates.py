"""Unconstrained coordinates of hidden Markov models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.families.base import Point
from hybridmix.models.base import Model, ModelCoordinates, ModelPoint
from hybridmix.models.chain_statistics import ChainStatistics

if TYPE_CHECKING:
    from hybridmix.models.chains import Chains


class LogitTable:
    """Logits of probabilities that sum to one along the last axis of an array.

    Parameters
    ----------
    logs : ndarray
        Log probabilities at the start; those of minus infinity stay so.
    counts : ndarray
        Numbers that the probabilities were counted from, in the shape of `logs` or with
        a last axis of one; a step of a logit is one over their square root.
    """

    def __init__(self, logs: FloatArray, counts: FloatArray) -> None:
        self._logs = logs
        self.is_free: BoolArray = np.isfinite(logs)
        steps = 1.0 / np.sqrt(np.maximum(counts, 1.0))
        self._steps = np.broadcast_to(steps, logs.shape)[self.is_free]
        self.size = len(self._steps)

    def logs_at(self, vector: FloatArray) -> FloatArray:
        """Return the log probabilities that a vector stands for."""
        logs = self._logs.copy()
        logs[self.is_free] += vector * self._steps
        return logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True)

    def vector(self, logs: FloatArray) -> FloatArray:
        """Return a vector that stands for log probabilities."""
        return (logs[self.is_free] - self._logs[self.is_free]) / self._steps

    def gradient(self, logs: FloatArray, counts: FloatArray) -> FloatArray:
        """Pull derivatives by the log probabilities, which are counts, back."""
        own = np.where(self.is_free, counts, 0.0)
        expected = own.sum(axis=-1, keepdims=True) * np.exp(logs)
        return (own - expected)[self.is_free] * self._steps


class ChainCoordinates(ModelCoordinates[ChainStatistics]):
    """The family's coordinates, then logits of the tables of probabilities.

    The tables are proportions within states, first states, transitions (with exits) and,
    if they are to be learned, class probabilities.

    Parameters
    ----------
    start : Chains
        Stands at zero.
    n_sequences : float
        Number of sequences that the coordinates are white for.
    learn_class_prior : bool
        Whether class probabilities are free.
    """

    def __init__(
        self, start: Chains, n_sequences: float, learn_class_prior: bool = True
    ) -> None:
        self._start = start
        class_counts = n_sequences * np.exp(start.log_class_prior)
        frames = class_counts[:, None] * start.occupation()
        mixing_counts = frames[:, :, None] * np.exp(start.log_mixing)
        self._family = start.family.coordinates(start.components, mixing_counts.ravel())
        self.learn_class_prior = learn_class_prior
        self.tables = [
            LogitTable(start.log_mixing, mixing_counts),
            LogitTable(start.log_start, class_counts[:, None]),
            LogitTable(start.log_moves, frames[:, :, None]),
        ]
        if learn_class_prior:
            self.tables.append(LogitTable(start.log_class_prior, class_counts))
        sizes = [self._family.size, *(table.size for table in self.tables)]
        self._ends = np.cumsum(sizes)[:-1]
        self.size = int(sum(sizes))

    def at(self, vector: FloatArray) -> ChainPoint:
        """Return the model that a vector stands for."""
        by_family, *by_table = np.split(vector, self._ends)
        logs = [t.logs_at(v) for t, v in zip(self.tables, by_table, strict=True)]
        point = self._family.at(by_family)
        model = replace(
            self._start,
            components=point.parameters,
            log_mixing=logs[0],
            log_start=logs[1],
            log_moves=logs[2],
            log_class_prior=(
                logs[3] if self.learn_class_prior else self._start.log_class_prior
            ),
        )
        return ChainPoint(self, model, point)

    def vector(self, model: Model) -> FloatArray:
        """Return the vector that stands for a model of the same shape."""
        chains: Chains = model  # type: ignore[assignment]
        parts = [self._family.vector(chains.components)]
        for table, logs in zip(self.tables, chains.tables, strict=False):
            parts.append(table.vector(logs))
        return np.concatenate(parts)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector."""
        lower, upper = super().bounds()
        own = slice(0, self._family.size)
        lower[own], upper[own] = self._family.bounds()
        return lower, upper


@dataclass(frozen=True)
class ChainPoint(ModelPoint[ChainStatistics]):
    """A hidden Markov model, and the way back for gradients.

    Attributes
    ----------
    coordinates : ChainCoordinates
        Where the vector lives.
    model : Chains
        What it stands for.
    family : Point
        Its part that concerns the components.
    """

    coordinates: ChainCoordinates
    model: Chains
    family: Point

    def gradient(self, statistics: ChainStatistics) -> FloatArray:
        """Pull the gradient of a value, given by its statistics, back to the vector."""
        parts = [self.family.gradient(statistics.components)]
        counts = self.model.table_counts(statistics)
        for table, logs, own in zip(
            self.coordinates.tables, self.model.tables, counts, strict=False
        ):
            parts.append(table.gradient(logs, own))
        return np.concatenate(parts)

    def prior_gradient(self) -> FloatArray:
        """Return the gradient of the log density of the priors."""
        parts = [self.family.prior_gradient()]
        model = self.model
        for number, (table, logs) in enumerate(
            zip(self.coordinates.tables, model.tables, strict=False)
        ):
            # Class probabilities, the last table, have no prior.
            counts = model.concentration if number < 3 else 0.0
            parts.append(table.gradient(logs, np.full(logs.shape, counts)))
        return np.concatenate(parts)
