"""Feature selection by switches, on wide tables, against L1 penalties.

Four parts (``--parts``), each with its own file of results:

- ``designs``: 200 rows of 1000 normal columns, 20 of which matter, with independent
  columns and with neighbours that have a correlation of 0.7; 2000 test rows. Errors,
  areas under the ROC curve of the ranking (does it place the 20 columns first?) and
  processor seconds, selection of settings included.
- ``times``: one fit on 1000 x 10,000, next to liblinear's L1 logistic regression.
- ``genes``: colon (42 training rows) and golub (38), random splits, and golub's official
  split. Preprocessing is the usual one: logarithms, for golub after clipping and leaving
  out genes that hardly vary.
- ``splice``: the two kinds of splice sites, 200 training rows, with rivals.

MED is `MEDClassifier` with switches: one fit with fixed settings, and settings chosen by
five inner folds. The selector is `MEDFeatureSelector()` with its defaults, followed by
logistic regression with its defaults on the columns that it keeps, or on the best 50.

The fixed settings were found on seeds 0 to 9 of the designs and on splits 0 to 14 of the
genes; the defaults of the selector on seeds 0 to 3. Designs are reported on seeds 100 to
119, genes on both splits 0 to 14 and splits 200 to 214, splice on splits 100 to 109. The
grid of the genes is the second one: that of the designs was tried on splits 0 to 14 and
100 to 114, and had errors of 16.0 and 18.7 % on colon, 5.3 and 5.5 % on golub.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    DEFAULT_RESULTS,
    Options,
    Row,
    add_options,
    load_arrays,
    load_frame,
    load_xy,
    means_of,
    print_table,
    say,
    write_table,
)
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from hybridmix import MEDClassifier, MEDFeatureSelector

PARTS = ("designs", "times", "genes", "splice")
N_TRAIN, N_TEST, N_COLUMNS, N_RELEVANT = 200, 2000, 1000, 20
CORRELATION = 0.7
DESIGN_SEEDS, GENE_SEEDS = range(100, 120), (*range(15), *range(200, 215))
SPLICE_SEEDS = range(100, 110)
GRID = {"inclusion": [1e-2, 1e-3, 1e-5], "margin": [3.0, 10.0], "C": [0.1, 0.3, 1.0]}
GENE_GRID = {"inclusion": [1e-2, 1e-3, 1e-5], "margin": [1.0, 10.0], "C": [1.0]}
SPLICE_GRID = {
    "inclusion": [1.0, 0.1, 1e-2, 1e-3, 1e-5],
    "margin": [1.0, 3.0],
    "C": [0.1, 0.3, 1.0, 3.0],
}
BASES = {
    **{base: np.eye(4)[place] for place, base in enumerate("ACGT")},
    "N": np.full(4, 0.25),
    "D": np.array([1, 0, 1, 1]) / 3,
    "S": np.array([0, 0.5, 0.5, 0]),
    "R": np.array([0.5, 0, 0.5, 0]),
}

Data = tuple[np.ndarray, np.ndarray]


# Contestants ----------------------------------------------------------------------


def sharp_accuracy(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Score by accuracy; outputs decide between settings that make equal errors."""
    outputs = model.decision_function(X) * np.where(y == model.classes_[1], 1.0, -1.0)
    scale = np.abs(outputs).mean() + 1e-12
    return float(np.mean(outputs > 0) - 1e-3 * np.logaddexp(0, -outputs / scale).mean())


def folds() -> StratifiedKFold:
    return StratifiedKFold(5, shuffle=True, random_state=0)


def searched(model: Any, grid: dict[str, Any]) -> GridSearchCV:
    return GridSearchCV(model, grid, scoring=sharp_accuracy, cv=folds())


def med(**options: Any) -> MEDClassifier:
    return MEDClassifier(calibrate=False, **options)


def l1_logistic() -> LogisticRegressionCV:
    return LogisticRegressionCV(
        Cs=10, penalty="l1", solver="liblinear", cv=folds(), random_state=0
    )


