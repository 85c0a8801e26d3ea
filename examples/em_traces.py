"""What EM does from different starts: maxima that are not the best, and slow ends.

Nine groups of rows with holes. Each line is the trace of one start.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, GREY, RED, Options, finish, read_options
from sklearn.exceptions import ConvergenceWarning

from hybridmix import MixtureDensity

N_ROWS, HOLES, N_STARTS = 60, 0.3, 12
CENTRES = [(3 * i, 3 * j) for i in range(3) for j in range(3)]


def draw_table(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(centre, 0.7, (N_ROWS, 2)) for centre in CENTRES])
    X[rng.random(X.shape) < HOLES] = np.nan
    return X


def trace_of(X: np.ndarray, seed: int) -> np.ndarray:
    model = MixtureDensity(
        len(CENTRES),
        covariance_type="full",
        init="k-means++",
        tol=1e-7,
        max_iter=400,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit(X).trace_)


def main(options: Options) -> None:
    X = draw_table(1)
    traces = [trace_of(X, seed) for seed in range(4 if options.quick else N_STARTS)]
    best = max(trace[-1] for trace in traces)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6))
    for trace in traces:
        reached = best - trace[-1] < 1e-4
        color = BLUE if reached else RED
        left.plot(trace, color=color, linewidth=1.2)
        if reached:
            gap = np.maximum(best - trace, 1e-9)
            right.semilogy(gap, color=BLUE, linewidth=1.2)
        print(f"{trace[-1]:.4f} after {len(trace) - 1} iterations")
    left.plot([], [], color=BLUE, label="the best maximum")
    left.plot([], [], color=RED, label="others")
    left.legend(loc="lower right")
    left.set(xlabel="iteration", xscale="symlog", ylim=(best - 0.15, best + 0.01))
    left.set_title("mean log-likelihood from different starts")
    right.axhline(1e-4, color=GREY, linestyle=":", linewidth=1.0)
    right.set(xlabel="iteration", ylim=(1e-7, 1.0))
    right.set_title("what is missing to the best value")
    finish(figure, "em_traces", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
