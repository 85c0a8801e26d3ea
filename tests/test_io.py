"""Saving and loading: round trips, damaged files, hostile files."""

import copy
import math
import os
import pickle
import tempfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from helpers import plain_classifier
from hypothesis import given, settings
from hypothesis import strategies as st
from model_files import (
    FACTORS,
    FAMILIES,
    MODEL,
    SCHEMA,
    assert_same,
    manifest_of,
    members_of,
    npy,
    refused,
    set_array,
    set_value,
    write_manifest,
    write_members,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import hybridmix
from hybridmix import (
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.io import ModelFileError, load, read_metadata, read_versions, save

RNG = np.random.default_rng(0)
N = 90
LABELS = np.repeat(["no", "yes"], N // 2)
ARRAY = RNG.normal(size=(N, 3)) @ RNG.normal(size=(3, 3)) + (LABELS == "yes")[:, None]
ARRAY[RNG.random(ARRAY.shape) < 0.1] = np.nan


def make_frame():
    frame = pd.DataFrame(ARRAY, columns=["a", "b", "c"])
    frame["text"] = RNG.choice(["x", "y", None], size=N)
    frame["category"] = pd.Categorical(RNG.choice(["low", "high"], size=N))
    frame["flag"] = RNG.random(N) < 0.4
    return frame


FRAME = make_frame()
TABLES = {
    "numpy": ARRAY,
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "text": FRAME[["text", "category"]].astype(object).to_numpy(),
    "bytes": RNG.choice([b"u", b"v"], size=(N, 2)),
}
ESTIMATORS = {
    "classifier": plain_classifier(n_components={"no": range(1, 3), "yes": 2}),
    "density": MixtureDensity(2, covariance_type="full", covariance_prior=1.0),
    "imputer": MixtureImputer(2, n_draws=2, covariance_type="full", covariance_prior=1.0),
    "outlier": MixtureOutlierDetector(
        2, contamination=0.1, covariance_type="full", covariance_prior=1.0
    ),
}


def predictions(model, table):
    """Everything that a model says about a table."""
    names = ["score_samples", "predict", "predict_proba", "decision_function", "draw"]
    names += ["transform", "impute"]
    return [getattr(model, name)(table) for name in names if hasattr(model, name)]


def fitted(estimator, table=ARRAY):
    estimator = sklearn.clone(estimator).set_params(random_state=0, max_iter=1000)
    return estimator.fit(table, LABELS)


def round_trip(model, folder):
    save(model, folder / "model")
    return load(folder / "model")


@pytest.fixture(scope="module")
def density():
    return fitted(MixtureDensity(2, covariance_type="full", covariance_prior=1.0), FRAME)


# Round trips --------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_round_trip(estimator, table, tmp_path):
    model = fitted(ESTIMATORS[estimator], TABLES[table])
    loaded = round_trip(model, tmp_path)
    assert_same(loaded, model)
    assert_same(predictions(loaded, TABLES[table]), predictions(model, TABLES[table]))


@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "tied", "full"])
def test_covariance_types_and_marginals(covariance_type, tmp_path):
    model = fitted(
        MixtureDensity(2, covariance_type=covariance_type, covariance_prior=1.0), FRAME
    )
    for columns in (list(FRAME), ["a", "c", "flag"], ["a", "b"], ["text"]):
        part = model.marginal(columns)
        loaded = round_trip(part, tmp_path)
        assert_same(loaded, part)
        assert_same(
            predictions(loaded, FRAME[columns]), predictions(part, FRAME[columns])
        )
        assert_same(loaded.sample(9), part.sample(9))


def test_set_output_survives(tmp_path):
    model = fitted(
        MixtureImputer(1, covariance_type="full", covariance_prior=1.0)
    ).set_output(transform="pandas")
    loaded = round_trip(model, tmp_path)
    assert_same(loaded.transform(ARRAY), model.transform(ARRAY))
    assert isinstance(loaded.transform(ARRAY), pd.DataFrame)


def test_metadata_requests_survive(tmp_path):
    model = fitted(plain_classifier())
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight="weight").set_score_request(
            sample_weight=True
        )
    routing = round_trip(model, tmp_path).get_metadata_routing()
    assert routing.fit.requests["sample_weight"] == "weight"
    assert routing.score.requests == {"sample_weight": True}