def contestants(fixed_c: float, grid: dict[str, Any]) -> dict[str, Any]:
    """Return all contestants, for standardised columns."""
    selector = MEDFeatureSelector()
    return {
        "MED, one fit": med(inclusion=1e-3, margin=10.0, C=fixed_c),
        "MED, inner folds": searched(med(), grid),
        "selector + logistic": make_pipeline(selector, LogisticRegression()),
        "selector, 50 columns + logistic": make_pipeline(
            MEDFeatureSelector(n_features_to_select=50), LogisticRegression()
        ),
        "L1 logistic, inner folds": l1_logistic(),
        "L1 SVC, inner folds": GridSearchCV(
            LinearSVC(penalty="l1", dual=False, random_state=0),
            {"C": np.geomspace(0.01, 10, 10)},
            cv=5,
        ),
        "SVC": SVC(kernel="linear"),
    }


def scores_of(model: Any) -> np.ndarray:
    """Return what columns are ranked by: the size of their weights."""
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "steps"):
        return model[0].scores_
    return np.abs(model.coef_[0])


def measured(model: Any, train: Data, test: Data) -> tuple[Any, Row]:
    """Train a model; return it with its error and the processor time it took."""
    fresh = clone(model)
    start = time.process_time()
    fresh.fit(*train)
    seconds = time.process_time() - start
    error = float(np.mean(fresh.predict(test[0]) != test[1]))
    return fresh, {"error": error, "seconds": seconds}


def standardised(train: Data, test: Data) -> tuple[Data, Data]:
    scaler = StandardScaler().fit(train[0])
    return (scaler.transform(train[0]), train[1]), (scaler.transform(test[0]), test[1])


# Parts ----------------------------------------------------------------------------


def design(correlated: bool, seed: int, n_columns: int = N_COLUMNS) -> Any:
    """Draw rows whose label depends on 20 columns, and which columns these are."""
    rng = np.random.default_rng(seed)
    weights = np.zeros(n_columns)
    places = rng.permutation(n_columns)[:N_RELEVANT]
    weights[places] = rng.choice([-1, 1], N_RELEVANT) * rng.uniform(0.5, 1.5, N_RELEVANT)
    X = rng.normal(size=(N_TRAIN + N_TEST, n_columns))
    if correlated:
        rest = np.sqrt(1.0 - CORRELATION**2)
        for j in range(1, n_columns):
            X[:, j] = CORRELATION * X[:, j - 1] + rest * X[:, j]
    y = (X @ weights + rng.normal(size=len(X)) > 0).astype(int)
    return (X[:N_TRAIN], y[:N_TRAIN]), (X[N_TRAIN:], y[N_TRAIN:]), weights != 0


def run_designs(options: Options) -> list[Row]:
    rows = []
    for seed in DESIGN_SEEDS[: 2 if options.quick else None]:
        for correlated in (False, True):
            train, test, relevant = design(correlated, seed)
            train, test = standardised(train, test)
            for name, model in contestants(0.3, GRID).items():
                fitted, row = measured(model, train, test)
                row["auc"] = roc_auc_score(relevant, scores_of(fitted))
                kind = "correlated" if correlated else "independent"
                rows.append({"design": kind, "model": name, "seed": seed, **row})
    return rows


def run_times(options: Options) -> list[Row]:
    """Time single fits; figures are medians of processor seconds."""
    rng = np.random.default_rng(0)
    shapes = [(200, 1000), (1000, 10_000)]
    rows = []
    for n, p in shapes[: 1 if options.quick else None]:
        X = rng.normal(size=(n, p))
        y = (X[:, :N_RELEVANT].sum(axis=1) + rng.normal(size=n) > 0).astype(int)
        timed = {
            "MED, one fit": med(inclusion=1e-3, margin=10.0, C=0.3),
            "selector": MEDFeatureSelector(),
            "L1 logistic, C=0.1": LogisticRegression(
                penalty="l1", solver="liblinear", C=0.1
            ),
            "L1 logistic, C=1": LogisticRegression(penalty="l1", solver="liblinear"),
        }
        taken: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(2 if options.quick else 7):
            for name, model in timed.items():
                start = time.process_time()
                clone(model).fit(X, y)
                taken[name].append(time.process_time() - start)
        for name, seconds in taken.items():
            median = statistics.median(seconds)
            rows.append({"n": n, "p": p, "model": name, "seconds": median})
    return rows


