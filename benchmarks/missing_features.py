"""Errors when features are missing at classification time, after Roth's section 4.4.1.

Training rows are complete. Of every test row a share p of the D features is removed,
round(D p) of them, the same for all methods; mixtures classify by the exact marginal of
what is left, support vector machines see holes that are filled by the means of the
training rows or by the mean of the three nearest training rows in the observed columns
(all training rows are searched). On MNIST-50 a second RBF machine sees standardised
columns, which suits mean imputation better.

Data: MNIST-50 and USPS in pixels (Tables B.2 and B.3 of the thesis), and the tradeoffs of
Table B.5. Test rows are a random part of those of the thesis, the same for all methods:
3000 of MNIST-50 and 1500 of USPS.

Mechanisms, all of which remove round(D p) features of a row:

MCAR
    any of them, with equal probability, as in the thesis.
MAR
    The first five columns are always observed. If the sum of their standardised values is
    positive, the columns of even number among the others are nine times as likely to be
    drawn as those of odd number, and the other way round if it is not.
NMAR
    A column is drawn with odds that rise by the factor e with every standard deviation of
    its own value, so that large values tend to be missing.

"chosen for holes" is what the thesis advises: of the hybrids of several tradeoffs, the
one with the lowest error on validation rows that miss the same share of features by the
same mechanism. The column ``chosen`` says which. All hybrids stop early by complete
validation rows, except those of Table B.5. Nothing is chosen by test rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    parse_options,
    print_table,
    say,
    write_table,
)
from pictures import image_folder, prepare_pictures, save
from roth_data import Split, mnist50, usps
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from hybridmix import HybridMixtureClassifier

SHARES = tuple(tenths / 10 for tenths in range(10))
OTHER_SHARES = (0.1, 0.3, 0.5, 0.7)
MECHANISMS = ("MCAR", "MAR", "NMAR")
ALWAYS_OBSERVED = 5
LIKELIER = 9.0
TEST_ROWS = {"MNIST-50": 3000, "USPS": 1500}
VALIDATION_ROWS = {"MNIST-50": 3000, "USPS": 1000}
N_NEIGHBOURS = 3
CHUNK = 250

ML, HYBRID, CL = "ML (diagonal)", "hybrid (diagonal)", "CL (diagonal)"
FULL = "ML (full)"
MEAN, NEAREST = "mean", "3-NN"
STANDARDISED = "RBF SVM (standardised)"
THESIS = {
    ("MNIST-50", ML): (4.32, 4.79, 5.15, 5.63, 6.68, 8.62, 12.31, 19.33, 33.60, 58.17),
    ("MNIST-50", HYBRID): (
        *(3.20, 3.75, 4.44, 5.16, 6.49, 8.94, 12.89, 20.06, 34.80, 58.57),
    ),
    ("MNIST-50", CL): (3.75, 4.16, 4.66, 5.36, 6.77, 9.06, 12.87, 20.07, 34.24, 58.09),
    ("MNIST-50", f"linear SVM, {MEAN}"): (
        *(6.37, 15.60, 23.84, 33.26, 42.08, 50.35, 59.03, 66.79, 74.14, 82.39),
    ),
    ("MNIST-50", f"linear SVM, {NEAREST}"): (
        *(6.37, 6.24, 6.26, 6.58, 7.02, 8.09, 12.25, 20.54, 38.40, 68.68),
    ),
    ("MNIST-50", f"RBF SVM, {MEAN}"): (
        *(1.62, 2.94, 5.78, 11.56, 19.94, 31.52, 45.10, 57.51, 70.15, 80.65),
    ),
    ("MNIST-50", f"RBF SVM, {NEAREST}"): (
        *(1.62, 1.86, 2.03, 2.78, 3.87, 5.54, 9.76, 18.07, 36.80, 65.81),
    ),
    ("USPS", ML): (7.77, 7.77, 7.73, 7.10, 8.87, 7.93, 8.40, 9.20, 11.77, 19.87),
    ("USPS", HYBRID): (4.87, 4.83, 5.30, 5.77, 5.67, 6.13, 7.27, 8.17, 12.50, 20.90),
    ("USPS", CL): (7.10, 6.93, 7.03, 6.80, 7.90, 7.43, 7.77, 8.97, 11.57, 19.70),
    ("USPS", f"linear SVM, {MEAN}"): (
        *(4.63, 5.00, 5.60, 7.73, 12.27, 21.30, 37.63, 57.17, 72.60, 84.07),
    ),
    ("USPS", f"linear SVM, {NEAREST}"): (
        *(4.63, 4.50, 4.00, 3.87, 4.67, 5.23, 6.07, 7.78, 11.20, 20.17),
    ),
    ("USPS", f"RBF SVM, {MEAN}"): (
        *(1.97, 2.37, 3.17, 7.80, 18.17, 31.97, 50.10, 68.70, 80.47, 88.60),
    ),
    ("USPS", f"RBF SVM, {NEAREST}"): (
        *(1.97, 2.13, 2.27, 2.77, 3.27, 3.87, 5.43, 6.67, 10.73, 19.37),
    ),
}
# Table B.5: two diagonal components per class and a margin of 2, by tradeoff.
THESIS_TRADEOFFS = {
    0.0: (12.27, 12.10, 12.73, 12.73, 13.07, 13.93, 14.90, 15.70, 19.20, 28.23),
    0.1: (11.83, 11.67, 12.23, 12.37, 12.90, 13.53, 14.43, 15.53, 19.00, 28.17),
    1.0: (9.87, 10.00, 10.33, 11.10, 11.03, 11.73, 13.37, 13.93, 17.87, 27.93),
    10.0: (7.93, 8.17, 8.37, 9.23, 9.53, 10.57, 12.60, 13.83, 19.83, 30.47),
    100.0: (7.57, 7.70, 9.03, 9.47, 9.97, 12.37, 15.47, 16.90, 23.20, 34.90),
    1000.0: (6.93, 7.33, 7.97, 9.20, 9.63, 11.30, 14.60, 17.40, 23.93, 36.93),
    10_000.0: (6.30, 6.60, 8.13, 9.97, 12.17, 15.73, 20.33, 23.93, 33.60, 49.93),
}


# Holes ----------------------------------------------------------------------------------


def holes(
    X: np.ndarray, train: np.ndarray, share: float, mechanism: str, seed: int
) -> np.ndarray:
    """Return X with round(D share) features of every row missing."""
    generator = np.random.default_rng([seed, round(100 * share)])
    z = (X - train.mean(axis=0)) / np.maximum(train.std(axis=0), 1e-12)
    log_odds = np.zeros(X.shape)
    if mechanism == "MAR":
        positive = z[:, :ALWAYS_OBSERVED].sum(axis=1) > 0.0
        even = np.arange(X.shape[1]) % 2 == 0
        log_odds[positive[:, None] == even] = np.log(LIKELIER)
        log_odds[:, :ALWAYS_OBSERVED] = -np.inf
    elif mechanism == "NMAR":
        log_odds = z
    # The largest of these are a draw without replacement with the given odds.
    keys = log_odds + generator.gumbel(size=X.shape)
    count = round(X.shape[1] * share)
    drawn = np.argsort(-keys, axis=1)[:, :count]
    punched = X.copy()
    np.put_along_axis(punched, drawn, np.nan, axis=1)
    return punched


def filled_by_means(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), train.mean(axis=0), X)


def filled_by_neighbours(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Fill holes by the mean of the training rows nearest in the observed columns."""
    filled = X.copy()
    known = np.ascontiguousarray(train.T, dtype=np.float32)
    squares = known**2
    for begin in range(0, len(X), CHUNK):
        rows = filled[begin : begin + CHUNK]
        hole = np.isnan(rows)
        # Squared distances, but for the square of the row itself, which orders nothing.
        observed = (~hole).astype(np.float32)
        distance = observed @ squares
        distance -= 2.0 * (np.where(hole, 0.0, rows).astype(np.float32) @ known)
        total = np.zeros(rows.shape)
        for _ in range(N_NEIGHBOURS):
            nearest = distance.argmin(axis=1)
            total += train[nearest]
            distance[np.arange(len(rows)), nearest] = np.inf
        rows[hole] = (total / N_NEIGHBOURS)[hole]
    return filled


