"""Dask data frames: the same models as in memory, and lazy predictions."""

import pickle

import numpy as np
import pandas as pd
import pytest

from hybridmix import HybridMixtureClassifier, MixtureDensity, MixtureOutlierDetector

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

FEATURES = ["x0", "x1", "x2", "c"]
OPTIONS = {"n_components": 2, "random_state": 0}


def make_table(n_rows=400, seed=0):
    """Mixed columns with holes and weights, a class and a category that come late."""
    generator = np.random.default_rng(seed)
    labels = np.sort(generator.integers(3, size=n_rows))
    real = generator.normal(size=(n_rows, 3)) + 1.5 * labels[:, None]
    # The first partition is complete.
    real[100:][generator.random((n_rows - 100, 3)) < 0.1] = np.nan
    table = pd.DataFrame(real, columns=FEATURES[:3])
    table["c"] = np.where(np.arange(n_rows) < 390, "a", "late")
    table["species"] = np.array(["p", "q", "r"])[labels]
    weights = generator.integers(0, 3, size=n_rows).astype(float)
    weights[100:200] = 0.0
    weights[150] = 1.0
    return table.assign(w=weights)


TABLE = make_table()
X, Y, W = TABLE[FEATURES], TABLE["species"], TABLE["w"]


def partitioned(table=TABLE, n_partitions=4):
    """Return a frame of unknown divisions with two empty partitions."""
    frame = dd.from_pandas(table, npartitions=n_partitions)
    empty = dd.from_pandas(table[:0], npartitions=1)
    return dd.concat([empty, frame, empty], interleave_partitions=True).clear_divisions()


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_models_are_those_of_memory(covariance_type):
    options = {**OPTIONS, "covariance_type": covariance_type}
    density = MixtureDensity(**options).fit(X, sample_weight=W)
    expected = density.score_samples(X)
    density.fit(partitioned()[[*FEATURES, "w"]], sample_weight="w")
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=0, atol=1e-10)
    hybrid = {**options, "tradeoff": 3.0, "n_steps": 5}
    own = HybridMixtureClassifier(**hybrid).fit(X, Y, W)
    other = HybridMixtureClassifier(**hybrid).fit(partitioned(), "species", "w")
    np.testing.assert_allclose(
        other.predict_proba(X), own.predict_proba(X), rtol=0, atol=1e-10
    )
    assert other.classes_.tolist() == ["p", "q", "r"]


def test_labels_and_weights_may_be_series():
    frame = partitioned()
    options = {**OPTIONS, "covariance_type": "full"}
    own = HybridMixtureClassifier("likelihood", **options).fit(X, Y, W)
    other = HybridMixtureClassifier("likelihood", **options)
    other.fit(frame[FEATURES], frame["species"], frame["w"])
    assert other.feature_names_in_.tolist() == FEATURES
    np.testing.assert_allclose(other.predict_proba(X), own.predict_proba(X), atol=1e-10)
    with pytest.raises(ValueError, match="rows in a partition"):
        other.fit(frame[FEATURES], dd.from_pandas(Y[:300], npartitions=6))


def test_predictions_are_lazy():
    model = HybridMixtureClassifier("likelihood", covariance_type="full", **OPTIONS)
    model.fit(X, Y)
    frame = partitioned()
    for method in ("predict", "predict_proba", "score_samples", "typicality"):
        found = getattr(model, method)(frame)
        expected = getattr(model, method)(X)
        assert dask.is_dask_collection(found)
        assert found.dtype == expected.dtype
        assert found.ndim == expected.ndim
        if method == "predict":
            assert found.compute().tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(found.compute(), expected, rtol=0, atol=1e-12)
    assert model.score(frame, "species", "w") == model.score(X, Y, W)
    assert model.score(frame, Y.tolist(), W) == model.score(X, Y, W)
    filled = model.impute(frame[FEATURES])
    assert dask.is_dask_collection(filled)
    pd.testing.assert_frame_equal(
        filled.compute().reset_index(drop=True),
        model.impute(X),
        check_dtype=False,
        rtol=1e-12,
    )


def test_detector_takes_partitions():
    detector = MixtureOutlierDetector(1, covariance_type="full", contamination=0.1)
    expected = detector.fit(X).predict(X)
    found = detector.fit(partitioned()[FEATURES]).predict(partitioned())
    assert found.compute().tolist() == expected.tolist()


