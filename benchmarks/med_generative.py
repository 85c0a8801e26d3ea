"""Densities, kernels and unlabelled rows in maximum entropy discrimination.

Five questions, each with its rivals in the same run. All errors are of rows that took no
part in training; settings were chosen by five inner folds of the training rows where a
name says "chosen", and are the defaults elsewhere. Splits 0 and up are reported; the
defaults were looked at on splits 100 to 103.

``published``: Gaussian densities on crabs (80 training rows, 120 test rows) and the
original Wisconsin breast cancer table (200 and 483), as in Jebara's Tables 3.2 and 3.3.
``holes``: independent columns on small tables of which 30 per cent of the cells are
missing, compared with `HybridMixtureClassifier`. ``kernels``: switches of eight kernels
on one letter of isolet against the others, as in his Figure 4.11. ``unlabelled``: ten
labels, and about 210 rows without one. ``time``: Gaussian densities of 2,000 rows in 30
columns.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from common import (
    Options,
    Row,
    load_arrays,
    load_frame,
    parse_options,
    print_table,
    punch_holes,
    write_table,
)
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC
from tables import load_table

from hybridmix import HybridMixtureClassifier, MEDClassifier
from hybridmix.metrics import label_losses

SMALL = ["wine", "glass", "sonar", "wdbc", "dermatology", "crabs"]
# So small a box leaves the prior as it is: Bayesian averages over densities.
NO_MULTIPLIERS = 1e-9

Make = Callable[[], Any]


def scored(
    model: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, float]:
    """Train on some rows, and return error and log loss of others."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(_rows(X, train), y[train])
    seconds = time.process_time() - began
    predicted = model.predict(_rows(X, test))
    found = {"error": 100.0 * float(np.mean(predicted != y[test]))}
    if hasattr(model, "predict_proba"):
        logs = np.log(np.maximum(model.predict_proba(_rows(X, test)), 1e-300))
        own = logs[np.arange(len(test)), np.searchsorted(model.classes_, y[test])]
        found["log_loss"] = float(label_losses(own).mean())
    return {**found, "cpu_seconds": seconds}


