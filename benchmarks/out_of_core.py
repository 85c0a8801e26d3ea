"""Training on a folder of Parquet files, block by block and in memory.

Every case runs in a process of its own, on one thread. Times are those of the whole fit,
of what comes before the first EM iteration, and medians of EM iterations and of steps of
hybrid training. Decoding is one pass over the files that does nothing else. Differences
are those of mean log densities of new rows to the model that was fitted in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from common import (
    DEFAULT_RESULTS,
    THREAD_VARIABLES,
    Options,
    Row,
    add_options,
    print_table,
    say,
    write_table,
)

N_CLASSES, N_COMPONENTS, N_FILES = 3, 10, 20
ITERATIONS, STEPS = 6, 4
CASES = ("scan", "scan float32", "memory")


def blobs(n_rows: int, n_columns: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a part of the table: three classes of ten correlated components each."""
    fixed = np.random.default_rng(7)
    shape = (N_CLASSES, N_COMPONENTS, n_columns)
    centres = 1.5 * fixed.normal(size=shape)
    maps = fixed.normal(size=(*shape, n_columns)) * 0.7 / np.sqrt(n_columns)
    maps += 0.6 * np.eye(n_columns)
    generator = np.random.default_rng([7, number])
    labels = generator.choice(N_CLASSES, n_rows, p=[0.5, 0.3, 0.2])
    components = generator.integers(N_COMPONENTS, size=n_rows)
    rows = generator.normal(size=(n_rows, n_columns))
    for label in range(N_CLASSES):
        for component in range(N_COMPONENTS):
            own = (labels == label) & (components == component)
            rows[own] = centres[label, component] + rows[own] @ maps[label, component].T
    return rows.astype(np.float32), labels


def write_folder(folder: Path, n_rows: int, n_columns: int) -> None:
    import pyarrow
    from pyarrow import parquet

    for number in range(N_FILES):
        rows, labels = blobs(n_rows // N_FILES, n_columns, number)
        columns = {f"x{j}": rows[:, j] for j in range(n_columns)}
        table = pyarrow.table({**columns, "y": labels.astype(np.int32)})
        path = folder / f"part-{number:03d}.parquet"
        parquet.write_table(table, path, row_group_size=65_536, compression="lz4")


# In a process of its own ----------------------------------------------------------


def peak_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("peak memory can only be measured on Linux")


def measured(case: str, folder: str, covariance_type: str) -> dict[str, float]:
    import pandas

    from hybridmix import HybridMixtureClassifier, scan
    from hybridmix.progress import Step, listening

    warnings.simplefilter("ignore")
    model = HybridMixtureClassifier(
        n_components=N_COMPONENTS,
        covariance_type=covariance_type,
        tradeoff=10.0,
        column_shapes="plain",
        max_iter=ITERATIONS,
        n_steps=STEPS,
        tol=0.0,
        n_jobs=1,
        random_state=0,
    )
    times: dict[str, list[float]] = {"EM": [], "L-BFGS": []}

    def note(step: Step) -> None:
        times[step.task].append(time.perf_counter())

    imports = peak_mb()
    began = time.perf_counter()
    with listening(note):
        if case == "memory":
            table = pandas.read_parquet(folder)
            model.fit(table, table.pop("y"))
        else:
            dtype = "float32" if case.endswith("32") else "float64"
            model.fit(scan(folder, dtype=dtype), "y")
    found = {
        "fit (s)": time.perf_counter() - began,
        "before EM (s)": times["EM"][0] - began,
        "EM iteration (s)": float(np.median(np.diff(times["EM"]))),
        "hybrid step (s)": float(np.median(np.diff(times["L-BFGS"]))),
        "peak (MB)": peak_mb(),
        "imports (MB)": imports,
    }
    probe = blobs(1000, model.n_features_in_, N_FILES)[0]
    probed = pandas.DataFrame(probe, columns=model.feature_names_in_)
    found["score"] = float(model.score_samples(probed).mean())
    if case == "scan":
        began = time.perf_counter()
        for _ in scan(folder):
            pass
        found["decoding (s)"] = time.perf_counter() - began
    return found


# All cases ------------------------------------------------------------------------


def alone(case: str, folder: Path, covariance_type: str) -> dict[str, float]:
    """Measure a case in a new process, on one thread."""
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    command = [sys.executable, __file__, "--case", case, str(folder), covariance_type]
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def run(n_rows: int, n_columns: int) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say(f"writing {n_rows:,} rows of {n_columns} columns")
        write_folder(folder, n_rows, n_columns)
        for covariance_type in ("diag", "full"):
            reference = np.nan
            for case in reversed(CASES):
                say(f"{case}, {covariance_type}")
                found = alone(case, folder, covariance_type)
                reference = found["score"] if case == "memory" else reference
                difference = abs(found.pop("score") - reference)
                rows.append(
                    {
                        "rows": n_rows,
                        "columns": n_columns,
                        "covariances": covariance_type,
                        "case": case,
                        "fit (s)": found["fit (s)"],
                        "before EM (s)": found["before EM (s)"],
                        "EM iteration (s)": found["EM iteration (s)"],
                        "hybrid step (s)": found["hybrid step (s)"],
                        "decoding (s)": found.get("decoding (s)", np.nan),
                        "peak (MB)": found["peak (MB)"],
                        "imports (MB)": found["imports (MB)"],
                        "difference": difference,
                    }
                )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=10)
    add_options(parser)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measured(*given.case)))
        return
    results = given.results or (None if given.quick else DEFAULT_RESULTS)
    rows = run(20_000 if given.quick else given.rows, given.columns)
    print_table(rows)
    write_table("out_of_core", rows, Options(given.data, results, given.quick))


if __name__ == "__main__":
    main()
