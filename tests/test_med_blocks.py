"""Linear machines of tables in blocks: memory's results."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

from hybridmix import MEDClassifier, MEDOutlierDetector, MEDRegressor, scan

FEATURES = ["a", "b", "c"]


def make_table(n_rows=600, seed=0):
    """Three classes with labels that some rows lack, and weights."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=n_rows)
    rows = generator.normal(size=(n_rows, 3)) + np.eye(3)[labels] * 1.5 + 4.0
    table = pd.DataFrame(rows, columns=FEATURES)
    table["kind"] = np.array(["p", "q", "r"])[labels]
    table.loc[generator.random(n_rows) < 0.1, "kind"] = None
    table["cost"] = rows @ [1.0, -2.0, 0.5] + generator.normal(size=n_rows)
    table.loc[generator.random(n_rows) < 0.1, "cost"] = np.nan
    table["size"] = rows.sum(axis=1) + generator.normal(size=n_rows)
    return table.assign(w=generator.integers(0, 3, size=n_rows).astype(float))


WHOLE = make_table()
TABLE = WHOLE[[*FEATURES, "kind", "w"]]
TARGETS = WHOLE[[*FEATURES, "cost", "size", "w"]]
TWO = TABLE[TABLE["kind"] != "r"].reset_index(drop=True)


def scanned(table):
    """Return a table in blocks of 256 rows."""
    return scan(pl.from_pandas(table).lazy(), memory=1)


def partitioned(table):
    """Return a frame with an empty partition."""
    frame = dd.from_pandas(table, npartitions=4)
    return dd.concat([dd.from_pandas(table[:0], npartitions=1), frame])


