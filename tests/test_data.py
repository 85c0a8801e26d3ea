"""Tables: types, holes, categories, labels, refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier
from scipy import sparse

import hybridmix
from hybridmix import MixtureDensity, MixtureImputer
from hybridmix.data import Dataset, Rows, Schema, encode_labels, read_training_table
from hybridmix.data.columns import read_columns
from hybridmix.data.rows import pattern_numbers


def mixed_frame(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n_rows)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n_rows) + 4 * group,
            "count": rng.integers(5, size=n_rows) + group,
            "colour": np.where(group == 1, "red", rng.choice(["red", "blue"], n_rows)),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], n_rows)),
            "flag": group == 1,
        }
    )


def with_holes(frame, seed=0):
    rng = np.random.default_rng(seed)
    frame = frame.astype({"count": "Int64", "flag": "boolean", "colour": object})
    for name in frame:
        frame.loc[rng.random(len(frame)) < 0.2, name] = None
    return frame


def learn(X, **options):
    columns = read_columns(X)
    schema = Schema.learn(columns, **options)
    return schema, schema.encode(columns)


# Types ---------------------------------------------------------------------------------


def test_column_types_of_a_pandas_frame():
    schema, table = learn(with_holes(mixed_frame()))
    assert schema.real == (0, 1)
    assert schema.categorical == (2, 3, 4)
    assert schema.categories == (("blue", "red"), ("a", "b", "c"), (False, True))
    assert table.has_holes
    assert (table.codes == -1).any(axis=0).all()


def test_pandas_polars_and_object_arrays_are_read_alike():
    frame = with_holes(mixed_frame())
    polars = pl.DataFrame(
        {name: [None if pd.isna(v) else v for v in frame[name]] for name in frame}
    )
    array = np.array(
        [[None if pd.isna(v) else v for v in row] for row in frame.to_numpy(object)],
        dtype=object,
    )
    reference = learn(frame)[1]
    for other in (polars, array):
        table = learn(other)[1]
        np.testing.assert_array_equal(table.real, reference.real)
        np.testing.assert_array_equal(table.codes, reference.codes)
    for X in (frame, polars, array):
        model = MixtureDensity(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        ).fit(X)
        assert model.score(X) == pytest.approx(
            MixtureDensity(
                2, random_state=0, covariance_type="full", covariance_prior=1.0
            )
            .fit(frame)
            .score(frame)
        )


@pytest.mark.parametrize(
    "selection", [[1], ["count"], [False, True, False, False, False]]
)
def test_categorical_features_by_position_name_or_mask(selection):
    schema, _ = learn(mixed_frame(), categorical_features=selection)
    assert schema.real == (0,)
    assert 1 in schema.categorical


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (["weight"], "no column 'weight'; the columns are size"),
        ([9], "no column 9; the table has 5 columns"),
        ([True], "has 1 entries, but the table has 5 columns"),
        ([[1, 2]], "must be a list"),
    ],
)
def test_wrong_categorical_features_are_named(selection, message):
    with pytest.raises(ValueError, match=message):
        MixtureDensity(
            categorical_features=selection,
            n_components=1,
            covariance_type="full",
            covariance_prior=1.0,
        ).fit(mixed_frame())


def test_names_need_a_table_with_names():
    with pytest.raises(ValueError, match="array without names"):
        MixtureDensity(
            categorical_features=["a"],
            n_components=1,
            covariance_type="full",
            covariance_prior=1.0,
        ).fit(np.zeros((3, 2)))


def test_boolean_arrays_are_categorical():
    X = np.random.default_rng(0).random((50, 3)) < [0.1, 0.5, 0.9]
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    assert len(model.category_probabilities_) == 3
    assert not hasattr(model, "means_")


def test_numbers_as_categories_in_an_array():
    X = np.column_stack([np.arange(30) % 3, np.linspace(0, 1, 30)])
    X[4, 0] = np.nan
    model = MixtureDensity(
        categorical_features=[0],
        n_components=1,
        covariance_type="full",
        covariance_prior=1.0,
    ).fit(X)
    np.testing.assert_array_equal(model.categories_[0], [0.0, 1.0, 2.0])
    assert model.impute(X)[4, 0] in (0.0, 1.0, 2.0)


def test_dates_are_refused_by_name():
    frame = mixed_frame().assign(when=pd.Timestamp("2020-01-01"))
    with pytest.raises(TypeError, match="column 'when' has the type Datetime"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            frame
        )


DENSE = [
    name
    for name in hybridmix.__all__
    if hasattr(getattr(hybridmix, name), "fit")
    and name not in {"MEDClassifier", "MEDRegressor", "MEDFeatureSelector"}
    and "MultiTask" not in name
]


@pytest.mark.parametrize("name", DENSE)
def test_sparse_is_refused_with_the_way_out(name):
    rows = sparse.eye_array(6).tocsr()
    with pytest.raises(TypeError, match=r"X is sparse .* \.toarray\(\) .* spiked"):
        getattr(hybridmix, name)().fit(rows, [0, 1] * 3)


def test_sparse_columns_of_a_frame_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.arrays.SparseArray([0.0, 1.0])})
    with pytest.raises(TypeError, match=r"column 'b' is sparse.*\['b'\].sparse.to_dense"):
        MixtureDensity().fit(frame)


def test_zeros_of_a_sparse_table_become_spikes():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(200, 2)) * (rng.random((200, 2)) < 0.3)
    model = MixtureDensity(n_components=1).fit(sparse.csr_array(X).toarray())
    assert [shape.spikes for shape in model.schema_.shapes.values()] == [(0.0,)] * 2


def test_infinite_values_are_named():
    frame = mixed_frame()
    frame.loc[7, "size"] = np.inf
    with pytest.raises(ValueError, match="column 'size', row 7"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            frame
        )
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(mixed_frame())
    with pytest.raises(ValueError, match="column 'size', row 7"):
        model.score_samples(frame)


def test_empty_tables_are_refused():
    for X in (pd.DataFrame({"a": []}), np.empty((0, 2))):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            MixtureDensity(
                n_components=1, covariance_type="full", covariance_prior=1.0
            ).fit(X)
    with pytest.raises(ValueError, match="no observed value at all"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            np.full((4, 2), np.nan)
        )


def test_reading_a_training_table_leaves_the_estimator_alone():
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(mixed_frame())
    before = dict(vars(model))
    columns, attributes = read_training_table(model, np.zeros((4, 2)))
    assert (columns.n_rows, columns.n_columns) == (4, 2)
    assert attributes == {"n_features_in_": 2}
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    attributes = read_training_table(
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0),
        frame,
    )[1]
    assert attributes["n_features_in_"] == 2
    assert attributes["feature_names_in_"].tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="2D array"):
        read_training_table(model, np.zeros(4))
    assert vars(model) == before


# Unseen categories, unusable columns ---------------------------------------------------


def test_unseen_categories_count_as_missing_with_one_warning():
    frame = mixed_frame()
    model = plain_classifier().fit(frame, frame["flag"])
    new = frame.head(20).copy()
    new["colour"] = "green"
    new["kind"] = "z"
    message = "'green' in column 'colour', 'z' in column 'kind'"
    with pytest.warns(UserWarning, match=message) as caught:
        probabilities = model.predict_proba(new)
    assert len(caught) == 1
    hole = new.assign(colour=None, kind=None)
    np.testing.assert_allclose(probabilities, model.predict_proba(hole))


def test_columns_without_values_are_left_out_with_a_warning():
    frame = mixed_frame().assign(void=np.nan, blank=pd.Series([None] * 60, dtype=object))
    with pytest.warns(UserWarning, match="column 'void', column 'blank'"):
        model = MixtureDensity(
            n_components=1, covariance_type="full", covariance_prior=1.0
        ).fit(frame)
    full = frame.assign(void=3.0)
    np.testing.assert_array_equal(model.score_samples(full), model.score_samples(frame))
    assert model.sample(3)[0]["void"].isna().all()
    assert model.impute(frame)["void"].isna().all()


def test_other_columns_than_in_training_are_refused():
    frame = mixed_frame()
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(frame.drop(columns="size"))
    with pytest.raises(ValueError, match="features"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            np.zeros((9, 2)) + np.arange(2)
        ).score_samples(np.ones((2, 3)))


# Scaling -------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_huge_and_tiny_scales_change_nothing_but_units(scale, shift):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    units = np.array([1.0, scale, 1.0])
    plain = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    scaled = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit((X + shift) * units)
    np.testing.assert_allclose(scaled.means_, (plain.means_ + shift) * units, rtol=1e-6)
    np.testing.assert_allclose(
        scaled.covariances_ / np.outer(units, units),
        plain.covariances_,
        rtol=1e-5,
        atol=1e-8,
    )
    observed = ~np.isnan(X)
    np.testing.assert_allclose(
        scaled.score_samples((X + shift) * units),
        plain.score_samples(X) - observed @ np.log(units),
        rtol=1e-6,
        atol=1e-12,
    )


def test_values_near_the_largest_float():
    X = np.array([[1e300], [-1e300], [2e300], [0.5e300]])
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    assert np.isfinite(model.score_samples(X)).all()


def test_attributes_are_in_the_units_of_the_table():
    rng = np.random.default_rng(0)
    X = rng.normal([100.0, -3.0], [10.0, 0.1], size=(5000, 2))
    for covariance_type in ("full", "tied", "diag"):
        model = MixtureDensity(
            covariance_type=covariance_type, n_components=1, covariance_prior=1.0
        ).fit(X)
        np.testing.assert_allclose(model.means_[0], [100.0, -3.0], rtol=0.01)
        covariance = (
            model.covariances_ if covariance_type == "tied" else model.covariances_[0]
        )
        variances = covariance if covariance_type == "diag" else np.diag(covariance)
        np.testing.assert_allclose(variances, [100.0, 0.01], rtol=0.1)


# Labels --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "classes", "numbers"),
    [
        ([2, 7, -1, 2], [2, 7], [0, 1, -1, 0]),
        (["no", "yes", None, "no"], ["no", "yes"], [0, 1, -1, 0]),
        (np.array(["no", np.nan, "yes"], dtype=object), ["no", "yes"], [0, -1, 1]),
        ([0.0, np.nan, 1.0, -1.0], [0, 1], [0, -1, 1, -1]),
        (pd.Series(["b", pd.NA, "a"], dtype="string"), ["a", "b"], [1, -1, 0]),
        ([True, False, True], [False, True], [1, 0, 1]),
        (pd.Series([True, False], dtype="boolean"), [False, True], [1, 0]),
        (pd.Series([True, None, False], dtype="boolean"), [False, True], [1, -1, 0]),
        (["-1", "x"], ["-1", "x"], [0, 1]),
        (pd.Series(pd.Categorical(["u", None, "v"])), ["u", "v"], [0, -1, 1]),
    ],
)
def test_labels_of_any_kind(y, classes, numbers):
    found, result = encode_labels(y)
    assert found.tolist() == classes
    assert result.tolist() == numbers


def test_minus_one_and_one_are_two_classes_with_a_warning():
    with pytest.warns(UserWarning, match="unlabelled=None"):
        classes, _ = encode_labels([-1, 1, 1])
    assert classes.tolist() == [-1, 1]
    assert encode_labels([-1, 1, 1], None)[0].tolist() == [-1, 1]
    assert encode_labels([-1, 1, 0])[1].tolist() == [-1, 1, 0]


@pytest.mark.parametrize("label", [(0, 1), [0, 1], {0}, {"a": 1}])
def test_labels_of_several_values_are_refused(label):
    y = np.empty(3, dtype=object)
    y[:] = [None, "a", label]
    with pytest.raises(TypeError, match=f"y holds a {type(label).__name__}, .* in row 2"):
        encode_labels(y)


def test_other_marks_of_unlabelled_rows():
    classes, numbers = encode_labels(["a", "?", "b"], "?")
    assert classes.tolist() == ["a", "b"]
    assert numbers.tolist() == [0, -1, 1]
    with pytest.raises(ValueError, match="every row is marked as unlabelled"):
        encode_labels([-1, -1])


# Arrangement ---------------------------------------------------------------------------


def test_arranged_rows_are_grouped_and_lose_nothing(monkeypatch):
    monkeypatch.setattr("hybridmix._chunks._CHUNK_BYTES", 1)  # blocks of 64 rows
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    labels = rng.integers(-1, 3, size=300)
    weights = rng.integers(0, 3, size=300).astype(float)
    _, table = learn(X)
    dataset = Dataset.arrange(table, labels, weights)
    assert np.all(np.diff(dataset.labels) >= 0)
    assert dataset.total_weight == weights.sum()
    n_missing = np.sum(~dataset.rows.observed, axis=0)
    for label in range(3):
        part = dataset.of_class(label)
        assert part.total_weight == weights[labels == label].sum()
        assert np.all(np.diff(n_missing[dataset.labels == label]) >= 0)
    direct = table[:].real @ weights
    np.testing.assert_allclose(dataset.rows.real @ dataset.weights, direct)


@pytest.mark.parametrize("n_columns", [3, 64, 70])
def test_patterns_are_numbered(n_columns):
    rng = np.random.default_rng(0)
    observed = rng.random((5, n_columns))[rng.integers(5, size=100)] < 0.5
    numbers, examples, counts = pattern_numbers(observed)
    np.testing.assert_array_equal(observed[examples][numbers], observed)
    assert counts.sum() == 100


def test_distinct_rows_are_counted_up_to_what_is_enough():
    X = np.repeat([[1.0, np.nan], [1.0, 0.0], [1.0, 2.0]], 50, axis=0)
    rows = learn(X)[1][:]
    assert rows.n_distinct(2) == 2
    assert rows.n_distinct(5) == 3
    zeros = Rows(np.array([[0.0, -0.0, 1.0]]), None, np.zeros((0, 3), np.int32))
    assert zeros.n_distinct(3) == 2


# Coming back ---------------------------------------------------------------------------


def test_tables_come_back_as_they_came():
    frame = with_holes(mixed_frame())
    frame.index = np.arange(len(frame)) * 3 + 1
    filled = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit_transform(frame)
    assert filled.isna().sum().sum() == 0
    assert (filled.index == frame.index).all()
    for name in frame:
        kept = frame[name].notna()
        assert (filled.loc[kept, name] == frame.loc[kept, name]).all()
    assert filled["kind"].dtype == frame["kind"].dtype
    assert filled["flag"].dtype == frame["flag"].dtype
    assert filled["colour"].isin(["red", "blue"]).all()

    polars = pl.from_pandas(mixed_frame()).with_columns(
        pl.when(pl.col("size") > 4).then(None).otherwise(pl.col("colour")).alias("colour")
    )
    filled = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit_transform(polars)
    assert isinstance(filled, pl.DataFrame)
    assert filled.schema == polars.schema
    assert filled["colour"].null_count() == 0


def test_samples_look_like_the_training_table():
    frame = mixed_frame()
    sample, _ = (
        MixtureDensity(2, random_state=0, covariance_type="full", covariance_prior=1.0)
        .fit(frame)
        .sample(40)
    )
    assert list(sample) == list(frame)
    assert sample["kind"].dtype == frame["kind"].dtype
    assert sample["flag"].dtype == bool
    polars, _ = (
        MixtureDensity(2, random_state=0, covariance_type="full", covariance_prior=1.0)
        .fit(pl.from_pandas(frame))
        .sample(5)
    )
    assert isinstance(polars, pl.DataFrame)
    array, _ = (
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0)
        .fit(frame[["size", "count"]].to_numpy())
        .sample(5)
    )
    assert array.shape == (5, 2)
    objects, _ = (
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0)
        .fit(frame.to_numpy(object))
        .sample(5)
    )
    assert objects.dtype == object


def test_nan_among_strings_marks_unlabelled_rows():
    classes, numbers = encode_labels(["b", "a", float("nan"), None])
    assert classes.tolist() == ["a", "b"]
    assert numbers.tolist() == [1, 0, -1, -1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_whole_labels_are_numbered_alike(dtype):
    labels = np.array([7, 3, 3, 0, 7, 3] * 3)
    classes, numbers = encode_labels(labels.astype(dtype), None)
    np.testing.assert_array_equal(classes, [0, 3, 7])
    assert classes.dtype == dtype
    np.testing.assert_array_equal(classes[numbers], labels)
    negative, _ = encode_labels((labels - 100).astype(np.int8), None)
    np.testing.assert_array_equal(negative, [-100, -97, -93])
