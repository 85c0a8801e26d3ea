"""Model files whose values were changed: the checksums are right, the model is not."""

import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from model_files import (
    FACTORS,
    FAMILIES,
    MODEL,
    SCHEMA,
    array_of,
    refused,
    set_array,
    set_value,
)

from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.io import load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 3))
Y = np.arange(60) % 2
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(text=RNG.choice(["x", "y"], 60))
LEARNED = ("estimator", "learned")
COMPONENTS = (*MODEL, "components", "record", "fields")
FAMILY = (*MODEL, "family", "record", "fields")
RECORD = ("record", "fields")
GAUSSIAN = (*FACTORS, 0, *RECORD)
PRIOR = (*FAMILIES, 0, *RECORD, "prior", *RECORD)
CATEGORICAL = (*FACTORS, 1, *RECORD, "log_probabilities")


def models():
    density = {"random_state": 0, "tol": 1e-2}
    return {
        "full": MixtureDensity(2, covariance_type="full", **density).fit(FRAME),
        "tied": MixtureDensity(2, covariance_type="tied", **density).fit(FRAME),
        "diag": MixtureDensity(2, covariance_type="diag", **density).fit(X),
        "subspace": MixtureDensity(
            2, covariance_type="subspace", n_factors=2, **density
        ).fit(X),
        "classifier": plain_classifier(n_steps=3, random_state=0).fit(FRAME, Y),
        "detector": MixtureOutlierDetector(
            1, covariance_type="full", covariance_prior=1.0
        ).fit(X),
        "imputer": MixtureImputer(
            1, n_draws=1, covariance_type="full", covariance_prior=1.0
        ).fit(X),
        "search": HybridMixtureClassifierCV(
            plain_classifier(n_steps=3),
            n_components=[1],
            covariance_type=["diag"],
            tradeoff=[0, 1],
            cv=2,
        ).fit(X, Y),
    }


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    MODELS = models()


@pytest.mark.parametrize("name", MODELS)
def test_untouched_files_load(name, tmp_path):
    save(MODELS[name], tmp_path / "model")
    loaded = load(tmp_path / "model")
    table = FRAME if name in ("full", "tied", "classifier") else X
    np.testing.assert_array_equal(
        loaded.score_samples(table), MODELS[name].score_samples(table)
    )


def put(value):
    """Return a change that puts a value into the first cell."""

    def changed(array):
        array = array.copy()
        array.flat[0] = value
        return array

    return changed


def above_diagonal(matrices):
    matrices = matrices.copy()
    matrices[0, 0, 1] = 0.5
    return matrices


def negative_diagonal(matrices):
    matrices = matrices.copy()
    matrices[0, 1, 1] *= -1.0
    return matrices


def skewed(matrices):
    matrices = matrices.copy()
    matrices[0, 0, 1] += 0.01
    return matrices


