"""Whether a new version of the library is as fast as an old one, measured in turn.

``python benchmarks/compare_versions.py --old OTHER/src --new src`` starts a process for
each version, asks them in turn, and prints the median of the ratios new / old of
neighbouring measurements. The measurements are those of ``engine.py``, ``em.py`` and
``em_missing.py``, made by the scripts of each version, so that each speaks
of its own inner parts; whole fits of the public classifier; and ``import hybridmix``.

The command fails if the median ratio of a group exceeds the limit. On a busy machine,
``--clock cpu`` judges by the time that the processors worked instead of the time that
passed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

LIMIT = 1.1
THREADS = 2
IMPORT = """
import time
before = time.perf_counter(), time.process_time()
{statement}
after = time.perf_counter(), time.process_time()
import hybridmix
print(after[0] - before[0], after[1] - before[1], hybridmix.__file__)
"""
# The package loads its classes when they are asked for.
IMPORTS = ("import hybridmix", "from hybridmix import HybridMixtureClassifier")
Measure = Callable[[], float]
# What one measurement found: seconds that passed, seconds that processors worked.
Times = tuple[float, float]


@dataclass(frozen=True)
class Task:
    """Something to measure: a function of this script, or of a script of a version.

    Attributes
    ----------
    group : str
        What it belongs to; limits hold for groups.
    module, function : str
        Where a function is that sets up the measurement.
    arguments : dict
        Of this function.
    """

    group: str
    module: str
    function: str
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """What the table says."""
        return " ".join(str(value) for value in self.arguments.values())


def tasks(quick: bool) -> Iterator[Task]:
    """Return what is measured, smaller if it has to be quick."""
    shrink = 20 if quick else 1
    engine = [(50_000, 50, 10, 16), (10_000, 50, 10, 128), (8_000, 256, 10, 4)]
    for n, *rest in engine:
        for missing, labelled in ((0.0, False), (0.3, False), (0.0, True)):
            arguments = {
                "shape": (n // shrink, *rest),
                "missing": missing,
                "labelled": labelled,
                "threads": THREADS,
                "inner": 2,
            }
            yield Task("engine", "engine", "set_up_evaluation", arguments)
    small = {"shape": (569, 30, 2, 4), "missing": 0.0, "labelled": True, "threads": 1}
    yield Task("engine", "engine", "set_up_evaluation", {**small, "inner": 200})
    em = [("diag", 100_000, 20, 32), ("full", 100_000, 50, 16), ("full", 1_000_000, 8, 8)]
    for kind, n, d, k in em:
        shape = {"kind": kind, "n": n // shrink, "d": d, "k": k}
        extra = {"extra": 5 if kind == "full" else 10, "threads": THREADS}
        yield Task("em", "em", "set_up_ours", shape | extra)
    for kind in ("full", "diag"):
        for holes in ("30 % at random", "70 % at random", "20 patterns"):
            shape = {"kind": kind, "shape": (20_000 // shrink, 20, 10), "holes": holes}
            extra = {"threads": THREADS, "extra": 5 if kind == "full" else 20}
            yield Task("em_missing", "em_missing", "set_up_ours", shape | extra)
    for solver, n_components in (("lbfgs", 1), ("lbfgs", 4), ("baum-welch", 1)):
        for covariance_type in ("full", "diag", "subspace"):
            arguments = {
                "solver": solver,
                "n_components": n_components,
                "covariance_type": covariance_type,
                "n": 500 if quick else 3_000,
            }
            yield Task("fits", "compare_versions", "set_up_fit", arguments)


def set_up_fit(solver: str, n_components: int, covariance_type: str, n: int) -> Measure:
    """Fit the classifier to rows with holes, a tenth of them without a label."""
    import numpy as np

    from hybridmix import HybridMixtureClassifier

    generator = np.random.default_rng(0)
    y = generator.integers(4, size=n)
    X = generator.normal(size=(n, 16)) + 0.5 * y[:, None] * generator.normal(size=16)
    X[generator.random(X.shape) < 0.05] = np.nan
    y[generator.random(n) < 0.1] = -1
    model = HybridMixtureClassifier(
        solver=solver,
        n_components=n_components,
        covariance_type=covariance_type,
        n_factors=4,
        n_steps=8,
        max_iter=8,
        unlabelled_weight=0.5,
        n_jobs=THREADS,
        random_state=0,
    )

    def measure() -> float:
        start = time.perf_counter()
        model.fit(X, y).predict_proba(X)
        return time.perf_counter() - start

    return measure


# One process per version ----------------------------------------------------------


def serve(source: Path) -> None:
    """Set up what the first line says; answer every further line with a measurement."""
    sys.path[0] = str(source.parent / "benchmarks")
    warnings.simplefilter("ignore")
    task = json.loads(sys.stdin.readline())
    if task["module"] == "compare_versions":
        set_up: Any = globals()[task["function"]]
    else:
        set_up = getattr(__import__(task["module"]), task["function"])
    arguments = task["arguments"]
    if "shape" in arguments:
        arguments["shape"] = tuple(arguments["shape"])
    measure = set_up(**arguments)
    measure()
    import hybridmix

    print(json.dumps(hybridmix.__file__), flush=True)
    for _ in sys.stdin:
        before = time.process_time()
        passed = measure()
        print(json.dumps((passed, time.process_time() - before)), flush=True)


class Version:
    """A version of the library in a process of its own, which waits until it is asked."""

    def __init__(self, source: Path, task: Task) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(source),
            text=True,
        )
        question = {k: getattr(task, k) for k in ("module", "function", "arguments")}
        check_place(source, str(self._ask(json.dumps(question))))

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process of this version ended; its error is above")
        return json.loads(answer)

    def measure(self) -> Times:
        """Return one measurement; its work includes what goes before it."""
        passed, worked = self._ask("again")
        return passed, worked

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def environment(source: Path) -> dict[str, str]:
    """Return the environment in which a version is the one that is imported."""
    threads = dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS)
    )
    return {**os.environ, **threads, "PYTHONPATH": str(source)}


def check_place(source: Path, imported: str) -> None:
    """Refuse to measure another version than the one that was asked for."""
    if not Path(imported).is_relative_to(source):
        raise RuntimeError(f"{imported} was imported, which is not in {source}")


def import_time(source: Path, statement: str) -> Times:
    """Return the time that an import takes in a fresh process."""
    answer = subprocess.run(
        [sys.executable, "-c", IMPORT.format(statement=statement)],
        env=environment(source),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split(maxsplit=2)
    check_place(source, answer[2].strip())
    return float(answer[0]), float(answer[1])


# The comparison -------------------------------------------------------------------


def paired(
    old: Callable[[], Times], new: Callable[[], Times], repeats: int
) -> list[tuple[Times, Times]]:
    """Measure in turn; who is first changes, since both warm the machine up."""
    pairs = []
    for number in range(repeats):
        if number % 2:
            first, second = old(), new()
        else:
            second, first = new(), old()
        pairs.append((first, second))
    return pairs


def row(group: str, name: str, pairs: list[tuple[Times, Times]]) -> dict[str, Any]:
    """Return a line of the table."""
    wall, cpu = (
        [new[clock] / old[clock] for old, new in pairs if old[clock] > 0.0]
        for clock in (0, 1)
    )
    return {
        "group": group,
        "case": name,
        "old_ms": 1e3 * statistics.median(old[0] for old, _ in pairs),
        "new_ms": 1e3 * statistics.median(new[0] for _, new in pairs),
        "wall": statistics.median(wall),
        "cpu": statistics.median(cpu),
    }


def compare(old: Path, new: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure everything that was asked for."""
    rows = []
    if not options.only or "import" in options.only:
        for statement in IMPORTS:
            times = paired(
                partial(import_time, old, statement),
                partial(import_time, new, statement),
                options.repeats,
            )
            rows.append(row("import", statement, times))
    for task in tasks(options.quick):
        if options.only and task.group not in options.only:
            continue
        versions = [Version(source, task) for source in (old, new)]
        try:
            times = paired(*(v.measure for v in versions), repeats=options.repeats)
        finally:
            for version in versions:
                version.close()
        rows.append(row(task.group, task.name, times))
        print(f"{task.group} {task.name}: {rows[-1][options.clock]:.3f}", flush=True)
    return rows


