"""Kernel machines against scikit-learn's SVC, which is LIBSVM.

Both solve the same problem (smoothness 0: the support vector machine) to the tolerance
1e-3 that LIBSVM stops at, with one thread and kernel caches of the same size. Ours goes
on until the relative duality gap is below that tolerance as well. Seconds are those of
the processor, which other processes disturb less; those of the clock are next to them.
Test rows are as many as training rows, at most 10,000.

The second table has the cost of other solvers of one problem with a Gaussian bias: one
axis at a time, chosen greedily, at random or by learned transitions, and a general
method over the dense matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import (
    Contestant,
    Measure,
    Options,
    Row,
    measured_alone,
    parse_options,
    print_table,
    race,
    ratio,
    say,
    verdict,
    write_table,
)

from hybridmix.med.constraints import SignedRows
from hybridmix.med.dual import Dual
from hybridmix.med.gram import Gram
from hybridmix.med.kernels import RBFKernel, kernel_outputs
from hybridmix.med.margins import ExponentialMargin
from hybridmix.med.models.linear import KernelModel
from hybridmix.med.solvers.axes import maximise_by_axes
from hybridmix.med.solvers.pairs import maximise_by_pairs
from hybridmix.med.solvers.single_output import KernelSolution

# Rows, columns, C; how many times faster than LIBSVM.
CASES = [
    (2_000, 8, 1.0, None),
    (10_000, 8, 1.0, 2.3),
    (10_000, 8, 10.0, 1 / 1.25),
    (10_000, 50, 1.0, 2.3),
    (10_000, 50, 10.0, 1 / 1.25),
    (20_000, 8, 1.0, 3.0),
]
CACHE = 1000.0
TOLERANCE = 1e-3
MOST_TEST_ROWS = 10_000


def labelled(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows, and signs of a smooth function of three directions with noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, p))
    directions = np.random.default_rng(99).normal(size=(p, 3)) / np.sqrt(p)
    a, b, c = (X @ directions).T
    score = np.sin(2.0 * a) + b * c + 0.5 * b + 0.3 * generator.normal(size=n)
    return X, np.where(score > 0.0, 1.0, -1.0)


def timed(function: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    function()
    return clock() - start


CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}


def fit_pairs(
    X: np.ndarray, y: np.ndarray, C: float, smoothness: float
) -> KernelSolution:
    gram = Gram(RBFKernel(1.0 / X.shape[1]), X, CACHE)
    prior = ExponentialMargin(C, smoothness, 1.0)
    return maximise_by_pairs(gram, SignedRows(y), prior, tol=TOLERANCE)


def set_up_ours(n: int, p: int, C: float, clock: str, smoothness: float = 0.0) -> Measure:
    X, y = labelled(n, p)
    return lambda: timed(lambda: fit_pairs(X, y, C, smoothness), CLOCKS[clock])


def machine(p: int, C: float) -> Any:
    from sklearn.svm import SVC

    return SVC(C=C, gamma=1.0 / p, cache_size=CACHE, tol=TOLERANCE)


def set_up_libsvm(n: int, p: int, C: float, clock: str) -> Measure:
    # Built here, so that importing scikit-learn does not count.
    (X, y), unfitted = labelled(n, p), machine(p, C)
    return lambda: timed(lambda: unfitted.fit(X, y), CLOCKS[clock])


def set_up_our_predictions(n: int, p: int, C: float) -> Measure:
    X, y = labelled(n, p)
    found = fit_pairs(X, y, C, 0.0)
    support = np.flatnonzero(found.multipliers)
    weights = (y * found.multipliers)[None, support]
    Z, kernel = labelled(min(n, MOST_TEST_ROWS), p, seed=1)[0], RBFKernel(1.0 / p)
    rows = X[support]
    return lambda: timed(
        lambda: kernel_outputs(kernel, Z, rows, weights) + found.bias, time.process_time
    )


def set_up_their_predictions(n: int, p: int, C: float) -> Measure:
    X, y = labelled(n, p)
    fitted = machine(p, C).fit(X, y)
    Z = labelled(min(n, MOST_TEST_ROWS), p, seed=1)[0]
    return lambda: timed(lambda: fitted.decision_function(Z), time.process_time)


def agreement(n: int, p: int, C: float) -> Row:
    """Compare solutions: gap, support vectors, signs of test outputs."""
    X, y = labelled(n, p)
    Z = labelled(min(n, MOST_TEST_ROWS), p, seed=1)[0]
    found, theirs = fit_pairs(X, y, C, 0.0), machine(p, C).fit(X, y)
    weights = (y * found.multipliers)[None]
    outputs = kernel_outputs(RBFKernel(1.0 / p), Z, X, weights)[0] + found.bias
    decisions = theirs.decision_function(Z)
    return {
        "our_relative_gap": found.relative_gap,
        "our_steps": found.n_iter,
        "their_steps": int(theirs.n_iter_[0]),
        "our_support": int(np.count_nonzero(found.multipliers)),
        "their_support": len(theirs.support_),
        "equal_test_signs": float(np.mean(np.sign(outputs) == np.sign(decisions))),
    }


def compare(n: int, p: int, C: float, target: float | None, repeats: int) -> Row:
    shape = {"n": n, "p": p, "C": C}
    runners = [
        Contestant(f"{name}_{clock}", set_up, {**shape, "clock": clock}, 1)
        for clock in CLOCKS
        for name, set_up in (("ours", set_up_ours), ("libsvm", set_up_libsvm))
    ]
    smooth = {**shape, "clock": "cpu", "smoothness": 1.0}
    runners += [
        Contestant("ours_smooth_cpu", set_up_ours, smooth, 1, repeats=1, warm_ups=0),
        Contestant("ours_predict", set_up_our_predictions, shape, 1),
        Contestant("libsvm_predict", set_up_their_predictions, shape, 1),
    ]
    times = {
        name: sample.median for name, sample in race(runners, repeats, warm_ups=0).items()
    }
    faster = ratio(times.get("libsvm_cpu"), times.get("ours_cpu"))
    predicting = ratio(times.get("libsvm_predict"), times.get("ours_predict"))
    met = "information" if target is None else verdict(faster, target, True)
    return {
        **shape,
        "repeats": repeats,
        **{f"{runner.name}_s": times.get(runner.name) for runner in runners},
        "libsvm_to_ours": faster,
        "libsvm_to_ours_wall": ratio(times.get("libsvm_wall"), times.get("ours_wall")),
        "target": target,
        "verdict": met,
        "predict_libsvm_to_ours": predicting,
        "predict_verdict": verdict(predicting, 1.0, True),
        **agreement(n, p, C),
    }


# Other solvers --------------------------------------------------------------------


def set_up_axes(n: int, choice: str) -> Measure:
    X, y = labelled(n, 8)
    prior = ExponentialMargin(10.0, 1.0, 1.0)

    def fit() -> None:
        gram = Gram(RBFKernel(1.0 / 8), X, CACHE)
        maximise_by_axes(
            gram, SignedRows(y), prior, bias_variance=1.0, choice=choice, tol=TOLERANCE
        )

    return lambda: timed(fit, time.process_time)


def set_up_pairs(n: int) -> Measure:
    X, y = labelled(n, 8)
    return lambda: timed(lambda: fit_pairs(X, y, 10.0, 1.0), time.process_time)


def set_up_dense(n: int) -> Measure:
    """Set up L-BFGS-B over the multipliers, to a projected gradient of 1e-3."""
    from scipy.optimize import minimize

    X, y = labelled(n, 8)

    def fit() -> None:
        kernel = RBFKernel(1.0 / 8)
        model = KernelModel(kernel.between(X, X).astype(float))
        dual = Dual(
            model, SignedRows(y), ExponentialMargin(10.0, 1.0, 1.0), 1.0, np.zeros(1)
        )

        def objective(multipliers: np.ndarray) -> tuple[float, np.ndarray]:
            point = dual.at(multipliers)
            return -point.value, -point.gradient

        minimize(
            objective,
            np.full(n, 0.1),
            jac=True,
            bounds=[(0.0, 10.0 * (1.0 - 1e-9))] * n,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-13, "gtol": TOLERANCE},
        )

    return lambda: timed(fit, time.process_time)


def other_solvers(n: int) -> list[Row]:
    contestants = [
        Contestant("pairs, flat bias", set_up_pairs, {"n": n}, 1),
        Contestant("axes, greedy", set_up_axes, {"n": n, "choice": "greedy"}, 1),
        Contestant("axes, learned", set_up_axes, {"n": n, "choice": "learned"}, 1),
        Contestant("axes, random", set_up_axes, {"n": n, "choice": "random"}, 1),
        Contestant("dense L-BFGS-B", set_up_dense, {"n": n}, 1),
    ]
    return [
        {"solver": contestant.name, "n": n, "cpu_s": measured_alone(contestant)}
        for contestant in contestants
    ]


def run(options: Options) -> None:
    repeats = 1 if options.quick else 3
    cases: Sequence[tuple[int, int, float, float | None]] = CASES
    if options.quick:
        cases = [(300, p, C, None) for _, p, C, _ in CASES[:2]]
    rows = []
    for case in cases:
        rows.append(compare(*case, repeats))
        print_table(rows[-1:])
        write_table("med_kernels", rows, options, silent=True)
    say(
        "RBF kernels: ours and LIBSVM at tolerance 1e-3, one thread",
        {
            "libsvm_to_ours": "how many times faster we are, by processor time",
            "ours_smooth": "smoothness 1 instead of 0, for which LIBSVM has no answer",
            "predict": "outputs of test rows from the support rows",
        },
    )
    print_table(rows)
    write_table("med_kernels", rows, options)
    others = other_solvers(200 if options.quick else 2_000)
    say("Solvers of a smooth problem (C = 10, smoothness 1), all to 1e-3")
    print_table(others)
    write_table("med_kernels_solvers", others, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
