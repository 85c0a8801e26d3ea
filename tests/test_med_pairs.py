"""Kernel machines: kernels, pair updates and axis-parallel updates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from hybridmix.med.constraints import Constraints, Rivals, SignedRows, TargetSides
from hybridmix.med.dual import Dual
from hybridmix.med.gram import GivenMatrix, Gram
from hybridmix.med.kernels import (
    CallableKernel,
    Kernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
    kernel_outputs,
)
from hybridmix.med.margins import (
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
    MarginPrior,
    TubeMargin,
)
from hybridmix.med.models.linear import KernelModel
from hybridmix.med.solvers import pairs
from hybridmix.med.solvers.axes import maximise_by_axes
from hybridmix.med.solvers.pairs import maximise_by_pairs
from hybridmix.med.solvers.single_output import KernelSolution
from hybridmix.med.solvers.slopes import slope_of
from hybridmix.med.solvers.steps import Variable, axis_step
from hybridmix.progress import Step, listening

KERNELS: list[Kernel] = [
    LinearKernel(),
    PolynomialKernel(3, 0.5, 1.0),
    RBFKernel(0.3),
    CallableKernel(lambda A, B: 1.0 + A @ B.T),
]
CLASSIFYING: list[MarginPrior] = [
    prior
    for C in (0.5, 5.0)
    for prior in (
        ExponentialMargin(C, 0.0, 1.0),
        ExponentialMargin(C, 0.01, 1.0),
        ExponentialMargin(C, 1.0, 0.7),
        LaplaceMargin(C, 0.1, 1.0),
        LaplaceMargin(C, 1.0, 1.0),
        GaussianMargin(C, 1.0, 1.0),
    )
]
REGRESSING: list[MarginPrior] = [
    TubeMargin(2.0, 0.0, 0.1),
    TubeMargin(2.0, 0.1, 0.1),
    TubeMargin(2.0, 1.0, 0.3),
    TubeMargin(2.0, 1.0, 0.0),
    ExponentialMargin(2.0, 0.5, -0.1),
    GaussianMargin(2.0, 0.5, -0.1),
]


def table(n: int, p: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and a noisy smooth function of them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, p))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * generator.normal(size=n)


def labelled(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, targets = table(n, seed=seed)
    return X, np.where(targets > 0.0, 1.0, -1.0)


def asked_of(prior: MarginPrior, n: int) -> tuple[np.ndarray, Constraints]:
    """Return rows, and the constraints that a prior is meant for."""
    X, targets = table(n)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, n)
    if prior in REGRESSING:
        return X, TargetSides(targets, weights)
    return X, SignedRows(np.where(targets > 0.0, 1.0, -1.0), weights)


def dense_optimum(dual: Dual, flat: bool) -> float:
    """Maximise the dual by a general method; the bias is flat or the dual's own."""
    upper = np.minimum(dual.upper, 1e3)
    balance = dual.balance[0]

    def objective(multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        point = dual.at(multipliers)
        return -point.value, -point.gradient

    constraint = {"type": "eq", "fun": lambda x: balance @ x, "jac": lambda x: balance}
    found = minimize(
        objective,
        np.zeros(len(upper)),
        jac=True,
        bounds=[(0.0, bound * (1.0 - 1e-9)) for bound in upper],
        constraints=[constraint] if flat else [],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return -float(found.fun)


def as_dual(values: np.ndarray, asked: Constraints, prior: MarginPrior, v: float) -> Dual:
    return Dual(KernelModel(values), asked, prior, v, np.zeros(1))


# Kernels --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_matrix_of_a_kernel_is_the_same_whatever_is_kept(kernel: Kernel) -> None:
    X, _ = table(150)
    whole = kernel.between(X, X)
    weights = np.random.default_rng(0).normal(size=(150, 2))
    weights[::3] = 0.0
    for cache_size in (1e-4, 0.02, 10.0):
        gram = Gram(kernel, X, cache_size)
        assert gram.shape == (150, 150)
        for _ in range(3):
            some = np.random.default_rng(1).permutation(150)[:40]
            tolerance = {"rtol": 1e-5, "atol": 1e-4 * np.abs(whole).max()}
            np.testing.assert_allclose(gram.rows(some), whole[some], **tolerance)
            block = gram.block(some)
            rows = [block.row(i) for i in (3, *range(40))][1:]
            np.testing.assert_allclose(rows, whole[np.ix_(some, some)], **tolerance)
            np.testing.assert_allclose(
                gram.combined(some, weights[some, 0]),
                weights[some, 0] @ whole[some],
                **tolerance,
            )
            np.testing.assert_allclose(gram @ weights, whole @ weights, **tolerance)
        np.testing.assert_allclose(gram.row(7), whole[7], **tolerance)
        np.testing.assert_allclose(gram.diagonal, whole.diagonal(), **tolerance)


def test_kernels_are_those_of_scikit_learn() -> None:
    X, _ = table(40)
    np.testing.assert_allclose(
        RBFKernel(0.3).between(X[:9], X), rbf_kernel(X[:9], X, gamma=0.3), atol=1e-6
    )
    np.testing.assert_allclose(
        PolynomialKernel(2, 0.5, 2.0).between(X[:9], X),
        polynomial_kernel(X[:9], X, degree=2, gamma=0.5, coef0=2.0),
    )


@pytest.mark.parametrize(("shift", "spread"), [(1e6, 1.0), (0.0, 100.0)])
def test_distances_survive_single_precision(shift: float, spread: float) -> None:
    X, _ = table(60)
    X = spread * X + shift
    gamma = 0.5 / spread
    exact = np.exp(-gamma * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    np.testing.assert_allclose(RBFKernel(gamma).between(X, X), exact, atol=1e-5)


def test_kept_rows_stay_within_their_bound() -> None:
    X, _ = table(500)
    gram = Gram(RBFKernel(1.0), X, cache_size=0.1)
    gram.rows(np.arange(500))
    assert gram._kept.nbytes <= 0.1 * 2**20


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_outputs_of_new_rows(kernel: Kernel) -> None:
    X, _ = table(200)
    weights = np.random.default_rng(0).normal(size=(2, 50))
    expected = (kernel.between(X, X[:50]).astype(float) @ weights.T).T
    found = kernel_outputs(kernel, X, X[:50], weights)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    nothing = kernel_outputs(kernel, X, X[:0], np.zeros((2, 0)))
    np.testing.assert_array_equal(nothing, np.zeros((2, 200)))


def test_a_kernel_function_of_the_wrong_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\) for 3 rows and 3 others"):
        CallableKernel(lambda A, B: A[:, 0]).between(np.eye(3), np.eye(3))


@pytest.mark.parametrize(
    "kernel",
    [RBFKernel(-1.0), PolynomialKernel(0), PolynomialKernel(2, 1.0, -1.0)],
)
def test_senseless_kernels_are_refused(kernel: RBFKernel | PolynomialKernel) -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        kernel.check_consistent()


# Slopes ---------------------------------------------------------------------------


@pytest.mark.parametrize("prior", CLASSIFYING + REGRESSING, ids=str)
def test_slopes_in_plain_numbers(prior: MarginPrior) -> None:
    slope = slope_of(prior)
    multipliers = np.array([0.0, 1e-6, 1e-3, 0.1, 0.3, 0.49])
    terms = prior.dual(multipliers)
    if slope is None:
        assert not terms.curvature.any()
        return
    found = np.array([slope(multiplier) for multiplier in multipliers.tolist()])
    np.testing.assert_allclose(found[:, 0], terms.slope, rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], terms.curvature, rtol=1e-6)


def test_unknown_priors_are_named() -> None:
    class OtherMargin(MarginPrior):
        def dual(self, multipliers):
            raise NotImplementedError

        def loss(self, margins):
            raise NotImplementedError

    with pytest.raises(TypeError, match="OtherMargin"):
        slope_of(OtherMargin())


# Pairs ----------------------------------------------------------------------------


@pytest.mark.parametrize("prior", CLASSIFYING + REGRESSING, ids=str)
def test_pairs_reach_the_optimum(prior: MarginPrior) -> None:
    X, asked = asked_of(prior, 30)
    values = rbf_kernel(X, gamma=0.5)
    found = maximise_by_pairs(GivenMatrix(values), asked, prior, tol=1e-7)
    dual = as_dual(values, asked, prior, 0.0)
    assert found.converged
    assert abs(dual.balance[0] @ found.multipliers) < 1e-9
    assert np.all((found.multipliers >= 0.0) & (found.multipliers <= dual.upper))
    value = dual.at(found.multipliers).value
    assert found.value == pytest.approx(value, rel=1e-9)
    best = dense_optimum(dual, flat=True)
    assert value == pytest.approx(best, rel=2e-6)
    assert best <= found.value + found.gap + 1e-9 * abs(best)


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_limit_is_the_support_vector_machine(C: float) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, signs = StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)
    gamma = 1.0 / X.shape[1]
    prior = ExponentialMargin(C, 0.0, 1.0)
    kernel = RBFKernel(gamma)
    found = maximise_by_pairs(Gram(kernel, X), SignedRows(signs), prior, tol=2e-5)
    machine = SVC(C=C, gamma=gamma, tol=1e-8).fit(X, signs)
    theirs = np.zeros(len(X))
    theirs[machine.support_] = np.abs(machine.dual_coef_[0])
    values = rbf_kernel(X, gamma=gamma)
    dual = as_dual(values, SignedRows(signs), prior, 0.0)
    assert found.relative_gap < 2e-5
    assert found.value == pytest.approx(dual.at(theirs).value, rel=2e-5)
    outputs = values @ (signs * found.multipliers) + found.bias
    decisions = machine.decision_function(X)
    assert np.mean(np.sign(outputs) == np.sign(decisions)) >= 0.999
    np.testing.assert_allclose(outputs, decisions, atol=3e-3)