SOURCES = {"scan": scanned, "dask": partitioned}


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def assert_close(a, b, name=""):
    np.testing.assert_allclose(np.asarray(a), b, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("table", [TWO, TABLE], ids=["two", "three"])
@pytest.mark.parametrize(
    "options",
    [
        {"random_state": 0},
        {"bias": 2.0, "smoothness": 0.0, "calibrate": False},
        {"multi_class": "one-vs-rest", "class_weight": "balanced", "calibrate": False},
    ],
    ids=["default", "bias", "one-vs-rest"],
)
def test_machines_are_those_of_memory(source, table, options):
    own = MEDClassifier(**options)
    own.fit(table[FEATURES], table["kind"], sample_weight=table["w"])
    other = MEDClassifier(**options)
    other.fit(SOURCES[source](table), "kind", sample_weight="w")
    assert other.n_iter_ == own.n_iter_
    for name in ("coef_", "intercept_", "multipliers_", "dual_value_", "temperature_"):
        assert_close(getattr(other, name), getattr(own, name), name)
    if len(own.classes_) == 2:
        assert vars(other.bounds_) == pytest.approx(vars(own.bounds_))
    assert other.feature_names_in_.tolist() == FEATURES
    for name in ("predict_proba", "decision_function"):
        made = getattr(other, name)(SOURCES[source](table))
        assert dask.is_dask_collection(made) == (source == "dask")
        assert_close(made, getattr(own, name)(table[FEATURES]), name)
    known = table[table["kind"].notna()]
    score = own.score(known[FEATURES], known["kind"])
    assert other.score(SOURCES[source](known), "kind") == pytest.approx(score)
    labels = np.asarray(other.predict(SOURCES[source](table)))
    assert labels.tolist() == own.predict(table[FEATURES]).tolist()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("y", ["cost", ["cost", "size"]], ids=["one", "two"])
@pytest.mark.parametrize(
    "options", [{}, {"bias": 2.0, "smoothness": 0.0}], ids=["default", "bias"]
)
def test_regressors_are_those_of_memory(source, y, options):
    columns = [*FEATURES, *([y] if isinstance(y, str) else y), "w"]
    own = MEDRegressor(**options)
    own.fit(TARGETS[FEATURES], TARGETS[y], sample_weight=TARGETS["w"])
    other = MEDRegressor(**options)
    other.fit(SOURCES[source](TARGETS[columns]), y, sample_weight="w")
    assert other.n_iter_ == own.n_iter_
    for name in ("coef_", "intercept_", "multipliers_", "dual_value_"):
        assert_close(getattr(other, name), getattr(own, name), name)
    assert other.support_.tolist() == own.support_.tolist()
    assert other.feature_names_in_.tolist() == FEATURES
    made = other.predict(SOURCES[source](TARGETS))
    assert dask.is_dask_collection(made) == (source == "dask")
    assert_close(made, own.predict(TARGETS[FEATURES]))
    score = own.score(TARGETS[FEATURES], TARGETS[y], TARGETS["w"])
    assert other.score(SOURCES[source](TARGETS), y, "w") == pytest.approx(score)
    own.check_consistent()
    other.check_consistent()


def test_targets_may_be_series_frames_and_arrays():
    frame = partitioned(TARGETS)
    features, weights = TARGETS[FEATURES], TARGETS["w"]
    for y in ("cost", ["cost", "size"]):
        own = MEDRegressor().fit(features, TARGETS[y], weights)
        other = MEDRegressor().fit(frame[FEATURES], frame[y], frame["w"])
        assert_close(other.coef_, own.coef_)
        assert other.target_ndim_ == own.target_ndim_
    array = da.from_array(features.to_numpy(), chunks=(200, 2))
    y = da.from_array(TARGETS["size"].to_numpy(), chunks=150)
    own = MEDRegressor().fit(features.to_numpy(), TARGETS["size"])
    assert_close(MEDRegressor().fit(array, y).coef_, own.coef_)


@pytest.mark.parametrize("source", SOURCES)
def test_detectors_score_blocks(source):
    model = MEDOutlierDetector().fit(TABLE[FEATURES])
    table = SOURCES[source](TABLE)
    assert_close(model.score_samples(table), model.score_samples(TABLE[FEATURES]))
    found = model.predict(table)
    assert dask.is_dask_collection(found) == (source == "dask")
    assert np.asarray(found).tolist() == model.predict(TABLE[FEATURES]).tolist()


def test_wide_systems_are_solved_by_products(monkeypatch):
    monkeypatch.setattr("hybridmix.med.solvers.linear_systems._MOST_DENSE", 2)
    own = MEDClassifier(calibrate=False).fit(TWO[FEATURES], TWO["kind"])
    table = scanned(TWO[[*FEATURES, "kind"]])
    other = MEDClassifier(calibrate=False).fit(table, "kind")
    assert_close(other.coef_, own.coef_)


def test_arrays_and_few_rows():
    rows, labels = TWO[FEATURES].to_numpy()[:3], np.array([0, 1, 1])
    own = MEDClassifier(calibrate=False).fit(rows, labels)
    array = da.from_array(rows, chunks=(2, 3))
    other = MEDClassifier(calibrate=False).fit(array, da.from_array(labels, chunks=2))
    assert_close(other.coef_, own.coef_)
    assert not hasattr(other, "feature_names_in_")


def test_columns_of_text_are_named():
    table = TABLE[[*FEATURES, "kind"]].assign(b="text")
    remedy = "Column 'b' holds 'text' in row 0, which is not a number.*OneHotEncoder"
    for X in (scanned(table), dd.from_pandas(table, npartitions=2)):
        with pytest.raises(ValueError, match=remedy):
            MEDClassifier().fit(X, "kind")
    rows = table[FEATURES].to_numpy(dtype=object)
    with pytest.raises(ValueError, match=r"Column 1 holds .* which is not a number"):
        MEDClassifier().fit(rows, np.arange(600) % 2)


def test_holes_and_other_models_are_refused():
    holes = TABLE.assign(b=TABLE["b"].where(TABLE.index != 300))
    with pytest.raises(ValueError, match=r"NaN.*column 'b'.*MixtureImputer"):
        MEDClassifier().fit(scanned(holes), "kind", sample_weight="w")
    for options in (
        {"model": "rbf"},
        {"inclusion": 0.5},
        {"solver": "ascent"},
        {"transduction": "mean_field"},
    ):
        with pytest.raises(TypeError, match="a multiplier for every row"):
            MEDClassifier(**options).fit(scanned(TABLE), "kind")
    for options in ({"model": "independent"}, {"transduction": "gaussian"}):
        with pytest.raises(TypeError, match="a multiplier for every row"):
            MEDRegressor(**options).fit(scanned(TARGETS), "cost")
    text = scanned(WHOLE[[*FEATURES, "kind"]])
    with pytest.raises(ValueError, match="which is not a number"):
        MEDRegressor().fit(text, "kind")
