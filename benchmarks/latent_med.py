"""Latent maximum entropy discrimination: its starts, its solvers, its errors.

Three parts (``--parts``), each with its own file of results:

- ``starts``: eight unit Gaussians in four strips of alternating classes, two components
  per class, as in Jebara's Figure 5.4 (``C=10``, 160 rows). How many single starts find
  the strips (at least 97 % of 2000 other rows), with and without annealing, and how often
  the start of the lowest objective does.
- ``pairs``: one quadratic program of 24 rows, by Newton's method and by his sequential
  updates of a row of each class: the share of the optimum after at most 300 sweeps over
  all pairs, whether they had stopped by then (a sweep gains less than a millionth), and
  the share that sums of scaled posteriors, which is all that pairs lead to, can reach.
- ``errors``: error and log loss of rows not used in training, on two generated tables,
  sonar and wdbc, against support vector machines, `MEDClassifier` and
  `HybridMixtureClassifier`. Where a name says "chosen", C is chosen by three inner folds,
  by latent MED with four starts instead of ten.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import (
    DEFAULT_RESULTS,
    Options,
    Row,
    add_options,
    load_xy,
    means_of,
    print_table,
    say,
    write_table,
)
from scipy.optimize import LinearConstraint, minimize
from scipy.special import entr
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hybridmix import HybridMixtureClassifier, LatentMEDClassifier, MEDClassifier
from hybridmix.med.latent import Components, LatentRivals
from hybridmix.med.margins import ExponentialMargin
from hybridmix.med.solvers.newton import newton
from hybridmix.metrics import label_losses

PARTS = ("starts", "pairs", "errors")
TABLES = ("strips", "clusters", "sonar", "wdbc")
ANNEALING = (1.0, 3.0, 10.0)
N_SETS, N_STARTS, N_TEST = 10, 20, 2000
BOX, SOLVED = 10.0, 0.97
SPLITS = range(5)
GRID = {"C": [0.01, 0.1, 1.0, 10.0]}
MACHINE_GRID = {"C": [0.1, 1.0, 10.0, 100.0]}
MOST_SWEEPS, STOPPED = 300, 1e-6

Table = tuple[np.ndarray, np.ndarray]


def strips(n_rows: int, seed: int) -> Table:
    """Draw from eight unit Gaussians, classes of which alternate upwards."""
    rng = np.random.default_rng(seed)
    level, side = np.arange(n_rows) % 4, np.arange(n_rows) // 4 % 2
    centres = np.column_stack([12.0 * side - 6.0, 6.0 * level - 9.0])
    return centres + rng.normal(size=(n_rows, 2)), level % 2


def clusters(n_rows: int, seed: int) -> Table:
    """Draw from three classes of three unit Gaussians each, in four columns."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(77).normal(scale=2.0, size=(9, 4))
    own = np.arange(n_rows) % 9
    return centres[own] + rng.normal(size=(n_rows, 4)), own % 3


# Starts ---------------------------------------------------------------------------


def run_starts(options: Options) -> list[Row]:
    rows = []
    for seed in range(1 if options.quick else N_SETS):
        X, y = strips(160, seed)
        new, labels = strips(N_TEST, 1000 + seed)
        for annealing in ANNEALING:
            for number in range(2 if options.quick else N_STARTS):
                began = time.process_time()
                model = LatentMEDClassifier(
                    C=BOX,
                    n_init=1,
                    annealing=annealing,
                    calibrate=False,
                    random_state=N_STARTS * seed + number,
                ).fit(X, y)
                rows.append(
                    {
                        "set": seed,
                        "annealing": annealing,
                        "start": number,
                        "seconds": time.process_time() - began,
                        "objective": model.objective_,
                        "n_iter": model.n_iter_,
                        "accuracy": model.score(new, labels),
                    }
                )
    return rows


def show_starts(rows: list[Row]) -> None:
    say("Starts: shares that find the strips, programs and seconds of a start")
    for row in rows:
        row["solved"] = float(row["accuracy"] >= SOLVED)
    values = ("solved", "n_iter", "seconds", "objective")
    print_table(means_of(rows, ("annealing",), values))
    found = [row for row in rows if row["solved"]]
    if found:
        print_table(means_of(found, ("annealing",), ("accuracy", "objective")))
    best: list[Row] = []
    for n_starts in (1, 2, 4, 8, 16):
        for seed in sorted({row["set"] for row in rows}):
            own = [r for r in rows if r["set"] == seed and r["annealing"] == 1.0]
            kept = min(own[:n_starts], key=lambda row: row["objective"])
            best.append({"best_of": n_starts, "solved": kept["solved"]})
    print_table(means_of(best, ("best_of",), ("solved",)))


