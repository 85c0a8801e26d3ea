"""Compiled kernels against NumPy.

The first table has one evaluation, values and statistics, of full covariances where
every row misses other columns, or where some patterns repeat. The second one has both
passes over sequences and the expected counts of transitions, from given emissions. All
variants that the processor has are measured in turn, in one process each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
from models import dataset_of

from hybridmix import _kernels
from hybridmix._parallel import workers
from hybridmix.families import FullGaussian, VariancePrior
from hybridmix.families.moments import FullParameters
from hybridmix.models import Mixture
from hybridmix.models.forward_backward import (
    ChainWeights,
    backward,
    forward,
    posteriors,
)
from hybridmix.models.packing import Packing
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem

NUMPY = "0"
# Rows, columns, components, share of holes, number of patterns or None for any.
SCATTERED = [
    (20_000, 20, 10, 0.3, None),
    (20_000, 20, 10, 0.5, None),
    (4_435, 36, 6, 0.5, None),
    (351, 34, 2, 0.3, None),
    (20_000, 20, 10, 0.3, 400),
]
QUICK_SCATTERED = [(300, 6, 2, 0.3, None)]
# How many times faster than NumPy, and milliseconds of the first shape on two threads.
FASTER = {"plain": 2.0, "avx2": 2.0, "avx512": 4.0}
FIRST_MS = 40.0
# Sequences, frames of each, states, classes.
CHAINS = [
    (1, 100_000, 8, 1),
    (10, 10_000, 8, 1),
    (100, 1_000, 5, 1),
    (1_000, 100, 5, 1),
    (267, 30, 5, 10),
    (1_000, 30, 50, 1),
]
QUICK_CHAINS = [(2, 50, 3, 1)]
# Kernels, threads and limits on BLAS that last to the end of a process.
KEPT_OPEN = ExitStack()

Shape = tuple[int, int, int, float, int | None]


def seconds(function: Callable[[], object], inner: int) -> float:
    start = time.perf_counter()
    for _ in range(inner):
        function()
    return (time.perf_counter() - start) / inner


# Rows that miss different columns ---------------------------------------------------


def make_rows(shape: Shape) -> np.ndarray:
    n, d, _, missing, n_patterns = shape
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, d))
    if n_patterns is None:
        return punch_holes(X, missing)
    patterns = generator.random((n_patterns, d)) < missing
    return np.where(patterns[generator.integers(n_patterns, size=n)], np.nan, X)


def set_up_scattered(kernels: str, shape: Shape, threads: int, inner: int) -> Measure:
    KEPT_OPEN.enter_context(_kernels.using(kernels))
    _, d, n_components, _, _ = shape
    generator = np.random.default_rng(1)
    factors = generator.normal(size=(n_components, d, 2 * d)) / np.sqrt(2 * d)
    covariances = factors @ np.swapaxes(factors, 1, 2) + 0.1 * np.eye(d)
    model = Mixture(
        FullGaussian(VariancePrior(np.ones(d))),
        FullParameters.of(generator.normal(size=(n_components, d)), covariances),
        np.full(n_components, -np.log(n_components)),
        np.zeros(1),
        (0, n_components),
    )
    pool = KEPT_OPEN.enter_context(workers(threads))
    problem = Problem(dataset_of(make_rows(shape)), Likelihood(), model, pool)
    for _ in range(2):
        problem.assess(model)
    return lambda: seconds(lambda: problem.assess(model), inner)


def scattered(shape: Shape, threads: int, repeats: int) -> list[Row]:
    n, d, n_components, missing, n_patterns = shape
    inner = max(1, 5_000_000 // (n * d * n_components))
    arguments = {"shape": shape, "threads": threads, "inner": inner}
    names = [NUMPY, *_kernels.variants()]
    samples = race(
        [
            Contestant(
                name, set_up_scattered, {**arguments, "kernels": name}, threads=threads
            )
            for name in names
        ],
        repeats,
    )
    disturbed = disturbance(samples)
    rows = []
    for name in names:
        own, faster = samples[name].median, None
        if name != NUMPY:
            faster = samples[NUMPY].median / own
        row: Row = {
            "n,d,K": f"{n},{d},{n_components}",
            "missing": missing,
            "patterns": "any" if n_patterns is None else n_patterns,
            "threads": threads,
            "kernels": "numpy" if name == NUMPY else name,
            "ms": milliseconds(own),
            "faster": faster,
            "disturbed": disturbed,
        }
        if name != NUMPY and n_patterns is None:
            row["target"] = FASTER[name]
            row["verdict"] = verdict(faster, FASTER[name], at_least=True)
        if shape == SCATTERED[0] and threads == 2 and name == "avx512":
            row["ms_target"] = FIRST_MS
            row["ms_verdict"] = verdict(milliseconds(own), FIRST_MS, disturbed=disturbed)
        rows.append(row)
    return rows


# Sequences ----------------------------------------------------------------------------


def set_up_passes(kernels: str, shape: tuple[int, int, int, int], inner: int) -> Measure:
    KEPT_OPEN.enter_context(_kernels.using(kernels))
    n, length, n_states, n_classes = shape
    generator = np.random.default_rng(0)
    packing = Packing(np.full(n, length))
    log_emission = generator.normal(size=(n_classes, n_states, n * length))
    moves = generator.random((1, n_classes, n_states, n_states)) + 5.0 * np.eye(n_states)
    chains = ChainWeights(
        np.full((1, n_classes, n_states), -np.log(n_states)),
        np.log(moves / moves.sum(axis=-1, keepdims=True)),
        None,
    )
    weights = np.ones((n_classes, n))

    def run() -> None:
        passed = forward(packing, log_emission.copy(), chains)
        posteriors(passed, backward(passed), weights)

    run()
    return lambda: seconds(run, inner)


def passes(shape: tuple[int, int, int, int], repeats: int) -> list[Row]:
    n, length, n_states, n_classes = shape
    inner = max(1, 2_000_000 // (n * length * n_states * n_classes)) if n > 10 else 1
    names = [NUMPY, *_kernels.variants()]
    samples = race(
        [
            Contestant(
                name,
                set_up_passes,
                {"kernels": name, "shape": shape, "inner": inner},
                threads=1,
            )
            for name in names
        ],
        repeats,
    )
    return [
        {
            "n,T,K,classes": f"{n},{length},{n_states},{n_classes}",
            "kernels": "numpy" if name == NUMPY else name,
            "ms": milliseconds(samples[name].median),
            "faster": samples[NUMPY].median / samples[name].median,
            "disturbed": disturbance(samples),
        }
        for name in names
    ]


def run(options: Options) -> None:
    if not _kernels.variants():
        print(f"LEFT OUT: {_kernels.describe()}")
        return
    repeats = 2 if options.quick else 5
    notes = {
        "faster": "how many times faster than NumPy",
        "disturbed": DISTURBED,
    }
    shapes = QUICK_SCATTERED if options.quick else SCATTERED
    rows = [row for s in shapes for t in (1, 2) for row in scattered(s, t, repeats)]
    say(
        "One evaluation, full covariances, rows with holes",
        {"patterns": "of holes", **notes},
    )
    print_table(rows)
    write_table("kernels", rows, options)
    shapes_of_chains = QUICK_CHAINS if options.quick else CHAINS
    rows = [row for shape in shapes_of_chains for row in passes(shape, repeats)]
    say("Forward, backward, counts and posteriors, one thread", notes)
    print_table(rows)
    write_table("kernels_chains", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
