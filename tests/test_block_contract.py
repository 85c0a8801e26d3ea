"""What all estimators that take tables in blocks have in common: memory's results."""

from functools import cache

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

from hybridmix import (
    HMMDensity,
    HybridHMMClassifier,
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
    LatentMEDClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDOutlierDetector,
    MEDRegressor,
    MixtureDensity,
    MixtureEmbedding,
    MixtureImputer,
    MixtureNetworkClassifier,
    MixtureNetworkRegressor,
    MixtureOutlierDetector,
    MixtureRegressor,
    load,
    save,
    scan,
)
from hybridmix.training import output

COVARIANCES = ("full", "tied", "diag", "spherical", "subspace")
FEATURES = ["x0", "x1", "x2", "c"]
OPTIONS = {"n_components": 2, "random_state": 0}
# Every step of a gradient method amplifies rounding.
HYBRID = {"tradeoff": 2.0, "n_steps": 4}


def make_table(n_rows=400, seed=0):
    """Real and categorical columns with holes, labels, targets, and weights."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=n_rows)
    real = generator.normal(size=(n_rows, 3)) + 1.5 * labels[:, None]
    target = real @ [1.0, -1.0, 0.5] + generator.normal(size=n_rows)
    # The first partition is complete.
    real[100:][generator.random((n_rows - 100, 3)) < 0.1] = np.nan
    table = pd.DataFrame(real, columns=FEATURES[:3])
    table["c"] = np.where(np.arange(n_rows) < n_rows - 5, "a", "late")
    table["species"] = np.array(["p", "q", "r"])[labels]
    table["cost"] = np.where(np.arange(n_rows) % 7, target, np.nan)
    table["size"] = generator.normal(size=n_rows) - target
    return table.assign(w=generator.integers(0, 3, size=n_rows).astype(float))


TABLE = make_table()
X, W = TABLE[FEATURES], TABLE["w"]


def scanned(columns=None, table=TABLE):
    """Return a table in blocks of 256 rows."""
    return scan(pl.from_pandas(table).lazy(), columns=columns, memory=1)


def partitioned(columns=None, table=TABLE, n_partitions=4):
    """Return a frame of unknown divisions with two empty partitions."""
    table = table if columns is None else table[columns]
    frame = dd.from_pandas(table, npartitions=n_partitions)
    empty = dd.from_pandas(table[:0], npartitions=1)
    return dd.concat([empty, frame, empty], interleave_partitions=True).clear_divisions()


SOURCES = {"scan": scanned, "dask": partitioned}


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def regressor(**options):
    return MixtureRegressor(n_starts=1, calibrate=False, **OPTIONS, **options)


# An estimator of some covariances, its y, and what to compare.
CASES = {
    "density": (
        lambda kind: MixtureDensity(covariance_type=kind, **OPTIONS),
        None,
        ["score_samples", "predict_proba"],
    ),
    "detector": (
        lambda kind: MixtureOutlierDetector(covariance_type=kind, **OPTIONS),
        None,
        ["score_samples", "predict"],
    ),
    "imputer": (
        lambda kind: MixtureImputer(covariance_type=kind, **OPTIONS),
        None,
        ["score_samples", "typicality"],
    ),
    "embedding": (
        lambda kind: MixtureEmbedding(
            covariance_type=kind, features=("log_joint", "linear"), **OPTIONS
        ),
        None,
        ["transform"],
    ),
    "embedding of classes": (
        lambda kind: MixtureEmbedding(
            covariance_type=kind, mixtures="classes", **OPTIONS
        ),
        "species",
        ["transform"],
    ),
    "classifier": (
        lambda kind: HybridMixtureClassifier(covariance_type=kind, **HYBRID, **OPTIONS),
        "species",
        ["predict_proba", "typicality", "predict_component"],
    ),
    "regressor": (
        lambda kind: regressor(covariance_type=kind, tradeoff=0.0),
        "cost",
        ["predict", "predict_interval", "score_samples"],
    ),
    "hybrid regressor": (
        lambda kind: regressor(covariance_type=kind, **HYBRID),
        "cost",
        ["predict", "predict_interval", "score_samples"],
    ),
    "regressor of two targets": (
        lambda kind: regressor(covariance_type=kind, tradeoff=0.0),
        ["cost", "size"],
        ["predict", "predict_interval", "score_samples"],
    ),
    "network": (
        lambda kind: MixtureNetworkClassifier(
            "stages", n_steps=4, covariance_type=kind, calibrate=False, **OPTIONS
        ),
        "species",
        ["predict_proba", "embed"],
    ),
    "network of linked mixtures": (
        lambda kind: MixtureNetworkClassifier(
            "alternating", n_steps=3, covariance_type=kind, calibrate=False, **OPTIONS
        ),
        "species",
        ["predict_proba", "embed"],
    ),
    "network regressor": (
        lambda kind: MixtureNetworkRegressor(covariance_type=kind, **OPTIONS),
        "cost",
        ["predict", "predict_interval", "embed"],
    ),
}


def names_of(y):
    """Return the columns of targets that are given by name, or by a list of names."""
    return [] if y is None else [y] if isinstance(y, str) else y


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_memory(name, source, covariance_type, monkeypatch):
    # Hundreds of steps of L-BFGS would amplify rounding.
    monkeypatch.setattr(output, "_MOST_STEPS", 5)
    make, y, methods = CASES[name]
    own = make(covariance_type).fit(X, None if y is None else TABLE[y], sample_weight=W)
    table = SOURCES[source]([*FEATURES, *names_of(y), "w"])
    other = make(covariance_type).fit(table, y, sample_weight="w")
    # Subspaces of rows with holes are found by EM, which amplifies rounding.
    atol = 1e-8 if covariance_type == "subspace" else 1e-10
    for method in methods:
        expected = getattr(own, method)(X)
        found = getattr(other, method)(X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
        lazy = getattr(other, method)(SOURCES[source]())
        assert dask.is_dask_collection(lazy) == (source == "dask")
        assert lazy.dtype == found.dtype
        assert lazy.shape[1:] == found.shape[1:]
        np.testing.assert_allclose(np.asarray(lazy), expected, rtol=0, atol=atol)
    assert other.feature_names_in_.tolist() == FEATURES
    own.check_consistent()
    other.check_consistent()


def classifier(objective="hybrid", **options):
    return HybridMixtureClassifier(
        objective, covariance_type="full", **{**OPTIONS, "n_steps": 4, **options}
    )


# What else training has, and what it decides by a sample, which holds all rows here.
CHOICES = {
    **{
        f"{objective} by {solver}": (
            lambda o=objective, s=solver: classifier(o, solver=s, tradeoff=2.0),
            "species",
            "predict_proba",
        )
        for objective in ("hybrid", "conditional", "margin")
        for solver in ("lbfgs", "baum-welch")
    },
    "class weights": (
        lambda: classifier("likelihood", class_weight="balanced"),
        "species",
        "predict_proba",
    ),
    "shapes": (
        lambda: classifier("likelihood", column_shapes="auto"),
        "species",
        "predict_proba",
    ),
    "calibration": (
        lambda: classifier(tradeoff=2.0, calibrate=True),
        "species",
        "predict_proba",
    ),
    "tradeoff": (lambda: classifier(), "species", "predict_proba"),
    "committee": (
        lambda: HybridMixtureClassifier(effort="fast", random_state=0),
        "species",
        "predict_proba",
    ),
    "structure": (lambda: MixtureDensity(random_state=0), None, "score_samples"),
    "calibrated intervals": (
        lambda: MixtureRegressor(covariance_type="full", tradeoff=0.0, **OPTIONS),
        "cost",
        "predict_interval",
    ),
}


@cache
def chosen_in_memory(name):
    make, y, method = CHOICES[name]
    return getattr(make().fit(X, None if y is None else TABLE[y]), method)(X)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", CHOICES)
def test_options_and_choices_are_those_of_memory(name, source):
    make, y, method = CHOICES[name]
    expected = chosen_in_memory(name)
    other = make().fit(SOURCES[source]([*FEATURES, *names_of(y)]), y)
    np.testing.assert_allclose(getattr(other, method)(X), expected, rtol=0, atol=1e-10)


# Regression -----------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("y", ["cost", ["cost", "size"]])
def test_everything_a_regressor_does(source, y):
    table = SOURCES[source]
    model = regressor(covariance_type="full", tradeoff=0.0)
    model.fit(table([*FEATURES, *names_of(y)]), y)
    means, deviations = model.predict(table(), return_std=True)
    expected = model.predict(X, return_std=True)
    np.testing.assert_allclose(means, expected[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(deviations, expected[1], rtol=0, atol=1e-12)
    found = model.log_predictive_density(table(), y)
    expected = model.log_predictive_density(X, TABLE[y])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert model.score(table(), y, "w") == pytest.approx(model.score(X, TABLE[y], W))
    draws = np.asarray(model.sample_y(table(), 2, random_state=0))
    assert draws.shape == (*np.shape(TABLE[y]), 2)
    # Blocks have seeds of their own.
    assert len(np.unique(draws)) == draws.size
    assert model.target_ndim_ == np.ndim(TABLE[y])


@pytest.mark.parametrize("source", SOURCES)
def test_regressors_choose_by_a_sample(source, tmp_path):
    columns = ["x0", "x1", "cost"]
    model = MixtureRegressor(random_state=0, effort="fast")
    model.fit(SOURCES[source](columns), "cost")
    assert model.score(SOURCES[source](), "cost") > 0.5
    assert model.n_searched_ == 400
    save(model, tmp_path / "model.hybridmix")
    again = load(tmp_path / "model.hybridmix")
    np.testing.assert_array_equal(
        again.predict(TABLE[columns[:2]]), model.predict(TABLE[columns[:2]])
    )


def test_targets_may_be_series_and_frames():
    frame = partitioned()
    model = regressor(covariance_type="full", tradeoff=0.0)
    expected = model.fit(X, TABLE["cost"], W).predict(X)
    found = model.fit(frame[FEATURES], frame["cost"], frame["w"]).predict(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    names = ["cost", "size"]
    expected = model.fit(X, TABLE[names]).predict(X)
    found = model.fit(frame[FEATURES], frame[names]).predict(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert model.target_schema_.names == ("cost", "size")


def test_errors_of_targets_name_the_way_out():
    model = regressor(covariance_type="full", tradeoff=0.0)
    with pytest.raises(ValueError, match="groups need a table in memory"):
        model.fit(scanned(), "cost", groups=np.arange(400))
    with pytest.raises(ValueError, match="which is not a number"):
        model.fit(scanned(), "species")
    with pytest.raises(ValueError, match="'species' does not hold numbers"):
        model.fit(scanned(), ["cost", "species"])
    empty = scanned(table=TABLE.assign(cost=np.nan))
    with pytest.raises(ValueError, match="'cost' has no observed value"):
        model.fit(empty, ["size", "cost"])
    with pytest.raises(ValueError, match="no observed value") as caught:
        model.fit(empty, "cost")
    assert "y: cost" in caught.value.__notes__[-1]
    with pytest.raises(TypeError, match="y must name a column"):
        model.fit(scanned(), TABLE["cost"])
    with pytest.raises(ValueError, match="requires y"):
        model.fit(scanned(), None)
    with pytest.raises(ValueError, match="no column 'price'"):
        model.fit(scanned(), "price")


# Imputation -----------------------------------------------------------------------


def test_imputers_fill_lazily():
    imputer = MixtureImputer(covariance_type="full", n_draws=2, **OPTIONS)
    imputer.fit(partitioned([*FEATURES, "w"]), sample_weight="w")
    expected = imputer.transform(X)
    found = imputer.transform(partitioned(FEATURES))
    assert found.columns.tolist() == FEATURES
    pd.testing.assert_frame_equal(
        found.compute(), expected, check_dtype=False, check_index_type=False
    )
    tables = [table.compute() for table in imputer.draw(partitioned(FEATURES))]
    assert len(tables) == 2
    hole = X["x0"].isna().to_numpy()
    values = np.concatenate([table["x0"][hole] for table in tables])
    # Partitions have seeds of their own, and so do draws.
    assert len(np.unique(values)) == len(values)


def test_imputers_write_scanned_tables(tmp_path):
    imputer = MixtureImputer(covariance_type="full", n_draws=1, **OPTIONS)
    imputer.fit(scanned(FEATURES))
    with pytest.raises(TypeError, match=r"write\(folder, model\.impute\)"):
        imputer.transform(scanned(FEATURES))
    scanned(FEATURES).write(tmp_path / "filled", imputer.transform)
    filled = pl.read_parquet(tmp_path / "filled")
    np.testing.assert_allclose(filled["x0"], imputer.transform(X)["x0"], atol=1e-12)


def test_filled_whole_numbers_are_floats_in_every_partition():
    table = pd.DataFrame({"n": pd.array([1, 2, 3, 4, None, 6], "Int64"), "x": 1.0})
    table["x"] = np.arange(6.0)
    frame = dd.from_pandas(table, npartitions=2)
    imputer = MixtureImputer(1, covariance_type="full").fit(frame)
    filled = imputer.transform(frame)
    assert str(filled.dtypes["n"]) == "Float64"
    assert str(filled.compute().dtypes["n"]) == "Float64"


# Arrays ---------------------------------------------------------------------------


def test_arrays_of_dask_are_like_arrays():
    values, targets = X[FEATURES[:3]].to_numpy(), TABLE["cost"].to_numpy()
    weights = W.to_numpy()
    array = da.from_array(values, chunks=(150, 2))
    model = regressor(covariance_type="full", tradeoff=0.0)
    expected = model.fit(values, targets, weights).predict(values)
    schema = model.schema_
    y, w = da.from_array(targets, chunks=130), da.from_array(weights, chunks=400)
    found = model.fit(array, y, w).predict(array)
    assert not hasattr(model, "feature_names_in_")
    assert (model.schema_.names, model.schema_.container) == (None, schema.container)
    assert found.chunks == ((150, 150, 100),)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert model.score(array, y, w) == pytest.approx(
        model.score(values, targets, weights)
    )
    filled = model.impute(array)
    assert filled.shape == values.shape
    np.testing.assert_array_equal(filled.compute(), model.impute(values))
    density = model.log_predictive_density(array, y)
    expected = model.log_predictive_density(values, targets)
    np.testing.assert_allclose(density, expected, rtol=0, atol=1e-12)


def test_arrays_of_labels_with_and_without_known_sizes():
    values, labels = X[FEATURES[:3]].to_numpy(), TABLE["species"].to_numpy(object)
    array, y = da.from_array(values, chunks=(150, 3)), da.from_array(labels, chunks=150)
    options = {**OPTIONS, "covariance_type": "full", "objective": "likelihood"}
    expected = HybridMixtureClassifier(**options).fit(values, labels)
    known = array[:, 0] == array[:, 0]  # rows of unknown numbers per chunk
    kept = ~np.isnan(values[:, 0])
    for some, own, rows in ((array, y, slice(None)), (array[known], y[known], kept)):
        model = HybridMixtureClassifier(**options).fit(some, own)
        expected = HybridMixtureClassifier(**options).fit(values[rows], labels[rows])
        assert model.predict(some).compute().tolist() == (
            expected.predict(values[rows]).tolist()
        )
        np.testing.assert_allclose(
            model.predict_proba(values), expected.predict_proba(values), atol=1e-10
        )
    with pytest.raises(ValueError, match="X has 3 partitions and y has 1"):
        model.fit(array[known], da.from_array(labels, chunks=400))
    with pytest.raises(ValueError, match="rows and columns"):
        model.fit(array[:, 0], y)
    with pytest.raises(TypeError, match="not text"):
        model.fit(dd.from_dask_array(array), y)


# Labels ---------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [None, np.nan, "?"])
def test_rows_without_a_label_are_those_of_memory(missing):
    labels = TABLE["species"].astype(object).to_numpy().copy()
    labels[::3] = missing
    table = TABLE.assign(species=pd.Series(labels, dtype=object))
    options = {**OPTIONS, "covariance_type": "full", "unlabelled_weight": 0.5, **HYBRID}
    options["unlabelled"] = "?"
    own = HybridMixtureClassifier(**options).fit(X, labels)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = partitioned([*FEATURES, "species"], table)
        other = HybridMixtureClassifier(**options).fit(frame, "species")
        series = HybridMixtureClassifier(**options).fit(frame[FEATURES], frame["species"])
    for model in (other, series):
        assert model.classes_.tolist() == ["p", "q", "r"]
        np.testing.assert_allclose(
            model.predict_proba(X), own.predict_proba(X), rtol=0, atol=1e-10
        )


def test_whole_numbers_with_nan_are_labels():
    numbers = TABLE["species"].map({"p": 0.0, "q": 1.0, "r": 2.0}).to_numpy().copy()
    numbers[::4] = np.nan
    frame = partitioned([*FEATURES, "k"], TABLE.assign(k=numbers))
    options = {**OPTIONS, "covariance_type": "full", "objective": "likelihood"}
    own = HybridMixtureClassifier(**options).fit(X, numbers)
    other = HybridMixtureClassifier(**options).fit(frame, "k")
    assert other.classes_.tolist() == own.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(other.predict_proba(X), own.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("source", SOURCES)
def test_validation_rows_come_in_blocks(source):
    held = make_table(150, seed=1)
    options = {**OPTIONS, "covariance_type": "full", "tradeoff": 5.0, "n_steps": 20}
    own = HybridMixtureClassifier(**options).fit(
        X, TABLE["species"], X_val=held[FEATURES], y_val=held["species"]
    )
    table = SOURCES[source]
    other = HybridMixtureClassifier(**options).fit(
        table([*FEATURES, "species"]),
        "species",
        X_val=table(None, held),
        y_val="species",
        sample_weight_val=None,
    )
    np.testing.assert_allclose(
        other.history_["validation_error"], own.history_["validation_error"]
    )
    assert other.n_iter_ == own.n_iter_


# Refusals -------------------------------------------------------------------------

REFUSALS = [
    (MEDClassifier("rbf"), "a multiplier for every row"),
    (MEDRegressor("rbf"), "a multiplier for every row"),
    (MEDOutlierDetector(), "a multiplier for every row"),
    (MEDFeatureSelector(), "a multiplier for every row"),
    (LatentMEDClassifier(), "a multiplier for every row"),
    (HybridMixtureClassifierCV(), "Use HybridMixtureClassifier"),
]


@pytest.mark.parametrize("source", [scanned, partitioned, lambda: da.zeros((4, 2))])
@pytest.mark.parametrize(("estimator", "way_out"), REFUSALS)
def test_others_refuse_blocks_and_name_the_way_out(estimator, way_out, source):
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=f"{name} needs its rows in memory.*{way_out}"):
        estimator.fit(source(), "species")


@pytest.mark.parametrize("source", [scanned, partitioned, lambda: da.zeros((4, 2))])
@pytest.mark.parametrize("estimator", [HMMDensity(), HybridHMMClassifier()])
def test_models_of_sequences_ask_for_ids(estimator, source):
    with pytest.raises(TypeError, match=r"which rows.*Sequences.from_long\(X, 'id'"):
        estimator.fit(source(), "species")


def test_batches_of_streams_are_blocks():
    density = MixtureDensity(covariance_type="full", **OPTIONS)
    with pytest.raises(TypeError, match=r"next\(iter\(table\)\)"):
        density.partial_fit(scanned(FEATURES))
    for block in scanned(FEATURES[:3]):
        density.partial_fit(block)
    assert density.n_iter_ == 2
