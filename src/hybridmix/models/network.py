"""Networks: a mixture, features of its components, and a log-linear output layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._registered import registered
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import Notes, Prepared
from hybridmix.models.base import Evaluation, Model, ModelCoordinates, ModelPoint
from hybridmix.models.output import OutputPoint, OutputStatistics
from hybridmix.models.readout import (
    Layers,
    Readout,
    component_log_joint,
    output_coordinates,
)
from hybridmix.models.statistics import MixtureStatistics


class NetworkRows(NamedTuple):
    """Prepared rows of a network."""

    density: Prepared
    cells: FloatArray


@dataclass
class NetworkStatistics:
    """Statistics of the mixture, and those of the output layer."""

    density: MixtureStatistics
    output: OutputStatistics

    def add(self, other: NetworkStatistics, part: slice = slice(None)) -> None:
        """Add statistics of other rows; a network has no parts."""
        self.density.add(other.density)
        self.output.add(other.output)


@registered
@dataclass(frozen=True, eq=False)
class Network(Layers, Model[NetworkRows, NetworkStatistics]):
    r"""A mixture, and class probabilities that are log-linear in its embedding of a row.

    .. math:: \log p(x, c) = \log p(x) + \log \operatorname{softmax}_c
              \big( b + W g(x) \big)

    A row without a label has :math:`\log \sum_c p(x, c) = \log p(x)`. With holes,
    :math:`p(x)` and the posteriors of components are exact marginals; see `Readout` for
    the class probabilities.
    """

    @property
    def readout(self) -> Readout:
        """The class probabilities alone."""
        return Readout(self.density, self.embedding, self.output)

    def prepare(self, rows: Rows) -> NetworkRows:
        """Rearrange rows into what the mixture reads, and fill their holes."""
        return NetworkRows(self.density.prepare(rows), self.embedding.cells(rows))

    def evaluate(self, prepared: NetworkRows) -> NetworkEvaluation:
        """Evaluate log joint densities, with what leads back from them."""
        density = self.density
        components, notes = component_log_joint(density, prepared.density)
        features, tempered = self.embedding.features(density, components, prepared.cells)
        log_probabilities, probabilities = self.output.log_probabilities(features)
        log_density, posterior = class_posterior(components)
        return NetworkEvaluation(
            self,
            prepared,
            log_density + log_probabilities,
            probabilities,
            features,
            tempered,
            posterior,
            notes,
        )

    def zero_statistics(self) -> NetworkStatistics:
        """Return the statistics of no rows."""
        output = self.output.zero_statistics()
        return NetworkStatistics(self.density.zero_statistics(), output)

    def log_prior_density(self) -> float:
        """Return the log density of the priors of the components, minus the penalty."""
        return self.density.log_prior_density() + self.output.log_prior_density()

    def coordinates(
        self, n_rows: float, learn_class_prior: bool = True
    ) -> NetworkCoordinates:
        """Return coordinates of both layers."""
        return NetworkCoordinates(self, n_rows)


@dataclass(frozen=True)
class NetworkEvaluation(Evaluation[NetworkStatistics]):
    """Log joint densities of rows, and what leads back to both layers.

    Attributes
    ----------
    model : Network
        What was evaluated.
    prepared : NetworkRows
        The rows.
    log_joint : ndarray of shape (C, n)
        Log of ``p(x, c)``.
    probabilities : ndarray of shape (C, n)
        Class probabilities.
    features : ndarray of shape (F, n)
        Of the embedding.
    tempered, posterior : ndarray of shape (J, n)
        Posteriors of components, as features have them, and as the density has them.
    notes : object
        What the family noted for its statistics.
    """

    model: Network
    prepared: NetworkRows
    log_joint: FloatArray
    probabilities: FloatArray
    features: FloatArray
    tempered: FloatArray
    posterior: FloatArray
    notes: Notes

    def statistics(self, weights: FloatArray) -> NetworkStatistics:
        """Pull signed weights (C, n) back to both layers."""
        model, total = self.model, weights.sum(axis=0)
        by_scores = weights - self.probabilities * total
        by_features = np.dot(model.output.weights.T, by_scores)
        spread = model.embedding.pulled_back(
            model.density, by_features, self.tempered, self.prepared.cells
        )
        spread += self.posterior * total
        counts = np.dot(spread, np.ones(spread.shape[1]))
        density = MixtureStatistics(
            counts,
            np.maximum(counts, 0.0),
            model.density.family.accumulate(
                self.prepared.density, model.density.components, spread, self.notes
            ),
        )
        return NetworkStatistics(density, OutputStatistics.of(by_scores, self.features))


class NetworkCoordinates(ModelCoordinates[NetworkStatistics]):
    """The coordinates of the mixture, then those of the output layer."""

    def __init__(self, start: Network, n_rows: float) -> None:
        self._start = start
        self._density = start.density.coordinates(n_rows)
        self._output = output_coordinates(start, n_rows)
        self.size = self._density.size + self._output.size

    def at(self, vector: FloatArray) -> NetworkPoint:
        """Return the network that a vector stands for."""
        by_density, by_output = np.split(vector, [self._density.size])
        density, output = self._density.at(by_density), self._output.at(by_output)
        model = replace(self._start, density=density.model, output=output.output)
        return NetworkPoint(model, density, output)

    def vector(self, model: Model) -> FloatArray:
        """Return the vector that stands for a network."""
        network: Network = model  # type: ignore[assignment]
        parts = self._density.vector(network.density), self._output.vector(network.output)
        return np.concatenate(parts)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector."""
        both = zip(self._density.bounds(), self._output.bounds(), strict=True)
        lower, upper = map(np.concatenate, both)
        return lower, upper


@dataclass(frozen=True)
class NetworkPoint(ModelPoint[NetworkStatistics]):
    """A network, and the way back for gradients."""

    model: Network
    density: ModelPoint[MixtureStatistics]
    output: OutputPoint

    def gradient(self, statistics: NetworkStatistics) -> FloatArray:
        """Pull the gradient of a value back to the vector."""
        by_density = self.density.gradient(statistics.density)
        return np.concatenate([by_density, self.output.gradient(statistics.output)])

    def prior_gradient(self) -> FloatArray:
        """Return the gradient of the log density of the priors, minus the penalty."""
        parts = self.density.prior_gradient(), self.output.prior_gradient()
        return np.concatenate(parts)