def _rows(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def chosen(model: Any, **grid: Sequence[Any]) -> GridSearchCV:
    return GridSearchCV(model, grid, cv=5)


def split(y: np.ndarray, n_train: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    splitter = StratifiedShuffleSplit(1, train_size=n_train, random_state=seed)
    return next(splitter.split(y, y))


def means(rows: Sequence[Row], by: list[str]) -> list[Row]:
    """Return means over splits, with standard errors of the error."""
    frame = pd.DataFrame(rows)
    groups = frame.groupby(by, sort=False)
    found = groups.mean(numeric_only=True).drop(columns="seed")
    found.insert(1, "error_standard_error", groups["error"].sem())
    return found.reset_index().to_dict("records")


# Densities of complete rows -------------------------------------------------------------


def gaussian_rivals() -> dict[str, Make]:
    med = {"C": [0.1, 0.3, 1.0, 3.0], "margin": ["auto", 1.0, 3.0, 10.0]}
    svm = {"svc__C": [0.1, 1.0, 10.0, 100.0]}
    return {
        "MED Gaussians, chosen": lambda: chosen(
            MEDClassifier("gaussian", calibrate=False), **med
        ),
        "MED Gaussians": lambda: MEDClassifier("gaussian", random_state=0),
        "Bayesian Gaussians": lambda: MEDClassifier("gaussian", C=NO_MULTIPLIERS),
        "ML Gaussians (QDA)": QuadraticDiscriminantAnalysis,
        "linear SVM, chosen": lambda: chosen(
            make_pipeline(StandardScaler(), SVC(kernel="linear")), **svm
        ),
        "RBF SVM, chosen": lambda: chosen(make_pipeline(StandardScaler(), SVC()), **svm),
        "logistic regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=2000)
        ),
        "HybridMixtureClassifier": lambda: HybridMixtureClassifier(random_state=0),
    }


def published_table(name: str, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Return complete rows and two classes: of crabs, their sex."""
    if name == "crabs":
        crabs = load_frame(options.data, "crabs")
        y = (crabs["sex"] == crabs["sex"].iloc[0]).to_numpy(int)
        return crabs.drop(columns=["sp", "sex", "class"]).to_numpy(float), y
    given = load_table(name, options.data)
    complete = ~given.X.isna().any(axis=1).to_numpy()
    return given.X[complete].to_numpy(float), given.y[complete]


def published(options: Options) -> list[Row]:
    rows = []
    for name, n_train in (("crabs", 80), ("breast_cancer_wisconsin_original", 200)):
        X, y = published_table(name, options)
        for seed in range(1 if options.quick else 10):
            train, test = split(y, n_train, seed)
            for label, make in gaussian_rivals().items():
                found = scored(make(), X, y, train, test)
                wrong = round(found["error"] * len(test) / 100.0)
                rows.append({"table": name, "model": label, "seed": seed, **found})
                rows[-1]["wrong"] = wrong
    return means(rows, ["table", "model"])


# Densities of rows with holes -----------------------------------------------------------


def holes(options: Options) -> list[Row]:
    models: dict[str, Make] = {
        "MED, independent columns": lambda: MEDClassifier("independent", random_state=0),
        "the same without multipliers": lambda: MEDClassifier(
            "independent", C=NO_MULTIPLIERS, random_state=0
        ),
        "HybridMixtureClassifier": lambda: HybridMixtureClassifier(random_state=0),
    }
    rows = []
    for name in SMALL[:1] if options.quick else SMALL:
        given = load_table(name, options.data, 400)
        X = given.X.to_numpy(float)
        for seed in range(1 if options.quick else 3):
            punched = punch_holes(X, 0.3, seed)
            train, test = split(given.y, len(X) // 2, seed)
            for label, make in models.items():
                found = scored(make(), punched, given.y, train, test)
                rows.append({"table": name, "model": label, "seed": seed, **found})
    return means(rows, ["table", "model"])


# Switches of kernels --------------------------------------------------------------------


def kernel_choices() -> list[Any]:
    """Return the thesis' kernels: polynomials of order 1 to 4, and widths."""

    def polynomial(degree: int) -> Any:
        return lambda a, b: polynomial_kernel(a, b, degree=degree, gamma=1.0, coef0=1.0)

    def bump(width: float) -> Any:
        return lambda a, b: rbf_kernel(a, b, gamma=0.5 / width**2)

    return [
        *(polynomial(degree) for degree in (1, 2, 3, 4)),
        *(bump(width) for width in (10.0, 1.0, 0.1, 0.01)),
    ]


def kernels(options: Options) -> list[Row]:
    given = load_table("isolet", options.data)
    # Rows of length one, so that all kernels have the same scale.
    X = given.X.to_numpy(float)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    rows = []
    for letter in range(1 if options.quick else 6):
        y = (given.y == letter).astype(int)
        train, test = split(y, 400, letter)
        for rho in (1.0, 1e-1, 1e-2, 1e-3):
            model = MEDClassifier(
                kernels=kernel_choices(), inclusion=rho, C=10.0, calibrate=False
            )
            found = scored(model, X, y, train, test)
            label = f"MED, eight kernels, inclusion {rho:g}"
            rows.append({"model": label, "seed": letter, **found})
        grid = {"C": [1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 10.0]}
        for label, model in (
            ("RBF SVM, chosen", chosen(SVC(), **grid)),
            ("MED RBF, chosen", chosen(MEDClassifier("rbf", calibrate=False), **grid)),
        ):
            found = scored(model, X, y, train, test)
            rows.append({"model": label, "seed": letter, **found})
    return means(rows, ["model"])


# Rows without a label -------------------------------------------------------------------


def two_classes(options: Options) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {}
    for name in ("wdbc", "sonar", "breast_cancer_wisconsin_original"):
        given = load_table(name, options.data)
        found[name] = (given.X.fillna(given.X.mean()).to_numpy(float), given.y)
    digits = load_arrays(options.data, "usps_11000")
    kept = np.isin(digits["y"], [3, 5])
    X = digits["X"][kept].reshape(kept.sum(), -1).astype(float)
    found["usps, 3 and 5"] = (X, (digits["y"][kept] == 5).astype(int))
    return found


def unlabelled(options: Options) -> list[Row]:
    models: dict[str, Make] = {
        "MED RBF, labelled rows alone": lambda: MEDClassifier("rbf", calibrate=False),
        "MED RBF, normal labels": lambda: MEDClassifier(
            "rbf", transduction="gaussian", calibrate=False
        ),
        "MED RBF, mean field": lambda: MEDClassifier(
            "rbf", transduction="mean_field", calibrate=False
        ),
        "HybridMixtureClassifier": lambda: HybridMixtureClassifier(random_state=0),
        "label spreading": lambda: LabelSpreading(kernel="knn", n_neighbors=10),
    }
    rows = []
    for name, (X, y) in two_classes(options).items():
        for seed in range(1 if options.quick else 6):
            order = np.random.default_rng(seed).permutation(len(y))[:220]
            own = y[order]
            scaled = StandardScaler().fit_transform(X[order])
            partly = np.full(len(own), -1)
            for label in (0, 1):
                partly[np.flatnonzero(own == label)[:5]] = label
            hidden = partly < 0
            for label, make in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = make().fit(scaled, partly)
                wrong = np.mean(model.predict(scaled[hidden]) != own[hidden])
                rows.append({"table": name, "model": label, "seed": seed})
                rows[-1]["error"] = 100.0 * float(wrong)
    return means(rows, ["table", "model"])


# Time -----------------------------------------------------------------------------------


def overlapping(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two overlapping classes with covariances of their own."""
    generator = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = generator.normal(size=(n, d))
    factor = np.eye(d) + generator.normal(scale=0.3 / np.sqrt(d), size=(d, d))
    return np.where(y[:, None] == 1, X @ factor + 0.3, X), y


def times(options: Options) -> list[Row]:
    rows = []
    for seed in range(1 if options.quick else 5):
        X, y = overlapping(2000, 30, seed)
        for C in (0.1, 1.0):
            model = MEDClassifier("gaussian", C=C, calibrate=False)
            began = time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - began
            rows.append({"C": C, "seed": seed, "cpu_seconds": seconds})
            rows[-1] |= {"iterations": model.n_iter_, "gap": model.dual_gap_}
    return rows


PARTS: dict[str, Callable[[Options], list[Row]]] = {
    "published": published,
    "holes": holes,
    "kernels": kernels,
    "unlabelled": unlabelled,
    "time": times,
}


def run(options: Options) -> None:
    for name, part in PARTS.items():
        rows = part(options)
        print(name)
        print_table(rows)
        write_table(f"med_generative_{name}", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
