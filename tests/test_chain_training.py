"""Training of hidden Markov models: gradients, steps, and what must not matter."""

import numpy as np
import pytest
from helpers import families
from sequence_helpers import (
    TOPOLOGIES,
    covering_cases,
    emissions,
    make_chains,
    make_sequence_dataset,
    make_sequences,
)

import hybridmix.evaluation
from hybridmix._parallel import Workers, workers
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.evaluation import log_joint
from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    PerFrame,
    ScaledMargin,
)
from hybridmix.problem import Problem
from hybridmix.solvers import (
    ExpectationMaximisation,
    ExtendedBaumWelch,
    LimitedMemoryBFGS,
)

# Refined subspaces have no coordinates for chains: sequences are not trained in them.
TRAINED = [name for name in emissions() if name != "refined subspace"]
DAMPED = [name for name in emissions() if make_chains(name).offers("damped")]
OBJECTIVES = {
    "likelihood": Likelihood(0.5),
    "hybrid": Blend(Likelihood(0.5), PerFrame(Margin(3.0, 1.5, 0.7)), 8.0),
    "conditional": PerFrame(ConditionalLikelihood(), 0.5),
    "margin": PerFrame(Margin(3.0, 1.5, 0.7)),
}
# All losses that have a name as an option.
DIFFERENTIATED = {
    **OBJECTIVES,
    "hybrid": Blend(Likelihood(0.5), PerFrame(ConditionalLikelihood()), 8.0),
    "ramp": PerFrame(Margin(3.0, 1.5, 0.7, largest_loss=0.5)),
    "scaled": PerFrame(ScaledMargin(3.0, 0.5)),
}
CASES = covering_cases(
    topology=TOPOLOGIES, with_exits=(False, True), n_mixed=(1, 2), learns=(False, True)
)


def value_of(problem, model):
    return problem.assess(model).value + model.log_prior_density()


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("objective", DIFFERENTIATED.values(), ids=DIFFERENTIATED)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_gradients_are_those_of_finite_differences(name, objective, missing):
    dataset = make_sequence_dataset(8, missing)
    for topology, with_exits, n_mixed, learns in CASES:
        start = make_chains(name, topology, with_exits, n_mixed)
        problem = Problem(dataset, objective, start, Workers(1), learns)
        coordinates = start.coordinates(24.0, learns)
        rng = np.random.default_rng(0)
        vector = 0.3 * rng.normal(size=coordinates.size)
        point = coordinates.at(vector)
        gradient = point.gradient(problem.assess(point.model).statistics)
        gradient += point.prior_gradient()
        # All coordinates at once: a wrong one changes the slope along the way.
        direction = rng.normal(size=coordinates.size)
        step = 1e-4 * direction
        up, down = (
            value_of(problem, coordinates.at(vector + way).model) for way in (step, -step)
        )
        slope = (up - down) / 2e-4
        scale = np.linalg.norm(gradient)
        assert gradient @ direction == pytest.approx(slope, abs=1e-5 * scale)


@pytest.mark.parametrize("name", TRAINED)
def test_vectors_stand_for_models(name):
    for topology, with_exits, n_mixed, learns in CASES:
        start = make_chains(name, topology, with_exits, n_mixed)
        coordinates = start.coordinates(24.0, learns)
        np.testing.assert_allclose(coordinates.vector(start), 0.0, atol=1e-9)
        vector = np.random.default_rng(0).normal(size=coordinates.size)
        moved = coordinates.at(vector).model
        moved.check_consistent()
        again = coordinates.at(coordinates.vector(moved)).model
        rows = make_sequences([4, 2])
        found, expected = (log_joint(m, rows, Workers(1)) for m in (again, moved))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        lower, upper = coordinates.bounds()
        assert np.all(lower <= 0.0)
        assert np.all(upper >= 0.0)


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_steps_of_em_never_lower_the_value(name, missing):
    dataset = make_sequence_dataset(20, missing)
    for topology, with_exits, n_mixed, learns in CASES[::2]:
        model = make_chains(name, topology, with_exits, n_mixed)
        problem = Problem(dataset, Likelihood(0.5), model, Workers(1), learns)
        values = [value_of(problem, model)]
        for _ in range(4):
            model = model.maximised(problem.assess(model).statistics, learns)
            model.check_consistent()
            values.append(value_of(problem, model))
        assert np.diff(values).min() > -1e-9 * abs(values[0])
        assert values[-1] > values[0] + 1.0


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize("name", DAMPED)
def test_damped_steps_raise_any_objective(name, objective):
    dataset = make_sequence_dataset(20, 0.2)
    for topology, with_exits, n_mixed, learns in CASES[::3]:
        model = make_chains(name, topology, with_exits, n_mixed)
        problem = Problem(dataset, objective, model, Workers(1), learns)
        before = value_of(problem, model)
        statistics = problem.assess(model).statistics
        for shared in (False, True):
            stepped = model.damped(
                statistics, 200.0, shared=shared, learn_class_prior=learns
            )
            stepped.check_consistent()
            assert value_of(problem, stepped) > before
            same = np.array_equal(stepped.log_class_prior, model.log_class_prior)
            assert same != learns


