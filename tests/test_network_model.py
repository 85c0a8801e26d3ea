"""Networks as models: gradients, the output layer, holes and files."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import families, make_dataset, make_mixture, make_rows
from scipy.optimize import OptimizeResult

from hybridmix._parallel import Workers
from hybridmix.models.embedding import KINDS, Embedding, expected_cells
from hybridmix.models.network import Network
from hybridmix.models.output import OutputLayer
from hybridmix.models.readout import embedded
from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    ScaledMargin,
)
from hybridmix.problem import Problem
from hybridmix.solvers import LimitedMemoryBFGS
from hybridmix.solvers.base import History
from hybridmix.solvers.lbfgs import _Ascent

N_CLASSES = 3
OBJECTIVES = {
    "conditional": ConditionalLikelihood(),
    "likelihood": Likelihood(0.5),
    "hybrid": Blend(Likelihood(0.5), ConditionalLikelihood(), 3.0),
    "margin": Blend(Likelihood(0.5), Margin(margin=2.0, width=1.0), 3.0),
    "scaled": Blend(Likelihood(0.5), ScaledMargin(power=0.3), 3.0),
}
CASES = {
    **{kind: (kind,) for kind in KINDS},
    "posterior and linear": ("posterior", "linear"),
    "all": KINDS,
}


def make_embedding(mixture, kinds, temperature=1.7, by_class=False):
    """Return an embedding whose centre and spread are not those of any data."""
    n_components = mixture.n_components
    n_real, code_sizes = mixture.family.layout()
    reads_cells = {"linear", "experts"} & set(kinds)
    return Embedding(
        tuple(kinds),
        temperature,
        by_class,
        np.linspace(-1.0, 1.0, n_components) - 8.0,
        np.linspace(2.0, 3.0, n_components),
        n_real,
        code_sizes,
        mixture if reads_cells else None,
    )


def make_network(
    name="full x categorical",
    kinds=("posterior", "linear"),
    sizes=(2, 1, 2),
    l1=0.0,
    **how,
):
    """Return a network with weights at random, and rows like those it is about."""
    rows = make_rows(400)
    mixture = make_mixture(families()[name], rows, sizes=sizes)
    embedding = make_embedding(mixture, kinds, **how)
    n_features = embedding.n_features
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(N_CLASSES, n_features))
    seen = embedding.seen_by(mixture)
    if seen is not None:
        weights *= seen
    output = OutputLayer(
        weights,
        rng.normal(size=N_CLASSES),
        np.full(n_features, l1),
        np.linspace(0.1, 1.0, n_features),
    )
    network = Network(mixture, embedding, output)
    network.check_consistent()
    return network


def make_network_problem(network, objective, missing=0.2, n_rows=300):
    rows = make_rows(n_rows, missing, seed=5)
    rng = np.random.default_rng(6)
    labels = rng.integers(-1, N_CLASSES, size=n_rows)
    dataset = make_dataset(rows, labels, rng.random(n_rows) + 0.5)
    return dataset, Problem(dataset, objective, network, Workers(1))


def check_gradient(model, problem, start=None, n_checked=30):
    """Compare the gradient at a random place with finite differences."""
    coordinates = model.coordinates(300.0)
    rng = np.random.default_rng(0)
    lower, upper = coordinates.bounds()
    vector = np.clip(0.3 * rng.normal(size=coordinates.size), lower + 1e-3, upper)
    point = coordinates.at(vector)
    gradient = point.gradient(problem.assess(point.model).statistics)
    gradient += point.prior_gradient()

    def value(vector):
        model = coordinates.at(vector).model
        return problem.assess(model).value + model.log_prior_density()

    n_checked = min(n_checked, coordinates.size)
    for index in rng.choice(coordinates.size, n_checked, replace=False):
        step = 1e-5 * np.eye(coordinates.size)[index]
        numeric = (value(vector + step) - value(vector - step)) / 2e-5
        assert gradient[index] == pytest.approx(numeric, rel=1e-5, abs=2e-5)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize("kinds", CASES.values(), ids=CASES)
def test_gradients(kinds, objective, missing):
    network = make_network(kinds=kinds)
    _, problem = make_network_problem(network, objective, missing)
    check_gradient(network, problem)


@pytest.mark.parametrize("l1", [0.0, 0.7])
@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("kinds", CASES.values(), ids=CASES)
def test_gradients_of_mixtures_for_each_class(kinds, by_class, l1):
    network = make_network(kinds=kinds, by_class=by_class, l1=l1)
    objective = OBJECTIVES["hybrid"]
    _, problem = make_network_problem(network, objective)
    check_gradient(network, problem)
    _, problem = make_network_problem(network.readout, objective)
    check_gradient(network.readout, problem)


@pytest.mark.parametrize("name", ["diag", "tied", "subspace", "categorical"])
def test_gradients_of_families(name):
    network = make_network(name, kinds=("posterior", "log_joint"))
    _, problem = make_network_problem(network, OBJECTIVES["hybrid"])
    check_gradient(network, problem)


@pytest.mark.parametrize("l1", [0.0, 0.7])
@pytest.mark.parametrize("by_class", [False, True])
def test_vectors_and_networks(by_class, l1):
    network = make_network(kinds=KINDS, by_class=by_class, l1=l1)
    coordinates = network.coordinates(300.0)
    lower, upper = coordinates.bounds()
    rng = np.random.default_rng(1)
    vector = np.clip(rng.normal(size=coordinates.size), lower, upper)
    moved = coordinates.at(vector).model
    again = coordinates.at(coordinates.vector(moved)).model
    np.testing.assert_allclose(again.output.weights, moved.output.weights, atol=1e-10)
    assert again.log_prior_density() == pytest.approx(moved.log_prior_density())
    zero = coordinates.at(np.zeros(coordinates.size)).model
    np.testing.assert_array_equal(zero.output.weights, network.output.weights)


def test_a_network_and_its_readout_agree():
    network = make_network(kinds=KINDS)
    rows = make_rows(100, 0.3)
    joint = network.evaluate(network.prepare(rows)).log_joint
    alone = network.readout.evaluate(network.readout.prepare(rows)).log_joint
    density = network.density.evaluate(network.density.prepare(rows)).log_joint
    log_density = np.logaddexp.reduce(density, axis=0)
    np.testing.assert_allclose(joint, alone + log_density)
    np.testing.assert_allclose(np.exp(alone).sum(axis=0), 1.0)


def test_posteriors_of_rows_with_holes_are_those_of_the_marginal():
    network = make_network("full", kinds=("posterior",), temperature=1.0)
    rows = make_rows(50)
    kept = [0, 2, 3]
    observed = np.zeros(rows.real.shape, bool)
    observed[kept] = True
    holed = replace(rows, real=np.where(observed, rows.real, 0.0), observed=observed)
    marginal = network.density.marginal(kept, [])
    part = replace(rows, real=rows.real[kept])
    expected = marginal.evaluate(marginal.prepare(part)).component_posterior()
    np.testing.assert_allclose(
        embedded(network.density, network.embedding, holed), expected, atol=1e-12
    )


def test_cells_are_expected_given_what_is_observed():
    mixture = make_network().density
    rows = make_rows(400, 0.3)
    cells = expected_cells(mixture, rows, (3, 2))
    np.testing.assert_array_equal(cells[:5][rows.observed], rows.real[rows.observed])
    codes = np.split(cells[5:], [3])
    for own, given in zip(codes, rows.codes, strict=True):
        np.testing.assert_allclose(own.sum(axis=0), 1.0)
        known = np.flatnonzero(given >= 0)
        np.testing.assert_array_equal(own[:, known].argmax(axis=0), given[known])
    filled = mixture.impute(rows)
    np.testing.assert_allclose(cells[:5], filled.real)
    unknown = np.flatnonzero(rows.codes[0] < 0)
    assert np.any((codes[0][:, unknown] > 0.01) & (codes[0][:, unknown] < 0.99))


def test_a_marginal_readout_sees_holes_elsewhere():
    readout = make_network(kinds=KINDS).readout
    rows = make_rows(30)
    part = replace(rows, real=rows.real[[1, 4]], codes=rows.codes[[1]])
    marginal = readout.marginal([1, 4], [1])
    found = marginal.evaluate(marginal.prepare(part)).log_joint
    observed = np.zeros(rows.real.shape, bool)
    observed[[1, 4]] = True
    codes = rows.codes.copy()
    codes[0] = -1
    holed = replace(
        rows, real=np.where(observed, rows.real, 0.0), observed=observed, codes=codes
    )
    expected = readout.evaluate(readout.prepare(holed)).log_joint
    np.testing.assert_allclose(found, expected)


def solved(l1):
    network = make_network(kinds=("posterior", "linear"), l1=l1)
    readout = replace(
        network.readout,
        output=replace(network.output, weights=0.0 * network.output.weights),
    )
    objective = ConditionalLikelihood()
    _, problem = make_network_problem(readout, objective)
    solution = LimitedMemoryBFGS(500, tol=1e-12).solve(problem, readout)
    return problem, solution.model


def test_the_output_layer_is_solved_to_its_optimum():
    problem, model = solved(0.0)
    point = model.coordinates(300.0).at(np.zeros(model.coordinates(300.0).size))
    gradient = point.gradient(problem.assess(model).statistics) + point.prior_gradient()
    assert np.abs(gradient).max() < 1e-3


def test_an_absolute_penalty_gives_exact_zeros():
    problem, model = solved(4.0)
    output = replace(model.output, slack=None)
    is_zero = output.weights == 0.0
    assert 0.2 < is_zero.mean() < 1.0
    slopes = problem.assess(model).statistics.by_weights
    # The conditions of a lasso: no slope beyond the penalty at zero, and equal to it
    # elsewhere.
    assert np.abs(slopes[is_zero]).max() <= 4.0 * 1.01
    pull = output.l1 * np.sign(output.weights) + output.l2 * output.weights
    np.testing.assert_allclose(slopes[~is_zero], pull[~is_zero], atol=0.05)


def test_an_iterate_may_come_twice():
    """Where no step raises the value any more, L-BFGS-B goes back to the last iterate."""
    network = make_network()
    _, problem = make_network_problem(network, OBJECTIVES["hybrid"])
    coordinates = network.coordinates(300.0)
    history = History(problem, "L-BFGS", 5)
    ascent = _Ascent(problem, coordinates, network, None, history)
    vector = np.zeros(coordinates.size)
    loss, _ = ascent.loss(vector)
    for _ in range(2):
        ascent.look(OptimizeResult(x=vector, fun=loss))
    assert history.n_iter == 2
