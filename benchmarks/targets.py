"""The default classifier against the targets that were set for it.

Errors: phonemes in five folds, adult on its official test rows, MNIST in 50 components
with 500 labels and 49,500 unlabelled digits (three draws of the labels, as in
`few_labels.py`). Log loss: the table of ``hybridmix demo``, against the best rival there.
Seconds of training: 200 x 60 cells with 30 % missing (sonar), 5,000 x 20 complete ones
(generated), adult, MNIST-50 with 60,000 digits, and a million rows of ten columns
(generated). The last also has a target for memory: the largest size of the process less
its size before the table was made, as a multiple of the table.

Every part runs in a process of its own; ``--parts`` chooses some. ``targets.csv`` keeps
what other runs have found for the other parts. There is no verdict on seconds during
which other processes used the processors.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    DEFAULT_RESULTS,
    DISTURBED,
    MissingDataError,
    Options,
    Row,
    add_options,
    busy_seconds,
    data_file,
    load_frame,
    load_xy,
    print_table,
    punch_holes,
    read_table,
    say,
    verdict,
    was_disturbed,
    write_table,
)
from defaults import code_version
from few_labels import draw_task
from roth_data import mnist50
from scaling import forget_peak, memory_bytes
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold
from worker import FailedError, OverTimeError, Worker

from hybridmix import HybridMixtureClassifier

MOST_SECONDS = 3600.0
PHONEME_FOLDS, LABELS, DRAWS, DEMO_SPLITS = 5, 500, 3, 10
MILLION = (1_000_000, 10)
OURS_IN_DEMO = "HybridMixtureClassifier()"


def model() -> HybridMixtureClassifier:
    return HybridMixtureClassifier(random_state=0)


@dataclass(frozen=True)
class Fit:
    """A fitted default, and what its training took."""

    model: HybridMixtureClassifier
    seconds: float
    cpu_seconds: float
    disturbed: bool

    def error(self, X: Any, y: Any) -> float:
        """Return the error in per cent."""
        return 100.0 * float(np.mean(self.model.predict(X) != y))


def timed(X: Any, y: Any) -> Fit:
    before, start, cpu = busy_seconds(), time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model().fit(X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Fit(fitted, seconds, cpu, was_disturbed(before, busy_seconds()))


def figure(what: str, value: float, target: float, fits: Sequence[Fit] = ()) -> Row:
    """Return a row; with fits, their mean seconds are shown as well."""
    row: Row = {"what": what, "value": value, "target": target, "disturbed": 0.0}
    row["verdict"] = verdict(value, target)
    if fits:
        row["fit_seconds"] = float(np.mean([fit.seconds for fit in fits]))
        row["cpu_seconds"] = float(np.mean([fit.cpu_seconds for fit in fits]))
    return row


def speed(what: str, target: float, fit: Fit) -> Row:
    disturbed = float(fit.disturbed)
    row = figure(what, fit.seconds, target, [fit])
    return row | {
        "disturbed": disturbed,
        "verdict": verdict(fit.seconds, target, disturbed=disturbed),
    }


# Parts ----------------------------------------------------------------------------------


def phoneme(data: Path, quick: bool) -> list[Row]:
    X, y = load_xy(data, "phoneme_elena")
    folds = StratifiedKFold(PHONEME_FOLDS, shuffle=True, random_state=0)
    splits = list(folds.split(X, y))[: 1 if quick else None]
    if quick:
        splits = [(train[:500], test) for train, test in splits]
    fits = [timed(X[train], y[train]) for train, _ in splits]
    pairs = zip(fits, splits, strict=True)
    errors = [fit.error(X[test], y[test]) for fit, (_, test) in pairs]
    return [figure("error in %, five folds", float(np.mean(errors)), 10.5, fits)]


def adult(data: Path, quick: bool) -> list[Row]:
    train, test = (load_frame(data, f"adult_{part}") for part in ("train", "test"))
    if quick:
        train, test = train[:1000], test[:1000]
    y, y_test = (frame.pop("class").to_numpy(str) for frame in (train, test))
    fit = timed(train, y)
    return [
        figure("error in %, official test rows", fit.error(test, y_test), 13.6, [fit]),
        speed("seconds of training", 45.0, fit),
    ]


def few_labels(data: Path, quick: bool) -> list[Row]:
    split = mnist50(data).scaled()
    split = split.thinned(2000) if quick else split
    labels = 200 if quick else LABELS
    tasks = [
        draw_task(split, labels, len(split.y) - labels, draw)
        for draw in range(1 if quick else DRAWS)
    ]
    fits = [timed(task.X, task.y) for task in tasks]
    errors = [fit.error(split.X_test, split.y_test) for fit in fits]
    what = f"error in %, {labels} labels, mean of draws"
    return [figure(what, float(np.mean(errors)), 3.5, fits)]


def mnist(data: Path, quick: bool) -> list[Row]:
    split = mnist50(data)
    split = split.thinned(2000) if quick else split
    X = np.concatenate([split.X, split.X_val])
    fit = timed(X, np.concatenate([split.y, split.y_val]))
    told = f"seconds of training, {len(X):,} digits"
    row = {"what": "error in %", "value": fit.error(split.X_test, split.y_test)}
    return [speed(told, 180.0, fit), row]


def small_with_holes(data: Path, quick: bool) -> list[Row]:
    del quick
    X, y = load_xy(data, "sonar")
    fit = timed(punch_holes(X[:200], 0.3), y[:200])
    return [speed("seconds of training, 200 x 60, 30 % missing", 3.0, fit)]


def generated(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw four classes of two clusters each."""
    return make_classification(
        n,
        d,
        n_informative=d // 2,
        n_redundant=d // 4,
        n_classes=4,
        random_state=0,
    )


