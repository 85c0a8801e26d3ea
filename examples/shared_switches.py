"""Tasks that share their features: errors by the number of rows per task.

Eight tasks of 200 columns, the same ten of which matter, with other weights in each task.
Switches that are shared find the columns from the rows of all tasks together; separate
ones, and L1 penalties, from those of one task.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, RED, Options, finish, fit_l1_logistic, read_options

from hybridmix import MEDMultiTaskClassifier

N_TASKS, N_COLUMNS, N_RELEVANT, N_TEST = 8, 200, 10, 500
SIZES = (20, 40, 80, 160)

Tasks = tuple[np.ndarray, np.ndarray, np.ndarray]


def draw_tasks(n_rows: int, seed: int) -> Tasks:
    """Return rows, labels and tasks; the first rows of a task are for training."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((N_TASKS, N_COLUMNS))
    weights[:, rng.permutation(N_COLUMNS)[:N_RELEVANT]] = rng.normal(
        size=(N_TASKS, N_RELEVANT)
    )
    task = np.repeat(np.arange(N_TASKS), n_rows + N_TEST)
    X = rng.normal(size=(len(task), N_COLUMNS))
    y = np.sum(X * weights[task], axis=1) + 0.3 * rng.normal(size=len(task)) > 0
    return X, y, task


def errors(n_rows: int, seed: int) -> dict[str, float]:
    X, y, task = draw_tasks(n_rows, seed)
    seen = np.arange(len(X)) % (n_rows + N_TEST) < n_rows
    found = {}
    for name, shared in (("shared switches", True), ("separate switches", False)):
        model = MEDMultiTaskClassifier(shared=shared)
        model.fit(X[seen], y[seen], task=task[seen])
        found[name] = 1.0 - model.score(X[~seen], y[~seen], task=task[~seen])
    wrong = []
    for number in range(N_TASKS):
        own = task == number
        l1 = fit_l1_logistic(X[own & seen], y[own & seen])
        wrong.append(1.0 - l1.score(X[own & ~seen], y[own & ~seen]))
    return {**found, "L1 logistic, cross-validated": float(np.mean(wrong))}


def main(options: Options) -> None:
    sizes, n_seeds = (SIZES[:2], 1) if options.quick else (SIZES, 5)
    looks = [(BLUE, "o-"), ("black", "^:"), (RED, "s--")]
    results = [[errors(n, seed) for seed in range(n_seeds)] for n in sizes]
    figure, axes = plt.subplots(figsize=(5.6, 3.9), layout="constrained")
    for name, (color, line) in zip(results[0][0], looks, strict=True):
        means = [np.mean([draw[name] for draw in draws]) for draws in results]
        axes.plot(sizes, means, line, color=color, label=name)
        print(name, *(f"{mean:.3f}" for mean in means))
    axes.set(xlabel="training rows per task", ylabel="test error", xscale="log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.legend()
    finish(figure, "shared_switches", options.save)


if __name__ == "__main__":
    main(read_options(__doc__ or ""))
