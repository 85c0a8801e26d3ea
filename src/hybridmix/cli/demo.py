"""A table with holes and few labels: classify, fill, find outliers, compare.

Run it with ``hybridmix demo``. The table is scikit-learn's breast cancer data (569
tumours, 30 measurements), with one of the measurements given in words. Of all cells, 30 %
are removed at random, from training and test rows alike, and 40 of the 341 training rows
have a label. Every method has its default options, with these exceptions: two of our own
models show what a single mixture does, and what comes of training without discrimination;
the SVM is calibrated; and the boosted trees have leaves of five rows instead of 20, with
which 40 rows can hardly be split. A second table, in `demo_numbers`, has a number to
predict.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import hybridmix
from hybridmix.cli import demo_numbers
from hybridmix.cli.interrupts import stop_if_interrupted
from hybridmix.cli.models import Model
from hybridmix.data.holes import punch_holes, random_holes
from hybridmix.models.typicality import LOG_RARE
from hybridmix.progress import announce, listening
from hybridmix.tasks.base import quiet

TARGET = "diagnosis"
WORDS = "mean texture"
MISSING = 0.3
N_LABELLED = 40
N_MIXED_UP = 20
N_SPLITS = 3
_NAME_WIDTH = 44
Scores = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Split:
    """Training and test rows of one repetition, as data frames.

    Attributes
    ----------
    whole : DataFrame
        Test rows before cells were removed.
    train, test : DataFrame
        Rows with holes.
    mixed_up : DataFrame
        Test rows whose columns were shuffled one by one, with holes: every value is
        plausible, the combination is not.
    y_train : Series
        Labels of the training rows; None for most of them.
    y_test : Series
        Labels of the test rows.
    """

    whole: Any
    train: Any
    test: Any
    mixed_up: Any
    y_train: Any
    y_test: Any

    @cached_property
    def model(self) -> hybridmix.HybridMixtureClassifier:
        """The default model of the training rows."""
        return default_model().fit(self.train, self.y_train)

    @property
    def labelled(self) -> tuple[Any, Any]:
        """The training rows that have a label, and their labels."""
        has_label = self.y_train.notna()
        return self.train[has_label], self.y_train[has_label]


def tumours() -> tuple[Any, Any]:
    """Return the measurements, one of them in words, and the diagnoses."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    words = pd.cut(
        X[WORDS], [0.0, 16.0, 20.0, np.inf], labels=["fine", "medium", "coarse"]
    )
    X[WORDS] = words.astype(object)
    return X, y.map({0: "malignant", 1: "benign"}).astype(object).rename(TARGET)


def make_split(seed: int) -> Split:
    """Draw training rows, test rows, holes and the rows that have a label."""
    from sklearn.model_selection import train_test_split

    X, y = tumours()
    generator = np.random.default_rng(seed)
    train, whole, y_train, y_test = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=seed
    )
    kept, _ = train_test_split(
        y_train.index, train_size=N_LABELLED, stratify=y_train, random_state=seed
    )
    shuffled = generator.permuted(whole.to_numpy(object), axis=0)
    mixed_up = whole.iloc[:N_MIXED_UP].copy()
    mixed_up[:] = shuffled[:N_MIXED_UP]

    def with_holes(table: Any) -> Any:
        return punch_holes(table, random_holes(table.shape, MISSING, generator))

    return Split(
        whole=whole,
        train=with_holes(train),
        test=with_holes(whole),
        mixed_up=with_holes(mixed_up.astype(whole.dtypes)),
        y_train=y_train.where(y_train.index.isin(kept), None),
        y_test=y_test,
    )


def default_model() -> hybridmix.HybridMixtureClassifier:
    """Return the classifier that the demonstration is about."""
    return hybridmix.HybridMixtureClassifier(random_state=0)


