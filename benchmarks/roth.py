"""Error rates of Roth's thesis (its Tables 4.1 and 4.2), with rivals in the same run.

Protocol of the thesis: MNIST in 50 principal components, the first 50,000 digits to train
on and 10,000 to choose by; USPS with 7000 / 1000 / 3000 digits; image segmentation with
210 training and 2100 test rows, chosen by three times five folds of the training rows;
iris and breast cancer (wdbc) by ten-fold cross-validation, whose lowest mean error is
reported, as in the thesis. In place of TIMIT: the phonemes of "The elements of
statistical learning", 3340 / 1169 log-periodograms of 256 values, chosen by folds of
speakers.

Columns: diagonal mixtures trained by likelihood (ML), the hybrid objective, conditional
likelihood (CL) and the margin of Pernkopf and Wohlmayr (MM); the best hybrid of any
covariance; linear and RBF support vector machines; boosted trees. All choices are made on
validation rows or folds, the same for all methods. Nothing is chosen by test rows.

``roth.csv`` has the errors in per cent beside those of the thesis, with what was chosen,
``roth_size.csv`` the numbers of parameters. Times are in ``roth_time.py``.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    load_arrays,
    load_xy,
    parse_options,
    print_table,
    say,
    write_table,
)
from roth_data import Split, mnist50, usps
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from hybridmix import HybridMixtureClassifier, HybridMixtureClassifierCV
from hybridmix.objectives import ScaledMargin

THESIS = {
    "MNIST-50": (4.32, 3.20, 3.45, 2.88, None, 6.37, 1.62, None),
    "USPS": (7.77, 4.87, 6.00, 5.13, None, 4.63, 1.97, None),
    "iris": (2.67, 2.00, 4.00, None, None, 2.00, 2.00, None),
    "wdbc": (4.39, 2.05, 3.00, None, None, 2.10, 1.75, None),
    "segmentation": (13.00, 10.14, 9.43, None, None, 7.90, 8.14, None),
    "phoneme_esl": (None,) * 8,
}
METHODS = (
    "ML (diagonal)",
    "hybrid (diagonal)",
    "CL (diagonal)",
    "MM (diagonal)",
    "best hybrid",
    "linear SVM",
    "RBF SVM",
    "boosted trees",
)
JOBS = 2
TARGETS = {
    "MNIST-50": 1.45,
    "USPS": 2.2,
    "iris": 2.0,
    "wdbc": 2.0,
    "segmentation": 8.0,
}
# Data sets with validation rows ---------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A trained model, what it was trained with, and on what."""

    model: Any
    options: str
    validation_error: float
    split: Split


def error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the error in per cent."""
    return 100.0 * float(np.mean(model.predict(X) != y))


def entry(model: Any, options: Mapping[str, Any], split: Split) -> Entry:
    validation_error = error(model, split.X_val, split.y_val)
    return Entry(model, str(options), validation_error, split)


def lowest(entries: Iterable[Entry]) -> Entry:
    """Return the entry of the lowest validation error; the first of equals."""
    return min(entries, key=lambda one: one.validation_error)


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations; a single empty one of an empty grid."""
    values = itertools.product(*grid.values())
    return [dict(zip(grid, chosen, strict=True)) for chosen in values]


def mixtures(
    split: Split,
    starts: Mapping[str, Sequence[Any]],
    objective: str,
    grid: Mapping[str, Sequence[Any]],
) -> Iterator[Entry]:
    """Train all settings; those with the same options of EM share its result."""
    for options in combinations(starts):
        start = HybridMixtureClassifier(
            "likelihood", class_prior="uniform", random_state=0, **options
        )
        start.fit(split.X, split.y)
        for setting in combinations(grid):
            model = start
            if objective != "likelihood":
                further = {"objective": objective, "init": start, "n_steps": 200}
                model = HybridMixtureClassifier(
                    **(start.get_params() | further | setting)
                )
                model.fit(split.X, split.y, X_val=split.X_val, y_val=split.y_val)
            yield entry(model, options | setting, split)


def linear_machines(split: Split, costs: Sequence[float]) -> Iterator[Entry]:
    for cost in costs:
        # One machine for each pair of classes, as in the thesis.
        pairs = OneVsOneClassifier(LinearSVC(C=cost, random_state=0))
        model = make_pipeline(StandardScaler(), pairs)
        yield entry(model.fit(split.X, split.y), {"C": cost}, split)