VALUE = (*LEARNED, "history_", "dict", 0, 1)
NORMALISED = "are not logarithms of probabilities that sum to one"
ARRAYS = [
    ("full", (*MODEL, "log_mixing"), put(np.nan), "log_mixing has .* not finite"),
    ("full", (*MODEL, "log_mixing"), put(-np.inf), "log_mixing has .* not finite"),
    ("full", (*MODEL, "log_mixing"), lambda x: x + 1e-5, f"log_mixing {NORMALISED}"),
    ("full", (*MODEL, "log_mixing"), put(1e3), f"log_mixing {NORMALISED}"),
    ("classifier", (*MODEL, "log_class_prior"), put(np.nan), "prior has .* not finite"),
    ("classifier", (*MODEL, "log_class_prior"), lambda x: x - 1.0, f"prior {NORMALISED}"),
    ("full", CATEGORICAL, put(np.inf), "log_probabilities has .* not finite"),
    ("full", CATEGORICAL, lambda x: x + 0.1, f"log_probabilities {NORMALISED}"),
    ("full", CATEGORICAL, put(0.0), f"log_probabilities {NORMALISED}"),
    ("full", (*SCHEMA, "centre"), put(np.nan), "centre has .* not finite"),
    ("full", (*SCHEMA, "scale"), put(np.inf), "scale has .* not finite"),
    ("full", (*SCHEMA, "scale"), put(0.0), "scale has .* not positive"),
    ("full", (*SCHEMA, "scale"), put(-1.0), "scale has .* not positive"),
    ("full", (*GAUSSIAN, "means"), put(np.inf), "means has .* not finite"),
    ("full", (*GAUSSIAN, "means"), put(1e300), "means are beyond all rows"),
    ("full", (*GAUSSIAN, "covariances"), put(np.nan), "covariances has .* not finite"),
    ("full", (*GAUSSIAN, "covariances"), put(-1.0), "variances that are not positive"),
    ("full", (*GAUSSIAN, "covariances"), skewed, "a covariance is not symmetric"),
    ("full", (*GAUSSIAN, "covariances"), lambda x: 1.01 * x, "do not belong together"),
    ("full", (*GAUSSIAN, "covariances"), lambda x: 1e300 * x, "do not belong together"),
    ("full", (*GAUSSIAN, "whiteners"), put(np.nan), "whiteners has .* not finite"),
    ("full", (*GAUSSIAN, "whiteners"), above_diagonal, "not lower triangular"),
    ("full", (*GAUSSIAN, "whiteners"), negative_diagonal, "diagonal .* not positive"),
    ("full", (*GAUSSIAN, "whiteners"), np.zeros_like, "diagonal .* not positive"),
    ("full", (*GAUSSIAN, "whiteners"), lambda x: 2.0 * x, "do not belong together"),
    ("full", (*GAUSSIAN, "whiteners"), lambda x: x[::-1], "do not belong together"),
    ("full", (*GAUSSIAN, "whiteners"), lambda x: 1e200 * x, "do not belong together"),
    ("full", (*PRIOR, "variances"), put(0.0), "variances of the prior .* not positive"),
    ("full", (*PRIOR, "variances"), put(np.nan), "variances of the prior .* not finite"),
    ("tied", (*GAUSSIAN, "covariances"), lambda x: x[[0, 0]], "shape|1 covariances"),
    ("diag", (*COMPONENTS, "means"), put(np.nan), "means has .* not finite"),
    ("diag", (*COMPONENTS, "variances"), put(0.0), "variances has .* not positive"),
    ("diag", (*COMPONENTS, "variances"), put(-1.0), "variances has .* not positive"),
    ("diag", (*COMPONENTS, "variances"), put(np.inf), "variances has .* not finite"),
    (
        "subspace",
        (*COMPONENTS, "subspace", *RECORD, "noise"),
        put(0.0),
        "noise has .* not positive",
    ),
    (
        "subspace",
        (*COMPONENTS, "subspace", *RECORD, "loading"),
        put(np.nan),
        "loading has .* not finite",
    ),
    (
        "subspace",
        (*COMPONENTS, "subspace", *RECORD, "centre"),
        lambda x: x + 1.0,
        "the subspaces differ",
    ),
    (
        "subspace",
        (*COMPONENTS, "latent", *RECORD, "whiteners"),
        lambda x: 0.5 * x,
        "do not belong together",
    ),
    (
        "classifier",
        (*PRIOR, "correlations"),
        lambda x: 2.0 * x,
        "correlations of the prior are not between -1 and 1",
    ),
    ("classifier", (*PRIOR, "correlations"), lambda x: 0.5 * x, "not 1 on the diagonal"),
    ("classifier", (*LEARNED, "component_classes_"), put(1), "another mixture"),
    ("classifier", (*LEARNED, "class_prior_"), put(0.9), "class_prior_ is not that"),
    ("classifier", (*LEARNED, "class_prior_"), put(np.nan), "class_prior_ is not that"),
    ("classifier", (*LEARNED, "class_prior_"), lambda x: x[:1], "class_prior_ is not"),
    ("classifier", (*LEARNED, "n_components_"), put(7), "n_components_ is not that"),
    ("full", (*LEARNED, "trace_"), put(np.nan), "trace_ has values that are not numbers"),
    ("classifier", VALUE, put(np.nan), "history_.'value'. has values that are not"),
    ("classifier", VALUE, lambda x: x[1:], "parts of history_ differ in length"),
    ("classifier", VALUE, lambda x: x + 1.0, "trace_ is not that of history_"),
]


