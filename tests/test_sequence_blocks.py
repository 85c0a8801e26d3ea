"""Sequences in Dask data frames and scanned tables: memory's results."""

from itertools import pairwise

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
    MixtureDensity,
    Sequences,
    load,
    save,
    scan,
)

N = 48
OPTIONS = {"n_states": 2, "topology": "left-right", "random_state": 0}
# Every step of a gradient method amplifies rounding.
HYBRID = {"tradeoff": 2.0, "n_steps": 4}


def make_frames(seed=0):
    """Sequences of two kinds with holes and a category, in rows that are mixed up."""
    generator = np.random.default_rng(seed)
    parts = []
    for number in range(N):
        n_frames = int(generator.integers(3, 14))
        kind = "rise" if generator.random() < 0.5 else "fall"
        line = np.linspace(-1.0, 1.0, n_frames) * (1.0 if kind == "rise" else -1.0)
        part = pd.DataFrame(
            {
                "id": f"s{number:02d}",
                "t": np.arange(n_frames),
                "x": line + generator.normal(size=n_frames),
                "z": generator.normal(size=n_frames) - line,
                "c": generator.choice(["a", "b"], n_frames),
                "kind": kind,
                "w": float(generator.integers(0, 3)),
            }
        )
        # A label in one row is one of the sequence, and some have none.
        part.loc[generator.random(n_frames) < 0.3, "kind"] = None
        parts.append(part.sample(frac=1.0, random_state=number))
    table = pd.concat(parts, ignore_index=True)
    # Sequences of the first half are complete.
    is_hole = (generator.random(len(table)) < 0.15) & (table["id"] >= "s24")
    table.loc[is_hole, "x"] = np.nan
    table.loc[table["id"].isin(["s03", "s30"]), "kind"] = None
    return table


TABLE = make_frames()
FRAMES = ["id", "t", "x", "z", "c"]


def scanned(table=TABLE):
    """Return a table in blocks of about 256 rows, which cut sequences in two."""
    return scan(pl.from_pandas(table).lazy(), memory=1)


def partitioned(table=TABLE, cuts=("s10", "s11", "s30")):
    """Return a frame of partitions of whole sequences, one of which is empty."""
    bounds = ["", *cuts, "t"]
    parts = [
        table[(table["id"] >= low) & (table["id"] < high)]
        for low, high in pairwise(bounds)
    ]
    return dd.concat([dd.from_pandas(p, npartitions=1) for p in [table[:0], *parts]])


SOURCES = {"scan": scanned, "dask": partitioned}


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def in_memory(table=TABLE, target="kind"):
    """Return sequences, labels and weights of all rows."""
    columns = [*FRAMES, "kind"] if target else FRAMES
    weights = table.groupby("id")["w"].first().to_numpy()
    return *Sequences.from_long(table[columns], "id", "t", target="kind"), weights


