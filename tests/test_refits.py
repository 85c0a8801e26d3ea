"""A second fit that is refused, fails or is interrupted leaves the first model intact."""

import pickle
from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier

import hybridmix
from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix._checks import is_learned
from hybridmix.estimators.base import FittedMixture
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.mixture import Mixture
from hybridmix.solvers import ExpectationMaximisation, LimitedMemoryBFGS

MODELS = {
    "density": lambda: MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ),
    "imputer": lambda: MixtureImputer(
        2, n_draws=2, random_state=0, covariance_type="full", covariance_prior=1.0
    ),
    "detector": lambda: MixtureOutlierDetector(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ),
    "classifier": lambda: plain_classifier(n_steps=3, random_state=0),
    "search": lambda: HybridMixtureClassifierCV(
        plain_classifier(n_steps=2),
        n_components=[1],
        covariance_type=["diag"],
        tradeoff=[0, 3],
        cv=2,
        random_state=0,
    ),
}
SUPERVISED = ("classifier", "search")
ALL = tuple(MODELS)
DENSITIES = ("density", "imputer", "detector")
FITTED_DIRECTLY = (*DENSITIES, "classifier")


def first_table():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["p", "q", "r"])
    X.loc[y == "b", ["p", "q"]] += 2.0
    X.loc[::7, "q"] = np.nan
    X["kind"] = pd.Categorical(np.where(X["r"] > 0, "high", "low"))
    return X, y


def second_table():
    """Other columns, rows and classes, so that whatever is left of them shows."""
    rng = np.random.default_rng(1)
    y = np.repeat(["u", "v", "w"], 10)
    X = pd.DataFrame(rng.normal(size=(30, 5)), columns=list("vwxyz"))
    X += 2.0 * np.repeat(np.arange(3), 10)[:, None]
    return X, y


@cache
def fitted_once(kind):
    return MODELS[kind]().fit(*first_table())


def snapshot(model, path):
    """Return everything that a fit has learned, and what follows from it."""
    X, _ = first_table()
    hybridmix.save(model, path)
    results = [model.score_samples(X), model.typicality(X), model.impute(X)]
    names = ("predict", "predict_proba", "decision_function", "draw", "transform")
    results += [getattr(model, name)(X) for name in names if hasattr(model, name)]
    learned = {k: v for k, v in vars(model).items() if is_learned(k)}
    extra = sorted(set(vars(model)) - set(learned) - set(model.get_params(deep=False)))
    return {
        "file": path.read_bytes(),
        "results": pickle.dumps(results),
        "learned": pickle.dumps(learned),
        "objects": {k: id(v) for k, v in learned.items()},
        "extra": extra,
        "n_features_in_": model.n_features_in_,
        "feature_names_in_": model.feature_names_in_.tolist(),
    }


def check_refused(kind, tmp_path, attempt, error, match=None):
    """Fit, let a second fit fail, and compare what is left with what was before."""
    model = deepcopy(fitted_once(kind))
    options = model.get_params(deep=False)
    before = snapshot(model, tmp_path / "model")
    with pytest.raises(error, match=match):
        attempt(model)
    # The options are the user's: they are as they were set, and do not matter here.
    model.set_params(**options)
    assert snapshot(model, tmp_path / "model") == before


def refit(model, X=None, y=None, **arguments):
    second_X, second_y = second_table()
    X, y = second_X if X is None else X, second_y if y is None else y
    if isinstance(model, MixtureOutlierDetector) and model.threshold == "contamination":
        y = None
    model.fit(X, y, **arguments)


# Refused ------------------------------------------------------------------------------

