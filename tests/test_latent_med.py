"""Latent maximum entropy discrimination: bounds, quadratic programs, estimator."""

import itertools
import re

import numpy as np
import pytest
from model_files import assert_same
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from hybridmix import LatentMEDClassifier, MEDClassifier, load, save
from hybridmix.med.latent import Components, LatentRivals
from hybridmix.med.margins import ExponentialMargin
from hybridmix.med.solvers.newton import newton
from hybridmix.training import latent, memory


def plain(*args, **options):
    """Return a classifier that is trained once."""
    return LatentMEDClassifier(*args, calibrate=False, **options)


def strips(n=160, seed=0):
    """Return rows of eight unit Gaussians, classes of which alternate upwards."""
    rng = np.random.default_rng(seed)
    level, side = np.arange(n) % 4, np.arange(n) // 4 % 2
    centres = np.column_stack([12.0 * side - 6.0, 6.0 * level - 9.0])
    return centres + rng.normal(size=(n, 2)), level % 2


def three_classes():
    X, y = load_iris(return_X_y=True)
    return X[::3], np.array(["setosa", "versicolor", "virginica"])[y[::3]]


def small_problem(seed=0, sizes=(2, 3, 1), n=12, p=3):
    """Return rows, labels, components and posteriors of a QP that slow solvers manage."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, p)), np.arange(n) % len(sizes)
    components = Components(sizes)
    outputs = 2.0 * rng.normal(size=(components.total, n))
    return X, labels, components, components.posteriors(outputs, labels)


# Bounds ---------------------------------------------------------------------------------


def test_margins_and_signed_weights_are_adjoint():
    X, labels, components, posteriors = small_problem()
    rng = np.random.default_rng(1)
    asked = LatentRivals(posteriors, labels, components, rng.random(len(X)))
    # Rows of the three classes have 4, 3 and 5 rival components.
    assert asked.n_constraints == 4 * (4 + 3 + 5)
    outputs, multipliers = rng.normal(size=(6, 12)), rng.random(asked.n_constraints)
    inner = np.sum(asked.signed(multipliers) * outputs)
    assert inner == pytest.approx(multipliers @ asked.margins(outputs))
    # A constant that is added to all outputs of a row changes nothing.
    np.testing.assert_allclose(asked.signed(multipliers).sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("is_tight", [True, False])
def test_reduced_margins_are_below_those_of_the_log_sums(is_tight):
    _, labels, components, posteriors = small_problem()
    rng = np.random.default_rng(1)
    for scale in (0.1, 1.0, 10.0):
        outputs = scale * rng.normal(size=(6, 12))
        own = components.posteriors(outputs, labels) if is_tight else posteriors
        asked = LatentRivals(own, labels, components, np.ones(12))
        reduced = np.full((6, 12), np.inf)
        reduced[~components.own(labels)] = asked.margins(outputs) - asked.offsets
        scores = components.class_scores(outputs)
        best = scores[labels, np.arange(12)]
        for rival, first, last in ((0, 0, 2), (1, 2, 5), (2, 5, 6)):
            rows = labels != rival
            bound = reduced[first:last].min(axis=0)[rows]
            margins = (best - scores[rival])[rows]
            assert np.all(bound <= margins + 1e-12)
            if is_tight:  # off by the log of a number, at most
                assert np.all(margins - bound <= np.log(last - first) + 1e-12)


def test_without_the_logarithm_it_is_not_a_bound():
    labels, components = np.array([0]), Components((1, 4))
    outputs = np.zeros((5, 1))
    asked = LatentRivals(
        components.posteriors(outputs, labels), labels, components, np.ones(1)
    )
    scores = components.class_scores(outputs)[:, 0]
    assert scores[0] - scores[1] == pytest.approx(-np.log(4))
    np.testing.assert_allclose(asked.margins(outputs), 0.0)
    np.testing.assert_allclose(asked.margins(outputs) - asked.offsets, -np.log(4))


def test_it_does_not_bound_the_expected_log_sum():
    """The largest of expected outputs is below the expected largest output."""
    rng = np.random.default_rng(0)
    d, n_rivals = 50, 2
    # Distances from a row to means that are normal around it.
    logs = -0.5 * rng.chisquare(d, size=(20_000, n_rivals))
    expected_log_sum = logsumexp(logs, axis=1).mean()
    log_sum_of_expected = logsumexp(np.full(n_rivals, -0.5 * d))
    assert expected_log_sum > log_sum_of_expected + 1.0


def test_what_meets_all_reduced_margins_meets_those_of_the_log_sums():
    """By drawing: outputs and distributions that are feasible for the QP."""
    rng = np.random.default_rng(3)
    labels, components, margin = np.array([1]), Components((3, 2)), 1.0
    n_feasible = 0
    for _ in range(5000):
        outputs = rng.normal(scale=3.0, size=(5, 1))
        shares = np.zeros((5, 1))
        shares[3:, 0] = rng.dirichlet([1.0, 1.0])
        asked = LatentRivals(shares, labels, components, np.ones(1))
        if np.all(asked.margins(outputs) - asked.offsets >= margin):
            n_feasible += 1
            rival, own = components.class_scores(outputs)[:, 0]
            assert own - rival >= margin
    assert n_feasible > 200


def test_no_distribution_is_tighter_than_the_posteriors():
    """By trying a grid of distributions over three components."""
    labels, components = np.array([0]), Components((3, 1))
    outputs = np.array([[0.3], [-1.0], [1.2], [0.5]])

    def bound(shares):
        asked = LatentRivals(shares, labels, components, np.ones(1))
        return (asked.margins(outputs) - asked.offsets)[0]

    best = bound(components.posteriors(outputs, labels))
    grid = np.linspace(0.0, 1.0, 21)
    for a, b in itertools.product(grid, grid):
        if a + b <= 1.0:
            assert bound(np.array([[a], [b], [1.0 - a - b], [0.0]])) <= best + 1e-12
    scores = components.class_scores(outputs)[:, 0]
    assert best == pytest.approx(scores[0] - scores[1])


# Quadratic programs ---------------------------------------------------------------------


def slow_solution(X, labels, components, posteriors, C, margin):
    """Maximise the dual in its explicit form, by SciPy."""
    n, n_outputs = len(X), components.total
    pairs = [
        (t, j)
        for j, t in itertools.product(range(n_outputs), range(n))
        if components.classes[j] != labels[t]
    ]
    rows = np.array([t for t, _ in pairs])
    signs = posteriors.T[rows].copy()
    signs[np.arange(len(pairs)), [j for _, j in pairs]] -= 1.0
    gram = (signs @ signs.T) * (X @ X.T)[np.ix_(rows, rows)]
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(posteriors * np.log(posteriors), axis=0)
    sizes = np.array(components.sizes)[components.classes]
    asked = margin - entropy[rows] + np.log(sizes[[j for _, j in pairs]])
    found = minimize(
        lambda x: 0.5 * x @ gram @ x - asked @ x,
        np.full(len(pairs), 0.1 * C),
        jac=lambda x: gram @ x - asked,
        bounds=[(0.0, C)] * len(pairs),
        constraints={
            "type": "eq",
            "fun": lambda x: signs.T[:-1] @ x,
            "jac": lambda x: signs.T[:-1],
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    assert found.success
    return -found.fun, (signs * found.x[:, None]).T @ X[rows]


@pytest.mark.parametrize("C", [0.3, 3.0])
def test_newton_solves_the_quadratic_program(C):
    X, labels, components, posteriors = small_problem()
    asked = LatentRivals(posteriors, labels, components, np.ones(len(X)))
    prior = ExponentialMargin(C, 0.0, 1.5)
    found = newton(X, asked, prior, np.inf, tol=1e-10)
    value, means = slow_solution(X, labels, components, posteriors, C, 1.5)
    assert found.value == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.coef, means, atol=1e-4)


def test_the_solution_meets_the_conditions_of_an_optimum():
    X, labels, components, posteriors = small_problem(n=30)
    weights = np.random.default_rng(2).integers(1, 4, size=30).astype(float)
    asked = LatentRivals(posteriors, labels, components, weights)
    C, margin = 0.5, 1.0
    found = newton(X, asked, ExponentialMargin(C, 0.0, margin), np.inf, tol=1e-12)
    outputs = found.coef @ X.T + found.bias[:, None]
    slack = margin - (asked.margins(outputs) - asked.offsets)
    share = found.multipliers / (C * asked.weights)
    assert share.min() >= 0.0
    assert share.max() <= 1.0
    assert np.all(share[slack < -1e-4] < 1e-4)  # margins beyond what was asked
    assert np.all(share[slack > 1e-4] > 1.0 - 1e-4)  # margins that lack something
    assert np.any((share > 0.01) & (share < 0.99))  # and some exactly there
    signed = asked.signed(found.multipliers)
    np.testing.assert_allclose(signed.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(signed @ X, found.coef, atol=1e-4)


def test_bounds_and_objectives_take_turns_downwards():
    for model, seed in itertools.product(("linear", "rbf"), range(3)):
        X, y = strips(80)
        machine = plain(model, n_init=1, tol=1e-6, random_state=seed, gamma=0.05)
        machine.fit(X, y)
        bound, objective = machine.history_["bound"], machine.history_["objective"]
        assert len(bound) == len(objective) == machine.n_iter_ > 1
        chain = np.column_stack([bound, objective]).ravel()
        assert np.all(np.diff(chain) <= 1e-6 * chain[:-1])
        assert machine.objective_ == objective[-1] == machine.start_objectives_[0]


def test_the_objective_is_above_that_of_the_log_ratios():
    X, y = three_classes()
    C, margin = 2.0, 1.3
    model = plain(C=C, margin=margin, n_init=2, random_state=0).fit(X, y)
    labels = np.searchsorted(model.classes_, y)
    scores = model.decision_function(X)
    own = scores[np.arange(len(X)), labels]
    lacking = np.maximum(margin - (own[:, None] - scores), 0.0)
    lacking[np.arange(len(X)), labels] = 0.0
    penalty = 0.5 * np.sum(model.means_**2)
    value = penalty + C * lacking.sum()
    assert value <= model.objective_
    # The objective itself, one loss per rival component.
    outputs = model.machine_.components.outputs(X)
    rivals = np.repeat(np.arange(3), 2)[:, None] != labels
    reduced = own - outputs - np.log(2)
    losses = np.maximum(margin - reduced, 0.0)[rivals]
    assert penalty + C * losses.sum() == pytest.approx(model.objective_)


# Decisions ------------------------------------------------------------------------------


def test_mode_mean_and_expected_logs_decide_alike():
    """Gaussian posteriors have their mode at their mean, and expected logs are D/2 lower.

    With flat priors, proportions and biases are known by the sums a_k of expectations
    only: they are points.
    """
    X, y = strips(80)
    model = plain(n_init=3, random_state=0).fit(X, y)
    means, d = model.means_, X.shape[1]
    constants = model.intercept_ + 0.5 * np.sum(means**2, axis=1)
    biases = logsumexp(constants.reshape(2, 2), axis=1)
    proportions = np.exp(constants.reshape(2, 2) - biases[:, None])
    new = np.random.default_rng(1).normal(scale=8.0, size=(50, d))
    logs = np.stack([multivariate_normal(m).logpdf(new) for m in means])
    drawn = np.random.default_rng(2).normal(means[0], size=(200_000, d))
    expected_log = multivariate_normal(new[0]).logpdf(drawn).mean()
    assert expected_log == pytest.approx(logs[0, 0] - 0.5 * d, abs=0.2)
    for densities in (logs, logs - 0.5 * d):
        terms = np.log(proportions)[:, :, None] + densities.reshape(2, 2, -1)
        scores = logsumexp(terms, axis=1) + biases[:, None]
        np.testing.assert_allclose(scores[1] - scores[0], model.decision_function(new))


def test_two_components_separate_what_one_cannot():
    X, y = strips()
    new, labels = strips(seed=1)
    model = plain(C=10.0, random_state=0).fit(X, y)
    assert model.score(new, labels) > 0.97
    assert model.means_.shape == (4, 2)
    assert plain(n_components=1).fit(X, y).score(new, labels) < 0.7


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_component_is_a_support_vector_machine(kernel):
    # Two means share the penalty: half the squared length of their difference.
    X, y = strips(60)
    model = plain(kernel, n_components=1, C=1.0, tol=1e-8).fit(X, y)
    machine = SVC(kernel=kernel, C=2.0, tol=1e-8).fit(X, y)
    expected = machine.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)
    assert (model.n_iter_, len(model.start_objectives_)) == (1, 1)
    assert model.converged_


def test_one_component_of_several_classes_is_the_joint_machine():
    X, y = three_classes()
    model = plain(n_components=1, smoothness=0.5, tol=1e-8).fit(X, y)
    other = MEDClassifier(smoothness=0.5, tol=1e-8, calibrate=False).fit(X, y)
    expected = other.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)


def test_classes_may_differ_in_their_components():
    X, y = three_classes()
    sizes = {"setosa": 1, "versicolor": 2, "virginica": 3}
    model = plain(n_components=sizes, n_init=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    np.testing.assert_array_equal(model.n_components_, [1, 2, 3])
    assert model.means_.shape == (6, 4)
    assert model.decision_function(X).shape == (50, 3)
    multipliers = model.multipliers_
    assert multipliers.shape == (50, 6)
    assert not multipliers[y == "setosa", :1].any()
    assert not multipliers[y == "virginica", 3:].any()
    np.testing.assert_array_equal(model.support_, np.flatnonzero(multipliers.any(axis=1)))


def test_the_middle_class_needs_two_components():
    X = np.concatenate([np.linspace(a, a + 1.0, 20) for a in (-2.5, -0.5, 1.5)])[:, None]
    y = np.abs(X[:, 0]) < 1.0
    model = plain(n_components={True: 1, False: 2}, C=10.0, random_state=0)
    assert model.fit(X, y).score(X, y) == 1.0
    outer, other, inner = np.sort(np.abs(model.means_[:, 0]))[::-1]
    assert outer == pytest.approx(other, rel=1e-3)
    assert inner < 0.01 * outer


# Kernels --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("linear", lambda a, b: a @ b.T),
        ("rbf", lambda a, b: rbf_kernel(a, b, gamma=0.1)),
        ("poly", lambda a, b: polynomial_kernel(a, b, degree=2, gamma=0.1, coef0=0.5)),
    ],
)
def test_kernels_by_name_and_by_function_are_the_same(name, function):
    X, y = strips(60)
    options = {"n_init": 2, "tol": 1e-5, "random_state": 0}
    named = plain(name, gamma=0.1, degree=2, coef0=0.5, **options)
    other = plain(function, **options)
    new = strips(20, seed=3)[0]
    expected = named.fit(X, y).decision_function(new)
    found = other.fit(X, y).decision_function(new)
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())
    assert other.objective_ == pytest.approx(named.objective_, rel=1e-4)


def test_precomputed_kernels():
    X, y = strips(60)
    new = strips(20, seed=3)[0]
    whole, across = rbf_kernel(X, gamma=0.1), rbf_kernel(new, X, gamma=0.1)
    options = {"n_components": 1, "tol": 1e-8}
    expected = plain("rbf", gamma=0.1, **options).fit(X, y)
    model = plain("precomputed", **options).fit(whole, y)
    np.testing.assert_allclose(
        model.decision_function(across), expected.decision_function(new), atol=1e-3
    )
    # Kernel values with rows of no weight do not matter.
    weights = (np.arange(60) % 3 > 0).astype(float)
    used = np.flatnonzero(weights)
    model.fit(whole, y, sample_weight=weights)
    part = plain("precomputed", **options)
    part.fit(whole[np.ix_(used, used)], y[used])
    np.testing.assert_allclose(
        model.decision_function(across), part.decision_function(across[:, used])
    )


def test_an_rbf_kernel_curves_the_borders():
    X = np.random.default_rng(0).normal(size=(150, 2))
    y = np.hypot(*X.T) > 1.2
    model = plain("rbf", C=10.0, n_init=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    assert not hasattr(model, "means_")


# Probabilities --------------------------------------------------------------------------


@pytest.mark.parametrize("data", [strips, three_classes])
def test_probabilities_are_on_a_scale_of_held_out_rows(data):
    X, y = data()
    options = {"n_init": 3, "random_state": 0}
    model = LatentMEDClassifier(**options).fit(X, y)
    raw = plain(**options).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), raw.predict(X))
    assert (raw.temperature_, raw.uniform_share_) == (1.0, 0.0)
    assert model.temperature_ != 1.0
    scores = raw.machine_.outputs(X)
    np.testing.assert_allclose(
        raw.predict_log_proba(X), (scores - logsumexp(scores, axis=0)).T, atol=1e-12
    )
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        model.classes_[probabilities.argmax(axis=1)], model.predict(X)
    )


# Starts and annealing -------------------------------------------------------------------


def test_starts_are_reproducible_and_the_best_one_is_kept():
    X, y = strips(80)
    one = plain(n_init=4, random_state=3).fit(X, y)
    same = plain(n_init=4, random_state=3).fit(X, y)
    assert_same(one, same)
    assert len(one.start_objectives_) == 4
    assert one.objective_ == one.start_objectives_.min() < one.start_objectives_.max()
    fewer = plain(n_init=2, random_state=3).fit(X, y)
    np.testing.assert_array_equal(fewer.start_objectives_, one.start_objectives_[:2])


def test_the_order_of_rows_does_not_matter():
    X, y = strips(80)
    order = np.random.default_rng(0).permutation(80)
    options = {"n_init": 2, "tol": 1e-7, "random_state": 0}
    one = plain(**options).fit(X, y)
    other = plain(**options).fit(X[order], y[order])
    np.testing.assert_allclose(other.means_, one.means_, atol=1e-3)


def test_starts_find_what_trying_all_assignments_finds():
    """Every way to give rows to components is a start."""
    X = np.array([-3.0, -2.6, -1.0, -0.7, 0.8, 1.1, 2.7, 3.1])[:, None]
    y = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    components, prior = Components((2, 2)), ExponentialMargin(2.0, 0.0, 1.0)
    values = []
    # The first row of each class is given to its first component: names are arbitrary.
    for taken in itertools.product((0,), (0, 1), (0,), *5 * [(0, 1)]):
        shares = np.zeros((4, len(X)))
        shares[2 * y + np.array(taken), np.arange(len(X))] = 1.0
        for _ in range(6):
            asked = LatentRivals(shares, y, components, np.ones(len(X)))
            found = newton(X, asked, prior, np.inf, tol=1e-6)
            outputs = found.coef @ X.T + found.bias[:, None]
            shares = components.posteriors(outputs, y)
        values.append(found.value)
    model = plain(C=2.0, n_init=20, tol=1e-6, random_state=0).fit(X, y)
    assert model.objective_ == pytest.approx(min(values), rel=1e-2)
    assert min(values) < 0.9 * max(values)


def test_annealing_ends_at_a_temperature_of_one():
    X, y = strips(80)
    model = plain(annealing=4.0, cooling=0.5, n_init=1, random_state=0)
    model.fit(X, y)
    bound, objective = model.history_["bound"], model.history_["objective"]
    assert model.converged_
    assert len(bound) > 4
    assert np.all(objective <= bound * (1.0 + 1e-9))  # any posteriors give a bound
    tail = np.column_stack([bound, objective])[3:].ravel()
    assert np.all(np.diff(tail) <= 1e-4 * tail[:-1])


def test_high_temperatures_make_components_equal():
    _, labels, components, _ = small_problem()
    outputs = np.random.default_rng(0).normal(size=(6, 12))
    hot = components.posteriors(outputs, labels, temperature=1e9)
    sizes = np.array(components.sizes)[labels]
    np.testing.assert_allclose(hot, components.own(labels) / sizes)


# Weights, sizes and odd tables ----------------------------------------------------------


def test_a_weight_of_two_is_two_rows():
    X, y = strips(60)
    weights = np.arange(60) % 3
    options = {"n_init": 2, "smoothness": 0.5, "tol": 1e-9, "random_state": 0}
    one = plain(**options).fit(X, y, sample_weight=weights)
    repeated = plain(**options)
    repeated.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(one.means_, repeated.means_, atol=1e-4)
    assert not one.multipliers_[weights == 0].any()


def test_constant_columns_and_wide_tables():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    constant = plain(n_init=1, random_state=0).fit(np.ones((20, 3)), y)
    np.testing.assert_allclose(constant.means_, 0.0, atol=1e-12)
    wide = rng.normal(size=(20, 60))
    model = plain(n_init=1, random_state=0).fit(wide, y)
    assert model.means_.shape == (4, 60)
    assert model.score(wide, y) == 1.0


def test_more_components_than_rows():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 0]
    model = plain(n_components=3, C=100.0, n_init=2, random_state=0)
    assert model.fit(X, y).score(X, y) == 1.0


# Refusals and interrupts ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0 is not valid"),
        ({"n_components": {0: 1, 1: 2.5}}, "n_components=2.5 is not valid"),
        ({"n_components": {0: 1}}, "n_components has no entry for the class 1"),
        ({"n_init": 0}, "n_init=0 is not valid"),
        ({"annealing": 0.5}, "annealing=0.5 is not valid"),
        ({"cooling": 1.0}, "cooling=1.0 is not valid"),
        ({"margin": 0}, "margin=0 is not valid"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"model": "gaussian"}, "model='gaussian' is not one of linear, rbf, poly"),
        ({"model": "precomputed"}, "needs the square kernel matrix"),
        ({"C": -1.0}, "C=-1.0 is not valid"),
        ({"random_state": "x"}, "random_state='x' is not valid"),
    ],
)
def test_options_are_refused_by_name(options, message):
    X, y = strips(20)
    with pytest.raises(ValueError, match=re.escape(message)):
        plain(**options).fit(X, y)


def test_holes_and_missing_labels_are_refused():
    X, y = strips(20)
    model = plain(n_init=1, random_state=0).fit(X, y)
    holes = X.copy()
    holes[3, 1] = np.nan
    words = "row 3 of column 1.*HybridMixtureClassifier"
    with pytest.raises(ValueError, match=words):
        plain().fit(holes, y)
    with pytest.raises(ValueError, match=words):
        model.predict(holes)
    with pytest.raises(ValueError, match="row 1 has no label"):
        plain().fit(X, [0.0, np.nan, *y[2:]])
    with pytest.raises(ValueError, match="only one class"):
        plain().fit(X, np.zeros(20))


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    X, y = strips(40)
    monkeypatch.setattr(latent, "physical_memory", lambda: 60_000.0)
    with pytest.raises(ValueError, match=r"40 rows and 4 components.*model='linear', f"):
        plain("rbf").fit(X, y)
    plain(n_init=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"Use fewer rows or fewer components \(n_co"):
        plain(n_components=20).fit(X, y)
    assert memory.physical_memory() > 60_000.0


class CountedPrograms:
    """Count the QPs, and press Ctrl-C before one of them."""

    def __init__(self, monkeypatch, stop=None):
        self.n_solved, self._stop = 0, stop
        monkeypatch.setattr(latent, "newton", self.solve)

    def solve(self, *args, **kwargs):
        if self.n_solved == self._stop:
            raise KeyboardInterrupt
        self.n_solved += 1
        return newton(*args, **kwargs)


def test_an_interrupt_keeps_the_best_start(monkeypatch):
    X, y = strips(80)
    with monkeypatch.context() as patched:
        count = CountedPrograms(patched)
        whole = plain(n_init=1, random_state=0).fit(X, y)
    # Within the first start, at the beginning of the second one, and within that.
    for stop, n_starts in ((1, 1), (count.n_solved, 1), (count.n_solved + 1, 2)):
        with monkeypatch.context() as patched:
            CountedPrograms(patched, stop)
            model = plain(n_init=5, random_state=0)
            with pytest.warns(ConvergenceWarning, match="Interrupted: the best model"):
                model.fit(X, y)
        assert model.interrupted_
        assert len(model.start_objectives_) == n_starts
        assert model.objective_ == model.start_objectives_.min()
        assert (model.objective_ == whole.objective_) == (stop > 1)
    with monkeypatch.context() as patched:
        CountedPrograms(patched, 0)
        with pytest.raises(KeyboardInterrupt):
            plain().fit(X, y)


def test_too_few_programs_are_reported():
    X, y = strips(80)
    with pytest.warns(ConvergenceWarning, match="not settled after 1 quadratic"):
        model = plain(max_iter=1, n_init=1, random_state=0).fit(X, y)
    assert not model.converged_


def test_verbose_prints_the_starts(capsys):
    X, y = strips(40)
    plain(n_init=2, random_state=0, verbose=1).fit(X, y)
    assert "starts 2/2  objective" in capsys.readouterr().out


# Files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "rbf"])
def test_models_can_be_saved(tmp_path, model):
    X, y = three_classes()
    fitted = plain(model, n_init=1, random_state=0).fit(X, y)
    save(fitted, tmp_path / "model.hmx")
    loaded = load(tmp_path / "model.hmx")
    assert_same(loaded, fitted)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_functions_cannot_be_saved(tmp_path):
    X, y = strips(20)
    model = plain(lambda a, b: a @ b.T, n_init=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="never holds code"):
        save(model, tmp_path / "model.hmx")


def test_parts_that_do_not_fit_are_noticed():
    X, y = three_classes()
    model = plain(n_init=1, random_state=0).fit(X, y)
    model.classes_ = model.classes_[:2]
    with pytest.raises(ValueError, match="other outputs than classes_"):
        model.check_consistent()
    machine = model.machine_
    for sizes in ((2, 2), (2, 4, 0)):
        with pytest.raises(ValueError, match="sizes are"):
            type(machine)(machine.components, sizes).check_consistent()
