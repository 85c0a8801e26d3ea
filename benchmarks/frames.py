"""Time that wide data frames take, compared with arrays.

Twenty rows and thousands of columns, diagonal covariances: the time of a frame must grow
with its columns as that of an array does. Times are processor times, the least of several
runs. The libraries themselves need some 3 to 20 microseconds per column of a frame, which
shows where an array takes milliseconds.

    python benchmarks/frames.py --columns 8000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl

from hybridmix import HybridMixtureClassifier, MixtureImputer

N_ROWS = 20


def tables(X: np.ndarray) -> dict[str, object]:
    names = [f"c{j}" for j in range(X.shape[1])]
    return {
        "array": X,
        "pandas, one block": pd.DataFrame(X, columns=names),
        "pandas, by column": pd.DataFrame(dict(zip(names, X.T.copy(), strict=True))),
        "polars": pl.DataFrame(X, schema=names).fill_nan(None),
    }


def seconds(run: Callable[[], object], n_runs: int) -> float:
    times = []
    for _ in range(n_runs):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def measure(n_columns: int, n_runs: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, n_columns))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.arange(N_ROWS) % 2
    classifier = HybridMixtureClassifier(covariance_type="diag", random_state=0)
    imputer = MixtureImputer(
        2, covariance_type="diag", random_state=0, covariance_prior=1.0
    )
    print(f"{N_ROWS} x {n_columns}: seconds to fit, predict, fit an imputer, impute")
    for name, table in tables(X).items():
        runs: list[Callable[[], object]] = [
            lambda table=table: classifier.fit(table, y),
            lambda table=table: classifier.predict(table),
            lambda table=table: imputer.fit(table),
            lambda table=table: imputer.transform(table),
        ]
        shown = "  ".join(f"{seconds(run, n_runs):7.3f}" for run in runs)
        print(f"{name:20s}{shown}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=8000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    measure(arguments.columns, arguments.runs)