OPTIONS = [
    (FITTED_DIRECTLY, {"covariance_type": "nonsense"}, "covariance_type"),
    (FITTED_DIRECTLY, {"n_components": 0}, "n_components"),
    (FITTED_DIRECTLY, {"n_factors": 0}, "n_factors"),
    (FITTED_DIRECTLY, {"noise": "loud"}, "noise"),
    (FITTED_DIRECTLY, {"covariance_prior": -1.0}, "covariance_prior"),
    (FITTED_DIRECTLY, {"variance_floor": 0.0}, "variance_floor"),
    (FITTED_DIRECTLY, {"smoothing": -1.0}, "smoothing"),
    (FITTED_DIRECTLY, {"categorical_features": ["absent"]}, "absent"),
    (FITTED_DIRECTLY, {"init": "nonsense"}, "init"),
    (FITTED_DIRECTLY, {"init": np.zeros((2, 9))}, "init"),
    (
        FITTED_DIRECTLY,
        {
            "init": MixtureDensity(
                n_components=1, covariance_type="full", covariance_prior=1.0
            )
        },
        "not fitted",
    ),
    (FITTED_DIRECTLY, {"n_init": 0}, "n_init"),
    (FITTED_DIRECTLY, {"max_iter": 0}, "max_iter"),
    (FITTED_DIRECTLY, {"tol": -1.0}, "tol"),
    (FITTED_DIRECTLY, {"n_jobs": 0}, "n_jobs"),
    (ALL, {"random_state": "nonsense"}, "random_state=.nonsense. is not valid"),
    (DENSITIES, {"n_components": 31}, "n_components"),
    (["imputer"], {"n_draws": 0}, "n_draws"),
    (["detector"], {"contamination": 0.9}, "contamination"),
    (["detector"], {"threshold": "nonsense"}, "threshold"),
    (["detector"], {"target": 2.0}, "target"),
    (["classifier"], {"objective": "nonsense"}, "objective"),
    (["classifier"], {"tradeoff": -1.0}, "tradeoff"),
    (["classifier"], {"margin": 0.0}, "margin"),
    (["classifier"], {"loss": "nonsense"}, "loss"),
    (["classifier"], {"solver": "nonsense"}, "solver"),
    (["classifier"], {"n_steps": 0}, "n_steps"),
    (["classifier"], {"patience": 0}, "patience"),
    (["classifier"], {"validation_fraction": 0.9}, "validation_fraction"),
    (["classifier"], {"validation_fraction": 0.01}, "holds out no row"),
    (["classifier"], {"class_prior": [0.5, 0.5]}, "class_prior"),
    (["classifier"], {"class_prior": "nonsense"}, "class_prior"),
    (["classifier"], {"unlabelled_weight": -1.0}, "unlabelled_weight"),
    (["classifier"], {"n_components": {"u": 1, "v": 2}}, "'w'"),
    (
        ["classifier"],
        {
            "refine_subspace": True,
            "covariance_type": "subspace",
            "solver": "baum-welch",
        },
        "refine_subspace",
    ),
    (
        ["search"],
        {
            "estimator": MixtureDensity(
                n_components=1, covariance_type="full", covariance_prior=1.0
            )
        },
        "HybridMixtureClassifier",
    ),
    (["search"], {"covariance_type": []}, "covariance_type"),
    (["search"], {"covariance_type": ["nonsense"]}, "covariance_type"),
    (["search"], {"n_components": [0]}, "n_components"),
    (["search"], {"tradeoff": [-1.0]}, "tradeoff"),
    (["search"], {"missing_rate": 2.0}, "missing_rate"),
    (["search"], {"cv": 1}, "cv=1 is not valid"),
    (["search"], {"scoring": ["accuracy", "roc_auc"]}, "scoring"),
]


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        pytest.param(kind, options, match, id=f"{kind}-{options}"[:60])
        for kinds, options, match in OPTIONS
        for kind in kinds
    ],
)
def test_refused_options(kind, options, match, tmp_path):
    def attempt(model):
        refit(model.set_params(**options))

    check_refused(kind, tmp_path, attempt, (ValueError, TypeError), match)


def with_infinity():
    X, _ = second_table()
    X.iloc[3, 2] = np.inf
    return X


ARGUMENTS = {
    "infinity": (ALL, {"X": with_infinity()}, "inf"),
    "one dimension": (ALL, {"X": np.arange(30.0)}, "2D|1D"),
    "no rows": (ALL, {"X": second_table()[0][:0]}, "minimum of 1"),
    "negative weights": (ALL, {"sample_weight": np.full(30, -1.0)}, "[Nn]egative"),
    "weights of zero": (ALL, {"sample_weight": np.zeros(30)}, "zero"),
    "weights of NaN": (ALL, {"sample_weight": np.full(30, np.nan)}, "NaN"),
    "too few weights": (ALL, {"sample_weight": np.ones(29)}, "shape"),
    "too few labels": (SUPERVISED, {"y": second_table()[1][:-1]}, "inconsistent"),
    "labels of measurements": (SUPERVISED, {"y": np.linspace(0, 1, 30)}, "continuous"),
    "no label at all": (SUPERVISED, {"y": np.full(30, -1)}, "label"),
    "two columns of labels": (SUPERVISED, {"y": np.zeros((30, 2))}, "1d|bad input shape"),
    "X_val without y_val": (["classifier"], {"X_val": second_table()[0]}, "together"),
    "y_val without X_val": (["classifier"], {"y_val": second_table()[1]}, "together"),
    "X_val of other columns": (
        ["classifier"],
        {"X_val": first_table()[0], "y_val": first_table()[1]},
        "feature names",
    ),
    "y_val with unknown labels": (
        ["classifier"],
        {"X_val": second_table()[0], "y_val": np.full(30, "a")},
        "'a'",
    ),
    "y_val of another length": (
        ["classifier"],
        {"X_val": second_table()[0], "y_val": second_table()[1][:-1]},
        "inconsistent",
    ),
    "y_val without labels": (
        ["classifier"],
        {"X_val": second_table()[0], "y_val": np.full(30, None)},
        "y_val",
    ),
    "infinity in X_val": (
        ["classifier"],
        {"X_val": with_infinity(), "y_val": second_table()[1]},
        "inf",
    ),
    "too few groups": (["search"], {"groups": np.zeros(29)}, "inconsistent"),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for name, (kinds, _, _) in ARGUMENTS.items() for kind in kinds],
)
def test_refused_arguments(kind, name, tmp_path):
    _, arguments, match = ARGUMENTS[name]
    check_refused(
        kind,
        tmp_path,
        lambda model: refit(model, **arguments),
        (ValueError, TypeError),
        match,
    )