def test_metadata_requests_name_known_methods(saved):
    manifest = manifest_of(saved)
    learned = manifest["model"]["estimator"]["learned"]
    learned["_metadata_request"] = {"dict": [["output", {"dict": []}]]}
    write_manifest(saved, manifest)
    refused(saved, "names unknown methods: output")


def test_thresholds_by_labels(tmp_path):
    y = np.where(np.arange(N) % 9 == 0, -1, 1)
    model = MixtureOutlierDetector(
        1, threshold="f1", cv=3, covariance_type="full", covariance_prior=1.0
    ).fit(ARRAY, y)
    assert_same(round_trip(model, tmp_path), model)


@pytest.mark.parametrize(
    "params",
    [
        {"init": np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])},
        {"init": fitted(MixtureDensity(2, covariance_type="full", covariance_prior=1.0))},
        {"n_components": np.array([1, 2])},
        {"n_components": np.int32(2), "tol": np.float32(1e-3)},
        {"n_components": range(1, 4, 2)},
        {"categorical_features": [True, False, np.False_]},
    ],
)
def test_parameters(params, tmp_path):
    table = np.nan_to_num(ARRAY).round()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the fit may say
        model = (
            MixtureDensity(
                2, random_state=0, covariance_type="full", covariance_prior=1.0
            )
            .set_params(**params)
            .fit(table)
        )
    assert_same(round_trip(model, tmp_path), model)


def test_values_of_many_kinds(tmp_path):
    model = fitted(
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0)
    )
    model.extra_ = {
        1: [math.nan, math.inf, -math.inf, -0.0, 5e-324, 2**70],
        (1, "b"): {None: True},
        "odd": "\ud800 \x00 \N{SNOWMAN}",
        np.float64(0.1): np.datetime64("2020-01-01", "D"),
        "arrays": [
            np.array(["\N{SNOWMAN}", ""]),
            np.array([[b"x", None], [(), math.nan]], dtype=object),
            np.array(3.0),
            np.empty((0, 3), dtype=np.complex64),
            np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
            np.arange(6, dtype=">i2").reshape(2, 3).T,
        ],
    }
    loaded = round_trip(model, tmp_path)
    assert_same(loaded.extra_, model.extra_)
    *_, permuted, _ = model.extra_["arrays"]
    assert loaded.extra_["arrays"][-2].strides == permuted.strides


def test_equal_models_make_equal_files(density, tmp_path):
    save(density, tmp_path / "one")
    predictions(density, FRAME)  # fills caches, which are no part of the model
    save(density, os.fspath(tmp_path / "two"))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_loaded_model_can_be_fitted_and_cloned(density, tmp_path):
    loaded = round_trip(density, tmp_path)
    assert_same(sklearn.clone(loaded).fit(FRAME), density)


# What cannot be saved -----------------------------------------------------------------


def test_unfitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError, match="not fitted"):
        save(
            MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0),
            tmp_path / "model",
        )
    assert not list(tmp_path.iterdir())


def test_other_classes_are_refused(tmp_path):
    class Special(MixtureDensity):
        pass

    for model in (LogisticRegression(), Special().fit(ARRAY), None):
        with pytest.raises(TypeError, match=r"cannot be saved.*MixtureImputer"):
            save(model, tmp_path / "model")


