"""The command line on large files: rows per second, and memory.

A classifier is fitted to 20,000 rows of six numbers and two categories, a tenth of the
cells missing, and applied to CSV files of the same kind. Every command runs in a process
of its own; the seconds have start-up and imports in them, and memory is the largest
resident set of the process. A second file of four times the rows shows whether memory
grows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import Options, Row, parse_options, print_table, say, write_table

N_TRAIN = 20_000
SIZES = (500_000, 2_000_000)
MISSING = 0.1
PACKAGES = ("pandas", "pyarrow", "typer")


def write_csv(path: Path, n_rows: int) -> None:
    """Write a table of any length, part by part."""
    generator = np.random.default_rng(0)
    for start in range(0, n_rows, 100_000):
        n = min(100_000, n_rows - start)
        group = generator.integers(2, size=n)
        columns = {
            f"number_{j}": generator.normal(0.3 * group, 1.0).round(3) for j in range(6)
        }
        words = np.array(["red", "green", "blue"])
        for name in ("colour", "shade"):
            columns[name] = words[np.minimum(generator.integers(3, size=n) + group, 2)]
        frame = pd.DataFrame(columns).mask(generator.random((n, 8)) < MISSING)
        frame["group"] = np.where(group == 1, "yes", "no")
        frame.to_csv(path, mode="a", header=start == 0, index=False)


def timed(*arguments: str | Path) -> tuple[float, float]:
    """Run a command; return its seconds and the megabytes of its largest resident set."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "hybridmix", *map(str, arguments), "-q"],
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(f"hybridmix {arguments[0]} failed.")
    return time.perf_counter() - begin, usage.ru_maxrss / 1000


def measure(folder: Path, n_rows: int) -> list[Row]:
    table, model = folder / "table.csv", folder / "model.hmx"
    table.unlink(missing_ok=True)
    write_csv(table, n_rows)
    output = folder / "out.csv"
    commands: dict[str, tuple[str | Path, ...]] = {
        "predict": ("predict", model, table, "-o", output),
        "evaluate": ("evaluate", model, table),
        "impute": ("impute", table, "--model", model, "-o", output),
        "outliers": ("outliers", table, "--model", model, "-o", output),
    }
    rows = []
    for name, command in commands.items():
        seconds, megabytes = timed(*command)
        rows.append(
            {
                "command": name,
                "rows": n_rows,
                "file_mb": round(table.stat().st_size / 1e6),
                "seconds": seconds,
                "rows_per_second": round(n_rows / seconds),
                "peak_mb": round(megabytes),
            }
        )
    return rows


def run(options: Options) -> None:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = folder / "train.csv"
        write_csv(train, 2_000 if options.quick else N_TRAIN)
        timed("fit", train, "--target", "group", "-o", folder / "model.hmx")
        for n_rows in (5_000,) if options.quick else SIZES:
            rows += measure(folder, n_rows)
    say("Commands on CSV files")
    print_table(rows)
    write_table("command_line", rows, options, PACKAGES)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
