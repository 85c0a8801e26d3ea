"""Covariances in a subspace: from principal components to classifiers."""

import numpy as np
import pytest
from helpers import plain_classifier
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.decomposition import PCA

import hybridmix
from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.data import Rows
from hybridmix.families.subspace import chosen_n_factors, principal_subspace
from hybridmix.families.subspace.distinct import distinct_rows
from hybridmix.families.subspace.principal import spectrum


def rows_of(X):
    observed = ~np.isnan(X.T)
    real = np.nan_to_num(X.T)
    codes = np.empty((0, len(X)), np.int32)
    return Rows(real, None if observed.all() else observed, codes)


def factor_rows(n_rows, d=30, q=3, noise=0.3, seed=0):
    """Rows near a subspace, and their covariance."""
    rng = np.random.default_rng(seed)
    loading = rng.normal(size=(d, q))
    X = rng.normal(size=(n_rows, q)) @ loading.T + noise * rng.normal(size=(n_rows, d))
    return X, loading @ loading.T + noise**2 * np.eye(d)


def covariance_of(subspace):
    return subspace.loading @ subspace.loading.T + np.diag(subspace.noise)


def holes_in(X, rate, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(X.shape) < rate, np.nan, X)


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200], y[:1200], X[1200:], y[1200:]


# Principal components -------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(400, 12), (25, 60)])
def test_complete_rows_give_probabilistic_principal_components(shape):
    X = factor_rows(*shape)[0]
    found = principal_subspace(rows_of(X), np.ones(len(X)), 3, 1e-9)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    values[:-3] = values[:-3].mean()  # the noise of highest likelihood
    np.testing.assert_allclose(covariance_of(found), (vectors * values) @ vectors.T)
    np.testing.assert_allclose(found.centre, X.mean(axis=0))
    if shape[0] > shape[1]:
        theirs = PCA(3).fit(X).get_covariance() * (len(X) - 1) / len(X)
        np.testing.assert_allclose(covariance_of(found), theirs)


def test_leading_eigenvectors_of_a_flat_spectrum():
    X = np.random.default_rng(0).normal(size=(900, 600))
    found = spectrum(X.T, np.ones(900), 20)
    exact = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1][:20]
    np.testing.assert_allclose(found.values, exact)


def test_weights_of_rows_are_repetitions():
    X = factor_rows(60)[0]
    weights = np.random.default_rng(1).integers(1, 4, size=60)
    weighted = principal_subspace(rows_of(X), weights.astype(float), 2, 1e-9)
    X_repeated = np.repeat(X, weights, axis=0)
    repeated = principal_subspace(rows_of(X_repeated), np.ones(len(X_repeated)), 2, 1e-9)
    np.testing.assert_allclose(covariance_of(weighted), covariance_of(repeated))


@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_em_finds_the_subspace_of_rows_with_holes(rate):
    X, true = factor_rows(2000)
    holes = rows_of(holes_in(X, rate))
    found = covariance_of(principal_subspace(holes, np.ones(2000), 3, 1e-9))
    filled = principal_subspace(
        rows_of(np.where(holes.observed.T, X, X.mean(axis=0))), np.ones(2000), 3, 1e-9
    )
    error = np.linalg.norm(found - true) / np.linalg.norm(true)
    assert error < 0.1
    assert error < 0.3 * np.linalg.norm(covariance_of(filled) - true) / np.linalg.norm(
        true
    )


def test_columns_that_few_rows_have_get_a_small_loading():
    X, _ = factor_rows(300, noise=0.05)
    X[3:, 0] = np.nan
    X[0, 0] = 8.0  # three rows and three factors: a plain regression would copy it
    found = principal_subspace(rows_of(holes_in(X, 0.1)), np.ones(300), 3, 1e-6)
    assert np.linalg.norm(found.loading[0]) < 4.0


def test_noise_of_columns_follows_what_the_subspace_leaves():
    X, _ = factor_rows(2000, d=12)
    X[:, 0] += np.random.default_rng(1).normal(size=2000)
    equal = principal_subspace(rows_of(X), np.ones(2000), 3, 1e-6)
    own = principal_subspace(rows_of(X), np.ones(2000), 3, 1e-6, equal_noise=False)
    assert np.ptp(equal.noise) == 0.0
    assert own.noise.argmax() == 0
    assert own.noise[0] > 2.0 * own.noise[1:].max()


