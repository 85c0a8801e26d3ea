"""Regression without options, against ridge, SVR, boosting and random forests.

Complete tables, and tables of which a fifth or half of the cells is missing, in training
and in prediction. Three quarters of the rows are trained on. Errors are root mean squared
errors, in standard deviations of the test targets. Intervals are to hold 90 % of the
targets: their coverage, and the interval score of Gneiting and Raftery (2007) in the same
units, lower is better. NLPD is the negative log predictive density in these units.

Rivals have their usual imputation, and options by cross-validation where that is usual.
Their intervals come from residuals of five-fold cross-validation (conformal); those of
the forest also from the training targets in its leaves (quantile forest), and those of
boosting also from quantile losses. Their densities are Gaussians with the deviation of
these residuals; quantiles alone have no density.

``regression.csv`` has the figures of every split, ``regression_summary.csv`` the means
and the differences to the best rival, with standard errors over splits. Splits are those
of the seeds 0, 1 and so on; the search was designed on some of the tables, with the seeds
1000 to 1002, and the number of members was chosen on diabetes, boston, friedman1 and
friedman2, with the seeds 100 to 104.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import (
    DEFAULT_RESULTS,
    MissingDataError,
    Options,
    Row,
    add_options,
    load_xy,
    print_table,
    punch_holes,
    read_table,
    say,
    write_table,
)
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import (
    load_diabetes,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from hybridmix import MixtureRegressor

SHARES = (0.0, 0.2, 0.5)
SEEDS = 5
OURS = "MixtureRegressor"
TAIL = 0.05
# Larger tables are sampled.
MOST_ROWS = 2000
FIGURES = ("rmse", "coverage", "interval score", "nlpd", "seconds")


class Split(NamedTuple):
    """Rows to train on and rows to test."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Result(NamedTuple):
    """Predictions of the test rows; densities and intervals may be missing."""

    predicted: np.ndarray
    intervals: np.ndarray
    log_density: np.ndarray | None


# Tables ---------------------------------------------------------------------------


def tables(data: Path) -> dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]]:
    """Return what makes rows and targets, for a seed."""

    def from_file(name: str) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
        def load(seed: int) -> tuple[np.ndarray, np.ndarray]:
            X, y = load_xy(data, name)
            index = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
            return X[index].astype(float), y[index].astype(float)

        return load

    return {
        "diabetes": lambda _: load_diabetes(return_X_y=True),
        "boston": from_file("boston"),
        "ailerons": from_file("ailerons"),
        "friedman1": lambda s: make_friedman1(600, noise=1.0, random_state=s),
        "friedman2": lambda s: make_friedman2(600, noise=100.0, random_state=s),
        "friedman3": lambda s: make_friedman3(600, noise=0.1, random_state=s),
    }


def split(X: np.ndarray, y: np.ndarray, share: float, seed: int) -> Split:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    if share:
        X = punch_holes(X, share, seed)
        X_test = punch_holes(X_test, share, seed + 500)
    return Split(X, y, X_test, y_test)


# Contestants ----------------------------------------------------------------------


def ours(own: Split, seed: int) -> Result:
    model = MixtureRegressor(random_state=seed).fit(own.X, own.y)
    return Result(
        model.predict(own.X_test),
        model.predict_interval(own.X_test),
        model.log_predictive_density(own.X_test, own.y_test),
    )


def conformal(model: BaseEstimator) -> Callable[[Split, int], Result]:
    def run(own: Split, _: int) -> Result:
        model.fit(own.X, own.y)
        residuals = own.y - cross_val_predict(clone(model), own.X, own.y, cv=5)
        reach = np.quantile(np.abs(residuals), 1.0 - 2.0 * TAIL)
        predicted = model.predict(own.X_test)
        deviation = residuals.std()
        z = (own.y_test - predicted) / deviation
        return Result(
            predicted,
            np.column_stack([predicted - reach, predicted + reach]),
            -0.5 * z**2 - np.log(deviation) - 0.5 * np.log(2.0 * np.pi),
        )

    return run


def quantile_boosting(own: Split, seed: int) -> Result:
    low, middle, high = (
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=seed)
        .fit(own.X, own.y)
        .predict(own.X_test)
        for q in (TAIL, 0.5, 1.0 - TAIL)
    )
    return Result(middle, np.column_stack([low, high]), None)


def quantile_forest(own: Split, seed: int) -> Result:
    """Quantiles of the training targets in the leaves of a row (Meinshausen 2006)."""
    forest = RandomForestRegressor(300, min_samples_leaf=3, random_state=seed)
    imputer = SimpleImputer()
    X, X_test = imputer.fit_transform(own.X), imputer.transform(own.X_test)
    forest.fit(X, own.y)
    leaves, test_leaves = forest.apply(X), forest.apply(X_test)
    order = np.argsort(own.y)
    ends = []
    for row in test_leaves:
        same = leaves == row
        weights = (same / same.sum(axis=0)).mean(axis=1)[order]
        steps = np.cumsum(weights)
        places = np.searchsorted(steps, [TAIL, 1.0 - TAIL]).clip(max=len(order) - 1)
        ends.append(own.y[order][places])
    return Result(forest.predict(X_test), np.array(ends), None)


def ridge() -> BaseEstimator:
    return make_pipeline(
        SimpleImputer(), StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))
    )