def summary(rows: list[dict[str, Any]], clock: str) -> list[dict[str, Any]]:
    """Return the median ratio of each group, and whether it keeps the limit."""
    groups: dict[str, list[float]] = {}
    for line in rows:
        groups.setdefault(line["group"], []).append(line[clock])
    return [
        {
            "group": group,
            "cases": len(ratios),
            clock: statistics.median(ratios),
            "highest": max(ratios),
            "limit": LIMIT,
            "verdict": "met" if statistics.median(ratios) <= LIMIT else "missed",
        }
        for group, ratios in groups.items()
    ]


def main() -> int:
    """Compare two versions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--old", type=Path, help="folder src of the old version")
    parser.add_argument("--new", type=Path, help="folder src of the new version")
    parser.add_argument("--repeats", type=int, default=11, help="pairs of measurements")
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--only", nargs="+", help="import, engine, em, em_missing, fits")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return 0
    if options.old is None or options.new is None:
        parser.error("--old and --new are needed")
    from common import print_table, say

    rows = compare(options.old.resolve(), options.new.resolve(), options)
    groups = summary(rows, options.clock)
    say(f"New version against old one, {options.repeats} pairs, {THREADS} threads")
    print_table(rows)
    print_table(groups)
    return int(any(line["verdict"] == "missed" for line in groups))


if __name__ == "__main__":
    sys.exit(main())
