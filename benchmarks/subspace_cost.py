"""One evaluation in a subspace against full covariances of as few columns.

An evaluation is the likelihood of unlabelled rows with the statistics of all components,
as one iteration of EM takes it. Complete rows of many columns are projected once, and
should then cost no more than rows that have as many columns as the subspace has factors.
Rows with holes at random take a factorisation for each row and component; rows that share
a few patterns of holes do not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
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
    race,
    say,
    write_table,
)
from models import dataset_of

from hybridmix._parallel import workers
from hybridmix.families import FullGaussian, Subspace, SubspaceGaussian, VariancePrior
from hybridmix.models import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem

THREADS = 2
# Rows, columns, factors, components.
SHAPES = [(5000, 784, 50, 40), (5000, 256, 20, 40)]
N_PATTERNS = 20
FULL, COMPLETE = "full, columns = factors", "subspace, complete"
PATTERNS, HOLES = "subspace, 20 patterns", "subspace, half missing"
# Threads that last to the end of a process.
KEPT_OPEN = ExitStack()

Shape = tuple[int, int, int, int]


def latent_rows(shape: Shape) -> np.ndarray:
    n, _, q, n_components = shape
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(n_components, q))
    return centres[np.arange(n) % n_components] + 0.5 * generator.normal(size=(n, q))


def subspace_of(shape: Shape) -> Subspace:
    _, d, q, _ = shape
    loading = np.random.default_rng(1).normal(size=(d, q))
    return Subspace(np.zeros(d), loading, np.ones(d))


def rows_of(shape: Shape, kind: str) -> np.ndarray:
    """Return rows of many columns, with holes as the kind of contestant says."""
    n, d, _, _ = shape
    generator = np.random.default_rng(2)
    X = latent_rows(shape) @ subspace_of(shape).loading.T + generator.normal(size=(n, d))
    if kind == PATTERNS:
        patterns = generator.random((N_PATTERNS, d)) < 0.5
        X[patterns[np.arange(n) % N_PATTERNS]] = np.nan
    if kind == HOLES:
        X[generator.random(X.shape) < 0.5] = np.nan
    return X


def set_up(shape: Shape, kind: str) -> Measure:
    """Evaluate a likelihood with its statistics."""
    n_components = shape[3]
    latent = latent_rows(shape)
    prior = VariancePrior(np.ones(latent.shape[1]))
    family = (
        FullGaussian(prior)
        if kind == FULL
        else SubspaceGaussian(prior, subspace_of(shape))
    )
    dataset = dataset_of(latent if kind == FULL else rows_of(shape, kind))
    sample = np.arange(min(2000, dataset.n_rows))
    memberships = np.random.default_rng(3).dirichlet(np.ones(n_components), len(sample))
    equal = np.full(n_components, -np.log(n_components))
    model = Mixture(
        family,
        family.start(dataset.rows[sample], memberships.T),
        equal,
        np.zeros(1),
        (0, n_components),
    )
    pool = KEPT_OPEN.enter_context(workers(THREADS))
    problem = Problem(dataset, Likelihood(), model, pool)
    problem.assess(model)

    def measure() -> float:
        start = time.perf_counter()
        problem.assess(model)
        return time.perf_counter() - start

    return measure


def measured(shape: Shape, quick: bool) -> list[Row]:
    contestants = [
        Contestant(kind, set_up, {"shape": shape, "kind": kind})
        for kind in (FULL, COMPLETE, PATTERNS, HOLES)
    ]
    samples = race(contestants, 2 if quick else 5, warm_ups=1)
    disturbed = disturbance(samples)
    return [
        {
            "n,d,q,J": "{},{},{},{}".format(*shape),
            "method": name,
            "milliseconds": milliseconds(sample.median),
            "times_full": sample.median / samples[FULL].median,
            "disturbed": disturbed,
        }
        for name, sample in samples.items()
    ]


def run(options: Options) -> None:
    rows: list[Row] = []
    for n, *rest in SHAPES:
        d, q, n_components = rest
        shape = (n // 20 if options.quick else n, d, q, n_components)
        rows += measured(shape, options.quick)
    say(
        f"One evaluation with statistics, float64, {THREADS} threads",
        {
            "times_full": "time as a multiple of full covariances in as few columns",
            "disturbed": DISTURBED,
        },
    )
    print_table(rows)
    write_table("subspace_cost", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
