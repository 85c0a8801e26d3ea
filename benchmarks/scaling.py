"""Memory, growth of the time with the number of rows, and import time.

Peak memory is the high-water mark of a fresh process that has done the same on a small
table before, so that libraries are loaded. It is counted from the moment when the table
exists, and given as a multiple of the table, the table included.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    DISTURBED,
    Contestant,
    Measure,
    Options,
    Row,
    blobs,
    disturbance,
    measured_alone,
    milliseconds,
    parse_options,
    print_table,
    race,
    ratio,
    say,
    verdict,
    write_table,
)
from em import per_iteration, scikit_mixture
from models import started_density

MEMORY_SHAPE = (1_000_000, 8, 64)
MEMORY_TARGET = 3.0
GROWTH = (10_000, 100_000, 1_000_000)
IMPORT_TARGET = 0.15
IMPORT_RUNS = 7


# Memory ---------------------------------------------------------------------------


def memory_bytes(name: str) -> int:
    """Return the present (VmRSS) or largest (VmHWM) size of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("peak memory can only be measured on Linux")


def forget_peak() -> None:
    """Let the largest size begin anew with the present one."""
    Path("/proc/self/clear_refs").write_text("5")


def table_of(n: int, d: int, k: int) -> np.ndarray:
    """Draw overlapping clusters without anything else of the size of the table."""
    generator = np.random.default_rng(0)
    centres = generator.normal(scale=1.5, size=(k, d))
    X = np.empty((n, d))
    generator.standard_normal(out=X)
    for start in range(0, n, 10_000):
        block = X[start : start + 10_000]
        block += centres[generator.integers(k, size=len(block))]
    return X


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "fit": lambda estimator, X: estimator.fit(X),
    "score_samples": lambda estimator, X: estimator.score_samples(X),
    "predict": lambda estimator, X: estimator.predict(X),
}


def make_estimator(who: str, kind: str, k: int) -> Any:
    if who == "ours":
        from hybridmix import MixtureDensity

        return MixtureDensity(
            k,
            covariance_type=kind,
            max_iter=3,
            tol=0.0,
            n_jobs=2,
            random_state=0,
            covariance_prior=1.0,
        )
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(
        k,
        covariance_type=kind,
        max_iter=2,
        tol=0.0,
        init_params="random_from_data",
        random_state=0,
    )


def set_up_memory(
    who: str, kind: str, operation: str, shape: tuple[int, int, int]
) -> Measure:
    """Measure the peak over the table, as a multiple of its size."""
    n, d, k = shape
    run = OPERATIONS[operation]
    estimator = make_estimator(who, kind, k).fit(table_of(20_000, d, k))
    run(estimator, table_of(20_000, d, k))
    X = table_of(n, d, k)

    def measure() -> float:
        gc.collect()
        forget_peak()
        before = memory_bytes("VmRSS")
        run(estimator, X)
        return 1.0 + (memory_bytes("VmHWM") - before) / X.nbytes

    return measure


def memory_table(shape: tuple[int, int, int]) -> list[Row]:
    rows = []
    for kind in ("diag", "full"):
        for operation in ("fit", "score_samples", "predict"):
            peaks = {
                who: measured_alone(
                    Contestant(
                        who,
                        set_up_memory,
                        {
                            "who": who,
                            "kind": kind,
                            "operation": operation,
                            "shape": shape,
                        },
                    )
                )
                for who in ("ours", "scikit-learn")
            }
            rows.append(
                {
                    "covariance": kind,
                    "n,d,K": "{},{},{}".format(*shape),
                    "operation": operation,
                    "ours_times_input": peaks["ours"],
                    "scikit_learn_times_input": peaks["scikit-learn"],
                    "target": MEMORY_TARGET,
                    "verdict": verdict(peaks["ours"], MEMORY_TARGET),
                }
            )
    return rows


# Growth ---------------------------------------------------------------------------


