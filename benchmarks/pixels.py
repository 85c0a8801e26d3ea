"""MNIST digits in pixels, with pixels missing, after Roth's section 4.4.1.

The first 50,000 training digits train, the last 10,000 choose options and the moment to
stop, and the 10,000 official test digits report. Pixels are divided by 255.

Of every test digit a share of the 784 pixels is removed completely at random, round(784
p) of them, the same for all methods. Mixtures classify by the exact marginal of what is
left. Rival: the RBF support vector machine, whose C and gamma are those of the lowest
error on complete validation digits after training on 10,000 digits; it then trains on all
50,000. It sees holes that are filled by the mean of the three nearest training digits in
the observed pixels, or by the means of the pixels over the training digits. It predicts
by matrix products, several times as fast as LIBSVM itself.

With 500 labels ("few_labels"), all other training digits have no label, and there are no
validation digits; errors are means over three draws of the labels.

In a second table ("training"), 20 or 50 per cent of the pixels of every training and
validation digit are missing, too. There the support vector machine sees all digits filled
by the means of the observed values of each pixel. Its C and gamma are chosen by
validation digits that are filled likewise, and it trains on the first 10,000 digits only,
for want of time.

Columns: ``published`` are the figures of the thesis for the same method, ``target`` those
that ours has to reach; ``train_seconds`` leave out the choice of C and gamma;
``predict_seconds`` are those of all test digits, including the filling of their holes.

``--only`` runs some of the parts; curves that it measures replace those of the same
methods in the table, and the others stay. The lines of comment are of the last run.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    DEFAULT_RESULTS,
    MissingDataError,
    Options,
    Row,
    add_options,
    load_arrays,
    print_table,
    say,
    verdict,
    write_table,
)
from missing_features import filled_by_neighbours, holes
from pictures import image_folder, prepare_pictures, save
from roth import n_parameters
from roth_data import MNIST_TRAINING, Split
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances
from sklearn.svm import SVC

from hybridmix import HybridMixtureClassifier

# Chosen by errors on validation digits, complete and with 50, 80 and 90 per cent of their
# pixels missing, among 4 to 16 components and 40 to 100 factors.
RECIPE: dict[str, Any] = {
    "covariance_type": "subspace",
    "n_components": 12,
    "n_factors": 60,
    "covariance_prior": 20.0,
    "loss": "hinge",
    "tradeoff": 30.0,
    "margin": 20.0,
    "patience": 6,
    "tol": 1e-2,
    "class_prior": "uniform",
    "random_state": 0,
}
# With 500 labels: the options of few_labels.py, in as many factors.
FEW_LABELS_RECIPE = {
    "n_components": 1,
    "n_factors": 50,
    "tradeoff": 10.0,
    "margin": "auto",
    "n_steps": 30,
    "tol": 1e-4,
}
N_LABELS, N_DRAWS = 500, 3
# Every training digit with holes takes a factorisation for each component.
TRAINING_RECIPE = {"n_components": 2, "n_factors": 40, "n_steps": 12, "max_iter": 15}
QUICK_RECIPE = {"n_components": 1, "n_factors": 10, "n_steps": 5}

SHARES = tuple(tenths / 10 for tenths in range(10))
TRAINING_SHARES = (0.2, 0.5)
FEW_ROWS = 10_000
CHUNK = 1000
GRID = {"C": (1.0, 2.0, 10.0), "gamma": (0.01, 0.02, 0.03, 0.05, 0.08)}
# Seeds of the holes of the parts of the data.
TEST, VALIDATION, TRAINING = 0, 1, 2

HYBRID, GENERATIVE = "hybrid", "generative"
FEW_LABELS = f"hybrid, {N_LABELS} labels"
SVM_NEAREST, SVM_MEAN = "RBF SVM, 3-NN", "RBF SVM, mean"
SVM_FEW = f"{SVM_MEAN}, {FEW_ROWS} training rows"
THESIS = {
    HYBRID: (6.73, 7.17, 7.38, 7.77, 8.56, 9.44, 10.80, 12.65, 16.50, 24.82),
    SVM_NEAREST: (1.61, 1.69, 1.95, 2.07, 2.55, 3.02, 3.68, 4.29, 6.54, 13.78),
}
FEW_LABELS_TARGET = 6.0
TARGETS = {HYBRID: (1.45, 1.5, 1.6, 1.7, 1.85, 2.1, 2.6, 3.4, 5.2, 12.5)}
TABLE = "pixels"


# Data -----------------------------------------------------------------------------------


def mnist_pixels(data: Path) -> Split:
    """Return MNIST in pixels between 0 and 1: 50,000 / 10,000 / 10,000 digits."""
    arrays = load_arrays(data, "mnist")
    X, X_test = (
        arrays[f"X_{part}"].reshape(-1, 784) / 255.0 for part in ("train", "test")
    )
    y, y_test = (arrays[f"y_{part}"].astype(int) for part in ("train", "test"))
    train, rest = slice(0, MNIST_TRAINING), slice(MNIST_TRAINING, None)
    return Split("MNIST", X[train], y[train], X[rest], y[rest], X_test, y_test)


def punched(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return X with a share of the pixels of every digit missing at random."""
    return holes(X, X, share, "MCAR", seed) if share else X


