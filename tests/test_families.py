"""The contract of families: one table of cases for all of them."""

import itertools
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import (
    N_CATEGORIES,
    D,
    families,
    fitted_by_em,
    make_mixture,
    make_rows,
    with_nan,
)
from scipy import stats

from hybridmix.data import Rows
from hybridmix.exceptions import UnsupportedError
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    Family,
    FullGaussian,
    Product,
    VariancePrior,
)
from hybridmix.families.base import Parameters, Statistics
from hybridmix.families.moments import (
    DiagonalParameters,
    FullParameters,
    inverse_lower,
)
from hybridmix.families.scattered import invert
from hybridmix.families.subspace import SubspaceParameters, principal_subspace

# Every test runs in NumPy and with compiled kernels.
pytestmark = pytest.mark.usefixtures("kernels")

FAMILIES = list(families())
# Complete rows; scattered holes; a few patterns that repeat; more holes than values.
HOLES = [(0.0, None), (0.25, None), (0.3, 3), (0.75, None)]


def setup(name, missing, n_patterns, n_rows=300):
    family = families()[name]
    rows = make_rows(n_rows, missing, n_patterns)
    parameters = make_mixture(family, make_rows(200, seed=1)).components
    return family, rows, parameters


def gaussian_part(parameters):
    part = getattr(parameters, "factors", [parameters])[0]
    if isinstance(part, SubspaceParameters):
        loading = part.subspace.loading
        covariances = loading @ part.latent.covariances @ loading.T
        covariances = covariances + np.diag(part.subspace.noise)
        return FullParameters.of(part.means, covariances)
    return part if hasattr(part, "means") else None


def covariances_of(gaussian):
    if isinstance(gaussian, DiagonalParameters):
        return np.stack([np.diag(v) for v in gaussian.variances])
    shape = len(gaussian.means), *gaussian.covariances.shape[1:]
    return np.broadcast_to(gaussian.covariances, shape)


def reference_log_density(parameters, rows):
    """Direct evaluation, row by row, by scipy.stats and table look-up."""
    gaussian = gaussian_part(parameters)
    factors = getattr(parameters, "factors", [parameters])
    categorical = next((f for f in factors if hasattr(f, "log_probabilities")), None)
    n_components = len(gaussian.means if gaussian else categorical.log_probabilities)
    result = np.zeros((n_components, rows.n_rows))
    offsets = np.cumsum((0, *N_CATEGORIES))
    for j, n in itertools.product(range(n_components), range(rows.n_rows)):
        if gaussian is not None:
            x = with_nan(rows)[n]
            o = ~np.isnan(x)
            if o.any():
                covariance = covariances_of(gaussian)[j][np.ix_(o, o)]
                result[j, n] += stats.multivariate_normal.logpdf(
                    x[o], gaussian.means[j][o], covariance
                )
        if categorical is not None:
            for f, code in enumerate(rows.codes[:, n]):
                if code >= 0:
                    result[j, n] += categorical.log_probabilities[j, offsets[f] + code]
    return result


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("missing", "n_patterns"), HOLES)
def test_log_density_is_the_marginal_of_what_is_observed(name, missing, n_patterns):
    family, rows, parameters = setup(name, missing, n_patterns, n_rows=150)
    log_density, _ = family.evaluate(family.prepare(rows), parameters)
    np.testing.assert_allclose(
        log_density, reference_log_density(parameters, rows), rtol=1e-9, atol=1e-9
    )


