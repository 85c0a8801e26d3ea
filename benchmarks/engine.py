"""One value-and-statistics evaluation against the bare matrix products in it.

A diagonal mixture is evaluated by ``A = Theta Phi`` and ``S = R Phi'`` with the features
``Phi = [x^2; x; 1]``, or ``[x^2; x; m]`` with holes. The limit is the time of these two
products alone: the faster of whole matrices with BLAS on two threads and of chunks on two
threads with BLAS on one thread each.

Unlabelled rows give weight to every component of every class, which is the hardest case.
Labelled rows only look at the components of their own class; their limit is that of these
smaller products.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
from common import (
    DISTURBED,
    Contestant,
    Measure,
    Options,
    Row,
    disturbance,
    milliseconds,
    parse_options,
    print_table,
    punch_holes,
    race,
    say,
    verdict,
    write_table,
)
from models import class_mixtures, dataset_of
from threadpoolctl import threadpool_limits

from hybridmix._parallel import workers
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem

THREADS = 2
# Rows, columns, classes, components per class, and how many times the limit is allowed.
SHAPES = [
    ((50_000, 50, 10, 16), 2.0),
    ((10_000, 50, 10, 128), 1.6),
    ((8_000, 256, 10, 4), 1.1),
]
SMALL = (569, 30, 2, 4)
SMALL_LIMIT_MS = 1.0
CHUNKS = (1024, 4096)
# Threads and limits on BLAS that last to the end of a process.
KEPT_OPEN = ExitStack()

Shape = tuple[int, int, int, int]


def timed(function: Callable[[], object], inner: int = 1) -> float:
    """Return the time of one call; one before it warms up what others have cooled."""
    function()
    start = time.perf_counter()
    for _ in range(inner):
        function()
    return (time.perf_counter() - start) / inner


def make_rows(shape: Shape, missing: float) -> np.ndarray:
    n, d, _, _ = shape
    X = np.random.default_rng(0).normal(size=(n, d))
    return punch_holes(X, missing) if missing else X


def set_up_evaluation(
    shape: Shape, missing: float, labelled: bool, threads: int, inner: int
) -> Measure:
    """Evaluate the objective of the library."""
    n, d, n_classes, n_components = shape
    labels = np.arange(n) % n_classes if labelled else np.full(n, -1)
    dataset = dataset_of(make_rows(shape, missing), labels.astype(np.intp))
    model = class_mixtures(d, n_classes, n_components, seed=0)
    pool = KEPT_OPEN.enter_context(workers(threads))
    problem = Problem(dataset, Likelihood(), model, pool)

    def evaluate() -> object:
        return problem.assess(model)

    for _ in range(3):
        evaluate()
    return lambda: timed(evaluate, inner)


def features(shape: Shape, missing: float) -> np.ndarray:
    X = make_rows(shape, missing).T
    mask = ~np.isnan(X)
    X = np.where(mask, X, 0.0)
    last = mask.astype(float) if missing else np.ones((1, X.shape[1]))
    return np.concatenate([X * X, X, last])


def product_sizes(shape: Shape, labelled: bool) -> tuple[int, int, int]:
    """Return how many products there are, of how many components and rows each."""
    n, _, n_classes, n_components = shape
    if labelled:
        return n_classes, n_components, n // n_classes
    return 1, n_classes * n_components, n


def set_up_whole(shape: Shape, missing: float, labelled: bool, inner: int) -> Measure:
    """Multiply whole matrices, with BLAS on several threads."""
    count, n_components, n = product_sizes(shape, labelled)
    phi = np.ascontiguousarray(features(shape, missing)[:, :n])
    theta = np.random.default_rng(0).normal(size=(n_components, len(phi)))
    product = np.empty((n_components, n))
    sums = np.empty(theta.shape)

    def multiply() -> None:
        for _ in range(count):
            np.dot(theta, phi, out=product)
            np.dot(product, phi.T, out=sums)

    for _ in range(3):
        multiply()
    return lambda: timed(multiply, inner)


def set_up_chunks(
    shape: Shape, missing: float, labelled: bool, inner: int, rows: int, threads: int
) -> Measure:
    """Multiply chunk by chunk, on threads that each have their own BLAS."""
    count, n_components, n = product_sizes(shape, labelled)
    phi = features(shape, missing)
    theta = np.random.default_rng(0).normal(size=(n_components, len(phi)))
    chunks = [
        np.ascontiguousarray(phi[:, start : min(start + rows, n * (part + 1))])
        for part in range(count)
        for start in range(n * part, n * (part + 1), rows)
    ]

    def run(numbers: np.ndarray) -> None:
        buffer = np.empty(n_components * min(rows, n))
        sums = np.empty(theta.shape)
        for number in numbers:
            chunk = chunks[number]
            size = n_components * chunk.shape[1]
            product = buffer[:size].reshape(n_components, -1)
            np.dot(theta, chunk, out=product)
            np.dot(product, chunk.T, out=sums)

    tasks = [t for t in np.array_split(np.arange(len(chunks)), 4 * threads) if len(t)]
    pool = ThreadPoolExecutor(threads)
    KEPT_OPEN.enter_context(threadpool_limits(limits=1))

    def multiply() -> None:
        list(pool.map(run, tasks))

    for _ in range(3):
        multiply()
    return lambda: timed(multiply, inner)


def contestants(shape: Shape, missing: float, labelled: bool) -> list[Contestant]:
    n, d, n_classes, n_components = shape
    operations = 4.0 * n * n_classes * n_components * 2 * d
    inner = max(2, int(1e9 / operations))
    same = {"shape": shape, "missing": missing, "labelled": labelled, "inner": inner}
    evaluation = Contestant("ours", set_up_evaluation, {**same, "threads": THREADS})
    whole = Contestant("whole", set_up_whole, same, threads=THREADS)
    return [
        evaluation,
        whole,
        *(
            Contestant(
                f"chunks of {rows}",
                set_up_chunks,
                {**same, "rows": rows, "threads": THREADS},
                threads=1,
            )
            for rows in CHUNKS
        ),
    ]


def measure(
    shape: Shape, missing: float, labelled: bool, target: float | None, repeats: int
) -> Row:
    samples = race(contestants(shape, missing, labelled), repeats, warm_ups=2)
    disturbed = disturbance(samples)
    ours = samples.pop("ours")
    fastest = min(samples, key=lambda name: samples[name].median)
    limit = samples[fastest]
    times_limit = ours.median / limit.median
    return {
        "n,d,classes,K": "{},{},{},{}".format(*shape),
        "missing": missing,
        "rows": "labelled" if labelled else "unlabelled",
        "ours_ms": milliseconds(ours.median),
        "limit_ms": milliseconds(limit.median),
        "limit_is": fastest,
        "times_limit": times_limit,
        "target": target,
        "verdict": (
            "information"
            if target is None
            else verdict(times_limit, target, disturbed=disturbed)
        ),
        "disturbed": disturbed,
    }


def measure_small(repeats: int) -> list[Row]:
    rows = []
    for labelled in (False, True):
        row = measure(SMALL, 0.0, labelled, None, repeats)
        seconds = row["ours_ms"]
        row["target"] = f"{SMALL_LIMIT_MS} ms"
        row["verdict"] = verdict(seconds, SMALL_LIMIT_MS, disturbed=row["disturbed"])
        rows.append(row)
    return rows


def run(options: Options) -> None:
    repeats = 3 if options.quick else 9
    rows = []
    cases = [
        (shape, target, missing, labelled)
        for shape, target in SHAPES
        for missing in (0.0, 0.3)
        for labelled in (False, True)
        if not (labelled and missing)
    ]
    for (n, *rest), target, missing, labelled in cases[:3] if options.quick else cases:
        shape = (n // 10 if options.quick else n, *rest)
        goal = None if labelled else target
        rows.append(measure(shape, missing, labelled, goal, repeats))
    rows += measure_small(repeats)
    say(
        f"One value-and-statistics evaluation, float64, {THREADS} threads",
        {
            "times_limit": "our time as a multiple of the bare matrix products",
            "disturbed": DISTURBED,
            "limit_is": "which way of multiplying was the fastest",
        },
    )
    print_table(rows)
    write_table("engine", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
