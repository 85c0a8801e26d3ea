"""scikit-learn's own checks, on every estimator with every kind of option.

``python tests/all_sklearn_checks.py`` runs all checks on all configurations, which takes
about five minutes, and prints those that fail. ``--only subspace`` runs those whose
description holds a word. ``test_sklearn_checks.py`` runs a part of them.
"""

import argparse
import itertools
import sys
import warnings

from helpers import plain_classifier
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from hybridmix import (
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
    LatentMEDClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDMultiTaskClassifier,
    MEDMultiTaskRegressor,
    MEDOutlierDetector,
    MEDRegressor,
    MixtureDensity,
    MixtureEmbedding,
    MixtureImputer,
    MixtureNetworkClassifier,
    MixtureNetworkRegressor,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from hybridmix.models.embedding import KINDS
from hybridmix.training.covariances import COVARIANCE_TYPES
from hybridmix.training.discriminative import LOSSES, OBJECTIVES, SOLVERS

# The tables of the checks are so small that classes have fewer rows than components.
EXPECTED_WARNINGS = (
    ".*fewer than the.*components asked for",
    "The least populated class in y has only 1 members",
)
# The same for configurations that only this script runs: sixteen components of twenty
# rows; tolerances near the rounding, and polynomials of columns that are not scaled.
_WARNINGS_OF_EXTREMES = (
    "Components collapsed and were started anew",
    "The solver stopped with a gap of",
)
# scikit-learn expects the same of CalibratedClassifierCV and of its early stopping.
_DEALT_OUT = (
    "rows that are repeated are held out one by one, but a row of weight two as a whole"
)

# Whether a check fails for this reason is up to the last digits of a machine.
WITHIN_TOL = "solvers stop at a gap, at other places for rows that are repeated"
_WEIGHT_CHECKS = [
    f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")
]
_WITHIN_TOL = (
    MEDMultiTaskClassifier,
    MEDMultiTaskRegressor,
    MEDOutlierDetector,
    MEDRegressor,
)


def expected_failures(estimator):
    """Return the checks that an estimator cannot pass, with the reasons."""
    dense, both = _WEIGHT_CHECKS[:1], _WEIGHT_CHECKS
    if isinstance(estimator, HybridMixtureClassifier) and deals_rows_out(estimator):
        return dict.fromkeys(dense, _DEALT_OUT)
    if isinstance(estimator, MEDClassifier) and estimator.calibrate:
        return dict.fromkeys(both if estimator.model == "linear" else dense, _DEALT_OUT)
    if isinstance(estimator, LatentMEDClassifier):
        return dict.fromkeys(dense, _DEALT_OUT if estimator.calibrate else WITHIN_TOL)
    if isinstance(estimator, _WITHIN_TOL):
        return dict.fromkeys(both, WITHIN_TOL)
    return {}


def deals_rows_out(classifier):
    """Return whether rows are held out at random, whatever ``cv`` is.

    A classifier that chooses has the folds of ``cv``, which the check sets.
    """
    chosen = [classifier.covariance_type, classifier.n_components]
    if classifier.objective == "hybrid":
        chosen.append(classifier.tradeoff)
    return "auto" not in chosen and (
        classifier.calibrate is True or classifier.validation_fraction is not None
    )


def defaults():
    """Return estimators that choose by themselves, with every effort."""
    kinds = (
        HybridMixtureClassifier(n_steps=5),
        MixtureDensity(),
        MixtureEmbedding(),
        MixtureImputer(),
        MixtureNetworkClassifier(n_steps=5),
        MixtureNetworkRegressor(),
        MixtureOutlierDetector(),
        MixtureRegressor(n_steps=5),
    )
    return [
        clone(kind).set_params(effort=effort, random_state=0)
        for kind, effort in itertools.product(kinds, ("fast", "balanced"))
    ]


def machines():
    """Return classifiers of maximum entropy discrimination, each kind of model.

    The checks compare weights with repeated rows to seven digits, which takes a small
    tolerance: outputs are as exact as the root of it.
    """
    exact = {"tol": 1e-12, "max_iter": 5000, "calibrate": False}
    options = (
        {},
        {"multi_class": "one-vs-rest"},
        {"margin_prior": "laplace"},
        {"margin_prior": "gaussian"},
        {"bias": 1.0},
        {"model": "independent", "margin": 1.0},
    )
    return [
        MEDClassifier(random_state=0),
        *(MEDClassifier(**exact, **further) for further in options),
    ]


def latents():
    """Return classifiers of latent maximum entropy discrimination."""
    fixed = {"n_init": 2, "random_state": 0}
    exact = {"smoothness": 1.0, "tol": 1e-8, "max_iter": 1000, "calibrate": False}
    return [
        LatentMEDClassifier(**fixed),
        LatentMEDClassifier(**fixed, **exact),
        LatentMEDClassifier("rbf", **fixed, **exact),
        LatentMEDClassifier(n_components=3, annealing=4.0, **fixed, **exact),
    ]


def classifiers():
    """Return every covariance type with every objective and solver."""
    return [
        plain_classifier(
            objective, covariance_type=name, solver=solver, n_steps=5, random_state=0
        )
        for name, objective, solver in itertools.product(
            COVARIANCE_TYPES, OBJECTIVES, SOLVERS
        )
        # The likelihood is maximised by EM, whatever the solver.
        if objective != "likelihood" or solver == "lbfgs"
    ]


def variants():
    """Return classifiers with further options, for every covariance type."""
    options = (
        {"n_components": 2},
        {"calibrate": True},
        {"validation_fraction": 0.3},
    )
    return [
        plain_classifier(covariance_type=name, n_steps=5, random_state=0, **further)
        for name, further in itertools.product(COVARIANCE_TYPES, options)
    ]


def others():
    """Return the other estimators, for every covariance type."""
    kinds = (
        MixtureDensity(1),
        MixtureDensity(2),
        MixtureImputer([1, 2]),
        MixtureImputer([1, 2], n_draws=2),
        MixtureOutlierDetector([1, 2, 4, 8]),
        MixtureOutlierDetector([1, 2, 4, 8], contamination=0.1),
    )
    return [
        clone(kind).set_params(covariance_type=name, random_state=0)
        for name, kind in itertools.product(COVARIANCE_TYPES, kinds)
    ]


def networks():
    """Return networks of every training, and embeddings with every feature."""
    trainings = (
        {"training": "stages"},
        {"training": "joint"},
        {"training": "joint", "mixtures": "pool"},
        {"training": "joint", "mixtures": "linked", "l1": 0.1},
        {"training": "joint", "features": KINDS},
        {"training": "stages", "annihilate": "bic"},
        {"training": "alternating", "link": 3.0, "l1": 0.01, "annihilate": "weights"},
    )
    fixed = {"n_components": 2, "covariance_type": "full", "random_state": 0}
    return [
        *(MixtureNetworkClassifier(n_steps=5, **fixed, **own) for own in trainings),
        MixtureEmbedding(features=KINDS, **fixed),
        MixtureEmbedding(mixtures="classes", features=KINDS, **fixed),
        MixtureNetworkRegressor(features=KINDS, **fixed),
        MixtureNetworkRegressor(output="epsilon", **fixed),
    ]


def regressors():
    """Return regressors for every covariance type, by EM and with a tradeoff.

    With diagonal covariances the target is constant in a component: few of them do not
    reach the score that the checks ask for.
    """
    return [
        MixtureRegressor(
            16 if name in ("diag", "spherical") else 2,
            covariance_type=name,
            tradeoff=tradeoff,
            n_steps=5,
            random_state=0,
        )
        for name, tradeoff in itertools.product(COVARIANCE_TYPES, (0.0, 1.0))
    ]


def switches():
    """Return estimators with switches; some tables have no column worth including."""
    return [
        MEDFeatureSelector(n_features_to_select=0.5),
        MEDFeatureSelector(task="regress", n_features_to_select=0.5),
        MEDMultiTaskClassifier(),
        MEDMultiTaskRegressor(),
    ]


def functions():
    """Return regressors and detectors of maximum entropy discrimination."""
    return [
        MEDRegressor(),
        MEDRegressor("rbf"),
        MEDRegressor("poly", degree=2, smoothness=0.0),
        MEDRegressor("independent"),
        MEDRegressor(inclusion=0.5),
        MEDOutlierDetector(),
    ]


def special_cases():
    """Return options that have no meaning for most covariance types or objectives."""
    losses = [plain_classifier(loss=loss, n_steps=5) for loss in LOSSES]
    margins = [
        plain_classifier("margin", loss=loss, n_steps=5)
        for loss in LOSSES
        if loss != "log"
    ]
    subspaces = [
        plain_classifier(covariance_type="subspace", n_steps=5, **further)
        for further in ({"refine_subspace": True}, {"noise": "columns"}, {"n_factors": 2})
    ]
    densities = [
        MixtureDensity(2, covariance_type="subspace", random_state=0, **further)
        for further in ({"n_factors": 1}, {"n_factors": 0.9, "noise": "columns"})
    ]
    return [*losses, *margins, *subspaces, *densities, *searches()]


def searches():
    """Return two small searches."""
    return [
        HybridMixtureClassifierCV(
            n_components=[1], covariance_type=["diag"], tradeoff=[0, 3], cv=2
        ).set_params(random_state=0),
        HybridMixtureClassifierCV(
            plain_classifier(n_steps=5),
            n_components=[1, 2],
            covariance_type=["full", "subspace"],
            tradeoff=[0, 3],
            cv=2,
            random_state=0,
        ),
    ]


def run(estimators):
    """Run all checks; print the failures and return the numbers of each status."""
    counts = dict.fromkeys(("passed", "xfail", "skipped", "failed"), 0)
    for estimator in estimators:
        results = check_estimator(
            estimator,
            expected_failed_checks=expected_failures(estimator),
            on_skip=None,
            on_fail=None,
        )
        for result in results:
            counts[result["status"]] += 1
            if result["status"] == "failed":
                error = " ".join(str(result["exception"]).split())
                print(f"{described(estimator)}: {result['check_name']}: {error[:300]}")
    return counts


def described(estimator):
    """Return an estimator in one line."""
    return " ".join(repr(estimator).split())


def main():
    """Run all checks, or those of some configurations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD")
    only = parser.parse_args().only
    everything = [
        *defaults(),
        *classifiers(),
        *variants(),
        *others(),
        *machines(),
        *latents(),
        *networks(),
        *regressors(),
        *switches(),
        *functions(),
        *special_cases(),
    ]
    chosen = [estimator for estimator in everything if only in described(estimator)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in (*EXPECTED_WARNINGS, *_WARNINGS_OF_EXTREMES):
            warnings.filterwarnings("ignore", message)
        counts = run(chosen)
    listed = ", ".join(f"{number} {status}" for status, number in counts.items())
    print(f"{len(chosen)} configurations, {sum(counts.values())} checks: {listed}")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
