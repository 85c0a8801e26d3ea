"""Leaps of EM: the same maxima in fewer passes over the rows, and never a step back."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers import (
    families,
    make_dataset,
    make_mixture,
    make_problem,
    make_rows,
)
from test_families import Exponential, waiting_times

from hybridmix._parallel import Workers
from hybridmix.families import Coordinates, DiagonalGaussian, FullGaussian, VariancePrior
from hybridmix.families.coordinates import DiagonalCoordinates
from hybridmix.families.moments import FullParameters
from hybridmix.models import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import ExpectationMaximisation
from hybridmix.solvers.acceleration import Leaps
from hybridmix.training.starts import start_mixture

PLAIN = ExpectationMaximisation(max_iter=3000, tol=1e-7, accelerate=False)
ACCELERATED = replace(PLAIN, accelerate=True)


def holed_problem(family, n_components=1, missing=0.5, n_rows=300):
    """Rows of one class with holes, and a start by k-means."""
    dataset = make_dataset(make_rows(n_rows, missing))
    generator = np.random.default_rng(0)
    start = start_mixture(dataset, family, n_components, "kmeans", generator)
    return Problem(dataset, Likelihood(), start, Workers(1), False), start


def mean_value(problem, model):
    total = problem.assess(model).value + model.log_prior_density()
    return total / problem.total_weight


def is_monotone(trace):
    return np.diff(trace).min(initial=0.0) > -1e-12


@pytest.fixture
def n_refused(monkeypatch):
    """Counts the groups whose leaps were refused."""
    counts = []
    note = Leaps.note

    def counted(self, refused):
        counts.append(int(refused.sum()))
        note(self, refused)

    monkeypatch.setattr(Leaps, "note", counted)
    return lambda: sum(counts)


@pytest.mark.parametrize("name", list(families()))
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_unlabelled_rows_never_lose(name, missing):
    problem, start = make_problem(name, missing, n_rows=250)
    # Plain EM would lose a component of "categorical" after some 50 iterations.
    solution = ExpectationMaximisation(max_iter=25, tol=0.0).solve(problem, start)
    assert solution.n_reseeded == 0
    assert solution.n_iter == 25
    assert is_monotone(solution.trace)
    last = mean_value(problem, solution.model)
    assert solution.value == solution.trace[-1] == pytest.approx(last, rel=1e-12)


@pytest.mark.parametrize("name", [n for n in families() if n != "categorical"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_maximum_is_that_of_plain_em(name, missing):
    problem, start = holed_problem(families()[name], 2, missing)
    plain, leaping = (s.solve(problem, start) for s in (PLAIN, ACCELERATED))
    assert plain.converged
    assert leaping.converged
    assert leaping.value == pytest.approx(plain.value, abs=2e-5)
    assert leaping.n_iter <= plain.n_iter + 1  # a leap does not show that it was the last
    np.testing.assert_allclose(
        np.exp(leaping.model.log_mixing), np.exp(plain.model.log_mixing), atol=0.02
    )


@pytest.mark.parametrize("name", ["full", "tied", "subspace", "full x categorical"])
def test_the_maximum_with_unlabelled_rows_is_that_of_plain_em(name):
    problem, start = make_problem(name, 0.3, n_rows=250)
    # From a start among many maxima, any other way may lead to another one.
    start = replace(PLAIN, max_iter=40).solve(problem, start).model
    plain, leaping = (s.solve(problem, start) for s in (PLAIN, ACCELERATED))
    assert plain.converged
    assert leaping.converged
    assert leaping.value > plain.value - 1e-5
    assert leaping.n_iter < 0.7 * plain.n_iter


def test_holes_take_less_than_half_the_passes():
    problem, start = holed_problem(families()["full"], 1, 0.6)
    plain, leaping = (s.solve(problem, start) for s in (PLAIN, ACCELERATED))
    assert leaping.n_iter < 0.5 * plain.n_iter
    assert leaping.value >= plain.value - 1e-9


def test_iterations_are_passes_over_the_rows(monkeypatch, n_refused):
    problem, start = make_problem("full", 0.4, n_rows=250)
    passes = []
    assess = Problem.assess

    def counted(self, model, classes=None):
        passes.append(model)
        return assess(self, model, classes)

    monkeypatch.setattr(Problem, "assess", counted)
    shown = []
    solver = ExpectationMaximisation(max_iter=100, tol=0.0)
    solution = solver.solve(problem, start, lambda model: shown.append(model) or False)
    assert n_refused() > 0
    assert len(passes) == 1 + solution.n_iter == 101
    assert all(len(trace) == 101 for trace in solution.traces.values())
    # What was refused is not shown to anybody.
    assert len(shown) == 101 - n_refused()
    assert shown[-1] is solution.model


def test_classes_leap_one_by_one(n_refused):
    """Each class does what it would do by itself, refused leaps included."""
    rows = make_rows(600, 0.5)
    dataset = make_dataset(rows, np.random.default_rng(1).integers(3, size=600))
    start = make_mixture(families()["full x categorical"], rows, sizes=(3, 1, 2))
    start = replace(start, log_class_prior=np.zeros(3))
    problem = Problem(dataset, Likelihood(), start, Workers(1), learn_class_prior=False)
    together = ACCELERATED.solve(problem, start)
    assert n_refused() > 0
    assert is_monotone(together.trace)
    plain = PLAIN.solve(problem, start)
    assert (together.classes.n_iter < 0.7 * plain.classes.n_iter).all()
    for label in range(3):
        own = start.of_class(label)
        part = Problem(
            dataset.of_class(label),
            Likelihood(),
            own,
            Workers(1),
            learn_class_prior=False,
        )
        single = ACCELERATED.solve(part, own)
        assert together.classes.n_iter[label] == single.n_iter
        assert together.classes.values[label] == pytest.approx(single.value, rel=1e-12)
        found = together.model.of_class(label)
        assert mean_value(part, found) == pytest.approx(single.value, rel=1e-12)


def test_a_leap_that_loses_is_taken_back(monkeypatch, n_refused):
    def astray(self, group, before, model, updated):
        means = before.components.means + 50.0
        return replace(before, components=replace(before.components, means=means))

    problem, start = holed_problem(families()["diag"], 2)
    plain = PLAIN.solve(problem, start)
    monkeypatch.setattr(Leaps, "_leap", astray)
    solution = ACCELERATED.solve(problem, start)
    assert n_refused() > 2
    assert solution.converged
    assert is_monotone(solution.trace)
    # All that is left are the steps of plain EM, and a pass for each leap.
    assert solution.n_iter == plain.n_iter + n_refused()
    assert solution.value == plain.value
    np.testing.assert_array_equal(
        solution.model.components.means, plain.model.components.means
    )


def test_a_leap_that_collapses_a_component_is_taken_back(monkeypatch, n_refused):
    def deadly(self, group, before, model, updated):
        # A component that nothing speaks for leaves the value as it is.
        return replace(updated, log_mixing=np.array([0.0, -100.0]))

    family = DiagonalGaussian(VariancePrior(np.ones(5), 1.0))
    rows = make_rows(200)
    one = make_mixture(family, rows, sizes=(1,))
    twins = Mixture(
        family,
        one.components.take(np.array([0, 0])),
        np.log([0.5, 0.5]),
        np.zeros(1),
        (0, 2),
    )
    monkeypatch.setattr(Leaps, "_leap", deadly)
    problem = Problem(make_dataset(rows), Likelihood(), twins, Workers(1))
    solution = ExpectationMaximisation(max_iter=12, tol=0.0).solve(problem, twins)
    assert n_refused() > 1
    assert solution.n_reseeded == 0


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_components_that_start_anew_begin_with_plain_steps(strength):
    """The value drops when a component starts anew, and at no other time."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)), np.full((30, 2), 9.0)])
    rows = make_rows(230)
    rows = replace(rows, real=X.T.copy(), codes=rows.codes[:0])
    family = FullGaussian(VariancePrior(np.ones(2), strength))
    dataset = make_dataset(rows)
    start = start_mixture(dataset, family, 3, "kmeans", np.random.default_rng(0))
    problem = Problem(dataset, Likelihood(), start, Workers(1))
    solution = replace(ACCELERATED, max_iter=400).solve(problem, start)
    n_drops = int((np.diff(solution.trace) < -1e-10).sum())
    assert n_drops <= solution.n_reseeded
    assert (solution.n_reseeded > 0) == (strength == 0.0)
    assert np.isfinite(solution.value)