# Pairs ----------------------------------------------------------------------------


def ascend_by_pairs(
    X: np.ndarray, y: np.ndarray, shares: np.ndarray, asked: np.ndarray, C: float
) -> tuple[float, int, bool]:
    """Return the value, the number of sweeps, and whether the last one gained nothing.

    Balanced multipliers let a row of each class move along one line only: those of the
    one in proportion to the posteriors (n, K) of the other.
    """
    classes = [np.flatnonzero(y == c) for c in (0, 1)]
    multipliers = np.zeros_like(shares)
    means = np.zeros((2, shares.shape[1], X.shape[1]))
    values = [0.0]
    while len(values) <= MOST_SWEEPS:
        for u in classes[0]:
            for v in classes[1]:
                apart = X[u] - X[v]
                change = np.stack(
                    [np.outer(shares[u], apart), -np.outer(shares[v], apart)]
                )
                slope = asked[u] + asked[v] - np.sum(means * change)
                step = slope / max(float(np.sum(change**2)), 1e-300)
                for t, other in ((u, v), (v, u)):
                    speed = np.maximum(shares[other], 1e-300)
                    step = min(step, np.min((C - multipliers[t]) / speed))
                    step = max(step, np.max(-multipliers[t] / speed))
                multipliers[u] += step * shares[v]
                multipliers[v] += step * shares[u]
                means += step * change
        values.append(asked @ multipliers.sum(axis=1) - 0.5 * np.sum(means**2))
        if values[-1] - values[-2] <= STOPPED * values[-1]:
            return float(values[-1]), len(values) - 1, True
    return float(values[-1]), MOST_SWEEPS, False