@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_number_of_factors_by_likelihood_and_by_variance(rate):
    X, _ = factor_rows(500, d=40, q=4, noise=0.5)
    rows = rows_of(holes_in(X, rate) if rate else X)
    assert chosen_n_factors(rows, np.ones(500), 1e-6) == 4
    shares = np.cumsum(np.linalg.eigvalsh(np.cov(X.T))[::-1])
    shares /= shares[-1]
    if not rate:
        expected = int(np.argmax(shares >= 0.8)) + 1
        assert chosen_n_factors(rows, np.ones(500), 1e-6, 0.8) == expected


def test_number_of_factors_of_tiny_tables():
    for shape in ((1, 5), (2, 5), (3, 1), (7, 2), (5, 90), (36, 90), (80, 90)):
        X = np.random.default_rng(0).normal(size=shape)
        assert 1 <= chosen_n_factors(rows_of(X), np.ones(shape[0]), 1e-6) <= shape[1]


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("explained", [None, 0.8])
@pytest.mark.parametrize("seed", range(2))
def test_number_of_factors_counts_weights_as_repetitions(rate, explained, seed):
    X = factor_rows(70, d=25, q=6, noise=1.5, seed=seed)[0]
    X = holes_in(X, rate, seed) if rate else X
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, size=70)
    X_repeated = rng.permutation(np.repeat(X, weights, axis=0))
    weighted = chosen_n_factors(rows_of(X), weights.astype(float), 1e-6, explained)
    scaled = chosen_n_factors(rows_of(X), 1e300 * weights, 1e-6, explained)
    ones = np.ones(len(X_repeated))
    repeated = chosen_n_factors(rows_of(X_repeated), ones, 1e-6, explained)
    assert weighted == scaled == repeated


def test_subspace_of_rows_with_holes_counts_weights_as_repetitions():
    X = holes_in(factor_rows(60)[0], 0.3)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, size=60)
    weighted = principal_subspace(rows_of(X), weights.astype(float), 3, 1e-9)
    X_repeated = rng.permutation(np.repeat(X, weights, axis=0))
    repeated = principal_subspace(rows_of(X_repeated), np.ones(len(X_repeated)), 3, 1e-9)
    np.testing.assert_allclose(weighted.loading, repeated.loading, atol=1e-9)
    np.testing.assert_allclose(weighted.noise, repeated.noise)


def test_fits_count_weights_as_repetitions():
    rng = np.random.default_rng(0)
    X = rng.random((15, 30))
    weights = rng.integers(0, 5, size=15)
    options = {"covariance_type": "subspace", "n_components": 2, "random_state": 0}
    weighted = MixtureDensity(**options).fit(X, sample_weight=weights)
    repeated = MixtureDensity(**options).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.loading_, repeated.loading_)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X))


@pytest.mark.parametrize("n_rows", [5, 3000])
@pytest.mark.parametrize("explained", [None, 0.9])
def test_a_single_observed_cell_is_enough(n_rows, explained):
    X = np.full((n_rows, 4), np.nan)
    X[4, 2] = 1.5
    assert chosen_n_factors(rows_of(X), np.ones(n_rows), 1e-6, explained) >= 1
    found = principal_subspace(rows_of(X), np.ones(n_rows), 2, 1e-6)
    assert np.isfinite(covariance_of(found)).all()
    assert found.centre[2] == 1.5
    X[4, 2] = np.nan
    assert chosen_n_factors(rows_of(X), np.ones(n_rows), 1e-6, explained) >= 1
    found = principal_subspace(rows_of(X), np.ones(n_rows), 2, 1e-6)
    assert np.isfinite(covariance_of(found)).all()


def test_distinct_rows_have_summed_weights():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, np.nan], [2.0, 0.0], [5.0, 5.0]])
    rows, weights = distinct_rows(rows_of(X), np.array([1.0, 2.0, 3.0, 4.0, 0.0]))
    assert rows.n_rows == 3
    order = np.lexsort([rows.observed[1], rows.real[0]])
    np.testing.assert_allclose(weights[order], np.array([3.0, 3.0, 4.0]) / (10 / 3))
    small = np.random.default_rng(0).integers(3, size=(2000, 6)).astype(float)
    rows, weights = distinct_rows(rows_of(small), np.ones(2000))
    assert rows.n_rows == len(np.unique(small, axis=0))


# Estimators -----------------------------------------------------------------------------