def genes(data: Path) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Return tables of genes: rows, labels and the number of training rows."""
    X, y = load_xy(data, "colon")
    found = {"colon": (np.log(X), y.astype(int), 42)}
    X, y = load_xy(data, "golub")
    X = np.clip(X, 100, 16000)
    low, high = X.min(axis=0), X.max(axis=0)
    varied = (high / low > 5) & (high - low > 500)
    return {**found, "golub": (np.log10(X[:, varied]), y.astype(int), 38)}


def run_genes(options: Options) -> list[Row]:
    rows = []
    seeds: Iterable[int] = GENE_SEEDS[:2] if options.quick else GENE_SEEDS
    for table, (X, y, n_train) in genes(options.data).items():
        splits = [
            (
                f"{seed // 100 * 100}+",
                seed,
                np.random.default_rng(seed).permutation(len(y)),
            )
            for seed in seeds
        ]
        if table == "golub":
            # The training rows come first in the file.
            n_official = len(load_arrays(options.data, "golub")["y_train"])
            assert n_official == n_train
            splits.append(("official", -1, np.arange(len(y))))
        for kind, seed, order in splits:
            own, others = order[:n_train], order[n_train:]
            train, test = standardised((X[own], y[own]), (X[others], y[others]))
            for name, model in contestants(1.0, GENE_GRID).items():
                _, row = measured(model, train, test)
                rows.append(
                    {"table": table, "splits": kind, "model": name, "seed": seed, **row}
                )
    return rows


def run_splice(options: Options) -> list[Row]:
    frame = load_frame(options.data, "splice")
    label = frame.pop("class").astype(str).str.strip().to_numpy()
    sites = label != "N"
    cells = frame.to_numpy()[sites]
    X = np.array([np.concatenate([BASES[str(b).strip()] for b in row]) for row in cells])
    y = (label[sites] == "IE").astype(int)
    grid = {"C": np.geomspace(0.01, 10, 7)}
    rivals: dict[str, Any] = {
        "MED, inner folds": searched(med(), SPLICE_GRID),
        "MED without switches, inner folds": searched(
            med(), {k: v for k, v in SPLICE_GRID.items() if k != "inclusion"}
        ),
        "SVC, inner folds": searched(SVC(kernel="linear"), grid),
        "L1 logistic, inner folds": l1_logistic(),
        "selector + logistic": make_pipeline(MEDFeatureSelector(), LogisticRegression()),
        "naive Bayes": BernoulliNB(),
    }
    rows = []
    for seed in SPLICE_SEEDS[: 1 if options.quick else None]:
        order = np.random.default_rng(seed).permutation(len(y))
        own, others = order[:200], order[200:]
        for name, model in rivals.items():
            _, row = measured(model, (X[own], y[own]), (X[others], y[others]))
            row["wrong"] = round(row["error"] * len(others))
            rows.append({"model": name, "seed": seed, "n_test": len(others), **row})
    return rows


RUNS: dict[str, tuple[Callable[[Options], list[Row]], Sequence[str], Sequence[str]]] = {
    "designs": (run_designs, ("design", "model"), ("error", "auc", "seconds")),
    "times": (run_times, ("n", "p", "model"), ("seconds",)),
    "genes": (run_genes, ("table", "splits", "model"), ("error", "seconds")),
    "splice": (run_splice, ("model",), ("wrong", "error", "seconds")),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parsed = parser.parse_args(arguments)
    results = parsed.results or (None if parsed.quick else DEFAULT_RESULTS)
    options = Options(parsed.data, results, parsed.quick)
    warnings.simplefilter("ignore")
    for part in parsed.parts:
        run, keys, values = RUNS[part]
        rows = run(options)
        say(f"Selection: {part}, means over seeds")
        print_table(means_of(rows, keys, values))
        write_table(f"med_selection_{part}", rows, options)


if __name__ == "__main__":
    main()