FILLINGS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    MEAN: filled_by_means,
    NEAREST: filled_by_neighbours,
}


# Models ---------------------------------------------------------------------------------


@dataclass
class Study:
    """A data set and all that was trained on it.

    Attributes
    ----------
    split : Split
        Columns divided by one number, for the kernels; it changes no mixture.
    mixtures : dict of str to HybridMixtureClassifier
        By the names of the methods.
    candidates : dict of str to dict
        For each method that is chosen for holes: models by what they are called.
    machines : dict of str to classifier
        Support vector machines.
    """

    split: Split
    mixtures: dict[str, Any] = field(default_factory=dict)
    candidates: dict[str, dict[str, Any]] = field(default_factory=dict)
    machines: dict[str, Any] = field(default_factory=dict)


def generative(split: Split, **options: Any) -> HybridMixtureClassifier:
    fixed = {"class_prior": "uniform", "random_state": 0, "n_jobs": 1, "loss": "hinge"}
    model = HybridMixtureClassifier("likelihood", **(fixed | options))
    return model.fit(split.X, split.y)


def trained(
    start: HybridMixtureClassifier, split: Split, objective: str, **options: Any
) -> HybridMixtureClassifier:
    """Go on from a generative model; stop by complete validation rows."""
    own = {"objective": objective, "init": start, **options}
    model = HybridMixtureClassifier(**(start.get_params() | own))
    return model.fit(split.X, split.y, X_val=split.X_val, y_val=split.y_val)