def expected_moments(mean, covariance, x):
    """First and second moment of a row given its observed part, by textbook algebra."""
    o = ~np.isnan(x)
    filled, spread = np.where(o, x, 0.0), np.zeros_like(covariance)
    if not o.all():
        gain = covariance[np.ix_(~o, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
        filled[~o] = mean[~o] + gain @ (x[o] - mean[o])
        spread[np.ix_(~o, ~o)] = (
            covariance[np.ix_(~o, ~o)] - gain @ covariance[np.ix_(o, ~o)]
        )
    return filled, np.outer(filled, filled) + spread


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("missing", "n_patterns"), HOLES)
def test_full_statistics_are_conditional_expectations(tied, missing, n_patterns):
    family, rows, parameters = setup("tied" if tied else "full", missing, n_patterns)
    weights = np.random.default_rng(2).normal(size=(5, rows.n_rows))  # signed
    prepared = family.prepare(rows)
    _, notes = family.evaluate(prepared, parameters)
    statistics = family.accumulate(prepared, parameters, weights, notes)
    first, second = np.zeros((5, D)), np.zeros((5, D, D))
    for j, covariance in enumerate(covariances_of(parameters)):
        for n, x in enumerate(with_nan(rows)):
            filled, outer = expected_moments(parameters.means[j], covariance, x)
            first[j] += weights[j, n] * filled
            second[j] += weights[j, n] * outer
    if tied:
        second = second.sum(axis=0, keepdims=True)
    np.testing.assert_allclose(statistics.counts, weights.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(statistics.first, first, atol=1e-8)
    np.testing.assert_allclose(statistics.second, second, atol=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("missing", "n_patterns"), HOLES)
def test_coordinates_start_at_zero_and_pull_gradients_back(name, missing, n_patterns):
    """Fisher's identity: the gradient of sum r log p, with holes and signed weights."""
    family, rows, start = setup(name, missing, n_patterns, n_rows=120)
    coordinates = family.coordinates(start, np.array([20.0, 30.0, 25.0, 40.0, 5.0]))
    prepared = family.prepare(rows)
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(5, rows.n_rows))

    def value(vector):
        parameters = coordinates.at(vector).parameters
        log_density, _ = family.evaluate(prepared, parameters)
        return np.sum(weights * log_density) + family.log_prior(parameters)

    at_start, _ = family.evaluate(prepared, start)
    at_zero, _ = family.evaluate(
        prepared, coordinates.at(np.zeros(coordinates.size)).parameters
    )
    np.testing.assert_allclose(at_zero, at_start, atol=1e-9)

    vector = rng.normal(size=coordinates.size)
    point = coordinates.at(vector)
    _, notes = family.evaluate(prepared, point.parameters)
    statistics = family.accumulate(prepared, point.parameters, weights, notes)
    gradient = point.gradient(statistics) + point.prior_gradient()
    step = 1e-5
    numeric = [
        (value(vector + step * unit) - value(vector - step * unit)) / (2 * step)
        for unit in np.eye(coordinates.size)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


# M-steps leave the subspace as it is, also where gradient methods would move it.
@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "refined subspace"])
def test_m_steps_maximise_the_penalised_expected_log_density(name):
    family = families()[name]
    rows = make_rows(400)
    weights = np.random.default_rng(1).dirichlet(np.ones(3), size=400).T
    best = family.start(rows, weights)
    for _ in range(100 if "subspace" in name else 0):  # the latent variables are missing
        best = family.maximise(family.summarise(rows, best, weights))
    prepared = family.prepare(rows)
    coordinates = family.coordinates(best, weights.sum(axis=1))

    def value(parameters):
        log_density, _ = family.evaluate(prepared, parameters)
        return np.sum(weights * log_density) + family.log_prior(parameters)

    rng = np.random.default_rng(0)
    for _ in range(20):
        elsewhere = coordinates.at(0.3 * rng.normal(size=coordinates.size)).parameters
        assert value(elsewhere) < value(best)


@pytest.mark.parametrize("name", ["spherical", "diag", "full", "tied"])
def test_deviations_grow_at_most_a_hundredfold_in_gradient_methods(name):
    family, _, start = setup(name, 0.0, None)
    coordinates = family.coordinates(start, np.full(5, 30.0))
    lower, _ = coordinates.bounds()
    broadest = coordinates.at(np.where(np.isfinite(lower), lower, 0.0)).parameters
    if name in ("spherical", "diag"):
        growth = np.sqrt(broadest.variances / start.variances)
    else:
        growth = np.exp(
            (broadest.half_log_determinants - start.half_log_determinants) / D
        )
    np.testing.assert_allclose(growth, 100.0)


