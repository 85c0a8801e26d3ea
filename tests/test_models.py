"""The contract of models, by one that is not a mixture."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers import families, make_dataset, make_mixture, make_problem, make_rows

from hybridmix._parallel import Workers, workers
from hybridmix.evaluation import log_joint
from hybridmix.exceptions import UnsupportedError
from hybridmix.models import Mixture
from hybridmix.models.base import Evaluation, Model, ModelCoordinates, ModelPoint
from hybridmix.models.coordinates import MixtureCoordinates
from hybridmix.objectives import Blend, ConditionalLikelihood, Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import (
    ExpectationMaximisation,
    ExtendedBaumWelch,
    LimitedMemoryBFGS,
)


@dataclass
class NetworkStatistics:
    """Those of the density, and the gradient by the matrix of the output layer."""

    density: object
    by_scores: np.ndarray  # (C, d + 1)

    def add(self, other, part=slice(None)):
        assert part == slice(None), "a network has no parts"
        self.density.add(other.density)
        self.by_scores += other.by_scores


@dataclass(frozen=True, eq=False)
class Network(Model):
    """A density of rows, and class probabilities that are log-linear in the row.

    ``log p(x, c) = log p(x) + log softmax(W (x, 1))_c``: the smallest of networks.
    """

    density: Mixture
    matrix: np.ndarray  # (C, d + 1)

    @property
    def n_classes(self):
        return len(self.matrix)

    def width(self, observed=None):
        return self.density.width(observed) + self.n_classes

    def prepare(self, rows):
        ones = np.ones((1, rows.n_rows))
        return self.density.prepare(rows), np.concatenate([rows.real, ones])

    def evaluate(self, prepared):
        return NetworkEvaluation(self, prepared)

    def zero_statistics(self):
        density = self.density.zero_statistics()
        return NetworkStatistics(density, np.zeros_like(self.matrix))

    def log_prior_density(self):
        return self.density.log_prior_density() - 0.5 * float(np.sum(self.matrix**2))

    def coordinates(self, n_rows, learn_class_prior=True):
        return NetworkCoordinates(self, n_rows)


class NetworkEvaluation(Evaluation):
    def __init__(self, model, prepared):
        rows, self._features = prepared
        self._density = model.density.evaluate(rows)
        scores = model.matrix @ self._features
        log_shares = scores - np.logaddexp.reduce(scores, axis=0)
        self._shares = np.exp(log_shares)
        self.log_joint = self._density.log_joint + log_shares

    def statistics(self, weights):
        total = weights.sum(axis=0, keepdims=True)
        density = self._density.statistics(total)
        return NetworkStatistics(
            density, (weights - total * self._shares) @ self._features.T
        )


class NetworkCoordinates(ModelCoordinates):
    def __init__(self, start, n_rows):
        self._start = start
        self._density = start.density.coordinates(n_rows, learn_class_prior=False)
        self.step = 1.0 / np.sqrt(n_rows)
        self.size = self._density.size + start.matrix.size

    def at(self, vector):
        by_density, by_matrix = np.split(vector, [self._density.size])
        change = self.step * by_matrix.reshape(self._start.matrix.shape)
        return NetworkPoint(self, self._density.at(by_density), self._start, change)

    def vector(self, model):
        change = (model.matrix - self._start.matrix) / self.step
        return np.concatenate([self._density.vector(model.density), change.ravel()])


class NetworkPoint(ModelPoint):
    def __init__(self, frame, density, start, change):
        self._frame, self._density = frame, density
        self.model = replace(start, density=density.model, matrix=start.matrix + change)

    def gradient(self, statistics):
        by_scores = self._frame.step * statistics.by_scores.ravel()
        return np.concatenate([self._density.gradient(statistics.density), by_scores])

    def prior_gradient(self):
        by_matrix = -self._frame.step * self.model.matrix.ravel()
        return np.concatenate([self._density.prior_gradient(), by_matrix])


def network_problem(objective):
    """Rows of two groups whose labels are their groups; a third is unlabelled."""
    rows = make_rows(400)
    labels = (rows.real.sum(axis=0) > 5.0).astype(int)
    labels[::3] = -1
    density = make_mixture(families()["full"], rows, sizes=(2,))
    model = Network(density, np.zeros((2, len(rows.real) + 1)))
    dataset = make_dataset(rows, labels)
    return dataset, Problem(dataset, objective, model, Workers(1)), model


OBJECTIVES = {
    "conditional": ConditionalLikelihood(),
    "hybrid": Blend(Likelihood(0.5), ConditionalLikelihood(), 3.0),
    "likelihood": Likelihood(0.5),
}


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_gradients_of_a_network(objective):
    _, problem, model = network_problem(objective)
    coordinates = model.coordinates(400.0)
    rng = np.random.default_rng(0)
    vector = rng.normal(size=coordinates.size)
    point = coordinates.at(vector)
    gradient = point.gradient(problem.assess(point.model).statistics)
    gradient += point.prior_gradient()

    def value(vector):
        model = coordinates.at(vector).model
        return problem.assess(model).value + model.log_prior_density()

    for index in rng.choice(coordinates.size, 25, replace=False):
        step = 1e-5 * np.eye(coordinates.size)[index]
        numeric = (value(vector + step) - value(vector - step)) / 2e-5
        assert gradient[index] == pytest.approx(numeric, abs=1e-5)


def test_a_network_and_its_vector():
    dataset, _, model = network_problem(Likelihood())
    coordinates = model.coordinates(400.0)
    vector = np.random.default_rng(0).normal(size=coordinates.size)
    moved = coordinates.at(vector).model
    again = coordinates.at(coordinates.vector(moved)).model
    with workers(1) as pool:
        found, expected = (log_joint(m, dataset.rows, pool) for m in (again, moved))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_gradient_method_trains_a_network():
    dataset, problem, model = network_problem(OBJECTIVES["hybrid"])
    solution = LimitedMemoryBFGS(max_iter=50).solve(problem, model)
    assert np.diff(solution.trace).min() > -1e-9
    assert solution.traces["training_error"][-1] < 0.02
    labelled = dataset.labelled()
    with workers(1) as pool:
        found = log_joint(solution.model, labelled.rows, pool)
    assert np.mean(found.argmax(axis=0) != labelled.labels) < 0.02


@pytest.mark.parametrize(
    ("solver", "need"),
    [(ExpectationMaximisation(), "maximised"), (ExtendedBaumWelch(), "damped")],
)
def test_solvers_name_what_a_model_lacks(solver, need):
    _, problem, model = network_problem(Likelihood())
    message = f"Network does not offer '{need}', which {type(solver).__name__} needs"
    with pytest.raises(UnsupportedError, match=message):
        solver.solve(problem, model)
    with pytest.raises(UnsupportedError, match="single class"):
        model.of_class(0)


@pytest.mark.parametrize("name", [n for n in families() if n != "refined subspace"])
def test_a_vector_and_its_mixture(name):
    _, start = make_problem(name)
    coordinates = MixtureCoordinates(start, np.linspace(20.0, 60.0, 5))
    vector = np.random.default_rng(0).normal(size=coordinates.size)
    again = coordinates.at(coordinates.vector(coordinates.at(vector).model)).model
    expected = coordinates.at(vector).model
    rows = make_rows(50, 0.3)
    np.testing.assert_allclose(
        again.evaluate(again.prepare(rows)).log_joint,
        expected.evaluate(expected.prepare(rows)).log_joint,
        rtol=1e-9,
    )


def test_classes_converge_one_by_one_in_the_same_passes():
    """Together they end where each would end by itself."""
    rows = make_rows(600, 0.2)
    labels = np.random.default_rng(1).integers(3, size=600)
    dataset = make_dataset(rows, labels)
    start = make_mixture(families()["full x categorical"], rows, sizes=(2, 2, 1))
    start = replace(start, log_class_prior=np.zeros(3))
    solver = ExpectationMaximisation(tol=1e-5)
    problem = Problem(dataset, Likelihood(), start, Workers(1), learn_class_prior=False)
    together = solver.solve(problem, start)
    assert together.converged
    assert len(set(together.classes.n_iter.tolist())) > 1
    for label in range(3):
        own = start.of_class(label)
        part = dataset.of_class(label)
        single = solver.solve(
            Problem(part, Likelihood(), own, Workers(1), learn_class_prior=False), own
        )
        assert together.classes.n_iter[label] == single.n_iter
        assert together.classes.values[label] == pytest.approx(single.value, rel=1e-12)
        found = together.model.of_class(label)
        np.testing.assert_allclose(found.log_mixing, single.model.log_mixing, atol=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_labels_may_be_mixed_within_a_chunk(objective):
    """Arranging rows by label saves work, and changes no result."""
    rows, rng = make_rows(300, 0.2), np.random.default_rng(2)
    labels = rng.integers(-1, 2, size=300)
    model = make_mixture(families()["full"], rows)
    evaluation = model.evaluate(model.prepare(rows))
    values, weights = objective.values_and_weights(evaluation.log_joint, labels)
    statistics = evaluation.statistics(weights)
    problem = Problem(make_dataset(rows, labels), objective, model, Workers(1))
    expected = problem.assess(model)
    np.testing.assert_allclose(values.sum(axis=1), expected.parts)
    np.testing.assert_allclose(statistics.counts, expected.statistics.counts)
    np.testing.assert_allclose(statistics.positive, expected.statistics.positive)
