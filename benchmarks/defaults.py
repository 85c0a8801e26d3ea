"""Which options of the classifier should be the defaults: a study over many tables.

Every setting is cross-validated on tables of scikit-learn and of the data folder, in
three situations: complete and labelled; with a fifth of the cells removed at random from
training and test rows; and with labels for five rows of each class alone, the others
unlabelled. Random forest and boosted trees with their defaults and an RBF SVM with C=10,
all after mean imputation and one-hot encoding, show how high the bar is.

The summary has, for each setting and situation, the mean error and log loss over the
tables, the mean of the error divided by that of the likelihood, and on how many tables it
is better or worse than the likelihood by more than one error in a hundred rows.
"""

from __future__ import annotations

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
    parse_options,
    print_table,
    say,
    write_table,
)
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from hybridmix import HybridMixtureClassifier
from hybridmix.metrics import label_losses

FOLDS = 3
MOST_ROWS = 400
HOLES = 0.2
LABELS_PER_CLASS = 5
UNLABELLED = -1
BASE = "likelihood"

SETTINGS: dict[str, dict[str, Any]] = {
    BASE: {"objective": "likelihood"},
    "hybrid, hinge, 10": {"objective": "hybrid", "tradeoff": 10.0, "loss": "hinge"},
    "hybrid, hinge, 30": {"objective": "hybrid", "tradeoff": 30.0, "loss": "hinge"},
    "hybrid, log, 3": {"objective": "hybrid", "tradeoff": 3.0, "loss": "log"},
    "hybrid, log, 10": {"objective": "hybrid", "tradeoff": 10.0, "loss": "log"},
    "hybrid, log, 30": {"objective": "hybrid", "tradeoff": 30.0, "loss": "log"},
}
SHAPES: dict[str, dict[str, Any]] = {
    "full": {"covariance_type": "full"},
    "full, prior 1": {"covariance_type": "full", "covariance_prior": 1.0},
    "tied": {"covariance_type": "tied"},
    "diag": {"covariance_type": "diag"},
}


@dataclass(frozen=True)
class Table:
    """Rows and class numbers."""

    name: str
    X: pd.DataFrame
    y: np.ndarray


# Tables ---------------------------------------------------------------------------------


def table(name: str, X: Any, y: Any) -> Table:
    """Keep at most so many rows that the study ends; those of all classes alike."""
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
    frame = pd.DataFrame(np.asarray(X)) if not isinstance(X, pd.DataFrame) else X
    frame = frame.iloc[rows].reset_index(drop=True)
    frame.columns = frame.columns.astype(str)
    return Table(name, frame, np.unique(np.asarray(y)[rows], return_inverse=True)[1])


def frame_table(
    name: str, data: Path, drop: Sequence[str] = (), all_text: bool = False
) -> Table:
    frame = load_frame(data, name)
    y = frame.pop("class").to_numpy(str)
    frame = frame.drop(columns=list(drop))
    if all_text:
        frame = frame.astype("category")
    return table(name.removesuffix("_train"), frame, y)


def tables(options: Options) -> Iterator[Table]:
    data = options.data
    loaders: list[Callable[[], Table]] = [
        lambda: table("iris", *load_iris(return_X_y=True)),
        lambda: table("wine", *load_wine(return_X_y=True)),
        lambda: table("breast cancer (wdbc)", *load_breast_cancer(return_X_y=True)),
        lambda: table("glass", *load_xy(data, "glass")),
        lambda: table("sonar", *load_xy(data, "sonar")),
        lambda: table("segmentation", *load_xy(data, "segmentation")),
        lambda: table("phoneme_elena", *load_xy(data, "phoneme_elena")),
        lambda: frame_table("crabs", data, drop=["sp", "sex"]),
        lambda: frame_table("breast_cancer_wisconsin_original", data),
        lambda: frame_table("dermatology", data),
        lambda: frame_table("adult_train", data),
        lambda: frame_table("splice", data, all_text=True),
        lambda: frame_table("mushroom", data, all_text=True),
    ]
    for load in loaders[:2] if options.quick else loaders:
        try:
            yield load()
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)


# Situations -----------------------------------------------------------------------------


def with_holes(X: pd.DataFrame) -> pd.DataFrame:
    holes = np.random.default_rng(0).random(X.shape) < HOLES
    return X.mask(holes)


def few_labels(y: np.ndarray) -> np.ndarray:
    """Keep the labels of a few rows of each class."""
    generator = np.random.default_rng(0)
    result = np.full(len(y), UNLABELLED)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        kept = generator.permutation(rows)[:LABELS_PER_CLASS]
        result[kept] = label
    return result