def test_complete_rows_are_a_full_covariance_model_of_the_factors():
    """Where noise vanishes, densities of latent variables are those of the scores."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=(300, 2)) @ np.array([[2.0, 0.3], [0.0, 1.0]])
    basis = np.linalg.qr(rng.normal(size=(40, 2)))[0]
    X = t @ basis.T + 1e-3 * rng.normal(size=(300, 40))
    subspace = MixtureDensity(
        covariance_type="subspace", n_factors=2, covariance_prior=0, n_components=1
    )
    basis = np.linalg.qr(subspace.fit(X).loading_)[0]
    full = MixtureDensity(covariance_prior=0, n_components=1, covariance_type="full").fit(
        X @ basis
    )
    inside = subspace.score_samples(X) - full.score_samples(X @ basis)
    # What remains is the density of the noise, which does not depend on the component.
    outside = -0.5 * np.square(X - X.mean(0) - (X - X.mean(0)) @ basis @ basis.T).sum(1)
    outside /= subspace.noise_variances_[0]
    np.testing.assert_allclose(inside - outside, np.mean(inside - outside), atol=0.05)


def test_attributes_describe_the_density_in_the_units_of_the_table():
    X, _ = factor_rows(300, d=6, q=2)
    X = 50.0 * X + 7.0
    model = MixtureDensity(
        2, covariance_type="subspace", n_factors=2, random_state=0, covariance_prior=1.0
    )
    model.fit(X)
    assert model.loading_.shape == (6, 2)
    assert model.covariances_.shape == (2, 2, 2)
    dense = [
        np.exp(_log_normal(X, mean, _dense_covariance(model, k)))
        for k, mean in enumerate(model.means_)
    ]
    np.testing.assert_allclose(
        model.score_samples(X), np.log(model.mixing_ @ np.array(dense)), atol=1e-8
    )
    model.set_params(covariance_type="diag").fit(X)
    assert not hasattr(model, "loading_")


def _dense_covariance(model, k):
    latent = model.loading_ @ model.covariances_[k] @ model.loading_.T
    return latent + np.diag(model.noise_variances_)


def _log_normal(X, mean, covariance):
    from scipy.stats import multivariate_normal

    return multivariate_normal.logpdf(X, mean, covariance)


def test_digits_with_constant_pixels_and_holes():
    X, y, X_test, y_test = digits()
    model = plain_classifier(covariance_type="subspace", random_state=0)
    model.fit(X, y)
    full = plain_classifier(random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > max(0.94, full.score(X_test, y_test))
    assert model.score(holes_in(X_test, 0.5), y_test) > 0.85


def test_training_with_holes():
    X, y, X_test, y_test = digits()
    model = plain_classifier(
        "likelihood", covariance_type="subspace", n_factors=16, random_state=0
    ).fit(holes_in(X, 0.3), y)
    assert model.score(X_test, y_test) > 0.9


@pytest.mark.parametrize("objective", ["hybrid", "conditional", "margin"])
@pytest.mark.parametrize("solver", ["lbfgs", "baum-welch"])
def test_all_objectives_and_solvers(objective, solver):
    X, y = load_wine(return_X_y=True)
    model = plain_classifier(
        objective, solver=solver, covariance_type="subspace", n_steps=10, random_state=0
    ).fit(holes_in(X, 0.1), y)
    assert np.diff(model.trace_).min() >= -1e-9
    assert model.score(X, y) > 0.9


def test_refining_the_subspace_raises_the_objective():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    options = {"covariance_type": "subspace", "n_factors": 2, "n_steps": 30}
    fixed = plain_classifier(**options, random_state=0).fit(X, y)
    refined = plain_classifier(**options, refine_subspace=True, random_state=0).fit(X, y)
    assert refined.trace_[-1] > fixed.trace_[-1] + 0.05
    assert not np.allclose(refined.loading_, fixed.loading_)
    # A refined model is a start like any other, and keeps its subspace.
    again = plain_classifier("likelihood", **options, init=refined).fit(X, y)
    np.testing.assert_allclose(again.loading_, refined.loading_)


def test_refining_many_factors():
    X, y, X_test, y_test = digits()
    model = plain_classifier(
        covariance_type="subspace",
        n_factors=20,
        refine_subspace=True,
        n_steps=5,
        random_state=0,
    ).fit(X, y)
    assert model.score(X_test, y_test) > 0.93


def test_refining_needs_a_gradient_method():
    X, y = load_wine(return_X_y=True)
    model = plain_classifier(
        covariance_type="subspace", refine_subspace=True, solver="baum-welch"
    )
    with pytest.raises(ValueError, match="refine_subspace"):
        model.fit(X, y)


@pytest.mark.parametrize("d", [2, 5, 12])
def test_few_columns_are_as_good_as_with_full_covariances(d):
    X, y = make_blobs(
        600, d, centers=6, cluster_std=1.2, center_box=(-5, 5), random_state=3
    )
    scores = {
        kind: plain_classifier("likelihood", covariance_type=kind)
        .fit(X[:300], y[:300])
        .score(X[300:], y[300:])
        for kind in ("full", "subspace")
    }
    assert scores["subspace"] >= scores["full"] - 0.01


def test_more_columns_than_rows():
    """Like gene expression: 60 rows, 2000 columns, two classes that differ in a few."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2000))
    X[:, :200] += 1.5 * y[:, None]
    model = plain_classifier(covariance_type="subspace", random_state=0)
    order = rng.permutation(60)
    model.fit(X[order[:40]], y[order[:40]])
    assert model.score(X[order[40:]], y[order[40:]]) > 0.8
    many = plain_classifier(covariance_type="subspace", n_factors=500)
    many.fit(X[order[:40]], y[order[:40]])
    assert many.loading_.shape[1] < 40