def medium(data: Path, quick: bool) -> list[Row]:
    del data
    n, d = (500 if quick else 5000), 20
    fit = timed(*generated(n, d))
    return [speed(f"seconds of training, {n:,} x {d}", 10.0, fit)]


def million(data: Path, quick: bool) -> list[Row]:
    del data
    n, d = (20_000 if quick else MILLION[0]), MILLION[1]
    timed(*generated(2000, d))
    gc.collect()
    start = memory_bytes("VmRSS")
    X, y = generated(n, d)
    gc.collect()
    forget_peak()
    fit = timed(X, y)
    times = (memory_bytes("VmHWM") - start) / X.nbytes
    return [
        speed(f"seconds of training, {n:,} x {d}", 180.0, fit),
        figure("largest memory, in multiples of the table", times, 3.0),
    ]


def demonstration(data: Path, quick: bool) -> list[Row]:
    del data
    from hybridmix.cli.demo import classify, make_split

    found: dict[str, list[float]] = {}
    for seed in range(1 if quick else DEMO_SPLITS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, (*_, log_loss) in classify(make_split(seed)).items():
                found.setdefault(name, []).append(log_loss)
    means = {name: float(np.mean(losses)) for name, losses in found.items()}
    # Names of our other models are indented, below that of the default.
    rivals = {n: v for n, v in means.items() if n != OURS_IN_DEMO and n[0] != " "}
    best = min(rivals, key=rivals.__getitem__)
    return [figure(f"log loss; target: {best}", means[OURS_IN_DEMO], rivals[best])]


PARTS: dict[str, Callable[[Path, bool], list[Row]]] = {
    "small": small_with_holes,
    "medium": medium,
    "demo": demonstration,
    "phoneme": phoneme,
    "adult": adult,
    "million": million,
    "mnist": mnist,
    "few-labels": few_labels,
}
FILES = {
    "small": "sonar.npz",
    "phoneme": "phoneme_elena.npz",
    "adult": "adult_test.csv.gz",
    "mnist": "mnist.npz",
    "few-labels": "mnist.npz",
}
COLUMNS = (
    "part",
    "what",
    "value",
    "target",
    "verdict",
    "disturbed",
    "fit_seconds",
    "cpu_seconds",
    "hybridmix",
)


# Running --------------------------------------------------------------------------------


def answer(part: str, data: Path, quick: bool) -> list[Row]:
    return PARTS[part](data, quick)


def measure(part: str, options: Options, most_seconds: float) -> list[Row]:
    """Run a part in a process of its own, with all threads that it wants."""
    try:
        if part in FILES:
            data_file(options.data, FILES[part])
    except MissingDataError as error:
        print(f"LEFT OUT: {error}", flush=True)
        return []
    worker = Worker(answer, most_seconds, threads=None)
    try:
        rows = worker.ask(part=part, data=options.data, quick=options.quick)
    except OverTimeError:
        rows = [{"what": "whole part", "verdict": f"over {most_seconds:g} seconds"}]
    except FailedError as error:
        rows = [{"what": "whole part", "verdict": f"failed: {error}"}]
    finally:
        worker.close()
    named = [{"part": part, **row, "hybridmix": code_version()} for row in rows]
    return [{name: row.get(name) for name in COLUMNS} for row in named]


def run(options: Options, parts: Sequence[str], most_seconds: float) -> None:
    rows: list[Row] = read_table("targets", options)
    for part in parts:
        found = measure(part, options, most_seconds)
        print_table(found)
        kept = [row for row in rows if row["part"] != part]
        rows = sorted([*kept, *found], key=lambda row: list(PARTS).index(row["part"]))
        write_table("targets", rows, options, silent=True)
    say("Targets of the default", {"disturbed": DISTURBED})
    print_table(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--most-seconds", type=float, default=MOST_SECONDS)
    parsed = parser.parse_args(arguments)
    results = None if parsed.quick else DEFAULT_RESULTS
    options = Options(parsed.data, parsed.results or results, parsed.quick)
    run(options, parsed.parts, parsed.most_seconds)


if __name__ == "__main__":
    main()
