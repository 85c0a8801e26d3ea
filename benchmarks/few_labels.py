"""Errors with few labels on MNIST-50, after Roth's thesis (its Tables B.7 and B.8).

The digits are those of the thesis: 50,000 in 50 principal components to train on, of
which N_l, drawn at random, have labels; all others are unlabelled. Errors are those of
the 10,000 test digits. Table B.8 keeps 5000 labels and varies the number N_u of
unlabelled digits; more of them contain the fewer.

The mixtures have full covariances, one component per class, the same options for all
numbers of labels, and see no validation rows. The weight of unlabelled rows is the one
that the estimator chooses by held-out labels. "pseudo-labels" goes on from the hybrid
with unlabelled rows: of the digits that it assigns to a class, the 95 % of the largest
gap between first and second log joint density get this class as their label, true labels
count five times, and a hybrid with four components per class learns from all. The support
vector machines see the labels only; the linear one takes its C from the 10,000 validation
digits, as in the thesis, where all methods choose by these.

``few_labels.csv`` has the means over draws of the labels, beside the thesis. Its
``seconds`` are those of one fit on one core of a machine that others use too; a fit of
pseudo-labels includes the fit that it goes on from, one of the linear machine all C.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    parse_options,
    print_table,
    say,
    verdict,
    write_table,
)
from pictures import image_folder, prepare_pictures, save
from roth_data import MNIST_TRAINING, Split, mnist50
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from hybridmix import HybridMixtureClassifier

UNLABELLED = -1
DRAWS = {500: 3, 1000: 1, 2500: 1, 5000: 3, 10_000: 1}
FIXED_LABELS = 5000
UNLABELLED_NUMBERS = (0, 5000, 10_000, 20_000, 45_000)
SEMI, LABELS_ONLY = "hybrid, all rows", "hybrid, labels only"
GENERATIVE, GENERATIVE_LABELS = "generative, all rows", "generative, labels only"
PSEUDO, LINEAR, KERNEL = "pseudo-labels", "linear SVM", "RBF SVM"
THESIS_LABELS = {
    LABELS_ONLY: {500: 18.67, 1000: 14.01, 2500: 9.22, 5000: 6.88, 10_000: 5.17},
    SEMI: {500: 13.94, 1000: 10.61, 2500: 7.14, 5000: 5.29, 10_000: 4.48},
    LINEAR: {500: 18.69, 1000: 13.14, 2500: 9.63, 5000: 8.31, 10_000: 7.64},
    KERNEL: {500: 14.38, 1000: 9.40, 2500: 6.01, 5000: 4.22, 10_000: 3.02},
}
THESIS_UNLABELLED = {0: 6.88, 5000: 6.47, 10_000: 6.73, 20_000: 5.84, 45_000: 5.29}
TARGETS = {500: 7.0, 5000: 3.5}

FIXED: dict[str, Any] = {
    "covariance_prior": 20.0,
    "tradeoff": 10.0,
    "loss": "hinge",
    "margin": "auto",
    "unlabelled_weight": "auto",
    "n_steps": 30,
    "class_prior": "uniform",
    "random_state": 0,
    "n_jobs": 1,
}
PSEUDO_FIXED: dict[str, Any] = {
    **FIXED,
    "n_components": 4,
    "covariance_prior": 100.0,
    "tradeoff": 1.0,
    "n_steps": 12,
    "unlabelled_weight": 0.1,
    "max_iter": 15,
}
PSEUDO_SHARE, TRUE_LABEL_WEIGHT = 0.95, 5.0
COST, LINEAR_COSTS = 10.0, (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Task:
    """Training rows of which some have labels; the labelled ones come first."""

    split: Split
    X: np.ndarray
    y: np.ndarray
    n_labels: int
    n_unlabelled: int
    draw: int

    @property
    def labelled(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows with a label, and their labels."""
        return self.X[: self.n_labels], self.y[: self.n_labels]


def draw_task(split: Split, n_labels: int, n_unlabelled: int, draw: int) -> Task:
    """Draw rows that have labels, and others without."""
    order = np.random.default_rng([draw, 50]).permutation(len(split.y))
    used = order[: n_labels + n_unlabelled]
    y = split.y[used].copy()
    y[n_labels:] = UNLABELLED
    return Task(split, split.X[used], y, n_labels, len(used) - n_labels, draw)


# Methods --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A trained model, and the seconds that training took."""

    model: Any
    seconds: float


def timed(train: Callable[[], Any]) -> Outcome:
    start = time.perf_counter()
    model = train()
    return Outcome(model, time.perf_counter() - start)


def mixture(objective: str, X: np.ndarray, y: np.ndarray) -> HybridMixtureClassifier:
    return HybridMixtureClassifier(objective, **FIXED).fit(X, y)


