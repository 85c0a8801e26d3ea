"""Training on a folder of Parquet files, block by block and in memory.

Every case runs in a process of its own, on one thread. Times are those of the processor
(user and system), which other programs disturb less than the clock: of the whole fit, of
what comes before the first EM iteration, and medians of EM iterations and of steps of
hybrid training. Decoding is one pass over the files that does nothing else, the median of
three. Differences are those of mean log densities of new rows to the model that was
fitted in memory. Of very many rows, EM on scanned ones alone is measured.
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
CASES = ("memory", "scan float32", "scan")
# More rows than this are not read into memory.
MOST_IN_MEMORY = 20_000_000
EM_ONLY = "scan float32, EM"


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


def write_folder(
    folder: Path, n_rows: int, n_columns: int, n_files: int = N_FILES
) -> None:
    import pyarrow
    from pyarrow import parquet

    # Files of at most half a million rows, so that writing takes little memory as well.
    n_files = max(n_files, n_rows // 500_000)
    for number in range(n_files):
        rows, labels = blobs(n_rows // n_files, n_columns, number)
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
        "likelihood" if case == EM_ONLY else "hybrid",
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
        times[step.task].append(time.process_time())

    imports = peak_mb()
    began, began_clock = time.process_time(), time.perf_counter()
    with listening(note):
        if case == "memory":
            table = pandas.read_parquet(folder)
            model.fit(table, table.pop("y"))
        else:
            dtype = "float32" if "float32" in case else "float64"
            model.fit(scan(folder, dtype=dtype), "y")
    found = {
        "fit (s)": time.process_time() - began,
        "elapsed (s)": time.perf_counter() - began_clock,
        "before EM (s)": times["EM"][0] - began,
        "EM iteration (s)": _median_step(times["EM"]),
        "hybrid step (s)": _median_step(times["L-BFGS"]),
        "peak (MB)": peak_mb(),
        "imports (MB)": imports,
    }
    probe = blobs(1000, model.n_features_in_, 10_000)[0]
    probed = pandas.DataFrame(probe, columns=model.feature_names_in_)
    found["score"] = float(model.score_samples(probed).mean())
    found["decoding (s)"] = np.nan if case == "memory" else _decoding_time(folder)
    return found


def _median_step(times: list[float]) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else np.nan


def _decoding_time(folder: str) -> float:
    from hybridmix import scan

    times = [time.process_time()]
    for _ in range(3):
        for _ in scan(folder):
            pass
        times.append(time.process_time())
    return _median_step(times)


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
        is_large = n_rows > MOST_IN_MEMORY
        for covariance_type in ("diag",) if is_large else ("diag", "full"):
            reference = np.nan
            for case in (EM_ONLY,) if is_large else CASES:
                say(f"{case}, {covariance_type}")
                found = alone(case, folder, covariance_type)
                reference = found["score"] if case == "memory" else reference
                difference = abs(found.pop("score") - reference)
                shape = {"rows": n_rows, "columns": n_columns}
                shape["covariances"] = covariance_type
                rows.append({**shape, "case": case, **found, "difference": difference})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000, 100_000_000])
    parser.add_argument("--columns", type=int, default=10)
    add_options(parser)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measured(*given.case)))
        return
    results = given.results or (None if given.quick else DEFAULT_RESULTS)
    rows = []
    for n_rows in [20_000] if given.quick else given.rows:
        rows += run(n_rows, given.columns)
        write_table("out_of_core", rows, Options(given.data, results, given.quick))
    print_table(rows)


if __name__ == "__main__":
    main()
