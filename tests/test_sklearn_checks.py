"""scikit-learn's own checks, on every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hybridmix import (
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)

ESTIMATORS = [
    MixtureDensity(),
    MixtureDensity(n_components=2, covariance_type="diag", random_state=0),
    HybridMixtureClassifier(),
    HybridMixtureClassifier(covariance_type="tied"),
    HybridMixtureClassifier(n_components=2, covariance_type="spherical", random_state=0),
    HybridMixtureClassifier("hybrid", n_steps=10),
    MixtureImputer(random_state=0),
    MixtureOutlierDetector(random_state=0),
]


def expected_failures(estimator):
    return {}


# The tables of these checks are so small that classes have fewer rows than components.
@pytest.mark.filterwarnings("ignore:.*fewer than the.*components asked for")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn_checks(estimator, check):
    check(estimator)
