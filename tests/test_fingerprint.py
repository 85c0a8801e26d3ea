"""Whether a model has seen the rows of a table."""

from dataclasses import replace
from time import process_time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier

import hybridmix
from hybridmix import MixtureDensity, MixtureImputer
from hybridmix.data import Schema, read_table
from hybridmix.data.columns import read_columns
from hybridmix.data.fingerprint import (
    SEEN,
    SIZE,
    UNJUDGED,
    UNSEEN,
    Fingerprint,
    Origin,
    Overlap,
)
from hybridmix.tasks.provenance import Provenance, looked_up


def encoded(X, schema=None):
    columns = read_columns(X)
    return (schema or Schema.learn(columns)).encode(columns)


def origin(fingerprint, X, schema):
    return fingerprint.origin(Overlap.of(fingerprint.look_up(encoded(X, schema))))


def mixed_frame(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(0, 1000, n_rows),
            "real": rng.normal(size=n_rows),
            "word": rng.choice(["a", "b", "c"], n_rows),
        }
    )
    frame["real"] = frame["real"].mask(rng.random(n_rows) < 0.1)
    frame["word"] = frame["word"].mask(rng.random(n_rows) < 0.1)
    return frame


def assert_same(one, other):
    np.testing.assert_array_equal(one.hashes, other.hashes)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.n_rows == other.n_rows


