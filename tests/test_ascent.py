"""Solvers of discriminative objectives: L-BFGS, extended Baum-Welch, early stopping."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import families, make_problem, partly_labelled

from hybridmix._parallel import Workers
from hybridmix.models.coordinates import MixtureCoordinates
from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    ScaledMargin,
)
from hybridmix.problem import Problem
from hybridmix.solvers import (
    EarlyStopping,
    ExpectationMaximisation,
    ExtendedBaumWelch,
    LimitedMemoryBFGS,
)
from hybridmix.solvers.base import History

OBJECTIVES = {
    "hybrid": Blend(Likelihood(0.5), Margin(margin=2.0, width=1.0), 5.0),
    "conditional": ConditionalLikelihood(),
    "scaled margin": ScaledMargin(power=0.3),
}


@pytest.mark.parametrize("name", list(families()))
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_lbfgs_climbs_and_ends_where_the_gradient_vanishes(name, missing):
    problem, start = make_problem(name, missing)
    em = ExpectationMaximisation(max_iter=20, tol=0.0)
    start = em.solve(problem, start).model
    problem.objective = OBJECTIVES["hybrid"]
    is_refined = name == "refined subspace"
    max_iter = 2000 if is_refined else 400
    solution = LimitedMemoryBFGS(max_iter=max_iter, tol=1e-12, curvature=6.0).solve(
        problem, start
    )
    assert np.diff(solution.trace).min() > -1e-9
    assert solution.trace[-1] > solution.trace[0]
    if is_refined:
        # Coordinates around the end leave out other changes than those of the start.
        assert solution.converged
        return
    coordinates = MixtureCoordinates(solution.model, np.full(5, 500.0))
    point = coordinates.at(np.zeros(coordinates.size))
    gradient = point.gradient(problem.assess(solution.model).statistics)
    gradient += point.prior_gradient()
    assert np.abs(gradient).max() < 0.05


def test_lbfgs_and_em_find_the_same_optimum_of_the_likelihood():
    problem, start = make_problem("full", 0.3)
    plain = ExpectationMaximisation(max_iter=30, tol=0.0, accelerate=False)
    nearby = plain.solve(problem, start)
    em = replace(plain, max_iter=5000, tol=1e-12)
    lbfgs = LimitedMemoryBFGS(max_iter=2000, tol=1e-14)
    by_em = em.solve(problem, nearby.model)
    by_lbfgs = lbfgs.solve(problem, nearby.model)
    assert by_lbfgs.value == pytest.approx(by_em.value, abs=1e-5)
    assert by_lbfgs.n_iter < by_em.n_iter


def test_lbfgs_keeps_class_probabilities_that_are_given():
    problem, start = make_problem("diag")
    problem.learn_class_prior = False
    fixed = LimitedMemoryBFGS(max_iter=20).solve(problem, start)
    np.testing.assert_array_equal(fixed.model.log_class_prior, start.log_class_prior)
    problem.learn_class_prior = True
    free = LimitedMemoryBFGS(max_iter=20).solve(problem, start)
    assert not np.allclose(free.model.log_class_prior, start.log_class_prior)


def test_early_stopping_keeps_the_best_and_stops():
    losses = iter([5.0, 3.0, 4.0, 3.5, 3.0, 9.0])
    stopping = EarlyStopping(lambda _: next(losses), patience=3)
    answers = [stopping(model) for model in ("a", "b", "c", "d", "e")]
    assert answers == [False, False, False, False, True]
    assert stopping.best_model == "b"


def test_early_stopping_by_generalisation_loss():
    losses = iter([5.0, 4.0, 4.3, 4.5])
    stopping = EarlyStopping(lambda _: next(losses), 100, generalisation_loss=0.1)
    assert [stopping(model) for model in "abcd"] == [False, False, False, True]
    assert stopping.best_model == "b"


@pytest.mark.parametrize("solver", [LimitedMemoryBFGS(), ExtendedBaumWelch()])
def test_an_interrupted_solver_keeps_its_last_iterate(solver):
    problem, start = make_problem("diag")

    def watch(model):
        if model is not start:
            raise KeyboardInterrupt
        return False

    solution = solver.solve(problem, start, watch=watch)
    assert solution.interrupted
    assert solution.value > solution.trace[0]


# Extended Baum-Welch -------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", list(families()))
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_monotone_baum_welch_never_loses(name, missing, objective):
    problem, start = make_problem(name, missing)
    problem.objective = OBJECTIVES[objective]
    solution = ExtendedBaumWelch(max_iter=30, tol=0.0).solve(problem, start)
    assert np.diff(solution.trace).min() >= 0.0
    assert solution.value == solution.trace[-1] > solution.trace[0]


@pytest.mark.parametrize("name", list(families()))
def test_baum_welch_with_the_published_recipe_climbs(name):
    problem, start = make_problem(name)
    problem.objective = ScaledMargin(power=0.3)
    solver = ExtendedBaumWelch(max_iter=30, tol=0.0, factor=4.0, monotone=False)
    solution = solver.solve(problem, start)
    assert solution.value == max(solution.trace) > solution.trace[0]


def test_strong_damping_follows_the_gradient():
    """A damped step raises the value by its squared length over the damping."""
    problem, start = make_problem("diag")
    problem.objective = ConditionalLikelihood()
    gains = [
        np.diff(ExtendedBaumWelch(max_iter=1, factor=f).solve(problem, start).trace)[0]
        for f in (1e4, 2e4)
    ]
    assert gains[0] == pytest.approx(2.0 * gains[1], rel=1e-2)


def test_baum_welch_and_lbfgs_find_the_same_optimum():
    problem, start = make_problem("diag", weighted=False)
    problem.objective = OBJECTIVES["hybrid"]
    lbfgs = LimitedMemoryBFGS(max_iter=500, tol=1e-12, curvature=6.0)
    nearby = lbfgs.solve(problem, start)
    solution = ExtendedBaumWelch(max_iter=200, tol=1e-9).solve(problem, nearby.model)
    assert solution.value == pytest.approx(nearby.value, abs=1e-5)


def test_baum_welch_keeps_class_probabilities_that_are_given():
    problem, start = make_problem("diag")
    problem.objective = ConditionalLikelihood()
    problem.learn_class_prior = False
    for monotone in (True, False):
        solver = ExtendedBaumWelch(max_iter=5, monotone=monotone)
        model = solver.solve(problem, start).model
        np.testing.assert_array_equal(model.log_class_prior, start.log_class_prior)


@pytest.mark.parametrize("solver", [LimitedMemoryBFGS(), ExtendedBaumWelch()])
def test_a_watcher_stops_a_solver(solver):
    problem, start = make_problem("diag")
    problem.objective = OBJECTIVES["hybrid"]
    seen = []

    def watch(model):
        seen.append(model)
        return len(seen) == 4

    solution = solver.solve(problem, start, watch)
    assert solution.n_iter == 3
    assert not solution.interrupted
    assert seen[0] is start
    assert {len(trace) for trace in solution.traces.values()} == {4}


@pytest.mark.parametrize("solver", [LimitedMemoryBFGS(), ExtendedBaumWelch()])
def test_traces_tell_the_terms_and_the_errors(solver):
    problem, start = make_problem("full", weighted=False)
    problem.objective = OBJECTIVES["hybrid"]
    solution = solver.solve(problem, start)
    traces = solution.traces
    assert list(traces) == ["value", "likelihood", "margin", "training_error"]
    labelled = partly_labelled(weighted=False).labelled()
    model = solution.model
    log_joint = model.evaluate(model.family.prepare(labelled.rows)).log_joint
    wrong = log_joint.argmax(axis=0) != labelled.labels
    assert traces["training_error"][-1] == pytest.approx(wrong.mean())
    prior = model.log_prior_density() / problem.total_weight
    assert traces["value"][-1] == pytest.approx(
        traces["likelihood"][-1] + traces["margin"][-1] + prior
    )


def test_lbfgs_comes_back_from_steps_out_of_the_domain():
    """Coordinates that are far too coarse make the first trial overflow."""
    problem, start = make_problem("full")
    problem.objective = OBJECTIVES["hybrid"]
    solution = LimitedMemoryBFGS(max_iter=30, curvature=1e-10).solve(problem, start)
    assert np.isfinite(solution.value)
    assert solution.value > solution.trace[0]


@pytest.mark.parametrize("name", ["spherical", "diag", "tied", "full"])
def test_lbfgs_keeps_variances_above_the_floor(name):
    problem, start = make_problem(name)
    family = start.family
    floor = 0.9 * _smallest_variance(start)
    lifted = replace(family, prior=replace(family.prior, floor=floor, strength=0.0))
    start = replace(start, family=lifted)
    problem = Problem(partly_labelled(), OBJECTIVES["conditional"], start, Workers(1))
    solution = LimitedMemoryBFGS(max_iter=100).solve(problem, start)
    assert solution.value > solution.trace[0]
    assert _smallest_variance(solution.model) >= floor * (1.0 - 1e-9)


def _smallest_variance(model):
    """Of the columns given those before them."""
    if hasattr(model.components, "variances"):
        return model.components.variances.min()
    return (
        1.0 / np.square(np.diagonal(model.components.whiteners, axis1=1, axis2=2)).max()
    )


def test_lbfgs_counts_its_value_from_the_start(monkeypatch):
    """A constant, such as units add to log densities, must not end the ascent earlier."""
    problem, start = make_problem("full")
    plain = LimitedMemoryBFGS(max_iter=30, tol=1e-4).solve(problem, start)
    value = History.value
    monkeypatch.setattr(History, "value", lambda *args: value(*args) - 1e4)
    moved = LimitedMemoryBFGS(max_iter=30, tol=1e-4).solve(problem, start)
    assert moved.n_iter == plain.n_iter > 3