def test_limit_is_support_vector_regression() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    prior = TubeMargin(1.0, 0.0, 0.1)
    gram = Gram(RBFKernel(0.1), X)
    found = maximise_by_pairs(gram, TargetSides(y), prior, tol=1e-4)
    above, below = found.multipliers.reshape(2, -1)
    assert not np.any((above > 0.0) & (below > 0.0))
    outputs = rbf_kernel(X, gamma=0.1) @ (above - below) + found.bias
    theirs = SVR(C=1.0, gamma=0.1, epsilon=0.1, tol=1e-8).fit(X, y).predict(X)
    assert np.abs(outputs - theirs).max() < 3e-3


@pytest.mark.parametrize("n", [1, 2, 20])
def test_few_targets(n: int) -> None:
    X, y = table(n)
    gram = Gram(RBFKernel(0.5), X)
    found = maximise_by_pairs(gram, TargetSides(y), TubeMargin(1.0, 0.0, 0.1), tol=1e-6)
    assert found.converged
    above, below = found.multipliers.reshape(2, -1)
    outputs = rbf_kernel(X, gamma=0.5) @ (above - below) + found.bias
    theirs = SVR(C=1.0, gamma=0.5, epsilon=0.1, tol=1e-8).fit(X, y).predict(X)
    if n > 2:  # otherwise many biases are equally good
        np.testing.assert_allclose(outputs, theirs, atol=1e-3)


