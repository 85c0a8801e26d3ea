"""Rows and products in single precision against double precision.

One value-and-statistics evaluation, of the likelihood of labelled rows and of a hybrid
objective, on one thread: time of the processor, and how far the value and the sums of
squares are off, relatively. Then whole fits on real tables, with the shares of errors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    load_xy,
    milliseconds,
    parse_options,
    print_table,
    say,
    thread_limit,
    write_table,
)
from models import class_mixtures, dataset_of
from sklearn.model_selection import train_test_split

from hybridmix import HybridMixtureClassifier
from hybridmix._parallel import workers
from hybridmix.families import FullGaussian, VariancePrior
from hybridmix.families.moments import FullParameters
from hybridmix.models import Mixture
from hybridmix.objectives import Blend, ConditionalLikelihood, Likelihood
from hybridmix.problem import Assessment, Problem

# Covariances; rows, columns, classes, components per class.
SHAPES = [
    ("diag", (50_000, 50, 10, 16)),
    ("diag", (8_000, 256, 10, 4)),
    ("full", (20_000, 20, 3, 10)),
    ("full", (10_000, 50, 10, 2)),
]
OBJECTIVES = {
    "likelihood": Likelihood(),
    "hybrid": Blend(Likelihood(), ConditionalLikelihood(), 10.0),
}
TABLES = ("segmentation", "phoneme_elena", "phoneme_esl")
REPEATS = 7

Shape = tuple[int, int, int, int]


def mixture(covariance: str, shape: Shape) -> Mixture:
    _, d, n_classes, n_components = shape
    diagonal = class_mixtures(d, n_classes, n_components, seed=0)
    if covariance == "diag":
        return diagonal
    factors = np.random.default_rng(0).normal(size=(n_classes * n_components, d, d))
    covariances = factors @ factors.swapaxes(1, 2) / d + np.eye(d)
    return replace(
        diagonal,
        family=FullGaussian(VariancePrior(np.ones(d))),
        components=FullParameters.of(diagonal.components.means, covariances),
    )


def evaluated(covariance: str, shape: Shape, objective: str) -> Row:
    n, d, n_classes, _ = shape
    X = np.random.default_rng(0).normal(size=(n, d))
    dataset = dataset_of(X, (np.arange(n) % n_classes).astype(np.intp))
    model = mixture(covariance, shape)
    times: list[list[float]] = [[], []]
    found: list[Assessment] = []
    with workers(1) as pool:
        problems = [
            Problem(
                replace(dataset, rows=dataset.rows.astype(dtype)),
                OBJECTIVES[objective],
                model,
                pool,
            )
            for dtype in (np.float64, np.float32)
        ]
        found = [problem.assess(model) for problem in problems]
        for _ in range(REPEATS):
            for problem, own in zip(problems, times, strict=True):
                start = time.process_time()
                problem.assess(model)
                own.append(time.process_time() - start)
    double, single = (float(np.median(own)) for own in times)
    squares = [own.statistics.components.second for own in found]
    value = found[0].value
    return {
        "covariance": covariance,
        "n,d,classes,K": "{},{},{},{}".format(*shape),
        "objective": objective,
        "float64_ms": milliseconds(double),
        "float32_ms": milliseconds(single),
        "times_faster": double / single,
        "value_off": abs(found[1].value - value) / abs(value),
        "sums_off": np.abs(squares[1] - squares[0]).max() / np.abs(squares[0]).max(),
    }


def fitted(name: str, data: Path, covariance: str) -> Row:
    X, y = load_xy(data, name)
    parts = train_test_split(
        X.reshape(len(X), -1)[:5000], y[:5000], random_state=0, test_size=0.4
    )
    row: Row = {"table": name, "covariance": covariance}
    for dtype in ("float64", "float32"):
        model = HybridMixtureClassifier(
            covariance_type=covariance,
            n_components=2,
            tradeoff=10.0,
            dtype=dtype,
            random_state=0,
        )
        start = time.process_time()
        model.fit(parts[0], parts[2])
        row[f"{dtype}_s"] = time.process_time() - start
        row[f"{dtype}_error"] = 1.0 - float(model.score(parts[1], parts[3]))
    return row


def run(options: Options) -> None:
    shapes = [(kind, (s[0] // 20, *s[1:])) for kind, s in SHAPES[::2]]
    rows = [
        evaluated(covariance, shape, objective)
        for covariance, shape in (shapes if options.quick else SHAPES)
        for objective in OBJECTIVES
    ]
    say(
        "One evaluation in both precisions, one thread, processor time",
        {"off": "largest relative difference of single precision"},
    )
    print_table(rows)
    write_table("single_precision", rows, options)
    rows = []
    for name in TABLES[:1] if options.quick else TABLES:
        try:
            rows += [fitted(name, options.data, kind) for kind in ("diag", "full")]
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)
    say("Whole fits, one thread, processor time, and errors on other rows")
    print_table(rows)
    write_table("single_precision_fits", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    with thread_limit(1):
        run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
