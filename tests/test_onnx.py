"""ONNX graphs compute what the models do."""

import json
import sys
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import hybridmix
from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.exceptions import UnsupportedError
from hybridmix.families import DiagonalGaussian, Product
from hybridmix.onnx import component_densities, densities, to_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

COVARIANCE_TYPES = ["spherical", "diag", "tied", "full", "subspace"]


def run(proto, **inputs):
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["label", "probabilities", "log_density"], inputs)


def with_holes(X, share=0.3, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    X[1] = np.nan
    return X


def classifier(**options):
    return plain_classifier("likelihood", random_state=0, **options)


def assert_agrees(model, X, dtype="float64", tol=1e-10):
    X = X.astype(dtype)
    label, probabilities, log_density = run(to_onnx(model, dtype=dtype), X=X)
    expected = model.predict_proba(X)
    assert probabilities.dtype == log_density.dtype == dtype
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=tol)
    np.testing.assert_allclose(log_density, model.score_samples(X), rtol=tol, atol=tol)
    top = np.sort(expected, axis=1)
    is_clear = top[:, -1] - top[:, -2] > tol
    np.testing.assert_array_equal(label[is_clear], model.predict(X)[is_clear])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_classifiers_agree(load, covariance_type):
    X, y = load(return_X_y=True)
    sizes = {0: 1, 1: 3, 2: 2}
    model = classifier(
        covariance_type=covariance_type, n_components=sizes, n_factors=2
    ).fit(X, y)
    for table in (X, with_holes(X)):
        assert_agrees(model, table, "float64", 1e-10)
        assert_agrees(model, table, "float32", 1e-6)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_densities_agree(covariance_type):
    X = with_holes(load_wine().data)
    model = MixtureDensity(
        3, covariance_type=covariance_type, random_state=0, covariance_prior=1.0
    ).fit(X)
    assert_agrees(model, X)


@pytest.mark.parametrize("covariance_type", ["tied", "full", "subspace"])
def test_rows_do_not_depend_on_blocks(covariance_type, monkeypatch):
    X = with_holes(load_iris().data)
    model = MixtureDensity(
        2, covariance_type=covariance_type, random_state=0, covariance_prior=1.0
    ).fit(X)
    monkeypatch.setattr(densities, "_BLOCK", 200)
    for n_rows in (1, 2, 7, 150):
        assert_agrees(model, X[:n_rows])
    assert_agrees(model, X[1:2])


def test_discriminative_training_and_calibration():
    X, y = load_wine(return_X_y=True)
    model = plain_classifier(calibrate=True, random_state=0).fit(X[:, :5], y)
    assert (model.temperature_, model.uniform_share_) != (1.0, 0.0)
    assert_agrees(model, with_holes(X[:, :5]))


def test_searched_classifier():
    X, y = load_iris(return_X_y=True)
    model = HybridMixtureClassifierCV(
        covariance_type=["diag"], n_components=[1], tradeoff=[1.0], cv=2, random_state=0
    ).fit(X, y)
    assert_agrees(model, with_holes(X))


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ([3, 5, 9], "i"),
        (["setosa", "versicolor", "ällü"], "O"),
        ([True, False, True], "b"),
        ([0.0, 1.0, 2.0], "f"),
    ],
)
def test_labels(classes, kind):
    X, y = load_iris(return_X_y=True)
    model = classifier(covariance_type="diag").fit(X, np.array(classes)[y])
    label, _, _ = run(to_onnx(model), X=X.astype("float32"))
    assert label.dtype.kind == kind
    np.testing.assert_array_equal(label, model.predict(X.astype("float32")))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(("dtype", "far"), [("float32", 1e30), ("float64", 1e300)])
def test_far_rows(covariance_type, dtype, far):
    X, y = load_iris(return_X_y=True)
    model = classifier(covariance_type=covariance_type).fit(X, y)
    rows = [[far, 0, 0, 0], [-far, np.nan, far, 0], [1e5, np.nan, 1e5, 1]]
    rows = np.array(rows, dtype=dtype)
    _, probabilities, log_density = run(to_onnx(model, dtype=dtype), X=rows)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)
    expected = model.score_samples(rows)
    expected[expected < np.finfo(dtype).min] = -np.inf
    np.testing.assert_allclose(log_density, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:No observed value")
def test_empty_and_constant_columns():
    X = with_holes(load_iris().data)
    table = np.column_stack([np.full(len(X), np.nan), X, np.full(len(X), 7.0)])
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(table)
    table[:, 0] = 1.0
    assert_agrees(model, table)


def test_no_rows():
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(load_iris().data)
    for result in run(to_onnx(model), X=np.empty((0, 4), dtype="float32")):
        assert len(result) == 0


# Categories -----------------------------------------------------------------------------


def mixed_frame(n_rows=200):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=n_rows)
    frame = pd.DataFrame(
        {
            "length": rng.normal(size=n_rows) + group,
            "colour": np.array(["red", "green", "blue"])[
                (rng.integers(2, size=n_rows) + group)
            ],
            "is_new": rng.random(n_rows) < 0.3 + 0.4 * group,
            "label": rng.normal(size=n_rows) - group,
        }
    )
    return frame, group


