"""Regression by maximum entropy discrimination: the tables of Jebara (2004).

"boston": 481 rows to train on and 25 to test, all 104 columns of second order, as in
Table 4.1. The claim is that switches (a small prior inclusion) lower the error. Splits
are those of the seeds 0 to 11.

"ailerons": 96 rows with a target and 904 without, a quadratic kernel, as in Figure 4.14.
The claim is that rows without a target lower the error. It is measured on these 904 rows
("transductive") and on 3000 others ("test"), on the splits of the seeds 0 to 11.

Columns and targets are standardised by the training rows; errors are in standard
deviations of the training targets. All settings are chosen by five-fold cross-validation
within the rows that have a target, for each split, by the absolute error. For the
transductive machine the held-out rows of a fold join those without a target.
``med_regression.csv`` has all splits; ``med_regression_summary.csv`` has means, with
standard errors over splits, and paired differences to the machine without the claim.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    load_xy,
    parse_options,
    print_table,
    say,
    write_table,
)
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from hybridmix import MEDRegressor

EPSILON = 0.1
INCLUSIONS = [0.1, 1e-3, 1e-5]
SEEDS = {"boston": 12, "ailerons": 12}
N_KNOWN, N_UNKNOWN, N_TEST = 96, 904, 3000
# What the differences of the summary are taken from.
WITHOUT = {"boston": "MED", "ailerons": "MED, rows with a target"}


def searched(model: Any, grid: dict[str, Any]) -> GridSearchCV:
    folds = KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring="neg_mean_absolute_error", cv=folds)


def errors(predicted: np.ndarray, y: np.ndarray) -> dict[str, float]:
    error = np.abs(predicted - y)
    return {
        "tube loss": float(np.maximum(error - EPSILON, 0.0).mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
    }


# Boston -----------------------------------------------------------------------------


def boston(data: Path, seed: int) -> Iterator[Row]:
    """Yield the errors of all contestants on one split."""
    X, y = load_xy(data, "boston")
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:481], order[481:]
    expand = PolynomialFeatures(2, include_bias=False)
    scale = StandardScaler().fit(X[train])
    A = expand.fit_transform(scale.transform(X[train]))
    B = expand.transform(scale.transform(X[test]))
    scale = StandardScaler().fit(A)
    A, B = scale.transform(A), scale.transform(B)
    y = (y - y[train].mean()) / y[train].std()
    # Wide enough that hardly any choice is at an end, for the SVR as for ours.
    penalties = {"C": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]}
    smooth = {"epsilon": EPSILON, "tol": 1e-3}
    contestants: dict[str, Any] = {
        "MED": searched(MEDRegressor(**smooth), penalties),
        "MED, switches": searched(
            MEDRegressor(**smooth), {"C": [0.3, 1.0, 3.0], "inclusion": INCLUSIONS}
        ),
        "SVR, linear": searched(SVR(kernel="linear", epsilon=EPSILON), penalties),
        "LassoCV": LassoCV(cv=5),
        "RidgeCV": RidgeCV(np.geomspace(0.1, 1e3, 13)),
    }
    for name, model in contestants.items():
        began = time.process_time()
        model.fit(A, y[train])
        seconds = time.process_time() - began
        chosen = getattr(model, "best_params_", {})
        yield {
            "rows": "test",
            "contestant": name,
            **errors(model.predict(B), y[test]),
            "seconds": seconds,
            "chosen": " ".join(f"{k}={v:g}" for k, v in chosen.items()),
        }


# Ailerons ---------------------------------------------------------------------------


def ailerons(data: Path, seed: int) -> Iterator[Row]:
    """Yield the errors of all contestants, on rows without a target and on others."""
    X, y = load_xy(data, "ailerons")
    order = np.random.default_rng(seed).permutation(len(y))
    n = N_KNOWN + N_UNKNOWN
    scale = StandardScaler().fit(X[order[:n]])
    rows = scale.transform(X[order[: n + N_TEST]])
    known = y[order[:N_KNOWN]]
    targets = (y[order[: n + N_TEST]] - known.mean()) / known.std()
    # (1 + x'z / p)^2
    kernel = {"degree": 2, "gamma": 1.0 / X.shape[1], "coef0": 1.0}
    grid = {"C": [0.01, 0.1, 1.0, 10.0]}
    plain = {"epsilon": EPSILON, **kernel}
    med = MEDRegressor("poly", tol=1e-3, **plain)
    own = targets[:N_KNOWN]
    contestants: dict[str, Callable[[], Any]] = {
        "MED, rows with a target": lambda: searched(med, grid).fit(rows[:N_KNOWN], own),
        "MED, transductive": lambda: transductive(rows[:n], own),
        "SVR": lambda: searched(SVR(kernel="poly", **plain), grid).fit(
            rows[:N_KNOWN], own
        ),
        "RidgeCV, linear": lambda: RidgeCV(np.geomspace(0.1, 1e3, 13)).fit(
            rows[:N_KNOWN], own
        ),
    }
    for name, fit in contestants.items():
        began = time.process_time()
        model = fit()
        seconds = time.process_time() - began
        for part, place in (
            ("transductive", slice(N_KNOWN, n)),
            ("test", slice(n, None)),
        ):
            found = errors(model.predict(rows[place]), targets[place])
            chosen = getattr(model, "best_params_", {"C": getattr(model, "C", np.nan)})
            yield {
                "rows": part,
                "contestant": name,
                **found,
                "seconds": seconds,
                "chosen": " ".join(f"{k}={v:g}" for k, v in chosen.items()),
            }


def transductive(rows: np.ndarray, own: np.ndarray) -> MEDRegressor:
    """Choose C and the weight of rows without a target, and fit all rows."""
    kernel = {"degree": 2, "gamma": 1.0 / rows.shape[1], "coef0": 1.0}
    targets = np.full(len(rows), np.nan)
    targets[: len(own)] = own
    folds = list(KFold(5, shuffle=True, random_state=0).split(own))
    best, least = None, np.inf
    for C, weight in itertools.product([0.01, 0.1, 1.0, 10.0], [0.01, 0.1]):
        model = MEDRegressor(
            "poly",
            C=C,
            epsilon=EPSILON,
            tol=1e-3,
            transduction="gaussian",
            unlabelled_weight=weight,
            **kernel,
        )
        lost = 0.0
        for _, held in folds:
            hidden = targets.copy()
            hidden[held] = np.nan
            predicted = model.fit(rows, hidden).predict(rows[held])
            lost += float(np.abs(predicted - own[held]).sum())
        if lost < least:
            best, least = model, lost
    assert best is not None
    return best.fit(rows, targets)


# Both -------------------------------------------------------------------------------


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return means over splits, with standard errors, and paired differences."""
    lines: list[Row] = []
    for table, part in dict.fromkeys((row["table"], row["rows"]) for row in rows):
        here = [row for row in rows if (row["table"], row["rows"]) == (table, part)]
        base = [r["tube loss"] for r in here if r["contestant"] == WITHOUT[table]]
        for contestant in dict.fromkeys(row["contestant"] for row in here):
            own = [row for row in here if row["contestant"] == contestant]
            loss = np.array([row["tube loss"] for row in own])
            gain = loss - np.array(base)
            root = len(own) ** 0.5
            several = len(own) > 1
            lines.append(
                {
                    "table": table,
                    "rows": part,
                    "contestant": contestant,
                    "tube loss": float(loss.mean()),
                    "error": float(loss.std(ddof=1) / root) if several else None,
                    "rmse": float(np.mean([row["rmse"] for row in own])),
                    "loss - without": float(gain.mean()),
                    "difference error": float(gain.std(ddof=1) / root)
                    if several
                    else None,
                    "seconds": float(np.mean([row["seconds"] for row in own])),
                    "splits": len(own),
                }
            )
    return lines


def run(options: Options) -> None:
    rows: list[Row] = []
    for name, measure in (("boston", boston), ("ailerons", ailerons)):
        for seed in range(1 if options.quick else SEEDS[name]):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = list(measure(options.data, seed))
            except MissingDataError as error:
                print(f"LEFT OUT: {error}", flush=True)
                break
            rows += [{"table": name, "seed": seed, **row} for row in found]
            print(f"{name}, seed {seed}", flush=True)
            write_table("med_regression", rows, options, silent=True)
    lines = summary(rows)
    say(
        "Regression by maximum entropy discrimination",
        {
            "tube loss": f"mean of max(|error| - {EPSILON}, 0), unseen rows",
            "loss - without": "to the machine without switches, or without other rows",
            "seconds": "of the processor, with the choice of settings",
        },
    )
    print_table(lines)
    write_table("med_regression_summary", lines, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