def test_values_that_cannot_be_saved_are_named(tmp_path):
    def check(model, pattern, error=TypeError):
        with pytest.raises(error, match=pattern):
            save(model, tmp_path / "model")
        assert not list(tmp_path.iterdir())

    model = MixtureDensity(
        random_state=np.random.RandomState(0),
        n_components=1,
        covariance_type="full",
        covariance_prior=1.0,
    ).fit(ARRAY)
    check(model, r"random_state holds a RandomState.*set_params\(random_state=an int\)")
    outer = MixtureDensity(
        random_state=0, init=model, covariance_type="full", covariance_prior=1.0
    ).fit(ARRAY)
    check(outer, r"init\.random_state holds a RandomState")
    days = pd.Series(list(pd.date_range("2020-01-01", periods=3)) * 4, dtype=object)
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(pd.DataFrame({"day": days}))
    check(model, r"schema_\.categories\[0\]\[0\] holds a Timestamp")
    model = MixtureDensity(
        categorical_features=pd.Index(["a"]),
        n_components=1,
        covariance_type="full",
        covariance_prior=1.0,
    ).fit(FRAME[["a"]].round())
    check(model, "categorical_features holds a Index")
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(ARRAY)
    model.extra_ = {"a": np.zeros(1, dtype=[("x", "O")])}
    check(model, r"extra_\['a'\] holds a ndarray of type")
    model.extra_ = []
    model.extra_.append(model.extra_)
    check(model, r"extra_\[0\].* nested too deeply")
    model.extra_ = 0
    model.predict = 0
    check(model, "fitted attribute 'predict'", ValueError)


def test_half_fitted_is_refused(tmp_path):
    model = fitted(MixtureDensity(2, covariance_type="full", covariance_prior=1.0))
    model.schema_ = fitted(
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0),
        FRAME,
    ).schema_
    with pytest.raises(ValueError, match="do not fit together"):
        save(model, tmp_path / "model")


# Atomicity ----------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["numpy.lib.format.write_array", "os.replace"])
def test_failure_leaves_the_old_file(broken, density, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    path = tmp_path / "model"
    save(
        fitted(
            MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0)
        ),
        path,
    )
    before = path.read_bytes()
    monkeypatch.setattr(broken, fail)
    with pytest.raises(OSError, match="disk full"):
        save(density, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="links need rights")
def test_links_are_followed_and_rights_are_ordinary(density, tmp_path):
    link, path, other = (tmp_path / name for name in ("link", "model", "other"))
    link.symlink_to(path)
    other.touch()
    save(density, link)
    assert link.is_symlink()
    assert path.stat().st_mode == other.stat().st_mode


# Damaged and hostile files ------------------------------------------------------------


@pytest.fixture
def saved(density, tmp_path):
    path = tmp_path / "model"
    save(density, path)
    return path


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises((IsADirectoryError, PermissionError)):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no zip", pickle.dumps(ARRAY)])
def test_not_a_zip(content, tmp_path):
    (tmp_path / "model").write_bytes(content)
    refused(tmp_path / "model", "not a zip file")


def test_truncated(saved):
    content = saved.read_bytes()
    for size in (10, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:size])
        refused(saved, "zip")


def test_bad_checksum(saved):
    members = members_of(saved)
    write_members(saved, members, zipfile.ZIP_STORED)
    content = bytearray(saved.read_bytes())
    where = content.index(members["arrays/1.npy"]) + len(members["arrays/1.npy"]) - 1
    content[where] ^= 1
    saved.write_bytes(content)
    refused(saved, "Bad CRC-32")


def test_members(saved):
    members = members_of(saved)
    without = {k: v for k, v in members.items() if k != "manifest.json"}
    write_members(saved, without)
    refused(saved, r"no manifest\.json")
    for name in ("evil.py", "../evil", "arrays/999.npy", "arrays/00.npy", "arrays/"):
        write_members(saved, members | {name: b""})
        refused(saved, "unexpected member")
    n_arrays = len(without)
    write_members(saved, members | {f"arrays/{n_arrays}.npy": npy(ARRAY)})
    refused(saved, f"array {n_arrays} is not used")
    write_members(saved, members, zipfile.ZIP_BZIP2)
    refused(saved, "unknown method")
    write_members(saved, members)
    with (
        pytest.warns(UserWarning, match="Duplicate"),
        zipfile.ZipFile(saved, "a") as archive,
    ):
        archive.writestr("manifest.json", b"{}")
    refused(saved, "two members")