def kernel_machines(
    split: Split, costs: Sequence[float], widths: Sequence[float]
) -> Iterator[Entry]:
    """Train RBF machines; widths are multiples of one over the number of columns."""
    scaled = split.scaled()
    for cost, width in itertools.product(costs, widths):
        model = SVC(C=cost, gamma=width / scaled.X.shape[1], cache_size=2000)
        options = {"C": cost, "gamma x columns": width}
        yield entry(model.fit(scaled.X, scaled.y), options, scaled)


def boosted_trees(split: Split, rates: Sequence[float]) -> Iterator[Entry]:
    for rate in rates:
        model = HistGradientBoostingClassifier(
            learning_rate=rate, max_iter=300, early_stopping=True, random_state=0
        )
        model.fit(split.X, split.y, X_val=split.X_val, y_val=split.y_val)
        yield entry(model, {"learning_rate": rate}, split)


def diagonal(numbers: Sequence[int]) -> dict[str, Sequence[Any]]:
    return {"covariance_type": ["diag"], "n_components": numbers}


def full(numbers: Sequence[int], priors: Sequence[float]) -> dict[str, Sequence[Any]]:
    return {
        "covariance_type": ["full"],
        "n_components": numbers,
        "covariance_prior": priors,
    }


def scaled_margins(powers: Sequence[float]) -> dict[str, Sequence[Any]]:
    return {"loss": [ScaledMargin(power=power) for power in powers]}


def hinges(
    tradeoffs: Sequence[float], margins: Sequence[float]
) -> dict[str, Sequence[Any]]:
    return {"loss": ["hinge"], "tradeoff": tradeoffs, "margin": margins}


def mnist_entries(split: Split, quick: bool) -> Iterator[tuple[str, Entry]]:
    k = [2] if quick else [16, 64]
    larger = k if quick else [*k, 128]
    thesis_like = hinges([1.0], [32.0]) if quick else hinges([1.0, 8.0], [8.0, 32.0])
    yield METHODS[0], lowest(mixtures(split, diagonal(larger), "likelihood", {}))
    yield METHODS[1], lowest(mixtures(split, diagonal(k), "hybrid", thesis_like))
    yield METHODS[2], lowest(mixtures(split, diagonal(k), "conditional", {}))
    yield (
        METHODS[3],
        lowest(mixtures(split, diagonal(k), "margin", scaled_margins([0.1]))),
    )
    starts = full([1], [30.0]) if quick else full([2, 3], [200.0, 1000.0])
    best = hinges([30.0], [20.0] if quick else [20.0, 40.0])
    yield METHODS[4], lowest(mixtures(split, starts, "hybrid", best))
    yield METHODS[5], lowest(linear_machines(split, [0.1]))
    yield METHODS[6], lowest(kernel_machines(split, [10.0], [1.0, 2.0]))
    yield METHODS[7], lowest(boosted_trees(split, [0.1]))


def usps_entries(split: Split, quick: bool) -> Iterator[tuple[str, Entry]]:
    k = [1] if quick else [2, 4, 16]
    thesis_like = hinges([8.0], [32.0]) if quick else hinges([8.0, 64.0], [2.0, 32.0])
    yield METHODS[0], lowest(mixtures(split, diagonal(k), "likelihood", {}))
    yield METHODS[1], lowest(mixtures(split, diagonal(k), "hybrid", thesis_like))
    yield METHODS[2], lowest(mixtures(split, diagonal(k), "conditional", {}))
    margins = scaled_margins([0.1] if quick else [0.01, 0.1])
    yield METHODS[3], lowest(mixtures(split, diagonal(k), "margin", margins))
    starts = full([1], [30.0]) if quick else full([1, 2], [30.0, 100.0])
    best = hinges([30.0], [20.0] if quick else [20.0, 40.0])
    yield (
        METHODS[4],
        lowest(
            one
            for q in ([20] if quick else [40, 60])
            for one in mixtures(split.projected(q), starts, "hybrid", best)
        ),
    )
    yield METHODS[5], lowest(linear_machines(split, [0.001, 0.01]))
    costs, widths = ([10.0], [1.0]) if quick else ([2.0, 10.0], [0.5, 1.0, 2.0])
    yield METHODS[6], lowest(kernel_machines(split, costs, widths))
    yield METHODS[7], lowest(boosted_trees(split, [0.1]))