def test_leaps_stay_above_the_floor():
    """Columns that depend on each other, without a prior: variances are at the floor."""
    rows = make_rows(60, 0.3)
    real = np.concatenate([rows.real, rows.real[:3].sum(axis=0, keepdims=True)])
    observed = np.concatenate([rows.observed, rows.observed[:3].all(axis=0)[None]])
    rows = replace(rows, real=real * observed, observed=observed, codes=rows.codes[:0])
    family = FullGaussian(VariancePrior(np.ones(6), 0.0, floor=1e-3))
    dataset = make_dataset(rows)
    start = start_mixture(dataset, family, 2, "kmeans", np.random.default_rng(0))
    problem = Problem(dataset, Likelihood(), start, Workers(1))
    seen = []
    solver = ExpectationMaximisation(max_iter=200, tol=1e-9)
    solution = solver.solve(problem, start, lambda m: seen.append(m.components) or False)
    least = [np.linalg.eigvalsh(c.covariances).min() for c in seen]
    assert min(least) == pytest.approx(1e-3, rel=1e-6)
    assert solution.n_reseeded == 0
    assert np.diff(solution.trace).min() > -1e-9


def test_parameters_below_the_floor_are_raised():
    family = FullGaussian(VariancePrior(np.ones(2), floor=0.1))
    covariances = np.array([np.diag([0.01, 2.0]), np.eye(2)])
    raised = family.within_bounds(FullParameters.of(np.zeros((2, 2)), covariances))
    np.testing.assert_allclose(raised.covariances[0], np.diag([0.1, 2.0]), atol=1e-12)
    np.testing.assert_array_equal(raised.covariances[1], np.eye(2))
    broad = FullParameters.of(np.zeros((1, 2)), np.eye(2)[None])
    assert family.within_bounds(broad) is broad