def pseudo_labels(model: HybridMixtureClassifier, X: np.ndarray) -> np.ndarray:
    """Label the rows that a model is surest of, the same share of every class."""
    joint = model.predict_joint_log_proba(X)
    best = joint.argmax(axis=1)
    ordered = np.partition(joint, -2, axis=1)
    gap = ordered[:, -1] - ordered[:, -2]
    labels = np.full(len(X), UNLABELLED)
    for number, label in enumerate(model.classes_):
        rows = np.flatnonzero(best == number)
        if len(rows):
            sure = gap[rows] >= np.quantile(gap[rows], 1.0 - PSEUDO_SHARE)
            labels[rows[sure]] = label
    return labels


def trained_on_pseudo_labels(
    model: HybridMixtureClassifier, task: Task
) -> HybridMixtureClassifier:
    labels = pseudo_labels(model, task.X)
    labels[: task.n_labels] = task.y[: task.n_labels]
    weights = np.ones(len(labels))
    weights[: task.n_labels] = TRUE_LABEL_WEIGHT
    larger = HybridMixtureClassifier("hybrid", **PSEUDO_FIXED)
    return larger.fit(task.X, labels, sample_weight=weights)


def linear_machine(task: Task) -> Any:
    """Train one machine for each pair of classes, as LIBSVM does."""
    X, y = task.labelled
    machines = [
        OneVsOneClassifier(LinearSVC(C=cost, random_state=0)).fit(X, y)
        for cost in LINEAR_COSTS
    ]
    return max(machines, key=lambda m: m.score(task.split.X_val, task.split.y_val))


def kernel_machine(task: Task) -> SVC:
    X, y = task.labelled
    return SVC(C=COST, gamma=1.0 / X.shape[1], cache_size=1000).fit(X, y)


def outcomes(task: Task) -> Iterator[tuple[str, Outcome]]:
    """Train all methods on one draw."""
    semi = timed(lambda: mixture("hybrid", task.X, task.y))
    yield SEMI, semi
    yield LABELS_ONLY, timed(lambda: mixture("hybrid", *task.labelled))
    yield GENERATIVE, timed(lambda: mixture("likelihood", task.X, task.y))
    yield GENERATIVE_LABELS, timed(lambda: mixture("likelihood", *task.labelled))
    last = timed(lambda: trained_on_pseudo_labels(semi.model, task))
    yield PSEUDO, Outcome(last.model, semi.seconds + last.seconds)
    yield LINEAR, timed(lambda: linear_machine(task))
    yield KERNEL, timed(lambda: kernel_machine(task))


# Tables ---------------------------------------------------------------------------------


def measured(task: Task, method: str, outcome: Outcome) -> Row:
    """Return the figures of one draw."""
    wrong = outcome.model.predict(task.split.X_test) != task.split.y_test
    learns_from_all = method not in (LABELS_ONLY, GENERATIVE_LABELS, LINEAR, KERNEL)
    row = {
        "labels": task.n_labels,
        "unlabelled": task.n_unlabelled if learns_from_all else 0,
        "method": method,
        "draw": task.draw,
        "error": 100.0 * float(np.mean(wrong)),
        "seconds": outcome.seconds,
        "weight": getattr(outcome.model, "unlabelled_weight_", None),
    }
    print_table([row])
    return row


def thesis(labels: int, unlabelled: int, method: str) -> float | None:
    if method == SEMI and labels == FIXED_LABELS:
        return THESIS_UNLABELLED.get(unlabelled)
    return THESIS_LABELS.get(method, {}).get(labels)


def summary(rows: Sequence[Row]) -> list[Row]:
    """Average over draws; the weights of unlabelled rows are listed."""
    groups: dict[tuple[int, int, str], list[Row]] = {}
    for row in rows:
        key = (row["labels"], row["unlabelled"], row["method"])
        groups.setdefault(key, []).append(row)
    table = []
    for (labels, unlabelled, method), members in groups.items():
        errors = [row["error"] for row in members]
        weights = [f"{row['weight']:.3g}" for row in members if unlabelled]
        table.append(
            {
                "labels": labels,
                "unlabelled": unlabelled,
                "method": method,
                "draws": len(members),
                "error": float(np.mean(errors)),
                "sd": float(np.std(errors, ddof=1)) if len(errors) > 1 else None,
                "thesis": thesis(labels, unlabelled, method),
                "seconds": float(np.mean([row["seconds"] for row in members])),
                "unlabelled_weight": " ".join(weights),
            }
        )
    return table


def sized(n_rows: int, quick: bool) -> int:
    """Return a number of rows, or the one of a smoke run."""
    return n_rows // 25 if quick else n_rows


def first_table(split: Split, quick: bool) -> Iterator[Row]:
    """Yield what Table B.7 asks for: all methods, for numbers of labels."""
    scaled = split.scaled()
    for n_labels, n_draws in ({5000: 1} if quick else DRAWS).items():
        for draw in range(n_draws):
            wanted = sized(n_labels, quick)
            # One factor for all columns changes no mixture, and machines need it.
            task = draw_task(scaled, wanted, len(split.y) - wanted, draw)
            for method, outcome in outcomes(task):
                yield measured(task, method, outcome)


