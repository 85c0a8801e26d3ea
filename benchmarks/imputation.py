"""Filling holes in real tables, against scikit-learn's imputers.

A fifth or half of the cells is removed completely at random; every imputer is fitted to
the table with holes and fills it. Errors are over the removed cells: root mean squared
error of the real columns, in standard deviations of the complete columns, and accuracy of
categories.
All imputers see standardised real columns, and all but the one of the trees run with
their defaults. Nearest neighbours and iterative imputation are for numbers; in mixed
tables they fill these from each other, and categories by the most frequent one.

``imputation.csv`` has the means over patterns of holes, ``imputation_summary.csv`` the
means over tables, mean ranks, and differences to the best rival with 95 % intervals.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import (
    MissingDataError,
    Options,
    Row,
    load_frame,
    load_xy,
    means_of,
    parse_options,
    print_table,
    punch_holes,
    say,
    short,
    write_table,
)
from paired import overall
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from hybridmix import MixtureImputer

SHARES = (0.2, 0.5)
SEEDS = 2
OURS = "ours"
MOST_ROWS = 3000
# Trees are left out of tables with more cells than this.
CHEAP_CELLS = 10_000


@dataclass(frozen=True)
class Table:
    """A complete table: real columns first, then categorical ones.

    Attributes
    ----------
    name : str
    real : ndarray of shape (n, d)
        Standardised.
    codes : list of ndarray of shape (n,)
        Text of each categorical column; None where the source has a hole already.
    """

    name: str
    real: np.ndarray
    codes: list[np.ndarray]


def standardised(X: np.ndarray) -> np.ndarray:
    """Drop constant columns and scale the others."""
    X = X[:, np.nanstd(X, axis=0) > 0]
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


def sampled(n: int) -> np.ndarray:
    return np.sort(np.random.default_rng(0).permutation(n)[:MOST_ROWS])


def real_table(name: str, X: np.ndarray) -> Table:
    return Table(name, standardised(X[sampled(len(X))]), [])


def scikit_learn_tables() -> Iterator[Table]:
    loaders = {
        "iris": load_iris,
        "wine": load_wine,
        "breast cancer (wdbc)": load_breast_cancer,
        "diabetes": load_diabetes,
    }
    for name, load in loaders.items():
        yield real_table(name, load().data)


def frame_table(name: str, data: Path, real: Sequence[str] | None) -> Table:
    """Load a mixed table; without a list, numbers are real and text is categorical."""
    frame = load_frame(data, name).drop(columns="class")
    frame = frame.iloc[sampled(len(frame))]
    if real is None:
        real = list(frame.select_dtypes("number").columns)
    values = frame[list(real)].to_numpy(float) if len(real) else np.empty((len(frame), 0))
    codes = []
    for column in frame.columns.difference(list(real), sort=False):
        text = frame[column].astype(object)
        codes.append(text.map(str).where(text.notna(), None).to_numpy(object))
    label = name.removesuffix("_train")
    return Table(label, standardised(values) if len(real) else values, codes)


def tables(data: Path, quick: bool) -> Iterator[Table]:
    """Yield all tables; say which files are missing."""
    found = list(scikit_learn_tables())
    yield from found[:2] if quick else found
    files = ["boston", "glass", "segmentation", "sonar", "phoneme_elena", "ailerons"]
    loaders: list[Callable[[], Table]] = [
        lambda name=name: real_table(name, load_xy(data, name)[0])  # type: ignore[misc]
        for name in files
    ]
    mixed: list[Callable[[], Table]] = [
        lambda: frame_table("dermatology", data, ["age"]),
        lambda: frame_table("adult_train", data, None),
        lambda: frame_table("mushroom", data, []),
    ]
    chosen = [loaders[1], mixed[0]] if quick else [*loaders, *mixed]
    for load in chosen:
        try:
            yield load()
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)


# Holes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Holed:
    """A table with holes, and where its true values are known."""

    real: np.ndarray
    codes: list[np.ndarray]
    real_holes: np.ndarray
    code_holes: list[np.ndarray]


def holed(table: Table, share: float, seed: int) -> Holed:
    real = punch_holes(table.real, share, seed) if table.real.size else table.real
    codes, code_holes = [], []
    generator = np.random.default_rng([seed, 2])
    for column in table.codes:
        known = np.array([value is not None for value in column])
        hole = (generator.random(len(column)) < share) & known
        codes.append(np.where(hole, None, column))
        code_holes.append(hole)
    return Holed(real, codes, np.isnan(real) & ~np.isnan(table.real), code_holes)


def as_frame(holes: Holed) -> pd.DataFrame:
    columns: dict[str, Any] = {f"x{i}": x for i, x in enumerate(holes.real.T)}
    columns |= {f"c{i}": pd.Series(c, dtype=object) for i, c in enumerate(holes.codes)}
    return pd.DataFrame(columns)


# Methods --------------------------------------------------------------------------

Filled = tuple[np.ndarray, list[np.ndarray]]


def fill_ours(holes: Holed, seed: int) -> Filled:
    imputer = MixtureImputer(random_state=seed)
    if not holes.codes:
        return imputer.fit_transform(holes.real), []
    frame = imputer.fit_transform(as_frame(holes))
    d = holes.real.shape[1]
    real = frame.iloc[:, :d].to_numpy(float)
    return real, [frame[f"c{i}"].to_numpy(object) for i in range(len(holes.codes))]


def fill_simply(holes: Holed, seed: int) -> Filled:
    del seed
    real = holes.real
    if real.size:
        real = SimpleImputer().fit_transform(real)
    codes = []
    for column in holes.codes:
        values, counts = np.unique(
            [c for c in column if c is not None], return_counts=True
        )
        most = values[np.argmax(counts)]
        codes.append(np.array([most if c is None else c for c in column], dtype=object))
    return real, codes


def fill_by(make: Callable[[int], Any]) -> Callable[[Holed, int], Filled]:
    def fill(holes: Holed, seed: int) -> Filled:
        real = make(seed).fit_transform(holes.real)
        return real, fill_simply(holes, seed)[1]

    return fill


def trees(seed: int) -> IterativeImputer:
    regressor = ExtraTreesRegressor(n_estimators=10, random_state=seed, n_jobs=2)
    return IterativeImputer(regressor, max_iter=5, random_state=seed)


def methods(table: Table) -> dict[str, Callable[[Holed, int], Filled]]:
    found = {OURS: fill_ours, "mean or most frequent": fill_simply}
    if table.real.size:
        found["KNN"] = fill_by(lambda _: KNNImputer())
        found["iterative"] = fill_by(lambda seed: IterativeImputer(random_state=seed))
        if table.real.size <= CHEAP_CELLS and not table.codes:
            found["iterative, extra trees"] = fill_by(trees)
    return found


def figures(table: Table, holes: Holed, result: Filled) -> dict[str, float | None]:
    real, codes = result
    error = (real - table.real)[holes.real_holes]
    hits = [
        (filled == true)[hole]
        for filled, true, hole in zip(codes, table.codes, holes.code_holes, strict=True)
    ]
    return {
        "rmse": float(np.sqrt(np.mean(error**2))) if error.size else None,
        "accuracy": float(np.mean(np.concatenate(hits))) if hits else None,
    }


def measure(table: Table, share: float, seed: int) -> list[Row]:
    """Compare all methods on one pattern of holes."""
    holes = holed(table, share, seed)
    rows = []
    for name, fill in methods(table).items():
        start = time.perf_counter()
        try:
            result = fill(holes, seed)
        except Exception as error:
            print(f"LEFT OUT: {name} on {table.name}: {short(error)}", flush=True)
            continue
        seconds = time.perf_counter() - start
        key = {"table": table.name, "n": len(table.real), "d": table.real.shape[1]}
        rows.append(
            {
                **key,
                "share": share,
                "categorical": len(table.codes),
                "method": name,
                **figures(table, holes, result),
                "seconds": seconds,
            }
        )
    return rows


def run(options: Options) -> None:
    rows: list[Row] = []
    keys = ["table", "n", "d", "share", "categorical", "method"]
    values = ["rmse", "accuracy", "seconds"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in tables(options.data, options.quick):
            for share in SHARES:
                for seed in range(1 if options.quick else SEEDS):
                    rows += measure(table, share, seed)
            print(f"{table.name} done", flush=True)
            means = means_of(rows, keys, values)
            write_table("imputation", means, options, ["pandas"], silent=True)
    say(
        "Imputation, means over patterns of holes",
        {
            "share": "of the cells, missing",
            "rmse": "in standard deviations",
            "accuracy": "of categorical cells",
        },
    )
    print_table(means)
    summary = overall(means, ["share"], "rmse", OURS)
    say("Root mean squared errors over tables with real columns")
    print_table(summary)
    write_table("imputation_summary", summary, options, ["pandas"])


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
