"""Tools of scikit-learn and kinds of tables work with the estimators as documented."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from helpers import plain_classifier
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import (
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.model_selection import GridSearchCV, cross_val_score

import hybridmix
from hybridmix import (
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.io import skops_types

EVERY_ESTIMATOR = [
    name for name in hybridmix.__all__ if hasattr(getattr(hybridmix, name), "fit")
]
# Options that make fits short, where the default searches.
QUICK = {
    "HMMDensity": {"n_states": 2, "max_iter": 3},
    "HybridHMMClassifier": {"n_states": 2, "max_iter": 3, "objective": "likelihood"},
    "HybridMixtureClassifier": {"effort": "fast"},
    "HybridMixtureClassifierCV": {"covariance_type": "diag", "tradeoff": 1, "cv": 2},
    "LatentMEDClassifier": {"n_init": 1, "max_iter": 3, "calibrate": False},
    "MixtureDensity": {"n_components": 1},
    "MixtureEmbedding": {"n_components": 2},
    "MixtureImputer": {"n_components": 1},
    "MixtureNetworkClassifier": {"n_components": 2},
    "MixtureNetworkRegressor": {"n_components": 2},
    "MixtureOutlierDetector": {"n_components": 1},
    "MixtureRegressor": {"effort": "fast"},
}
KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.from_pandas,
    "NumPy": np.ascontiguousarray,
    "NumPy, column by column": np.asfortranarray,
}


@pytest.fixture(scope="module")
def complete():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X[["alcohol", "flavanoids", "color_intensity", "proline"]], y


@pytest.fixture(scope="module")
def wine(complete):
    """A table with holes, and its labels."""
    X, y = complete
    return X.mask(np.random.default_rng(0).random(X.shape) < 0.2), y


@pytest.fixture(scope="module")
def model(wine):
    return plain_classifier(random_state=0).fit(*wine)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "estimator",
    [
        plain_classifier(random_state=0),
        MixtureDensity(2, random_state=0, covariance_type="full", covariance_prior=1.0),
        MixtureImputer(2, random_state=0, covariance_type="full", covariance_prior=1.0),
        MixtureOutlierDetector(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_kinds_of_tables_make_no_difference(estimator, kind, wine):
    X, y = wine
    labels = y if isinstance(estimator, HybridMixtureClassifier) else None
    expected = clone(estimator).fit(X, labels)
    given = KINDS[kind](X)
    found = clone(estimator).fit(given, labels)
    np.testing.assert_array_equal(found.score_samples(given), expected.score_samples(X))
    filled = found.impute(given)
    assert type(filled) is type(given)
    np.testing.assert_array_equal(np.asarray(filled), expected.impute(X).to_numpy())


@pytest.mark.parametrize("kind", ["pandas", "NumPy"])
def test_partial_dependence(kind, complete):
    X, y = complete
    table = KINDS[kind](X)
    model = plain_classifier(random_state=0).fit(table, y)
    result = partial_dependence(model, table, [0], grid_resolution=4)
    by_hand = []
    for value in result["grid_values"][0]:
        changed = X.assign(alcohol=value)
        by_hand.append(model.predict_proba(KINDS[kind](changed)).mean(axis=0))
    np.testing.assert_allclose(result["average"].T, by_hand)


def test_partial_dependence_of_rows_with_holes(model, wine):
    seen = wine[0].dropna(subset=["alcohol"])
    result = partial_dependence(model, seen, ["alcohol"], grid_resolution=4)
    assert np.isfinite(result["average"]).all()
    pytest.importorskip("matplotlib").use("Agg")
    display = PartialDependenceDisplay.from_estimator(
        model, seen, ["alcohol"], target=0, grid_resolution=4
    )
    (line,) = display.lines_.ravel()
    np.testing.assert_allclose(line.get_ydata(), result["average"][0])


def test_permutation_importance_of_rows_with_holes(model, wine):
    X, y = wine
    noise = np.random.default_rng(1).normal(size=len(X))
    noise[::5] = np.nan
    X = X.assign(noise=noise)
    fitted = clone(model).fit(X, y)
    result = permutation_importance(
        fitted, X, y, scoring="neg_log_loss", n_repeats=3, random_state=0
    )
    assert result.importances_mean.argmin() == 4


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration_by_scikit_learn(method, wine):
    X, y = wine
    names = np.array(["a", "b", "c"])[y]
    model = plain_classifier("likelihood", random_state=0)
    wrapped = CalibratedClassifierCV(model, method=method, cv=3).fit(X, names)
    np.testing.assert_array_equal(wrapped.classes_, ["a", "b", "c"])
    assert wrapped.score(X, names) > 0.9


def test_calibration_of_a_model_that_saw_unlabelled_rows(wine):
    X, y = wine
    kept = np.arange(len(y)) % 3 == 0
    few = y[~kept].where(np.arange((~kept).sum()) % 2 == 0, -1)
    model = plain_classifier("likelihood", random_state=0).fit(X[~kept], few)
    wrapped = CalibratedClassifierCV(FrozenEstimator(model)).fit(X[kept], y[kept])
    np.testing.assert_array_equal(wrapped.classes_, [0, 1, 2])
    assert wrapped.score(X[kept], y[kept]) > 0.8


def test_grid_search(wine):
    grid = {"objective": ["likelihood", "hybrid"], "covariance_type": ["tied", "diag"]}
    search = GridSearchCV(plain_classifier(random_state=0), grid, cv=3).fit(*wine)
    assert search.best_score_ > 0.85


def test_sample_weights_are_routed(wine):
    X, y = wine
    ignored = np.arange(len(y)) % 2 == 0
    weights = np.where(ignored, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = plain_classifier("likelihood", random_state=0)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        split = [(np.arange(len(y)), np.arange(len(y)))]
        weighted = cross_val_score(
            model, X, y, cv=split, params={"sample_weight": weights}
        )
    expected = clone(model).fit(X[~ignored], y[~ignored]).score(X[~ignored], y[~ignored])
    assert weighted[0] == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_output_of_the_imputer_can_be_set(kind, wine):
    imputer = MixtureImputer(1, covariance_type="full", covariance_prior=1.0).set_output(
        transform=kind
    )
    filled = imputer.fit_transform(wine[0].to_numpy())
    assert type(filled).__module__.startswith(kind)
    assert list(filled.columns) == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize(
    "estimator",
    [
        plain_classifier(tradeoff=3.5),
        HybridMixtureClassifierCV(tradeoff=3.5),
        MixtureDensity(
            tol=3.5, n_components=1, covariance_type="full", covariance_prior=1.0
        ),
        MixtureImputer(
            tol=3.5,
            n_components=(1, 2, 4, 8),
            covariance_type="full",
            covariance_prior=1.0,
        ),
        MixtureOutlierDetector(
            tol=3.5,
            n_components=(1, 2, 4, 8),
            covariance_type="full",
            covariance_prior=1.0,
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_notebooks_show_options(estimator):
    html = estimator._repr_html_()
    assert type(estimator).__name__ in html
    assert "3.5" in html


@pytest.fixture(scope="module", params=EVERY_ESTIMATOR)
def fitted(request, complete):
    """Every estimator after a short fit, and what it says about its rows."""
    X, y = (np.asarray(one) for one in complete)
    name = request.param
    options = QUICK.get(name, {})
    if "HMM" in name:
        X = X[:20].reshape(5, 4, 4)
        y = [0, 1, 0, 1, 0]
    model = getattr(hybridmix, name)(**options)
    if "MultiTask" in name:
        model.fit(X, y == 0, task=np.arange(len(X)) % 2)
        X = X[::2]
        return model, lambda one: one.predict(X, task=np.zeros(len(X), dtype=int))
    if name.endswith("Regressor"):
        X, y = X[:, 1:], X[:, 0]
    model.fit(X, y)
    methods = ("predict_proba", "predict", "score_samples", "transform")
    method = next(one for one in methods if hasattr(model, one))
    return model, lambda one: getattr(one, method)(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_skops_loads_every_estimator(fitted):
    """The types that skops is told to trust are enough, for every estimator."""
    skops = pytest.importorskip("skops.io")
    model, answers = fitted
    data = skops.dumps(model)
    assert set(skops.get_untrusted_types(data=data)) <= set(skops_types())
    same = skops.loads(data, trusted=skops_types())
    np.testing.assert_array_equal(answers(same), answers(model))


@pytest.mark.filterwarnings("ignore")  # of MLflow, about its own dependencies
@pytest.mark.parametrize("form", ["cloudpickle", "skops"])
def test_mlflow_loads_every_estimator(fitted, form, tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn")
    model, answers = fitted
    trusted = skops_types() if form == "skops" else None
    mlflow.save_model(
        model,
        str(tmp_path / "model"),
        serialization_format=form,
        skops_trusted_types=trusted,
        pip_requirements=["hybridmix"],
    )
    same = mlflow.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(answers(same), answers(model))


def test_joblib(model, wine, tmp_path):
    joblib.dump(model, tmp_path / "model.joblib")
    same = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(
        same.predict_proba(wine[0]), model.predict_proba(wine[0])
    )