def contestants() -> dict[str, Callable[[Split, int], Result]]:
    svr = GridSearchCV(SVR(), {"C": [1.0, 10.0, 100.0], "epsilon": [0.01, 0.1]}, cv=3)
    # The penalty and the tube of an SVR are in units of the target.
    scaled = TransformedTargetRegressor(svr, transformer=StandardScaler())
    return {
        OURS: ours,
        "ridge": conformal(ridge()),
        "SVR": conformal(make_pipeline(StandardScaler(), KNNImputer(), scaled)),
        "boosting": conformal(HistGradientBoostingRegressor(random_state=0)),
        "boosting, quantiles": quantile_boosting,
        "forest": conformal(
            make_pipeline(SimpleImputer(), RandomForestRegressor(300, random_state=0))
        ),
        "forest, quantiles": quantile_forest,
    }


# Measuring ------------------------------------------------------------------------


def figures(own: Split, result: Result, seconds: float) -> dict[str, float | None]:
    unit, y = own.y_test.std(), own.y_test
    low, high = result.intervals.T
    beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    density = result.log_density
    return {
        "rmse": float(np.sqrt(np.mean((result.predicted - y) ** 2)) / unit),
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "interval score": float(np.mean(high - low + beyond / TAIL) / unit),
        "nlpd": None if density is None else float(-np.mean(density) - np.log(unit)),
        "seconds": seconds,
    }


def measured(
    data: Path, seeds: int, names: list[str], shares: list[float]
) -> Iterator[Row]:
    """Yield a row for every table, share of holes, seed and contestant."""
    for seed in range(seeds):
        for name, load in tables(data).items():
            if name not in names:
                continue
            try:
                X, y = load(seed)
            except MissingDataError as error:
                print(f"LEFT OUT: {error}", flush=True)
                continue
            for share in shares:
                own = split(X, y, share, seed)
                for contestant, run in contestants().items():
                    began = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        result = run(own, seed)
                    seconds = time.process_time() - began
                    yield {
                        "table": name,
                        "holes": share,
                        "seed": seed,
                        "contestant": contestant,
                        **figures(own, result, seconds),
                    }


def known(options: Options) -> list[Row]:
    """Return what was measured before, with numbers in the place of text."""
    rows = read_table("regression", options)
    for row in rows:
        row["seed"] = int(row["seed"])
        row |= {k: float(row[k]) if row[k] else None for k in ("holes", *FIGURES)}
    return rows


def in_order(rows: list[Row]) -> list[Row]:
    """Return rows table by table, and as they were measured within a table."""
    names = list(tables(Path()))
    return sorted(rows, key=lambda row: (names.index(row["table"]), row["holes"]))


def summary(rows: list[Row]) -> list[Row]:
    """Return means over splits, and differences to the best rival of each figure."""
    found = []
    for name, share in dict.fromkeys((row["table"], row["holes"]) for row in rows):
        part = [row for row in rows if (row["table"], row["holes"]) == (name, share)]
        for contestant in dict.fromkeys(row["contestant"] for row in part):
            own = [row for row in part if row["contestant"] == contestant]
            line: Row = {"table": name, "holes": share, "contestant": contestant}
            line |= {figure: _mean(own, figure) for figure in FIGURES}
            if contestant == OURS:
                line |= _leads(part, own)
            found.append(line | {"splits": len(own)})
    return found


def _mean(rows: list[Row], figure: str) -> float | None:
    values = [row[figure] for row in rows]
    return None if None in values else float(np.mean(values))


def _leads(part: list[Row], own: list[Row]) -> Row:
    """Return differences to the best rival by mean, with paired standard errors."""
    line: Row = {}
    rivals = dict.fromkeys(r["contestant"] for r in part if r["contestant"] != OURS)
    for figure in ("rmse", "interval score", "nlpd"):
        values = {
            rival: [r[figure] for r in part if r["contestant"] == rival]
            for rival in rivals
        }
        means = {k: float(np.mean(v)) for k, v in values.items() if None not in v}
        best = min(means, key=means.__getitem__)
        difference = np.array([r[figure] for r in own]) - np.array(values[best])
        line[f"{figure} - best rival"] = float(difference.mean())
        error = difference.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else None
        line[f"{figure} error"] = error
        line[f"{figure} rival"] = best
    return line


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of splits")
    parser.add_argument("--tables", nargs="+", help="some of them; keep the others")
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES))
    parsed: Any = parser.parse_args(arguments)
    results = parsed.results or (None if parsed.quick else DEFAULT_RESULTS)
    options = Options(parsed.data, results, parsed.quick)
    names = parsed.tables or list(tables(Path()))[: 1 if parsed.quick else None]
    shares = [0.2] if parsed.quick else parsed.shares
    rows = [row for row in known(options) if row["table"] not in names]
    for row in measured(parsed.data, 1 if parsed.quick else parsed.seeds, names, shares):
        rows.append(row)
        print(f"{row['table']}, {row['holes']}, {row['contestant']}", flush=True)
        write_table("regression", rows, options, silent=True)
    lines = summary(in_order(rows))
    say("Regression without options", {"seconds": "of the processor, fit and predict"})
    print_table(lines)
    write_table("regression_summary", lines, options)


if __name__ == "__main__":
    main()
