"""Independent categorical columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from hybridmix._registered import registered
from hybridmix._require import (
    require_array,
    require_instance,
    require_log_probabilities,
    require_number,
    require_whole,
)
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.families.base import Coordinates, Family, Parameters, Point, Statistics
from hybridmix.families.conjugates import Dirichlet


@registered
@dataclass(frozen=True)
class CategoricalParameters(Parameters):
    """Log probabilities (J, M) of the categories of all columns, one after the other."""

    log_probabilities: FloatArray


@registered
@dataclass
class CategoricalStatistics(Statistics):
    """Weighted counts (J, M) of the categories."""

    counts: FloatArray


@registered
@dataclass(frozen=True)
class Categorical(Family[CategoricalParameters, CategoricalStatistics]):
    r"""Independent categorical columns.

    .. math:: \log p_j(x) = \sum_{f \in \text{observed}} \log \theta_{j f x_f}

    With one-hot rows, densities and statistics are products with a sparse matrix; a
    missing value is an empty stretch of its row.

    Parameters
    ----------
    n_categories : tuple of int
        Number of categories of each column.
    smoothing : float
        Rows added to the count of every category: the exponent of a Dirichlet prior.
    """

    n_categories: tuple[int, ...]
    smoothing: float = 1.0

    def layout(self) -> tuple[int, tuple[int, ...]]:
        return 0, self.n_categories

    def check_consistent(self) -> None:
        """Raise ValueError unless the hyperparameters are of the right kind."""
        require_instance("n_categories", self.n_categories, tuple)
        require_whole("numbers of categories", self.n_categories, 1)
        require_number("smoothing", self.smoothing, 0.0)

    def check_parameters(
        self, parameters: CategoricalParameters, n_components: int
    ) -> None:
        require_instance("a set of parameters", parameters, CategoricalParameters)
        logs = parameters.log_probabilities
        require_array("log_probabilities", logs, (n_components, sum(self.n_categories)))
        require_log_probabilities("log_probabilities", logs, self.offsets[:-1].tolist())

    @property
    def offsets(self) -> IntArray:
        """Where the categories of each column begin, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(self.n_categories)]).astype(np.int32)

    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        # The product with a sparse matrix has the rows first and is then transposed.
        return 2 * n_components

    def prepare(self, rows: Rows) -> sparse.csr_array:
        present = rows.codes != MISSING_CODE
        positions = rows.codes + self.offsets[:-1, None]
        starts = np.concatenate([[0], np.cumsum(present.sum(axis=0))])
        indices = positions.T[present.T]
        shape = (rows.n_rows, int(self.offsets[-1]))
        return sparse.csr_array((np.ones(len(indices)), indices, starts), shape=shape)

    def evaluate(
        self, prepared: sparse.csr_array, parameters: CategoricalParameters
    ) -> tuple[FloatArray, None]:
        return np.ascontiguousarray((prepared @ parameters.log_probabilities.T).T), None

    def accumulate(
        self,
        prepared: sparse.csr_array,
        parameters: CategoricalParameters,
        weights: FloatArray,
        notes: None = None,
    ) -> CategoricalStatistics:
        return CategoricalStatistics((prepared.T @ weights.T).T)

    def zero_statistics(self, n_components: int) -> CategoricalStatistics:
        return CategoricalStatistics(np.zeros((n_components, int(self.offsets[-1]))))

    def maximise(self, statistics: CategoricalStatistics) -> CategoricalParameters:
        counts = np.maximum(statistics.counts, 0.0) + self.smoothing
        return CategoricalParameters(np.log(counts / self._spread(self._totals(counts))))

    def expected_statistics(
        self, parameters: CategoricalParameters, counts: FloatArray
    ) -> CategoricalStatistics:
        probabilities = np.exp(parameters.log_probabilities)
        return CategoricalStatistics(counts[:, None] * probabilities)

    def proper(self, statistics: CategoricalStatistics) -> BoolArray:
        return np.all(statistics.counts > 0.0, axis=1)

    def conjugate(self) -> Dirichlet:
        return Dirichlet(self.n_categories)

    def _totals(self, values: FloatArray) -> FloatArray:
        """Sum over the categories of each column, (J, f)."""
        return np.add.reduceat(values, self.offsets[:-1], axis=1)

    def _spread(self, per_column: FloatArray) -> FloatArray:
        """Repeat a value of each column for its categories, (J, M)."""
        return np.repeat(per_column, self.n_categories, axis=1)

    def log_prior(self, parameters: CategoricalParameters) -> float:
        return self.smoothing * float(parameters.log_probabilities.sum())

    def coordinates(
        self, start: CategoricalParameters, counts: FloatArray
    ) -> CategoricalCoordinates:
        return CategoricalCoordinates(self, start, counts)

    def impute(
        self, rows: Rows, parameters: CategoricalParameters, posterior: FloatArray
    ) -> Rows:
        codes = rows.codes.copy()
        probabilities = np.exp(parameters.log_probabilities).T
        for column, hole in enumerate(rows.codes == MISSING_CODE):
            if hole.any():
                first, last = self.offsets[column : column + 2]
                likely = probabilities[first:last] @ posterior[:, hole]
                codes[column, hole] = likely.argmax(axis=0)
        return Rows(rows.real, rows.observed, codes)

    def draw(
        self,
        rows: Rows,
        parameters: CategoricalParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        drawn = self.sample(parameters, components, generator).codes
        codes = np.where(rows.codes == MISSING_CODE, drawn, rows.codes)
        return Rows(rows.real, rows.observed, codes)

    def sample(
        self,
        parameters: CategoricalParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        probabilities = np.exp(parameters.log_probabilities)
        codes = np.empty((len(self.n_categories), len(components)), np.int32)
        for column, n_categories in enumerate(self.n_categories):
            first = self.offsets[column]
            steps = np.cumsum(probabilities[:, first : first + n_categories], axis=1)
            level = generator.random(len(components))
            # Rounding may leave the last step a hair below one.
            for j in np.unique(components):
                chosen = components == j
                found = np.searchsorted(steps[j], level[chosen], side="right")
                codes[column, chosen] = np.minimum(found, n_categories - 1)
        return Rows(np.empty((0, len(components))), None, codes)

    def marginal(
        self, parameters: CategoricalParameters, real: list[int], codes: list[int]
    ) -> tuple[Categorical, CategoricalParameters]:
        parts = np.split(parameters.log_probabilities, self.offsets[1:-1], axis=1)
        family = Categorical(tuple(self.n_categories[k] for k in codes), self.smoothing)
        return family, CategoricalParameters(np.hstack([parts[k] for k in codes]))

    def reads(self, real: list[int], codes: list[int]) -> bool:
        return bool(codes)

    def surprise(
        self,
        prepared: sparse.csr_array,
        parameters: CategoricalParameters,
        notes: None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        logs = parameters.log_probabilities
        # Energies count from the most probable category, as distances do from the mean.
        most = np.maximum.reduceat(logs, self.offsets[:-1], axis=1)
        energies = np.repeat(most, self.n_categories, axis=1) - logs
        mean = self._totals(np.exp(logs) * energies)
        variance = self._totals(np.exp(logs) * energies**2) - mean**2
        n_columns = len(self.n_categories)
        column_of = np.repeat(np.arange(n_columns), self.n_categories)
        shape = (prepared.shape[0], n_columns)
        present = sparse.csr_array(
            (prepared.data, column_of[prepared.indices], prepared.indptr), shape=shape
        )
        offset, mean, variance = (
            (present @ part.T).T for part in (-most, mean, variance)
        )
        return offset, mean, variance

    def n_parameters(self, n_components: int) -> int:
        return n_components * sum(count - 1 for count in self.n_categories)

    def normalised(self, logits: FloatArray) -> FloatArray:
        """Return the log probabilities that belong to logits."""
        highest = np.maximum.reduceat(logits, self.offsets[:-1], axis=1)
        shifted = logits - self._spread(highest)
        return shifted - self._spread(np.log(self._totals(np.exp(shifted))))

    def gradient_by_logits(
        self, log_probabilities: FloatArray, counts: FloatArray
    ) -> FloatArray:
        """Return the gradient of ``sum counts log_probabilities`` by the logits."""
        totals = self._spread(self._totals(counts))
        return counts - totals * np.exp(log_probabilities)


class CategoricalCoordinates(Coordinates[CategoricalParameters, CategoricalStatistics]):
    r"""Logits relative to the start, times the standard deviation of their counts.

    The information of a logit is :math:`n \theta (1 - \theta)`; it is bounded below to
    keep categories that a component never sees from being stretched without limit.
    """

    def __init__(
        self, family: Categorical, start: CategoricalParameters, counts: FloatArray
    ) -> None:
        self._family = family
        self._start = start.log_probabilities
        probabilities = np.exp(self._start)
        information = np.maximum(counts, 1.0)[:, None] * probabilities
        self._step = 1.0 / np.sqrt(np.maximum(information * (1 - probabilities), 1.0))
        self.size = self._start.size

    def at(self, vector: FloatArray) -> CategoricalPoint:
        return CategoricalPoint(self, vector)

    def vector(self, parameters: CategoricalParameters) -> FloatArray:
        return ((parameters.log_probabilities - self._start) / self._step).ravel()

    def probabilities(self, vector: FloatArray) -> FloatArray:
        """Return the log probabilities (J, M) that a vector stands for."""
        logits = self._start + vector.reshape(self._start.shape) * self._step
        return self._family.normalised(logits)

    def pulled(self, log_probabilities: FloatArray, counts: FloatArray) -> FloatArray:
        """Pull the gradient of ``sum counts log_probabilities`` back to the vector."""
        by_logits = self._family.gradient_by_logits(log_probabilities, counts)
        return (by_logits * self._step).ravel()

    @property
    def smoothing(self) -> FloatArray:
        """The counts (J, M) that the prior stands for."""
        return np.full_like(self._start, self._family.smoothing)


class CategoricalPoint(Point[CategoricalParameters, CategoricalStatistics]):
    """A place in the coordinates of categorical columns."""

    def __init__(self, frame: CategoricalCoordinates, vector: FloatArray) -> None:
        self.vector = vector
        self._frame = frame
        self.parameters = CategoricalParameters(frame.probabilities(vector))

    def gradient(self, statistics: CategoricalStatistics) -> FloatArray:
        return self._frame.pulled(self.parameters.log_probabilities, statistics.counts)

    def prior_gradient(self) -> FloatArray:
        return self._frame.pulled(
            self.parameters.log_probabilities, self._frame.smoothing
        )
