"""Several tasks that share features, against tasks apart.

Two parts (``--parts``), each with its own file of results:

- ``generated``: 8 tasks of 40 rows and 200 columns, the same 10 of which matter, with
  other weights in each task; 1000 test rows per task. Errors are means over tasks.
- ``dermatology``: six classes, each against the rest, as six tasks on the same 200
  training rows; errors are numbers of wrong binary decisions on the 166 test rows, 996 in
  all. The protocol is that of Jebara (2004), whose splits are not known.

MED is `MEDMultiTaskClassifier` with shared and with separate switches: its defaults, and
settings by five folds within the training rows. Rivals are trained task by task: L1
logistic regression by five folds, and linear SVC.

Defaults were chosen on seeds 0 to 3 of the generated tasks. Reported are seeds 100 to
119, and splits 100 to 104 of dermatology.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import (
    DEFAULT_RESULTS,
    Options,
    Row,
    add_options,
    load_frame,
    means_of,
    print_table,
    say,
    write_table,
)
from sklearn.base import clone
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hybridmix import MEDMultiTaskClassifier

PARTS = ("generated", "dermatology")
SEEDS, SPLITS = range(100, 120), range(100, 105)
N_TASKS, N_ROWS, N_TEST, N_COLUMNS, N_RELEVANT = 8, 40, 1000, 200, 10
N_DERMATOLOGY = 200
GRID = {"inclusion": [1e-2, 1e-3, 1e-5], "margin": [1.0, 3.0, 10.0], "C": [0.3, 0.6]}
DERMATOLOGY_GRID = {
    "inclusion": [1.0, 0.1, 1e-3, 1e-5],
    "margin": [1.0, 3.0],
    "C": [0.3, 1.0],
}

Folds = list[tuple[np.ndarray, np.ndarray]]
Tasks = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, labels -1 and 1, tasks


def chosen(
    model: MEDMultiTaskClassifier, grid: dict[str, Any], train: Tasks, folds: Folds
) -> Any:
    """Return the model with the settings that are best on held-out folds."""
    X, y, task = train
    best: tuple[float, Any] = (-np.inf, None)
    for settings in ParameterGrid(grid):
        score = 0.0
        for own, held in folds:
            fitted = clone(model).set_params(**settings)
            fitted.fit(X[own], y[own], task=task[own])
            outputs = y[held] * fitted.decision_function(X[held], task=task[held])
            scale = np.abs(outputs).mean() + 1e-12
            score += (
                np.mean(outputs > 0) - 1e-3 * np.logaddexp(0, -outputs / scale).mean()
            )
        best = max(best, (score, settings), key=lambda pair: pair[0])
    return clone(model).set_params(**best[1])


def five_folds(strata: np.ndarray) -> Folds:
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    return list(splitter.split(strata, strata))


def task_by_task(model: Any, train: Tasks, test: Tasks) -> np.ndarray:
    """Train a model on each task; return the predictions for the test rows."""
    predicted = np.empty(len(test[1]))
    for number in np.unique(train[2]):
        own, others = train[2] == number, test[2] == number
        fitted = clone(model).fit(train[0][own], train[1][own])
        predicted[others] = fitted.predict(test[0][others])
    return predicted


def l1_logistic() -> LogisticRegressionCV:
    return LogisticRegressionCV(
        Cs=8, penalty="l1", solver="liblinear", cv=5, random_state=0
    )


def contest(train: Tasks, test: Tasks, grid: dict[str, Any], folds: Folds) -> list[Row]:
    """Return errors and processor seconds of all contestants."""
    rows = []

    def record(name: str, predict: Callable[[], np.ndarray]) -> None:
        start = time.process_time()
        wrong = predict() != test[1]
        seconds = time.process_time() - start
        rows.append(
            {
                "model": name,
                "error": float(wrong.mean()),
                "wrong": int(wrong.sum()),
                "seconds": seconds,
            }
        )

    for shared in (True, False):
        model = MEDMultiTaskClassifier(shared=shared)
        kind = "shared" if shared else "separate"

        def predict(model: Any) -> np.ndarray:
            fitted = model.fit(train[0], train[1], task=train[2])
            return fitted.predict(test[0], task=test[2])

        record(f"MED, {kind}, defaults", lambda own=model: predict(own))
        record(
            f"MED, {kind}, inner folds",
            lambda own=model: predict(chosen(own, grid, train, folds)),
        )
    record("L1 logistic, inner folds", lambda: task_by_task(l1_logistic(), train, test))
    record("SVC", lambda: task_by_task(SVC(kernel="linear"), train, test))
    return rows


def generated(seed: int) -> tuple[Tasks, Tasks]:
    rng = np.random.default_rng(seed)
    places = rng.permutation(N_COLUMNS)[:N_RELEVANT]
    parts: list[list[Any]] = [[], []]
    for number in range(N_TASKS):
        weights = np.zeros(N_COLUMNS)
        weights[places] = 1.5 * rng.normal(size=N_RELEVANT)
        X = rng.normal(size=(N_ROWS + N_TEST, N_COLUMNS))
        y = np.where(X @ weights + 0.5 * rng.normal(size=len(X)) > 0, 1.0, -1.0)
        for part, rows in zip(parts, (slice(N_ROWS), slice(N_ROWS, None)), strict=True):
            part.append((X[rows], y[rows], np.full(len(y[rows]), number)))
    train, test = (tuple(map(np.concatenate, zip(*p, strict=True))) for p in parts)
    return train, test  # type: ignore[return-value]


def run_generated(options: Options) -> list[Row]:
    rows = []
    for seed in SEEDS[: 1 if options.quick else None]:
        train, test = generated(seed)
        folds = five_folds(2 * train[2] + (train[1] > 0))
        rows += [{"seed": seed, **row} for row in contest(train, test, GRID, folds)]
    return rows


def one_against_rest(X: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> Tasks:
    """Return the rows once for each class, which is the task."""
    y = np.concatenate([np.where(labels == c, 1.0, -1.0) for c in classes])
    return np.tile(X, (len(classes), 1)), y, np.repeat(np.arange(len(classes)), len(X))


def run_dermatology(options: Options) -> list[Row]:
    frame = load_frame(options.data, "dermatology")
    labels = frame.pop("class").astype(str).to_numpy()
    table = frame.astype(float)
    X, classes = table.fillna(table.mean()).to_numpy(), np.unique(labels)
    rows = []
    for seed in SPLITS[: 1 if options.quick else None]:
        order = np.random.default_rng(seed).permutation(len(X))
        own, others = order[:N_DERMATOLOGY], order[N_DERMATOLOGY:]
        scaler = StandardScaler().fit(X[own])
        train = one_against_rest(scaler.transform(X[own]), labels[own], classes)
        test = one_against_rest(scaler.transform(X[others]), labels[others], classes)
        # A row is in the same fold in all tasks.
        shifts = N_DERMATOLOGY * np.arange(len(classes))[:, None]
        folds = [
            ((kept + shifts).ravel(), (held + shifts).ravel())
            for kept, held in five_folds(labels[own])
        ]
        found = contest(train, test, DERMATOLOGY_GRID, folds)
        rows += [{"seed": seed, **row} for row in found]
    return rows


RUNS: dict[str, tuple[Callable[[Options], list[Row]], Sequence[str]]] = {
    "generated": (run_generated, ("model",)),
    "dermatology": (run_dermatology, ("model",)),
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
        run, keys = RUNS[part]
        rows = run(options)
        say(f"Tasks: {part}, means over seeds")
        print_table(means_of(rows, keys, ("error", "wrong", "seconds")))
        write_table(f"med_tasks_{part}", rows, options)


if __name__ == "__main__":
    main()
