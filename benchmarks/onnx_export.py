"""Models exported to ONNX: how far they are from the library, and what they take.

Differences: the largest over iris, wine and breast cancer, all kinds of covariances, one
and three components per class, complete rows and rows with 30 % of their cells missing.
Both sides are given the same numbers, rounded to the type of the graph.

Times: breast cancer (30 columns), three components for each of the two classes; 10,000
rows (drawn with replacement) and a single row, complete and with 30 % of the cells
missing; ONNX Runtime and `predict_proba`, each with one thread in a process of its own;
milliseconds of the processor.

Networks and regressors: 2,000 such rows, full covariances, and what `predict_proba`,
`predict` (with deviations) or `predict_quantiles` (of two levels) takes. Regressors have
three components; their target is the last column, predicted from the others.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import (
    Contestant,
    Measure,
    Options,
    Row,
    disturbance,
    milliseconds,
    parse_options,
    print_table,
    race,
    ratio,
    rival,
    say,
    write_table,
)
from sklearn.base import is_regressor
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from hybridmix import (
    HybridMixtureClassifier,
    MixtureNetworkClassifier,
    MixtureNetworkRegressor,
    MixtureRegressor,
)
from hybridmix.onnx import to_onnx

TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
COVARIANCES = ("diag", "spherical", "tied", "full", "subspace")
TIMED = ("diag", "tied", "full", "subspace")
MISSING = 0.3
N_ROWS = 10_000
PACKAGES = ("onnx", "onnxruntime")
LEVELS = (0.05, 0.95)


def fitted(X: np.ndarray, y: np.ndarray, covariance: str, n_components: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return HybridMixtureClassifier(
            covariance_type=covariance,
            n_components=n_components,
            tradeoff=10.0,
            random_state=0,
            n_jobs=1,
        ).fit(X, y)


def session_of(model: Any, dtype: str, quantiles: Any = None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        to_onnx(model, dtype=dtype, quantiles=quantiles).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )


def with_holes(X: np.ndarray) -> np.ndarray:
    """Remove cells; the first row loses all of them."""
    holes = np.random.default_rng(0).random(X.shape) < MISSING
    holes[0] = True
    return np.where(holes, np.nan, X)


# Differences ----------------------------------------------------------------------------


def differences(model: Any, X: np.ndarray, dtype: str) -> tuple[float, float]:
    """Return the largest differences of probabilities and, relatively, log densities."""
    rows = X.astype(dtype)
    _, probabilities, log_density = session_of(model, dtype).run(None, {"X": rows})
    expected = model.score_samples(rows)
    scale = np.maximum(np.abs(expected), 1.0)
    return (
        float(np.abs(probabilities - model.predict_proba(rows)).max()),
        float((np.abs(log_density - expected) / scale).max()),
    )


def accuracy(quick: bool) -> list[Row]:
    rows: list[Row] = []
    covariances = COVARIANCES[:1] if quick else COVARIANCES
    for dtype in ("float32", "float64"):
        worst = np.zeros(2)
        for (load, covariance), n_components in itertools.product(
            itertools.product(TABLES.values(), covariances), (1, 3)
        ):
            X, y = load(return_X_y=True)
            model = fitted(X, y, covariance, n_components)
            for table in (X, with_holes(X)):
                worst = np.maximum(worst, differences(model, table, dtype))
        rows.append({"dtype": dtype, "probabilities": worst[0], "log_density": worst[1]})
    return rows


# Times ----------------------------------------------------------------------------------


def timed_rows(n_rows: int, holes: bool) -> np.ndarray:
    X, _ = load_breast_cancer(return_X_y=True)
    drawn = X[np.random.default_rng(0).integers(len(X), size=n_rows)]
    hole = np.random.default_rng(1).random(drawn.shape) < MISSING
    return np.where(hole, np.nan, drawn) if holes else drawn


def predictor(runtime: str, covariance: str, n_rows: int, holes: bool) -> Measure:
    """Return what predicts the rows several times, and tells the seconds of one time."""
    model = fitted(*load_breast_cancer(return_X_y=True), covariance, 3)
    X = timed_rows(n_rows, holes).astype(np.float32)
    session = session_of(model, "float32")
    if runtime == "ONNX Runtime":
        return timing(lambda: session.run(None, {"X": X}), n_rows)
    return timing(lambda: model.predict_proba(X), n_rows)


def timing(predict: Callable[[], Any], n_rows: int) -> Measure:
    """Return what predicts rows several times, and returns the seconds of one time."""
    n_times = 1 if n_rows > 1 else 200

    def measure() -> float:
        # Of the processor: both have one thread, and other programs do not count.
        begin = time.process_time()
        for _ in range(n_times):
            predict()
        return (time.process_time() - begin) / n_times

    return measure


def times(quick: bool) -> list[Row]:
    rows: list[Row] = []
    sizes = (1,) if quick else (N_ROWS, 1)
    for covariance, n_rows, holes in itertools.product(
        TIMED[:1] if quick else TIMED, sizes, (False, True)
    ):
        problem = {"covariance": covariance, "n_rows": n_rows, "holes": holes}
        model = fitted(*load_breast_cancer(return_X_y=True), covariance, 3)
        size = len(to_onnx(model).SerializeToString())
        rows.append({"covariance": covariance, **raced(predictor, problem, size, quick)})
    return rows


def raced(
    make: Callable[..., Measure], problem: dict[str, Any], size: int, quick: bool
) -> Row:
    """Return the times of both runtimes for rows of a model, whose file has a size."""
    samples = race(
        [
            Contestant(name, make, {"runtime": name, **problem}, threads=1)
            for name in ("ONNX Runtime", "hybridmix")
        ],
        repeats=3 if quick else 7,
    )
    theirs, ours = (samples[name].median for name in ("ONNX Runtime", "hybridmix"))
    return {
        "rows": problem["n_rows"],
        "cells": "30 % missing" if problem["holes"] else "complete",
        "file_kb": size / 1000,
        "onnx_ms": milliseconds(theirs),
        "hybridmix_ms": milliseconds(ours),
        "over_hybridmix": ratio(theirs, ours),
        "disturbed": disturbance(samples),
    }


# Networks and regressors ----------------------------------------------------------------

_OPTIONS: dict[str, Any] = {"covariance_type": "full", "random_state": 0, "n_jobs": 1}
OTHERS: dict[str, tuple[Any, Callable[[Any, np.ndarray], Any], Any]] = {
    "network, stages": (
        MixtureNetworkClassifier("stages", n_components=3, **_OPTIONS),
        lambda model, X: model.predict_proba(X),
        None,
    ),
    "network, joint": (
        MixtureNetworkClassifier("joint", n_components=3, **_OPTIONS),
        lambda model, X: model.predict_proba(X),
        None,
    ),
    "network regressor": (
        MixtureNetworkRegressor(3, **_OPTIONS),
        lambda model, X: model.predict(X, return_std=True),
        None,
    ),
    "regressor": (
        MixtureRegressor(3, tradeoff=0.0, **_OPTIONS),
        lambda model, X: model.predict(X, return_std=True),
        None,
    ),
    "regressor, two quantiles": (
        MixtureRegressor(3, tradeoff=0.0, **_OPTIONS),
        lambda model, X: model.predict_quantiles(X, LEVELS),
        LEVELS,
    ),
}


def fitted_other(name: str) -> Any:
    X, y = load_breast_cancer(return_X_y=True)
    model = OTHERS[name][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X[:, :-1], X[:, -1]) if is_regressor(model) else model.fit(X, y)


def other_predictor(runtime: str, name: str, n_rows: int, holes: bool) -> Measure:
    _, predict, levels = OTHERS[name]
    model = fitted_other(name)
    X = timed_rows(n_rows, holes)[:, : model.n_features_in_].astype(np.float32)
    session = session_of(model, "float32", levels)
    if runtime == "ONNX Runtime":
        return timing(lambda: session.run(None, {"X": X}), n_rows)
    return timing(lambda: predict(model, X), n_rows)


def other_times(quick: bool) -> list[Row]:
    rows: list[Row] = []
    n_rows = 100 if quick else N_ROWS // 5
    for name in list(OTHERS)[:1] if quick else OTHERS:
        model, levels = fitted_other(name), OTHERS[name][2]
        size = len(to_onnx(model, quantiles=levels).SerializeToString())
        for holes in (False, True):
            problem = {"name": name, "n_rows": n_rows, "holes": holes}
            found = raced(other_predictor, problem, size, quick)
            rows.append({"model": name, **found})
    return rows


def run(options: Options) -> None:
    if rival("onnxruntime") is None:
        return
    say("Largest differences between graph and library")
    found = accuracy(options.quick)
    print_table(found)
    write_table("onnx_differences", found, options, PACKAGES)
    say("Prediction in ONNX Runtime and by predict_proba, one thread, milliseconds")
    found = times(options.quick)
    print_table(found)
    write_table("onnx_times", found, options, PACKAGES)
    say("The same of networks and regressors")
    found = other_times(options.quick)
    print_table(found)
    write_table("onnx_others", found, options, PACKAGES)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