# Data sets with folds -------------------------------------------------------------------


@dataclass(frozen=True)
class Folded:
    """Training rows with folds; test rows if there are any of their own."""

    name: str
    X: np.ndarray
    y: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    views: dict[str, Any]
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None

    @property
    def is_large(self) -> bool:
        """Whether grids must be coarse for a run to end in minutes."""
        return len(self.y) > 1000


@dataclass(frozen=True)
class Choice:
    """What a search found: its error over the folds, and on test rows if there are."""

    options: str
    validation_error: float
    test_error: float | None


def searched(data: Folded, make_searches: Sequence[Callable[[], Any]]) -> Choice:
    """Run searches on every view of the columns; keep the best by its folds."""
    choices = []
    for (name, view), make in itertools.product(data.views.items(), make_searches):
        X = view.fit_transform(data.X) if view is not None else data.X
        search = make().fit(X, data.y)
        test = None
        if data.X_test is not None:
            X_test = view.transform(data.X_test) if view is not None else data.X_test
            test = error(search, X_test, data.y_test)
        options = f"{name}: {search.best_params_}" if name else str(search.best_params_)
        choices.append(Choice(options, 100.0 * (1.0 - search.best_score_), test))
    return min(choices, key=lambda choice: choice.validation_error)


def searches(data: Folded, quick: bool) -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    k = [1] if quick else [1, 2, 4]
    tradeoffs = [0, 10] if quick else [0, 1, 3, 10, 30, 100]
    priors: list[Any] = ["auto"] if quick else [1.0, 5.0, "auto", 100.0, 1000.0]
    losses = ["log"] if quick else ["log", "hinge"]
    if data.is_large:
        tradeoffs, priors, losses = [0, 1, 10], ["auto", 100.0], ["log"]

    def template(loss: str) -> HybridMixtureClassifier:
        return HybridMixtureClassifier(loss=loss, n_steps=30, random_state=0)

    def diagonal_search(tradeoffs: Sequence[float]) -> HybridMixtureClassifierCV:
        return HybridMixtureClassifierCV(
            template("hinge"),
            covariance_type="diag",
            n_components=k,
            tradeoff=tradeoffs,
            margin=["auto"] if quick else [2.0, "auto"],
            cv=data.folds,
            n_jobs=JOBS,
        )

    def best_search(loss: str) -> HybridMixtureClassifierCV:
        return HybridMixtureClassifierCV(
            template(loss),
            covariance_type=["full", "tied"],
            covariance_prior=priors,
            n_components=k[:2],
            tradeoff=tradeoffs,
            cv=data.folds,
            n_jobs=JOBS,
        )

    def grid(objective: str, values: dict[str, Any]) -> GridSearchCV:
        model = HybridMixtureClassifier(objective, covariance_type="diag", random_state=0)
        return search(model, {"n_components": k, **values})

    def search(model: Any, values: dict[str, Any]) -> GridSearchCV:
        return GridSearchCV(model, values, cv=data.folds, n_jobs=JOBS)

    yield METHODS[0], [lambda: diagonal_search([0])]
    yield METHODS[1], [lambda: diagonal_search(tradeoffs)]
    yield METHODS[2], [lambda: grid("conditional", {})]
    yield METHODS[3], [lambda: grid("margin", scaled_margins([0.01, 0.1]))]
    of_any_covariance = [lambda loss=loss: best_search(loss) for loss in losses]
    of_any_covariance.append(lambda: diagonal_search(tradeoffs))
    yield METHODS[4], of_any_covariance
    costs = [1.0] if quick else [0.1, 1.0, 10.0, 100.0, 1000.0]
    widths = ["scale"] if quick else ["scale", 0.001, 0.003, 0.01, 0.03, 0.1]
    linear = make_pipeline(StandardScaler(), SVC(kernel="linear"))
    yield METHODS[5], [lambda: search(linear, {"svc__C": costs})]
    kernel = make_pipeline(StandardScaler(), SVC())
    both = {"svc__C": costs, "svc__gamma": widths}
    yield METHODS[6], [lambda: search(kernel, both)]
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    shapes = {} if quick else {"learning_rate": [0.1], "max_leaf_nodes": [7, 31]}
    yield METHODS[7], [lambda: search(trees, shapes)]


