"""The sum over rows, and EM."""

import signal
import threading

import numpy as np
import pytest
from helpers import families, make_dataset, make_problem, make_rows, partly_labelled

from hybridmix import MixtureDensity
from hybridmix._parallel import workers
from hybridmix.data import Rows
from hybridmix.families import DiagonalGaussian, FullGaussian, VariancePrior
from hybridmix.models import Mixture, class_posterior
from hybridmix.models.coordinates import MixtureCoordinates
from hybridmix.objectives import Likelihood, Objective
from hybridmix.problem import Problem
from hybridmix.solvers import ExpectationMaximisation
from hybridmix.training.starts import start_mixture

HOLES = [(0.0, None), (0.3, None), (0.3, 3)]


@pytest.mark.parametrize("name", list(families()))
@pytest.mark.parametrize(("missing", "n_patterns"), HOLES)
def test_value_is_the_weighted_log_likelihood(name, missing, n_patterns):
    problem, model = make_problem(name, missing, n_patterns)
    dataset = partly_labelled(missing, n_patterns)
    log_joint = model.evaluate(model.family.prepare(dataset.rows)).log_joint
    evidence, _ = class_posterior(log_joint)
    rows = np.arange(dataset.n_rows)
    own = log_joint[dataset.labels, rows]
    values = np.where(dataset.labels >= 0, own, 0.5 * evidence)
    assessment = problem.assess(model)
    value, statistics = assessment.value, assessment.statistics
    assert value == pytest.approx(np.sum(dataset.weights * values), rel=1e-12)
    counted = np.where(dataset.labels >= 0, 1.0, 0.5) * dataset.weights
    assert statistics.counts.sum() == pytest.approx(counted.sum())


@pytest.mark.parametrize("name", list(families()))
@pytest.mark.parametrize(("missing", "n_patterns"), HOLES)
def test_gradient_of_the_whole_model(name, missing, n_patterns):
    problem, start = make_problem(name, missing, n_patterns, n_rows=150)
    coordinates = MixtureCoordinates(start, np.linspace(10.0, 60.0, 5))
    rng = np.random.default_rng(1)
    vector = rng.normal(size=coordinates.size)
    point = coordinates.at(vector)
    gradient = point.gradient(problem.assess(point.model).statistics)
    step = 1e-5
    for index in rng.choice(coordinates.size, 12, replace=False):
        unit = step * np.eye(coordinates.size)[index]
        up = problem.assess(coordinates.at(vector + unit).model).value
        down = problem.assess(coordinates.at(vector - unit).model).value
        assert gradient[index] == pytest.approx((up - down) / (2 * step), abs=2e-5)
    # The logits of proportions and class probabilities are the last coordinates.
    for index in range(coordinates.size - 7, coordinates.size):
        unit = step * np.eye(coordinates.size)[index]
        up = problem.assess(coordinates.at(vector + unit).model).value
        down = problem.assess(coordinates.at(vector - unit).model).value
        assert gradient[index] == pytest.approx((up - down) / (2 * step), abs=2e-5)


@pytest.mark.parametrize("name", list(families()))
@pytest.mark.parametrize(("missing", "n_patterns"), HOLES)
def test_em_never_loses(name, missing, n_patterns):
    problem, start = make_problem(name, missing, n_patterns)
    solver = ExpectationMaximisation(max_iter=40, tol=0.0, accelerate=False)
    solution = solver.solve(problem, start)
    assert solution.n_reseeded == 0
    assert np.diff(solution.trace).min() > -1e-10
    assert solution.trace[-1] > solution.trace[0]


def test_em_is_at_a_stationary_point_when_it_stops():
    problem, start = make_problem("full", 0.3)
    solver = ExpectationMaximisation(max_iter=3000, tol=1e-13)
    model = solver.solve(problem, start).model
    coordinates = MixtureCoordinates(model, np.full(5, 100.0))
    point = coordinates.at(np.zeros(coordinates.size))
    gradient = point.gradient(problem.assess(model).statistics) + point.prior_gradient()
    assert np.abs(gradient).max() < 1e-3


def test_em_refuses_signed_objectives():
    class Signed(Objective):
        needs_rivals, signed = True, True

        def values_and_weights(self, log_joint, labels):
            raise AssertionError("not reached")

    problem, start = make_problem("diag")
    problem.objective = Signed()
    with pytest.raises(ValueError, match="cannot maximise Signed: its weights"):
        ExpectationMaximisation().solve(problem, start)