def column_inputs(frame):
    """Inputs as the page describes them."""
    return {
        "length": frame[["length"]].to_numpy("float64"),
        "colour": frame[["colour"]].fillna("").to_numpy(object),
        "is_new": frame[["is_new"]].to_numpy("float64", na_value=np.nan),
        "label_": frame[["label"]].to_numpy("float64"),
    }


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_mixed_table(covariance_type):
    frame, y = mixed_frame()
    model = classifier(covariance_type=covariance_type, n_components=2).fit(frame, y)
    frame["is_new"] = frame["is_new"].astype("boolean")
    for j, name in enumerate(frame):
        frame.loc[frame.index[j :: 4 + j], name] = None
    frame.loc[0, "colour"] = "never seen"
    proto = to_onnx(model, dtype="float64")
    _, probabilities, log_density = run(proto, **column_inputs(frame))
    with pytest.warns(UserWarning, match="never seen"):
        np.testing.assert_allclose(probabilities, model.predict_proba(frame), atol=1e-12)
    with pytest.warns(UserWarning, match="never seen"):
        np.testing.assert_allclose(log_density, model.score_samples(frame), rtol=1e-12)


def test_numbers_that_are_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=100), rng.integers(3, size=(100, 2)) + 0.1])
    X[rng.random(X.shape) < 0.2] = np.nan
    model = MixtureDensity(
        2,
        categorical_features=[1, 2],
        random_state=0,
        covariance_type="full",
        covariance_prior=1.0,
    ).fit(X)
    for dtype in ("float32", "float64"):
        _, _, log_density = run(to_onnx(model, dtype=dtype), X=X.astype(dtype))
        np.testing.assert_allclose(log_density, model.score_samples(X), rtol=1e-5)


def test_only_categories():
    X = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"], ["a", "x"]])
    model = MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(X)
    cells = {f"x{j}": X[:, j : j + 1].astype(object) for j in range(2)}
    _, _, log_density = run(to_onnx(model, dtype="float64"), **cells)
    np.testing.assert_allclose(log_density, model.score_samples(X))


def test_categories_that_have_no_type():
    X = np.array([[1, 0.5], ["a", 0.7], [1, 0.1], ["a", 0.2]], dtype=object)
    with pytest.raises(TypeError, match="column 0 are neither all strings nor all num"):
        to_onnx(MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(X))
    X = np.array([[2.0**24, 0.5], [2.0**24 + 1, 0.7], [2.0**24, 0.1]])
    model = MixtureDensity(
        1, categorical_features=[0], covariance_type="full", covariance_prior=1.0
    ).fit(X)
    with pytest.raises(ValueError, match="column 0 are the same number in float32"):
        to_onnx(model)
    to_onnx(model, dtype="float64")


# The file -------------------------------------------------------------------------------


def test_graph_says_what_it_is():
    frame, y = mixed_frame()
    proto = to_onnx(classifier().fit(frame, y))
    notes = {note.key: note.value for note in proto.metadata_props}
    assert notes["hybridmix_version"] == hybridmix.__version__
    assert notes["estimator"] == "HybridMixtureClassifier"
    assert json.loads(notes["feature_names"]) == list(frame)
    assert [v.name for v in proto.graph.input] == [*list(frame)[:3], "label_"]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_equal_models_make_equal_files(covariance_type):
    X, y = load_iris(return_X_y=True)
    first, second = (
        to_onnx(classifier(covariance_type=covariance_type).fit(X, y)) for _ in range(2)
    )
    assert first.SerializeToString() == second.SerializeToString()


@pytest.mark.parametrize("kind", [MixtureImputer, MixtureOutlierDetector])
def test_other_estimators_are_refused(kind):
    model = kind().fit(load_iris().data)
    with pytest.raises(TypeError, match=rf"{kind.__name__} cannot .* MixtureDensity can"):
        to_onnx(model)


def test_errors():
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(
            MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0)
        )
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(load_iris().data)
    with pytest.raises(
        ValueError, match="dtype='float16' is not one of float32, float64"
    ):
        to_onnx(model, dtype="float16")


def test_missing_package_is_named(monkeypatch):
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(load_iris().data)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'hybridmix\[onnx\]'"):
        to_onnx(model)


# Families of other packages -------------------------------------------------------------


@dataclass(frozen=True)
class Relative(DiagonalGaussian):
    """A family that inherits its export."""


class Stranger:
    """A family without an export."""


def with_family(model, family):
    return replace(model, family=family)


def test_families_without_export_are_named():
    model = MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(
        load_iris().data
    )
    model.model_ = with_family(model.model_, Stranger())
    with pytest.raises(UnsupportedError, match="Stranger does not offer an export"):
        to_onnx(model)


def test_product_names_the_family_that_has_no_export():
    frame, _ = mixed_frame()
    model = MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(frame)
    _, categorical = model.model_.family.families
    model.model_ = with_family(model.model_, Product((Stranger(), categorical)))
    with pytest.raises(UnsupportedError, match="Stranger does not offer"):
        to_onnx(model)


def test_families_inherit_the_export_of_their_base():
    X = with_holes(load_iris().data)
    model = MixtureDensity(
        2, covariance_type="diag", random_state=0, covariance_prior=1.0
    ).fit(X)
    model.model_ = with_family(model.model_, Relative(model.model_.family.prior))
    assert_agrees(model, X)


def test_families_register_their_own_export():
    class Laplace:
        pass

    @component_densities.register(Laplace)
    def _(family, parameters, graph, table):
        rows = table.real(graph)
        total = graph.op("ReduceSum", rows.values, [1], keepdims=1)
        return graph.op("Mul", total, 0.0)

    X = load_iris().data
    model = MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(X)
    model.model_ = with_family(model.model_, Laplace())
    _, _, log_density = run(to_onnx(model, dtype="float64"), X=X)
    np.testing.assert_array_equal(log_density, 0.0)


def test_unfitted_searches_are_refused():
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(HybridMixtureClassifierCV())