def numbers_only(imputer: Any) -> Any:
    """Return a transformer that fills and scales numbers and encodes words."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    return make_column_transformer(
        (words, [WORDS]), remainder=make_pipeline(imputer, StandardScaler())
    )


def classify(split: Split) -> Scores:
    """Return accuracies, areas under the ROC curve and log losses on the test rows."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    from hybridmix.data import number_labels
    from hybridmix.metrics import classification_scores

    generative = default_model().set_params(objective="likelihood", effort="fast")
    single = default_model().set_params(effort="fast")
    everything = split.train, split.y_train
    booster = HistGradientBoostingClassifier(min_samples_leaf=5, random_state=0)
    machine = CalibratedClassifierCV(SVC(), ensemble=False)
    rivals = {
        "impute, boosted trees": booster,
        "impute, RBF SVM": machine,
        "impute, logistic regression": LogisticRegression(),
    }
    models: dict[str, tuple[Any, tuple[Any, Any]]] = {
        "  a single mixture": (single, everything),
        "  a single mixture, purely generative": (generative, everything),
    }
    for name, rival in rivals.items():
        models[name] = make_pipeline(numbers_only(SimpleImputer()), rival), split.labelled
    fitted = {"HybridMixtureClassifier()": split.model}
    fitted |= {name: model.fit(X, y) for name, (model, (X, y)) in models.items()}
    scores: Scores = {}
    for name, model in fitted.items():
        probabilities = model.predict_proba(split.test)
        labels = number_labels(split.y_test, model.classes_)
        found = classification_scores(labels, probabilities)
        names = ("accuracy", "ROC AUC", "log loss")
        scores[name] = tuple(found[metric].value for metric in names)
    return scores


def find_outliers(split: Split) -> Scores:
    """Return how well mixed-up rows are told apart from the test rows.

    For each method: the area under the ROC curve, and the shares of mixed-up and of other
    rows that it flags.
    """
    from sklearn.ensemble import IsolationForest
    from sklearn.impute import KNNImputer, SimpleImputer
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline

    # Scores, the lower the stranger, and the level below which rows are flagged.
    detectors: dict[str, tuple[Callable[[Any], np.ndarray], float]] = {
        "the same model": (split.model.typicality, LOG_RARE)
    }
    for name, imputer in (
        ("mean imputation, isolation forest", SimpleImputer()),
        ("nearest neighbours, isolation forest", KNNImputer()),
    ):
        forest = IsolationForest(random_state=0)
        detector = make_pipeline(numbers_only(imputer), forest).fit(split.train)
        detectors[name] = detector.score_samples, forest.offset_
    scores: Scores = {}
    for name, (score, level) in detectors.items():
        others, mixed_up = score(split.test), score(split.mixed_up)
        is_mixed_up = np.repeat([False, True], [len(others), len(mixed_up)])
        scores[name] = (
            float(roc_auc_score(is_mixed_up, -np.concatenate([others, mixed_up]))),
            float(np.mean(mixed_up < level)),
            float(np.mean(others < level)),
        )
    return scores


def fill_holes(split: Split) -> Scores:
    """Return errors of filled numbers, in standard deviations of their column."""
    from sklearn.impute import KNNImputer, SimpleImputer

    numbers = split.whole.columns.drop(WORDS)
    hole = split.test[numbers].isna().to_numpy()
    whole = split.whole[numbers]
    filled = {"the same model": split.model.impute(split.test)[numbers].to_numpy()}
    for name, imputer in (
        ("mean imputation", SimpleImputer()),
        ("nearest neighbours", KNNImputer()),
    ):
        imputer.fit(split.train[numbers])
        filled[name] = imputer.transform(split.test[numbers])
    scale = whole.std().to_numpy()
    errors = {
        name: ((values - whole.to_numpy()) / scale)[hole]
        for name, values in filled.items()
    }
    return {
        name: (float(np.sqrt(np.mean(np.square(error)))),)
        for name, error in errors.items()
    }


TASKS: tuple[tuple[str, Sequence[str], Callable[[Split], Scores]], ...] = (
    ("Classify", ("accuracy", "ROC AUC", "log loss"), classify),
    (
        "Find rows that were mixed up",
        ("ROC AUC", "flagged", "others flagged"),
        find_outliers,
    ),
    ("Fill holes", ("RMSE",), fill_holes),
)


