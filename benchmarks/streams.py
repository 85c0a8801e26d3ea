"""Online EM on batches: how fast it is, and how near it comes to the batch optimum.

Rows are drawn from mixtures whose components are well apart or overlap. `partial_fit`
sees every row twice, in batches; the optimum is where EM on all rows leads from the model
of the first batch, until a step gains less than 1e-7 per row. Differences are in nats per
row, on the rows themselves; those of `fit` with its usual tolerance, from the same start,
are there to compare. What begins elsewhere may end in another optimum: that of
k-means on all rows is compared as well.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from common import Options, Row, parse_options, print_table, say, write_table
from sklearn.exceptions import ConvergenceWarning

from hybridmix import MixtureDensity

N_COLUMNS, N_COMPONENTS = 10, 10
BATCH_SIZES = (1_000, 10_000, 50_000)
SEPARATIONS = {"apart": 3.0, "near": 1.0, "overlapping": 0.5}
N_PASSES = 2


def source(separation: float, n_rows: int, seed: int) -> np.ndarray:
    """Draw rows of a mixture of diagonal Gaussians."""
    rng = np.random.default_rng(seed)
    means = separation * rng.normal(size=(N_COMPONENTS, N_COLUMNS))
    deviations = np.exp(0.3 * rng.normal(size=means.shape))
    mixing = rng.dirichlet(np.full(N_COMPONENTS, 5.0))
    drawn = rng.choice(N_COMPONENTS, n_rows, p=mixing)
    noise = rng.normal(size=(n_rows, N_COLUMNS))
    return means[drawn] + deviations[drawn] * noise


def estimator(covariance_type: str, **options: object) -> MixtureDensity:
    """Return a density with one thread, so that times compare."""
    return MixtureDensity(
        N_COMPONENTS,
        covariance_type=covariance_type,
        column_shapes="plain",
        n_jobs=1,
        random_state=0,
        **options,
    )


def streamed(X: np.ndarray, size: int, covariance_type: str) -> tuple[list[float], Row]:
    """Return mean log densities after each pass, and rows per second of a processor."""
    batches = [X[first : first + size] for first in range(0, len(X), size)]
    model = estimator(covariance_type).partial_fit(batches[0])
    values, seconds = [], 0.0
    for number in range(N_PASSES):
        begin = time.process_time()
        for batch in batches[1 if number == 0 else 0 :]:
            model.partial_fit(batch)
        seconds += time.process_time() - begin
        values.append(model.score(X))
    n_rows = N_PASSES * len(X) - size
    return values, {"million_rows_per_second": n_rows / seconds / 1e6}


def optimum(
    X: np.ndarray,
    covariance_type: str,
    init: str | MixtureDensity,
    tol: float = 1e-7,
) -> float:
    """Return the mean log density that EM on all rows ends with."""
    model = estimator(covariance_type, init=init, tol=tol, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X).score(X)


def rows(options: Options) -> Iterator[Row]:
    """Yield one row of the table for each source, covariance type and batch size."""
    n_rows = 20_000 if options.quick else 500_000
    sizes = [size for size in BATCH_SIZES if 5 * size <= n_rows]
    for name, separation in SEPARATIONS.items():
        X = source(separation, n_rows, seed=1)
        for kind in ("diag", "full"):
            few = X if kind == "diag" else X[: n_rows // 5]
            whole = optimum(few, kind, "kmeans")
            for size in sizes:
                say(f"{name}, {kind}, batches of {size}")
                values, speed = streamed(few, size, kind)
                first = estimator(kind).partial_fit(few[:size])
                best = optimum(few, kind, first)
                usual = optimum(few, kind, first, tol=1e-4)
                gaps = [best - value for value in values]
                yield {
                    "source": name,
                    "covariance_type": kind,
                    "rows": len(few),
                    "batch": size,
                    **speed,
                    "gap_one_pass": gaps[0],
                    "gap_two_passes": gaps[1],
                    "gap_of_fit": best - usual,
                    "gap_to_kmeans_start": whole - values[1],
                }


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(__doc__, arguments)
    found: list[Row] = []
    for row in rows(options):
        found.append(row)
        write_table("streams", found, options, silent=True)
    print_table(found)
    write_table("streams", found, options)


if __name__ == "__main__":
    main()