def test_nearly_noiseless_and_redundant_columns():
    rng = np.random.default_rng(0)
    t = rng.normal(size=(200, 2))
    X = np.hstack([t, t, t @ rng.normal(size=(2, 4)), np.ones((200, 2))])
    for n_factors in (1, 2, 5, 10):
        model = MixtureDensity(
            covariance_type="subspace",
            n_factors=n_factors,
            n_components=1,
            covariance_prior=1.0,
        ).fit(X)
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(model.score_samples(holes_in(X, 0.5))).all()
        assert model.noise_variances_.min() > 0.0


def test_units_of_columns_are_kept_if_they_are_comparable():
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(40) < 30, 1.0, 0.01)
    X = rng.normal(size=(100, 40)) * scale
    options = {"covariance_type": "subspace", "n_factors": 2}
    comparable = MixtureDensity(**options).fit(X)
    assert np.ptp(comparable.schema_.scale) == 0.0
    few = MixtureDensity(**options).fit(X[:, 20:])
    np.testing.assert_allclose(few.schema_.scale, X[:, 20:].std(axis=0))
    X[:, 0] *= 1000.0
    mixed = MixtureDensity(**options).fit(X)
    np.testing.assert_allclose(mixed.schema_.scale, X.std(axis=0))


def test_weights_have_no_unit_where_rows_have_holes():
    X = holes_in(factor_rows(200)[0], 0.2)
    plain, small = (
        principal_subspace(rows_of(X), weight * np.ones(200), 3, 1e-9)
        for weight in (1.0, 1e-3)
    )
    np.testing.assert_allclose(covariance_of(plain), covariance_of(small), rtol=1e-6)


def test_share_of_the_variance_is_that_of_all_columns():
    X = np.vstack([np.eye(3), -np.eye(3)])
    weights = np.ones(6)
    for share, expected in ((0.3, 1), (0.4, 2), (0.9, 3)):
        assert chosen_n_factors(rows_of(X), weights, 1e-9, share) == expected


def test_single_labels_borrow_the_spread_of_unlabelled_rows():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 150)
    X = rng.normal(size=(300, 8)) + 5.0 * truth[:, None] * (np.arange(8) < 2)
    scores = []
    for seed in range(6):
        first, second = np.random.default_rng(seed).integers(150, size=2)
        y = np.full(300, -1)
        y[[first, 150 + second]] = [0, 1]
        model = plain_classifier(covariance_type="subspace", n_factors=2)
        scores.append(model.fit(X, y).score(X, truth))
    assert np.mean(scores) > 0.85


def test_constant_tables_of_many_columns():
    model = MixtureDensity(
        covariance_type="subspace", n_factors=2, n_components=1, covariance_prior=1.0
    )
    model.fit(np.ones((700, 600)))
    assert np.isfinite(model.score_samples(np.ones((2, 600)))).all()


def test_imputation_by_factors_beats_means():
    X, _ = factor_rows(400)
    holes = holes_in(X, 0.3)
    imputer = MixtureImputer(
        1, covariance_type="subspace", random_state=0, covariance_prior=1.0
    )
    filled = imputer.fit_transform(holes)
    hole = np.isnan(holes)
    np.testing.assert_array_equal(filled[~hole], X[~hole])
    assert np.std((filled - X)[hole]) < 0.4 * np.std(X[hole])