@pytest.mark.parametrize("number", [0, 1, -1, 999, "0", None, [0]])
def test_array_numbers(number, saved):
    manifest = manifest_of(saved)
    model = manifest["model"]["estimator"]["learned"]["model_"]["record"]["fields"]
    old, model["log_mixing"]["array"]["member"] = (
        model["log_mixing"]["array"]["member"],
        number,
    )
    assert old > 1
    write_manifest(saved, manifest)
    refused(saved, "missing or used twice|unhashable")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ('{"format": NaN}', "NaN is not JSON"),
        ("\udcff".encode("utf-8", "surrogateescape"), "decode"),
        ("[" * 100_000, "recursion|Stack overflow"),
        ("[]", "format is not 'hybridmix'"),
        ("{}", "format is not 'hybridmix'"),
        ('{"format": "other"}', "format is not 'hybridmix'"),
        ('{"format": "hybridmix"}', "format_version is None"),
        ('{"format": "hybridmix", "format_version": true}', "format_version is True"),
        (
            '{"format": "hybridmix", "format_version": 3, "what": "ever"}',
            "saved by a newer hybridmix.*upgrade hybridmix",
        ),
        ('{"format": "hybridmix", "format_version": 1}', "unknown or missing fields"),
    ],
)
def test_manifests(text, pattern, saved):
    write_members(saved, members_of(saved) | {"manifest.json": text})
    refused(saved, pattern)


def nested(levels, tag):
    value = 1
    for _ in range(levels):
        value = [value] if tag == "list" else {tag: [value]}
    return value


RECORD = {
    "class": "VariancePrior",
    "fields": {"variances": 1, "strength": 1, "floor": 1, "correlations": None},
}


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (
            {"record": {"class": "ConditionalLikelihood", "fields": {}}},
            "holds a ConditionalLikelihood instead of a model",
        ),
        ({"record": RECORD}, "the prior is not an array"),
        (3, "holds a int instead of a model"),
        ({}, "object of 0 keys"),
        ({"tuple": [], "list": []}, "object of 2 keys"),
        ({"call": ["os.system"]}, "unknown kind 'call'"),
        ({"float": "1"}, "'1'"),
        ({"range": [0, 1, 0]}, "zero"),
        ({"dict": [[[], 1]]}, "unhashable"),
        ({"objects": {"shape": [10**12], "items": []}}, "do not fill"),
        ({"record": RECORD | {"more": 1}}, "A record has .* fields: more"),
        ({"record": RECORD | {"class": "Path"}}, "class 'Path' is unknown"),
        ({"record": RECORD | {"class": "MixtureDensity"}}, "is unknown"),
        (
            {"record": RECORD | {"fields": {"variances": 1}}},
            "fields: correlations, floor, strength",
        ),
        ({"estimator": {"class": "Popen", "params": {}, "learned": {}}}, "'Popen' is"),
        (nested(100, "list"), "too deeply"),
        (nested(100, "tuple"), "too deeply"),
    ],
)
def test_values(value, pattern, saved):
    write_manifest(saved, manifest_of(saved) | {"model": value})
    refused(saved, pattern)


@pytest.mark.parametrize(
    ("part", "name", "pattern"),
    [
        ("params", "other", "MixtureDensity has unknown or missing fields: other"),
        ("learned", "__class__", "cannot have a fitted attribute '__class__'"),
        ("learned", "__dict__", "cannot have a fitted attribute"),
        ("learned", "predict", "cannot have a fitted attribute 'predict'"),
        ("learned", "_joined", "cannot have a fitted attribute"),
        ("learned", "n_components", "cannot have a fitted attribute 'n_components'"),
        ("learned", "a b", "cannot have a fitted attribute 'a b'"),
        ("learned", "_metadata_request", "not iterable"),
    ],
)
def test_attributes(part, name, pattern, saved):
    manifest = manifest_of(saved)
    manifest["model"]["estimator"][part][name] = 1
    write_manifest(saved, manifest)
    refused(saved, pattern)


class Payload:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickles_are_not_run(saved):
    mark = saved.with_name("executed")
    hostile = np.array([Payload(mark)], dtype=object)
    for content in (
        npy(hostile, allow_pickle=True),
        npy(np.array([(hostile[0],)], dtype=[("x", "O")]), allow_pickle=True),
    ):
        write_members(saved, members_of(saved) | {"arrays/0.npy": content})
        refused(saved, "holds objects, which are never loaded")
        assert not mark.exists()
    write_members(saved, members_of(saved) | {"arrays/0.npy": pickle.dumps(hostile)})
    refused(saved, "magic string")
    saved.write_bytes(pickle.dumps(hostile))
    refused(saved, "not a zip file")
    assert not mark.exists()
    pickle.loads(pickle.dumps(hostile))
    assert mark.exists()  # so the payload does work


