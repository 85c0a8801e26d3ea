"""Summaries of blocks of rows, and the schema that they give for columns of any scale."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridmix import MixtureDensity, MixtureImputer
from hybridmix.data import Schema
from hybridmix.data.columns import read_columns
from hybridmix.data.summaries import RealSummary, TableSummary, relative_weights

TINY, HUGE = 5e-324, np.finfo(float).max
SCALES = [TINY, 1e-320, 2.3e-308, 1e-300, 1e-154, 1.0, 1e154, 1e300, HUGE]
COVARIANCE_TYPES = ["full", "tied", "diag", "spherical", "subspace"]


def learn(X, weights=None, **options):
    columns = read_columns(X)
    schema = Schema.learn(columns, weights=weights, **options)
    return schema, schema.encode(columns)


def exact_moments(values, weights):
    """Return mean and deviation by exact arithmetic, but for the last square root."""
    pairs = [
        (Fraction(float(v)), Fraction(float(w)))
        for v, w in zip(values, weights, strict=True)
        if not np.isnan(v)
    ]
    total = sum(w for _, w in pairs)
    mean = sum(v * w for v, w in pairs) / total
    variance = sum((v - mean) ** 2 * w for v, w in pairs) / total
    return float(mean), np.sqrt(float(variance))


def spread(scale, n_rows=40, seed=0):
    """Return values of both signs, the largest of a given magnitude."""
    values = np.random.default_rng(seed).normal(size=n_rows)
    values /= np.abs(values).max()
    return np.round(9 * values) * scale if scale == TINY else values * scale


# Merging -------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e6, 1e10])
@pytest.mark.parametrize("cuts", [[], [1], [30, 31, 90], list(range(1, 120))])
def test_moments_do_not_depend_on_how_rows_are_cut(shift, cuts):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) * [1e-3, 1.0, 1e4] + shift
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:40, 0] = np.nan
    weights = rng.integers(0, 4, size=120).astype(float)
    parts = zip(np.split(X, cuts), np.split(weights, cuts), strict=True)
    summary = reduce(RealSummary.merged, [RealSummary.of(x, w) for x, w in parts])
    scale, is_constant = summary.scales()
    assert not is_constant.any()
    for j in range(3):
        mean, deviation = exact_moments(X[:, j], weights)
        # Deviations far below the mean have fewer digits.
        condition = max(1.0, abs(mean) / deviation)
        assert summary.centre[j] == pytest.approx(mean, rel=1e-14, abs=1e-14 * deviation)
        assert scale[j] == pytest.approx(deviation, rel=1e-14 + 2e-16 * condition)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(allow_nan=True, allow_infinity=False), st.integers(0, 3)),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_moments_are_in_range_for_any_floats(cells, cut):
    values, weights = np.array(cells).T.astype(float)
    whole = RealSummary.of(values[:, None], weights)
    parts = zip(np.split(values, [cut]), np.split(weights, [cut]), strict=True)
    merged = reduce(RealSummary.merged, [RealSummary.of(v[:, None], w) for v, w in parts])
    for summary in (whole, merged):
        scale, _ = summary.scales()
        assert np.isfinite(summary.centre).all()
        assert (np.isfinite(scale) & (scale > 0)).all()
    assert merged.weight == whole.weight
    assert merged.largest == whole.largest
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=0, atol=1e-14)
    np.testing.assert_allclose(merged.squares, whole.squares, rtol=0, atol=1e-12)


def test_constant_columns_are_constant_in_many_blocks(monkeypatch):
    monkeypatch.setattr("hybridmix._chunks._CHUNK_BYTES", 1)  # blocks of 64 rows
    X = np.tile([0.1, -3.1234567e5, 1e-310, 0.0, HUGE], (5000, 1))
    schema, table = learn(X)
    np.testing.assert_allclose(schema.centre, X[0], rtol=1e-15)
    np.testing.assert_array_equal(schema.scale, [0.1, 3.1234567e5, 1e-310, 1.0, HUGE])
    assert np.abs(table[:].real).max() < 1e-14


def test_the_order_of_memory_does_not_matter():
    X = np.random.default_rng(0).normal(size=(3000, 4)) + 5
    weights = np.random.default_rng(1).random(3000)
    first, other = learn(X, weights)[0], learn(np.asfortranarray(X), weights)[0]
    np.testing.assert_array_equal(first.centre, other.centre)
    np.testing.assert_array_equal(first.scale, other.scale)


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.from_pandas])
def test_a_schema_from_merged_blocks_is_that_of_the_table(as_frame):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=90), "k": rng.choice(list("xyz"), 90), "b": rng.random(90)}
    )
    frame.loc[:9, "k"] = "first"
    whole = Schema.learn(read_columns(as_frame(frame)))
    blocks = [read_columns(as_frame(frame[i : i + 30])) for i in (0, 30, 60)]
    parts = [TableSummary.of(block, [0, 2], [1], None) for block in blocks]
    summary = reduce(TableSummary.merged, parts)
    merged = Schema.from_summary(blocks[0], [0, 2], [1], summary)
    assert merged.categories == whole.categories == (("first", "x", "y", "z"),)
    np.testing.assert_allclose(merged.centre, whole.centre, rtol=1e-14)
    np.testing.assert_allclose(merged.scale, whole.scale, rtol=1e-14)


# Weights -------------------------------------------------------------------------------


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    X = rng.normal([0.0, 100.0], size=(50, 2))
    weights = rng.integers(0, 4, size=50)
    weighted = learn(X, weights.astype(float))[0]
    repeated = learn(np.repeat(X, weights, axis=0))[0]
    np.testing.assert_allclose(weighted.centre, repeated.centre, rtol=1e-14)
    np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-14)


@pytest.mark.parametrize("unit", [1e-320, 1e-300, 1e154, 1e300, HUGE / 4])
def test_the_unit_of_weights_does_not_matter(unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    weights = rng.integers(0, 4, size=50).astype(float)
    reference, schema = learn(X, weights)[0], learn(X, weights * unit)[0]
    rtol = 1e-3 if unit < 1e-310 else 1e-13  # the smallest floats have few digits
    np.testing.assert_allclose(schema.centre, reference.centre, rtol=rtol)
    np.testing.assert_allclose(schema.scale, reference.scale, rtol=rtol)


def test_rows_of_hardly_any_weight_are_seen_where_they_are_alone():
    X = np.array([[1.0, np.nan], [3.0, np.nan], [5.0, 2.0], [7.0, 6.0]])
    weights = np.array([1e300, 1e300, 1e-320, 1e-320])
    schema, _ = learn(X, weights)
    np.testing.assert_allclose(schema.centre, [2.0, 4.0])
    np.testing.assert_allclose(schema.scale, [1.0, 2.0])
    relative = relative_weights(np.array([3.0, 0.0, 1.0]))
    np.testing.assert_array_equal(relative, [0.75, 0.0, 0.25])


# The whole range of floats -------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["columns", "common", "comparable"])
@pytest.mark.parametrize("second", SCALES[::2])
@pytest.mark.parametrize("first", SCALES)
def test_columns_of_any_scale_are_encoded_and_decoded(first, second, scaling):
    X = np.column_stack([spread(first), np.abs(spread(second, seed=1))])
    X[3, 0] = np.nan
    schema, table = learn(X, scaling=scaling)
    assert np.isfinite(schema.centre).all()
    assert (np.isfinite(schema.scale) & (schema.scale > 0)).all()
    rows = table[:].real
    assert np.isfinite(rows).all()
    assert np.isfinite(table.log_volume()).all()
    if scaling == "columns":
        assert (rows.std(axis=1) > 0.5).all()
        assert (np.abs(rows) < 10).all()
    observed = ~np.isnan(X)
    back = schema.unscaled(rows).T
    # A column that is tiny in the common unit has fewer digits, or none, and every
    # step rounds the largest number in it.
    error = np.abs(back - X)[observed] / np.broadcast_to(schema.scale, X.shape)[observed]
    size = np.abs(rows).max() + np.abs(schema.centre / schema.scale).max()
    assert error.max() <= 4e-16 * (1.0 + size)
    far = schema.unscaled(np.full((2, 1), 1e50))
    assert np.isfinite(far).all()


def test_differences_too_large_for_a_float_have_their_place():
    X = np.array([[-HUGE], [HUGE], [-HUGE], [HUGE], [HUGE]])
    schema, table = learn(X)
    share = np.array([-1.2, 0.8, -1.2, 0.8, 0.8]) / np.sqrt(0.96)
    np.testing.assert_allclose(table[:].real[0], share)
    np.testing.assert_allclose(schema.unscaled(share[None])[0], X[:, 0])
    tiny = Schema.learn(read_columns(np.array([[0.0], [TINY]])))
    far = tiny.encode(read_columns(np.array([[1e300], [-1.0]])))
    np.testing.assert_array_equal(far[:].real[0], [1e50, -1e50])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(
    "scales",
    [(TINY, TINY), (1e-300, 1e-300), (1e154, 1e154), (HUGE, HUGE), (HUGE, 1e-310)],
)
def test_models_of_columns_of_any_scale(covariance_type, scales):
    X = np.column_stack([spread(scales[0]), spread(scales[1], seed=1)])
    y = (X[:, 0] > 0).astype(int)
    X[::7, 0] = np.nan
    options = {"covariance_type": covariance_type, "random_state": 0}
    density = MixtureDensity(2, **options).fit(X)
    for values in (density.score_samples(X), density.impute(X), density.sample(9)[0]):
        assert np.isfinite(values).all()
    probabilities = plain_classifier(**options).fit(X, y).predict_proba(X)
    assert np.isfinite(probabilities).all()


# Categories ----------------------------------------------------------------------------


def test_numbers_stand_for_the_categories_that_spell_them():
    text = pd.DataFrame({"k": ["1", "2", "3"] * 10, "a": np.arange(30.0)})
    whole = text.assign(k=[1, 2, 3] * 10)
    for trained, new in [(text, whole), (whole, text), (text, whole.astype(float))]:
        schema = Schema.learn(read_columns(trained), ["k"])
        expected = schema.encode(read_columns(trained)).codes
        np.testing.assert_array_equal(schema.encode(read_columns(new)).codes, expected)


def test_other_spellings_are_other_categories():
    frame = pd.DataFrame({"k": ["1", "01", "3"] * 10})
    schema = Schema.learn(read_columns(frame))
    with pytest.warns(UserWarning, match="did not see count as missing: 1 in column 'k'"):
        codes = schema.encode(read_columns(pd.DataFrame({"k": [1, 1]}))).codes
    assert (codes == -1).all()
    frame = pd.DataFrame({"k": ["1", "2", "3"] * 10})
    schema = Schema.learn(read_columns(frame))
    with pytest.warns(UserWarning, match="'01' in column 'k'"):
        schema.encode(read_columns(pd.DataFrame({"k": ["01"]})))
    with pytest.raises(TypeError, match="column 'k' holds what cannot be a category"):
        schema.encode(read_columns(pd.DataFrame({"k": [[1], [2]]})))


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame])
def test_categories_that_arrive_as_numbers_are_filled_as_numbers(as_frame):
    text = {"k": ["1", "2", "3"] * 10, "a": np.arange(30.0) % 3}
    model = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(as_frame(text))
    filled = model.transform(as_frame(text | {"k": [1.0, None, 3.0] * 10}))["k"].to_list()
    assert filled[0::3] == [1.0] * 10
    assert filled[2::3] == [3.0] * 10
    assert set(filled) <= {1.0, 2.0, 3.0}
    whole = {"k": [1, 2, 3] * 10, "a": np.arange(30.0) % 3}
    model = MixtureImputer(
        2,
        categorical_features=["k"],
        random_state=0,
        covariance_type="full",
        covariance_prior=1.0,
    )
    model.fit(as_frame(whole))
    filled = model.transform(as_frame(whole | {"k": ["1", None, "3"] * 10}))["k"]
    assert filled.to_list()[0::3] == ["1"] * 10
    assert set(filled.to_list()) <= {"1", "2", "3"}