def test_searches_take_partitions():
    model = HybridMixtureClassifier(random_state=0, effort="fast")
    model.fit(partitioned()[["x0", "x1", "species"]], "species")
    assert model.n_searched_ == 400


def test_fitted_models_hold_nothing_of_dask():
    model = MixtureDensity(1, covariance_type="full").fit(partitioned()[FEATURES])
    assert b"dask" not in pickle.dumps(model)


# Types and errors -----------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_filled_partitions_have_the_types_that_were_announced(backend):
    table = pd.DataFrame({"n": [1, 2, 3, None, 5, 6, 7, 8], "x": np.arange(8.0)})
    table["x"] = table["x"].where(table["x"] != 6.0)
    frame = dd.from_pandas(table.convert_dtypes(dtype_backend=backend), npartitions=4)
    model = MixtureDensity(1, covariance_type="full").fit(frame)
    filled = model.impute(frame)
    for part in filled.to_delayed():
        assert part.compute().dtypes.tolist() == filled.dtypes.tolist()
    assert filled.compute()["n"].notna().all()


def test_text_of_numbers_is_read_as_in_memory():
    model = MixtureDensity(1, covariance_type="full").fit(X[["x0", "x1"]])
    texts = X[["x0", "x1"]].astype({"x0": str})
    found = model.score_samples(dd.from_pandas(texts, npartitions=3))
    np.testing.assert_allclose(found.compute(), model.score_samples(texts), rtol=1e-12)


def test_errors_of_rows_name_the_partition():
    table = X.assign(x0=np.where(np.arange(400) == 250, np.inf, 0.0))
    model = MixtureDensity(1, covariance_type="full").fit(X)
    frame = partitioned(table)  # the first partition is empty
    for run in (
        lambda: MixtureDensity(1).fit(frame),
        lambda: model.score_samples(frame).compute(),
        lambda: model.impute(frame).compute(),
    ):
        with pytest.raises(ValueError, match="column 'x0', row 50") as caught:
            run()
        assert caught.value.__notes__ == [
            "Rows are counted from the first row of partition 3."
        ]
    texts = partitioned(X.assign(x0=X["x0"].astype(str).fillna("oops")))
    with pytest.raises(ValueError, match="here it holds 'oops'"):
        model.predict(texts).compute()


def test_errors_of_labels_and_weights_name_the_way_out():
    model = HybridMixtureClassifier("likelihood", n_components=1)
    with pytest.raises(TypeError, match="pass a Dask series, data frame or array"):
        model.fit(partitioned(), Y)
    with pytest.raises(ValueError, match="Column 'c' does not hold weights"):
        model.fit(partitioned(), "species", "c")
    numbers = da.from_array(X[["x0", "x1"]].to_numpy(), chunks=(100, 2))
    with pytest.raises(ValueError, match="X has 400 rows and y has 300"):
        model.fit(numbers, da.zeros(300, chunks=100))


# Partitions that differ -----------------------------------------------------------


def of_partitions(*parts, example=None):
    """Return a frame of partitions whose types are not those that it announces."""
    example = parts[0][:0] if example is None else example
    return dd.from_map(parts.__getitem__, range(len(parts)), meta=example)


@pytest.mark.parametrize("column", ["x0", "c"])
@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("place", [0, 1])
def test_columns_may_be_missing_in_a_partition(column, missing, place):
    parts = [X[:200], X[200:]]
    parts[place] = parts[place].assign(**{column: missing})
    whole = X.copy()
    whole.loc[parts[place].index, column] = None
    model = MixtureDensity(1, covariance_type="full")
    expected = model.fit(whole).score_samples(whole)
    frame = of_partitions(*parts, example=X[:0])
    found = model.fit(frame).score_samples(frame).compute()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_partitions_of_other_columns_are_refused():
    with pytest.raises(
        ValueError, match="Column 'x1' of the data frame is not"
    ) as caught:
        MixtureDensity(1).fit(of_partitions(X[:200], X[200:].drop(columns="x1")))
    assert "partition 1" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="'x1' holds numbers in some blocks"):
        MixtureDensity(1, column_shapes="plain").fit(
            of_partitions(X[:200], X[200:].assign(x1="text"))
        )


def test_series_are_not_tables():
    with pytest.raises(ValueError, match=r"X\.to_frame\(\)"):
        MixtureDensity(1).fit(partitioned()["x0"])