def with_training_holes(split: Split, share: float) -> Split:
    return replace(
        split,
        X=punched(split.X, share, TRAINING),
        X_val=punched(split.X_val, share, VALIDATION),
    )


# Methods --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A trained classifier, and what is told about it.

    Attributes
    ----------
    name : str
        What it is called in the table.
    model : classifier
    seconds : float
        Time of its training.
    fill : callable or None
        What fills the holes of digits before they are classified.
    chosen : str or None
        Options that validation digits chose.
    """

    name: str
    model: Any
    seconds: float
    fill: Callable[[np.ndarray], np.ndarray] | None = None
    chosen: str | None = None

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Classify digits that may have holes."""
        return self.model.predict(X if self.fill is None else self.fill(X))


def trained(
    split: Split, objective: str, quick: bool, **options: Any
) -> tuple[HybridMixtureClassifier, float]:
    """Train a mixture of ours; return it with the seconds that this took."""
    recipe = RECIPE | {"objective": objective} | options
    recipe |= QUICK_RECIPE if quick else {}
    start = time.perf_counter()
    model = HybridMixtureClassifier(**recipe)
    if objective == "likelihood":
        model.fit(split.X, split.y)
    else:
        model.fit(split.X, split.y, X_val=split.X_val, y_val=split.y_val)
    return model, time.perf_counter() - start


class KernelMachine(SVC):
    """RBF support vector machine that predicts by matrix products.

    Its predictions are those of scikit-learn's, whose LIBSVM computes kernels one by one
    and takes several times as long.
    """

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Classify complete rows."""
        blocks = np.split(X, range(CHUNK, len(X), CHUNK))
        return np.concatenate([self._predict_block(block) for block in blocks])

    def _predict_block(self, X: np.ndarray) -> np.ndarray:
        squares = euclidean_distances(X, self.support_vectors_, squared=True)
        kernel = np.exp(-self.gamma * squares)
        ends = np.cumsum(self.n_support_)
        own = [slice(b - n, b) for b, n in zip(ends, self.n_support_, strict=True)]
        votes = np.zeros((len(X), len(own)), dtype=int)
        pairs = combinations(range(len(own)), 2)
        for (i, j), intercept in zip(pairs, self.intercept_, strict=True):
            decision = kernel[:, own[i]] @ self.dual_coef_[j - 1, own[i]]
            decision += kernel[:, own[j]] @ self.dual_coef_[i, own[j]]
            winner = np.where(decision + intercept > 0.0, i, j)
            votes[np.arange(len(X)), winner] += 1
        return self.classes_[votes.argmax(axis=1)]


def trained_machine(split: Split, options: dict[str, float]) -> tuple[SVC, float]:
    """Train a support vector machine; return it with the seconds that this took."""
    start = time.perf_counter()
    machine = KernelMachine(**options, cache_size=2000).fit(split.X, split.y)
    return machine, time.perf_counter() - start


def chosen_options(split: Split) -> dict[str, float]:
    """Return C and gamma of the lowest error on validation digits."""
    squares = euclidean_distances(split.X, squared=True)
    squares_val = euclidean_distances(split.X_val, split.X, squared=True)
    errors: dict[tuple[float, float], float] = {}
    for gamma in GRID["gamma"]:
        kernel, kernel_val = np.exp(-gamma * squares), np.exp(-gamma * squares_val)
        for C in GRID["C"]:
            machine = SVC(C=C, kernel="precomputed", cache_size=1000)
            predicted = machine.fit(kernel, split.y).predict(kernel_val)
            errors[C, gamma] = error(predicted, split.y_val)
            print(f"C={C:g}, gamma={gamma:g}: {errors[C, gamma]:.2f} %", flush=True)
    return dict(zip(("C", "gamma"), min(errors, key=errors.__getitem__), strict=True))


def described(options: dict[str, float]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in options.items())


def filled_by(means: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), means, X)


def first_rows(split: Split, n_rows: int) -> Split:
    return replace(split, X=split.X[:n_rows], y=split.y[:n_rows])


# Errors ---------------------------------------------------------------------------------


def error(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the error in per cent."""
    return 100.0 * float(np.mean(predicted != y))


def listed(table: dict[str, tuple[float, ...]], method: str, share: float) -> Any:
    return table[method][round(10 * share)] if method in table else None