def machines(split: Split) -> dict[str, Any]:
    linear = OneVsOneClassifier(LinearSVC(C=0.1, random_state=0))
    kernel = SVC(C=10.0, gamma=1.0 / split.X.shape[1], cache_size=1000)
    return {
        "linear SVM": linear.fit(split.X, split.y),
        "RBF SVM": kernel.fit(split.X, split.y),
    }


def standardised_machine(split: Split) -> Any:
    """Train a kernel machine on columns of equal variance.

    With principal components it is worse on complete rows than the other one, but much
    less sensitive to holes that means fill, because no column dominates the distances.
    """
    kernel = SVC(C=10.0, gamma=1.0 / split.X.shape[1], cache_size=1000)
    return make_pipeline(StandardScaler(), kernel).fit(split.X, split.y)


def named(tradeoff: float) -> str:
    return f"tradeoff {tradeoff:g}"


def full_family(
    study: Study, tradeoffs: Sequence[float], steps: int, **options: Any
) -> None:
    """Add mixtures of full covariances, and the choice among them."""
    start = generative(study.split, **options)
    family = {"ML": start}
    for tradeoff in tradeoffs:
        family[named(tradeoff)] = trained(
            start, study.split, "hybrid", tradeoff=tradeoff, n_steps=steps
        )
    study.mixtures[FULL] = start
    for name in list(family)[1:]:
        study.mixtures[f"hybrid (full), {name}"] = family[name]
    study.candidates["hybrid (full), chosen for holes"] = family


def mnist_study(split: Split, quick: bool) -> Study:
    study = Study(split)
    full_family(
        study,
        (1.0, 30.0) if quick else (1.0, 3.0, 30.0),
        steps=10 if quick else 60,
        n_components=1 if quick else 2,
        covariance_prior=1000.0,
    )
    k = 2 if quick else 64
    start = generative(split, covariance_type="diag", n_components=k)
    steps = 10 if quick else 40
    study.mixtures[ML] = start
    study.mixtures[HYBRID] = trained(
        start, split, "hybrid", tradeoff=8.0, margin=32.0, n_steps=steps
    )
    study.mixtures[CL] = trained(start, split, "conditional", n_steps=steps)
    study.machines = machines(split) | {STANDARDISED: standardised_machine(split)}
    return study


def usps_study(split: Split, quick: bool) -> Study:
    study = Study(split)
    k = 2 if quick else 16
    start = generative(split, covariance_type="diag", n_components=k)
    study.mixtures[ML] = start
    study.mixtures[CL] = trained(start, split, "conditional", n_steps=200)
    grid = dict(diagonal_hybrids(split, quick))
    scores = {name: model.score(split.X_val, split.y_val) for name, model in grid.items()}
    study.mixtures[HYBRID] = grid[max(scores, key=lambda name: scores[name])]
    study.candidates["hybrid (diagonal), chosen for holes"] = {"ML": start, **grid}
    start = generative(split, covariance_type="diag", n_components=2)
    for tradeoff in THESIS_TRADEOFFS:
        # All iterations: the point of this table is where the objective leads.
        options = {"tradeoff": tradeoff, "margin": 2.0, "n_steps": 200}
        model = HybridMixtureClassifier(
            **(start.get_params() | {"objective": "hybrid", "init": start} | options)
        )
        model = model.fit(split.X, split.y) if tradeoff else start
        study.mixtures[two_components(tradeoff)] = model
    if not quick:
        full_family(study, (1.0, 30.0), steps=40, covariance_prior=100.0)
    study.machines = machines(split)
    return study