def header(text):
    content = text.encode().ljust(117) + b"\n"
    return np.lib.format.magic(1, 0) + len(content).to_bytes(2, "little") + content


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        (b"", "magic string"),
        (npy(ARRAY, version=(2, 0)), "unknown version"),
        (npy(ARRAY)[:-1], "does not have the size of its shape"),
        (npy(ARRAY) + b"x", "does not have the size of its shape"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}"), "header"),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999,)}"),
            "does not have the size of its shape",
        ),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}")
            + b"x" * 8,
            "does not have the size of its shape",
        ),
        (header("__import__('os').mkdir('x')"), "header"),
        (header("-" * 110 + "1"), "header"),
        (header("(" * 110), "header"),
    ],
)
def test_arrays(content, pattern, saved):
    write_members(saved, members_of(saved) | {"arrays/0.npy": content})
    refused(saved, pattern)


def test_size_is_bounded(saved):
    size = sum(map(len, members_of(saved).values()))
    assert isinstance(load(saved, max_bytes=10**6), MixtureDensity)
    refused(saved, f"more than max_bytes={size - 1}", max_bytes=size - 1)
    bomb = npy(np.zeros(10**6))
    write_members(saved, members_of(saved) | {"arrays/0.npy": bomb})
    refused(saved, "more than max_bytes=1000000", max_bytes=10**6)


@pytest.mark.parametrize("name", ["manifest.json", "arrays/0.npy"])
def test_members_that_are_larger_than_they_claim(name, saved):
    members = members_of(saved)
    claimed, real = 1000, 50 * 2**20
    content = npy(np.zeros(109)) if name != "manifest.json" else b" " * claimed
    assert len(content) == claimed
    write_members(saved, members | {name: content + bytes(real)})
    hidden = (claimed + real).to_bytes(4, "little")
    assert saved.read_bytes().count(hidden) == 2  # local and central header
    saved.write_bytes(saved.read_bytes().replace(hidden, claimed.to_bytes(4, "little")))
    tracemalloc.start()
    refused(saved, "Bad CRC-32")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 2**20


# Files that are sound but make no sense -----------------------------------------------