@pytest.mark.parametrize("name", FAMILIES)
def test_expected_statistics_lead_back_to_the_parameters(name):
    family = families(strength=0.0)[name]
    parameters = family.start(make_rows(300), np.random.default_rng(1).random((3, 300)))
    expected = family.expected_statistics(parameters, np.full(3, 1e9))
    again = family.maximise(expected)
    prepared = family.prepare(make_rows(50, seed=1))
    np.testing.assert_allclose(
        family.evaluate(prepared, again)[0], family.evaluate(prepared, parameters)[0]
    )
    assert family.proper(expected).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_improper_statistics_are_told(name):
    family, rows, parameters = setup(name, 0.0, None)
    n_components = 5
    far = Rows(rows.real[:, :1] * 100.0, None, rows.codes[:, :1])
    against = family.prepare(far)
    notes = family.evaluate(against, parameters)[1]
    weights = np.zeros((n_components, 1))
    weights[2] = -0.5
    statistics = family.expected_statistics(parameters, np.ones(n_components))
    statistics.add(family.accumulate(against, parameters, weights, notes))
    proper = family.proper(statistics)
    assert not proper[2]
    if name != "tied":
        assert proper[[0, 1, 3, 4]].all()


@pytest.mark.parametrize("name", FAMILIES)
def test_components_can_be_taken_and_joined_again(name):
    family, rows, parameters = setup(name, 0.25, None)
    parts = [parameters.take(slice(0, 2)), parameters.take(slice(2, 5))]
    joined = family.concatenate(parts, [2.0, 3.0])
    prepared = family.prepare(rows)
    whole, _ = family.evaluate(prepared, parameters)
    np.testing.assert_allclose(family.evaluate(prepared, joined)[0], whole, atol=1e-9)
    np.testing.assert_allclose(
        family.evaluate(prepared, parts[1])[0], whole[2:], atol=1e-12
    )


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("columns", [([0, 3], [1]), ([4, 1, 0], [1, 0]), ([2], [])])
def test_marginal_density_is_that_of_rows_with_the_other_columns_missing(name, columns):
    real, codes = columns
    family, rows, parameters = setup(name, 0.0, None)
    if not family.reads(real, codes):
        pytest.skip("no column of this family is left")
    observed = np.zeros((D, rows.n_rows), dtype=bool)
    observed[real] = True
    hidden = rows.codes.copy()
    hidden[[f for f in range(2) if f not in codes]] = -1
    holes = Rows(np.where(observed, rows.real, 0.0), observed, hidden)
    small, kept = family.marginal(parameters, real, codes)
    shown = Rows(rows.real[real], None, rows.codes[codes])
    np.testing.assert_allclose(
        small.evaluate(small.prepare(shown), kept)[0],
        family.evaluate(family.prepare(holes), parameters)[0],
        atol=1e-9,
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_have_the_moments_of_their_component(name):
    family, _, parameters = setup(name, 0.0, None)
    components = np.repeat([1, 3], 40_000)
    rows = family.sample(parameters, components, np.random.default_rng(0))
    for j in (1, 3):
        drawn = rows[np.flatnonzero(components == j)]
        if gaussian := gaussian_part(parameters):
            covariance = covariances_of(gaussian)[j]
            np.testing.assert_allclose(
                drawn.real.mean(axis=1), gaussian.means[j], atol=0.1
            )
            np.testing.assert_allclose(np.cov(drawn.real), covariance, atol=0.15)
        if len(drawn.codes):
            factor = getattr(parameters, "factors", [parameters])[-1]
            shares = np.bincount(drawn.codes[0], minlength=3) / drawn.n_rows
            expected = np.exp(factor.log_probabilities[j, :3])
            np.testing.assert_allclose(shares, expected, atol=0.02)


@pytest.mark.parametrize(
    "name", ["diag", "tied", "full", "subspace", "full x categorical"]
)
@pytest.mark.parametrize("is_frequent", [False, True])
def test_draws_have_the_conditional_mean_and_covariance(name, is_frequent):
    family, _, parameters = setup(name, 0.0, None)
    x = np.array([0.5, np.nan, -1.0, np.nan, 2.0])
    n_rows = 20_000 if is_frequent else 60
    observed = np.repeat(~np.isnan(x)[:, None], n_rows, axis=1)
    real = np.where(observed, np.nan_to_num(x)[:, None], 0.0)
    rows = Rows(real, observed, np.full((2, observed.shape[1]), -1, np.int32))
    gaussian = gaussian_part(parameters)
    mean, second = expected_moments(gaussian.means[2], covariances_of(gaussian)[2], x)
    components = np.full(rows.n_rows, 2)
    drawn = [
        family.draw(rows, parameters, components, np.random.default_rng(seed)).real
        for seed in range(1 if is_frequent else 400)
    ]
    drawn = np.concatenate(drawn, axis=1)
    np.testing.assert_array_equal(drawn[[0, 2, 4]].std(axis=1), 0.0)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn), second - np.outer(mean, mean), atol=0.1)


