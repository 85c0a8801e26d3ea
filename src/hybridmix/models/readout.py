"""Class probabilities that are log-linear in features of a mixture's components."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.families.base import Notes, Prepared
from hybridmix.models.base import (
    Evaluation,
    Model,
    ModelCoordinates,
    ModelPoint,
)
from hybridmix.models.embedding import Embedding
from hybridmix.models.mixture import Mixture
from hybridmix.models.output import (
    OutputCoordinates,
    OutputLayer,
    OutputPoint,
    OutputStatistics,
)


@dataclass(frozen=True, eq=False)
class Layers:
    """What a network is made of.

    Attributes
    ----------
    density : Mixture
        The components, and the density of rows. Its classes, if it has several, are
        groups of components.
    embedding : Embedding
        Features of its components.
    output : OutputLayer
        From features to classes.
    """

    density: Mixture
    embedding: Embedding
    output: OutputLayer

    def check_consistent(self) -> None:
        """Raise ValueError unless the layers fit together."""
        require_instance("density", self.density, Mixture)
        require_instance("embedding", self.embedding, Embedding)
        require_instance("output", self.output, OutputLayer)
        same = self.embedding.n_components == self.density.n_components
        require(same, "the embedding has other components than the density")
        n_features = self.embedding.n_features
        require(self.output.weights.shape[1] == n_features, "weights do not fit")
        if self.embedding.by_class:
            same = self.density.n_classes == len(self.output.weights)
            require(same, "the density has other classes than the output")
        seen = self.embedding.seen_by(self.density)
        hidden = np.zeros(0) if seen is None else self.output.weights[~seen]
        require(not hidden.any(), "weights of features of another class are not zero")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.output.bias)

    @property
    def n_components(self) -> int:
        """Number of components of the density."""
        return self.density.n_components

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; weights that are zero are none."""
        n_weights = int(np.count_nonzero(self.output.weights))
        return self.density.n_parameters + n_weights + self.n_classes - 1

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared row occupies."""
        return self.density.kept_width(observed) + self.embedding.n_cells

    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation."""
        layers = 2 * self.embedding.n_features + 2 * self.density.n_components
        return self.density.width(observed) + layers + 4 * self.n_classes

    def work(self, observed: BoolArray | None = None) -> int:
        """Return about how many multiplications the evaluation of a row takes."""
        layer = self.n_classes * self.embedding.n_features
        return self.density.work(observed) + layer


def component_log_joint(mixture: Mixture, prepared: Prepared) -> tuple[FloatArray, Notes]:
    """Return the log joint densities (J, n) of components, and notes of the family."""
    log_density, notes = mixture.family.evaluate(prepared, mixture.components)
    log_density += mixture.log_weights[:, None]
    return log_density, notes


def embedded(mixture: Mixture, embedding: Embedding, rows: Rows) -> FloatArray:
    """Return the features (F, n) of rows."""
    log_joint, _ = component_log_joint(mixture, mixture.prepare(rows))
    return embedding.features(mixture, log_joint, embedding.cells(rows))[0]


# The output layer alone -----------------------------------------------------------------