@pytest.mark.parametrize("change", [np.float32, lambda X: X.round(3)])
def test_rows_are_seen_only_if_all_cells_are_equal(change):
    """What is said of rows that were rounded must be true of them, too."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    found = looked_up(model, change(X))
    provenance = Provenance(model.fingerprint_, Overlap.of(found))
    assert provenance.sentence == "None of these 30 rows equals a training row."


def test_order_type_and_container_make_no_difference():
    frame = mixed_frame()
    given = Fingerprint.of(encoded(frame))
    shuffled = frame.sample(frac=1.0, random_state=0)
    retyped = frame.astype({"whole": float, "word": "category"})
    tables = [shuffled, retyped, pl.from_pandas(frame), frame.to_numpy(object)]
    for table in tables:
        assert_same(Fingerprint.of(encoded(table)), given)


def test_zeros_and_holes_have_one_form():
    X = np.array([[0.0, np.nan], [1.0, 2.0]])
    other = np.array([[-0.0, 1.0], [1.0, 2.0]])
    # A NaN of other bits than NumPy's.
    other.view(np.uint64)[0, 1] = 0xFFF8000000000123
    assert np.isnan(other[0, 1])
    assert_same(Fingerprint.of(encoded(X)), Fingerprint.of(encoded(other)))


def test_other_values_columns_and_categories_differ():
    frame = mixed_frame()
    table = encoded(frame)
    given = Fingerprint.of(table)
    swapped = frame[["real", "whole", "word"]]
    swapped.columns = frame.columns
    changed = frame.assign(word=frame["word"].map({"a": "b", "b": "c", "c": "a"}))
    nudged = frame.assign(whole=np.nextafter(frame["whole"] + 1.0, np.inf))
    for other in (swapped, changed, nudged):
        found = given.look_up(encoded(other, table.schema))
        assert np.mean(found == SEEN) < 0.2


def test_parts_merge_into_the_whole():
    X = np.random.default_rng(0).integers(0, 60, size=(5000, 2)).astype(float)
    table = encoded(X)
    whole = Fingerprint.of(table)
    parts = [
        Fingerprint.of(encoded(part, table.schema))
        for part in np.array_split(X, [3, 900, 4000])
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    assert_same(merged, whole)
    assert len(whole.hashes) == SIZE
    assert not whole.is_complete
    distinct, counts = np.unique(X, axis=0, return_counts=True)
    found = whole.look_up(encoded(distinct, table.schema))
    assert np.sum(found == SEEN) == SIZE
    assert not np.any(found == UNSEEN)
    assert sorted(counts[found == SEEN]) == sorted(whole.counts)


@pytest.mark.parametrize("n_rows", [300, 20_000])
def test_seen_unseen_and_mixed_tables(n_rows):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, n_rows, 3))
    table = encoded(X)
    fingerprint = Fingerprint.of(table)
    assert fingerprint.is_complete == (n_rows < SIZE)
    assert origin(fingerprint, X[::-1], table.schema) == Origin.SEEN
    assert origin(fingerprint, new, table.schema) == Origin.UNSEEN
    half = np.concatenate([X[: n_rows // 2], new])
    assert origin(fingerprint, half, table.schema) == Origin.MIXED
    found = fingerprint.look_up(encoded(half, table.schema))
    n_seen = n_rows // 2
    assert not np.any(found[:n_seen] == UNSEEN)
    assert not np.any(found[n_seen:] == SEEN)
    judged = found[found != UNJUDGED]
    assert np.mean(judged == SEEN) == pytest.approx(1 / 3, abs=0.05)


def test_few_rows_beside_a_large_table_are_not_judged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 2))
    table = encoded(X)
    fingerprint = Fingerprint.of(table)
    assert origin(fingerprint, X[:50], table.schema) == Origin.UNKNOWN


def test_rows_that_repeat_by_chance_are_not_called_seen():
    """A new table of three yes-or-no columns has no row that training has not."""
    rng = np.random.default_rng(0)
    X, new = rng.integers(0, 2, size=(2, 400, 3)).astype(float)
    table = encoded(X)
    fingerprint = Fingerprint.of(table)
    assert fingerprint.coincidence > 0.99
    assert origin(fingerprint, new, table.schema) == Origin.UNKNOWN
    X, new = rng.integers(0, 30, size=(2, 400, 2)).astype(float)
    table = encoded(X)
    fingerprint = Fingerprint.of(table)
    found = fingerprint.look_up(encoded(new, table.schema))
    assert np.mean(found == SEEN) == pytest.approx(fingerprint.coincidence, abs=0.1)
    assert origin(fingerprint, new, table.schema) == Origin.UNSEEN
    assert origin(fingerprint, X, table.schema) == Origin.SEEN
    both = np.concatenate([X, new])
    assert origin(fingerprint, both, table.schema) == Origin.MIXED


def test_overlaps_add_up():
    found = np.array([SEEN, UNSEEN, UNJUDGED, SEEN])
    assert Overlap.of(found) == Overlap(4, 3, 2)
    assert Overlap.of(found[:2]) + Overlap.of(found[2:]) == Overlap.of(found)


def test_damage_is_found():
    sound = Fingerprint.of(encoded(np.arange(20.0)[:, None]))
    sound.check_consistent()
    for change in (
        {"hashes": sound.hashes[::-1]},
        {"hashes": sound.hashes.astype(float)},
        {"counts": sound.counts[:-1]},
        {"counts": -sound.counts},
        {"n_rows": 19},
        {"n_rows": 21},
        {"n_rows": 20.0},
    ):
        with pytest.raises(ValueError, match="fingerprint of the training rows"):
            replace(sound, **change).check_consistent()


def test_models_keep_it_and_files_keep_it(tmp_path):
    frame = mixed_frame()
    y = np.arange(len(frame)) % 2
    weights = (np.arange(len(frame)) < 150).astype(float)
    models = [
        plain_classifier("likelihood").fit(frame, y),
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            frame
        ),
        MixtureImputer(
            n_components=(1, 2, 4, 8), covariance_type="full", covariance_prior=1.0
        ).fit(frame),
    ]
    for model in models:
        hybridmix.save(model, tmp_path / "model.hmx")
        loaded = hybridmix.load(tmp_path / "model.hmx")
        assert_same(loaded.fingerprint_, model.fingerprint_)
        assert np.all(loaded.fingerprint_.look_up(model._encode(frame)) == SEEN)
    weighted = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(frame, sample_weight=weights)
    assert weighted.fingerprint_.n_rows == 150
    assert not hasattr(models[1].marginal(["real"]), "fingerprint_")


def test_it_takes_little_time():
    X = np.random.default_rng(0).normal(size=(200_000, 10))
    table = encoded(X)
    began = process_time()  # the clock would count other programs as well
    Fingerprint.of(table)
    assert process_time() - began < 2.0


def test_a_few_training_rows_among_new_ones_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    model = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    mixed = np.vstack([X[:4], rng.normal(size=(6, 3))])
    found = model.fingerprint_.look_up(model.schema_.encode(read_table(model, mixed)))
    assert model.fingerprint_.origin(Overlap.of(found)) == Origin.MIXED