def curve(
    method: Method, split: Split, shares: Sequence[float], training_missing: float = 0.0
) -> Iterator[Row]:
    """Yield the errors of a method for shares of missing pixels of test digits."""
    for share in shares:
        X = punched(split.X_test, share, TEST)
        start = time.perf_counter()
        predicted = method.predict(X)
        seconds = time.perf_counter() - start
        complete = training_missing == 0.0
        yield {
            "method": method.name,
            "training_missing": training_missing,
            "test_missing": share,
            "error_percent": error(predicted, split.y_test),
            "published": listed(THESIS, method.name, share) if complete else None,
            "target": listed(TARGETS, method.name, share) if complete else None,
            "train_seconds": method.seconds,
            "predict_seconds": seconds,
            "n_parameters": n_parameters(method.model),
            "chosen": method.chosen,
        }


def hybrid_part(split: Split, quick: bool) -> Iterator[Row]:
    method = Method(HYBRID, *trained(split, "hybrid", quick))
    yield from curve(method, split, shares_of(quick))


def generative_part(split: Split, quick: bool) -> Iterator[Row]:
    method = Method(GENERATIVE, *trained(split, "likelihood", quick))
    yield from curve(method, split, shares_of(quick))


def svm_part(split: Split, quick: bool) -> Iterator[Row]:
    """Yield the errors of the support vector machine, for both ways to fill holes."""
    options = chosen_options(first_rows(split, FEW_ROWS))
    machine, seconds = trained_machine(split, options)
    chosen, means = described(options), split.X.mean(axis=0)
    print(f"{chosen}: {seconds:.0f} s, {machine.n_support_.sum()} vectors", flush=True)
    nearest = Method(
        SVM_NEAREST,
        machine,
        seconds,
        lambda X: filled_by_neighbours(X, split.X),
        chosen,
    )
    by_means = Method(SVM_MEAN, machine, seconds, lambda X: filled_by(means, X), chosen)
    # Without holes both are the same.
    for row in curve(by_means, split, [0.0]):
        yield row
        yield row | {"method": SVM_NEAREST, "published": THESIS[SVM_NEAREST][0]}
    for method in (nearest, by_means):
        yield from curve(method, split, shares_of(quick)[1:])


def few_labels_part(split: Split, quick: bool) -> Iterator[Row]:
    """Yield mean errors over draws of the labels; all other digits are unlabelled."""
    draws = [
        list(curve(few_labels(split, draw, quick), split, (0.0, 0.5)))
        for draw in range(1 if quick else N_DRAWS)
    ]
    averaged = ("error_percent", "train_seconds", "predict_seconds")
    for rows in zip(*draws, strict=True):
        means = {name: float(np.mean([row[name] for row in rows])) for name in averaged}
        single = ", ".join(f"{row['error_percent']:.2f}" for row in rows)
        target = None if rows[0]["test_missing"] else FEW_LABELS_TARGET
        yield rows[0] | means | {"chosen": f"draws: {single}", "target": target}


def few_labels(split: Split, draw: int, quick: bool) -> Method:
    """Train on 500 labels and 49,500 digits without one; no validation digits."""
    generator = np.random.default_rng(draw)
    labels = np.full(len(split.y), -1)
    chosen = generator.choice(len(labels), N_LABELS, replace=False)
    labels[chosen] = split.y[chosen]
    recipe = RECIPE | FEW_LABELS_RECIPE | (QUICK_RECIPE if quick else {})
    start = time.perf_counter()
    model = HybridMixtureClassifier(**recipe).fit(split.X, labels)
    return Method(FEW_LABELS, model, time.perf_counter() - start)


def training_part(split: Split, quick: bool) -> Iterator[Row]:
    """Yield the errors of the hybrid if pixels of training digits are missing, too."""
    for share in TRAINING_SHARES:
        part = with_training_holes(split, share)
        method = Method(HYBRID, *trained(part, "hybrid", quick, **TRAINING_RECIPE))
        yield from curve(method, split, shares_of(quick), share)


def svm_training_part(split: Split, quick: bool) -> Iterator[Row]:
    """Yield the errors of the machine if pixels of training digits are missing, too."""
    for share in TRAINING_SHARES:
        part = with_training_holes(first_rows(split, FEW_ROWS), share)
        yield from curve(mean_machine(part), split, shares_of(quick), share)


def mean_machine(split: Split) -> Method:
    """Train a support vector machine on digits that are filled by means."""
    means = np.nanmean(split.X, axis=0)
    filled = replace(
        split, X=filled_by(means, split.X), X_val=filled_by(means, split.X_val)
    )
    options = chosen_options(filled)
    machine, seconds = trained_machine(filled, options)
    return Method(
        SVM_FEW, machine, seconds, lambda X: filled_by(means, X), described(options)
    )


