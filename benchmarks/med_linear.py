"""Linear machines by Newton's method against LinearSVC and others, on one core.

All minimise the same objective: half the squared weights, half the squared bias, and C
times the hinge (or its smooth relative, for maximum entropy discrimination). The hinge is
compared at equal quality: each contestant's own tolerance is lowered, from 3 on, until
the relative suboptimality of its objective, against the lower bound by our dual at a gap
of 1e-8, is at most 2e-5; the time is that of the run with this tolerance, without the
search for it.

Rows are generated: normal columns, labels by a random direction with noise.

Seconds are processor time of the one thread, which company on the machine changes less
than elapsed time; elapsed seconds are given as well. Ratios are within one run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import (
    Options,
    Row,
    parse_options,
    print_table,
    ratio,
    say,
    thread_limit,
    verdict,
    write_table,
)
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from hybridmix.med.constraints import SignedRows
from hybridmix.med.margins import ExponentialMargin
from hybridmix.med.solvers.newton import LinearSolution, newton

SUBOPTIMALITY = 2e-5
BOUND = 1e-8
# Rows, columns, share of cells that are not 0, how many times faster than LinearSVC.
CASES: list[tuple[int, int, float, float | None]] = [
    (10_000, 20, 1.0, None),
    (100_000, 20, 1.0, None),
    (100_000, 100, 1.0, 7.0),
    (200, 20_000, 1.0, None),
    (2_000, 5_000, 1.0, None),
    (20_000, 20_000, 0.003, None),
]
SMOOTH_TARGET = 0.5
SMOOTH_CASE = (100_000, 100)
# From so loose that nobody is good enough: the first one that is has to be the cheapest.
TOLERANCES = (3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6)
# Seconds after which a contestant's tolerance is not lowered any more.
PATIENCE = 120.0

Table = np.ndarray | sparse.csr_array


@dataclass(frozen=True)
class Fit:
    """A fitted machine: weights with the bias last, and what they took."""

    weights: np.ndarray
    processor_seconds: float
    elapsed_seconds: float


def make_table(n: int, p: int, density: float) -> tuple[Table, np.ndarray]:
    generator = np.random.default_rng(0)
    X: Table
    if density < 1.0:
        X = sparse.random_array((n, p), density=density, format="csr", rng=generator)
    else:
        X = generator.normal(size=(n, p))
    scores = X @ generator.normal(size=p)
    scores /= scores.std()
    noise = 0.5 * generator.normal(size=n)
    return X, np.where(scores + noise > 0.1, 1.0, -1.0)


def timed(fit: Callable[[], np.ndarray]) -> Fit:
    elapsed, used = time.perf_counter(), time.process_time()
    weights = fit()
    return Fit(weights, time.process_time() - used, time.perf_counter() - elapsed)


def median_of(fits: list[Fit]) -> Fit:
    return sorted(fits, key=lambda fit: fit.processor_seconds)[len(fits) // 2]


def objective(X: Table, y: np.ndarray, weights: np.ndarray) -> float:
    lacking = np.maximum(1.0 - y * (X @ weights[:-1] + weights[-1]), 0.0)
    return 0.5 * float(weights @ weights) + float(lacking.sum())


def ours(X: Table, y: np.ndarray, tol: float) -> np.ndarray:
    found = newton(X, SignedRows(y), ExponentialMargin(1.0, 0.0), 1.0, tol=tol)
    return np.append(found.coef[0], found.bias[0])


def linear_svc(X: Table, y: np.ndarray, tol: float) -> np.ndarray:
    machine = LinearSVC(loss="hinge", dual=True, tol=tol, max_iter=10_000, random_state=0)
    machine.fit(X, y)
    return np.append(machine.coef_[0], machine.intercept_[0])


def sgd(X: Table, y: np.ndarray, tol: float) -> np.ndarray:
    """Stochastic gradients. Their bias has no penalty, but the objective counts it."""
    machine = SGDClassifier(
        loss="hinge", alpha=1.0 / len(y), average=True, tol=tol, max_iter=200
    )
    machine.set_params(random_state=0).fit(X, y)
    return np.append(machine.coef_[0], machine.intercept_[0])


RIVALS = {"linear_svc": linear_svc, "sgd": sgd}


def at_equal_quality(
    fit: Callable[[Table, np.ndarray, float], np.ndarray],
    X: Table,
    y: np.ndarray,
    bound: float,
    repeats: int,
) -> tuple[Fit, float, float]:
    """Return the first fit that is good enough, its tolerance and its suboptimality."""
    for tol in TOLERANCES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the last tolerance is not reached
            found = timed(lambda tol=tol: fit(X, y, tol))
        excess = objective(X, y, found.weights) / bound - 1.0
        if excess <= SUBOPTIMALITY or found.elapsed_seconds > PATIENCE:
            break
    fits = [found]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(fits) < repeats and found.processor_seconds < 5.0:
            fits.append(timed(lambda: fit(X, y, tol)))
    return median_of(fits), tol, excess


def measure(
    case: tuple[int, int, float, float | None], rivals: Sequence[str], repeats: int
) -> Row:
    n, p, density, target = case
    X, y = make_table(n, p, density)
    exact = newton(X, SignedRows(y), ExponentialMargin(1.0, 0.0), 1.0, tol=BOUND)
    bound = exact.value - exact.gap
    fit, tol, excess = at_equal_quality(ours, X, y, bound, repeats)
    row: Row = {"n,p": f"{n},{p}", "density": density}
    row |= {"ours_s": fit.processor_seconds, "ours_elapsed_s": fit.elapsed_seconds}
    row |= {"ours_tol": tol, "ours_suboptimality": excess}
    for name in rivals:
        theirs, tol, excess = at_equal_quality(RIVALS[name], X, y, bound, repeats)
        row[f"{name}_s"] = theirs.processor_seconds
        row |= {f"{name}_tol": tol, f"{name}_suboptimality": excess}
        if excess <= SUBOPTIMALITY:
            seconds = theirs.processor_seconds
            row[f"{name}_to_ours"] = ratio(seconds, fit.processor_seconds)
    faster = row.get("linear_svc_to_ours")
    row["target"] = target
    row["verdict"] = "information" if target is None else verdict(faster, target, True)
    return row


def measure_smooth(n: int, p: int, density: float, C: float, repeats: int) -> Row:
    """Measure maximum entropy discrimination with smoothness 1 and a flat bias."""
    X, y = make_table(n, p, density)
    prior = ExponentialMargin(C, 1.0)
    found: list[LinearSolution] = []

    def fit() -> Any:
        found.append(newton(X, SignedRows(y), prior, np.inf))
        return found[-1].coef

    taken = median_of([timed(fit) for _ in range(repeats)])
    goal = SMOOTH_TARGET if (n, p) == SMOOTH_CASE else None
    seconds = taken.processor_seconds
    return {
        "n,p": f"{n},{p}",
        "density": density,
        "C": C,
        "ours_s": seconds,
        "ours_elapsed_s": taken.elapsed_seconds,
        "iterations": found[-1].n_iter,
        "relative_gap": found[-1].gap / found[-1].value,
        "target": goal,
        "verdict": "information" if goal is None else verdict(seconds, goal),
    }


def run(options: Options) -> None:
    repeats = 1 if options.quick else 3
    cases = [(n // 10, p // 10, d, t) for n, p, d, t in CASES[:2]]
    cases = cases if options.quick else CASES
    smooth = [
        measure_smooth(n, p, density, C, repeats)
        for n, p, density, _ in cases
        for C in (1.0, 10.0)
    ]
    say("Smoothness 1, flat bias, tolerance 1e-4: seconds of one core")
    print_table(smooth)
    write_table("med_linear_smooth", smooth, options)
    rows = []
    for case in cases:
        rows.append(measure(case, list(RIVALS), repeats))
        print_table(rows[-1:])
        write_table("med_linear", rows, options, silent=True)
    say(
        f"The hinge, C = 1, at a relative suboptimality of {SUBOPTIMALITY:g}",
        {
            "X_s": "processor seconds of one core",
            "X_tol": "the contestant's own tolerance that was needed",
            "X_suboptimality": "what it reached",
            "X_to_ours": "seconds of X over ours; nothing if X is not good enough",
        },
    )
    print_table(rows)
    write_table("med_linear", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    with thread_limit(1), threadpool_limits(1):
        run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