def test_objectives_that_need_rivals_see_all_classes_of_labelled_rows():
    class Rivals(Likelihood):
        needs_rivals = True

        def values_and_weights(self, log_joint, labels):
            assert len(log_joint) == 2
            return super().values_and_weights(log_joint, labels)

    problem, model = make_problem("full", 0.3)
    expected = problem.assess(model)
    problem.objective = Rivals(0.5)
    found = problem.assess(model)
    statistics = found.statistics
    assert found.value == pytest.approx(expected.value)
    np.testing.assert_allclose(statistics.counts, expected.statistics.counts)
    np.testing.assert_allclose(
        statistics.components.second, expected.statistics.components.second, atol=1e-9
    )


def test_threads_do_not_change_a_single_bit():
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(6, 120_000)), None, np.empty((0, 120_000), np.int32))
    family = FullGaussian(VariancePrior(np.ones(6)))
    dataset = make_dataset(rows)
    start = start_mixture(dataset, family, 4, "kmeans", np.random.default_rng(0))
    results = []
    for n_threads in (1, 2, 3):
        with workers(n_threads) as pool:
            problem = Problem(dataset, Likelihood(), start, pool)
            found = problem.assess(start)
            second = found.statistics.components.second
            results.append((found.value, second.tobytes()))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("n_jobs", [2, None])
def test_n_jobs_does_not_change_the_model(n_jobs):
    X = np.random.default_rng(0).normal(size=(60_000, 5))
    X[::3, 2] = np.nan
    options = {"n_components": 3, "covariance_type": "full", "max_iter": 3}
    options |= {"tol": 1.0, "random_state": 0}
    one = MixtureDensity(**options, n_jobs=1).fit(X)
    other = MixtureDensity(**options, n_jobs=n_jobs).fit(X)
    np.testing.assert_array_equal(one.means_, other.means_)
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))


def test_blas_limit_is_shared_and_restored():
    from threadpoolctl import threadpool_info

    def blas_threads():
        return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]

    before = blas_threads()
    outer = workers(1)
    outer.__enter__()
    with workers(2):
        assert set(blas_threads()) == {1}
        outer.__exit__(None, None, None)  # the first to come is the first to go
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("seed", range(5))
def test_sample_weights_act_like_repetitions(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(40, 3)), rng.normal(3.0, size=(40, 3))])
    X[rng.random(X.shape) < 0.2] = np.nan
    weights = rng.integers(0, 4, size=80)
    options = {"n_components": 3, "n_init": 2, "random_state": seed}
    weighted = MixtureDensity(**options).fit(X, sample_weight=weights)
    repeated = MixtureDensity(**options).fit(X.repeat(weights, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-8)
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, atol=1e-8)


def test_restarts_keep_the_best():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(12, 2)) * 4
    X = (centres[:, None] + rng.normal(size=(12, 30, 2))).reshape(-1, 2)
    few = MixtureDensity(
        12, init="k-means++", random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    many = MixtureDensity(
        12,
        init="k-means++",
        n_init=8,
        random_state=0,
        covariance_type="full",
        covariance_prior=1.0,
    ).fit(X)
    assert many.trace_[-1] >= few.trace_[-1]


def test_collapsed_components_are_started_anew_with_advice():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)), np.full((30, 2), 9.0)])
    model = MixtureDensity(
        2,
        covariance_prior=0.0,
        random_state=0,
        covariance_type="full",
        column_shapes="plain",
    )
    with pytest.warns(Warning, match=r"collapsed.*fewer components"):
        model.fit(X)
    assert np.isfinite(model.score_samples(X)).all()


