"""Agreement with models of scikit-learn and scipy that are special cases."""

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from scipy import integrate, stats
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from hybridmix import MixtureDensity

EXACT = {"covariance_prior": 0.0, "variance_floor": 1e-12}


@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "tied", "full"])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_same_optimum_as_gaussian_mixture(covariance_type, load):
    X = load(return_X_y=True)[0] if load is load_iris else load().data[:, :6]
    rng = np.random.default_rng(0)
    centres = X[rng.choice(len(X), 3, replace=False)]
    ours = MixtureDensity(
        3,
        covariance_type=covariance_type,
        init=centres,
        tol=1e-12,
        max_iter=5000,
        **EXACT,
    ).fit(X)
    precisions = {
        "spherical": lambda c: 1.0 / c,
        "diag": lambda c: 1.0 / c,
        "tied": np.linalg.inv,
        "full": np.linalg.inv,
    }[covariance_type]
    # From our optimum theirs must not move; from it they agree on every number.
    theirs = GaussianMixture(
        3,
        covariance_type=covariance_type,
        reg_covar=0.0,
        weights_init=ours.mixing_,
        means_init=ours.means_,
        precisions_init=precisions(ours.covariances_),
        tol=1e-12,
        max_iter=5000,
    ).fit(X)
    assert theirs.score(X) == pytest.approx(ours.score(X), rel=1e-6)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-3)
    np.testing.assert_allclose(
        ours.covariances_, theirs.covariances_, rtol=2e-2, atol=1e-3
    )
    np.testing.assert_allclose(
        ours.score_samples(X), theirs.score_samples(X), rtol=1e-3, atol=1e-2
    )


@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "tied", "full"])
def test_same_path_as_gaussian_mixture_from_the_same_start(covariance_type):
    X = load_iris().data
    start = MixtureDensity(
        3, covariance_type=covariance_type, init=X[[0, 60, 120]], tol=10.0, **EXACT
    ).fit(X)
    ours = MixtureDensity(
        3, covariance_type=covariance_type, init=start, tol=1e-10, max_iter=2000, **EXACT
    ).fit(X)
    inverse = np.linalg.inv if covariance_type in ("tied", "full") else np.reciprocal
    theirs = GaussianMixture(
        3,
        covariance_type=covariance_type,
        reg_covar=0.0,
        weights_init=start.mixing_,
        means_init=start.means_,
        precisions_init=inverse(start.covariances_),
        tol=1e-10,
        max_iter=2000,
    ).fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-6)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-6)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_one_full_component_per_class_is_quadratic_discriminant_analysis(load):
    X, y = load(return_X_y=True)
    X = X[:, :8]
    ours = plain_classifier("likelihood", **EXACT).fit(X, y)
    theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    # Some versions of QDA divide by n - 1.
    for c, (covariance, count) in enumerate(
        zip(theirs.covariance_, np.bincount(y), strict=True)
    ):
        factor = ours.covariances_[c, 0, 0] / covariance[0, 0]
        assert factor == pytest.approx(1.0) or factor == pytest.approx(1 - 1 / count)
        np.testing.assert_allclose(
            ours.covariances_[c], covariance * factor, rtol=1e-6, atol=1e-9
        )
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-9)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99


def test_one_tied_component_per_class_is_linear_discriminant_analysis():
    X, y = load_wine(return_X_y=True)
    ours = plain_classifier("likelihood", covariance_type="tied", **EXACT).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    np.testing.assert_allclose(
        ours.covariances_, theirs.covariance_, rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_one_diagonal_component_per_class_is_gaussian_naive_bayes(load):
    X, y = load(return_X_y=True)
    ours = plain_classifier("likelihood", covariance_type="diag", **EXACT).fit(X, y)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y)
    np.testing.assert_allclose(ours.covariances_, theirs.var_, rtol=1e-6)
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-6
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.1, 1.0, 3.0])
def test_one_component_per_class_is_categorical_naive_bayes(smoothing):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = (rng.integers(4, size=(300, 5)) + y[:, None]) % 4
    ours = plain_classifier(
        "likelihood", categorical_features=list(range(5)), smoothing=smoothing
    ).fit(X, y)
    theirs = CategoricalNB(alpha=smoothing).fit(X, y)
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), atol=1e-9
    )


def test_density_and_marginals_agree_with_scipy():
    X = load_iris().data
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)

    def reference(points, columns):
        return np.logaddexp.reduce(
            [
                np.log(weight)
                + stats.multivariate_normal.logpdf(
                    points[:, columns],
                    mean[columns],
                    covariance[np.ix_(columns, columns)],
                )
                for weight, mean, covariance in zip(
                    model.mixing_, model.means_, model.covariances_, strict=True
                )
            ]
        )

    np.testing.assert_allclose(model.score_samples(X), reference(X, [0, 1, 2, 3]))
    np.testing.assert_allclose(
        model.marginal([3, 1]).score_samples(X[:, [3, 1]]), reference(X, [3, 1])
    )
    holes = X.copy()
    holes[:, [0, 2]] = np.nan
    np.testing.assert_allclose(model.score_samples(holes), reference(X, [1, 3]))


def test_marginal_of_a_mixed_table_by_brute_force():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=200)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=200) + 3 * group,
            "weight": rng.normal(size=200) - group,
            "colour": np.where(rng.random(200) < 0.3 + 0.5 * group, "red", "blue"),
            "sort": rng.choice(["a", "b", "c"], size=200),
        }
    )
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(table)
    given = {"size": 0.7, "colour": "red"}

    def density(weight, sort):
        row = pd.DataFrame([{**given, "weight": weight, "sort": sort}])[list(table)]
        return float(np.exp(model.score_samples(row)[0]))

    total = sum(
        integrate.quad(lambda w, s=sort: density(w, s), -12, 12, epsabs=1e-9)[0]
        for sort in "abc"
    )
    hole = pd.DataFrame([{**given, "weight": np.nan, "sort": None}])[list(table)]
    assert np.exp(model.score_samples(hole)[0]) == pytest.approx(total, rel=1e-6)
    small = model.marginal(["colour", "size"])
    row = pd.DataFrame([given])[["colour", "size"]]
    assert np.exp(small.score_samples(row)[0]) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("mechanism", ["mcar", "mar"])
def test_em_with_holes_recovers_parameters_better_than_mean_imputation(mechanism):
    rng = np.random.default_rng(0)
    mean, covariance = np.array([1.0, -1.0]), np.array([[1.0, 0.8], [0.8, 1.0]])
    X = rng.multivariate_normal(mean, covariance, size=3000)
    hide = rng.random(3000) < 0.4 if mechanism == "mcar" else X[:, 0] > 1.3
    X[hide, 1] = np.nan
    model = MixtureDensity(
        1, covariance_prior=0.0, tol=1e-9, max_iter=2000, covariance_type="full"
    ).fit(X)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    ours = np.abs(model.covariances_[0] - covariance).max()
    theirs = np.abs(np.cov(filled.T) - covariance).max()
    assert ours < 0.1 < 0.3 < theirs
    assert np.abs(model.means_[0] - mean).max() < 0.08