@pytest.mark.parametrize(
    ("where", "shape"),
    [
        ((*MODEL, "log_mixing"), (3,)),
        ((*MODEL, "log_class_prior"), (2,)),
        ((*SCHEMA, "centre"), (4,)),
        ((*SCHEMA, "scale"), (2,)),
        ((*FACTORS, 0, "record", "fields", "means"), (3, 2)),
        ((*FACTORS, 0, "record", "fields", "covariances"), (2, 3, 4)),
        ((*FACTORS, 0, "record", "fields", "whiteners"), (1, 3, 3)),
        ((*FACTORS, 1, "record", "fields", "log_probabilities"), (2, 5)),
        (
            (*FAMILIES, 0, "record", "fields", "prior", "record", "fields", "variances"),
            (4,),
        ),
    ],
)
def test_shapes_must_fit(where, shape, saved):
    set_array(saved, where, np.zeros(shape))
    refused(saved, "do not fit together|do not belong")
    set_array(saved, where, np.zeros(shape, dtype=np.int32))
    refused(saved, "do not fit together|do not belong")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ((*MODEL, "offsets"), {"tuple": [0, 3]}),
        ((*MODEL, "offsets"), {"tuple": [0, 10**12]}),
        ((*MODEL, "offsets"), {"tuple": [0, 1, 2]}),
        ((*MODEL, "offsets"), {"tuple": [1, 2]}),
        ((*MODEL, "offsets"), {"tuple": [0, 2.0]}),
        ((*MODEL, "offsets"), {"tuple": []}),
        ((*SCHEMA, "n_columns"), 5),
        ((*SCHEMA, "real"), {"tuple": [0, 1, 99]}),
        ((*SCHEMA, "real"), {"tuple": [0, 1, -1]}),
        ((*SCHEMA, "real"), {"tuple": [0, 1, 1]}),
        ((*SCHEMA, "real"), {"tuple": [0, 1, 2.0]}),
        ((*SCHEMA, "names"), {"tuple": ["a"]}),
        ((*SCHEMA, "dtype_names"), {"tuple": ["a"]}),
        ((*SCHEMA, "categories"), {"tuple": []}),
        ((*SCHEMA, "categories", "tuple", 0), {"tuple": ["x", "x"]}),
        ((*SCHEMA, "categories", "tuple", 0), {"tuple": [[], "x"]}),
        ((*SCHEMA, "categories", "tuple", 0), {"tuple": ["x"]}),
        ((*FAMILIES, 1, "record", "fields", "n_categories"), {"tuple": [2, 2, 3]}),
        (FAMILIES, []),
        (("estimator", "learned", "n_features_in_"), 5),
        (("estimator", "learned", "feature_names_in_", "objects"), {}),
        (("estimator", "learned", "feature_names_in_", "objects", "items", 0), "z"),
    ],
)
def test_parts_must_fit(where, value, saved):
    set_value(saved, where, value)
    refused(saved, "do not fit together|unknown or missing fields|unhashable")


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        ("classifier", "classes_", ["no"]),
        ("classifier", "component_classes_", [0]),
        ("imputer", "draw_models_", [0]),
        ("outlier", "offset_", "low"),
        ("density", "schema_", 0),
        ("density", "model_", 0),
    ],
)
def test_learned_attributes_must_fit(estimator, name, value, tmp_path):
    path = tmp_path / "model"
    save(fitted(ESTIMATORS[estimator]), path)
    whole = manifest_of(path)
    for change in ({name: value}, None):
        manifest = copy.deepcopy(whole)
        learned = manifest["model"]["estimator"]["learned"]
        del learned[name]
        learned.update(change or {})
        write_manifest(path, manifest)
        refused(path, "do not fit together|not fitted")


def saved_bytes():
    with tempfile.TemporaryDirectory() as folder:
        save(
            fitted(
                MixtureDensity(2, covariance_type="full", covariance_prior=1.0),
                FRAME[["a", "b", "text"]],
            ),
            f"{folder}/model",
        )
        return Path(folder, "model").read_bytes()


WHOLE = saved_bytes()
EXPECTED = fitted(
    MixtureDensity(2, covariance_type="full", covariance_prior=1.0),
    FRAME[["a", "b", "text"]],
).score_samples(FRAME[["a", "b", "text"]])


@settings(max_examples=300, deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=3
    ),
    end=st.none() | st.integers(0, len(WHOLE)),
)
def test_damage_is_noticed_or_harmless(changes, end):
    content = bytearray(WHOLE)
    for position, byte in changes:
        content[position] = byte
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(content[:end])
        try:
            model = load(path)
        except ModelFileError:
            return
    scores = model.score_samples(FRAME[["a", "b", "text"]])
    np.testing.assert_array_equal(scores, EXPECTED)


def test_metadata(tmp_path):
    path = tmp_path / "model"
    model = fitted(MixtureDensity(2, covariance_type="full", covariance_prior=1.0))
    save(model, path)
    assert read_metadata(path) == {}
    kept = {"target": "y", "na": ["?", ""], "nested": {"rows": 3, "none": None}}
    save(model, path, metadata=kept)
    assert read_metadata(path) == kept
    assert_same(predictions(load(path), ARRAY), predictions(model, ARRAY))
    for wrong in ({"set": {1}}, {"nan": math.nan}, {1: "key"}, ["list"]):
        with pytest.raises(TypeError, match="metadata"):
            save(model, path, metadata=wrong)
    assert read_metadata(path) == kept
    assert read_versions(path)["hybridmix"] == hybridmix.__version__
    manifest = manifest_of(path)
    write_manifest(path, {**manifest, "metadata": 3})
    with pytest.raises(ModelFileError, match="metadata"):
        read_metadata(path)


def test_public_names():
    assert hybridmix.save is save
    assert hybridmix.load is load
    assert issubclass(ModelFileError, ValueError)