def best_of_sums(
    X: np.ndarray, y: np.ndarray, shares: np.ndarray, asked: np.ndarray, C: float
) -> float:
    """Return the value of the best multipliers that are sums of scaled posteriors.

    SciPy maximises over one scale for each pair; where it stops early, the value is a
    lower bound.
    """
    pairs = [(u, v) for u in np.flatnonzero(y == 0) for v in np.flatnonzero(y == 1)]
    multipliers = np.zeros((len(pairs), *shares.shape))
    means = np.zeros((len(pairs), 2, shares.shape[1], X.shape[1]))
    for number, (u, v) in enumerate(pairs):
        multipliers[number, u], multipliers[number, v] = shares[v], shares[u]
        means[number, 0] = np.outer(shares[u], X[u] - X[v])
        means[number, 1] = np.outer(shares[v], X[v] - X[u])
    gains = multipliers.sum(axis=2) @ asked
    to_means, to_box = (a.reshape(len(pairs), -1).T for a in (means, multipliers))
    found = minimize(
        lambda scales: 0.5 * np.sum((to_means @ scales) ** 2) - gains @ scales,
        np.zeros(len(pairs)),
        jac=lambda scales: to_means.T @ (to_means @ scales) - gains,
        constraints=LinearConstraint(to_box, 0.0, C),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    return -float(found.fun)


def run_pairs(options: Options) -> list[Row]:
    rows = []
    components = Components((2, 2))
    for seed in range(1 if options.quick else N_SETS):
        X, y = strips(24, seed)
        for C in (0.1, BOX):
            rng = np.random.default_rng(seed)
            drawn = rng.normal(size=(4, 2)) @ (X / X.std(axis=0)).T
            posteriors = components.posteriors(drawn, y)
            constraints = LatentRivals(posteriors, y, components, np.ones(len(X)))
            prior = ExponentialMargin(C, 0.0, 1.0)
            best = newton(X, constraints, prior, np.inf, tol=1e-8)
            asked = 1.0 - entr(posteriors).sum(axis=0) + np.log(2.0)
            own = posteriors.T[components.own(y).T].reshape(len(X), 2)
            value, n_sweeps, stopped = ascend_by_pairs(X, y, own, asked, C)
            rows.append(
                {
                    "set": seed,
                    "C": C,
                    "share": value / (best.value - best.gap),
                    "reachable": best_of_sums(X, y, own, asked, C) / best.value,
                    "n_sweeps": n_sweeps,
                    "stopped": float(stopped),
                }
            )
    return rows


def show_pairs(rows: list[Row]) -> None:
    say("Pairs: share of the optimum")
    values = ("share", "n_sweeps", "stopped", "reachable")
    print_table(means_of(rows, ("C",), values))
    for C, name in itertools.product((0.1, BOX), ("share", "reachable")):
        found = [row[name] for row in rows if row["C"] == C]
        print(f"  C={C}, {name}: from {min(found):.3f} to {max(found):.3f}")


# Errors ---------------------------------------------------------------------------


Make = Callable[[np.ndarray, np.ndarray], Any]  # from training rows to an unfitted model


def chosen(model: Any, grid: dict[str, Any], finish: Callable[[Any], Any]) -> Make:
    """Return what chooses C by inner folds, and finishes the best model."""

    def make(X: np.ndarray, y: np.ndarray) -> Any:
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(model, grid, cv=folds, refit=False).fit(X, y)
        return finish(clone(model).set_params(**search.best_params_))

    return make


def contestants() -> dict[str, Make]:
    found: dict[str, Make] = {}
    for kernel in ("linear", "rbf"):
        found[f"latent MED, {kernel}, chosen"] = chosen(
            LatentMEDClassifier(kernel, n_init=4, calibrate=False, random_state=0),
            GRID,
            lambda model: model.set_params(n_init=10, calibrate=True),
        )
        found[f"MED, {kernel}, chosen"] = chosen(
            MEDClassifier(kernel, calibrate=False, random_state=0),
            GRID,
            lambda model: model.set_params(calibrate=True),
        )
        found[f"SVM, {kernel}, chosen"] = chosen(
            SVC(kernel=kernel),
            MACHINE_GRID,
            lambda model: CalibratedClassifierCV(model, ensemble=False),
        )
    mixture = HybridMixtureClassifier(random_state=0, n_jobs=1)
    small = clone(mixture).set_params(
        objective="margin", n_components=2, covariance_type="tied"
    )
    found["hybrid mixture, defaults"] = lambda *_: clone(mixture)
    found["hybrid mixture, margin, tied, 2"] = lambda *_: clone(small)
    return found


def parts_of(name: str, seed: int, options: Options) -> tuple[Table, Table]:
    """Return standardised training and test rows."""
    if name in ("strips", "clusters"):
        draw = strips if name == "strips" else clusters
        (X, y), (new, labels) = draw(180, seed), draw(N_TEST, 1000 + seed)
    else:
        whole, targets = load_xy(options.data, name)
        splitter = StratifiedShuffleSplit(1, train_size=0.5, random_state=seed)
        own, others = next(splitter.split(whole, targets))
        X, y, new, labels = whole[own], targets[own], whole[others], targets[others]
    scaler = StandardScaler().fit(X)
    return (scaler.transform(X), y), (scaler.transform(new), labels)


def run_errors(options: Options) -> list[Row]:
    rows = []
    for name in TABLES:
        for seed in SPLITS[: 1 if options.quick else None]:
            train, (new, labels) = parts_of(name, seed, options)
            for label, make in contestants().items():
                began = time.process_time()
                model = make(*train)
                chose = time.process_time()
                fitted = model.fit(*train)
                ended = time.process_time()
                logs = np.log(np.maximum(fitted.predict_proba(new), 1e-300))
                own = np.searchsorted(fitted.classes_, labels)
                losses = label_losses(logs[np.arange(len(own)), own])
                rows.append(
                    {
                        "table": name,
                        "model": label,
                        "seed": seed,
                        "error": 100.0 * float(np.mean(fitted.predict(new) != labels)),
                        "log_loss": float(losses.mean()),
                        "choice_seconds": chose - began,
                        "fit_seconds": ended - chose,
                    }
                )
            write_table("latent_med_errors", rows, options, silent=True)
    return rows


def show_errors(rows: list[Row]) -> None:
    say("Errors: per cent, log loss, processor seconds")
    values = ("error", "log_loss", "choice_seconds", "fit_seconds")
    print_table(means_of(rows, ("table", "model"), values))


RUNS = {
    "starts": (run_starts, show_starts),
    "pairs": (run_pairs, show_pairs),
    "errors": (run_errors, show_errors),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parsed = parser.parse_args(arguments)
    results = parsed.results or (None if parsed.quick else DEFAULT_RESULTS)
    options = Options(parsed.data, results, parsed.quick)
    warnings.simplefilter("ignore")
    for part in parsed.parts:
        run, show = RUNS[part]
        rows = run(options)
        show(rows)
        write_table(f"latent_med_{part}", rows, options)


if __name__ == "__main__":
    main()