SITUATIONS = ("complete", "holes", "few labels")


def parts(situation: str, given: Table) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield training rows, their labels, test rows and theirs, for each fold."""
    X = with_holes(given.X) if situation == "holes" else given.X
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for train, test in folds.split(X, given.y):
        y_train = given.y[train]
        if situation == "few labels":
            y_train = few_labels(y_train)
        yield X.iloc[train], y_train, X.iloc[test], given.y[test]


# Contestants ----------------------------------------------------------------------------


class LabelledOnly:
    """A rival that learns from the labelled rows alone."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> LabelledOnly:
        """Fit the rival."""
        labelled = y != UNLABELLED
        self.model.fit(X[labelled], y[labelled])
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Predict like the rival."""
        return self.model.predict_proba(X)


def encoded(model: Any) -> Any:
    """Put imputation, scaling and one-hot encoding before a model."""
    real = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    columns = make_column_transformer(
        (real, make_column_selector(dtype_include="number")),
        (text, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, model)


def rivals() -> dict[str, Callable[[], Any]]:
    return {
        "random forest": lambda: LabelledOnly(
            encoded(RandomForestClassifier(n_jobs=1, random_state=0))
        ),
        "boosted trees": lambda: LabelledOnly(
            encoded(HistGradientBoostingClassifier(random_state=0))
        ),
        "RBF SVM": lambda: LabelledOnly(
            encoded(SVC(probability=True, random_state=0, C=10.0))
        ),
    }


def ours(shape: dict[str, Any], setting: dict[str, Any]) -> Callable[[], Any]:
    return lambda: HybridMixtureClassifier(**shape, **setting, random_state=0)


def contestants(quick: bool) -> dict[tuple[str, str], Callable[[], Any]]:
    found: dict[tuple[str, str], Callable[[], Any]] = {}
    for shape_name, shape in SHAPES.items():
        for name, setting in SETTINGS.items():
            found[shape_name, name] = ours(shape, setting)
    found |= {("rival", name): make for name, make in rivals().items()}
    return dict(list(found.items())[:4]) if quick else found


def score(make: Callable[[], Any], situation: str, given: Table) -> Row:
    """Return error and log loss over all folds."""
    wrong, losses = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, UserWarning, FutureWarning))
        for X, y, X_test, y_test in parts(situation, given):
            model = make().fit(X, y)
            probabilities = np.zeros((len(y_test), given.y.max() + 1))
            probabilities[:, model.classes_] = model.predict_proba(X_test)
            wrong.append(np.mean(probabilities.argmax(axis=1) != y_test))
            of_label = probabilities[np.arange(len(y_test)), y_test]
            with np.errstate(divide="ignore"):
                losses.append(label_losses(np.log(of_label)).mean())
    return {"error": float(np.mean(wrong)), "log_loss": float(np.mean(losses))}


# Summary --------------------------------------------------------------------------------


def summary(rows: Sequence[Row]) -> list[Row]:
    frame = pd.DataFrame(rows)
    base = frame[(frame["setting"] == BASE)].set_index(["situation", "table", "shape"])
    result = []
    for (situation, shape, setting), own in frame.groupby(
        ["situation", "shape", "setting"], sort=False
    ):
        keys = [
            (situation, name, "full" if shape == "rival" else shape) for name in own.table
        ]
        before = base.loc[keys, "error"].to_numpy()
        gain = before - own["error"].to_numpy()
        result.append(
            {
                "situation": situation,
                "shape": shape,
                "setting": setting,
                "tables": len(own),
                "mean_error": own["error"].mean(),
                "mean_log_loss": own["log_loss"].mean(),
                "median_log_loss": own["log_loss"].median(),
                "error_ratio": np.mean((own["error"] + 0.01) / (before + 0.01)),
                "better": int(np.sum(gain > 0.01)),
                "worse": int(np.sum(gain < -0.01)),
            }
        )
    return result


def run(options: Options) -> None:
    rows: list[Row] = []
    for given in tables(options):
        for situation in SITUATIONS:
            for (shape, name), make in contestants(options.quick).items():
                figures = score(make, situation, given)
                rows.append(
                    {
                        "table": given.name,
                        "situation": situation,
                        "shape": shape,
                        "setting": name,
                        **figures,
                    }
                )
        print(f"{given.name} done", flush=True)
        write_table("defaults", rows, options, ["pandas"])
    say("Settings of the classifier over all tables")
    overview = summary(rows)
    print_table(overview)
    write_table("defaults_summary", overview, options, ["pandas"])


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