def ten_folds(X: np.ndarray, y: np.ndarray) -> list[Any]:
    return list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))


def folded_sets(options: Options) -> Iterator[Callable[[], Folded]]:
    views = {"as they are": None, "power transform": PowerTransformer()}

    def whole(name: str) -> Folded:
        X, y = load_xy(options.data, name)
        return Folded(name, X, y, ten_folds(X, y), views)

    def segmentation() -> Folded:
        arrays = load_arrays(options.data, "segmentation")
        X, y = arrays["X_train"].astype(float), arrays["y_train"].astype(int)
        X_test = arrays["X_test"].astype(float)
        varies = X.std(axis=0) > 0
        X, X_test = X[:, varies], X_test[:, varies]
        # One split of 210 rows says too little about which of many settings is best.
        splitter = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
        folds = list(splitter.split(X, y))
        return Folded(
            "segmentation", X, y, folds, views, X_test, arrays["y_test"].astype(int)
        )

    def phonemes() -> Folded:
        arrays = load_arrays(options.data, "phoneme_esl")
        X, y = arrays["X_train"].astype(float), arrays["y_train"].astype(int)
        folds = list(GroupKFold(3).split(X, y, arrays["speaker_train"]))
        projections = {f"{q} principal components": PCA(q) for q in (20, 50)}
        X_test, y_test = arrays["X_test"].astype(float), arrays["y_test"].astype(int)
        return Folded("phoneme_esl", X, y, folds, projections, X_test, y_test)

    yield lambda: whole("iris")
    yield lambda: whole("wdbc")
    yield segmentation
    yield phonemes


# Tables ---------------------------------------------------------------------------------


def row(name: str, method: str, chosen: Entry | Choice, test_error: float) -> Row:
    thesis = THESIS[name][METHODS.index(method)]
    ours = method == "best hybrid"
    return {
        "data": name,
        "method": method,
        "error": test_error,
        "thesis": thesis,
        "target": TARGETS.get(name) if ours else None,
        "validation_error": chosen.validation_error,
        "chosen": chosen.options,
    }


def n_parameters(model: Any) -> int | None:
    """Count the numbers that a model consists of, as the thesis does."""
    if isinstance(model, HybridMixtureClassifier):
        return model.model_.n_parameters
    if isinstance(model, SVC):
        duals = int(np.count_nonzero(model.dual_coef_))
        return model.support_vectors_.size + duals + model.intercept_.size
    return None


def run(options: Options) -> None:
    errors: list[Row] = []
    sizes: list[Row] = []
    for load, entries_of in ((mnist50, mnist_entries), (usps, usps_entries)):
        try:
            split = load(options.data)
        except MissingDataError as problem:
            print(f"LEFT OUT: {problem}", flush=True)
            continue
        split = split.thinned(2000) if options.quick else split
        for method, chosen in entries_of(split, options.quick):
            test = error(chosen.model, chosen.split.X_test, chosen.split.y_test)
            errors.append(row(split.name, method, chosen, test))
            print_table(errors[-1:])
            if count := n_parameters(chosen.model):
                sizes.append({"data": split.name, "method": method, "parameters": count})
    for load_folded in folded_sets(options):
        try:
            data = load_folded()
        except MissingDataError as problem:
            print(f"LEFT OUT: {problem}", flush=True)
            continue
        for method, make_searches in searches(data, options.quick):
            choice = searched(data, make_searches)
            test = (
                choice.validation_error
                if choice.test_error is None
                else choice.test_error
            )
            errors.append(row(data.name, method, choice, test))
            print_table(errors[-1:])
        write_table("roth", errors, options)
    say("Errors in per cent, with those of the thesis and what was chosen")
    print_table([{k: v for k, v in one.items() if k != "chosen"} for one in errors])
    say("Numbers of parameters")
    print_table(sizes)
    write_table("roth_size", sizes, options)


def main(arguments: Sequence[str] | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
