"""Workers that are killed while a classifier trains on a Dask data frame.

Fits on one, two and four workers have to agree to the last bit. Then a worker of two is
killed (kill -9) at a random moment of a fit, until that has happened ten times: every fit
has to end, with the same bits. A fit that ended before its worker was to be killed counts
as one without a loss.
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
from dask_scaling import cluster, fitted
from out_of_core import blobs, write_folder

N_PARTITIONS = 8
WORKERS = (1, 4, 2)


def measured(
    n_rows: int, n_columns: int, n_losses: int, seed: int, options: Options
) -> list[Row]:
    """Fit on several numbers of workers, and with losses at random moments."""
    import pandas

    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, n_rows, n_columns, N_PARTITIONS)
        columns = pandas.read_parquet(next(folder.iterdir())).columns.drop("y")
        probed = pandas.DataFrame(blobs(1000, n_columns, 10_000)[0], columns=columns)
        expected: Any = None
        usual = 0.0
        while len(rows) < len(WORKERS) or sum(row["killed"] for row in rows) < n_losses:
            is_lossy = len(rows) >= len(WORKERS)
            n_workers = 2 if is_lossy else WORKERS[len(rows)]
            moment = float(generator.uniform(0.0, usual)) if is_lossy else np.nan
            say(f"{n_workers} workers" + f", one killed at {moment:.1f} s" * is_lossy)
            scores, seconds, n_killed = fit_with_a_loss(folder, n_workers, moment, probed)
            expected = scores if expected is None else expected
            usual = seconds
            rows.append(
                {
                    "workers": n_workers,
                    "killed": n_killed,
                    "killed at (s)": moment,
                    "fit (s)": seconds,
                    "same bits": "yes" if np.array_equal(scores, expected) else "no",
                }
            )
            write_table("dask_faults", rows, options, ["dask"])
    return rows


def fit_with_a_loss(
    folder: Path, n_workers: int, moment: float, probed: Any
) -> tuple[np.ndarray, float, int]:
    """Fit while a worker is killed at some second; NaN for never.

    Returns the log densities of some rows, the seconds, and how many workers were killed
    before the fit had ended.
    """
    import dask.dataframe

    killed: list[float] = []

    def kill(pid: int) -> None:
        killed.append(time.perf_counter())
        os.kill(pid, signal.SIGKILL)

    with cluster(n_workers) as client:
        table = dask.dataframe.read_parquet(folder)
        pid = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(moment, kill, (pid,))
        if np.isfinite(moment):
            timer.start()
        model, seconds, _ = fitted(table, "y", "full", 1)
        n_killed = len(killed)
        timer.cancel()
    return model.score_samples(probed), seconds, n_killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--losses", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    add_options(parser)
    given = parser.parse_args()
    if version("distributed") == "not installed":
        say("dask is not installed: pip install 'hybridmix[dask]'")
        return
    warnings.simplefilter("ignore")
    results = given.results or (None if given.quick else DEFAULT_RESULTS)
    options = Options(given.data, results, given.quick)
    n_rows, n_losses = (20_000, 1) if given.quick else (given.rows, given.losses)
    print_table(measured(n_rows, given.columns, n_losses, given.seed, options))


if __name__ == "__main__":
    main()