def format_scores(title: str, headings: Sequence[str], results: list[Scores]) -> str:
    """Lay out means and, of several repetitions, standard deviations."""
    lines = [f"{title:<{_NAME_WIDTH}}" + "".join(f"{h:>16}" for h in headings)]
    for name in results[0]:
        numbers = np.array([result[name] for result in results])
        cells = [f"{mean:.3f}" for mean in numbers.mean(axis=0)]
        if len(results) > 1:
            deviations = numbers.std(axis=0)
            cells = [f"{c} ± {d:.3f}" for c, d in zip(cells, deviations, strict=True)]
        lines.append(f"  {name:<{_NAME_WIDTH - 2}}" + "".join(f"{c:>16}" for c in cells))
    return "\n".join(lines)


def compare(splits: Sequence[Split]) -> None:
    """Do all tasks on all splits and print the scores."""
    # For tables this small, threads of the boosted trees mostly wait for each other.
    from threadpoolctl import threadpool_limits

    for title, headings, task in TASKS:
        results = []
        for done, split in enumerate(splits):
            with listening(None), threadpool_limits(limits=1, user_api="openmp"):
                results.append(task(split))
            stop_if_interrupted()
            announce(title.lower(), done + 1, len(splits))
        print("\n" + format_scores(title, headings, results))


def write_files(split: Split, folder: Path) -> dict[str, Path]:
    """Write the tables, the model and the report of a split; return their paths."""
    names = ("tumours.csv", "new_tumours.csv", "model.hmx", "filled.csv", "report.html")
    paths = {name: folder / name for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    split.train.assign(**{TARGET: split.y_train}).to_csv(
        paths["tumours.csv"], index=False
    )
    split.test.assign(**{TARGET: split.y_test}).to_csv(
        paths["new_tumours.csv"], index=False
    )
    Model(split.model, target=TARGET).save(paths["model.hmx"])
    split.model.impute(split.test).to_csv(paths["filled.csv"], index=False)
    report = hybridmix.report(
        split.model,
        split.train,
        split.y_train,
        title="Tumours with holes and few labels",
    )
    report.save(paths["report.html"])
    return paths


def predict_numbers(folder: Path) -> dict[str, Path]:
    """Do regression on a second table; return the files that were written."""
    from threadpoolctl import threadpool_limits

    patients = demo_numbers.Patients.drawn()
    print(
        f"\nDiabetes data: {len(patients.train)} training rows, {len(patients.test)} "
        f"test rows, {demo_numbers.MISSING:.0%} of all cells missing. One random split."
    )
    with listening(None), threadpool_limits(limits=1, user_api="openmp"), quiet():
        model, scores = demo_numbers.compare(patients)
    stop_if_interrupted()
    announce("predict a number", 1, 1)
    print("\n" + format_scores("Predict a number", demo_numbers.HEADINGS, [scores]))
    print("\nCoverage is that of 90 % intervals; a low interval score is good.")
    return demo_numbers.write_files(patients, model, folder)


def run(
    folder: str | os.PathLike[str] = "hybridmix-demo",
    *,
    quick: bool = False,
) -> dict[str, Path]:
    """Run the demonstration.

    Parameters
    ----------
    folder : str or path-like, default="hybridmix-demo"
        Where to write tables, model and report.
    quick : bool, default=False
        One split instead of three.

    Returns
    -------
    paths : dict of str to Path
        The files that were written, by name.
    """
    began = time.perf_counter()
    splits = [make_split(seed) for seed in range(1 if quick else N_SPLITS)]
    n_train, n_columns = splits[0].train.shape
    print(
        f"Breast cancer data: {n_train} training rows, {len(splits[0].test)} test rows, "
        f"{n_columns} columns, one of them in words.\n{MISSING:.0%} of all cells are "
        f"missing, and {N_LABELLED} training rows have a label."
    )
    if not quick:
        print(f"Means and standard deviations over {N_SPLITS} random splits.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other methods warn about small folds
        compare(splits)
    print(
        "\nMixed-up rows have columns that were shuffled one by one. RMSE is in standard "
        "deviations of\nthe columns."
    )
    paths = write_files(splits[0], Path(folder))
    paths |= predict_numbers(Path(folder))
    print(f"\nWritten to {Path(folder).resolve()}:\n{', '.join(paths)}")
    for name in ("report.html", "regression_report.html"):
        print(f"Report: {paths[name].resolve()}")
    print(f"{time.perf_counter() - began:.0f} s")
    return paths
