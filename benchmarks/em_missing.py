"""Time of one EM iteration when values are missing.

Full covariances: our time as a multiple of that on complete rows, for holes that make
nearly every row a pattern of its own, for few patterns that repeat, and for many holes.
Diagonal covariances: against StepMix and pomegranate. All columns are observed in some
rows. StepMix takes no start from outside and begins with random memberships; the work of
an iteration does not depend on that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from common import (
    DISTURBED,
    Contestant,
    Measure,
    Options,
    Row,
    blobs,
    disturbance,
    milliseconds,
    parse_options,
    print_table,
    punch_holes,
    race,
    ratio,
    say,
    verdict,
    write_table,
)
from em import per_iteration, seconds
from models import started_density

THREADS = 2
FULL = (20_000, 20, 10)
DIAGONAL = (20_000, 20, 10)
TARGET_SECONDS = 0.3
TARGETED = "30 % at random"
N_PATTERNS = 20
PACKAGES = ("stepmix", "pomegranate", "torch")


def with_holes(X: np.ndarray, holes: str) -> np.ndarray:
    """Punch the holes that a row of the table names."""
    if holes == "none":
        return X
    if holes == f"{N_PATTERNS} patterns":
        generator = np.random.default_rng(3)
        patterns = generator.random((N_PATTERNS, X.shape[1])) < 0.3
        return np.where(patterns[generator.integers(N_PATTERNS, size=len(X))], np.nan, X)
    return punch_holes(X, float(holes.split()[0]) / 100.0)


def n_patterns(X: np.ndarray) -> int:
    return len(np.unique(np.packbits(np.isnan(X), axis=1), axis=0))


def set_up_ours(
    kind: str, shape: tuple[int, int, int], holes: str, threads: int, extra: int = 5
) -> Measure:
    data = blobs(*shape)
    X = with_holes(data.X, holes)
    options = {"tol": 0.0, "covariance_prior": 0.0, "n_jobs": threads}
    densities = {
        m: started_density(data, kind, max_iter=m, **options) for m in (1, 1 + extra)
    }
    return per_iteration(lambda iterations: densities[iterations].fit(X), extra)


def set_up_stepmix(shape: tuple[int, int, int], holes: str, extra: int = 4) -> Measure:
    from stepmix.stepmix import StepMix

    data = blobs(*shape)
    X = with_holes(data.X, holes)

    def fit(iterations: int) -> None:
        StepMix(
            shape[2],
            measurement="gaussian_diag_nan",
            max_iter=iterations,
            abs_tol=0.0,
            rel_tol=0.0,
            random_state=0,
            progress_bar=0,
        ).fit(X)

    return per_iteration(fit, extra)


def set_up_pomegranate(shape: tuple[int, int, int], holes: str, threads: int) -> Measure:
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel

    torch.set_num_threads(threads)
    data = blobs(*shape)
    X = with_holes(data.X, holes)
    mask = ~np.isnan(X)
    values = torch.tensor(np.where(mask, X, 0.0).astype(np.float32))
    masked = torch.masked.MaskedTensor(values, mask=torch.tensor(mask))
    variances = torch.full((shape[1],), 1.5)
    normals = [
        Normal(torch.tensor(m.astype(np.float32)), variances, covariance_type="diag")
        for m in data.means
    ]
    model = GeneralMixtureModel(normals)

    def iterate() -> None:
        model.summarize(masked)
        model.from_summaries()

    return lambda: seconds(iterate)


def full_table(shape: tuple[int, int, int], repeats: int) -> list[Row]:
    kinds = ["none", TARGETED, "70 % at random", f"{N_PATTERNS} patterns"]
    contestants = [
        Contestant(
            holes,
            set_up_ours,
            {"kind": "full", "shape": shape, "holes": holes, "threads": THREADS},
        )
        for holes in kinds
    ]
    samples = race(contestants, repeats)
    times = {k: v.median for k, v in samples.items()}
    X = blobs(*shape).X
    rows = []
    for holes in kinds:
        time = times.get(holes)
        aimed = holes == TARGETED
        rows.append(
            {
                "covariance": "full",
                "n,d,K": "{},{},{}".format(*shape),
                "holes": holes,
                "patterns": n_patterns(with_holes(X, holes)),
                "ours_ms": milliseconds(time),
                "times_complete": ratio(time, times.get("none")),
                "target_ms": milliseconds(TARGET_SECONDS) if aimed else None,
                "verdict": verdict(time, TARGET_SECONDS, disturbed=disturbance(samples))
                if aimed
                else "information",
                "disturbed": disturbance(samples),
            }
        )
    return rows


def diagonal_table(shape: tuple[int, int, int], repeats: int) -> list[Row]:
    rows = []
    for holes in ("30 % at random", "70 % at random"):
        same = {"shape": shape, "holes": holes}
        ours = {**same, "kind": "diag", "threads": THREADS}
        complete = {**ours, "holes": "none"}
        masked = {**same, "threads": THREADS}
        contestants = [
            Contestant("ours", set_up_ours, {**ours, "extra": 20}),
            Contestant("complete", set_up_ours, {**complete, "extra": 20}),
            Contestant("StepMix", set_up_stepmix, same, THREADS, repeats=3),
            Contestant("pomegranate", set_up_pomegranate, masked, THREADS, repeats=3),
        ]
        samples = race(contestants, repeats)
        times = {k: v.median for k, v in samples.items()}
        rows.append(
            {
                "covariance": "diag",
                "n,d,K": "{},{},{}".format(*shape),
                "holes": holes,
                "ours_ms": milliseconds(times.get("ours")),
                "StepMix_ms": milliseconds(times.get("StepMix")),
                "pomegranate_float32_ms": milliseconds(times.get("pomegranate")),
                "times_complete": ratio(times.get("ours"), times.get("complete")),
                "StepMix_to_ours": ratio(times.get("StepMix"), times.get("ours")),
                "pomegranate_to_ours": ratio(times.get("pomegranate"), times.get("ours")),
                "disturbed": disturbance(samples),
            }
        )
    return rows


def run(options: Options) -> None:
    repeats = 2 if options.quick else 7
    shrink = 10 if options.quick else 1
    rows = full_table((FULL[0] // shrink, *FULL[1:]), repeats)
    say(
        f"One EM iteration with holes, full covariances, float64, {THREADS} threads",
        {
            "times_complete": "time as a multiple of that on complete rows",
            "disturbed": DISTURBED,
        },
    )
    print_table(rows)
    write_table("em_missing_full", rows, options)
    rows = diagonal_table((DIAGONAL[0] // shrink, *DIAGONAL[1:]), repeats)
    say("One EM iteration with holes, diagonal covariances, ours and StepMix in float64")
    print_table(rows)
    write_table("em_missing_diag", rows, options, PACKAGES)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