def two_components(tradeoff: float) -> str:
    return f"hybrid (diagonal, K=2), {named(tradeoff)}"


def diagonal_hybrids(split: Split, quick: bool) -> Iterator[tuple[str, Any]]:
    """Yield the hybrids of a grid."""
    for k in (2,) if quick else (2, 4):
        start = generative(split, covariance_type="diag", n_components=k)
        for tradeoff in (8.0,) if quick else (1.0, 8.0, 64.0, 512.0):
            for margin in (2.0,) if quick else (2.0, 8.0, 32.0):
                model = trained(
                    start,
                    split,
                    "hybrid",
                    tradeoff=tradeoff,
                    margin=margin,
                    n_steps=200,
                )
                yield f"K={k}, {named(tradeoff)}, margin {margin:g}", model


# Errors ---------------------------------------------------------------------------------


def error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the error in per cent."""
    return 100.0 * float(np.mean(model.predict(X) != y))


def thesis(data: str, mechanism: str, method: str, share: float) -> float | None:
    if mechanism != "MCAR":
        return None
    found = {("USPS", two_components(t)): row for t, row in THESIS_TRADEOFFS.items()}
    row = (THESIS | found).get((data, method))
    return None if row is None else row[round(10 * share)]


def errors(study: Study, mechanism: str, share: float) -> Iterator[Row]:
    """Yield the errors of all methods for the same holes."""
    split = study.split
    name = split.name
    X = holes(split.X_test, split.X, share, mechanism, seed=0)

    def row(method: str, value: float, chosen: str | None = None) -> Row:
        return {
            "data": name,
            "mechanism": mechanism,
            "method": method,
            "share": share,
            "error": value,
            "thesis": thesis(name, mechanism, method, share),
            "chosen": chosen,
        }

    found = {id(m): error(m, X, split.y_test) for m in study.mixtures.values()}
    for method, model in study.mixtures.items():
        yield row(method, found[id(model)])
    X_val = holes(split.X_val, split.X, share, mechanism, seed=1)
    for method, family in study.candidates.items():
        scores = {key: error(m, X_val, split.y_val) for key, m in family.items()}
        best = min(scores, key=lambda key: scores[key])
        chosen = family[best]
        value = found.get(id(chosen))
        value = error(chosen, X, split.y_test) if value is None else value
        yield row(method, value, best)
    for filling, fill in FILLINGS.items():
        filled = fill(X, split.X)
        for method, machine in study.machines.items():
            yield row(f"{method}, {filling}", error(machine, filled, split.y_test))


def thinned_tests(split: Split) -> Split:
    """Keep a random part of validation and test rows."""
    generator = np.random.default_rng(3)
    kept_val = generator.permutation(len(split.y_val))[: VALIDATION_ROWS[split.name]]
    kept = generator.permutation(len(split.y_test))[: TEST_ROWS[split.name]]
    return Split(
        split.name,
        split.X,
        split.y,
        split.X_val[kept_val],
        split.y_val[kept_val],
        split.X_test[kept],
        split.y_test[kept],
    )


def all_errors(study: Study, quick: bool) -> Iterator[Row]:
    """Yield the errors for all mechanisms and shares that a data set is used for."""
    shares = (0.0, 0.5) if quick else SHARES
    for share in shares:
        yield from errors(study, "MCAR", share)
    if study.split.name != "MNIST-50":
        return
    diagonal = {name: study.mixtures.pop(name) for name in (HYBRID, CL)}
    for mechanism in MECHANISMS[1:]:
        for share in (0.5,) if quick else OTHER_SHARES:
            yield from errors(study, mechanism, share)
    study.mixtures.update(diagonal)


# Pictures -------------------------------------------------------------------------------

# Colours of Okabe and Ito. Lines of the thesis are broken and grey.
CHOSEN = "hybrid (full), chosen for holes"
BLUE, SKY, GREEN, RED, ORANGE = "#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00"
BLACK, GREY = "#000000", "#8c8c8c"
Line = tuple[str, str, str]
MNIST_LINES: tuple[Line, ...] = (
    (FULL, SKY, "generative, full"),
    ("hybrid (full), tradeoff 30", GREEN, "hybrid, full, tradeoff 30"),
    (CHOSEN, BLUE, "hybrid, full, chosen for holes"),
    (f"RBF SVM, {NEAREST}", RED, "RBF SVM, 3-NN imputation"),
    (f"{STANDARDISED}, {MEAN}", ORANGE, "RBF SVM (standardised), mean imputation"),
)
USPS_LINES: tuple[Line, ...] = (
    (ML, SKY, "generative, diagonal"),
    ("hybrid (diagonal), chosen for holes", GREEN, "hybrid, diagonal, chosen for holes"),
    (CHOSEN, BLUE, "hybrid, full, chosen for holes"),
    (f"RBF SVM, {NEAREST}", RED, "RBF SVM, 3-NN imputation"),
    (f"RBF SVM, {MEAN}", ORANGE, "RBF SVM, mean imputation"),
)
TICKS = (1, 2, 5, 10, 20, 50, 90)


def draw_lines(
    axes: Any, rows: Sequence[Row], lines: Sequence[Line], mechanism: str
) -> None:
    """Draw errors of some methods against the share of missing features."""
    for method, color, label in lines:
        found = [r for r in rows if (r["method"], r["mechanism"]) == (method, mechanism)]
        axes.plot(
            [100.0 * r["share"] for r in found],
            [r["error"] for r in found],
            "o-",
            color=color,
            label=label,
            ms=4,
        )
    axes.set(yscale="log", xlabel="missing features in per cent")
    axes.set_yticks(TICKS, [str(tick) for tick in TICKS])
    axes.minorticks_off()


def draw_data_set(
    name: str, picture: str, rows: Sequence[Row], lines: Sequence[Line], options: Options
) -> None:
    folder = image_folder(options)
    rows = [row for row in rows if row["data"] == name]
    if folder is None or not rows:
        return
    plt = prepare_pictures()
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    draw_lines(axes, rows, lines, "MCAR")
    percents = [100.0 * share for share in SHARES]
    for method, style, label in (
        (HYBRID, "--", "thesis: hybrid, diagonal"),
        (f"RBF SVM, {NEAREST}", ":", "thesis: RBF SVM, 3-NN imputation"),
    ):
        axes.plot(percents, THESIS[name, method], style, color=GREY, label=label)
    axes.set(ylabel="test error in per cent", title=f"{name}, complete training rows")
    axes.legend(fontsize=8)
    save(figure, picture, folder)


def draw_mechanisms(rows: Sequence[Row], options: Options) -> None:
    folder = image_folder(options)
    rows = [r for r in rows if r["data"] == "MNIST-50" and r["share"] in OTHER_SHARES]
    if folder is None or not rows:
        return
    plt = prepare_pictures()
    figure, panels = plt.subplots(1, 3, figsize=(9.0, 3.6), sharey=True)
    titles = ("at random", "by observed columns", "large values first")
    for axes, mechanism, title in zip(panels, MECHANISMS, titles, strict=True):
        draw_lines(axes, rows, MNIST_LINES, mechanism)
        axes.set_title(f"{mechanism}: {title}")
        axes.set_xticks([100.0 * share for share in OTHER_SHARES])
    panels[0].set_ylabel("test error in per cent")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    save(figure, "missing_mechanisms", folder)


# Tables ---------------------------------------------------------------------------------


def run(options: Options) -> None:
    rows: list[Row] = []
    for load, make in ((mnist50, mnist_study), (usps, usps_study)):
        try:
            split = load(options.data).scaled()
        except MissingDataError as problem:
            print(f"LEFT OUT: {problem}", flush=True)
            continue
        split = split.thinned(2000) if options.quick else split
        study = make(split, options.quick)
        study.split = thinned_tests(split)
        for row in all_errors(study, options.quick):
            rows.append(row)
            print_table([row])
    say("Errors in per cent with missing features")
    print_table(rows)
    write_table("missing_features", rows, options)
    draw_data_set("MNIST-50", "missing_mnist50", rows, MNIST_LINES, options)
    draw_data_set("USPS", "missing_usps", rows, USPS_LINES, options)
    draw_mechanisms(rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
