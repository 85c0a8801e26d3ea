"""Maximum entropy discrimination: margin priors, constraints, the dual and its ascent."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.optimize import LinearConstraint, minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from hybridmix.exceptions import UnsupportedError
from hybridmix.med.constraints import Rivals, SignedRows, TargetSides, TaskRows
from hybridmix.med.dual import Dual
from hybridmix.med.margins import (
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
    TubeMargin,
)
from hybridmix.med.models.base import Tilted, TiltedModel
from hybridmix.med.models.linear import KernelModel, LinearModel
from hybridmix.med.models.switches import SwitchedColumns, SwitchedKernels
from hybridmix.med.solvers.ascent import maximised

PRIORS = [
    ExponentialMargin(2.0, 0.7, 1.3),
    ExponentialMargin(3.0, 1e-3, 1.0),
    ExponentialMargin(3.0, 0.0, 1.0),
    LaplaceMargin(2.0, 0.7, 1.3),
    LaplaceMargin(2.0, 0.0, 1.3),
    GaussianMargin(2.0, 0.7, 1.3),
    TubeMargin(2.0, 0.7, 0.3),
    TubeMargin(5.0, 1e-2, 0.3),
    TubeMargin(5.0, 1.0, 0.0),
    TubeMargin(5.0, 0.0, 0.3),
]


# Margin priors --------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_slopes_and_curvatures_of_dual_terms(prior):
    multipliers = np.linspace(1e-3, 0.98, 50) * min(prior.upper, 4.0)
    step = 1e-6 * multipliers
    here, after, before = map(
        prior.dual, (multipliers, multipliers + step, multipliers - step)
    )
    slope = (after.value - before.value) / (2 * step)
    np.testing.assert_allclose(here.slope, slope, rtol=1e-6, atol=1e-7)
    curvature = (before.slope - after.slope) / (2 * step)
    np.testing.assert_allclose(here.curvature, curvature, rtol=2e-4, atol=1e-7)
    assert np.all(here.curvature >= 0.0)
    assert prior.dual(np.zeros(1)).value[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_losses_are_conjugate(prior):
    margins = np.linspace(prior.least - 8.0, prior.least + 1.0, 401)[:-1]
    found, step = prior.loss(margins), 1e-5
    after, before = prior.loss(margins + step), prior.loss(margins - step)
    away = np.abs(margins - prior.least) > 2 * step
    slope = (before.value - after.value) / (2 * step)
    np.testing.assert_allclose(found.multipliers[away], slope[away], rtol=1e-5, atol=1e-6)
    curvature = (before.multipliers - after.multipliers) / (2 * step)
    np.testing.assert_allclose(
        found.curvature[away], curvature[away], rtol=1e-4, atol=1e-5
    )
    assert np.all(found.value >= 0.0)
    # Young's inequality, with equality at the multipliers of the loss.
    other = np.linspace(0.0, 0.99, 60)[:, None] * min(prior.upper, 50.0)
    bound = prior.dual(other).value - other * margins
    assert np.all(bound <= found.value + 1e-10)
    reached = prior.dual(found.multipliers).value - found.multipliers * margins
    np.testing.assert_allclose(reached, found.value, atol=1e-9)


@pytest.mark.parametrize(
    ("prior", "density", "ends"),
    [
        (
            ExponentialMargin(3.0, 1.0, 1.0),
            lambda g: np.exp(-3 * (4 / 3 - g)),
            (-12, 4 / 3),
        ),
        (LaplaceMargin(3.0, 1.0, 1.0), lambda g: np.exp(-3 * abs(1 - g)), (-11, 13)),
        (
            GaussianMargin(3.0, 1.0, 1.0),
            lambda g: np.exp(-9 * (1 - g) ** 2 / 2),
            (-11, 13),
        ),
        (
            TubeMargin(3.0, 1.0, 0.5),
            lambda g: min(1.0, np.exp(3 * (0.5 - g))),
            (0, 14),
        ),
    ],
    ids=lambda case: type(case).__name__,
)
def test_dual_terms_are_integrals_of_the_prior(prior, density, ends):
    multiplier = 1.2
    # The margin of a tube is allowed, and not demanded: it has the other sign.
    sign = 1.0 if isinstance(prior, TubeMargin) else -1.0
    points = [0.5, 1.0]
    whole = quad(density, *ends, points=points)[0]
    tilted = quad(
        lambda g: density(g) * np.exp(sign * multiplier * g), *ends, points=points
    )[0]
    found = prior.dual(np.array([multiplier])).value[0]
    assert found == pytest.approx(-np.log(tilted / whole), abs=1e-7)
    mean = quad(lambda g: g * density(g), *ends, points=points)[0] / whole
    assert prior.least == pytest.approx(-sign * mean, abs=1e-7)


def test_the_mean_margin_is_where_multipliers_vanish():
    for prior in PRIORS:
        at_mean = prior.loss(np.array([prior.least, prior.least + 1e-9]))
        np.testing.assert_array_equal(at_mean.multipliers, 0.0)
        if prior.smoothness:
            assert prior.dual(np.zeros(1)).slope[0] == pytest.approx(prior.least)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_losses_of_rows_very_far_away_are_finite(prior):
    margins = -np.geomspace(1.0, 1e20, 30)
    found = prior.loss(margins)
    assert all(np.isfinite(part).all() for part in found)
    if np.isfinite(prior.upper):
        np.testing.assert_allclose(found.value[-1], -prior.C * margins[-1], rtol=1e-6)


def test_small_smoothness_tends_to_the_hinge():
    margins = np.linspace(-3.0, 2.0, 50)
    for prior in PRIORS:
        if isinstance(prior, GaussianMargin):
            continue
        hinge = replace(prior, smoothness=0.0).loss(margins).value
        near = replace(prior, smoothness=1e-7).loss(margins).value
        np.testing.assert_allclose(near, hinge, atol=1e-5)


# Constraints ----------------------------------------------------------------------------


def constraints():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(7) < 0.5, 1.0, -1.0)
    labels = np.arange(7) % 3
    return [
        SignedRows(signs),
        TaskRows(signs, labels, 3),
        Rivals(labels, 3),
        TargetSides(rng.normal(size=7)),
    ]


@pytest.mark.parametrize("asked", constraints(), ids=lambda a: type(a).__name__)
def test_signed_weights_are_the_adjoint_of_margins(asked):
    rng = np.random.default_rng(1)
    outputs = rng.normal(size=(asked.n_outputs, asked.n_rows))
    multipliers = rng.random(asked.n_constraints)
    left = asked.margins(outputs) @ multipliers
    assert left == pytest.approx(np.sum(outputs * asked.signed(multipliers)))


def test_rivals_compare_the_label_with_every_other_class():
    outputs = np.array([[3.0, 1.0], [1.0, 5.0], [0.0, 2.0]])
    margins = Rivals(np.array([0, 1]), 3).margins(outputs).reshape(2, 2)
    np.testing.assert_array_equal(margins, [[2.0, 4.0], [3.0, 3.0]])


# Models ---------------------------------------------------------------------------------


def models(n_outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 4))
    kernels = [rbf_kernel(X, gamma=g) for g in (0.1, 1.0)]
    return [
        LinearModel(X, n_outputs),
        LinearModel(sparse.csr_array(X), n_outputs),
        KernelModel(kernels[0], n_outputs),
        SwitchedColumns(X, 0.2, n_outputs),
        SwitchedColumns(X, 0.2, n_outputs, shared=False),
        SwitchedKernels(kernels, 0.2, n_outputs),
    ]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("which", range(6))
def test_outputs_are_derivatives_of_the_log_partition(which, n_outputs):
    model = models(n_outputs)[which]
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(n_outputs, 7))
    found = model.tilted(weights)
    assert model.tilted(np.zeros_like(weights)).log_partition == 0.0
    step = 1e-5
    for c, n in [(0, 0), (n_outputs - 1, 3)]:
        change = np.zeros_like(weights)
        change[c, n] = step
        above, below = model.tilted(weights + change), model.tilted(weights - change)
        slope = (above.log_partition - below.log_partition) / (2 * step)
        assert found.outputs[c, n] == pytest.approx(slope, rel=1e-7, abs=1e-8)
        if model.factor_size is not None:
            factor = model.factor(found)
            assert len(factor) == model.factor_size
            second = (above.outputs - below.outputs) / (2 * step)
            own = np.tensordot(factor[:, c, n], factor, 1)
            np.testing.assert_allclose(own, second, rtol=1e-6, atol=1e-8)


def test_switches_are_integrated_out():
    rho, v = 1e-3, 2.2
    model = SwitchedColumns(np.eye(1), rho)
    found = model.tilted(np.array([[v]]))
    slab = quad(lambda t: np.exp(v * t - t * t / 2) / np.sqrt(2 * np.pi), -30, 30)[0]
    assert found.log_partition == pytest.approx(np.log(1 - rho + rho * slab))
    included = rho * slab / (1 - rho + rho * slab)
    assert found.posterior.inclusion[0] == pytest.approx(included)


def test_a_model_without_a_factor_says_so():
    model = models(1)[2]
    with pytest.raises(UnsupportedError, match="KernelModel does not offer"):
        model.factor(model.tilted(np.ones((1, 7))))


# The dual and its ascent ----------------------------------------------------------------


def problem(model, asked, prior, variance=1.0):
    return Dual(model, asked, prior, variance, np.zeros(asked.n_outputs))


def table(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signs = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, signs


CASES = [
    (lambda X, s: LinearModel(X), lambda X, s: SignedRows(s), PRIORS[0]),
    (lambda X, s: LinearModel(X), lambda X, s: SignedRows(s, 2.0), PRIORS[3]),
    (lambda X, s: SwitchedColumns(X, 0.1), lambda X, s: SignedRows(s), PRIORS[0]),
    (lambda X, s: SwitchedColumns(X, 0.1), lambda X, s: SignedRows(s), PRIORS[5]),
    (
        lambda X, s: LinearModel(X, 3),
        lambda X, s: Rivals(np.arange(len(X)) % 3, 3),
        PRIORS[0],
    ),
    (
        lambda X, s: SwitchedColumns(X, 0.1, 2),
        lambda X, s: TaskRows(s, np.arange(len(X)) % 2, 2),
        PRIORS[0],
    ),
    (
        lambda X, s: KernelModel(rbf_kernel(X)),
        lambda X, s: TargetSides(X[:, 0] ** 2),
        PRIORS[6],
    ),
    (
        lambda X, s: SwitchedKernels([rbf_kernel(X), X @ X.T], 0.2),
        lambda X, s: SignedRows(s),
        PRIORS[0],
    ),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_gradient_and_gap(case):
    X, signs = table()
    make, ask, prior = CASES[case]
    dual = problem(make(X, signs), ask(X, signs), prior, 0.5)
    rng = np.random.default_rng(3)
    multipliers = 0.9 * rng.random(len(dual.upper)) * np.minimum(dual.upper, 1.0)
    here, step = dual.at(multipliers), 1e-6
    for r in (0, 5, len(multipliers) - 1):
        change = step * np.eye(len(multipliers))[r]
        slope = (
            dual.at(multipliers + change).value - dual.at(multipliers - change).value
        ) / (2 * step)
        assert here.gradient[r] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    best = maximised(dual, tol=1e-8)
    assert best.converged
    assert best.point.value - here.value <= here.gap + 1e-9
    assert best.point.gap <= 1e-8 * max(1.0, best.point.value)


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("flat", [False, True])
def test_ascent_finds_the_maximum_that_scipy_finds(case, flat):
    X, signs = table(18)
    make, ask, prior = CASES[case]
    dual = problem(make(X, signs), ask(X, signs), prior, np.inf if flat else 1.0)
    found = maximised(dual, tol=1e-7)
    assert found.converged
    free = replace(dual, bias_variance=0.0) if flat else dual
    rows = dual.balance[: -1 if isinstance(dual.constraints, Rivals) else None]
    balanced = [LinearConstraint(rows, 0.0, 0.0)] if flat else []
    upper = np.minimum(dual.upper * (1 - 1e-6), 1e6)
    reference = minimize(
        lambda m: (-free.at(m).value, -free.at(m).gradient),
        np.full(len(upper), 1e-3),
        jac=True,
        method="SLSQP",
        bounds=list(zip(np.zeros_like(upper), upper, strict=True)),
        constraints=balanced,
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.point.value >= -reference.fun - 1e-5
    assert found.point.value == pytest.approx(-reference.fun, rel=1e-3, abs=1e-3)
    if flat:
        totals = dual.constraints.signed(found.point.multipliers).sum(axis=1)
        np.testing.assert_allclose(totals, 0.0, atol=1e-3)


def test_without_smoothness_it_is_the_support_vector_machine():
    X, signs = table(120)
    kernel = rbf_kernel(X, gamma=0.5)
    dual = problem(
        KernelModel(kernel), SignedRows(signs), ExponentialMargin(1.0, 0.0), np.inf
    )
    found = maximised(dual, tol=1e-6, max_iter=5000)
    machine = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(kernel, signs)
    outputs = found.point.tilted.outputs[0] + found.point.bias[0]
    np.testing.assert_allclose(outputs, machine.decision_function(kernel), atol=2e-3)


def test_a_weight_of_two_is_two_rows():
    X, signs = table(30)
    doubled = np.arange(30) < 10
    once = problem(
        LinearModel(X), SignedRows(signs, np.where(doubled, 2.0, 1.0)), PRIORS[0]
    )
    twice = problem(
        LinearModel(np.vstack([X, X[doubled]])),
        SignedRows(np.concatenate([signs, signs[doubled]])),
        PRIORS[0],
    )
    one, two = maximised(once, tol=1e-9), maximised(twice, tol=1e-9)
    assert one.point.value == pytest.approx(two.point.value, rel=1e-7)
    np.testing.assert_allclose(
        one.point.tilted.posterior, two.point.tilted.posterior, atol=1e-4
    )


def test_a_start_is_used():
    X, signs = table()
    dual = problem(LinearModel(X), SignedRows(signs), PRIORS[0])
    cold = maximised(dual, tol=1e-6)
    warm = maximised(dual, start=cold.point.multipliers, tol=1e-6)
    assert warm.n_iter == 0


class Narrow(TiltedModel):
    """A model that has no posterior beyond a total weight of one."""

    n_outputs = 1

    def __init__(self, n_rows):
        self.n_rows = n_rows

    def tilted(self, weights):
        room = 1.0 - weights.sum()
        if room <= 0.0:
            return Tilted(np.inf, np.full_like(weights, np.nan), None)
        return Tilted(-np.log(room), np.full_like(weights, 1.0 / room), None)


def test_ascent_stays_where_there_is_a_posterior():
    dual = problem(Narrow(5), SignedRows(np.ones(5)), ExponentialMargin(9.0, 1.0, 8.0), 0)
    assert dual.at(np.ones(5)).value == -np.inf
    found = maximised(dual, tol=1e-8)
    assert found.converged
    assert 0.0 < found.point.multipliers.sum() < 1.0


def test_an_interrupt_keeps_what_was_reached(monkeypatch):
    X, signs = table()
    dual = problem(LinearModel(X), SignedRows(signs), PRIORS[0])
    real, calls = Dual.at, []

    def at(self, multipliers):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(self, multipliers)

    monkeypatch.setattr(Dual, "at", at)
    found = maximised(dual, tol=1e-9)
    assert found.interrupted
    assert not found.converged
    assert found.point.value > 0.0
