"""ONNX graphs compute what the models do."""

import json
import sys
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import hybridmix
from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureNetworkClassifier,
    MixtureNetworkRegressor,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from hybridmix.exceptions import UnsupportedError
from hybridmix.families import DiagonalGaussian, Product
from hybridmix.onnx import component_densities, holes, to_onnx
from hybridmix.onnx.graph import Graph
from hybridmix.onnx.quantiles import normal_shares

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

COVARIANCE_TYPES = ["spherical", "diag", "tied", "full", "subspace"]


def run(proto, outputs=("label", "probabilities", "log_density"), **inputs):
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(outputs, inputs)


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
    monkeypatch.setattr(holes, "_BLOCK", 200)
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


# Networks -------------------------------------------------------------------------------


def network(training="stages", covariance_type="full", **options):
    options = {"n_components": 2, "n_factors": 2, "n_steps": 3} | options
    return MixtureNetworkClassifier(
        training, covariance_type=covariance_type, random_state=0, **options
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("training", ["stages", "joint"])
def test_networks_agree(training, covariance_type):
    X, y = load_wine(return_X_y=True)
    model = network(training, covariance_type).fit(X, y)
    for table in (X, with_holes(X)):
        assert_agrees(model, table, "float64", 1e-9)
        assert_agrees(model, table, "float32", 1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"features": ("posterior", "log_joint", "linear", "experts")},
        {"features": "posterior"},
        {"features": "linear", "mixtures": "pool", "embedding_temperature": 3.0},
        {"features": ("posterior", "experts"), "mixtures": "linked"},
        {"training": "alternating"},
        {"calibrate": True},
    ],
    ids=str,
)
def test_features_of_networks(options):
    X, y = load_iris(return_X_y=True)
    assert_agrees(network(**options).fit(X, y), with_holes(X))


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_network_of_mixed_table(covariance_type):
    frame, y = mixed_frame()
    frame.loc[::3, "length"] = 0.0  # a spike
    features = ("posterior", "log_joint", "linear")
    model = network(covariance_type=covariance_type, features=features).fit(frame, y)
    frame["is_new"] = frame["is_new"].astype("boolean")
    for j, name in enumerate(frame):
        frame.loc[frame.index[j :: 4 + j], name] = None
    proto = to_onnx(model, dtype="float64")
    _, probabilities, log_density = run(proto, **column_inputs(frame))
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), atol=1e-12)
    np.testing.assert_allclose(log_density, model.score_samples(frame), rtol=1e-12)


def test_committee_of_networks():
    X, y = load_iris(return_X_y=True)
    model = MixtureNetworkClassifier(random_state=0, n_steps=5).fit(X, y)
    assert len(model.committee_.members) > 1
    assert_agrees(model, with_holes(X))


@pytest.mark.parametrize("covariance_type", ["full", "subspace"])
def test_filled_rows_do_not_depend_on_blocks(covariance_type, monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = network(covariance_type=covariance_type).fit(X, y)
    monkeypatch.setattr(holes, "_BLOCK", 200)
    for n_rows in (1, 2, 7, 150):
        assert_agrees(model, with_holes(X)[:n_rows])


# Targets --------------------------------------------------------------------------------

TARGET_OUTPUTS = ("mean", "deviation", "log_density")


def regressor(covariance_type="full", n_components=3, **options):
    options = {"tradeoff": 0.0, "covariance_prior": 1.0, "n_factors": 2} | options
    return MixtureRegressor(
        n_components, covariance_type=covariance_type, random_state=0, **options
    )


LEVELS = (0.01, 0.05, 0.5, 0.975)


def assert_targets_agree(model, X, dtype="float64", tol=1e-10, inputs=None):
    inputs = {"X": X.astype(dtype)} if inputs is None else inputs
    X = X if isinstance(X, pd.DataFrame) else X.astype(dtype)
    proto = to_onnx(model, dtype=dtype, quantiles=LEVELS)
    *found, quantiles = run(proto, (*TARGET_OUTPUTS, "quantiles"), **inputs)
    expected = model.predict_quantiles(X, LEVELS).reshape(len(X), -1, len(LEVELS))
    assert quantiles.dtype == dtype
    np.testing.assert_allclose(quantiles, expected, rtol=max(tol, 1e-6), atol=1e-8)
    mean, deviation = (
        part.reshape(len(X), -1) for part in model.predict(X, return_std=True)
    )
    expected = (mean, deviation, model.score_samples(X))
    for own, wanted in zip(found, expected, strict=True):
        assert own.dtype == dtype
        np.testing.assert_allclose(own, wanted, rtol=tol, atol=tol)


def shaped_targets(X, seed=0):
    """Targets of every shape: plain, skewed, positive, bounded, and with spikes."""
    rng = np.random.default_rng(seed)
    signal = X[:, 2] / X[:, 2].std() + rng.normal(size=len(X))
    return {
        "symmetric": signal,
        "skewed": np.sinh(signal + 0.8),
        "positive": np.exp(1.5 * signal),
        "bounded": 1.0 / (1.0 + np.exp(-2.0 * signal)),
        "often 0": np.where(signal < 0.0, 0.0, np.exp(signal)),
    }


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_regressors_agree(covariance_type, n_targets):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200]
    targets = y if n_targets == 1 else np.column_stack([y, X[:, 0] ** 2])
    model = regressor(covariance_type).fit(X, targets)
    for table in (X, with_holes(X)):
        assert_targets_agree(model, table, "float64", 1e-10)
        assert_targets_agree(model, table, "float32", 1e-5)


