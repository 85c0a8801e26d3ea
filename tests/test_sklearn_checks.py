"""scikit-learn's own checks, on every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hybridmix import (
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
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
    HybridMixtureClassifier("hybrid", solver="baum-welch", n_steps=5),
    HybridMixtureClassifier(calibrate=True),
    HybridMixtureClassifierCV(
        n_components=[1], covariance_type=["diag"], tradeoff=[0, 3], cv=2, random_state=0
    ),
    MixtureImputer(random_state=0),
    MixtureOutlierDetector(random_state=0),
]


def expected_failures(estimator):
    if not getattr(estimator, "calibrate", False):
        return {}
    reason = "rows that are repeated are dealt out to folds one by one"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


# The tables of these checks are so small that classes have fewer rows than components.
@pytest.mark.filterwarnings("ignore:.*fewer than the.*components asked for")
@pytest.mark.filterwarnings("ignore:The least populated class in y has only 1 members")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn_checks(estimator, check):
    check(estimator)
