"""Odd partitions, workers that die and schedulers that go away."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from hybridmix import HybridMixtureClassifier, MixtureRegressor
from hybridmix.data import dask_blocks
from hybridmix.data.dask_balance import balanced, moves
from hybridmix.data.dask_blocks import DaskBlocks

distributed = pytest.importorskip("distributed")

FEATURES = ["x0", "x1", "c"]
OPTIONS = {"n_components": 2, "covariance_type": "full", "random_state": 0}
HYBRID = {**OPTIONS, "tradeoff": 3.0, "n_steps": 4}


def make_table(n_rows=300, seed=0):
    """Three partitions' worth of complete rows, of three classes and two categories."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=n_rows)
    real = generator.normal(size=(n_rows, 2)) + 1.5 * labels[:, None]
    table = pd.DataFrame(real, columns=FEATURES[:2])
    table["c"] = generator.choice(["a", "b"], n_rows)
    table["y"] = np.array(["p", "q", "r"])[labels]
    table["t"] = real.sum(axis=1) + generator.normal(size=n_rows)
    return table.assign(w=1.0)


def with_cells(column, rows, value):
    """Return a change of a table: some cells of a column."""

    def changed(table):
        table.loc[table.index[rows], column] = value
        return table

    return changed


# What may be odd about the partitions of a table: its rows 0-99, 100-199 and 200-299.
ODD = {
    "a class is missing in the first": lambda t: t.sort_values("y", ignore_index=True),
    "a category is in the last only": with_cells("c", slice(297, 300), "late"),
    "cells are missing in the second": with_cells("x0", slice(110, 190, 3), np.nan),
    "a column is empty in the first": with_cells("x1", slice(0, 100), np.nan),
    "targets are missing in the last": with_cells("t", slice(200, 300), np.nan),
    "labels are missing in the first": with_cells("y", slice(0, 100), None),
    "the second has no weight": with_cells("w", slice(100, 200), 0.0),
    "only a row of the first has a weight": with_cells("w", slice(0, 99), 0.0),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_partitions_change_nothing(odd):
    table = ODD[odd](make_table())
    frame, empty = (dd.from_pandas(t, npartitions=3) for t in (table, table[:0]))
    frame = dd.concat([empty, frame, empty], interleave_partitions=True)
    frame = frame.clear_divisions()
    X, others = table[FEATURES], frame[[*FEATURES, "w"]]
    pairs = [
        (HybridMixtureClassifier(**HYBRID), "y", "predict_proba"),
        (MixtureRegressor(**HYBRID, n_starts=1, calibrate=False), "t", "predict"),
    ]
    with dask.config.set(scheduler="synchronous"):
        for model, y, method in pairs:
            expected = getattr(model.fit(X, table[y], table["w"]), method)(X)
            model.fit(others.assign(**{y: frame[y]}), y, "w")
            found = getattr(model, method)(frame)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


# Clusters -------------------------------------------------------------------------


@pytest.fixture
def patient():
    """Let a machine that is busy take its time to start workers."""
    with dask.config.set({"distributed.comm.timeouts.connect": "60s"}):
        yield


def at_call(monkeypatch, number, action):
    """Do something in the middle of a fit: before a given sum over the blocks."""
    plain, calls = DaskBlocks.summed, []

    def summed(self, *args):
        calls.append(time.monotonic())
        if len(calls) == number:
            action()
        return plain(self, *args)

    monkeypatch.setattr(DaskBlocks, "summed", summed)
    return calls


@pytest.mark.usefixtures("patient")
def test_workers_may_die_and_their_number_does_not_matter(monkeypatch):
    frame = dd.from_pandas(make_table(), npartitions=4)[[*FEATURES, "y"]]

    def probabilities():
        model = HybridMixtureClassifier(**HYBRID).fit(frame, "y")
        return model.predict_proba(frame).compute()

    def kill():
        pid = next(iter(client.run(os.getpid).values()))
        os.kill(pid, signal.SIGKILL)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, timeout="60s") as client,
    ):
        expected = probabilities()
        with monkeypatch.context() as patch:
            calls = at_call(patch, 5, kill)
            np.testing.assert_array_equal(probabilities(), expected)
            assert len(calls) > 5
        cluster.scale(1)
        while len(client.nthreads()) != 1:
            time.sleep(0.05)
        np.testing.assert_array_equal(probabilities(), expected)


@pytest.mark.usefixtures("patient")
def test_blocks_are_spread_over_the_workers(monkeypatch):
    """Rows that are all on one worker do not stay there."""
    holders = []

    def noted(blocks):
        moved = balanced(blocks)
        distributed.wait(distributed.futures_of(moved))
        holders.extend(client.who_has(distributed.futures_of(moved)).values())
        return moved

    monkeypatch.setattr(dask_blocks, "balanced", noted)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        table = make_table()
        frame = dd.from_pandas(table, npartitions=6)[[*FEATURES, "y"]]
        frame = client.persist(frame, workers=[next(iter(client.nthreads()))])
        distributed.wait(frame)
        model = HybridMixtureClassifier(**HYBRID).fit(frame, "y")
    counts = Counter(worker for workers in holders for worker in workers)
    assert sorted(counts.values()) == [3, 3]
    own = HybridMixtureClassifier(**HYBRID).fit(table[FEATURES], table["y"])
    found, expected = (m.predict_proba(table[FEATURES]) for m in (model, own))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("sizes", "holders", "threads", "expected"),
    [
        ([5, 5, 5, 5], "aabb", {"a": 1, "b": 1}, "aabb"),
        ([5, 5, 5, 5], "aaab", {"a": 1, "b": 1}, "aabb"),
        ([5, 5, 5], "aaa", {"a": 2, "b": 1}, "aab"),
        ([9, 1, 1], "aaa", {"a": 1, "b": 1}, "baa"),
        ([5, 5], "a?", {"a": 1}, "a?"),
        ([100, 101], "ab", {"a": 1, "b": 1}, "ab"),
        ([7], "a", {"a": 1, "b": 1}, "a"),
        ([], "", {}, ""),
    ],
)
def test_moves_even_out_the_rows_of_threads(sizes, holders, threads, expected):
    moved = moves(sizes, holders, threads)
    found = [moved.get(number, holder) for number, holder in enumerate(holders)]
    assert sorted(zip(found, sizes, strict=True)) == sorted(
        zip(expected, sizes, strict=True)
    )


@pytest.mark.usefixtures("patient")
def test_a_lost_scheduler_is_an_error(monkeypatch, tmp_path):
    place = ["--scheduler-file", str(tmp_path / "scheduler.json"), "--no-dashboard"]
    commands = [["scheduler", "--port", "0"], ["worker", "--nthreads", "1", "--no-nanny"]]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command, *place],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]

    def kill():
        processes[0].kill()
        # The client has noticed when it is asked for more, and would wait.
        time.sleep(1.0)

    try:
        with distributed.Client(scheduler_file=place[1], timeout="60s"):
            frame = dd.from_pandas(make_table(), npartitions=4)[[*FEATURES, "y"]]
            calls = at_call(monkeypatch, 5, kill)
            with pytest.raises(ConnectionError, match="cluster was lost"):
                HybridMixtureClassifier(**HYBRID).fit(frame, "y")
            assert time.monotonic() - calls[4] < 20.0
    finally:
        for process in processes:
            process.kill()
            process.wait()