def set_up_iteration(who: str, kind: str, n: int, d: int, k: int) -> Measure:
    data = blobs(n, d, k)
    # Small tables need more iterations to be measured well.
    extra = int(np.clip(2_000_000 // n, 3, 50))

    def fit(iterations: int) -> None:
        if who == "ours":
            options = {"tol": 0.0, "max_iter": iterations, "n_jobs": 2}
            started_density(data, kind, **options).fit(data.X)
        else:
            scikit_mixture(data, kind, max_iter=iterations, tol=0.0).fit(data.X)

    return per_iteration(fit, extra)


def growth_table(sizes: Sequence[int], repeats: int) -> list[Row]:
    rows = []
    for kind in ("diag", "full"):
        contestants = [
            Contestant(
                f"{who} {n}",
                set_up_iteration,
                {"who": who, "kind": kind, "n": n, "d": 8, "k": 8},
                repeats=None if who == "ours" else 2,
            )
            for n in sizes
            for who in ("ours", "scikit-learn")
        ]
        samples = race(contestants, repeats)
        times = {k: v.median for k, v in samples.items()}
        smallest = times.get(f"ours {sizes[0]}")
        for n in sizes:
            ours, theirs = times.get(f"ours {n}"), times.get(f"scikit-learn {n}")
            growth = ratio(ours, smallest)
            rows.append(
                {
                    "covariance": kind,
                    "n,d,K": f"{n},8,8",
                    "ours_ms": milliseconds(ours),
                    "scikit_learn_ms": milliseconds(theirs),
                    "ours_ns_per_row": None if ours is None else 1e9 * ours / n,
                    "growth_to_linear": ratio(growth, n / sizes[0]),
                    "scikit_learn_to_ours": ratio(theirs, ours),
                    "disturbed": disturbance(samples),
                }
            )
    return rows


# Import ---------------------------------------------------------------------------

IMPORT_CODE = """
import json, time
start = time.perf_counter()
{first}
middle = time.perf_counter()
import hybridmix
end = time.perf_counter()
print(json.dumps([middle - start, end - middle]))
"""
FIRST_IMPORTS = {
    "sklearn": "import sklearn",
    "sklearn.base, sklearn.utils.validation": (
        "import sklearn.base, sklearn.utils.validation"
    ),
}


def import_seconds(first: str) -> tuple[float, float]:
    code = IMPORT_CODE.format(first=first)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    before, ours = json.loads(done.stdout)
    return before, ours


def import_table(runs: int) -> list[Row]:
    for first in FIRST_IMPORTS.values():
        import_seconds(first)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in FIRST_IMPORTS}
    for _ in range(runs):
        for name, first in FIRST_IMPORTS.items():
            taken[name].append(import_seconds(first))
    rows = []
    for name, pairs in taken.items():
        before, ours = (statistics.median(side) for side in zip(*pairs, strict=True))
        aimed = name != "sklearn"
        rows.append(
            {
                "imported_before": name,
                "that_s": before,
                "hybridmix_on_top_s": ours,
                "target_s": IMPORT_TARGET if aimed else None,
                "verdict": verdict(ours, IMPORT_TARGET) if aimed else "information",
            }
        )
    return rows


def run(options: Options) -> None:
    shape = (100_000, 8, 16) if options.quick else MEMORY_SHAPE
    rows = memory_table(shape)
    say(
        "Peak memory as a multiple of the table, the table included",
        {"scikit_learn_times_input": "GaussianMixture on the same table"},
    )
    print_table(rows)
    write_table("scaling_memory", rows, options)
    sizes = GROWTH[:2] if options.quick else GROWTH
    rows = growth_table(sizes, 2 if options.quick else 5)
    say(
        "One EM iteration as rows grow, float64, 2 threads",
        {
            "growth_to_linear": "1 if the time per row is that of the smallest table",
            "disturbed": DISTURBED,
        },
    )
    print_table(rows)
    write_table("scaling_growth", rows, options)
    rows = import_table(2 if options.quick else IMPORT_RUNS)
    say("Import time")
    print_table(rows)
    write_table("scaling_import", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
