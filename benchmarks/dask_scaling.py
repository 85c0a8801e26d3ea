"""Training on Dask data frames: workers, threads in memory, and a worker that is killed.

Workers are processes of one thread each. All cases take the same table and the same
starts, and do the same iterations, in turn and several times. Of each iteration, the
fastest repetition counts, and of these the median is shown: by the clock, and by the
processor times of the driver (which runs the scheduler as well) and of the busiest
worker, which other programs disturb less. Differences are those of log densities to the
model that was fitted in memory on one thread. In the last case, a worker is killed
(kill -9) while it trains.

Tables of hardly any rows show what an iteration costs besides the rows, for several
numbers of partitions. A model of all that extrapolates to more rows and workers.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    DEFAULT_RESULTS,
    Options,
    Row,
    add_options,
    print_table,
    say,
    version,
    write_table,
)
from out_of_core import N_COMPONENTS, blobs, write_folder
from pictures import image_folder, prepare_pictures, save

ITERATIONS, STEPS = 5, 4
N_PARTITIONS = 8
PARTITIONS = (4, 16, 64)
KILLED_AFTER = 0.5  # of the time of the fit before
EM, HYBRID = "EM", "L-BFGS"
TITLES = {EM: "EM iteration", HYBRID: "hybrid step"}
QUANTITIES = ("clock", "driver", "worker")
# Of the model: bytes per second of a network, rows of a partition, sums that are added
# by one task.
BANDWIDTH, MOST_ROWS, GROUP = 125e6, 1_000_000, 8


# Measuring ------------------------------------------------------------------------


@dataclass
class Watch:
    """Notes what every step of training took, by the clock and by processors."""

    client: Any = None
    steps: dict[str, list[np.ndarray]] = field(
        default_factory=lambda: {EM: [], HYBRID: []}
    )
    began: np.ndarray | None = None
    task: str = ""

    def __call__(self, step: Any) -> None:
        """Take note of a step that ends now."""
        now = self._now()
        if self.began is not None and self.task == step.task:
            taken = now - self.began
            busiest = max(taken[2:], default=np.nan)
            self.steps[step.task].append(np.array([taken[0], taken[1], busiest]))
        self.task = step.task
        self.began = self._now()  # asking the workers does not count

    def _now(self) -> np.ndarray:
        times = [time.perf_counter(), time.process_time()]
        if self.client is not None:
            found = self.client.run(time.process_time)
            times += [found[worker] for worker in sorted(found)]
        return np.array(times)


def fitted(
    table: Any, y: Any, covariance_type: str, n_jobs: int, client: Any = None
) -> tuple[Any, float, Watch]:
    """Fit a classifier; return it, the seconds it took, and what its steps took."""
    from hybridmix import HybridMixtureClassifier
    from hybridmix.progress import listening

    model = HybridMixtureClassifier(
        n_components=N_COMPONENTS,
        covariance_type=covariance_type,
        tradeoff=10.0,
        column_shapes="plain",
        max_iter=ITERATIONS,
        n_steps=STEPS,
        tol=0.0,
        n_jobs=n_jobs,
        random_state=0,
    )
    watch = Watch(client)
    began = time.perf_counter()
    with listening(watch):
        model.fit(table, y)
    return model, time.perf_counter() - began, watch


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def on_cluster(folder: Path, covariance_type: str, n_workers: int) -> Any:
    import dask.dataframe

    with cluster(n_workers) as client:
        table = dask.dataframe.read_parquet(folder)
        return fitted(table, "y", covariance_type, 1, client)


def with_a_loss(folder: Path, covariance_type: str, kill_after: float) -> Any:
    """Fit on two workers, one of which is killed after some seconds."""
    import dask.dataframe

    with cluster(2) as client:
        table = dask.dataframe.read_parquet(folder)
        pids = list(client.run(os.getpid).values())
        threading.Timer(kill_after, os.kill, (pids[0], signal.SIGKILL)).start()
        return fitted(table, "y", covariance_type, 1)


def summary(watches: list[Watch]) -> Row:
    """Return the medians over steps of the fastest of repetitions, in milliseconds."""
    row: Row = {}
    for task, title in TITLES.items():
        fastest = np.min([watch.steps[task] for watch in watches], axis=0)
        for name, value in zip(QUANTITIES, np.median(fastest, axis=0), strict=True):
            row[f"{title}, {name} (ms)"] = 1e3 * value
    return row


# Workers and threads --------------------------------------------------------------


def compared(
    n_rows: int, n_columns: int, n_repetitions: int, options: Options
) -> list[Row]:
    """Measure both types of covariances; what is there is kept at once."""
    import pandas

    rows: list[Row] = []
    probe = blobs(1000, n_columns, 10_000)[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, n_rows, n_columns, N_PARTITIONS)
        table = pandas.read_parquet(folder)
        labels = table.pop("y")
        probed = pandas.DataFrame(probe, columns=table.columns)
        for covariance_type in ("full", "diag"):
            cases: dict[str, Any] = {
                "1 thread": (fitted, table, labels, covariance_type, 1),
                "2 threads": (fitted, table, labels, covariance_type, 2),
                "1 worker": (on_cluster, folder, covariance_type, 1),
                "2 workers": (on_cluster, folder, covariance_type, 2),
            }
            found = repeated(cases, probed, n_repetitions)
            shape = {"rows": n_rows, "columns": n_columns, "covariances": covariance_type}
            for case, (seconds, watches, scores) in found.items():
                difference = float(np.abs(scores - found["1 thread"][2]).max())
                row = {**shape, "case": case, "fit (s)": seconds}
                rows.append({**row, **summary(watches), "difference": difference})
            write_table("dask_scaling", rows, options, ["dask"])
            say(f"2 workers, one of them killed, {covariance_type}")
            seconds, _, scores = found["2 workers"]
            model, taken, _ = with_a_loss(folder, covariance_type, KILLED_AFTER * seconds)
            is_same = np.array_equal(model.score_samples(probed), scores)
            case = f"2 workers, one killed, {'same' if is_same else 'other'} bits"
            rows.append({**shape, "case": case, "fit (s)": taken})
            write_table("dask_scaling", rows, options, ["dask"])
    return rows


def repeated(
    cases: dict[str, Any], probed: Any, n_repetitions: int
) -> dict[str, tuple[float, list[Watch], np.ndarray]]:
    """Return the seconds of the fastest fit, all watches and log densities, by case."""
    found: dict[str, Any] = {case: (np.inf, [], np.nan) for case in cases}
    for _ in range(n_repetitions):
        for case, (function, *arguments) in cases.items():
            say(f"{case}, {arguments[-2]}")
            model, taken, watch = function(*arguments)
            seconds, watches, _ = found[case]
            scores = model.score_samples(probed)
            found[case] = (min(seconds, taken), [*watches, watch], scores)
    return found


# What is not work on rows ---------------------------------------------------------


def overheads(n_columns: int, partitions: tuple[int, ...]) -> list[Row]:
    """Measure iterations on tables of hardly any rows."""
    import dask.dataframe
    import pandas

    from hybridmix.data.dask_blocks import DaskBlocks

    sizes: list[int] = []
    summed = DaskBlocks.summed

    def noted(self: Any, *arguments: Any) -> Any:
        found = summed(self, *arguments)
        sizes.append(len(pickle.dumps(found)))
        return found

    DaskBlocks.summed = noted  # type: ignore[method-assign]
    values, labels = blobs(2048, n_columns, 0)
    table = pandas.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])
    table["y"] = labels
    rows: list[Row] = []
    for covariance_type in ("diag", "full"):
        for n_partitions in partitions:
            say(f"{n_partitions} partitions, {covariance_type}")
            sizes.clear()
            with cluster(1) as client:
                lazy = dask.dataframe.from_pandas(table, npartitions=n_partitions)
                watch = fitted(lazy, "y", covariance_type, 1, client)[2]
            row = {"rows": len(table), "covariances": covariance_type}
            row |= {"partitions": n_partitions, **summary([watch])}
            rows.append({**row, "statistics (bytes)": max(sizes)})
    return rows


# The model ------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    r"""Seconds of an iteration on n rows and w workers, with p partitions.

    .. math:: a + b p + (c n + e p) / w + (\lceil \log_8 p \rceil 8
        + \lceil \log_2 w \rceil) S / B,

    what the driver does at all and for each partition, what workers do for each row and
    each partition, and statistics of S bytes that are added by eight and sent to all over
    a network of B bytes per second. There is a partition for each worker, and of a
    million rows at most.
    """

    fixed: float
    per_partition: float
    per_row: float
    per_task: float
    n_bytes: float

    @classmethod
    def of(cls, compared: list[Row], overheads: list[Row], title: str) -> Model:
        """Estimate it from one worker, and from tables of hardly any rows."""
        tasks = [row["partitions"] for row in overheads]
        driver, worker = (
            np.polyfit(
                tasks, [row[f"{title}, {name} (ms)"] / 1e3 for row in overheads], 1
            )
            for name in ("driver", "worker")
        )
        [single] = [row for row in compared if row["case"] == "1 worker"]
        work = single[f"{title}, worker (ms)"] / 1e3 - worker[0] * N_PARTITIONS
        return cls(
            max(driver[1], 0.0),
            driver[0],
            work / single["rows"],
            worker[0],
            max(row["statistics (bytes)"] for row in overheads),
        )

    def seconds(self, n_rows: float, n_workers: float) -> float:
        """Return what an iteration takes."""
        n_partitions = max(n_workers, n_rows / MOST_ROWS, 1.0)
        work = (self.per_row * n_rows + self.per_task * n_partitions) / n_workers
        levels = GROUP * np.ceil(np.log(n_partitions) / np.log(GROUP))
        levels += np.ceil(np.log2(n_workers))
        sent = levels * self.n_bytes / BANDWIDTH
        return float(self.fixed + self.per_partition * n_partitions + work + sent)


def modelled(compared_rows: list[Row], overhead_rows: list[Row]) -> list[Row]:
    """Extrapolate hybrid steps to more rows and workers."""
    rows: list[Row] = []
    for covariance_type in ("diag", "full"):
        own, other = (
            [row for row in table if row["covariances"] == covariance_type]
            for table in (compared_rows, overhead_rows)
        )
        model = Model.of(own, other, TITLES[HYBRID])
        for n_rows in (1e6, 1e8, 1e10):
            for n_workers in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000):
                seconds = model.seconds(n_rows, n_workers)
                ideal = model.seconds(n_rows, 1) / n_workers
                rows.append(
                    {
                        "covariances": covariance_type,
                        "rows": int(n_rows),
                        "workers": n_workers,
                        "hybrid step (s)": seconds,
                        "efficiency": ideal / seconds,
                    }
                )
    return rows


def draw(compared_rows: list[Row], model_rows: list[Row], folder: Path) -> None:
    """Draw modelled times of hybrid steps by workers, with what was measured."""
    plt = prepare_pictures()
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), sharey=True)
    for axis, covariance_type in zip(axes, ("diag", "full"), strict=True):
        own = [row for row in model_rows if row["covariances"] == covariance_type]
        for number, n_rows in enumerate(sorted({row["rows"] for row in own})):
            line = [row for row in own if row["rows"] == n_rows]
            workers = [row["workers"] for row in line]
            times = np.array([row["hybrid step (s)"] for row in line])
            label = f"$10^{{{round(np.log10(n_rows))}}}$ rows"
            axis.loglog(workers, times, color=f"C{number}", label=label)
            axis.loglog(workers, times[0] / workers, ":", color=f"C{number}", lw=1)
        for row in compared_rows:
            is_drawn = row["rows"] in {other["rows"] for other in own}
            is_own = row["covariances"] == covariance_type
            if is_drawn and is_own and "worker" in row["case"]:
                measured = row.get(f"{TITLES[HYBRID]}, clock (ms)")
                if measured is not None:
                    axis.plot(int(row["case"].split()[0]), measured / 1e3, "ko", ms=4)
        axis.set_title(f"covariances: {covariance_type}")
        axis.set_xlabel("workers of one thread")
    axes[0].set_ylabel("seconds of a hybrid step")
    axes[0].legend()
    save(figure, "dask_scaling", folder)


# Command line ---------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=3)
    add_options(parser)
    given = parser.parse_args()
    if version("distributed") == "not installed":
        say("dask is not installed: pip install 'hybridmix[dask]'")
        return
    warnings.simplefilter("ignore")
    results = given.results or (None if given.quick else DEFAULT_RESULTS)
    options = Options(given.data, results, given.quick)
    other = overheads(given.columns, PARTITIONS[:2] if given.quick else PARTITIONS)
    print_table(other)
    write_table("dask_overhead", other, options, ["dask"])
    n_rows = 20_000 if given.quick else given.rows
    n_repetitions = 1 if given.quick else given.repetitions
    rows = compared(n_rows, given.columns, n_repetitions, options)
    print_table(rows)
    model_rows = modelled(rows, other)
    write_table("dask_model", model_rows, options, ["dask"])
    folder = image_folder(options)
    if folder is not None:
        draw(rows, model_rows, folder)


if __name__ == "__main__":
    main()