@pytest.mark.parametrize("name", FAMILIES)
def test_surprise_tells_mean_and_variance_of_the_energy(name):
    family, _, parameters = setup(name, 0.0, None)
    rng = np.random.default_rng(0)
    rows = family.sample(parameters, np.full(20_000, 1), rng)
    if len(rows.codes) == 0:
        rows = Rows(rows.real, None, np.full((2, rows.n_rows), -1, np.int32))
    if len(rows.real) == 0:
        rows = Rows(np.zeros((D, rows.n_rows)), None, rows.codes)
    observed = np.ones((D, rows.n_rows), dtype=bool)
    observed[[0, 3]] = False  # the same holes in all rows
    rows = Rows(np.where(observed, rows.real, 0.0), observed, rows.codes)
    prepared = family.prepare(rows)
    log_density, notes = family.evaluate(prepared, parameters)
    offset, mean, variance = family.surprise(prepared, parameters, notes)
    energy = -log_density - offset
    assert energy[1].mean() == pytest.approx(mean[1, 0], rel=0.05)
    assert energy[1].var() == pytest.approx(variance[1, 0], rel=0.1)


@pytest.mark.parametrize("name", FAMILIES)
def test_number_of_parameters(name):
    expected = {
        "spherical": 4 * (D + 1),
        "diag": 4 * 2 * D,
        "tied": 4 * D + D * (D + 1) // 2,
        "full": 4 * (D + D * (D + 1) // 2),
        "subspace": 4 * 5 + D + 1 + 2 * D - 6,
        "refined subspace": 4 * 5 + D + 1 + 2 * D - 6,
        "categorical": 4 * 3,
        "full x categorical": 4 * (D + D * (D + 1) // 2 + 3),
        "diag x categorical": 4 * (2 * D + 3),
        "subspace x categorical": 4 * 8 + D + 1 + 2 * D - 6,
    }
    assert families()[name].n_parameters(4) == expected[name]


def test_affine_change_of_units():
    _, rows, parameters = setup("full", 0.0, None)
    family = families()["full"]
    scale, shift = np.linspace(0.1, 3.0, D), np.linspace(-5.0, 5.0, D)
    moved = Rows(rows.real * scale[:, None] + shift[:, None], None, rows.codes)
    before, _ = family.evaluate(family.prepare(rows), parameters)
    after, _ = family.evaluate(family.prepare(moved), parameters.affine(scale, shift))
    np.testing.assert_allclose(after, before - np.log(scale).sum(), atol=1e-8)


@pytest.mark.parametrize("tied", [False, True])
def test_floor_bounds_eigenvalues_and_keeps_the_best_bounded_covariance(tied):
    rng = np.random.default_rng(0)
    flat = np.outer([1.0, 2.0, 0.0], rng.normal(size=50))  # rank one, a constant column
    family = FullGaussian(VariancePrior(np.ones(3), floor=1e-3), tied=tied)
    rows = Rows(flat, None, np.empty((0, 50), np.int32))
    parameters = family.start(rows, np.ones((1, 50)))
    eigenvalues = np.linalg.eigvalsh(parameters.covariances[0])
    assert eigenvalues.min() == pytest.approx(1e-3)

    def value(p):
        return family.evaluate(family.prepare(rows), p)[0].sum()

    for _ in range(10):
        change = rng.normal(size=(3, 3)) * 0.02
        other = parameters.covariances + change @ change.T
        assert value(FullParameters.of(parameters.means, other)) < value(parameters)


def test_empty_components_fall_back_on_the_prior():
    for family in families().values():
        parameters = family.maximise(family.zero_statistics(2))
        log_density, _ = family.evaluate(family.prepare(make_rows(5, 0.3)), parameters)
        assert np.isfinite(log_density).all()


@pytest.mark.parametrize("shape", [(40, 40), (3, 17, 17), (2, 16, 16), (1, 33, 33)])
def test_inverses_of_triangular_matrices(shape):
    lower = np.tril(np.random.default_rng(0).normal(size=shape)) * 0.3
    lower += np.eye(shape[-1])
    inverse = inverse_lower(lower)
    np.testing.assert_array_equal(np.tril(inverse), inverse)
    np.testing.assert_allclose(
        inverse @ lower, np.broadcast_to(np.eye(shape[-1]), shape), atol=1e-9
    )


def test_inverses_of_triangular_matrices_with_large_entries():
    lower = np.tril(np.random.default_rng(0).normal(size=(3, 4, 4)))
    lower[:, 2] *= 1e20
    np.testing.assert_allclose(
        inverse_lower(lower) @ lower, np.broadcast_to(np.eye(4), lower.shape), atol=1e-9
    )
    lower[1, 2, 2] = 0.0
    with pytest.raises(np.linalg.LinAlgError, match="diagonal"):
        inverse_lower(lower)


def test_inverses_of_empty_matrices_are_empty(capfd):
    assert inverse_lower(np.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", FAMILIES)
def test_work_grows_with_components_and_holes(name):
    family = families()[name]
    complete, holey = make_rows(50), make_rows(50, 0.5)
    assert 0 < family.work(1) < family.work(4)
    assert family.work(4, complete.observed) <= family.work(4, holey.observed)


def test_many_small_inverses():
    rng = np.random.default_rng(0)
    for size, count in ((0, 5), (1, 50), (2, 3), (7, 20), (7, 200)):
        factor = rng.normal(size=(count, size, size + 2))
        matrices = factor @ factor.transpose(0, 2, 1)
        inverses, logs = invert(matrices.transpose(1, 2, 0).copy())
        np.testing.assert_allclose(
            inverses.transpose(2, 0, 1) @ matrices,
            np.broadcast_to(np.eye(size), matrices.shape),
            atol=1e-8,
        )
        np.testing.assert_allclose(logs, np.linalg.slogdet(matrices)[1], atol=1e-8)


def test_diagonal_with_means_far_from_the_centre_keeps_its_digits():
    means = np.full((1, 3), 5.0)
    parameters = DiagonalParameters(means, np.full((1, 3), 1e-6))
    family = DiagonalGaussian(VariancePrior(np.ones(3)))
    rows = Rows(means.T + 1e-3 * np.array([[0.3], [-1.0], [2.0]]), None, np.empty((0, 1)))
    value, _ = family.evaluate(family.prepare(rows), parameters)
    expected = stats.norm.logpdf(rows.real[:, 0], 5.0, 1e-3).sum()
    assert value[0, 0] == pytest.approx(expected, abs=1e-6)


def test_marginal_of_categories_by_summing_over_all_values():
    family = Categorical((3, 2, 2), 0.5)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(k, size=60) for k in (3, 2, 2)]).astype(np.int32)
    rows = Rows(np.empty((0, 60)), None, codes)
    parameters = family.start(rows, rng.dirichlet(np.ones(4), size=60).T)

    def density(values):
        row = Rows(np.empty((0, 1)), None, np.array(values, np.int32)[:, None])
        return np.exp(family.evaluate(family.prepare(row), parameters)[0][:, 0])

    total = sum(density((1, a, b)) for a, b in itertools.product(range(2), range(2)))
    np.testing.assert_allclose(density((1, -1, -1)), total, rtol=1e-12)
    everything = sum(density(v) for v in itertools.product(range(3), range(2), range(2)))
    np.testing.assert_allclose(everything, 1.0)


# Extreme values -------------------------------------------------------------------------

EXTREMES = {
    "a row at the end of the world": lambda real: np.where(
        np.arange(real.shape[1]) == 3, 1e50, real
    ),
    "a far column": lambda real: real * np.array([1.0, 1e50, 1.0, 1.0, 1.0])[:, None],
    "half of the rows": lambda real: real * 1e50 ** (np.arange(real.shape[1]) % 2),
    "denormal numbers": lambda real: real * 1e-310,
    "all scales": lambda real: real * np.array([1e50, 1e-310, 0.0, 1.0, 1e-50])[:, None],
}


def make_extreme(name, missing):
    rows = make_rows(60, missing)
    real = EXTREMES[name](rows.real)
    if rows.observed is not None:
        real = np.where(rows.observed, real, 0.0)
    return Rows(real, rows.observed, rows.codes)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("strength", [0.0, 1.0, 1e300])
def test_extreme_rows_and_priors_give_numbers(name, extreme, strength):
    family = families(strength)[name]
    rng = np.random.default_rng(0)
    for missing, scale in itertools.product((0.0, 0.3, 0.7), (1e-300, 1.0, 1e12)):
        rows = make_extreme(extreme, missing)
        weights = scale * rng.dirichlet(np.ones(3), size=rows.n_rows).T
        parameters = family.start(rows, weights)
        prepared = family.prepare(rows)
        _, notes = family.evaluate(prepared, parameters)
        parameters = family.maximise(
            family.accumulate(prepared, parameters, weights, notes)
        )
        coordinates = family.coordinates(parameters, weights.sum(axis=1))
        point = coordinates.at(np.zeros(coordinates.size))
        log_density, notes = family.evaluate(prepared, point.parameters)
        signed = family.accumulate(
            prepared, point.parameters, weights * rng.choice([-1, 1], (3, 1)), notes
        )
        family.proper(signed)
        results = [log_density, point.gradient(signed), point.prior_gradient()]
        results += [family.log_prior(parameters)]
        results += family.surprise(prepared, point.parameters, notes)
        results += [family.impute(rows, parameters, weights / weights.sum(axis=0)).real]
        assert all(np.isfinite(result).all() for result in results)


@pytest.mark.parametrize("name", ["subspace", "refined subspace"])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_subspaces_of_extreme_rows(name, extreme):
    kind = type(families()[name])
    for missing in (0.0, 0.3):
        rows = make_extreme(extreme, missing)
        subspace = principal_subspace(rows, np.ones(60), 2, 1e-6, missing == 0.0)
        family = kind(VariancePrior(np.ones(2), 1.0), subspace)
        parameters = family.start(rows, np.ones((1, 60)))
        log_density, _ = family.evaluate(family.prepare(rows), parameters)
        assert np.isfinite(log_density).all()


def test_strong_priors_of_large_variances():
    prior = VariancePrior(np.array([1e100, 1.0]), strength=1e300)
    for family in (DiagonalGaussian(prior), DiagonalGaussian(prior, spherical=True)):
        parameters = family.maximise(family.zero_statistics(1))
        assert np.isfinite(parameters.variances).all()
    parameters = FullGaussian(prior).maximise(FullGaussian(prior).zero_statistics(1))
    np.testing.assert_allclose(np.diagonal(parameters.covariances[0]), [1e100, 1.0])


def test_columns_of_any_scale_keep_their_own_variances():
    """Rounding of the largest variance does not reach the others."""
    rng = np.random.default_rng(0)
    real = rng.normal(size=(4, 100)) * np.array([1e50, 1.0, 1e-4, 1.0])[:, None]
    real[3] = real[1]  # singular, so that the floor is needed
    rows = Rows(real, None, np.empty((0, 100), np.int32))
    family = FullGaussian(VariancePrior(np.ones(4), floor=1e-6))
    found = family.start(rows, np.ones((1, 100)))
    variances = real.var(axis=1)
    diagonal = np.diagonal(found.covariances[0])
    np.testing.assert_allclose(diagonal[[0, 1, 3]], variances[[0, 1, 3]], rtol=1e-4)
    assert 1e-6 <= diagonal[2] < 1e-5
    np.testing.assert_allclose(
        found.whiteners[0] @ found.covariances[0] @ found.whiteners[0].T,
        np.eye(4),
        atol=1e-6,
    )


def test_units_of_any_size():
    _, _, parameters = setup("full", 0.0, None)
    scale = np.array([1e-200, 1e200, 1e150, 1.0, 1e-150])
    flat = FullParameters(
        parameters.means, parameters.covariances * np.eye(D), parameters.whiteners
    )
    with np.errstate(over="ignore"):  # a variance of 1e400 is not a number
        moved = flat.affine(scale, np.zeros(D)).covariances
    assert not np.isnan(moved).any()


def test_memory_is_known_before_any_of_it_is_taken():
    prior = VariancePrior(np.ones(20_000))
    full, tied = FullGaussian(prior), FullGaussian(prior, tied=True)
    diagonal = DiagonalGaussian(prior)
    assert full.parameter_bytes(10) > 10 * 8 * 3 * 20_000**2
    assert tied.parameter_bytes(10) < 0.2 * full.parameter_bytes(10)
    assert diagonal.parameter_bytes(10) < 1e8
    both = Product((diagonal, Categorical((3, 2))))
    assert both.parameter_bytes(10) > diagonal.parameter_bytes(10)
    few = families()["subspace"]
    assert 0 < few.parameter_bytes(2) < families()["full"].parameter_bytes(20)


@pytest.mark.parametrize("name", ["full", "diag", "tied"])
def test_memory_of_an_m_step_is_estimated_within_a_factor_of_three(name):
    d, n_components = 300, 3
    prior = VariancePrior(np.ones(d))
    family = {
        "full": FullGaussian(prior),
        "tied": FullGaussian(prior, tied=True),
        "diag": DiagonalGaussian(prior),
    }[name]
    tracemalloc.start()
    family.maximise(family.zero_statistics(n_components))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 3 < family.parameter_bytes(n_components) < 3 * peak


# Families with no more than what is required --------------------------------------------


@dataclass(frozen=True, eq=False)
class Rates(Parameters):
    """Rates (J, d)."""

    rates: np.ndarray


@dataclass
class Durations(Statistics):
    """Weighted counts and sums of what is observed, (J, d)."""

    counts: np.ndarray
    sums: np.ndarray


@dataclass(frozen=True)
class Exponential(Family):
    """Waiting times: ``log p(x) = log rate - rate x``."""

    n_columns: int

    def width(self, n_components, observed=None):
        return n_components + 2 * self.n_columns

    def prepare(self, rows):
        mask = np.ones_like(rows.real) if rows.observed is None else rows.observed
        return np.concatenate([rows.real, mask])

    def evaluate(self, prepared, parameters):
        rates = parameters.rates
        return np.hstack([-rates, np.log(rates)]) @ prepared, None

    def accumulate(self, prepared, parameters, weights, notes):
        sums = weights @ prepared.T
        return Durations(sums[:, self.n_columns :], sums[:, : self.n_columns])

    def zero_statistics(self, n_components):
        shape = (n_components, self.n_columns)
        return Durations(np.zeros(shape), np.zeros(shape))

    def maximise(self, statistics):
        return Rates((statistics.counts + 1.0) / (statistics.sums + 1.0))


def waiting_times(n_rows=4000):
    rng = np.random.default_rng(0)
    rates = np.array([[0.2, 5.0], [4.0, 0.5]])
    real = rng.exponential(1.0 / rates[rng.integers(2, size=n_rows)]).T
    observed = rng.random(real.shape) < 0.9
    codes = np.empty((0, n_rows), np.int32)
    return Rows(np.where(observed, real, 0.0), observed, codes), rates


def test_six_methods_are_enough_for_em():
    rows, rates = waiting_times()
    solution = fitted_by_em(Exponential(2), rows, 2)
    found = solution.model.components.rates
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], rates, rtol=0.15)
    assert np.diff(solution.trace).min() > -1e-3  # the M-step has a trace of a prior


