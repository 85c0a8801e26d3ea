"""Newton's method for linear models of maximum entropy discrimination."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.svm import SVC, SVR, LinearSVC

from hybridmix.med.constraints import Rivals, SignedRows, TargetSides, TaskRows
from hybridmix.med.dual import Dual
from hybridmix.med.margins import (
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
    TubeMargin,
)
from hybridmix.med.models.linear import LinearModel, outputs_of
from hybridmix.med.solvers import linear_systems
from hybridmix.med.solvers.hinge import RoundedHinge
from hybridmix.med.solvers.linear_systems import LinearSystems
from hybridmix.med.solvers.newton import newton

PRIORS = {
    "exponential": ExponentialMargin(2.0, 1.0),
    "exponential, little smoothness": ExponentialMargin(1.0, 1e-3, 2.0),
    "laplace": LaplaceMargin(0.5, 0.7),
    "gaussian": GaussianMargin(1.5, 2.0),
}
TUBES = {
    "tube": TubeMargin(2.0, 1.0, 0.2),
    "tube, little smoothness": TubeMargin(1.0, 1e-2, 0.1),
    "tube of no width": TubeMargin(1.0, 0.5, 0.0),
}
HINGES = {
    "hinge": ExponentialMargin(1.0, 0.0),
    "hinge, larger box": LaplaceMargin(30.0, 0.0),
}
BIASES = [0.0, 2.0, np.inf]


def make_rows(n=60, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def signs_of(X, seed=1):
    noise = np.random.default_rng(seed).normal(size=len(X))
    return np.where(X[:, 0] - 0.5 * X[:, 1] + noise > 0.3, 1.0, -1.0)


def labels_of(X, n_classes=3, seed=1):
    noise = np.random.default_rng(seed).normal(size=(len(X), n_classes))
    return np.argmax(X[:, :n_classes] + noise, axis=1)


def targets_of(X, seed=1):
    noise = np.random.default_rng(seed).normal(size=len(X))
    return X[:, 0] - 0.5 * X[:, 1] + 0.3 * noise + 2.0


def weights_of(X, seed=2):
    return np.random.default_rng(seed).uniform(0.2, 3.0, size=len(X))


def primal(X, constraints, prior, bias_variance, coef, bias):
    """The objective as it is defined."""
    margins = constraints.margins(outputs_of(X, coef) + bias[:, None])
    value = 0.5 * np.sum(coef**2)
    if bias_variance > 0.0:
        value += 0.5 * np.sum(bias**2) / bias_variance
    lost = prior.loss(margins - constraints.offsets).value
    return value + np.sum(constraints.weights * lost)


def dual(X, constraints, prior, bias_variance, multipliers):
    """The dual objective by the core, for multipliers that are balanced if need be."""
    C = constraints.n_outputs
    finite = 0.0 if bias_variance == np.inf else bias_variance
    model = Dual(LinearModel(X, C), constraints, prior, finite, np.zeros(C))
    return model.at(multipliers).value


def minimum(X, constraints, prior, bias_variance):
    """The minimum by another method."""
    C, p = constraints.n_outputs, X.shape[1]

    def objective(vector):
        table = vector.reshape(C, p + 1).copy()
        table[:, -1] *= bias_variance > 0.0
        coef, bias = table[:, :-1], table[:, -1]
        margins = constraints.margins(outputs_of(X, coef) + bias[:, None])
        terms = prior.loss(margins - constraints.offsets)
        signed = constraints.signed(constraints.weights * terms.multipliers)
        gradient = np.hstack([coef - signed @ X, -signed.sum(axis=1)[:, None]])
        if bias_variance > 0.0:
            gradient[:, -1] += bias / bias_variance
        else:
            gradient[:, -1] = 0.0
        value = primal(X, constraints, prior, bias_variance, coef, bias)
        return value, gradient.ravel()

    options = {"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-7}
    found = optimize.minimize(
        objective, np.zeros(C * (p + 1)), jac=True, method="L-BFGS-B", options=options
    )
    return found.fun


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("kind", ["signs", "targets", "labels"])
def test_nothing_near_the_solution_is_better(kind, bias_variance):
    """Central differences of the objective as it is defined."""
    X = make_rows()
    constraints, prior = {
        "signs": (SignedRows(signs_of(X), weights_of(X)), LaplaceMargin(0.5, 0.7)),
        "targets": (TargetSides(targets_of(X), weights_of(X)), TubeMargin(2.0, 1.0, 0.2)),
        "labels": (Rivals(labels_of(X), 3, weights_of(X)), ExponentialMargin(2.0, 1.0)),
    }[kind]
    found = newton(X, constraints, prior, bias_variance, tol=1e-13)
    table = np.hstack([found.coef, found.bias[:, None]])
    step = 1e-4
    for index in np.ndindex(table.shape):
        if index[1] == X.shape[1] and bias_variance == 0.0:
            continue
        moved = np.zeros_like(table)
        moved[index] = step
        up, down = (
            primal(X, constraints, prior, bias_variance, t[:, :-1], t[:, -1])
            for t in (table + moved, table - moved)
        )
        assert up >= found.value * (1 - 1e-13)
        assert down >= found.value * (1 - 1e-13)
        assert (up - down) / (2 * step) == pytest.approx(0.0, abs=1e-4)


def check(X, constraints, prior, bias_variance, solution, tol):
    """What holds for every solution."""
    own = np.asarray(constraints.weights)
    assert solution.converged
    assert not solution.interrupted
    value = primal(X, constraints, prior, bias_variance, solution.coef, solution.bias)
    assert solution.value == pytest.approx(value, rel=1e-10)
    assert solution.multipliers.min() >= 0.0
    assert np.all(solution.multipliers <= prior.upper * own)
    if bias_variance == 0.0:
        assert not solution.bias.any()
    if bias_variance == np.inf:
        totals = constraints.signed(solution.multipliers).sum(axis=1)
        assert np.abs(totals).max() <= 1e-12 * max(solution.multipliers.sum(), 1.0)
    lower = dual(X, constraints, prior, bias_variance, solution.multipliers)
    assert solution.gap == pytest.approx(value - lower, abs=1e-9 * value)
    assert 0.0 <= solution.gap <= tol * value


CASES = [
    *((SignedRows, signs_of, name, prior) for name, prior in PRIORS.items()),
    *((TargetSides, targets_of, name, prior) for name, prior in TUBES.items()),
]


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "labels", "name", "prior"), CASES)
def test_minimum_of_one_output(kind, labels, name, prior, weighted, bias_variance):
    X = make_rows()
    own = (weights_of(X),) if weighted else ()
    constraints = kind(labels(X), *own)
    solution = newton(X, constraints, prior, bias_variance, tol=1e-9)
    check(X, constraints, prior, bias_variance, solution, 1e-9)
    expected = minimum(X, constraints, prior, bias_variance)
    assert solution.value <= expected * (1 + 1e-9)
    assert solution.value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("name", list(PRIORS))
def test_minimum_of_three_outputs(name, bias_variance):
    X, prior = make_rows(), PRIORS[name]
    constraints = Rivals(labels_of(X), 3, weights_of(X))
    solution = newton(X, constraints, prior, bias_variance, tol=1e-9)
    check(X, constraints, prior, bias_variance, solution, 1e-9)
    expected = minimum(X, constraints, prior, bias_variance)
    assert solution.value <= expected * (1 + 1e-9)
    assert solution.value == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("tol", [1e-4, 1e-8])
@pytest.mark.parametrize("name", list(HINGES))
def test_hinge_has_a_gap_of_its_own(name, tol, bias_variance):
    X, prior = make_rows(), HINGES[name]
    for constraints in (
        SignedRows(signs_of(X), weights_of(X)),
        Rivals(labels_of(X), 3),
    ):
        solution = newton(X, constraints, prior, bias_variance, tol=tol)
        check(X, constraints, prior, bias_variance, solution, tol)


def test_tasks_are_solved_together_as_alone():
    X = make_rows(80)
    signs, tasks = signs_of(X), np.arange(80) % 2
    prior = ExponentialMargin(1.0, 0.5)
    both = newton(X, TaskRows(signs, tasks, 2), prior, np.inf, tol=1e-12)
    for task in range(2):
        here = tasks == task
        alone = newton(X[here], SignedRows(signs[here]), prior, np.inf, tol=1e-12)
        np.testing.assert_allclose(both.coef[task], alone.coef[0], atol=1e-6)
        np.testing.assert_allclose(both.bias[task], alone.bias[0], atol=1e-6)


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("smoothness", [1.0, 0.0])
def test_a_weight_of_two_is_two_rows(smoothness, bias_variance):
    X = make_rows()
    counts = np.random.default_rng(5).integers(1, 4, size=len(X))
    twice = np.repeat(np.arange(len(X)), counts)
    prior = ExponentialMargin(1.0, smoothness)
    for signs, kind in ((signs_of(X), SignedRows), (labels_of(X), None)):
        make = kind or (lambda labels, own=None: Rivals(labels, 3, own))
        weighted = newton(X, make(signs, counts * 1.0), prior, bias_variance, tol=1e-10)
        repeated = newton(X[twice], make(signs[twice]), prior, bias_variance, tol=1e-10)
        assert weighted.value == pytest.approx(repeated.value, rel=1e-9)
        np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-4)


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("smoothness", [1.0, 0.0])
def test_sparse_rows_are_dense_rows(smoothness, bias_variance):
    X = make_rows(100, 8)
    X[np.abs(X) < 0.8] = 0.0
    prior = LaplaceMargin(1.0, smoothness)
    for constraints in (SignedRows(signs_of(X)), Rivals(labels_of(X), 3)):
        dense = newton(X, constraints, prior, bias_variance, tol=1e-10)
        sparse_ = newton(
            sparse.csr_array(X), constraints, prior, bias_variance, tol=1e-10
        )
        assert sparse_.value == pytest.approx(dense.value, rel=1e-9)
        np.testing.assert_allclose(sparse_.coef, dense.coef, atol=1e-4)


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_all_systems_have_the_same_solution(bias_variance, as_sparse, monkeypatch):
    dense = make_rows(30, 50)
    X = sparse.csr_array(dense) if as_sparse else dense
    rng = np.random.default_rng(3)
    curvature = np.where(rng.random(30) < 0.7, rng.uniform(0.1, 5.0, size=30), 0.0)
    gradient = rng.normal(size=(1, 51))
    gradient[:, -1] *= bias_variance > 0.0
    systems = LinearSystems(X, SignedRows(signs_of(dense)), bias_variance)
    by_rows = systems._by_rows(curvature, np.flatnonzero(curvature), gradient)
    by_columns = systems._by_columns(curvature, gradient)
    by_products = systems._by_products(curvature, gradient, 1e-12)
    np.testing.assert_allclose(by_rows, by_columns, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(by_products, by_columns, rtol=1e-6, atol=1e-8)
    bordered = np.column_stack([dense, np.ones(30)])
    precision = np.ones(51)
    precision[-1] = {0.0: 1.0, np.inf: 0.0}.get(bias_variance, 1 / 2.0)
    if bias_variance == 0.0:
        bordered[:, -1] = 0.0
    hessian = bordered.T @ (curvature[:, None] * bordered) + np.diag(precision)
    expected = np.linalg.solve(hessian, gradient[0])[None]
    np.testing.assert_allclose(by_columns, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bias_variance", BIASES)
def test_joint_systems_are_those_of_products(bias_variance):
    X = make_rows(40, 5)
    rng = np.random.default_rng(3)
    constraints = Rivals(labels_of(X), 3)
    systems = LinearSystems(X, constraints, bias_variance)
    curvature = rng.uniform(0.1, 5.0, size=constraints.n_constraints)
    gradient = rng.normal(size=(3, 6))
    # The sum of the biases has no say in the margins, and no gradient if they are flat.
    gradient[:, -1] -= gradient[:, -1].mean()
    gradient[:, -1] *= bias_variance > 0.0
    by_columns = systems._by_columns(curvature, gradient)
    by_products = systems._by_products(curvature, gradient, 1e-13)
    by_columns[:, -1] -= by_columns[:, -1].mean()
    by_products[:, -1] -= by_products[:, -1].mean()
    np.testing.assert_allclose(by_products, by_columns, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("smoothness", [1.0, 0.0])
@pytest.mark.parametrize("shape", [(200, 10), (40, 120)])
def test_conjugate_gradients_lead_to_the_same_minimum(shape, smoothness, monkeypatch):
    X = make_rows(*shape)
    prior = ExponentialMargin(1.0, smoothness)
    for constraints in (SignedRows(signs_of(X)), Rivals(labels_of(X), 3)):
        expected = newton(X, constraints, prior, np.inf, tol=1e-7)
        with monkeypatch.context() as changed:
            for name in ("_MOST_DENSE", "_MOST_JOINT"):
                changed.setattr(linear_systems, name, 0)
            found = newton(X, constraints, prior, np.inf, tol=1e-7)
        check(X, constraints, prior, np.inf, found, 1e-7)
        assert found.value == pytest.approx(expected.value, rel=2e-7)


def test_columns_of_zeros_change_nothing():
    """More columns than rows, or fewer: the same problem by other systems."""
    X = make_rows(50, 6)
    wide = np.hstack([X, np.zeros((50, 100))])
    constraints = SignedRows(signs_of(X))
    for prior in (*PRIORS.values(), *HINGES.values()):
        narrow = newton(X, constraints, prior, np.inf, tol=1e-9)
        found = newton(wide, constraints, prior, np.inf, tol=1e-9)
        np.testing.assert_allclose(found.coef[:, :6], narrow.coef, atol=2e-3)
        assert found.value == pytest.approx(narrow.value, rel=1e-8)
        assert not found.coef[:, 6:].any()


# Support vector machines ------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_without_smoothness_it_is_the_support_vector_machine(C):
    X = make_rows(1000, 6)
    signs = signs_of(X)
    # Signs of rows next to the boundary ask for more than the objective does.
    solution = newton(X, SignedRows(signs), ExponentialMargin(C, 0.0), np.inf, tol=1e-6)
    machine = SVC(kernel="linear", C=C, tol=1e-8).fit(X, signs)
    prior = ExponentialMargin(C, 0.0)
    theirs = primal(
        X, SignedRows(signs), prior, np.inf, machine.coef_, machine.intercept_
    )
    assert abs(solution.value - theirs) <= 2e-5 * theirs
    ours = outputs_of(X, solution.coef)[0] + solution.bias[0]
    same = np.sign(ours) == np.sign(machine.decision_function(X))
    assert same.mean() >= 0.999


def test_normal_bias_is_that_of_liblinear():
    X = make_rows(400, 5)
    signs = signs_of(X)
    solution = newton(X, SignedRows(signs), ExponentialMargin(1.0, 0.0), 1.0, tol=1e-8)
    machine = LinearSVC(loss="hinge", tol=1e-10, max_iter=10**6, random_state=0)
    machine.fit(X, signs)
    np.testing.assert_allclose(solution.coef, machine.coef_, atol=1e-3)
    np.testing.assert_allclose(solution.bias, machine.intercept_, atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_without_smoothness_it_is_support_vector_regression(C):
    X = make_rows(400, 5)
    targets = targets_of(X)
    prior = TubeMargin(C, 0.0, 0.1)
    solution = newton(X, TargetSides(targets), prior, np.inf, tol=1e-6)
    machine = SVR(kernel="linear", C=C, epsilon=0.1, tol=1e-8).fit(X, targets)
    ours = outputs_of(X, solution.coef)[0] + solution.bias[0]
    assert np.abs(ours - machine.predict(X)).max() <= 3e-3


@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
def test_rounded_hinge(centre):
    C, corner, width = 2.0, 1.0, 0.5
    hinge = RoundedHinge(C, corner, width, centre)
    margins = np.linspace(-1.0, 3.1, 37)  # none at an end of the parabola
    step = 1e-6
    terms = hinge.loss(margins)
    up, down = hinge.loss(margins + step), hinge.loss(margins - step)
    slopes = (up.value - down.value) / (2 * step)
    np.testing.assert_allclose(terms.multipliers, -slopes, atol=1e-7)
    bends = (down.multipliers - up.multipliers) / (2 * step)
    np.testing.assert_allclose(terms.curvature, bends, atol=1e-7)
    grid = np.linspace(0.0, C, 2001)
    paid = 0.5 * width / C * (grid - C * centre) ** 2
    best = np.max(grid * (corner - margins[:, None]) - paid, axis=1)
    np.testing.assert_allclose(terms.value, best, atol=1e-6)


# Odd tables ---------------------------------------------------------------------------

ALL = {**PRIORS, **HINGES}


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize(
    "change",
    [
        lambda X: np.hstack([X, np.ones((len(X), 1))]),
        lambda X: np.hstack([X, X, X]),
        lambda X: np.zeros((len(X), 2)),
        lambda X: np.vstack([X[:3]] * 20),
    ],
    ids=["constant column", "equal columns", "zeros", "equal rows"],
)
def test_degenerate_tables(change, name, bias_variance):
    signs, X = signs_of(make_rows()), change(make_rows())
    solution = newton(X, SignedRows(signs), ALL[name], bias_variance, tol=1e-6)
    check(X, SignedRows(signs), ALL[name], bias_variance, solution, 1e-6)


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("name", list(ALL))
def test_a_single_row(name, bias_variance):
    X = np.array([[0.5, -1.0]])
    constraints = SignedRows(np.array([1.0]))
    solution = newton(X, constraints, ALL[name], bias_variance)
    if bias_variance == np.inf:
        # The bias alone gives it all the margin it needs.
        assert solution.value <= 1e-12
        assert not solution.multipliers.any()
    else:
        check(X, constraints, ALL[name], bias_variance, solution, 1e-4)


@pytest.mark.parametrize("name", list(ALL))
def test_rows_beyond_the_margin_have_no_multipliers(name):
    rng = np.random.default_rng(0)
    signs = np.repeat([1.0, -1.0], 20)
    X = rng.normal(size=(40, 2)) * 0.1
    X[:, 0] += 100.0 * signs
    X[[0, 20], 0] = [10.0, -10.0]
    solution = newton(X, SignedRows(signs), ALL[name], np.inf)
    assert np.flatnonzero(solution.multipliers).tolist() == [0, 20]


@pytest.mark.parametrize("name", list(ALL))
def test_without_a_margin_to_reach_nothing_is_learned(name):
    X = make_rows()
    solution = newton(X, SignedRows(signs_of(X)), replace(ALL[name], mean=0.0), 1.0)
    assert solution.converged
    assert solution.value <= 1e-12
    assert solution.gap <= 1e-12


@pytest.mark.parametrize("bias_variance", BIASES)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("name", list(ALL))
def test_columns_of_any_scale(name, scale, bias_variance):
    X = make_rows() * scale
    X[:, 0] += 3.0 * scale
    constraints = SignedRows(signs_of(make_rows()))
    solution = newton(X, constraints, ALL[name], bias_variance, tol=1e-5)
    check(X, constraints, ALL[name], bias_variance, solution, 1e-5)


@pytest.mark.parametrize("name", [*TUBES, "hinge"])
def test_targets_far_from_zero(name):
    X = make_rows()
    prior = TUBES.get(name, TubeMargin(1.0, 0.0, 0.1))
    near = newton(X, TargetSides(targets_of(X)), prior, np.inf, tol=1e-8)
    far = newton(X, TargetSides(targets_of(X) + 1e5), prior, np.inf, tol=1e-8)
    np.testing.assert_allclose(far.coef, near.coef, atol=1e-3)
    np.testing.assert_allclose(far.bias, near.bias + 1e5, atol=1e-3)


# Course ---------------------------------------------------------------------------------


def test_a_start_at_the_solution_saves_steps():
    X = make_rows(300, 5)
    constraints = SignedRows(signs_of(X))
    for prior in ALL.values():
        first = newton(X, constraints, prior, np.inf)
        again = newton(X, constraints, prior, np.inf, start=first)
        assert again.converged
        assert again.n_iter <= first.n_iter
        assert again.value == pytest.approx(first.value, rel=2e-4)


def test_too_few_iterations_still_have_a_true_gap():
    X = make_rows(300, 5)
    prior, constraints = ExponentialMargin(1.0, 0.0), SignedRows(signs_of(X))
    best = newton(X, constraints, prior, np.inf, tol=1e-10).value
    for max_iter in (1, 2, 4):
        solution = newton(X, constraints, prior, np.inf, max_iter=max_iter)
        assert solution.n_iter == max_iter
        assert not solution.converged
        assert solution.value - solution.gap <= best * (1 + 1e-9)


def test_an_interrupt_keeps_what_there_is():
    class Interrupted(SignedRows):
        calls = 0

        def signed(self, multipliers):
            self.calls += 1
            if self.calls == 25:
                raise KeyboardInterrupt
            return super().signed(multipliers)

    X = make_rows(300, 5)
    prior, constraints = ExponentialMargin(1.0, 0.0), Interrupted(signs_of(X))
    solution = newton(X, constraints, prior, np.inf)
    assert solution.interrupted
    assert not solution.converged
    assert solution.n_iter > 0
    value = primal(X, constraints, prior, np.inf, solution.coef, solution.bias)
    assert solution.value == pytest.approx(value)
    assert solution.gap >= 0.0