@pytest.mark.parametrize(
    "word", ["symmetric", "skewed", "positive", "bounded", "often 0"]
)
def test_shapes_of_targets(word):
    X = load_diabetes().data
    y = shaped_targets(X)[word]
    shapes = {"bounded": {0: "bounded"}}.get(word, "auto")
    model = regressor("diag", target_shapes=shapes).fit(X, y)
    assert word in str(model.target_schema_.shapes.get(0, "symmetric"))
    assert_targets_agree(model, with_holes(X))


def test_shapes_of_several_targets():
    X = load_diabetes().data
    targets = np.column_stack(list(shaped_targets(X).values()))
    model = regressor().fit(X, targets)
    assert_targets_agree(model, with_holes(X)[:100])


def test_searched_regressor():
    X, y = load_diabetes(return_X_y=True)
    model = MixtureRegressor([1, 3], covariance_type="diag", random_state=0).fit(X, y)
    assert len(model.predictive_.members) > 1
    model.predictive_ = replace(model.predictive_, spread=0.8)
    assert_targets_agree(model, with_holes(X))


def test_regressor_of_mixed_table():
    frame, group = mixed_frame()
    y = np.random.default_rng(1).normal(size=len(group)) + 2.0 * group + frame["length"]
    frame["mean"] = frame.pop("label")
    model = regressor().fit(frame, y)
    frame["is_new"] = frame["is_new"].astype("boolean")
    for j, name in enumerate(frame):
        frame.loc[frame.index[j :: 4 + j], name] = None
    cells = column_inputs(frame.rename(columns={"mean": "label"}))
    cells["mean_"] = cells.pop("label_")
    assert_targets_agree(model, frame, inputs=cells)


def test_regressor_of_categories_alone():
    rng = np.random.default_rng(0)
    X = rng.choice(["a", "b", "c"], size=(200, 2))
    y = (X == "a").sum(axis=1) + rng.normal(size=200)
    model = regressor().fit(X, y)
    cells = {f"x{j}": X[:, j : j + 1].astype(object) for j in range(2)}
    mean, deviation, _ = run(to_onnx(model, dtype="float64"), TARGET_OUTPUTS, **cells)
    expected = model.predict(X, return_std=True)
    np.testing.assert_allclose(np.hstack([mean, deviation]), np.transpose(expected))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("far", [1e4, 1e12, 1e30])
def test_targets_of_far_rows(covariance_type, far):
    X, y = load_diabetes(return_X_y=True)
    model = regressor(covariance_type, 1, target_shapes="plain").fit(X[:, :3], y)
    rows = np.array([[far, 0, 0], [-far, np.nan, 0], [0, 0, 0]])
    assert_targets_agree(model, rows, tol=1e-6)


def test_targets_of_no_rows():
    X, y = load_diabetes(return_X_y=True)
    for model in (regressor(), network_regressor()):
        proto = to_onnx(model.fit(X, y), quantiles=LEVELS)
        names, rows = (*TARGET_OUTPUTS, "quantiles"), np.empty((0, 10), dtype="float32")
        mean, deviation, _, quantiles = run(proto, names, X=rows)
        assert mean.shape == deviation.shape == (0, 1)
        assert quantiles.shape == (0, 1, len(LEVELS))


def test_graphs_have_quantiles_only_if_asked():
    X, y = load_diabetes(return_X_y=True)
    model = regressor().fit(X, y)
    for quantiles, names in (
        (None, ["mean", "deviation", "log_density"]),
        (0.5, ["mean", "deviation", "quantiles", "log_density"]),
    ):
        proto = to_onnx(model, quantiles=quantiles)
        assert [output.name for output in proto.graph.output] == names
    for wrong in (0.0, [0.5, 1.0], [], [[0.5]]):
        with pytest.raises(ValueError, match=r"quantiles=.* is not valid"):
            to_onnx(model, quantiles=wrong)
    for other in (MixtureDensity(1), MixtureNetworkRegressor(1, output="epsilon")):
        with pytest.raises(ValueError, match="has no quantiles"):
            to_onnx(other.fit(X, y), quantiles=0.5)