def test_families_without_coordinates_take_plain_steps():
    rows, _ = waiting_times(500)
    dataset = make_dataset(rows)
    start = start_mixture(dataset, Exponential(2), 2, "kmeans", np.random.default_rng(0))
    problem = Problem(dataset, Likelihood(), start, Workers(1))
    plain, other = (s.solve(problem, start) for s in (PLAIN, ACCELERATED))
    assert other.trace == plain.trace


class OneWay(DiagonalCoordinates):
    """Coordinates that gradient methods can use, without the way from models."""

    vector = Coordinates.vector


@dataclass(frozen=True)
class OneWayGaussian(DiagonalGaussian):
    def coordinates(self, start, counts):
        return OneWay(start, counts, self.prior, self.spherical)


def test_coordinates_without_a_way_back_take_plain_steps():
    family = OneWayGaussian(VariancePrior(np.ones(5), 1.0))
    problem, start = holed_problem(family, 2)
    plain, other = (s.solve(problem, start) for s in (PLAIN, ACCELERATED))
    assert other.trace == plain.trace
    assert len(plain.trace) > 10


def test_an_interrupted_leap_leaves_the_best_model_so_far(monkeypatch):
    problem, start = holed_problem(families()["full"], 2)
    leap = Leaps._leap
    n_leaps = 0

    def counted(self, *args):
        nonlocal n_leaps
        n_leaps += 1
        return leap(self, *args)

    assess = Problem.assess

    def interrupted(self, model, classes=None):
        if n_leaps == 3:
            raise KeyboardInterrupt
        return assess(self, model, classes)

    monkeypatch.setattr(Leaps, "_leap", counted)
    with monkeypatch.context() as patched:
        patched.setattr(Problem, "assess", interrupted)
        solution = ACCELERATED.solve(problem, start)
    assert solution.interrupted
    assert solution.value == max(solution.trace)
    assert mean_value(problem, solution.model) == pytest.approx(solution.value, rel=1e-12)


def test_the_switch_is_true_or_false():
    with pytest.raises(ValueError, match="accelerate"):
        ExpectationMaximisation(accelerate="yes").check_consistent()
