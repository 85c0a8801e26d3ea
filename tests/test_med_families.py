"""Conjugate priors, and maximum entropy discrimination of the families they belong to."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, polygamma
from scipy.stats import wishart
from sklearn.datasets import load_breast_cancer, load_iris

from hybridmix.data import Rows
from hybridmix.exceptions import UnsupportedError
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Product,
    VariancePrior,
)
from hybridmix.families.conjugates import (
    Dirichlet,
    DirichletMultinomial,
    DirichletTrees,
    GammaPoisson,
    Independent,
    NormalGamma,
    NormalMeans,
    NormalWishart,
)
from hybridmix.files.codec import Decoder, Encoder
from hybridmix.files.migrations import FORMAT_VERSION
from hybridmix.med.constraints import Rivals, TargetSides
from hybridmix.med.dual import Dual
from hybridmix.med.margins import ExponentialMargin, TubeMargin
from hybridmix.med.models.families import (
    ClassDensities,
    ClassFamilies,
    LogRatio,
    conjugate_of,
    empirical_prior,
    flat_prior,
)
from hybridmix.med.solvers.ascent import maximised

N, D, N_CATEGORIES, N_CLASSES = 60, 3, (3, 2, 4), 3
NO_CODES = np.empty((0, N), np.int32)


def tables():
    """Complete rows, rows with holes, and rows of counts."""
    generator = np.random.default_rng(0)
    real = generator.normal(size=(D, N)) + 0.3
    codes = np.stack([generator.integers(0, k, N) for k in N_CATEGORIES])
    codes = codes.astype(np.int32)
    observed = generator.random((D, N)) > 0.2
    holes = np.where(generator.random(codes.shape) < 0.2, -1, codes)
    counts = generator.poisson(3.0, size=(D, N)).astype(float)
    return {
        "complete": Rows(real, None, codes),
        "holes": Rows(np.where(observed, real, 0.0), observed, holes),
        "counts": Rows(counts, None, codes),
        "counted holes": Rows(np.where(observed, counts, 0.0), observed, codes),
    }


KINDS = {
    "wishart": (NormalWishart(D), "complete"),
    "gamma": (NormalGamma(D), "complete"),
    "gamma with holes": (NormalGamma(D), "holes"),
    "means": (NormalMeans(D, 0.7), "holes"),
    "dirichlet": (Dirichlet(N_CATEGORIES), "holes"),
    "poisson": (GammaPoisson(D), "counts"),
    "poisson with holes": (GammaPoisson(D), "counted holes"),
    "multinomial": (DirichletMultinomial(D), "counts"),
    "trees": (DirichletTrees(N_CATEGORIES), "complete"),
    "mixed": (Independent((NormalGamma(D), Dirichlet(N_CATEGORIES))), "holes"),
    "mixed trees": (
        Independent((NormalWishart(D), DirichletTrees(N_CATEGORIES))),
        "complete",
    ),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def memberships(n_rows=N, n_classes=N_CLASSES):
    return np.eye(n_classes)[:, np.arange(n_rows) % n_classes]


def model_of(name, **options):
    conjugate, table = KINDS[name]
    rows = tables()[table]
    prior = empirical_prior(conjugate, rows, memberships(), pseudo_rows=20.0)
    return ClassFamilies(conjugate, rows, prior, **options), rows


def some_weights(seed=1, size=0.05):
    return size * np.random.default_rng(seed).normal(size=(N_CLASSES, N))


def derivative(function, step=4e-3, levels=5):
    """Return the derivative at 0, by differences extrapolated to a step of zero."""
    steps = step / 2.0 ** np.arange(levels)
    table = [(function(h) - function(-h)) / (2 * h) for h in steps]
    for k in range(1, levels):
        pairs = zip(table[1:], table[:-1], strict=True)
        table = [(4**k * finer - coarser) / (4**k - 1) for finer, coarser in pairs]
    return table[0]


# Log-partitions and their derivatives ---------------------------------------------------


@every_kind
@pytest.mark.parametrize("inclusion", [1.0, 0.2])
def test_outputs_are_derivatives_of_the_log_partition(name, inclusion):
    model, _ = model_of(name, inclusion=inclusion)
    weights, direction = some_weights(), some_weights(2, 1.0)
    here = model.tilted(weights)
    slope = derivative(lambda h: model.tilted(weights + h * direction).log_partition)
    scale = np.linalg.norm(here.outputs)
    assert abs(slope - np.sum(here.outputs * direction)) < 1e-9 * scale
    assert model.tilted(np.zeros_like(weights)).log_partition == pytest.approx(
        0.0, abs=1e-12
    )


def wishart_covariance(count, freedom, mean, scatter, X):
    """Covariances (n, n) of log densities of rows (d, n) under a normal-Wishart."""
    d = len(X)
    white = np.linalg.solve(np.linalg.cholesky(scatter), X - mean[:, None])
    inner = white.T @ white
    distance = np.diagonal(inner)
    both = 0.5 * freedom * (inner**2) - 0.5 * (distance[:, None] + distance)
    constant = 0.25 * polygamma(1, 0.5 * (freedom - np.arange(d))).sum()
    return both + inner * freedom / count + constant + 0.5 * d / count**2


def covariance_of(conjugate, hyper, rows):
    """Covariances (n, n) of the log densities of rows, in closed form."""
    if isinstance(conjugate, NormalWishart):
        count, freedom, first, second = (
            part[0] for part in conjugate._split(hyper[None])
        )
        mean = first / count
        scatter = second - count * np.outer(mean, mean)
        return wishart_covariance(count, freedom, mean, scatter, rows.real)
    if isinstance(conjugate, NormalGamma):
        per_column = hyper.reshape(4, D).T
        total = np.zeros((N, N))
        for j, (count, freedom, first, second) in enumerate(per_column):
            mean = first / count
            scatter = np.array([[second - count * mean**2]])
            here = rows.observed[j] if rows.observed is not None else np.ones(N)
            own = wishart_covariance(
                count, freedom, np.array([mean]), scatter, rows.real[j : j + 1]
            )
            total += own * np.outer(here, here)
        return total
    if isinstance(conjugate, Dirichlet):
        features = conjugate.prepare(rows).toarray()
        same = conjugate.blocks[:, None] == conjugate.blocks
        totals = same @ hyper
        inner = np.diag(polygamma(1, hyper)) - same * polygamma(1, totals)
        return features.T @ inner @ features
    total = np.zeros((N, N))
    totals, counts, _ = hyper.reshape(3, D)
    for j, (a, b) in enumerate(zip(totals, counts, strict=True)):
        features = np.stack([rows.real[j], np.ones(N)])
        inner = np.array([[polygamma(1, a), -1.0 / b], [-1.0 / b, a / b**2]])
        total += features.T @ inner @ features
    return total


@pytest.mark.parametrize(
    "name", ["wishart", "gamma", "gamma with holes", "dirichlet", "poisson"]
)
def test_second_derivatives_are_covariances(name):
    model, rows = model_of(name)
    weights, direction = some_weights(), some_weights(2, 1.0)
    hyper = model.tilted(weights).posterior.hyper
    found = derivative(lambda h: model.tilted(weights + h * direction).outputs)
    for own, line, numerical in zip(hyper, direction, found, strict=True):
        exact = covariance_of(model.conjugate, own, rows) @ line
        np.testing.assert_allclose(numerical, exact, rtol=1e-8, atol=1e-8)


@every_kind
@pytest.mark.parametrize("inclusion", [1.0, 0.2])
def test_second_derivatives_are_symmetric_and_convex(name, inclusion):
    model, _ = model_of(name, inclusion=inclusion)
    weights, one, other = some_weights(), some_weights(2, 1.0), some_weights(3, 1.0)

    def along(line):
        return derivative(lambda h: model.tilted(weights + h * line).outputs)

    by_one, by_other = along(one), along(other)
    scale = np.linalg.norm(by_one)
    assert abs(np.sum(by_one * other) - np.sum(by_other * one)) < 1e-8 * scale
    assert np.sum(by_one * one) > 0.0


# Against integrals ----------------------------------------------------------------------


def grid(low, high, size=1500):
    return np.linspace(low, high, size)


def assert_log_partition(conjugate, rows, log_densities, log_measure):
    """Compare with sums over a grid of parameters, which are exact for smooth tails.

    ``log_densities`` are those of the rows, (n, ...), and ``log_measure`` is that of the
    prior whose hyperparameters are the statistics of rows with weights of one half.
    """
    n = rows.n_rows
    statistics = conjugate.statistics(conjugate.prepare(rows), np.full((1, n), 0.5))
    model = ClassFamilies(conjugate, rows, statistics)
    weights = 0.1 * np.random.default_rng(3).normal(size=(1, n))
    tilted = model.tilted(weights)
    flat = log_densities.reshape(n, -1)
    start = 0.5 * flat.sum(axis=0) + log_measure.ravel()
    end = start + weights[0] @ flat
    value = np.logaddexp.reduce(end) - np.logaddexp.reduce(start)
    assert tilted.log_partition == pytest.approx(value, abs=1e-9)
    outputs = flat @ np.exp(end - np.logaddexp.reduce(end))
    np.testing.assert_allclose(tilted.outputs[0], outputs, rtol=1e-8)


def real_rows(values):
    return Rows(np.atleast_2d(values), None, np.empty((0, len(values)), np.int32))


@pytest.mark.parametrize("conjugate", [NormalWishart(1), NormalGamma(1)])
def test_gaussian_of_one_column_against_quadrature(conjugate):
    values = np.random.default_rng(0).normal(size=12) + 0.5
    # Means on the scale of their own deviation, which has light tails.
    deviation, log_precision = grid(-9.0, 9.0, 400)[:, None], grid(-20.0, 8.0, 900)
    mean = values.mean() + deviation * np.exp(-0.5 * log_precision)
    log_densities = 0.5 * (
        log_precision
        - np.log(2 * np.pi)
        - np.exp(log_precision) * (values[:, None, None] - mean) ** 2
    )
    # The prior of rows alone is relative to |Lambda|^(-1/2) d mu d Lambda, which is even
    # on this grid.
    log_measure = np.zeros(log_densities.shape[1:])
    assert_log_partition(conjugate, real_rows(values), log_densities, log_measure)


def test_means_against_quadrature():
    values = np.random.default_rng(0).normal(size=12) + 0.5
    mean = grid(-10.0, 11.0)
    squares = (values[:, None] - mean) ** 2
    log_densities = -0.5 * (squares / 0.7 + np.log(2 * np.pi * 0.7))
    assert_log_partition(
        NormalMeans(1, 0.7), real_rows(values), log_densities, np.zeros_like(mean)
    )


def test_poisson_against_quadrature():
    values = np.random.default_rng(0).poisson(3.0, 12).astype(float)
    log_rate = grid(-6.0, 5.0)
    log_densities = (
        values[:, None] * log_rate - np.exp(log_rate) - gammaln(values + 1.0)[:, None]
    )
    # d log(rate) is the measure of a gamma density without its events.
    log_measure = np.zeros_like(log_rate)
    assert_log_partition(GammaPoisson(1), real_rows(values), log_densities, log_measure)


def test_dirichlet_against_quadrature():
    codes = np.random.default_rng(0).integers(0, 2, (1, 14)).astype(np.int32)
    logit = grid(-60.0, 60.0, 6000)
    logs = np.stack([-np.logaddexp(0.0, logit), -np.logaddexp(0.0, -logit)])
    rows = Rows(np.empty((0, 14)), None, codes)
    # d logit is d theta / (theta (1 - theta)).
    assert_log_partition(Dirichlet((2,)), rows, logs[codes[0]], np.zeros_like(logit))


def test_multinomial_is_a_dirichlet_of_counts():
    generator = np.random.default_rng(0)
    counts = generator.poisson(2.0, size=(2, 9)).astype(float)
    logit = grid(-60.0, 60.0, 6000)
    logs = np.stack([-np.logaddexp(0.0, logit), -np.logaddexp(0.0, -logit)])
    coefficient = gammaln(counts.sum(axis=0) + 1) - gammaln(counts + 1).sum(axis=0)
    log_densities = counts.T @ logs + coefficient[:, None]
    rows = Rows(counts, None, np.empty((0, 9), np.int32))
    assert_log_partition(
        DirichletMultinomial(2), rows, log_densities, np.zeros_like(logit)
    )


def test_normal_wishart_against_draws():
    generator = np.random.default_rng(0)
    d, n, n_draws = 2, 12, 100_000
    X = generator.normal(size=(d, n))
    conjugate, rows = NormalWishart(d), real_rows(X)
    rows = Rows(X, None, np.empty((0, n), np.int32))
    hyper = conjugate.prior(conjugate.statistics(X, np.ones((1, n))))
    model = ClassFamilies(conjugate, rows, hyper)
    count, freedom, first, second = (part[0] for part in conjugate._split(hyper))
    mean = first / count
    scatter = second - count * np.outer(mean, mean)
    precisions = wishart(freedom, np.linalg.inv(scatter)).rvs(n_draws, generator)
    factors = np.linalg.cholesky(precisions).transpose(0, 2, 1)
    noise = generator.normal(size=(n_draws, d, 1)) / np.sqrt(count)
    means = mean[:, None] + np.linalg.solve(factors, noise)
    away = factors @ (X - means)
    half_log = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    logs = half_log[:, None] - 0.5 * (away**2).sum(axis=1) - 0.5 * d * np.log(2 * np.pi)
    weights = 0.1 * generator.normal(size=(1, n))
    ratios = np.exp(logs @ weights[0])
    error = ratios.std() / ratios.mean() / np.sqrt(n_draws)
    value = model.tilted(weights).log_partition
    assert abs(value - np.log(ratios.mean())) < 4 * error
    outputs = model.tilted(0.0 * weights).outputs[0]
    errors = logs.std(axis=0) / np.sqrt(n_draws)
    assert np.all(np.abs(outputs - logs.mean(axis=0)) < 4.5 * errors)


# Blocks, holes and switches -------------------------------------------------------------


def test_one_column_of_either_gaussian_prior_is_the_same():
    rows = real_rows(np.random.default_rng(0).normal(size=20))
    weights = some_weights()[:2, :20]
    one, other = (
        ClassFamilies(kind, rows, empirical_prior(kind, rows, memberships(20, 2)))
        for kind in (NormalWishart(1), NormalGamma(1))
    )
    one, other = one.tilted(weights), other.tilted(weights)
    assert one.log_partition == pytest.approx(other.log_partition, rel=1e-12)
    np.testing.assert_allclose(one.outputs, other.outputs, rtol=1e-12)


def test_holes_contribute_nothing():
    rows, weights = tables()["holes"], some_weights()
    whole, total = (
        ClassFamilies(
            NormalGamma(D), rows, empirical_prior(NormalGamma(D), rows, memberships())
        ).tilted(weights),
        0.0,
    )
    outputs = np.zeros_like(weights)
    for j in range(D):
        seen = rows.observed[j]
        column, members = real_rows(rows.real[j, seen]), memberships()[:, seen]
        conjugate = NormalGamma(1)
        own = conjugate.statistics(conjugate.prepare(column), members)
        prior = conjugate.prior(own + own.sum(axis=0) / N)
        part = ClassFamilies(conjugate, column, prior).tilted(weights[:, seen])
        total += part.log_partition
        outputs[:, seen] += part.outputs
    assert whole.log_partition == pytest.approx(total, rel=1e-10)
    np.testing.assert_allclose(whole.outputs, outputs, rtol=1e-10)


def test_switches_are_summed_over():
    model, _ = model_of("mixed", inclusion=0.3)
    plain, _ = model_of("mixed")
    weights = some_weights()
    hyper = plain.tilted(weights).posterior.hyper
    gains = model.conjugate.evaluate(hyper)[0] - model.conjugate.evaluate(plain.prior)[0]
    gains = gains.sum(axis=0)
    states = np.array(list(product([0, 1], repeat=model.conjugate.n_blocks)))
    logs = states @ gains + states @ np.full(6, np.log(0.3 / 0.7)) + 6 * np.log(0.7)
    tilted = model.tilted(weights)
    assert tilted.log_partition == pytest.approx(np.logaddexp.reduce(logs), rel=1e-12)
    shares = np.exp(logs - np.logaddexp.reduce(logs)) @ states
    np.testing.assert_allclose(tilted.posterior.inclusion, shares, rtol=1e-12)


def test_switches_of_unit_variance_means():
    # One column, standard normal means, weights that sum to zero: a^2 / 2 - q / 2 of the
    # one and a^2 / 2 + q / 2 of the other class.
    generator = np.random.default_rng(0)
    rows = real_rows(generator.normal(size=10))
    weights = generator.normal(size=10) * 0.2
    weights -= weights.mean()
    prior = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    model = ClassFamilies(NormalMeans(1), rows, prior, inclusion=0.3)
    a = weights @ rows.real[0]
    value = model.tilted(np.stack([weights, -weights])).log_partition
    assert value == pytest.approx(np.log(0.7 + 0.3 * np.exp(a**2)), rel=1e-12)


def test_switches_find_the_columns_that_matter():
    generator = np.random.default_rng(0)
    labels = np.arange(200) % 2
    real = generator.normal(size=(8, 200))
    real[:2] += 1.5 * labels
    rows = Rows(real, None, np.empty((0, 200), np.int32))
    conjugate = NormalGamma(8)
    prior = flat_prior(conjugate, rows, memberships(200, 2), 10.0)
    model = ClassFamilies(conjugate, rows, prior, inclusion=0.05)
    margins = ExponentialMargin(1.0, 1.0, 3.0)
    dual = Dual(model, Rivals(labels, 2), margins, 1.0, np.zeros(2))
    found = maximised(dual).point
    inclusion = found.tilted.posterior.inclusion
    assert inclusion[:2].min() > 0.5
    assert inclusion[2:].max() < 0.5


# Priors and refusals --------------------------------------------------------------------


@every_kind
def test_priors_expect_the_densities_of_their_rows(name):
    conjugate, table = KINDS[name]
    rows = tables()[table]
    members = memberships()
    for prior in (
        empirical_prior(conjugate, rows, members, strength=1e-3, pseudo_rows=1e-6),
        flat_prior(conjugate, rows, members, pseudo_rows=1e-3),
    ):
        assert prior.shape == (N_CLASSES, conjugate.n_hyperparameters)
        conjugate.check_hyperparameters(prior)
    flat = flat_prior(conjugate, rows, members)
    np.testing.assert_array_equal(flat[0], flat[1])


def test_priors_of_constant_empty_and_dependent_columns_are_proper():
    real = np.zeros((3, 10))
    real[1] = real[2] = np.arange(10.0)
    observed = np.ones((3, 10), bool)
    observed[0] = False
    rows = Rows(real, observed, np.zeros((2, 10), np.int32))
    complete = Rows(real, None, rows.codes)
    for conjugate, own in [
        (NormalGamma(3), rows),
        (NormalMeans(3), rows),
        (GammaPoisson(3), rows),
        (NormalGamma(3), complete),
        (NormalWishart(3), complete),
        (DirichletMultinomial(3), complete),
        (Dirichlet((2, 3)), rows),
        (DirichletTrees((2, 3)), rows),
    ]:
        conjugate.check_hyperparameters(
            empirical_prior(conjugate, own, memberships(10, 2))
        )


def test_weights_that_leave_no_posterior():
    for name in KINDS:
        model, _ = model_of(name)
        tilted = model.tilted(np.full((N_CLASSES, N), -5.0))
        assert tilted.log_partition == np.inf
        assert tilted.posterior is None


@every_kind
@pytest.mark.parametrize("number", [0.0, -4.0])
def test_poles_of_the_gamma_function_are_not_posteriors(name, number):
    conjugate, _ = KINDS[name]
    values, _ = conjugate.evaluate(np.full((2, conjugate.n_hyperparameters), number))
    assert np.all(values == np.inf)


def test_a_count_is_left_but_no_spread():
    model, _ = model_of("wishart")
    weights = np.zeros((N_CLASSES, N))
    weights[0, :2] = 500.0, -510.0
    assert model.tilted(weights).log_partition == np.inf


def test_full_covariances_refuse_holes():
    with pytest.raises(UnsupportedError, match=r"missing values.*independent"):
        NormalWishart(D).prepare(tables()["holes"])
    with pytest.raises(UnsupportedError, match="HybridMixtureClassifier"):
        DirichletTrees(N_CATEGORIES).prepare(tables()["holes"])
    mixed = Independent((NormalGamma(D), Dirichlet(N_CATEGORIES)))
    mixed.prepare(tables()["holes"])


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="those of column 0 are not counts"):
        GammaPoisson(D).prepare(tables()["complete"])


def test_families_name_their_conjugate_priors():
    prior = VariancePrior(np.ones(D), floor=1e-5)
    categorical = Categorical(N_CATEGORIES)
    assert FullGaussian(prior).conjugate() == NormalWishart(D, 1e-5)
    assert DiagonalGaussian(prior).conjugate() == NormalGamma(D, 1e-5)
    assert categorical.conjugate() == Dirichlet(N_CATEGORIES)
    both = Product((FullGaussian(prior), categorical))
    assert both.offers("conjugate")
    assert both.conjugate() == Independent(
        (NormalWishart(D, 1e-5), categorical.conjugate())
    )


def test_kinds_of_priors_for_tables():
    assert conjugate_of("gaussian", 3, ()) == NormalWishart(3)
    assert conjugate_of("independent", 0, (2, 3)) == Dirichlet((2, 3))
    mixed = Independent((NormalGamma(3), DirichletTrees((2, 3))))
    assert conjugate_of("tree", 3, (2, 3)) == mixed


@pytest.mark.parametrize(
    "family",
    [
        FullGaussian(VariancePrior(np.ones(D)), tied=True),
        DiagonalGaussian(VariancePrior(np.ones(D)), spherical=True),
    ],
)
def test_families_without_a_conjugate_prior(family):
    assert not family.offers("conjugate")
    assert not Product((family, Categorical(N_CATEGORIES))).offers("conjugate")
    with pytest.raises(UnsupportedError, match="a conjugate prior"):
        family.conjugate()


# Posteriors -----------------------------------------------------------------------------


@every_kind
def test_posteriors_survive_files(name):
    model, rows = model_of(name, inclusion=0.5)
    tilted = model.tilted(some_weights())
    posterior = tilted.posterior
    np.testing.assert_allclose(
        posterior.expected_log_densities(rows), tilted.outputs, rtol=1e-12
    )
    encoder = Encoder()
    content = encoder.encode(posterior)
    back = Decoder(encoder.arrays.__getitem__, FORMAT_VERSION).decode(content)
    np.testing.assert_array_equal(
        back.expected_log_densities(rows), posterior.expected_log_densities(rows)
    )


@every_kind
def test_posteriors_check_themselves(name):
    model, _ = model_of(name)
    posterior = model.tilted(some_weights()).posterior
    posterior.check_consistent()
    conjugate, hyper, inclusion = (
        posterior.conjugate,
        posterior.hyper,
        posterior.inclusion,
    )
    for broken in (
        ClassDensities(conjugate, hyper[:, 1:], inclusion),
        ClassDensities(conjugate, -hyper, inclusion),
        ClassDensities(
            conjugate, np.where(hyper == hyper[0, 0], np.nan, hyper), inclusion
        ),
        ClassDensities(conjugate, hyper, inclusion + 0.1),
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            broken.check_consistent()


# Training -------------------------------------------------------------------------------


def trained(conjugate, rows, labels, margins, **options):
    n_classes = labels.max() + 1
    prior = empirical_prior(conjugate, rows, np.eye(n_classes)[:, labels])
    model = ClassFamilies(conjugate, rows, prior, **options)
    log_shares = np.log(np.bincount(labels) / len(labels))
    dual = Dual(model, Rivals(labels, n_classes), margins, 1.0, log_shares)
    return dual.at(np.zeros(dual.constraints.n_constraints)), maximised(dual).point


def table_of(load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Rows(X.T.copy(), None, np.empty((0, len(y)), np.int32)), y


@pytest.mark.parametrize("kind", [NormalWishart, NormalGamma])
def test_training_improves_margins_of_classes(kind):
    rows, labels = table_of(load_iris)
    start, found = trained(kind(4), rows, labels, ExponentialMargin(0.3, 1.0, 3.0))
    assert found.gap < 1e-4 * start.gap

    def errors(point):
        outputs = point.tilted.outputs + point.bias[:, None]
        return np.sum(outputs.argmax(axis=0) != labels)

    assert errors(found) <= errors(start)


def test_training_improves_independent_columns_of_breast_cancer():
    rows, labels = table_of(load_breast_cancer)
    start, found = trained(
        NormalGamma(30), rows, labels, ExponentialMargin(1.0, 1.0, 2.0)
    )
    assert found.gap < 1e-3 * start.gap
    wrong = [
        np.mean((p.tilted.outputs + p.bias[:, None]).argmax(axis=0) != labels)
        for p in (start, found)
    ]
    # On the rows of the training: naive Bayes has dependent columns against it.
    assert wrong[1] < 0.85 * wrong[0]


def test_regression_by_a_log_ratio():
    generator = np.random.default_rng(0)
    x = np.linspace(-2.0, 2.0, 80)
    rows = real_rows(x)
    noise = 0.05 * generator.normal(size=80)
    for conjugate, targets in [
        (NormalMeans(1), 0.8 * x),
        (NormalGamma(1), 0.5 * x**2 - 0.4 * x - 1.0),
    ]:
        prior = flat_prior(conjugate, rows, np.ones((2, 80)), 5.0)
        model = LogRatio(ClassFamilies(conjugate, rows, prior))
        sides = TargetSides(targets + noise)
        dual = Dual(model, sides, TubeMargin(5.0, 1.0, 0.1), 10.0, np.zeros(1))
        found = maximised(dual).point
        fitted = found.tilted.outputs[0] + found.bias[0]
        assert np.sqrt(np.mean((fitted - targets) ** 2)) < 0.2 * np.std(targets)
