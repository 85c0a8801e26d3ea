"""Tables that nobody would draw by hand."""

import warnings

import numpy as np
import pytest
from helpers import plain_classifier
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybridmix import (
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)

# Every test runs in NumPy and with compiled kernels.
pytestmark = pytest.mark.usefixtures("kernels")

KINDS = ["full", "tied", "diag", "spherical"]
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def tables(draw):
    """Tables of odd shapes, scales, repetitions and holes, with at least one value."""
    seed = draw(st.integers(0, 2**32 - 1))
    n_rows, n_columns = draw(st.integers(2, 30)), draw(st.integers(1, 6))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    if draw(st.booleans()):
        X = X[rng.integers(n_rows, size=n_rows)]  # duplicates
    if draw(st.booleans()):
        X[:, rng.integers(n_columns)] = draw(st.sampled_from([0.0, 3.0, -1e9]))
    exponents = rng.integers(-12, 13, size=n_columns) * draw(st.integers(0, 1))
    X = X * 10.0**exponents
    if draw(st.booleans()):
        X = np.column_stack([X, X[:, :1]])  # collinear
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2, 0.6]))] = np.nan
    if np.isnan(X).all():
        X[0, 0] = 1.0
    return X


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments)


@QUICK
@given(tables(), st.sampled_from(KINDS), st.integers(1, 4))
def test_density_of_any_table(X, kind, n_components):
    model = MixtureDensity(
        min(n_components, len(X)),
        covariance_type=kind,
        random_state=0,
        covariance_prior=1.0,
    )
    quietly(model.fit, X)
    assert np.isfinite(model.score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    seen = ~np.isnan(X).all(axis=0)
    filled = model.impute(X)
    assert np.isfinite(filled[:, seen]).all()
    assert np.isfinite(model.impute(X, draw=True, random_state=0)[:, seen]).all()
    assert np.isfinite(model.sample(5)[0][:, seen]).all()


@QUICK
@given(tables(), st.sampled_from(KINDS), st.integers(0, 2**31))
def test_classifier_on_any_table(X, kind, seed):
    y = np.random.default_rng(seed).integers(-1, 3, size=len(X))
    y[0] = 0
    model = plain_classifier(
        n_components=2, covariance_type=kind, unlabelled=-1, random_state=0
    )
    quietly(model.fit, X, y)
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@QUICK
@given(tables())
def test_detector_and_imputer_on_any_table(X):
    detector = MixtureOutlierDetector(
        (1, 2), random_state=0, covariance_type="full", covariance_prior=1.0
    )
    quietly(detector.fit, X)
    scores = detector.score_samples(X)
    assert np.isfinite(scores).all()
    assert (scores <= 0).all()
    filled = quietly(
        MixtureImputer(
            (1, 2), random_state=0, covariance_type="full", covariance_prior=1.0
        ).fit_transform,
        X,
    )
    seen = ~np.isnan(X).all(axis=0)
    assert np.isfinite(filled[:, seen]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_far_from_the_training_rows(kind):
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = plain_classifier(covariance_type=kind).fit(X, np.arange(50) % 2)
    far = [[1e300, -1e300], [1e-300, 0.0], [np.nan, 1e200]]
    assert np.isfinite(model.predict_proba(far)).all()
    assert np.isfinite(model.score_samples(far)).all()