@pytest.mark.parametrize("smoothness", [0.0, 1.0])
def test_a_weight_of_two_is_two_rows(smoothness: float) -> None:
    X, signs = labelled(60)
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    prior = ExponentialMargin(1.0, smoothness, 1.0)
    kernel = RBFKernel(0.5)
    weighted = maximise_by_pairs(
        Gram(kernel, X), SignedRows(signs, weights), prior, tol=1e-6
    )
    twice = np.concatenate([np.arange(60), np.arange(20)])
    repeated = maximise_by_pairs(
        Gram(kernel, X[twice]), SignedRows(signs[twice]), prior, tol=1e-6
    )
    assert weighted.value == pytest.approx(repeated.value, rel=1e-6)
    assert weighted.bias == pytest.approx(repeated.bias, abs=1e-3)
    together = np.bincount(twice, repeated.multipliers)
    np.testing.assert_allclose(
        rbf_kernel(X, gamma=0.5) @ (signs * together),
        rbf_kernel(X, gamma=0.5) @ (signs * weighted.multipliers),
        atol=1e-3,
    )


@pytest.mark.parametrize("smoothness", [0.0, 0.5])
def test_small_blocks_and_caches_lead_to_the_same_end(
    smoothness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, signs = labelled(400)
    prior = ExponentialMargin(2.0, smoothness, 1.0)
    kernel = RBFKernel(0.5)
    whole = maximise_by_pairs(Gram(kernel, X), SignedRows(signs), prior, tol=1e-5)
    monkeypatch.setattr(pairs, "_SMALLEST", 40)
    monkeypatch.setattr(pairs, "_LARGEST", 40)
    parts = maximise_by_pairs(Gram(kernel, X, 0.02), SignedRows(signs), prior, tol=1e-5)
    assert whole.converged
    assert parts.converged
    assert parts.value == pytest.approx(whole.value, rel=1e-5)
    assert parts.bias == pytest.approx(whole.bias, abs=1e-3)


def test_a_given_matrix_is_like_its_kernel() -> None:
    X, signs = labelled(200)
    prior = LaplaceMargin(1.0, 0.5, 1.0)
    given = GivenMatrix(rbf_kernel(X, gamma=0.5))
    a = maximise_by_pairs(given, SignedRows(signs), prior, tol=1e-6)
    b = maximise_by_pairs(Gram(RBFKernel(0.5), X), SignedRows(signs), prior, tol=1e-6)
    np.testing.assert_allclose(a.multipliers, b.multipliers, atol=1e-4)
    assert a.bias == pytest.approx(b.bias, abs=1e-4)


def test_a_warm_start_saves_steps() -> None:
    X, signs = labelled(300)
    gram, asked = Gram(RBFKernel(0.5), X), SignedRows(signs)
    first = maximise_by_pairs(gram, asked, ExponentialMargin(1.0, 0.1, 1.0))
    nearby = ExponentialMargin(1.05, 0.1, 1.0)
    cold = maximise_by_pairs(gram, asked, nearby)
    warm = maximise_by_pairs(gram, asked, nearby, start=first.multipliers)
    assert warm.converged
    assert warm.n_iter < cold.n_iter
    assert warm.value == pytest.approx(cold.value, rel=1e-3)
    infeasible = np.full(300, 7.0)
    other = maximise_by_pairs(gram, asked, nearby, start=infeasible)
    assert other.converged
    assert other.value == pytest.approx(cold.value, rel=1e-3)


@pytest.mark.parametrize("smoothness", [0.0, 1.0])
def test_degenerate_tables(smoothness: float) -> None:
    prior = ExponentialMargin(1.0, smoothness, 1.0)
    X, signs = labelled(40)
    tables = {
        "opposite twins": (np.vstack([X, X]), np.concatenate([signs, -signs])),
        "one against many": (X, np.where(np.arange(40) == 3, 1.0, -1.0)),
        "equal rows": (np.ones((20, 2)), np.where(np.arange(20) < 7, 1.0, -1.0)),
        "one class": (X, np.ones(40)),
        "one row": (X[:1], np.ones(1)),
    }
    for name, (rows, labels) in tables.items():
        found = maximise_by_pairs(Gram(RBFKernel(0.5), rows), SignedRows(labels), prior)
        assert found.converged, name
        assert np.isfinite(found.bias), name
        assert abs(labels @ found.multipliers) < 1e-9, name


def test_of_equal_rows_the_larger_class_wins() -> None:
    signs = np.where(np.arange(20) < 7, 1.0, -1.0)
    gram = Gram(RBFKernel(1.0), np.ones((20, 2)))
    found = maximise_by_pairs(gram, SignedRows(signs), ExponentialMargin(1.0, 0.0, 1.0))
    assert found.bias == pytest.approx(-1.0)


def test_problems_of_several_outputs_are_refused() -> None:
    gram = GivenMatrix(np.eye(3))
    with pytest.raises(ValueError, match="this one has 3"):
        maximise_by_pairs(gram, Rivals(np.arange(3), 3), ExponentialMargin())


def test_iterations_are_bounded() -> None:
    X, signs = labelled(200)
    gram = Gram(RBFKernel(0.5), X)
    found = maximise_by_pairs(gram, SignedRows(signs), ExponentialMargin(), max_iter=50)
    assert found.n_iter == 50
    assert not found.converged
    assert found.gap > 0.0


def test_more_than_the_precision_of_the_kernel_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, signs = labelled(300)
    monkeypatch.setattr(pairs, "_PATIENCE", 30)
    gram, prior = Gram(RBFKernel(0.5), X), ExponentialMargin(10.0, 0.0, 1.0)
    found = maximise_by_pairs(gram, SignedRows(signs), prior, tol=1e-13)
    assert not found.converged
    assert found.relative_gap < 1e-6


@pytest.mark.parametrize("solver", ["pairs", "axes"])
def test_an_interrupt_keeps_the_best_so_far(solver: str) -> None:
    X, signs = labelled(600)
    heard: list[Step] = []

    def stop(step: Step) -> None:
        heard.append(step)
        if len(heard) == 2:
            raise KeyboardInterrupt

    gram, asked, prior = Gram(RBFKernel(0.5), X), SignedRows(signs), ExponentialMargin()
    with listening(stop):
        if solver == "pairs":
            found = maximise_by_pairs(gram, asked, prior, tol=1e-7)
        else:
            found = maximise_by_axes(gram, asked, prior, bias_variance=1.0, tol=1e-7)
    assert found.interrupted
    assert not found.converged
    assert found.value > 0.0
    variance = 0.0 if solver == "pairs" else 1.0
    dual = as_dual(rbf_kernel(X, gamma=0.5), asked, prior, variance)
    assert found.value == pytest.approx(dual.at(found.multipliers).value, rel=1e-5)


# Axes -----------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["greedy", "random", "learned"])
@pytest.mark.parametrize("prior", CLASSIFYING[:6] + REGRESSING, ids=str)
def test_axes_reach_the_optimum(choice: str, prior: MarginPrior) -> None:
    X, asked = asked_of(prior, 30)
    values = rbf_kernel(X, gamma=0.5)
    found = maximise_by_axes(
        GivenMatrix(values),
        asked,
        prior,
        bias_variance=2.0,
        choice=choice,
        tol=1e-6,
    )
    dual = as_dual(values, asked, prior, 2.0)
    point = dual.at(found.multipliers)
    assert found.converged
    assert found.value == pytest.approx(point.value, rel=1e-9)
    assert found.gap == pytest.approx(point.gap, abs=1e-9)
    assert found.bias == pytest.approx(point.bias[0])
    assert point.value == pytest.approx(dense_optimum(dual, flat=False), rel=2e-6)


def test_a_wide_bias_is_flat() -> None:
    X, signs = labelled(40)
    gram, asked = Gram(RBFKernel(0.5), X), SignedRows(signs)
    prior = ExponentialMargin(1.0, 0.5, 1.0)
    wide = maximise_by_axes(gram, asked, prior, bias_variance=100.0, tol=1e-5)
    flat = maximise_by_pairs(gram, asked, prior, tol=1e-5)
    assert wide.value == pytest.approx(flat.value, rel=1e-3)
    assert wide.bias == pytest.approx(flat.bias, abs=0.02)


def test_a_step_along_an_axis_solves_a_quadratic() -> None:
    C, tau, mean, diagonal = 3.0, 1.0, 1.0, 1.5
    prior = ExponentialMargin(C, tau, mean)
    slope = slope_of(prior)
    assert slope is not None
    for margin in (-2.0, 0.0, 0.5, 2.0):
        for start in (0.0, 0.4, 2.9):
            derivative = slope(start)[0] - margin - diagonal * start
            variable = Variable(start, C, 1.0, 1.0)
            variable.move(axis_step(variable, derivative, diagonal, slope, 1e-12), True)
            linear = diagonal * C + mean + tau / C - margin
            root = np.roots([diagonal, -linear, C * (mean - margin)]).min()
            assert variable.lam == pytest.approx(max(root, 0.0), abs=1e-9)


def test_learned_axes_are_reproducible() -> None:
    X, signs = labelled(60)
    gram, asked = Gram(RBFKernel(0.5), X), SignedRows(signs)

    def fit(seed: int) -> KernelSolution:
        return maximise_by_axes(
            gram,
            asked,
            ExponentialMargin(),
            bias_variance=1.0,
            choice="learned",
            random_state=seed,
        )

    a, b, c = fit(1), fit(1), fit(2)
    np.testing.assert_array_equal(a.multipliers, b.multipliers)
    assert a.value == pytest.approx(c.value, rel=1e-3)
