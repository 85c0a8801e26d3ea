"""One fitted model against the usual three: imputer, boosted trees, isolation forest.

Tables of scikit-learn and of the data folder lose a fifth of their cells, in training and
test rows alike. On test rows three things are asked, in three-fold cross-validation:

- the class: share of wrong ones;
- the removed values of real columns: root mean square error in standard deviations, and
  of categorical columns: share of wrong categories;
- which rows are wrong: test rows are joined by as many whose columns were shuffled one by
  one, so that every value is plausible and the combination is not; area under the ROC
  curve.

`HybridMixtureClassifier()` answers all three, and so does what it was in version 0.1, by
explicit options. Tables have at most 400 rows. The usual three are an imputer (five
nearest neighbours after scaling, most frequent category),
`HistGradientBoostingClassifier` and `IsolationForest` after it, with their defaults.
Boosted trees that take missing values as they are classify only. In the second
situation five rows of each class have a label; boosted trees then get leaves of two rows
or more, since of 20 there would be none, and imputer, forest and our model learn from all
rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from common import (
    MissingDataError,
    Options,
    Row,
    parse_options,
    print_table,
    say,
    write_table,
)
from contestants import default_classifier, old_classifier
from pictures import image_folder, prepare_pictures, save
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import FOLDS, UNLABELLED, Table, few_labels, load_table

from hybridmix.data.holes import punch_holes, random_holes

SITUATIONS = ("all labels", "few labels")
HOLES = 0.2
MOST_ROWS = 400
# Tables, and what they are called in the file of results.
TABLES = {
    "iris": "iris",
    "wine": "wine",
    "wdbc": "breast cancer (wdbc)",
    "glass": "glass",
    "sonar": "sonar",
    "segmentation": "segmentation",
    "phoneme_elena": "phoneme_elena",
    "crabs": "crabs",
    "breast_cancer_wisconsin_original": "breast_cancer_wisconsin_original",
    "dermatology": "dermatology",
    "adult": "adult",
    "splice": "splice",
    "mushroom": "mushroom",
}
OURS, OLD = "one model", "one model, version 0.1"
GLUE = "imputer, boosting, forest"
NATIVE = "boosting that takes holes"
MEASURES = {
    "error": "error of the class",
    "rmse": "error of filled numbers",
    "auc": "ROC area, mixed-up rows",
}


def tables(options: Options) -> Iterator[Table]:
    """Yield all tables; say which files are missing."""
    for name in list(TABLES)[:2] if options.quick else TABLES:
        try:
            given = load_table(name, options.data, MOST_ROWS)
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)
            continue
        yield replace(given, name=TABLES[name])


class Glue:
    """An imputer, boosted trees and an isolation forest, put together by hand."""

    def __init__(self, X: pd.DataFrame, y: np.ndarray) -> None:
        self._real = list(X.select_dtypes("number").columns)
        self._text = [name for name in X if name not in self._real]
        self._scaler = StandardScaler()
        self._numbers = make_pipeline(self._scaler, KNNImputer(keep_empty_features=True))
        self._words = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
        if self._real:
            self._numbers.fit(X[self._real])
        if self._text:
            self._words.fit(X[self._text].astype(object))
        words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        self._encoder = make_column_transformer(
            (words, make_column_selector(dtype_exclude="number")), remainder="passthrough"
        )
        encoded = self._encoder.fit_transform(self.impute(X))
        labelled = y != UNLABELLED
        self._booster = booster(y).fit(encoded[labelled], y[labelled])
        self._forest = IsolationForest(random_state=0).fit(encoded)
        self.classes_ = self._booster.classes_

    def impute(self, X: pd.DataFrame) -> pd.DataFrame:
        """Fill the holes."""
        filled = X.copy()
        if self._real:
            numbers = self._numbers.transform(X[self._real])
            filled[self._real] = self._scaler.inverse_transform(numbers)
        if self._text:
            filled[self._text] = self._words.transform(X[self._text].astype(object))
        return filled

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the classes."""
        return self._booster.predict(self._encoder.transform(self.impute(X)))

    def typicality(self, X: pd.DataFrame) -> np.ndarray:
        """Return the scores of the isolation forest."""
        return self._forest.score_samples(self._encoder.transform(self.impute(X)))


def booster(y: np.ndarray) -> HistGradientBoostingClassifier:
    leaf = 2 if np.any(y == UNLABELLED) else 20
    return HistGradientBoostingClassifier(
        min_samples_leaf=leaf, categorical_features="from_dtype", random_state=0
    )