def test_the_normal_distribution_function_keeps_its_digits():
    graph = Graph()
    scores = graph.input(np.float64, "z", ["n"])
    graph.output(normal_shares(graph, scores), np.float64, "p", ["n"])
    opset = [onnx.helper.make_opsetid("", 17)]
    proto = onnx.helper.make_model(graph.proto("p"), opset_imports=opset, ir_version=8)
    z = np.concatenate([np.linspace(-37.0, 37.0, 10_001), [-1e100, 0.0, 1e100]])
    [found] = run(proto, ["p"], z=z)
    np.testing.assert_allclose(found, ndtr(z), rtol=1e-11, atol=1e-300)


# Network regressors ---------------------------------------------------------------------


def network_regressor(covariance_type="full", **options):
    options = {"n_factors": 2, "covariance_type": covariance_type} | options
    return MixtureNetworkRegressor(2, random_state=0, **options)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_network_regressors_agree(covariance_type, n_targets):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200]
    targets = y if n_targets == 1 else np.column_stack([y, X[:, 0] ** 2])
    model = network_regressor(covariance_type).fit(X, targets)
    for table in (X, with_holes(X)):
        assert_targets_agree(model, table, "float64", 1e-9)
        assert_targets_agree(model, table, "float32", 1e-5)


@pytest.mark.parametrize(
    "features", ["posterior", ("posterior", "log_joint", "linear", "experts")]
)
def test_features_of_network_regressors(features):
    X, y = load_diabetes(return_X_y=True)
    assert_targets_agree(network_regressor(features=features).fit(X, y), with_holes(X))


def test_network_regressor_of_an_insensitive_loss():
    X, y = load_diabetes(return_X_y=True)
    model = network_regressor(output="epsilon").fit(X, y)
    X = with_holes(X)
    mean, log_density = run(to_onnx(model, dtype="float64"), None, X=X)
    np.testing.assert_allclose(mean[:, 0], model.predict(X))
    np.testing.assert_allclose(log_density, model.score_samples(X))


def test_network_regressor_of_mixed_table():
    frame, group = mixed_frame()
    y = np.random.default_rng(1).normal(size=len(group)) + 2.0 * group + frame["length"]
    frame = frame.rename(columns={"label": "quantiles"})
    model = network_regressor("diag").fit(frame, y)
    frame["is_new"] = frame["is_new"].astype("boolean")
    for j, name in enumerate(frame):
        frame.loc[frame.index[j :: 4 + j], name] = None
    cells = column_inputs(frame.rename(columns={"quantiles": "label"}))
    cells["quantiles_"] = cells.pop("label_")
    assert_targets_agree(model, frame, inputs=cells)


@pytest.mark.parametrize("make", [network, network_regressor])
def test_files_are_the_same_after_loading(make, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = make().fit(X, y)
    hybridmix.save(model, tmp_path / "model.hmx")
    loaded = hybridmix.load(tmp_path / "model.hmx")
    assert to_onnx(model) == to_onnx(loaded)


def test_equal_mixtures_are_evaluated_once():
    X, y = load_iris(return_X_y=True)
    kinds = [node.op_type for node in to_onnx(network().fit(X, y)).graph.node]
    assert kinds.count("If") == 1
    joint = to_onnx(network("joint").fit(X, y))
    assert [node.op_type for node in joint.graph.node].count("If") == 2


def test_transforms_without_export_are_named():
    X, y = load_diabetes(return_X_y=True)
    model = regressor().fit(X, y)
    shape = replace(model.target_schema_.shapes[0], transform=Stranger())
    model.target_schema_ = replace(model.target_schema_, shapes={0: shape})
    with pytest.raises(UnsupportedError, match=r"Stranger .* target_shapes='plain'"):
        to_onnx(model)


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


class DensityOnly:
    """A family whose densities are exported, but not what it fills holes with."""


def with_family(model, family):
    return replace(model, family=family)


def test_families_without_export_are_named():
    model = MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(
        load_iris().data
    )
    model.model_ = with_family(model.model_, Stranger())
    with pytest.raises(UnsupportedError, match="Stranger does not offer an export"):
        to_onnx(model)


def test_fills_that_have_no_export_are_named():
    X, y = load_iris(return_X_y=True)
    model = network().fit(X, y)

    @component_densities.register(DensityOnly)
    def _(family, parameters, graph, table):
        return graph.op("MatMul", table.real(graph).values, np.zeros((4, 6)))

    filler = with_family(model.network_.embedding.filler, DensityOnly())
    embedding = replace(model.network_.embedding, filler=filler)
    model.network_ = replace(model.network_, embedding=embedding)
    with pytest.raises(UnsupportedError, match=r"DensityOnly .* features='posterior'"):
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
