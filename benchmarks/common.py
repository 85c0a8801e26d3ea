"""What the benchmarks share: measuring, machine, data files, results."""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import importlib.metadata
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
DEFAULT_DATA = HERE.parent.parent / "shared" / "data"
DEFAULT_RESULTS = HERE / "results"
ALWAYS_LISTED = ("hybridmix", "numpy", "scipy", "scikit-learn")
# A measurement is disturbed if other processes work for more than this share of it, or
# for more than this many seconds; clocks of the system tick a hundred times a second.
FOREIGN_SHARE, FOREIGN_SECONDS = 0.05, 0.03
# Seconds that a comparison may wait for a quiet machine (BENCHMARK_PATIENCE).
PATIENCE = 10.0
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

DISTURBED = "largest share of measurements that other processes disturbed; 0 is sound"

Row = dict[str, Any]


# Command line ---------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """Options that every script has.

    Attributes
    ----------
    data : Path
        Folder of the data files.
    results : Path or None
        Folder that the table is written to; None to keep nothing.
    quick : bool
        A smoke run on small problems, whose figures mean nothing.
    """

    data: Path
    results: Path | None
    quick: bool


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=DEFAULT_DATA,
        help="folder of the data files (default: ../shared/data beside the checkout)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=None,
        help="folder for the CSV (default: benchmarks/results; nothing if --quick)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="smoke run on small problems; nothing kept"
    )


def parse_options(description: str | None, arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    add_options(parser)
    parsed = parser.parse_args(arguments)
    results = parsed.results
    if results is None and not parsed.quick:
        results = DEFAULT_RESULTS
    return Options(parsed.data, results, parsed.quick)


# Machine and results --------------------------------------------------------------


def cpu_model() -> str:
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blas_name() -> str:
    """Return library and kernels that matrix products run on."""
    from threadpoolctl import threadpool_info

    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    names = [f"{i['internal_api']} {i['version']} {i.get('architecture')}" for i in found]
    return ", ".join(dict.fromkeys(names)) or "unknown"


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def header(packages: Iterable[str]) -> list[str]:
    """Return lines that say where and with what a table was measured."""
    names = dict.fromkeys([*ALWAYS_LISTED, *packages])
    listed = ", ".join(f"{name} {version(name)}" for name in names)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return [
        f"machine: {cpu_model()}, {n_cores()} cores, {platform.system()}{load}",
        f"BLAS: {blas_name()}",
        f"date: {datetime.date.today().isoformat()}",
        f"versions: Python {platform.python_version()}, {listed}",
    ]


def shown(value: Any) -> str:
    """Format a cell: three or four digits, nothing for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def print_table(rows: Sequence[Row]) -> None:
    """Print rows under the names of their columns."""
    if not rows:
        print("  (no rows)")
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([shown(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    for line in cells:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  " + "  ".join(padded).rstrip())
    print(flush=True)


def write_table(
    name: str,
    rows: Sequence[Row],
    options: Options,
    packages: Iterable[str] = (),
    silent: bool = False,
) -> None:
    """Keep a table as ``NAME.csv``, under lines of comment that begin with #.

    The file is whole at any time, even if the script is stopped.
    """
    if options.results is None or not rows:
        return
    options.results.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(column for row in rows for column in row))
    path = options.results / f"{name}.csv"
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", newline="") as file:
        for line in header(packages):
            file.write(f"# {line}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([shown(row.get(column)) for column in names] for row in rows)
    unfinished.replace(path)
    if not silent:
        print(f"Written: {path.name} ({len(rows)} rows)\n", flush=True)


def read_table(name: str, options: Options) -> list[Row]:
    """Return the rows of ``NAME.csv`` as text; none if it is not there."""
    path = None if options.results is None else options.results / f"{name}.csv"
    if path is None or not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


# Data and rivals ------------------------------------------------------------------


class MissingDataError(Exception):
    """A data file is not where it was looked for."""


def data_file(data: Path, name: str) -> Path:
    path = data / name
    if not path.is_file():
        raise MissingDataError(f"{name} is missing: looked for it in {data}. Use --data.")
    return path


def load_arrays(data: Path, name: str) -> dict[str, np.ndarray]:
    """Load the arrays of ``NAME.npz``."""
    with np.load(data_file(data, f"{name}.npz"), allow_pickle=False) as arrays:
        return dict(arrays)


def load_xy(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load rows and targets of ``NAME.npz``, with training and test part joined."""
    arrays = load_arrays(data, name)
    if "X" in arrays:
        return arrays["X"].astype(float), arrays["y"]
    X = np.concatenate([arrays["X_train"], arrays["X_test"]]).astype(float)
    return X, np.concatenate([arrays["y_train"], arrays["y_test"]])


def load_frame(data: Path, name: str) -> Any:
    """Load ``NAME.csv.gz`` as a pandas data frame."""
    import pandas as pd

    path = data_file(data, f"{name}.csv.gz")
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def rival(module: str) -> ModuleType | None:
    """Import a rival, or say that it cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except Exception as error:  # a broken installation may raise anything
        print(f"LEFT OUT: {module} cannot be imported ({short(error)}).", flush=True)
        return None


def short(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:120]}".rstrip(": ")


# Measuring ------------------------------------------------------------------------

Measure = Callable[[], float]


@dataclass(frozen=True)
class Contestant:
    """Something to be measured, in a process of its own.

    BLAS threads go on spinning for a while after a call, and limits on their number
    belong to the process. In a process of its own nobody disturbs the others.

    Attributes
    ----------
    name : str
        What it is called in the table.
    set_up : callable
        Function of a module that makes everything ready and returns the function which
        takes one measurement.
    arguments : dict
        Keyword arguments of `set_up`.
    threads : int or None
        Largest number of threads of the numerical libraries.
    repeats : int or None
        How often to measure; None to go by the others.
    warm_ups : int or None
        How often to measure in vain before; None to go by the others.
    """

    name: str
    set_up: Callable[..., Measure]
    arguments: dict[str, Any] = field(default_factory=dict)
    threads: int | None = None
    repeats: int | None = None
    warm_ups: int | None = None


@dataclass(frozen=True)
class Sample:
    """Measurements of one contestant.

    Attributes
    ----------
    values : tuple of float
        The measurements that count.
    disturbed : float
        Share of these during which other processes took part of the machine.
    """

    values: tuple[float, ...]
    disturbed: float = 0.0

    @property
    def median(self) -> float:
        """Median, the figure to report."""
        return statistics.median(self.values)


class _Process:
    """A contestant's process, which waits until it is asked."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        context = multiprocessing.get_context("spawn")
        self._mine, theirs = context.Pipe()
        # Not a daemon: in daemons joblib allows one thread only.
        with thread_limit(contestant.threads):
            self._process = context.Process(
                target=_serve,
                args=(theirs, contestant.set_up, contestant.arguments),
            )
            self._process.start()
        theirs.close()

    def ask(self, question: str) -> tuple[float, bool]:
        """Return a measurement, and whether other processes disturbed it."""
        self._mine.send(question)
        try:
            kind, answer = self._mine.recv()
        except EOFError:
            raise RuntimeError("its process died (out of memory?)") from None
        if kind == "error":
            raise RuntimeError(answer)
        value, disturbed = answer
        return float(value), bool(disturbed)

    def close(self) -> None:
        self._mine.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()


def _serve(pipe: Any, set_up: Callable[..., Measure], arguments: dict[str, Any]) -> None:
    warnings.simplefilter("ignore")
    measure: Measure | None = None
    while True:
        try:
            question = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            if question == "set up":
                measure = set_up(**arguments)
                pipe.send(("answer", (0.0, False)))
            else:
                assert measure is not None
                before = busy_seconds()
                value = measure()
                pipe.send(("answer", (value, was_disturbed(before, busy_seconds()))))
        except BrokenPipeError:
            return
        except Exception as error:
            if os.environ.get("BENCHMARK_TRACEBACK"):
                traceback.print_exc(file=sys.stderr)
            pipe.send(("error", short(error)))


def busy_seconds() -> tuple[float, float, float] | None:
    """Return seconds of work of this process and of all, and the time, if known."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        ticks = [int(field) for field in fields]
    except (OSError, ValueError, IndexError):
        return None
    user, nice, system, _, _, interrupt, soft, stolen = ticks
    everybody = user + nice + system + interrupt + soft + stolen
    own = os.times()
    return (
        own.user + own.system,
        everybody / os.sysconf("SC_CLK_TCK"),
        time.perf_counter(),
    )


def was_disturbed(
    before: tuple[float, float, float] | None, after: tuple[float, float, float] | None
) -> bool:
    """Tell whether others worked for more than a small part of the time.

    This looks at who used the processors and never at the measurement itself, and it is
    the same for every contestant.
    """
    if before is None or after is None:
        return False
    own, everybody, elapsed = (b - a for a, b in zip(before, after, strict=True))
    return everybody - own > max(FOREIGN_SHARE * elapsed, FOREIGN_SECONDS)


def wait_for_quiet(longest: float) -> float:
    """Wait until other processes rest; return how long that took."""
    start = time.perf_counter()
    while time.perf_counter() - start < longest:
        before = busy_seconds()
        time.sleep(0.5)
        if not was_disturbed(before, busy_seconds()):
            break
    return time.perf_counter() - start


@contextmanager
def thread_limit(threads: int | None) -> Iterator[None]:
    """Set the environment that limits numerical libraries of processes started inside."""
    if threads is None:
        yield
        return
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def race(
    contestants: Sequence[Contestant], repeats: int, warm_ups: int = 1
) -> dict[str, Sample]:
    """Measure contestants in turn.

    Each one runs in its own process and waits while another one is measured. A disturbed
    measurement is replaced by another one, when the machine is quiet again or patience is
    at an end, as long as there are not more of these than repeats. One that fails is
    reported and has no entry in the result.
    """
    patience = float(os.environ.get("BENCHMARK_PATIENCE", PATIENCE))
    running: list[_Process] = []
    answers: dict[str, list[tuple[float, bool]]] = {}
    failed: set[str] = set()

    def ask(process: _Process, question: str) -> tuple[float, bool] | None:
        name = process.contestant.name
        if name in failed:
            return None
        try:
            return process.ask(question)
        except RuntimeError as error:
            print(f"LEFT OUT: {name}: {error}", flush=True)
            failed.add(name)
            return None

    def wants_more(process: _Process, number: int) -> bool:
        wanted = process.contestant.repeats or repeats
        sound = sum(not bad for _, bad in answers[process.contestant.name])
        return sound < wanted and number < 2 * wanted

    try:
        for contestant in contestants:
            process = _Process(contestant)
            running.append(process)
            answers[contestant.name] = []
            ask(process, "set up")
            own = contestant.warm_ups
            for _ in range(warm_ups if own is None else own):
                ask(process, "measure")
        for number in range(2 * repeats):
            for process in running:
                if wants_more(process, number):
                    answer = ask(process, "measure")
                    if answer is not None:
                        answers[process.contestant.name].append(answer)
                    if answer is not None and answer[1]:
                        patience -= wait_for_quiet(patience)
    finally:
        for process in running:
            process.close()
    return {
        name: _sound(found)
        for name, found in answers.items()
        if found and name not in failed
    }


def _sound(answers: list[tuple[float, bool]]) -> Sample:
    """Keep undisturbed measurements; all of them if there are fewer than two."""
    sound = tuple(value for value, bad in answers if not bad)
    if len(sound) >= min(2, len(answers)):
        return Sample(sound)
    share = sum(bad for _, bad in answers) / len(answers)
    return Sample(tuple(value for value, _ in answers), share)


def disturbance(samples: Mapping[str, Sample]) -> float:
    """Return the largest share of disturbed measurements among those that count."""
    return max((sample.disturbed for sample in samples.values()), default=0.0)


def measured_alone(contestant: Contestant) -> float | None:
    """Take one measurement in a fresh process, without warming up."""
    sample = race([contestant], repeats=1, warm_ups=0).get(contestant.name)
    return None if sample is None else sample.median


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    if numerator is None or denominator is None:
        return None
    return numerator / denominator


def milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def verdict(
    value: float | None, target: float, at_least: bool = False, disturbed: float = 0.0
) -> str:
    """Say whether a figure meets its target; nothing if the figure is not sound."""
    if value is None:
        return "not measured"
    if disturbed > 0.0:
        return "unknown, disturbed"
    met = value >= target if at_least else value <= target
    return "met" if met else "missed"


# Generated data -------------------------------------------------------------------


@dataclass(frozen=True)
class Blobs:
    """Rows of overlapping Gaussian clusters, and a start for EM near them.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    weights : ndarray of shape (K,)
    means : ndarray of shape (K, d)
    covariances : ndarray of shape (K, d, d)
    """

    X: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


def blobs(n: int, d: int, k: int, seed: int = 0, separation: float = 1.0) -> Blobs:
    """Draw rows of ``k`` overlapping clusters with correlated columns."""
    generator = np.random.default_rng(seed)
    centres = separation * generator.normal(size=(k, d)) * np.sqrt(2.0)
    X = np.empty((n, d))
    label = generator.integers(k, size=n)
    for j in range(k):
        here = np.flatnonzero(label == j)
        factor = np.eye(d) + generator.normal(scale=0.5 / np.sqrt(d), size=(d, d))
        X[here] = generator.normal(size=(len(here), d)) @ factor + centres[j]
    means = centres + generator.normal(scale=0.3, size=(k, d))
    covariances = np.repeat(1.5 * np.eye(d)[None], k, axis=0)
    return Blobs(X, np.full(k, 1.0 / k), means, covariances)


def punch_holes(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Return a copy with a share of its cells missing completely at random.

    Every column keeps an observed value; a row may lose all of its own.
    """
    generator = np.random.default_rng([seed, 1])
    holes = generator.random(X.shape) < share
    holes[generator.integers(len(X), size=X.shape[1]), np.arange(X.shape[1])] = False
    return np.where(holes, np.nan, X)


def means_of(
    rows: Sequence[Row], keys: Sequence[str], values: Sequence[str]
) -> list[Row]:
    """Average values over rows that agree in the keys."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [
        {
            **dict(zip(keys, group, strict=True)),
            **{name: _mean(row.get(name) for row in members) for name in values},
        }
        for group, members in groups.items()
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [v for v in values if v is not None and not math.isnan(v)]
    return statistics.fmean(numbers) if numbers else None


def say(title: str, notes: Mapping[str, str] | None = None) -> None:
    """Print the title of a table and what its columns mean."""
    print(f"\n{title}", flush=True)
    for name, meaning in (notes or {}).items():
        print(f"  {name}: {meaning}")