def test_y_is_missing(tmp_path):
    for kind in SUPERVISED:
        check_refused(
            kind, tmp_path, lambda model: model.fit(second_table()[0], None), ValueError
        )


@pytest.mark.parametrize("y", [None, np.ones(30), np.r_[-1, np.ones(28)]])
def test_thresholds_by_refused_labels(y, tmp_path):
    def attempt(model):
        model.set_params(threshold="f1").fit(second_table()[0], y)

    check_refused("detector", tmp_path, attempt, ValueError)


def test_a_start_with_other_columns_and_classes(tmp_path):
    for kind in FITTED_DIRECTLY:
        X, y = first_table()
        start = MODELS[kind]().fit(X[["p", "q"]], y)

        def attempt(model, start=start):
            refit(model.set_params(init=start))

        check_refused(kind, tmp_path, attempt, ValueError, "init")


# Failed or interrupted ------------------------------------------------------------------

PLACES = {
    "before the first step": (ALL, ExpectationMaximisation, "solve"),
    "in the M-step": (ALL, Mixture, "maximised"),
    "between the rows": (ALL, ChunkedRows, "prepared"),
    "after EM": (SUPERVISED, LimitedMemoryBFGS, "solve"),
    "when drawing the threshold": (["detector"], FittedMixture, "_typicality"),
}


@pytest.mark.parametrize("error", [RuntimeError, FloatingPointError, KeyboardInterrupt])
@pytest.mark.parametrize(
    ("kind", "place"), [(kind, place) for place in PLACES for kind in PLACES[place][0]]
)
def test_failure_inside_training(kind, place, error, monkeypatch, tmp_path):
    _, owner, method = PLACES[place]

    def fail(*args, **kwargs):
        raise error("in the middle")

    def attempt(model):
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, fail)
            refit(model)

    check_refused(kind, tmp_path, attempt, error)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(
    ("kind", "options", "function"),
    [
        ("imputer", {}, "estimators.imputer.bootstrapped"),
        ("classifier", {"calibrate": True}, "estimators.classifier.class_attributes"),
        ("detector", {"threshold": "f1", "cv": 2}, "estimators.outlier._safe_indexing"),
        ("search", {}, "estimators.search.tabulated"),
        ("search", {}, "estimators.search.best_index"),
    ],
)
def test_failure_after_a_part_is_done(
    kind, options, function, error, monkeypatch, tmp_path
):
    def fail(*args, **kwargs):
        raise error("at the end")

    def attempt(model):
        y = np.where(np.arange(30) % 5, 1, -1) if kind == "detector" else None
        with monkeypatch.context() as patched:
            patched.setattr(f"hybridmix.{function}", fail)
            refit(model.set_params(**options), y=y)

    check_refused(kind, tmp_path, attempt, error, "at the end")


@pytest.mark.parametrize("kind", ALL)
def test_a_first_fit_that_fails_leaves_an_unfitted_estimator(kind, monkeypatch):
    model = MODELS[kind]()
    before = dict(vars(model))

    def fail(*args, **kwargs):
        raise RuntimeError("in the middle")

    monkeypatch.setattr(ExpectationMaximisation, "solve", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        refit(model)
    assert vars(model) == before


@pytest.mark.parametrize("kind", ALL)
def test_a_second_fit_leaves_nothing_of_the_first(kind):
    model = MODELS[kind]().fit(*first_table())
    refit(model)
    fresh = MODELS[kind]()
    refit(fresh)
    assert set(vars(model)) == set(vars(fresh))
    X, y = second_table()
    np.testing.assert_array_equal(model.score_samples(X), fresh.score_samples(X))
    model.fit(X.to_numpy(), None if kind == "detector" else y)
    assert not hasattr(model, "feature_names_in_")


def test_changed_options_do_not_matter_before_the_next_fit():
    X, y = first_table()
    for covariance_type in ("full", "tied", "diag", "spherical", "subspace"):
        density = MixtureDensity(
            2, covariance_type=covariance_type, random_state=0, covariance_prior=1.0
        )
        expected = density.fit(X).marginal(["q", "kind"])
        for other in ("tied", "diag"):
            density.set_params(covariance_type=other)
            found = density.marginal(["q", "kind"])
            np.testing.assert_array_equal(found.covariances_, expected.covariances_)
    classifier = plain_classifier(n_steps=2).fit(X, y)
    classifier.set_params(covariance_type="diag")
    plain_classifier(n_steps=2, init=classifier).fit(X, y)
    with pytest.raises(ValueError, match="another covariance_type"):
        plain_classifier(covariance_type="diag", init=classifier).fit(X, y)