def shares_of(quick: bool) -> Sequence[float]:
    return (0.0, 0.5) if quick else SHARES


PARTS: dict[str, Callable[[Split, bool], Iterator[Row]]] = {
    "hybrid": hybrid_part,
    "generative": generative_part,
    "few_labels": few_labels_part,
    "svm": svm_part,
    "training": training_part,
    "svm_training": svm_training_part,
}


# Table and picture ----------------------------------------------------------------------


def curve_of(row: Row) -> tuple[str, float]:
    return row["method"], row["training_missing"]


def place(row: Row) -> tuple[float, int, float]:
    """Return where a row belongs in the table."""
    methods = (HYBRID, GENERATIVE, FEW_LABELS, SVM_NEAREST, SVM_MEAN, SVM_FEW)
    return row["training_missing"], methods.index(row["method"]), row["test_missing"]


def value_of(cell: str) -> Any:
    """Return what a cell of a table stands for."""
    try:
        return int(cell) if cell.isdigit() else float(cell)
    except ValueError:
        return cell or None


def rows_so_far(options: Options) -> list[Row]:
    """Read the rows that earlier runs have left."""
    path = None if options.results is None else options.results / f"{TABLE}.csv"
    if path is None or not path.is_file():
        return []
    with path.open(newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return [{name: value_of(cell) for name, cell in row.items()} for row in lines]


def judge(rows: Sequence[Row]) -> None:
    """Say where the targets are met."""
    for row in rows:
        if row["target"] is not None:
            told = verdict(row["error_percent"], row["target"])
            where = f"{row['method']}, {row['test_missing']:.0%} missing"
            print(f"{where}: {row['error_percent']:.2f} %, {told}")


# Colours of Okabe and Ito. Lines of the thesis are broken and grey.
GREY = "#8c8c8c"
LINES = {
    HYBRID: ("#0072b2", "hybrid"),
    GENERATIVE: ("#56b4e9", "generative"),
    SVM_NEAREST: ("#d55e00", "RBF SVM, 3-NN imputation"),
    SVM_MEAN: ("#e69f00", "RBF SVM, mean imputation"),
}
THESIS_LINES = (
    (HYBRID, "--", "thesis: hybrid"),
    (SVM_NEAREST, ":", "thesis: RBF SVM, 3-NN imputation"),
)
TICKS = (1, 2, 5, 10, 20, 50, 90)


def draw_errors(rows: Sequence[Row], options: Options) -> None:
    """Draw errors against the share of missing pixels, for complete training digits."""
    folder = image_folder(options)
    if folder is None:
        return
    plt = prepare_pictures()
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    for method, (color, label) in LINES.items():
        found = [row for row in rows if curve_of(row) == (method, 0.0)]
        shares = [100.0 * row["test_missing"] for row in found]
        errors = [row["error_percent"] for row in found]
        if found:
            axes.plot(shares, errors, "o-", color=color, label=label, ms=4)
    for method, style, label in THESIS_LINES:
        shares = [100.0 * share for share in SHARES]
        axes.plot(shares, THESIS[method], style, color=GREY, label=label)
    axes.set(
        yscale="log",
        xlabel="missing pixels in per cent",
        ylabel="test error in per cent",
        title="MNIST in pixels, complete training digits",
    )
    axes.set_yticks(TICKS, [str(tick) for tick in TICKS])
    axes.minorticks_off()
    axes.legend(fontsize=8, loc="upper left")
    save(figure, TABLE, folder)


def run(options: Options, parts: Sequence[str]) -> None:
    try:
        split = mnist_pixels(options.data)
    except MissingDataError as problem:
        print(f"LEFT OUT: {problem}", flush=True)
        return
    split = split.thinned(1000) if options.quick else split
    rows = rows_so_far(options)
    measured: set[tuple[str, float]] = set()
    for part in parts:
        for row in PARTS[part](split, options.quick):
            if curve_of(row) not in measured:
                measured.add(curve_of(row))
                rows = [old for old in rows if curve_of(old) != curve_of(row)]
            rows = sorted([*rows, row], key=place)
            print_table([row])
            write_table(TABLE, rows, options)
    say("Errors in per cent with missing pixels")
    print_table(rows)
    judge(rows)
    draw_errors(rows, options)


def parsed_options(arguments: Sequence[str] | None) -> tuple[Options, list[str]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_options(parser)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parsed = parser.parse_args(arguments)
    results = parsed.results
    if results is None and not parsed.quick:
        results = DEFAULT_RESULTS
    return Options(parsed.data, results, parsed.quick), parsed.only


def main(arguments: Sequence[str] | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(*parsed_options(arguments))


if __name__ == "__main__":
    main()
