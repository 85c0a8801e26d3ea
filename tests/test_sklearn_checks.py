"""scikit-learn's own checks, on every estimator.

Every covariance type, objective, solver and estimator is here. Where the code differs
from that of the others, all checks are run; the other configurations have to pass those
that depend on training and prediction, not on how options and tables are read.
``all_sklearn_checks.py`` runs everything, on more configurations.
"""

import pytest
from all_sklearn_checks import (
    EXPECTED_WARNINGS,
    WITHIN_TOL,
    classifiers,
    defaults,
    described,
    expected_failures,
    functions,
    latents,
    machines,
    networks,
    others,
    regressors,
    searches,
    switches,
)
from helpers import plain_classifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from hybridmix import (
    HybridMixtureClassifier,
    MEDOutlierDetector,
    MixtureDensity,
    MixtureEmbedding,
    MixtureImputer,
    MixtureNetworkClassifier,
    MixtureNetworkRegressor,
    MixtureOutlierDetector,
    MixtureRegressor,
)

OF_TRAINING = {
    "check_classifiers_one_label",
    "check_classifiers_train",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_outliers_fit_predict",
    "check_outliers_train",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_dense_data",
    "check_transformer_general",
}
COMPLETE = [
    MixtureDensity(),
    MixtureDensity(n_components=2, covariance_type="diag", random_state=0),
    MixtureImputer(random_state=0),
    MixtureOutlierDetector(random_state=0),
    MixtureRegressor([1, 2], n_steps=5, random_state=0),
    HybridMixtureClassifier(),
    plain_classifier(),
    plain_classifier("likelihood", covariance_type="tied"),
    plain_classifier(n_components=2, covariance_type="spherical", random_state=0),
    plain_classifier(solver="baum-welch", covariance_type="diag", n_steps=5),
    plain_classifier(covariance_type="subspace", n_steps=5),
    plain_classifier("likelihood", covariance_type="diag", calibrate=True),
    plain_classifier(validation_fraction=0.3, n_steps=5),
    MixtureNetworkClassifier(
        "joint", n_components=1, covariance_type="full", n_steps=5, random_state=0
    ),
    MixtureEmbedding(2, covariance_type="diag", random_state=0),
    MixtureNetworkRegressor(2, covariance_type="diag", random_state=0),
    *machines()[:2],
    *latents()[:1],
    *switches(),
    *functions()[:1],
    MEDOutlierDetector(),
    searches()[0],
]
IN_PART = [
    *defaults(),
    *classifiers(),
    *machines()[2:],
    *latents()[1:],
    *others(),
    *networks(),
    *regressors(),
    *functions()[3:],
]


pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{message}") for message in EXPECTED_WARNINGS
]


def cases(estimators, names=None):
    found = []
    for estimator in estimators:
        marks = {
            name: pytest.mark.xfail(reason=reason, strict=reason != WITHIN_TOL)
            for name, reason in expected_failures(estimator).items()
        }
        for number, (_, check) in enumerate(estimator_checks_generator(estimator)):
            name = check.func.__name__
            if names is None or name in names:
                # Some checks come twice, with other arguments.
                label = f"{described(estimator)}-{name}-{number}"
                found.append(
                    pytest.param(estimator, check, marks=marks.get(name, ()), id=label)
                )
    return found


@pytest.mark.parametrize(
    ("estimator", "check"), [*cases(COMPLETE), *cases(IN_PART, OF_TRAINING)]
)
def test_sklearn_checks(estimator, check):
    check(estimator)
