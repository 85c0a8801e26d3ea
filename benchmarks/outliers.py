"""Outlier detection on real tables, against isolation forest, LOF and PyOD's GMM.

Rows of some class are the anomalies. "novelty": training rows are normal, and one in ten
test rows is an anomaly. "unsupervised": one in twenty rows of the only table is an
anomaly, and the detector scores the rows that it was fitted to. All methods see
standardised columns. With holes, a fifth of the cells is missing at random, in training
and in test rows; rivals get them filled by column means, and isolation forest and LOF
also by nearest neighbours ("KNN").

"ours" is the score of the detector, "log density" the plain log density of the very same
fitted mixture. ``outliers_summary.csv`` has means over tables, and in
``outliers_differences.csv`` are mean ranks and differences to the best rival, with 95 %
intervals over tables.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
    rival,
    say,
    short,
    write_table,
)
from paired import overall
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.impute import KNNImputer
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from hybridmix import MixtureDensity, MixtureOutlierDetector

HOLES = 0.2
SHARES = {"novelty": 0.10, "unsupervised": 0.05}
MOST_NORMAL = 2000
PACKAGES = ("pyod",)
OURS = "ours"


@dataclass(frozen=True)
class Task:
    """A table with anomalies.

    Attributes
    ----------
    name : str
        Name of the table.
    X : ndarray of shape (n, d)
    is_anomaly : ndarray of shape (n,)
    """

    name: str
    X: np.ndarray
    is_anomaly: np.ndarray


# Tables ---------------------------------------------------------------------------


def wdbc(_: Path) -> Iterator[Task]:
    X, y = load_breast_cancer(return_X_y=True)
    yield Task("wdbc (malignant)", X, y == 0)


def wisconsin(data: Path) -> Iterator[Task]:
    frame = load_frame(data, "breast_cancer_wisconsin_original")
    X = frame.drop(columns="class").to_numpy(float)
    labels = frame["class"].astype(str)
    rare = labels.value_counts().index[-1]
    yield Task("breast cancer original (malignant)", X, (labels == rare).to_numpy())


def segmentation(data: Path) -> Iterator[Task]:
    X, y = load_xy(data, "segmentation")
    X = X[:, X.std(axis=0) > 0]
    for label in np.unique(y):
        yield Task("segmentation (each class)", X, y == label)


def glass(data: Path) -> Iterator[Task]:
    X, y = load_xy(data, "glass")
    labels, counts = np.unique(y, return_counts=True)
    yield Task("glass (rarest class)", X, y == labels[np.argmin(counts)])


def sonar(data: Path) -> Iterator[Task]:
    X, y = load_xy(data, "sonar")
    labels, counts = np.unique(y, return_counts=True)
    yield Task("sonar (rarer class)", X, y == labels[np.argmin(counts)])


def phoneme(data: Path) -> Iterator[Task]:
    X, y = load_xy(data, "phoneme_elena")
    labels, counts = np.unique(y, return_counts=True)
    yield Task("phoneme (oral)", X, y == labels[np.argmin(counts)])


def digits(_: Path) -> Iterator[Task]:
    X, y = load_digits(return_X_y=True)
    projected = PCA(20, random_state=0).fit_transform(X)
    for digit in range(10):
        yield Task("digits, 20 components (each digit)", projected, y == digit)


TABLES: list[Callable[[Path], Iterator[Task]]] = [
    wdbc,
    wisconsin,
    segmentation,
    glass,
    sonar,
    phoneme,
    digits,
]


def tasks(data: Path, quick: bool) -> Iterator[tuple[Task, int]]:
    """Yield all tasks, each with the number of seeds it is worth."""
    for table in TABLES[:2] if quick else TABLES:
        try:
            found = list(table(data))
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)
            continue
        n_seeds = 1 if quick or len(found) > 1 else 5
        yield from ((task, n_seeds) for task in found)


# Splits ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Training rows, test rows and which of these are anomalies."""

    train: np.ndarray
    test: np.ndarray
    is_anomaly: np.ndarray