def native_error(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> float:
    """Return the error of boosted trees that are given the holes."""
    types = dict.fromkeys(X.select_dtypes(exclude="number"), "category")
    labelled = y != UNLABELLED
    model = booster(y).fit(X[labelled].astype(types), y[labelled])
    return float(np.mean(model.predict(X_test.astype(types)) != y_test))


def mixed_up(X: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """Shuffle the columns one by one."""
    return pd.DataFrame(
        {name: X[name].array[generator.permutation(len(X))] for name in X},
        index=X.index,
    )


def filling(X: pd.DataFrame, holes: np.ndarray, filled: pd.DataFrame) -> Row:
    """Return the errors of filled numbers and categories."""
    numeric = [name for name in X.select_dtypes("number") if X[name].std() > 0]
    squares, wrong = [], []
    for position, name in enumerate(X):
        hole = holes[:, position] & X[name].notna().to_numpy()
        true, guess = X[name][hole], filled[name][hole]
        if name in numeric:
            squares.append(((guess - true) / X[name].std()).to_numpy(float) ** 2)
        elif name not in X.select_dtypes("number"):
            wrong.append(
                guess.astype(object).to_numpy() != true.astype(object).to_numpy()
            )
    return {
        "rmse": float(np.sqrt(np.mean(np.concatenate(squares)))) if squares else None,
        "wrong_categories": float(np.mean(np.concatenate(wrong))) if wrong else None,
    }


def measure(given: Table, situation: str) -> Iterator[Row]:
    """Yield the figures of each method, for each fold."""
    generator = np.random.default_rng(0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for train, test in folds.split(given.X, given.y):
        whole, y_test = given.X.iloc[test], given.y[test]
        holes = random_holes(whole.shape, HOLES, generator)
        X_test = punch_holes(whole, holes)
        strange = mixed_up(whole, generator)
        strange = punch_holes(strange, random_holes(strange.shape, HOLES, generator))
        X = given.X.iloc[train]
        X = punch_holes(X, random_holes(X.shape, HOLES, generator))
        y = given.y[train] if situation == "all labels" else few_labels(given.y[train])
        models: dict[str, Any] = {
            OURS: default_classifier().fit(X, y),
            OLD: old_classifier().fit(X, y),
            GLUE: Glue(X, y),
        }
        is_strange = np.repeat([False, True], [len(X_test), len(strange)])
        for name, model in models.items():
            scores = [model.typicality(X_test), model.typicality(strange)]
            yield {
                "method": name,
                "error": float(np.mean(model.predict(X_test) != y_test)),
                **filling(whole, holes, model.impute(X_test)),
                "auc": float(roc_auc_score(is_strange, -np.concatenate(scores))),
            }
        yield {"method": NATIVE, "error": native_error(X, y, X_test, y_test)}


def draw(frame: pd.DataFrame, options: Options) -> None:
    """Draw the figures of one model against those of the usual three."""
    folder = image_folder(options)
    if folder is None:
        return
    plt = prepare_pictures()
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.3))
    pairs = frame.pivot(index=["table", "situation"], columns="method")
    markers = dict(zip(SITUATIONS, ("o", "^"), strict=True))
    for ax, (measure_name, title) in zip(axes, MEASURES.items(), strict=True):
        for situation, marker in markers.items():
            own = pairs.xs(situation, level="situation")[measure_name]
            ax.plot(
                own[GLUE],
                own[OURS],
                marker,
                color="#0072b2",
                alpha=0.8,
                markerfacecolor="white" if marker == "^" else None,
                label=situation,
            )
        ax.margins(0.08)
        limits = (*ax.get_xlim(), *ax.get_ylim())
        low, high = min(limits), max(limits)
        ax.plot([low, high], [low, high], color="grey", linewidth=0.8)
        ax.set(title=title, xlabel=GLUE, xlim=(low, high), ylim=(low, high))
        ax.set_box_aspect(1)
        # The better half of the plane.
        floor = low if measure_name != "auc" else high
        ax.fill_between([low, high], [low, high], floor, color="#d6e9f5", zorder=0)
    axes[0].set_ylabel(OURS)
    axes[0].legend(loc="upper left")
    save(figure, "one_model", folder)


def run(options: Options) -> None:
    rows: list[Row] = []
    for given in tables(options):
        for situation in SITUATIONS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", (ConvergenceWarning, UserWarning))
                folds = pd.DataFrame(measure(given, situation))
            means = folds.groupby("method", sort=False).mean()
            rows += [
                {"table": given.name, "situation": situation, "method": name, **own}
                for name, own in means.iterrows()
            ]
        print(f"{given.name} done", flush=True)
        write_table("one_model", rows, options, ["pandas"])
    frame = pd.DataFrame(rows)
    say(
        "One model against imputer, boosted trees and isolation forest: means over tables"
    )
    overview = frame.groupby(["situation", "method"], sort=False).mean(numeric_only=True)
    summary = overview.reset_index().to_dict("records")
    print_table(summary)
    write_table("one_model_summary", summary, options, ["pandas"])
    draw(frame, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
