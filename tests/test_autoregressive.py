"""Autoregressive emissions: densities, gradients, regressions and filling."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from hybridmix import HMMDensity, HybridHMMClassifier
from hybridmix.data.rows import Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.families import AutoregressiveGaussian, FullGaussian, VariancePrior
from hybridmix.models.chain_filling import smoothed_frames

# Every test runs in NumPy and with compiled kernels.
pytestmark = pytest.mark.usefixtures("kernels")

D, N, J = 2, 25, 3


def pairs(seed: int = 0, holes: float = 0.2) -> Rows:
    generator = np.random.default_rng(seed)
    real = generator.normal(size=(2 * D, N)).cumsum(axis=0)
    observed = generator.random((2 * D, N)) >= holes
    return Rows(np.where(observed, real, 0.0), observed, np.empty((0, N), np.int32))


def family(tied: bool = False) -> AutoregressiveGaussian:
    correlations = 0.5 * np.eye(2 * D) + 0.5
    prior = VariancePrior(np.array([1.0, 2.0, 1.0, 2.0]), 3.0, 1e-3, correlations)
    return AutoregressiveGaussian(FullGaussian(prior, tied))


def started(tied: bool = False, rows: Rows | None = None):
    own = family(tied)
    memberships = np.random.default_rng(1).random((J, N))
    return own, own.start(pairs() if rows is None else rows, memberships)


@pytest.mark.parametrize("tied", [False, True])
def test_complete_pairs_have_the_density_of_a_regression(tied):
    rows = pairs(holes=0.0)
    own, parameters = started(tied, rows)
    log_density, _ = own.evaluate(own.prepare(rows), parameters)
    for j in range(J):
        g = 0 if tied else j
        explained = parameters.regressions[g] @ rows.real[:D]
        left = rows.real[D:] - parameters.intercepts[j][:, None] - explained
        residual = multivariate_normal(np.zeros(D), parameters.residuals.covariances[g])
        assert_allclose(log_density[j], residual.logpdf(left.T))


def test_holes_are_marginalised_by_the_gaussian_of_pairs():
    rows = pairs()
    own, parameters = started()
    log_density, _ = own.evaluate(own.prepare(rows), parameters)
    for n in range(N):
        seen = rows.observed[:, n]
        before = seen & (np.arange(2 * D) < D)
        expected = np.zeros(J)
        for sign, columns in ((1.0, seen), (-1.0, before)):
            if columns.any():
                for j in range(J):
                    mean = parameters.joint.means[j, columns]
                    covariance = parameters.joint.covariances[j][np.ix_(columns, columns)]
                    gaussian = multivariate_normal(mean, covariance)
                    expected[j] += sign * gaussian.logpdf(rows.real[columns, n])
        assert_allclose(log_density[:, n], expected, atol=1e-10)


@pytest.mark.parametrize("tied", [False, True])
def test_gradient_by_finite_differences(tied):
    rows, generator = pairs(), np.random.default_rng(2)
    own, start = started(tied)
    prepared, weights = own.prepare(rows), generator.normal(size=(J, N))
    coordinates = own.coordinates(start, np.full(J, 10.0))
    place = 0.3 * generator.normal(size=coordinates.size)

    def value(vector):
        parameters = coordinates.at(vector).parameters
        log_density, _ = own.evaluate(prepared, parameters)
        return (weights * log_density).sum() + own.log_prior(parameters)

    point = coordinates.at(place)
    _, notes = own.evaluate(prepared, point.parameters)
    statistics = own.accumulate(prepared, point.parameters, weights, notes)
    found = point.gradient(statistics) + point.prior_gradient()
    step = 1e-5
    expected = [
        (value(place + step * e) - value(place - step * e)) / (2 * step)
        for e in np.eye(coordinates.size)
    ]
    assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert_allclose(coordinates.vector(point.parameters), place, atol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_rounding_is_no_gain(tied):
    """Far away, densities of pairs and of frames before are huge and about the same."""
    own, start = started(tied)
    coordinates = own.coordinates(start, np.full(J, 10.0))
    rows = pairs()
    for size in (1.0, 1e4, 1e8, 1e20):
        vector = size * np.random.default_rng(5).normal(size=coordinates.size)
        lower, upper = coordinates.bounds()
        with np.errstate(all="ignore"):
            parameters = coordinates.at(np.clip(vector, lower, upper)).parameters
            log_density, _ = own.evaluate(own.prepare(rows), parameters)
        assert np.all(log_density <= parameters.residuals.highest)
    # Complete frames reach it where regressions hit them.
    z = rows.real[:D]
    x = start.regressions[0] @ z + start.intercepts[0][:, None]
    hit = Rows(np.vstack([z, x]), None, rows.codes)
    log_density, _ = own.evaluate(own.prepare(hit), start)
    bound = -0.5 * np.linalg.slogdet(2 * np.pi * start.residuals.covariances[0])[1]
    assert_allclose(log_density[0], bound)
    assert bound <= start.residuals.highest[0]


def test_m_step_on_complete_pairs_is_weighted_least_squares():
    rows = pairs(holes=0.0)
    own = AutoregressiveGaussian(FullGaussian(VariancePrior(np.ones(2 * D)), False))
    weights = np.random.default_rng(3).random((1, N))
    parameters = own.start(rows, weights)
    design = np.vstack([np.ones(N), rows.real[:D]]).T * np.sqrt(weights[0])[:, None]
    target = rows.real[D:].T * np.sqrt(weights[0])[:, None]
    solution, *_ = np.linalg.lstsq(design, target, rcond=None)
    assert_allclose(parameters.intercepts[0], solution[0])
    assert_allclose(parameters.regressions[0], solution[1:].T)


@pytest.mark.parametrize("tied", [False, True])
def test_smoothing_solves_the_whole_quadratic(tied):
    _, parameters = started(tied)
    generator = np.random.default_rng(4)
    lengths = np.array([4, 1, 3])
    n_frames = int(lengths.sum())
    observed = generator.random((D, n_frames)) > 0.5
    real = np.where(observed, generator.normal(size=(D, n_frames)), 0.0)
    codes = np.empty((0, n_frames), np.int32)
    rows = SequenceRows(Rows(real, observed, codes), lengths)
    posterior = generator.dirichlet(np.ones(J), n_frames).T
    found = smoothed_frames(rows, parameters, posterior)
    assert_allclose(found[observed], real[observed])

    def energy(values):
        total, current = 0.0, parameters.current
        for t in range(n_frames):
            for j in range(J):
                g = 0 if tied else j
                if t in rows.starts:
                    left = values[:, t] - current.means[j]
                    precision = current.precisions[g]
                else:
                    explained = parameters.regressions[g] @ values[:, t - 1]
                    left = values[:, t] - parameters.intercepts[j] - explained
                    precision = parameters.residuals.precisions[g]
                total += posterior[j, t] * left @ precision @ left
        return total

    for d, t in np.argwhere(~observed):
        step = np.zeros_like(found)
        step[d, t] = 1e-4
        slope = (energy(found + step) - energy(found - step)) / 2e-4
        assert abs(slope) < 1e-6


def walks(n_sequences: int = 30, length: int = 30, seed: int = 0):
    """Return smooth walks (class 0) and restless ones (class 1), with equal spreads."""
    generator = np.random.default_rng(seed)
    X, y = [], np.arange(n_sequences) % 2
    for label in y:
        slope = 0.95 if label == 0 else -0.5
        noise = generator.normal(size=(length, 2)) * np.sqrt(1.0 - slope**2)
        walk = noise.copy()
        for t in range(1, length):
            walk[t] = slope * walk[t - 1] + noise[t]
        X.append(walk * [3.0, 0.1] + [5.0, 1.0])
    return X, y


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_regressions_are_published_in_the_units_of_the_columns(covariance_type):
    X, y = walks()
    model = HMMDensity(
        1, autoregressive=True, covariance_type=covariance_type, covariance_prior=0.0
    ).fit([x for x, label in zip(X, y, strict=True) if label == 0])
    regressions = model.regressions_.reshape(2, 2)
    assert_allclose(np.diagonal(regressions), [0.95, 0.95], atol=0.05)
    centre = np.linalg.solve(np.eye(2) - regressions, model.intercepts_.ravel())
    assert_allclose(centre, [5.0, 1.0], rtol=0.3)
    assert np.all(np.diff(model.trace_) >= 0.0)
    model.check_consistent()


def test_classes_that_differ_in_time_only_are_told_apart():
    X, y = walks()
    options = {"topology": "ergodic", "covariance_type": "full", "tradeoff": 1.0}
    model = HybridHMMClassifier(1, autoregressive=True, **options).fit(X, y)
    new, truth = walks(seed=1)
    assert model.score(new, truth) == 1.0


def test_filling_follows_the_neighbours_in_time():
    X, y = walks(length=60)
    smooth = [x for x, label in zip(X, y, strict=True) if label == 0]
    model = HMMDensity(1, autoregressive=True, covariance_type="full").fit(smooth)
    holed = [x.copy() for x in smooth]
    for x in holed:
        x[10:50:4] = np.nan
    filled = model.impute(holed)
    plain = HMMDensity(1, covariance_type="full").fit(smooth).impute(holed)

    def error(found):
        left = [
            (f - x)[np.isnan(h)] for f, x, h in zip(found, smooth, holed, strict=True)
        ]
        return np.sqrt(np.mean(np.square(np.concatenate(left))))

    assert error(filled) < 0.5 * error(plain)


def test_mixed_columns_fill_both_kinds():
    X, _ = walks()
    mixed = [np.column_stack([x, x[:, 0] > 5.0]) for x in X]
    options = {"topology": "ergodic", "categorical_features": [2], "random_state": 0}
    model = HMMDensity(2, autoregressive=True, covariance_type="full", **options)
    model.fit(mixed)
    holed = [x.copy() for x in mixed]
    holed[0][5] = np.nan
    filled = model.impute(holed)
    assert np.isfinite(filled[0]).all()
    assert filled[0][5, 2] in (0.0, 1.0)
    assert_allclose(filled[1], mixed[1])


def test_autoregressive_needs_real_columns_and_their_covariances():
    X = [np.array([["a"], ["b"], ["a"]], dtype=object)] * 3
    with pytest.raises(ValueError, match="needs real columns"):
        HMMDensity(1, autoregressive=True).fit(X)
    with pytest.raises(ValueError, match="use 'full' or 'tied'"):
        HMMDensity(1, autoregressive=True, covariance_type="diag").fit(walks()[0])
