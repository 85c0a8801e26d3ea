"""Shapley values by exact marginals against shap's KernelExplainer.

Rows of real tables are explained by all subsets of their columns, which is the truth,
and by fewer subsets. KernelExplainer takes part twice: on a function of masks that hides
cells from the model, so that both estimate the same values, and as it is used on any
model, with a background of 100 rows that are mixed in. The last has another aim: it takes
columns for independent of each other. Its distance from the conditional values is due to
that more than to errors of estimation. Times are seconds of processor time per row,
with one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from common import (
    Options,
    Row,
    parse_options,
    print_table,
    rival,
    say,
    write_table,
)
from sklearn.datasets import load_breast_cancer, load_wine
from threadpoolctl import threadpool_limits

from hybridmix import HybridMixtureClassifier
from hybridmix.inspection import shapley_values

TABLES = {"wine": (load_wine, 13), "breast cancer": (load_breast_cancer, 16)}
MODELS = {
    "full": {"covariance_type": "full", "n_components": 1, "tradeoff": 10},
    "diag": {"covariance_type": "diag", "n_components": 4, "tradeoff": 10},
}
BUDGETS = (256, 1024, 4096)
N_ROWS, N_BACKGROUND, N_SEEDS = 10, 100, 3

Explain = Callable[[int], np.ndarray]


def ours(model: Any, rows: np.ndarray, budget: int) -> Explain:
    """Return a function of the seed that explains rows, (n, d, classes)."""
    return lambda seed: (
        shapley_values(model, rows, n_subsets=budget, random_state=seed).values
    )


def kernel_of_masks(shap: Any, model: Any, rows: np.ndarray, budget: int) -> Explain:
    """Let KernelExplainer hide cells of one row after the other."""

    def explained(row: np.ndarray) -> np.ndarray:
        def predict(masks: np.ndarray) -> np.ndarray:
            return model.predict_proba(np.where(masks > 0.5, row, np.nan))

        nothing, everything = np.zeros((1, len(row))), np.ones((1, len(row)))
        explainer = shap.KernelExplainer(predict, nothing)
        return quietly(explainer, everything, budget)[0]

    def explain(seed: int) -> np.ndarray:
        np.random.seed(seed)  # noqa: NPY002 - the generator that shap draws from
        return np.stack([explained(row) for row in rows])

    return explain


def kernel_of_rows(
    shap: Any, model: Any, rows: np.ndarray, background: np.ndarray, budget: int
) -> Explain:
    """Let KernelExplainer mix in rows of the background."""

    def explain(seed: int) -> np.ndarray:
        np.random.seed(seed)  # noqa: NPY002 - the generator that shap draws from
        explainer = shap.KernelExplainer(model.predict_proba, background)
        return quietly(explainer, rows, budget)

    return explain


def quietly(explainer: Any, rows: np.ndarray, budget: int) -> np.ndarray:
    """Estimate all columns: a selection of them would be another estimate."""
    return np.asarray(
        explainer.shap_values(rows, nsamples=budget, l1_reg=False, silent=True)
    )


def measured(explain: Explain, truth: np.ndarray, n_seeds: int) -> Row:
    """Return the error over seeds, and seconds per row."""
    start = time.process_time()
    found = [explain(seed) for seed in range(n_seeds)]
    seconds = (time.process_time() - start) / (n_seeds * len(truth))
    error = np.sqrt(np.mean([(one - truth) ** 2 for one in found]))
    return {"rmse": float(error), "seconds": seconds}


def table_rows(name: str, options: Options, shap: Any) -> Iterator[Row]:
    load, n_columns = TABLES[name]
    X, y = load(return_X_y=True)
    X = X[:, : 6 if options.quick else n_columns]
    budgets = (20,) if options.quick else BUDGETS
    n_seeds = 1 if options.quick else N_SEEDS
    order = np.random.default_rng(0).permutation(len(X))
    rows, background = X[order[:N_ROWS]], X[order[N_ROWS : N_ROWS + N_BACKGROUND]]
    for kind, settings in MODELS.items():
        model = HybridMixtureClassifier(**settings, random_state=0, n_jobs=1)
        model.fit(X[order[N_ROWS:]], y[order[N_ROWS:]])
        everything = 1 << X.shape[1]
        enumerate_all = ours(model, rows, everything)
        truth = enumerate_all(0)
        labels = {"table": name, "columns": X.shape[1], "covariances": kind}
        exact = measured(enumerate_all, truth, 1)
        yield {**labels, "method": "all subsets", "subsets": everything, **exact}
        for budget in budgets:
            contestants = {"hybridmix": ours(model, rows, budget)}
            if shap is not None:
                contestants["KernelExplainer, hidden cells"] = kernel_of_masks(
                    shap, model, rows, budget
                )
                contestants["KernelExplainer, background"] = kernel_of_rows(
                    shap, model, rows, background, budget
                )
            for method, explain in contestants.items():
                found = measured(explain, truth, n_seeds)
                yield {**labels, "method": method, "subsets": budget, **found}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(__doc__, arguments)
    shap = rival("shap")
    found: list[Row] = []
    with threadpool_limits(1):
        for name in TABLES:
            say(name)
            found.extend(table_rows(name, options, shap))
    print_table(found)
    write_table("shapley", found, options, ["shap"])


if __name__ == "__main__":
    main()