def test_classifiers_fill_hidden_parts_of_images():
    X, y, X_test, _ = digits()
    model = plain_classifier(covariance_type="subspace", random_state=0).fit(X, y)
    hidden = X_test.reshape(-1, 8, 8).copy()
    hidden[:, 2:6, 2:6] = np.nan
    hidden = hidden.reshape(len(hidden), -1)
    hole = np.isnan(hidden)
    errors = {}
    for draw in (False, True):
        filled = model.impute(hidden, draw=draw, random_state=0)
        np.testing.assert_array_equal(filled[~hole], X_test[~hole])
        errors[draw] = np.std((filled - X_test)[hole])
    means = np.broadcast_to(X.mean(axis=0), X_test.shape)
    assert errors[False] < 0.75 * np.std((means - X_test)[hole])
    assert errors[False] < errors[True]


def test_outliers_that_leave_the_subspace():
    X, _ = factor_rows(400)
    rng = np.random.default_rng(1)
    outliers = rng.normal(size=(20, 30)) * X.std(axis=0)
    detector = MixtureOutlierDetector(
        1, covariance_type="subspace", random_state=0, covariance_prior=1.0
    )
    detector.fit(X)
    assert (detector.predict(outliers) == -1).all()
    assert (detector.predict(holes_in(outliers, 0.3)) == -1).mean() > 0.9
    assert (detector.predict(X) == 1).mean() > 0.9


def test_mixed_with_categories_and_unlabelled_rows():
    pd = pytest.importorskip("pandas")
    X, y, X_test, y_test = digits()
    frame = pd.DataFrame(X).rename(columns=str)
    frame["parity"] = pd.Categorical(np.where(y % 2, "odd", "even"))
    frame_test = pd.DataFrame(X_test).rename(columns=str)
    frame_test["parity"] = pd.Categorical(np.where(y_test % 2, "odd", "even"))
    partly = np.where(np.arange(len(y)) % 4 == 0, y, -1)
    model = plain_classifier(
        covariance_type="subspace", n_factors=20, random_state=0
    ).fit(frame, partly)
    assert model.score(frame_test, y_test) > 0.93
    drawn, _ = model.sample(5, random_state=0)
    assert list(drawn.columns) == list(frame.columns)


def test_saved_models_predict_the_same(tmp_path):
    X, y = load_wine(return_X_y=True)
    model = plain_classifier(
        n_components=2, covariance_type="subspace", refine_subspace=True, random_state=0
    ).fit(X, y)
    hybridmix.save(model, tmp_path / "model.hmx")
    loaded = hybridmix.load(tmp_path / "model.hmx")
    np.testing.assert_array_equal(model.predict_proba(X), loaded.predict_proba(X))
    np.testing.assert_array_equal(
        model.score_samples(holes_in(X, 0.3)), loaded.score_samples(holes_in(X, 0.3))
    )


def test_number_of_threads_does_not_matter():
    X, y, X_test, _ = digits()
    options = {"covariance_type": "subspace", "n_factors": 10, "random_state": 0}
    one, two = (
        plain_classifier(**options, n_jobs=n, n_steps=5).fit(holes_in(X, 0.1), y)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.predict_proba(X_test), two.predict_proba(X_test))


def test_search_chooses_a_number_of_factors():
    X, y, X_test, y_test = digits()
    search = HybridMixtureClassifierCV(
        n_components=[1],
        covariance_type="subspace",
        n_factors=[2, 16],
        tradeoff=[0, 3],
        cv=3,
        random_state=0,
    ).fit(X[:600], y[:600])
    assert search.best_params_["n_factors"] == 16
    assert search.score(X_test, y_test) > 0.9


@pytest.mark.parametrize("n_factors", [0, 14, -1, 1.5, 0.0, "many", None, True])
def test_impossible_numbers_of_factors_are_refused(n_factors):
    X, y = load_wine(return_X_y=True)
    model = plain_classifier(covariance_type="subspace", n_factors=n_factors)
    with pytest.raises(ValueError, match="n_factors"):
        model.fit(X, y)


def test_unknown_noise_is_refused():
    with pytest.raises(ValueError, match="noise='loud' is not one of common, columns"):
        MixtureDensity(
            noise="loud", n_components=1, covariance_type="full", covariance_prior=1.0
        ).fit(np.eye(3))