@registered
@dataclass(frozen=True, eq=False)
class Readout(Layers, Model[FloatArray, OutputStatistics]):
    r"""The class probabilities of a network, whose embedding stays as it is.

    .. math:: \log p(c \mid x) = \log \operatorname{softmax}_c\big( b + W g(x) \big)

    It knows nothing of :math:`p(x)`: its log joint densities are the logarithms of the
    class probabilities. Its likelihood is a concave function of :math:`b` and :math:`W`.
    For a row with holes, the posteriors of components are exact, given what is observed;
    the class probabilities are those of the expected features, and not the exact mean
    over what is missing.
    """

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared row occupies."""
        return self.embedding.n_features

    def prepare(self, rows: Rows) -> FloatArray:
        """Return the features (F, n) of rows."""
        return embedded(self.density, self.embedding, rows)

    def evaluate(self, prepared: FloatArray) -> ReadoutEvaluation:
        """Evaluate log class probabilities."""
        return ReadoutEvaluation(prepared, *self.output.log_probabilities(prepared))

    def zero_statistics(self) -> OutputStatistics:
        """Return the statistics of no rows."""
        return self.output.zero_statistics()

    def log_prior_density(self) -> float:
        """Return minus the penalty of the weights."""
        return self.output.log_prior_density()

    def coordinates(
        self, n_rows: float, learn_class_prior: bool = True
    ) -> ReadoutCoordinates:
        """Return coordinates of the output layer."""
        return ReadoutCoordinates(self, n_rows)

    def marginal(self, real: list[int], codes: list[int]) -> MarginalReadout:
        """Return the class probabilities of rows that have some of the columns."""
        return MarginalReadout(self, tuple(real), tuple(codes))


@dataclass(frozen=True)
class ReadoutEvaluation(Evaluation[OutputStatistics]):
    """Log class probabilities (C, n), with features (F, n) and probabilities (C, n)."""

    features: FloatArray
    log_joint: FloatArray
    probabilities: FloatArray

    def statistics(self, weights: FloatArray) -> OutputStatistics:
        """Pull signed weights (C, n) back to the output layer."""
        by_scores = weights - self.probabilities * weights.sum(axis=0)
        return OutputStatistics.of(by_scores, self.features)


class ReadoutCoordinates(ModelCoordinates[OutputStatistics]):
    """Coordinates of the output layer of a network whose embedding is fixed."""

    def __init__(self, start: Readout, n_rows: float) -> None:
        self._start = start
        self._output = output_coordinates(start, n_rows)
        self.size = self._output.size

    def at(self, vector: FloatArray) -> ReadoutPoint:
        """Return the model that a vector stands for."""
        point = self._output.at(vector)
        return ReadoutPoint(replace(self._start, output=point.output), point)

    def vector(self, model: Model) -> FloatArray:
        """Return the vector that stands for a model."""
        return self._output.vector(model.output)  # type: ignore[attr-defined]

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector."""
        return self._output.bounds()


@dataclass(frozen=True)
class ReadoutPoint(ModelPoint[OutputStatistics]):
    """A readout, and the way back for gradients."""

    model: Readout
    output: OutputPoint

    def gradient(self, statistics: OutputStatistics) -> FloatArray:
        """Pull the gradient of a value back to the vector."""
        return self.output.gradient(statistics)

    def prior_gradient(self) -> FloatArray:
        """Return the gradient of minus the penalty."""
        return self.output.prior_gradient()


def output_coordinates(layers: Layers, n_rows: float) -> OutputCoordinates:
    """Return coordinates in which a step is what this many rows can tell from none."""
    squares = layers.embedding.expected_squares(layers.density)
    seen = layers.embedding.seen_by(layers.density)
    return OutputCoordinates(layers.output, n_rows, squares, seen)


@dataclass(frozen=True)
class MarginalReadout(Model[Rows, OutputStatistics]):
    """The class probabilities of rows that have only some of the columns.

    Attributes
    ----------
    whole : Readout
        Of all columns; the others are holes.
    real, codes : tuple of int
        Places of the real and of the other columns.
    """

    whole: Readout
    real: tuple[int, ...]
    codes: tuple[int, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.whole.n_classes

    @property
    def n_components(self) -> int:
        """Number of components of the density."""
        return self.whole.n_components

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, of all columns."""
        return self.whole.n_parameters

    def marginal(self, real: list[int], codes: list[int]) -> MarginalReadout:
        """Return the class probabilities of rows that have some of these columns."""
        own_real, own_codes = self.real, self.codes
        return self.whole.marginal(
            [own_real[j] for j in real], [own_codes[j] for j in codes]
        )

    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation."""
        missing = np.zeros((self.whole.embedding.n_real, 1), bool)
        return self.whole.width(missing)

    def prepare(self, rows: Rows) -> Rows:
        """Return the rows with holes in all other columns."""
        embedding = self.whole.embedding
        real = np.zeros((embedding.n_real, rows.n_rows))
        observed = np.zeros(real.shape, bool)
        codes = np.full(
            (len(embedding.code_sizes), rows.n_rows), MISSING_CODE, rows.codes.dtype
        )
        real[list(self.real)] = rows.real
        observed[list(self.real)] = True if rows.observed is None else rows.observed
        codes[list(self.codes)] = rows.codes
        return Rows(real, observed, codes)

    def evaluate(self, prepared: Rows) -> ReadoutEvaluation:
        """Evaluate log class probabilities."""
        return self.whole.evaluate(self.whole.prepare(prepared))

    def zero_statistics(self) -> OutputStatistics:
        """Return the statistics of no rows."""
        return self.whole.zero_statistics()

    def coordinates(
        self, n_rows: float, learn_class_prior: bool = True
    ) -> ReadoutCoordinates:
        """Return coordinates of the output layer."""
        return self.whole.coordinates(n_rows, learn_class_prior)