OPTIONAL = {
    "coordinates": (None, None),
    "expected_statistics": (None, None),
    "proper": (None,),
    "impute": (None, None, None),
    "draw": (None, None, None, None),
    "sample": (None, None, None),
    "marginal": (None, [], []),
    "surprise": (None, None, None),
    "n_parameters": (3,),
}


@pytest.mark.parametrize("capability", OPTIONAL)
def test_families_name_what_they_lack(capability):
    bare = Exponential(2)
    assert not bare.offers(capability)
    assert not Product((families()["full"], bare)).offers(capability)
    with pytest.raises(UnsupportedError, match="Exponential does not offer"):
        getattr(bare, capability)(*OPTIONAL[capability])


@pytest.mark.parametrize("name", FAMILIES)
def test_families_of_the_library_offer_everything(name):
    assert all(families()[name].offers(capability) for capability in OPTIONAL)


@pytest.mark.parametrize("name", FAMILIES)
def test_two_sets_of_parameters_are_merged_component_by_component(name):
    family, rows, old = setup(name, 0.25, None)
    new = make_mixture(family, make_rows(200, seed=1), seed=5).components
    if name == "tied":
        new = FullParameters(new.means, old.covariances, old.whiteners)
    assert old.n_components == new.n_components == 5
    both = family.concatenate([old, new], [1.0, 2.0])
    assert both.n_components == 10
    merged = both.take(np.array([0, 6, 2, 8, 9]))
    prepared = family.prepare(rows)
    before, after, mixed = (family.evaluate(prepared, p)[0] for p in (old, new, merged))
    np.testing.assert_allclose(mixed[[0, 2]], before[[0, 2]], atol=1e-9)
    np.testing.assert_allclose(mixed[[1, 3, 4]], after[[1, 3, 4]], atol=1e-9)


@dataclass(frozen=True, eq=False)
class SharedRates(Rates):
    """Rates that all components share, (1, d)."""

    scale: np.ndarray

    def is_shared(self, name):
        return name == "scale"


def test_shared_arrays_are_averaged_by_counts():
    parts = [
        SharedRates(np.full((n, 2), float(n)), np.full((1, 2), float(n))) for n in (1, 3)
    ]
    joined = Exponential(2).concatenate(parts, [3.0, 1.0])
    assert joined.n_components == 4
    np.testing.assert_array_equal(joined.scale, [[1.5, 1.5]])
    np.testing.assert_array_equal(joined.rates[:, 0], [1.0, 3.0, 3.0, 3.0])