@pytest.mark.parametrize(("name", "where", "change", "pattern"), ARRAYS)
def test_arrays_are_checked(name, where, change, pattern, tmp_path):
    path = tmp_path / "model"
    save(MODELS[name], path)
    set_array(path, where, change(array_of(path, where)))
    refused(path, pattern)


NAN, INFINITE = {"float": "nan"}, {"float": "inf"}
PARAMS = ("estimator", "params")
HISTORY = (*LEARNED, "history_")
VALUES = [
    ("full", (*PRIOR, "strength"), -1.0, "strength of the prior is less than 0"),
    ("full", (*PRIOR, "strength"), NAN, "strength of the prior is not a finite number"),
    ("full", (*PRIOR, "floor"), -1e-6, "variance floor is less than 0"),
    ("full", (*PRIOR, "floor"), INFINITE, "variance floor is not a finite number"),
    ("full", (*PRIOR, "floor"), "low", "variance floor is not a finite number"),
    ("full", (*FAMILIES, 0, *RECORD, "tied"), True, "there are not 1 covariances"),
    ("full", (*FAMILIES, 0, *RECORD, "tied"), 1, "tied is a int and not a bool"),
    ("full", (*FAMILIES, 0, *RECORD, "prior"), 1, "prior is a int and not a Variance"),
    ("full", (*FAMILIES, 1, *RECORD, "smoothing"), -1, "smoothing is less than 0"),
    ("full", (*FAMILIES, 1, *RECORD, "n_categories"), {"tuple": [0, 2]}, "at least 1"),
    ("full", (*FAMILIES, 1), 3, "a family is a int"),
    ("full", (*MODEL, "family"), 3, "the family is a int"),
    ("diag", (*FAMILY, "spherical"), None, "spherical is a NoneType"),
    ("diag", (*MODEL, "components"), None, "a set of parameters is a NoneType"),
    ("classifier", (*LEARNED, "temperature_"), INFINITE, "temperature_ is not a finite"),
    ("classifier", (*LEARNED, "temperature_"), NAN, "temperature_ is not a finite"),
    ("classifier", (*LEARNED, "temperature_"), 0.0, "temperature_ is not positive"),
    ("classifier", (*LEARNED, "temperature_"), -1.0, "temperature_ is not positive"),
    ("classifier", (*LEARNED, "uniform_share_"), NAN, "uniform_share_ is not a share"),
    ("classifier", (*LEARNED, "uniform_share_"), 1.5, "uniform_share_ is not a share"),
    ("detector", (*LEARNED, "offset_"), NAN, "offset_ is not a number"),
    ("full", (*SCHEMA, "container"), "zzz", "container is none of pandas"),
    ("diag", (*SCHEMA, "container"), "pandas", "container is none of numpy"),
    ("full", (*SCHEMA, "dtype_names"), {"tuple": [1, 2, 3, 4]}, "names are missing"),
    ("full", (*LEARNED, "n_components_"), 3, "n_components_ is not that of the model"),
    ("full", (*LEARNED, "n_components_"), "x", "n_components_ is not that of the model"),
    ("full", (*LEARNED, "n_iter_"), -1, "n_iter_ is less than 0"),
    ("full", (*LEARNED, "n_iter_"), "x", "n_iter_ is a str"),
    ("full", (*LEARNED, "converged_"), "x", "converged_ is a str"),
    ("full", (*LEARNED, "interrupted_"), 1, "interrupted_ is a int"),
    ("full", (*LEARNED, "trace_"), [1.0], "trace_ is not an array of 1 axes"),
    ("full", (*LEARNED, "bic_"), {"dict": [[2, NAN]]}, "bic_ has values that are not"),
    ("full", (*LEARNED, "bic_"), 3, "bic_ is a int"),
    ("classifier", HISTORY, 3, "history_ is a int"),
    ("classifier", HISTORY, {"dict": [["value", 1.0]]}, "history_.'value'. is not an"),
    ("classifier", HISTORY, {"dict": []}, "trace_ is not that of history_"),
    ("classifier", (*LEARNED, "unlabelled_weight_"), NAN, "unlabelled_weight_ is not a"),
]
# Whatever `fit` refuses.
OPTIONS = [
    ("full", "n_jobs", "x"),
    ("full", "n_jobs", 0),
    ("full", "random_state", -1),
    ("full", "random_state", "x"),
    ("full", "verbose", "x"),
    ("full", "covariance_type", "round"),
    ("full", "covariance_prior", -1.0),
    ("full", "max_iter", 0),
    ("full", "n_components", 0),
    ("full", "init", "zzz"),
    ("classifier", "n_jobs", "x"),
    ("classifier", "n_components", {"dict": [[0, 1]]}),
    ("classifier", "objective", "zzz"),
    ("classifier", "tradeoff", NAN),
    ("classifier", "calibrate", "x"),
    ("classifier", "refine_subspace", "x"),
    ("classifier", "class_prior", [0.5, 0.6]),
    ("classifier", "class_prior", [0.2, 0.3, 0.5]),
    ("detector", "threshold", "zzz"),
    ("detector", "cv", 0),
    ("imputer", "n_draws", 0),
    ("search", "cv", 0),
    ("search", "n_jobs", "x"),
    ("search", "tradeoff", ["x"]),
    ("search", "missing_rate", 2.0),
    ("search", "per_class", "x"),
]