def second_table(split: Split, quick: bool) -> Iterator[Row]:
    """Yield what Table B.8 asks for beyond: fewer unlabelled rows."""
    scaled = split.scaled()
    labels = sized(FIXED_LABELS, quick)
    for draw in range(1 if quick else DRAWS[FIXED_LABELS]):
        # The first and the last number are those of the other table.
        for number in UNLABELLED_NUMBERS[1:2] if quick else UNLABELLED_NUMBERS[1:-1]:
            task = draw_task(scaled, labels, sized(number, quick), draw)
            outcome = timed(lambda task=task: mixture("hybrid", task.X, task.y))
            yield measured(task, SEMI, outcome)


def judge(table: Sequence[Row]) -> None:
    """Say whether the targets are met, and whether unlabelled rows ever harm."""
    errors = {(row["labels"], row["method"], row["unlabelled"]): row for row in table}
    for (labels, method, number), row in errors.items():
        if (
            method in (SEMI, PSEUDO)
            and labels in TARGETS
            and labels + number == MNIST_TRAINING
        ):
            told = verdict(row["error"], TARGETS[labels])
            print(f"{labels} labels, {method}: {row['error']:.2f} %, {told}")
    for with_rows, without in ((SEMI, LABELS_ONLY), (GENERATIVE, GENERATIVE_LABELS)):
        for (labels, method, number), row in errors.items():
            rival = errors.get((labels, without, 0))
            if method == with_rows and rival and row["error"] > rival["error"]:
                print(f"{labels} labels: {number} unlabelled rows harm: {method}")


# Picture --------------------------------------------------------------------------------

# Colours of Okabe and Ito. Lines of the thesis are broken.
LINES = {
    LABELS_ONLY: ("#56b4e9", "hybrid, labels only"),
    SEMI: ("#0072b2", "hybrid, with unlabelled rows"),
    PSEUDO: ("#009e73", "and with pseudo-labels"),
    KERNEL: ("#d55e00", "RBF SVM, labels only"),
}


def draw_errors(table: Sequence[Row], options: Options) -> None:
    """Draw errors against numbers of labelled, and of unlabelled rows."""
    folder = image_folder(options)
    if folder is None:
        return
    plt = prepare_pictures()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), width_ratios=[3, 2])
    for method, (color, name) in LINES.items():
        rows = [
            row
            for row in table
            if row["method"] == method
            and row["unlabelled"] in (0, MNIST_TRAINING - row["labels"])
        ]
        labels = [row["labels"] for row in rows]
        left.plot(labels, [row["error"] for row in rows], "o-", color=color, label=name)
    for method, color, name in (
        (SEMI, "#8c8c8c", "thesis, with unlabelled rows"),
        (KERNEL, "#e69f00", "thesis, RBF SVM"),
    ):
        found = THESIS_LABELS[method]
        left.plot(list(found), list(found.values()), "s--", color=color, label=name, ms=4)
    left.set(
        xscale="log",
        xlabel="labelled rows, of 50,000",
        ylabel="test error in per cent",
        title="MNIST-50 with few labels",
        ylim=(0, None),
    )
    left.set_xticks(list(DRAWS), [f"{number:,}" for number in DRAWS])
    left.minorticks_off()
    left.legend(fontsize=8)
    draw_unlabelled(right, table)
    save(figure, "few_labels", folder)


def draw_unlabelled(axes: Any, table: Sequence[Row]) -> None:
    """Draw errors with 5000 labels against the number of unlabelled rows."""
    errors = {
        row["unlabelled"]: row["error"]
        for row in table
        if row["labels"] == FIXED_LABELS and row["method"] in (SEMI, LABELS_ONLY)
    }
    numbers = sorted(errors)
    axes.plot(
        numbers,
        [errors[n] for n in numbers],
        "o-",
        color=LINES[SEMI][0],
        label="hybrid",
    )
    axes.plot(
        list(THESIS_UNLABELLED),
        list(THESIS_UNLABELLED.values()),
        "s--",
        color="#8c8c8c",
        label="thesis",
        ms=4,
    )
    axes.set(
        xlabel="unlabelled rows",
        title="5000 labels",
        ylim=(0, None),
    )
    axes.set_xticks([0, 20_000, 40_000], ["0", "20,000", "40,000"])
    axes.legend(fontsize=8)


def run(options: Options) -> None:
    try:
        split = mnist50(options.data)
    except MissingDataError as problem:
        print(f"LEFT OUT: {problem}", flush=True)
        return
    split = split.thinned(2000) if options.quick else split
    rows = [*first_table(split, options.quick), *second_table(split, options.quick)]
    table = summary(rows)
    say("Test errors in per cent with few labels, means over draws of the labels")
    print_table(table)
    judge(table)
    write_table("few_labels", table, options)
    draw_errors(table, options)


def main(arguments: Sequence[str] | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