def test_interrupt_keeps_the_best_model_so_far(monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 3))
    calls = 0

    def interrupted(model, statistics, learn_class_prior=True):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return maximised(model, statistics, learn_class_prior)

    maximised = Mixture.maximised
    monkeypatch.setattr(Mixture, "maximised", interrupted)
    model = MixtureDensity(
        3, tol=0.0, n_init=5, random_state=0, covariance_type="full", covariance_prior=1.0
    )
    with pytest.warns(Warning, match="best model so far is kept"):
        model.fit(X)
    assert model.n_iter_ == 2
    assert np.isfinite(model.score(X))


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="needs signals"
)
def test_a_real_interrupt_during_threaded_work(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200_000, 8))
    # Not by SIGINT itself, which processes in the background may have to ignore.
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)

    def timed(model, statistics, learn_class_prior=True):
        """Let the first iteration set off an alarm."""
        if not signal.getitimer(signal.ITIMER_REAL)[0]:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
        return maximised(model, statistics, learn_class_prior)

    maximised = Mixture.maximised
    monkeypatch.setattr(Mixture, "maximised", timed)
    model = MixtureDensity(
        8,
        tol=0.0,
        max_iter=2000,
        n_jobs=2,
        random_state=0,
        covariance_type="full",
        covariance_prior=1.0,
    )
    with pytest.warns(Warning, match="best model so far is kept"):
        model.fit(X)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
    assert np.isfinite(model.score(X[:100]))


@pytest.mark.parametrize("n_components", [2, (2, 3)])
def test_interrupt_between_starts_keeps_what_there_is(monkeypatch, n_components):
    X = np.random.default_rng(0).normal(size=(200, 2))
    calls = 0

    def interrupted(*arguments):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return start_mixture(*arguments)

    monkeypatch.setattr("hybridmix.training.classes.start_mixture", interrupted)
    n_init = 3 if n_components == 2 else 1
    with pytest.warns(Warning, match="best model so far is kept"):
        model = MixtureDensity(
            n_components,
            n_init=n_init,
            random_state=0,
            covariance_type="full",
            covariance_prior=1.0,
        ).fit(X)
    assert model.n_components_ == 2
    calls = 1
    with pytest.raises(KeyboardInterrupt):
        MixtureDensity(2, covariance_type="full", covariance_prior=1.0).fit(X)


def test_not_converged_warns_with_advice():
    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.warns(Warning, match="max_iter=2"):
        model = MixtureDensity(
            4,
            max_iter=2,
            tol=0.0,
            random_state=0,
            covariance_type="full",
            covariance_prior=1.0,
        ).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_verbose_prints_progress(capsys):
    X = np.random.default_rng(0).normal(size=(50, 2))
    MixtureDensity(
        2, verbose=1, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    assert "mean value" in capsys.readouterr().out


def test_start_from_centres_and_from_a_fitted_model():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (100, 2)), rng.normal(6, 1, (100, 2))]) * [1.0, 50.0]
    X[::7, 0] = np.nan
    first = MixtureDensity(
        2, init=[[0.0, 0.0], [6.0, 300.0]], covariance_type="full", covariance_prior=1.0
    ).fit(X)
    assert first.means_[0, 1] < first.means_[1, 1]
    again = MixtureDensity(
        2, init=first, max_iter=5, covariance_type="full", covariance_prior=1.0
    ).fit(X[20:])
    np.testing.assert_allclose(again.means_, first.means_, rtol=0.3, atol=1.0)
    with pytest.raises(ValueError, match=r"\(n_components, n_features\) = \(2, 2\)"):
        MixtureDensity(2, init=[[0.0]], covariance_type="full", covariance_prior=1.0).fit(
            X
        )
    with pytest.raises(ValueError, match="other columns"):
        MixtureDensity(2, init=first, covariance_type="diag", covariance_prior=1.0).fit(X)


def test_starts_tolerate_holes_and_categories():
    rows = make_rows(200, 0.4)
    family = families()["full x categorical"]
    for method in ("kmeans", "k-means++"):
        start = start_mixture(
            make_dataset(rows), family, 4, method, np.random.default_rng(0)
        )
        assert np.isfinite(start.evaluate(family.prepare(rows)).log_joint).all()


def test_posteriors_survive_extreme_distances():
    family = DiagonalGaussian(VariancePrior(np.ones(1)))
    parameters = family.start(
        Rows(np.array([[0.0, 0.1, 5.0, 5.1]]), None, np.empty((0, 4), np.int32)),
        np.array([[1.0, 1, 0, 0], [0, 0, 1.0, 1]]),
    )
    model = Mixture(family, parameters, np.log([0.5, 0.5]), np.zeros(1), (0, 2))
    far = Rows(np.array([[1e50, -1e50, 0.0]]), None, np.empty((0, 3), np.int32))
    evaluation = model.evaluate(family.prepare(far))
    assert np.isfinite(evaluation.log_joint).all()
    np.testing.assert_allclose(evaluation.component_posterior().sum(axis=0), 1.0)
