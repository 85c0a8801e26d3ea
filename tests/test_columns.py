"""Columns whose type has changed since training, and frames of many types."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier

from hybridmix import (
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.data import encode_labels
from hybridmix.data.columns import read_columns
from hybridmix.data.schema import Schema
from hybridmix.metrics import drift_score

N_ROWS = 60


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(N_ROWS) % 2
    a = np.round(rng.normal(size=N_ROWS) + 4 * y, 3)
    b = np.round(rng.normal(size=N_ROWS), 3)
    return pd.DataFrame({"a": a, "b": b}), y


def frames(frame):
    return {"pandas": frame, "polars": pl.from_pandas(frame)}


FRAMES = ["pandas", "polars"]
# The column "a" of both kinds of frames, as other types that spell the same numbers.
SPELLED = {
    "text": (
        lambda X: X.assign(a=X.a.map(str)),
        lambda X: X.with_columns(pl.col("a").cast(pl.String)),
    ),
    "object": (
        lambda X: X.assign(a=X.a.astype(object)),
        lambda X: X.with_columns(pl.Series("a", X["a"].to_list(), dtype=pl.Object)),
    ),
    "category": (
        lambda X: X.assign(a=X.a.map(str).astype("category")),
        lambda X: X.with_columns(pl.col("a").cast(pl.String).cast(pl.Categorical)),
    ),
    "numbers as category": (
        lambda X: X.assign(a=X.a.astype("category")),
        lambda X: X.with_columns(
            pl.col("a").cast(pl.String).cast(pl.Enum(X["a"].cast(pl.String).unique()))
        ),
    ),
    "decimal": (
        lambda X: X.assign(a=[decimal.Decimal(str(v)) for v in X.a]),
        lambda X: X.with_columns(pl.col("a").cast(pl.Decimal(20, 3))),
    ),
}
MEANINGLESS = {
    "words": (["low", "high"] * 30, "'low' in row 0"),
    "one word": (["1.5"] * 59 + ["n/a"], "'n/a' in row 59"),
    "text nan": (["1.5"] * 59 + ["nan"], "'nan' in row 59"),
    "text NaN": (["1.5"] * 59 + [" NaN"], "' NaN' in row 59"),
    "empty text": (["1.5"] * 59 + [""], "'' in row 59"),
    "grouped digits": (["1_000"] * 60, "'1_000' in row 0"),
    "booleans": ([True, False] * 30, "Boolean|of the type bool"),
    "dates": ([datetime.date(2020, 1, 1)] * 60, "Date|of the type date"),
    "times": ([datetime.datetime(2020, 1, 1)] * 60, "Datetime"),
    "spans": ([datetime.timedelta(1)] * 60, "Duration"),
}


def estimators():
    return [
        plain_classifier(random_state=0),
        MixtureDensity(2, random_state=0, covariance_type="full", covariance_prior=1.0),
        MixtureImputer(2, random_state=0, covariance_type="full", covariance_prior=1.0),
        MixtureOutlierDetector(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        ),
    ]


def applied(model, X):
    if isinstance(model, HybridMixtureClassifier):
        return model.predict_proba(X)
    return model.score_samples(X)


# Numbers in training, something else later ---------------------------------------------


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("spelling", SPELLED)
def test_numbers_spelled_otherwise_are_the_same_numbers(library, spelling):
    frame, y = numbers()
    X = frames(frame)[library]
    changed = SPELLED[spelling][FRAMES.index(library)](X)
    for model in estimators():
        model.fit(X, y)
        np.testing.assert_array_equal(applied(model, changed), applied(model, X))


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("case", MEANINGLESS)
def test_columns_that_no_longer_hold_numbers_are_refused_by_name(library, case):
    frame, y = numbers()
    values, message = MEANINGLESS[case]
    X = frames(frame)[library]
    if library == "pandas":
        changed = X.assign(a=values)
    else:
        changed = X.with_columns(pl.Series("a", values))
    for model in estimators():
        model.fit(X, y)
        with pytest.raises((TypeError, ValueError), match="column 'a' held numbers") as e:
            applied(model, changed)
        assert e.match(message)


@pytest.mark.parametrize("library", FRAMES)
def test_the_imputer_never_overwrites_what_is_observed(library):
    frame, _ = numbers()
    model = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(frames(frame)[library])
    holes = np.arange(N_ROWS) % 7 == 0
    text = [None if hole else str(v) for hole, v in zip(holes, frame.a, strict=True)]
    if library == "pandas":
        filled = model.transform(frame.assign(a=text))
    else:
        filled = model.transform(pl.DataFrame({"a": text, "b": frame.b.to_numpy()}))
    values = filled["a"].to_numpy()
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values[~holes], frame.a[~holes])
    expected = model.transform(frame.assign(a=frame.a.where(~holes)))
    np.testing.assert_array_equal(values, expected["a"])


def test_dates_do_not_come_back_as_other_dates():
    frame, _ = numbers()
    model = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(frame)
    with pytest.raises(TypeError, match="column 'a' held numbers"):
        model.transform(frame.assign(a=pd.date_range("2020-01-01", periods=N_ROWS)))


@pytest.mark.parametrize(
    "nothing",
    [
        pd.Series([None] * N_ROWS, dtype=object),
        pd.Series([None] * N_ROWS, dtype="string"),
        pd.Series([None] * N_ROWS, dtype="category"),
        pd.Series([None] * N_ROWS, dtype="boolean"),
        pd.Series([pd.NaT] * N_ROWS),
        pl.Series([None] * N_ROWS),
        pl.Series([None] * N_ROWS, dtype=pl.String),
        pl.Series([None] * N_ROWS, dtype=pl.Boolean),
        pl.Series([None] * N_ROWS, dtype=pl.Date),
    ],
    ids=lambda series: f"{type(series).__module__.split('.')[0]} {series.dtype}",
)
def test_columns_without_any_value_may_have_any_type(nothing):
    frame, _ = numbers()
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(frame)
    if isinstance(nothing, pl.Series):
        void = pl.from_pandas(frame).with_columns(nothing.alias("a"))
    else:
        void = frame.assign(a=nothing)
    expected = model.score_samples(frame.assign(a=np.nan))
    np.testing.assert_array_equal(model.score_samples(void), expected)
    filled = model.impute(void)
    assert np.isfinite(filled["a"].to_numpy()).all()


def test_arrays_follow_the_same_rule():
    frame, _ = numbers()
    X = frame.to_numpy()
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    expected = model.score_samples(X)
    for same in (X.astype(object), X.astype(str), X.astype(str).astype(object)):
        np.testing.assert_array_equal(model.score_samples(same), expected)
    holes = X.astype(object)
    holes[3, 0], holes[4, 0] = None, np.nan
    assert np.isfinite(model.score_samples(holes)).all()
    for value, error in [("x", ValueError), (True, TypeError), (b"?", ValueError)]:
        wrong = X.astype(object)
        wrong[5, 1] = value
        with pytest.raises(error, match=r"column 1 held numbers .* in row 5"):
            model.score_samples(wrong)
    with pytest.raises(TypeError, match="column 0 held numbers"):
        model.score_samples(X > 0)
    days = np.full(X.shape, "2020-01-01", dtype="datetime64[ns]")
    with pytest.raises(TypeError, match="column 0 held numbers"):
        model.score_samples(days)
    with pytest.raises(TypeError, match="column 0 has the type datetime64"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            days
        )
    never = np.full(X.shape, "NaT", dtype="datetime64[ns]")
    np.testing.assert_allclose(model.score_samples(never), 0.0, atol=1e-12)


def test_numbers_too_large_for_a_float_are_named():
    frame, _ = numbers()
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(frame)
    for value in (10**400, "1e999", "-inf"):
        text = [value, *frame.a.tolist()[1:]]
        with pytest.raises(ValueError, match=r"infinity .*column 'a', row 0"):
            model.score_samples(frame.assign(a=pd.Series(text, dtype=object)))


def test_text_arrays_are_completed_as_numbers():
    X = np.array([["1.0", "2.0"], ["3.0", "4.5"], ["nan", "4.0"]])
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(np.array([[1.0, 2.0], [3.0, 4.5], [2.0, 2.5]]))
    filled = model.impute(X)
    assert filled[:2].tolist() == [[1.0, "2.0"], [3.0, "4.5"]]
    assert np.isfinite(filled[2, 0])


# Objects -------------------------------------------------------------------------------


def test_objects_that_are_numbers_are_read_alike_in_frames_and_arrays():
    frame, _ = numbers()
    objects = frame.astype(object)
    objects.loc[3, "a"] = None
    decimals = frame.map(lambda v: decimal.Decimal(str(v)))
    decimals.loc[3, "a"] = None
    frame.loc[3, "a"] = np.nan
    reference = (
        MixtureDensity(2, random_state=0, covariance_type="full", covariance_prior=1.0)
        .fit(frame)
        .score_samples(frame)
    )
    for X in (objects, objects.to_numpy(), decimals, decimals.to_numpy()):
        model = MixtureDensity(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        ).fit(X)
        np.testing.assert_array_equal(model.score_samples(X), reference)


def test_objects_of_no_use_are_refused_by_name():
    frame, _ = numbers()
    frame["c"] = pd.Series([[1]] * N_ROWS)
    with pytest.raises(TypeError, match="column 'c' holds what cannot be a category"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            frame
        )
    with pytest.raises(TypeError, match="Column 2 holds a list"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            frame.to_numpy(object)
        )


def test_mixed_types_of_numbers_are_read_exactly():
    frame = pd.DataFrame(
        {
            "short": np.array([1, -3, 5], np.int8),
            "half": np.array([0.5, 1.5, np.nan], np.float32),
            "large": np.array([2**53, -(2**53), 7], np.int64),
            "unsigned": np.array([2**63, 0, 1], np.uint64),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    expected = np.column_stack(
        [frame[name].astype("Float64").to_numpy(float, na_value=np.nan) for name in frame]
    )
    for X in (frame, pl.from_pandas(frame)):
        for chosen in ([0, 1, 2, 3, 4], [4, 2], [0], [3, 2]):
            matrix = read_columns(X).real(chosen)
            np.testing.assert_array_equal(matrix, expected[:, chosen])


# Coming back ---------------------------------------------------------------------------


@pytest.mark.parametrize("library", FRAMES)
def test_filled_categories_need_not_be_among_those_of_the_new_table(library):
    values = ["a"] * 30 + ["b"] * 30
    holes = ["b", *[None] * 59]
    if library == "pandas":
        X = pd.DataFrame({"a": np.arange(60.0) / 2.0, "k": pd.Categorical(values)})
        new = X.assign(k=pd.Categorical(holes))
    else:
        X = pl.DataFrame({"a": np.arange(60.0) / 2.0, "k": values})
        new = X.with_columns(pl.Series("k", holes, dtype=pl.Enum(["b"])))
    model = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    filled = model.transform(new)["k"].to_list()
    assert filled[0] == "b"
    assert set(filled[1:]) <= {"a", "b"}
    assert "a" in filled


@pytest.mark.parametrize("library", FRAMES)
def test_tables_keep_names_index_and_order_of_columns(library):
    frame, _ = numbers()
    frame = frame.assign(k=["x", "y"] * 30, c=1.0 + frame.b)
    frame.loc[::5, "b"] = np.nan
    frame.loc[1::5, "k"] = None
    frame.index = [7] * N_ROWS
    X = frames(frame)[library]
    filled = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit_transform(X)
    assert list(filled.columns) == ["a", "b", "k", "c"]
    if library == "pandas":
        assert filled.index.tolist() == frame.index.tolist()
        pd.testing.assert_series_equal(filled["a"], frame["a"])
    else:
        assert filled.schema == X.schema


def test_columns_may_be_named_by_numbers():
    frame, _ = numbers()
    frame.columns = [3, 1]
    frame.loc[::5, 1] = np.nan
    filled = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit_transform(frame)
    assert list(filled.columns) == [3, 1]
    assert filled.notna().all(axis=None)


@pytest.mark.parametrize(
    "void",
    [
        pd.Series([None] * N_ROWS, dtype=object),
        pd.Series([None] * N_ROWS, dtype="string"),
        pd.Series([None] * N_ROWS, dtype="category"),
        pd.Series([None] * N_ROWS, dtype="boolean"),
        pd.Series([np.nan] * N_ROWS),
        pl.Series([None] * N_ROWS, dtype=pl.String),
        pl.Series([None] * N_ROWS, dtype=pl.Categorical),
        pl.Series([None] * N_ROWS, dtype=pl.Boolean),
        pl.Series([None] * N_ROWS),
    ],
    ids=lambda series: f"{type(series).__module__.split('.')[0]} {series.dtype}",
)
def test_samples_of_a_table_with_a_void_column(void):
    frame, _ = numbers()
    if isinstance(void, pl.Series):
        X = pl.from_pandas(frame).with_columns(void.alias("void"))
    else:
        X = frame.assign(void=void)
    with pytest.warns(UserWarning, match="No observed value in column 'void'"):
        model = MixtureDensity(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        ).fit(X)
    sample, _ = model.sample(5)
    assert list(sample.columns) == ["a", "b", "void"]
    if isinstance(sample, pl.DataFrame):
        assert sample["void"].is_null().all() or sample["void"].is_nan().all()
    else:
        assert sample["void"].isna().all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.score_samples(sample)).all()


def test_samples_of_an_object_array_with_a_void_column():
    frame, _ = numbers()
    array = frame.assign(k=["x", "y"] * 30, void=None).to_numpy(object)
    with pytest.warns(UserWarning, match="column 3"):
        model = MixtureDensity(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        ).fit(array)
    sample, _ = model.sample(5)
    assert pd.isna(sample[:, 3]).all()


# Lazy tables and labels of two kinds ---------------------------------------------------


def test_lazy_tables_are_refused_with_the_way_out():
    frame, y = numbers()
    lazy = pl.from_pandas(frame).lazy()
    model = plain_classifier().fit(frame, y)
    with pytest.raises(TypeError, match=r"X is a lazy table .*Call \.collect\(\)"):
        drift_score(model, lazy)
    with pytest.raises(TypeError, match="y must name a column of the table"):
        plain_classifier().fit(lazy, y)
    with pytest.raises(TypeError, match=r"y is a lazy table .*Call \.collect\(\)"):
        plain_classifier().fit(frame, pl.LazyFrame({"y": y}))


@pytest.mark.parametrize(
    "y",
    [
        [1, "a", 2, "b"],
        np.array(["a", 1.5, "b"], dtype=object),
        pd.Series(["no", True, None]),
        [b"a", "a"],
    ],
)
def test_labels_of_two_kinds_are_refused(y):
    with pytest.raises(TypeError, match=r"y mixes labels of the types .* and .*row"):
        encode_labels(y)


def test_marks_of_unlabelled_rows_may_be_of_another_kind():
    assert encode_labels(["a", -1, "b", None])[1].tolist() == [0, -1, 1, -1]
    assert encode_labels([1, "?", 2], "?")[1].tolist() == [0, -1, 1]


# Dates where there were categories ------------------------------------------------------


@pytest.mark.parametrize("categories", [[3, 3, 7, 7], list("uvuv"), [True, False] * 2])
def test_dates_in_a_categorical_column_are_refused(categories):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "k": categories})
    imputer = MixtureImputer(
        1, categorical_features=["k"], covariance_type="full", covariance_prior=1.0
    ).fit(frame)
    days = pd.to_datetime(["2024-05-01", None, "2024-05-02"])
    with pytest.raises(TypeError, match="'k' held categories in training, but here"):
        imputer.transform(pd.DataFrame({"a": [1.0, 2.0, 3.0], "k": days}))
    empty = pd.DataFrame({"a": [1.0, 2.0], "k": pd.to_datetime([None, None])})
    filled = imputer.transform(empty)["k"].tolist()
    assert set(filled) <= set(categories)


def test_dates_in_a_categorical_column_of_polars_are_refused():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "k": list("uvuv")})
    imputer = MixtureImputer(1, covariance_type="full", covariance_prior=1.0).fit(frame)
    days = pl.Series("k", [datetime.date(2024, 5, 1), None], dtype=pl.Date)
    with pytest.raises(TypeError, match="'k' held categories in training, but here"):
        imputer.transform(pl.DataFrame({"a": [1.0, 2.0]}).with_columns(days))


def _wide(library, kind, n_columns):
    """Return a frame of many short columns of one type."""
    cells = np.resize(np.array(["red", "green", None, "blue"], object), (n_columns, 5))
    numbers = np.resize(np.array([1.5, 2.0, None, 4.0], object), (n_columns, 5))
    source = numbers if kind in ("Float64", "numbers") else cells
    data = {f"c{j}": row.tolist() for j, row in enumerate(source)}
    if library == "polars":
        return pl.DataFrame(data, schema=dict.fromkeys(data, getattr(pl, kind)))
    frame = pd.DataFrame(data, dtype=object)
    return frame if kind in ("text", "numbers") else frame.astype(kind)


@pytest.mark.parametrize(
    ("library", "kind"),
    [
        ("pandas", "text"),
        ("pandas", "numbers"),
        ("pandas", "string"),
        ("pandas", "category"),
        ("pandas", "Float64"),
        ("polars", "String"),
        ("polars", "Categorical"),
        ("polars", "Float64"),
    ],
)
def test_wide_frames_are_not_taken_apart_column_by_column(library, kind, monkeypatch):
    import narwhals.stable.v2 as nw

    taken = []
    get_column = nw.DataFrame.get_column

    def counted(frame, name):
        taken.append(name)
        return get_column(frame, name)

    monkeypatch.setattr(nw.DataFrame, "get_column", counted)
    counts = []
    for n_columns in (4, 40):
        taken.clear()
        columns = read_columns(_wide(library, kind, n_columns))
        Schema.learn(columns).encode(columns)
        counts.append(len(taken))
    assert counts[0] == counts[1]


def test_blocks_of_columns_hold_the_same_cells(monkeypatch):
    frame = pd.concat(
        [
            _wide("pandas", kind, 3).add_prefix(kind)
            for kind in ("text", "category", "string", "Float64")
        ],
        axis=1,
    )
    whole = [read_columns(frame).values(j) for j in range(frame.shape[1])]
    monkeypatch.setattr("hybridmix.data.frames._BLOCK_CELLS", 10)
    columns = read_columns(frame)
    assert [columns.values(j) for j in range(frame.shape[1])] == whole
    assert columns.values(0) == whole[0]