def assert_close(a, b, name=""):
    np.testing.assert_allclose(np.asarray(a), b, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "options",
    [
        {"covariance_type": "full"},
        {"covariance_type": "diag", "topology": "ergodic", "exits": True},
        {"covariance_type": "tied", "n_components": 2, "column_shapes": "auto"},
        {"covariance_type": "full", "autoregressive": True},
        {"covariance_type": "subspace", "n_factors": 1},
        {"covariance_type": "spherical", "n_init": 2, "topology": "ergodic"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_densities_are_those_of_memory(source, options):
    X, _, weights = in_memory()
    own = HMMDensity(**{**OPTIONS, **options}).fit(X, sample_weight=weights)
    blocks = Sequences.from_long(SOURCES[source](TABLE[[*FRAMES, "w"]]), "id", "t")
    other = HMMDensity(**{**OPTIONS, **options}).fit(blocks, sample_weight="w")
    assert other.n_iter_ == own.n_iter_
    assert_close(other.trace_, own.trace_, "trace")
    assert_close(other.means_, own.means_, "means")
    assert_close(other.transitions_, own.transitions_, "transitions")
    assert_close(other.mean_lengths_, own.mean_lengths_, "mean lengths")
    assert_close(other.score_samples(blocks), own.score_samples(X), "log densities")
    assert other.score(blocks) == pytest.approx(own.score(X), rel=1e-10)
    np.testing.assert_array_equal(other.fingerprint_.hashes, own.fingerprint_.hashes)
    assert other.feature_names_in_.tolist() == own.feature_names_in_.tolist()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "options",
    [
        {**HYBRID, "covariance_type": "full", "class_weight": "balanced"},
        {"objective": "margin", "n_steps": 4, "covariance_type": "diag"},
        {"objective": "likelihood", "covariance_type": "tied", "calibrate": True},
        {**HYBRID, "covariance_type": "full", "unlabelled_weight": 0.0},
    ],
    ids=lambda options: str(options.get("objective", options["covariance_type"])),
)
def test_classifiers_are_those_of_memory(source, options):
    X, y, _ = in_memory()
    own = HybridHMMClassifier(**OPTIONS, **options).fit(X, y)
    columns = SOURCES[source](TABLE[[*FRAMES, "kind"]])
    blocks, name = Sequences.from_long(columns, "id", "t", target="kind")
    other = HybridHMMClassifier(**OPTIONS, **options).fit(blocks, name)
    assert other.unlabelled_weight_ == own.unlabelled_weight_
    assert_close(other.history_["value"], own.history_["value"], "history")
    assert_close(other.predict_proba(blocks), own.predict_proba(X), "probabilities")
    assert_close(other.score_samples(blocks), own.score_samples(X), "log densities")
    assert np.asarray(other.predict(blocks)).tolist() == own.predict(X).tolist()


@pytest.mark.parametrize("source", SOURCES)
def test_predictions_are_those_of_memory_block_by_block(source, tmp_path):
    X, y, _ = in_memory()
    model = HybridHMMClassifier(**OPTIONS, **HYBRID, covariance_type="diag").fit(X, y)
    blocks = Sequences.from_long(SOURCES[source](), "id", "t")
    assert blocks.ids.tolist() == X.ids.tolist()
    assert len(blocks) == N
    scores, states = model.decode(blocks)
    own_scores, own_states = model.decode(X)
    assert_close(scores, own_scores)
    # Paths of rows are in the order of the rows.
    order = TABLE.sort_values(["id", "t"], kind="stable").index
    assert np.asarray(states)[order].tolist() == np.concatenate(own_states).tolist()
    by_state = np.asarray(model.state_proba(blocks))[order]
    assert_close(by_state, np.concatenate(model.state_proba(X)))
    for name in ("predict_log_proba", "predict_joint_log_proba"):
        assert_close(getattr(model, name)(blocks), getattr(model, name)(X), name)
    assert model.typicality(blocks).shape[1:] == ()
    is_known = ~TABLE["id"].isin(["s03", "s30"])
    labelled = Sequences.from_long(SOURCES[source](TABLE[is_known]), "id", "t")
    known = np.array([label is not None for label in y])
    expected = model.score(X[known], y[known])
    assert model.score(labelled, "kind") == pytest.approx(expected)
    save(model, tmp_path / "model")
    assert_close(load(tmp_path / "model").predict_proba(blocks), model.predict_proba(X))


@pytest.mark.parametrize("source", SOURCES)
def test_searches_use_whole_sequences(source):
    X, y, _ = in_memory()
    options = {"covariance_type": "diag", "n_steps": 2, "tradeoff": 2.0, "max_iter": 5}
    own = HybridHMMClassifier("auto", random_state=0, **options).fit(X, y)
    table = SOURCES[source](TABLE[[*FRAMES, "kind"]])
    blocks = Sequences.from_long(table, "id", "t")
    other = HybridHMMClassifier("auto", random_state=0, **options).fit(blocks, "kind")
    assert other.n_searched_ == own.n_searched_ == N
    names = [[t["candidate"] for t in m.leaderboard_] for m in (own, other)]
    assert names[0] == names[1]
    assert_close(other.predict_proba(blocks), own.predict_proba(X))


@pytest.mark.parametrize("source", SOURCES)
def test_samples_have_all_classes(source, monkeypatch):
    monkeypatch.setattr("hybridmix.data.sequence_blocks._MOST_FRAMES", 60)
    options = {**OPTIONS, **HYBRID, "validation_fraction": 0.2}
    blocks = Sequences.from_long(SOURCES[source](TABLE[[*FRAMES, "kind"]]), "id", "t")
    model = HybridHMMClassifier(covariance_type="diag", calibrate=True, **options)
    model.fit(blocks, "kind")
    assert model.history_["validation_error"].max() <= 1.0
    _, y, _ = in_memory()
    lengths = TABLE.groupby("id").size().to_numpy()
    expected = [lengths[y == kind].mean() for kind in ("fall", "rise")]
    assert model.mean_lengths_ == pytest.approx(expected, rel=0.2)


def test_predictions_of_partitions_are_lazy():
    X, y, _ = in_memory()
    model = HybridHMMClassifier(**OPTIONS, **HYBRID, covariance_type="diag").fit(X, y)
    blocks = Sequences.from_long(partitioned(), "id", "t")
    lazy = model.predict_proba(blocks)
    assert dask.is_dask_collection(lazy)
    assert lazy.npartitions == 5
    assert lazy.dtype == np.float64
    assert model.predict(blocks).dtype == model.predict(X).dtype
    assert model.decode(blocks)[1].dtype == model.decode(X)[1][0].dtype


def test_split_sequences_are_named():
    halves = dd.concat(
        [dd.from_pandas(TABLE[TABLE["t"] < 4]), dd.from_pandas(TABLE[TABLE["t"] >= 4])]
    )
    with pytest.raises(ValueError, match=r"Sequence 's\d\d' is split.*shuffle\('id'\)"):
        Sequences.from_long(halves, "id", "t")
    whole = Sequences.from_long(halves.shuffle("id", npartitions=2), "id", "t")
    assert sorted(whole.ids) == sorted(TABLE["id"].unique())
    with pytest.raises(ValueError, match=r"Sequence 's\d\d' is split.*Sort the table"):
        Sequences.from_long(scanned(TABLE.sort_values("t")), "id", "t")


def test_long_sequences_are_longer_than_blocks():
    table = pd.DataFrame(
        {"id": np.repeat([3, 1, 2], [700, 1, 300]), "x": np.arange(1001)}
    )
    blocks = Sequences.from_long(scanned(table), "id")
    assert blocks.ids.tolist() == [3, 1, 2]
    model = HMMDensity(1, covariance_type="diag", topology="left-right").fit(blocks)
    assert model.mean_lengths_ == pytest.approx(1001 / 3)


def test_several_columns_name_sequences():
    table = TABLE.assign(site=TABLE["id"].str[1], number=TABLE["id"].str[2])
    columns = ["site", "number", "t", "x", "z"]
    X = Sequences.from_long(table[columns], ["site", "number"], "t")
    blocks = Sequences.from_long(scanned(table[columns]), ["site", "number"], "t")
    assert blocks.ids.tolist() == X.ids.tolist()
    model = HMMDensity(**OPTIONS, covariance_type="diag").fit(X)
    assert_close(model.score_samples(blocks), model.score_samples(X))


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="no column 'patient'"):
        Sequences.from_long(scanned(), "patient")
    blocks = Sequences.from_long(scanned(TABLE.assign(t2=TABLE["t"])), "id", "t")
    model = HybridHMMClassifier(**OPTIONS)
    with pytest.raises(ValueError, match="Sequence 's00' has several weights"):
        HMMDensity(**OPTIONS).fit(blocks, sample_weight="t2")
    with pytest.raises(ValueError, match="has several labels in column 'c'"):
        model.fit(blocks, "c")
    with pytest.raises(TypeError, match=r"y must name a column.*got a list"):
        model.fit(blocks, ["rise"] * N)
    with pytest.raises(ValueError, match="lengths cannot be given"):
        model.fit(blocks, "kind", lengths=[3] * N)
    with pytest.raises(TypeError, match="needs one in memory"):
        MixtureDensity(1).fit(blocks)
    fitted = HMMDensity(**OPTIONS, covariance_type="diag").fit(in_memory()[0])
    with pytest.raises(TypeError, match="needs sequences in memory"):
        fitted.impute(blocks)
    with pytest.raises(ValueError, match="lengths cannot be given"):
        fitted.score_samples(blocks, [3] * N)
    with pytest.raises(ValueError, match="make a data frame of an array"):
        Sequences.from_long(da.zeros((4, 2)), "id")