@pytest.mark.parametrize(("name", "option", "value"), OPTIONS)
def test_options_that_fit_refuses_are_refused_in_files(name, option, value, tmp_path):
    path = tmp_path / "model"
    save(MODELS[name], path)
    set_value(path, (*PARAMS, option), value)
    refused(path, option)


def test_models_whose_options_fit_refuses_are_not_saved(tmp_path):
    model = copy(MODELS["full"]).set_params(n_jobs="x")
    with pytest.raises(ValueError, match="n_jobs='x' is not valid"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize(("name", "where", "value", "pattern"), VALUES)
def test_values_are_checked(name, where, value, pattern, tmp_path):
    path = tmp_path / "model"
    save(MODELS[name], path)
    set_value(path, where, value)
    refused(path, pattern)


def test_ill_conditioned_covariances_are_no_tampering(tmp_path):
    """Rounding in whiteners of nearly singular covariances is no reason to refuse."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(200, 6))
    noise = np.logspace(-2, -12, 6) * rng.normal(size=(200, 6))
    table = np.hstack([base, base + noise])
    model = MixtureDensity(
        2,
        variance_floor=1e-12,
        covariance_prior=0,
        random_state=0,
        covariance_type="full",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").score_samples(table), model.score_samples(table)
    )


@pytest.mark.parametrize("name", ["means_", "covariances_", "mixing_"])
def test_published_parameters_are_those_of_the_model(name, tmp_path):
    model = copy(MODELS["full"])
    setattr(model, name, getattr(model, name) * np.nan)
    with pytest.raises(ValueError, match=f"{name} is not that of the model"):
        save(model, tmp_path / "model")


def test_labels_are_distinct(tmp_path):
    model = copy(MODELS["classifier"])
    model.classes_ = np.array([1, 1])
    with pytest.raises(ValueError, match="a label twice"):
        save(model, tmp_path / "model")
