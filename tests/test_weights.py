"""Sample weights of any size, and options far from what anybody would choose.

Warnings are errors in all tests: nothing overflows on the way to these results.
"""

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier

from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.data.weights import read_weights

# Every test runs in NumPy and with compiled kernels.
pytestmark = pytest.mark.usefixtures("kernels")

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical", "subspace")


def table(n_rows=40):
    """Two classes, with holes and a category."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)) + 2 * y[:, None], columns=list("abc"))
    X.loc[::5, "b"] = np.nan
    X["kind"] = np.where(rng.random(n_rows) < 0.5, "u", "v")
    return X, y


def estimators(covariance_type):
    options = {"covariance_type": covariance_type, "random_state": 0}
    return [
        MixtureDensity([1, 2], **options),
        MixtureImputer(2, n_draws=2, **options),
        MixtureOutlierDetector(1, contamination=0.1, **options),
        plain_classifier(n_steps=2, **options),
        plain_classifier("margin", solver="baum-welch", n_steps=2, **options),
    ]


def results(model, X):
    found = [model.score_samples(X), np.asarray(model.impute(X)[["a", "b"]])]
    if hasattr(model, "draw"):
        found += [np.asarray(drawn[["a", "b"]]) for drawn in model.draw(X)]
    if hasattr(model, "predict_proba"):
        found.append(model.predict_proba(X))
    assert all(np.isfinite(values).all() for values in found)
    return np.concatenate([values.ravel() for values in found])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_weights_beyond_all_bounds_act_like_the_bounds(covariance_type):
    """So many rows leave nothing of the priors, so few nothing but them."""
    X, y = table()
    shares = np.linspace(1.0, 2.0, len(X))
    for model in estimators(covariance_type):
        for bound, beyond in ((1e12, 1e154), (1e-9, 1e-300)):
            at_bound = shares * (bound / shares.sum())
            expected = results(model.fit(X, y, sample_weight=at_bound), X)
            found = results(model.fit(X, y, sample_weight=shares * beyond), X)
            # With hardly any row, rounding decides when EM ends.
            error = 1e-9 if bound > 1.0 else 1e-4
            np.testing.assert_allclose(found, expected, rtol=error, atol=error)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("size", [5e-324, np.finfo(float).max])
def test_weights_at_the_ends_of_the_range_of_floats(covariance_type, size):
    X, y = table()
    for model in estimators(covariance_type):
        results(model.fit(X, y, sample_weight=np.full(len(X), size)), X)


@pytest.mark.filterwarnings("ignore:Components collapsed")
@pytest.mark.filterwarnings("ignore:.*distinct row")
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_rows_of_negligible_weight_act_as_if_they_were_absent(covariance_type):
    X, y = table(80)
    rng = np.random.default_rng(1)
    counts = np.arange(80) < 40
    weights = np.where(counts, 1e300, 10.0 ** rng.integers(-300, 200, size=80))
    for model in estimators(covariance_type):
        expected = results(model.fit(X[counts], y[counts], np.full(40, 1e300)), X)
        found = results(model.fit(X, y, weights), X)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_weights_within_the_bounds_stay_as_they_are():
    weights = np.array([0.0, 1e-3, 2.0, 1e11])
    np.testing.assert_array_equal(read_weights(weights, 4), weights)
    assert read_weights(np.ones(3), 3) is None
    assert read_weights(None, 3) is None


def test_classes_of_negligible_weight_are_refused():
    X, y = table()
    weights = np.where(y == 1, 1e-300, 1e300)
    with pytest.raises(ValueError, match=r"class 1 has no row .* 1e-30 of the largest"):
        plain_classifier().fit(X, y, sample_weight=weights)
    anomalies = np.where(np.arange(len(X)) % 5, 1, -1)
    detector = MixtureOutlierDetector(
        1, threshold="f1", cv=2, covariance_type="full", covariance_prior=1.0
    )
    with pytest.raises(ValueError, match="needs some of both"):
        detector.fit(X, anomalies, sample_weight=np.where(anomalies == 1, 1e300, 1.0))


def test_thresholds_and_searches_with_huge_weights():
    X, y = table()
    anomalies = np.where(np.arange(len(X)) % 5, 1, -1)
    detector = MixtureOutlierDetector(
        1, threshold="f1", cv=2, covariance_type="full", covariance_prior=1.0
    )
    sizes = np.full(len(X), 1e12 / len(X)), np.full(len(X), 1e300)
    offsets = [detector.fit(X, anomalies, size).offset_ for size in sizes]
    assert offsets[0] == pytest.approx(offsets[1])
    search = HybridMixtureClassifierCV(
        plain_classifier(n_steps=2),
        n_components=[1],
        covariance_type=["diag"],
        tradeoff=[0, 3],
        cv=2,
    )
    probabilities = [search.fit(X, y, size).predict_proba(X) for size in sizes]
    np.testing.assert_allclose(*probabilities, atol=1e-9)


def test_validation_rows_with_huge_weights():
    X, y = table()
    options = {"n_steps": 3, "random_state": 0, "calibrate": True}
    models = [
        plain_classifier(**options).fit(
            X, y, X_val=X, y_val=y, sample_weight_val=np.full(len(X), size)
        )
        for size in (1e12 / len(X), 1e300)
    ]
    assert models[0].temperature_ == pytest.approx(models[1].temperature_)


# A weight of two is two rows ------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_columns", [3, 20])
def test_weights_are_repetitions(covariance_type, n_columns):
    """With holes, several components and numbers of factors that are chosen."""
    rng = np.random.default_rng(2)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, n_columns)) + 1.5 * y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    counts = rng.integers(0, 4, size=60)
    again = np.repeat(np.arange(60), counts)
    options = {"covariance_type": covariance_type, "random_state": 0}
    for model in (
        MixtureDensity([1, 2], **options),
        MixtureOutlierDetector(2, contamination=0.2, **options),
        plain_classifier("likelihood", n_components=2, **options),
        plain_classifier("hybrid", n_steps=3, **options),
        plain_classifier(solver="baum-welch", n_steps=3, **options),
    ):
        weighted = model.fit(X, y, sample_weight=counts).score_samples(X)
        repeated = model.fit(X[again], y[again]).score_samples(X)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-9)


# Options ------------------------------------------------------------------------------

HUGE_INTEGER = 10**400
REFUSED = [
    {"covariance_prior": 1e300},
    {"covariance_prior": HUGE_INTEGER},
    {"covariance_prior": np.inf},
    {"covariance_prior": np.nan},
    {"smoothing": 1e300},
    {"smoothing": 0.0},
    {"variance_floor": 1e300},
    {"variance_floor": 1e-300},
    {"tol": np.inf},
    {"max_iter": HUGE_INTEGER},
    {"n_factors": HUGE_INTEGER, "covariance_type": "subspace"},
]
REFUSED_BY_CLASSIFIERS = [
    {"tradeoff": 1e300},
    {"tradeoff": HUGE_INTEGER},
    {"unlabelled_weight": 1e300},
    {"unlabelled_weight": np.nan},
    {"margin": 1e300},
    {"margin": 1e-300},
    {"n_steps": HUGE_INTEGER},
    {"validation_fraction": 1e-300},
    {"class_prior": [1e300, 1e300]},
]


@pytest.mark.parametrize("options", REFUSED, ids=lambda options: str(options)[:40])
def test_options_out_of_range_are_refused(options):
    X, _ = table()
    for model in (
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0),
        MixtureImputer(
            n_components=(1, 2, 4, 8), covariance_type="full", covariance_prior=1.0
        ),
        MixtureOutlierDetector(
            n_components=(1, 2, 4, 8), covariance_type="full", covariance_prior=1.0
        ),
    ):
        with pytest.raises(ValueError, match=f"{next(iter(options))}=.* must be"):
            model.set_params(**options).fit(X)


@pytest.mark.parametrize(
    "options",
    [*REFUSED, *REFUSED_BY_CLASSIFIERS],
    ids=lambda options: str(options)[:40],
)
def test_options_out_of_range_are_refused_by_classifiers(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        plain_classifier().set_params(**options).fit(*table())


EXTREME = [
    {"covariance_prior": 1e12},
    {"covariance_prior": 5e-324},
    {"smoothing": 1e12},
    {"smoothing": 1e-10},
    {"variance_floor": 1e-12},
    {"tradeoff": 1e9},
    {"tradeoff": 5e-324},
    {"unlabelled_weight": 1e9},
    {"unlabelled_weight": 5e-324},
    {"loss": "hinge", "margin": 1e9},
    {"loss": "hinge", "margin": 1e-6},
    {"loss": "scaled", "margin": 1e-6},
    {"class_prior": [1e-300, 1.0]},
]


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("size", [1e-300, 1e300])
@pytest.mark.parametrize("solver", ["lbfgs", "baum-welch"])
@pytest.mark.parametrize("options", EXTREME, ids=str)
def test_options_at_the_ends_of_their_ranges(options, solver, size):
    X, y = table()
    if "unlabelled_weight" in options:
        y[::3] = -1
    model = plain_classifier(solver=solver, n_steps=2).set_params(**options)
    results(model.fit(X, y, sample_weight=np.full(len(X), size)), X)