def split(task: Task, setting: str, holes: float, seed: int) -> Split:
    """Draw rows, standardise them by the training rows and punch holes."""
    generator = np.random.default_rng([seed, 5])
    normal = generator.permutation(np.flatnonzero(~task.is_anomaly))[:MOST_NORMAL]
    strange = generator.permutation(np.flatnonzero(task.is_anomaly))
    share = SHARES[setting]
    if setting == "novelty":
        train, normal = np.split(normal, [len(normal) // 2])
        test = _mixed(normal, strange, share, generator)
    else:
        train = test = _mixed(normal, strange, share, generator)
    deviation = np.nanstd(task.X[train], axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    centre = np.nanmean(task.X[train], axis=0)
    X_train = punch_holes((task.X[train] - centre) / scale, holes, seed)
    X_test = X_train
    if setting == "novelty":
        X_test = punch_holes((task.X[test] - centre) / scale, holes, seed + 1000)
    return Split(X_train, X_test, task.is_anomaly[test])


def _mixed(
    normal: np.ndarray, strange: np.ndarray, share: float, generator: np.random.Generator
) -> np.ndarray:
    wanted = max(3, round(len(normal) * share / (1.0 - share)))
    return generator.permutation(np.concatenate([normal, strange[:wanted]]))


# Methods --------------------------------------------------------------------------


def filled(parts: Split) -> tuple[np.ndarray, np.ndarray]:
    """Fill holes by the column means of the training rows."""
    mean = np.nanmean(parts.train, axis=0)
    train = np.where(np.isnan(parts.train), mean, parts.train)
    return train, np.where(np.isnan(parts.test), mean, parts.test)


def filled_by_neighbours(parts: Split) -> tuple[np.ndarray, np.ndarray]:
    """Fill holes from the nearest training rows."""
    imputer = KNNImputer(keep_empty_features=True)
    train = imputer.fit_transform(parts.train)
    same = parts.train is parts.test
    return train, train if same else imputer.transform(parts.test)


Fill = Callable[[Split], tuple[np.ndarray, np.ndarray]]


def rival_scores(
    parts: Split, n_components: int, seed: int, by_neighbours: bool
) -> dict[str, Any]:
    """Return functions that give anomaly scores, high for anomalies."""
    same = parts.train is parts.test

    def forest(fill: Fill) -> np.ndarray:
        train, test = fill(parts)
        return -IsolationForest(random_state=seed).fit(train).score_samples(test)

    def local(fill: Fill) -> np.ndarray:
        train, test = fill(parts)
        factor = LocalOutlierFactor(novelty=not same).fit(train)
        return -(factor.negative_outlier_factor_ if same else factor.score_samples(test))

    def mixture(k: int) -> np.ndarray:
        from pyod.models.gmm import GMM

        train, test = filled(parts)
        return GMM(n_components=k, random_state=seed).fit(train).decision_function(test)

    found = {
        "isolation forest": lambda: forest(filled),
        "LOF": lambda: local(filled),
        "PyOD GMM, 1 component": lambda: mixture(1),
        "PyOD GMM, our number": lambda: mixture(n_components),
    }
    if by_neighbours:
        found["isolation forest, KNN"] = lambda: forest(filled_by_neighbours)
        found["LOF, KNN"] = lambda: local(filled_by_neighbours)
    return found


def figures(scores: np.ndarray, is_anomaly: np.ndarray) -> dict[str, float]:
    return {
        "auc": float(roc_auc_score(is_anomaly, scores)),
        "average_precision": float(average_precision_score(is_anomaly, scores)),
    }


def measure(task: Task, setting: str, holes: float, seed: int, pyod: bool) -> list[Row]:
    """Compare all methods on one split."""
    parts = split(task, setting, holes, seed)
    key = {"table": task.name, "setting": setting, "holes": holes}
    start = time.perf_counter()
    detector = MixtureOutlierDetector(random_state=seed).fit(parts.train)
    tail = -detector.score_samples(parts.test)
    taken = time.perf_counter() - start
    k = detector.n_components_
    density = -MixtureDensity.score_samples(detector, parts.test)
    rows: list[Row] = [
        {
            **key,
            "method": OURS,
            **figures(tail, parts.is_anomaly),
            "seconds": taken,
            "components": k,
        },
        {**key, "method": "log density", **figures(density, parts.is_anomaly)},
    ]
    for name, score in rival_scores(parts, k, seed, holes > 0.0).items():
        if name.startswith("PyOD") and not pyod:
            continue
        start = time.perf_counter()
        try:
            scores = score()
        except Exception as error:
            print(f"LEFT OUT: {name} on {task.name}: {short(error)}", flush=True)
            continue
        taken = time.perf_counter() - start
        rows.append(
            {**key, "method": name, **figures(scores, parts.is_anomaly), "seconds": taken}
        )
    return rows


def summary(rows: Sequence[Row]) -> list[Row]:
    """Average over tables, and count where a method is best."""
    means = means_of(rows, ["table", "setting", "holes", "method"], ["auc"])
    best: dict[tuple[Any, ...], float] = {}
    for row in means:
        key = (row["table"], row["setting"], row["holes"])
        best[key] = max(best.get(key, 0.0), row["auc"])
    for row in means:
        key = (row["table"], row["setting"], row["holes"])
        row["best_on"] = float(row["auc"] >= best[key] - 1e-12)
    table = means_of(means, ["setting", "holes", "method"], ["auc", "best_on"])
    precision = means_of(
        means_of(rows, ["table", "setting", "holes", "method"], ["average_precision"]),
        ["setting", "holes", "method"],
        ["average_precision"],
    )
    for row, other in zip(table, precision, strict=True):
        row["average_precision"] = other["average_precision"]
    return table


def run(options: Options) -> None:
    pyod = rival("pyod.models.gmm") is not None
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task, n_seeds in tasks(options.data, options.quick):
            for setting in SHARES:
                for holes in (0.0, HOLES):
                    for seed in range(n_seeds):
                        rows += measure(task, setting, holes, seed, pyod)
    values = ["auc", "average_precision", "seconds", "components"]
    table = means_of(rows, ["table", "setting", "holes", "method"], values)
    say(
        "Outlier detection: area under the ROC curve and average precision",
        {"components": "number that our detector chose, by BIC"},
    )
    print_table(table)
    write_table("outliers", table, options, PACKAGES)
    # The plain log density is another score of our model, not a rival.
    compared = [row for row in table if row["method"] != "log density"]
    averages = summary(rows)
    say("Means over tables", {"best_on": "share of tables where no method is better"})
    print_table(averages)
    write_table("outliers_summary", averages, options, PACKAGES)
    differences = overall(compared, ["setting", "holes"], "auc", OURS, highest=True)
    say("Areas under the ROC curve: ranks, and differences to the best rival")
    print_table(differences)
    write_table("outliers_differences", differences, options, PACKAGES)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