@pytest.mark.parametrize("solver", [ExtendedBaumWelch(15), LimitedMemoryBFGS(15)])
def test_solvers_separate_the_classes_of_sequences(solver):
    dataset = make_sequence_dataset(40)
    start = make_chains("diag x categorical", "left-right")
    problem = Problem(dataset, OBJECTIVES["hybrid"], start, Workers(1))
    solution = solver.solve(problem, start)
    assert np.diff(solution.trace).min() > -1e-9
    errors = solution.traces["training_error"]
    assert errors[-1] < errors[0]


# What must not matter ---------------------------------------------------------------


def assess(dataset, objective, model, n_threads=1):
    with workers(n_threads) as pool:
        assessment = Problem(dataset, objective, model, pool).assess(model)
    gradient = model.coordinates(20.0).at(np.zeros(model.coordinates(20.0).size))
    return assessment.value, gradient.gradient(assessment.statistics)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize("name", ["tied", "full x categorical"])
def test_chunks_and_threads_do_not_matter(name, objective, monkeypatch):
    dataset = make_sequence_dataset(60, 0.3)
    model = make_chains(name, "left-right", True, 2)
    value, gradient = assess(dataset, objective, model)
    monkeypatch.setattr(hybridmix.evaluation, "chunk_rows", lambda width: 9)
    monkeypatch.setattr(hybridmix.evaluation, "_SMALL", 0)
    chunked = assess(dataset, objective, model)
    assert chunked[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(chunked[1], gradient, rtol=1e-9, atol=1e-9)
    threaded = assess(dataset, objective, model, 3)
    assert threaded[0] == chunked[0]
    np.testing.assert_array_equal(threaded[1], chunked[1])


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_the_order_of_sequences_does_not_matter(objective):
    dataset = make_sequence_dataset(30, 0.2)
    order = np.random.default_rng(1).permutation(dataset.n_rows)
    rows = dataset.rows[order]
    shuffled = SequenceDataset.arrange(
        rows.frames, rows.lengths, dataset.labels[order], dataset.weights[order]
    )
    model = make_chains("full", "ergodic", n_mixed=2)
    value, gradient = assess(dataset, objective, model)
    again = assess(shuffled, objective, model)
    assert again[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(again[1], gradient, rtol=1e-9, atol=1e-9)


def test_weights_stand_for_repeated_sequences():
    rows = make_sequences([3, 5, 1, 4], 0.2)
    labels, weights = np.array([0, 1, 1, -1]), np.array([2.0, 1.0, 3.0, 0.0])
    weighted = SequenceDataset.arrange(rows.frames, rows.lengths, labels, weights)
    index = np.repeat(np.arange(4), weights.astype(int))
    repeated = rows[index]
    plain = SequenceDataset.arrange(repeated.frames, repeated.lengths, labels[index])
    model = make_chains("diag")
    for objective in OBJECTIVES.values():
        value, gradient = assess(weighted, objective, model)
        expected = assess(plain, objective, model)
        assert value == pytest.approx(expected[0])
        np.testing.assert_allclose(gradient, expected[1], atol=1e-9)


def test_an_unlabelled_sequence_counts_as_all_classes():
    rows = make_sequences([6])
    dataset = SequenceDataset.arrange(rows.frames, rows.lengths, np.array([-1]))
    model = make_chains("full")
    value, _ = assess(dataset, Likelihood(0.5), model)
    joint = log_joint(model, rows, Workers(1))
    assert value == pytest.approx(0.5 * np.logaddexp.reduce(joint, axis=0).item())


def test_classes_of_chains_stand_alone():
    model = make_chains("tied", "left-right", True, 2)
    rows = make_sequences([4, 2, 6], 0.2)
    joint = log_joint(model, rows, Workers(1))
    for label in range(2):
        own = log_joint(model.of_class(label), rows, Workers(1))
        np.testing.assert_allclose(own[0], joint[label])
        assert model.of_class(label).n_parameters < model.n_parameters


def test_em_converges_from_a_random_start():
    dataset = make_sequence_dataset(60, 0.1)
    start = make_chains("diag x categorical", "mask", True, 2)
    problem = Problem(dataset, Likelihood(0.5), start, Workers(1))
    solution = ExpectationMaximisation(200, 1e-5).solve(problem, start)
    assert solution.converged
    assert np.diff(solution.trace).min() > -1e-9
    assert np.all(np.isneginf(solution.model.log_moves) == np.isneginf(start.log_moves))
