"""Training on Dask data frames: workers, threads in memory, and a worker that is killed.

Times are medians of EM iterations and of steps of hybrid training, for the same table and
the same starts. Workers are processes of one thread each. Differences are those of mean
log densities to the model that was fitted in memory on one thread. In the last case, a
worker is killed (kill -9) while it trains.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
import warnings
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
from out_of_core import N_COMPONENTS, N_FILES, blobs, write_folder

ITERATIONS, STEPS = 6, 4
KILLED_AFTER = 0.5  # of the time of the fit before


def fitted(table: Any, y: Any, covariance_type: str, n_jobs: int) -> tuple[Any, Row]:
    from hybridmix import HybridMixtureClassifier
    from hybridmix.progress import Step, listening

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
    times: dict[str, list[float]] = {"EM": [], "L-BFGS": []}

    def note(step: Step) -> None:
        times[step.task].append(time.perf_counter())

    began = time.perf_counter()
    with listening(note):
        model.fit(table, y)
    return model, {
        "fit (s)": time.perf_counter() - began,
        "EM iteration (ms)": 1e3 * float(np.median(np.diff(times["EM"]))),
        "hybrid step (ms)": 1e3 * float(np.median(np.diff(times["L-BFGS"]))),
    }


def on_cluster(
    folder: Path, covariance_type: str, n_workers: int, kill_after: float | None = None
) -> tuple[Any, Row]:
    import dask.dataframe
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        table = dask.dataframe.read_parquet(folder)
        if kill_after is not None:
            pids = list(client.run(os.getpid).values())
            threading.Timer(kill_after, os.kill, (pids[0], signal.SIGKILL)).start()
        return fitted(table, "y", covariance_type, 1)


def run(n_rows: int, n_columns: int) -> list[Row]:
    import pandas

    rows: list[Row] = []
    probe = blobs(1000, n_columns, N_FILES)[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, n_rows, n_columns)
        table = pandas.read_parquet(folder)
        labels = table.pop("y")
        probed = pandas.DataFrame(probe, columns=table.columns)
        for covariance_type in ("diag", "full"):
            reference = None
            cases: dict[str, Any] = {
                "1 thread": (fitted, table, labels, covariance_type, 1),
                "2 threads": (fitted, table, labels, covariance_type, 2),
                "1 worker": (on_cluster, folder, covariance_type, 1),
                "2 workers": (on_cluster, folder, covariance_type, 2),
            }
            for case, (function, *arguments) in cases.items():
                say(f"{case}, {covariance_type}")
                model, row = function(*arguments)
                scores = model.score_samples(probed)
                reference = scores if reference is None else reference
                difference = float(np.abs(scores - reference).max())
                shape = {"rows": n_rows, "columns": n_columns}
                shape["covariances"] = covariance_type
                rows.append({**shape, "case": case, **row, "difference": difference})
            say(f"2 workers, one of them killed, {covariance_type}")
            seconds = KILLED_AFTER * rows[-1]["fit (s)"]
            again, row = on_cluster(folder, covariance_type, 2, seconds)
            same = bool(np.array_equal(again.score_samples(probed), scores))
            case = "2 workers, one killed, " + ("same bits" if same else "other bits")
            difference = float(np.abs(again.score_samples(probed) - reference).max())
            rows.append({**shape, "case": case, **row, "difference": difference})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    add_options(parser)
    given = parser.parse_args()
    if version("distributed") == "not installed":
        say("dask is not installed: pip install 'hybridmix[dask]'")
        return
    warnings.simplefilter("ignore")
    results = given.results or (None if given.quick else DEFAULT_RESULTS)
    rows = run(20_000 if given.quick else given.rows, given.columns)
    print_table(rows)
    write_table("dask_scaling", rows, Options(given.data, results, given.quick), ["dask"])


if __name__ == "__main__":
    main()
