"""The experiments of Pernkopf and Wohlmayr (2010) on a spiral and on a spectral image.

Compared are mixtures with diagonal covariances trained by EM (GMM), for the conditional
likelihood (CL-GMM) and for the scaled margin (MM-GMM), by three solvers: the published
extended Baum-Welch steps, steps that never lower the objective (on the spiral only), and
L-BFGS.

Spiral: the generator cannot be meant as it is printed. Its two arms lie a quarter apart
however long they are, so noise of deviation 1 leaves nothing but chance, and the range of
``t`` is not given. Both were guessed: of nine pairs of a length of 1, 1.5 or 2 and a
deviation between 0.05 and 0.09, looked at on one draw each, two readings are run, with
the printed curve, 5000 training and 1000 test rows and 12 components for each class. "two
turns": ``t`` uniform on [0, 1] and a deviation of 0.08, where the true densities are as
accurate as the published discriminative models; EM is, too, nearly. "three turns": ``t``
uniform on [0, 1.5] and a deviation of 1/16 (next to 0.06, looked at), where EM falls far
behind, as published. Neither gives all published figures, so agreement with them is no
evidence beyond their order. All solvers take 300 steps. The power of the margin is chosen
by cross-validation on the training rows of the first draw, for each solver; with two
classes there is one rival, so that the sharpness of the soft maximum has no effect.

Spectral image: Indian Pines in place of the Washington DC Mall, which is not at hand. It
has 16 classes, some of 20 pixels; only the nine of at least 400 labelled pixels are kept,
so that ten components of a class have rows to be learned from. A random half of each
class (at most 5000) is for training, the rest for the test. Power and sharpness of the
margin, and tradeoff and margin of the hybrid objective, are chosen by cross-validation
with three components a class and kept for other numbers. All 200 bands are used; full
covariances are fitted to the first 30 principal components, and cannot marginalise bands.
Pixels are split at random, as published, so that test pixels have training pixels for
neighbours: the figures compare methods, and say little of another image. The factor of
the published damping and the 100 steps of all solvers are not tuned.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    load_arrays,
    parse_options,
    print_table,
    punch_holes,
    say,
    write_table,
)
from pictures import image_folder, prepare_pictures, save
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hybridmix import HybridMixtureClassifier
from hybridmix.objectives import ScaledMargin
from hybridmix.solvers import ExtendedBaumWelch, LimitedMemoryBFGS

PACKAGES = ("matplotlib",)
# The palette of Okabe and Ito, which people with any colour vision can tell apart.
BLACK, GREY = "#000000", "#8c8c8c"
BLUE, ORANGE, GREEN, RED, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9"

Solver = ExtendedBaumWelch | LimitedMemoryBFGS
Candidates = Sequence[dict[str, Any]]


def solvers(max_iter: int, tol: float = 1e-6) -> dict[str, Solver]:
    """Return the published solver and ours, by the names in the tables."""
    return {
        "EBW, published": ExtendedBaumWelch(max_iter, tol, monotone=False, factor=FACTOR),
        "EBW, monotone": ExtendedBaumWelch(max_iter, tol),
        "L-BFGS": LimitedMemoryBFGS(max_iter, tol),
    }


def percent(share: float) -> float:
    return 100.0 * float(share)


def standard_error(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def choose(
    template: HybridMixtureClassifier,
    candidates: Candidates,
    X: np.ndarray,
    y: np.ndarray,
    n_folds: int = 3,
) -> dict[str, Any]:
    """Return the candidate of the best cross-validated accuracy; folds share one EM."""
    scores = np.zeros(len(candidates))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for rest, held in folds.split(X, y):
        start = fit_by_em(template, X[rest], y[rest])
        for number, candidate in enumerate(candidates):
            model = clone(template).set_params(**candidate, init=start)
            scores[number] += model.fit(X[rest], y[rest]).score(X[held], y[held])
    return dict(candidates[int(scores.argmax())])


def fit_by_em(
    template: HybridMixtureClassifier, X: np.ndarray, y: np.ndarray
) -> HybridMixtureClassifier:
    return clone(template).set_params(objective="likelihood").fit(X, y)


def margin_candidates(
    powers: Sequence[float], sharpness: Sequence[float] = (10.0,)
) -> Candidates:
    return [
        {"objective": "margin", "loss": ScaledMargin(sharpness=eta, power=power)}
        for eta in sharpness
        for power in powers
    ]


# Spiral ---------------------------------------------------------------------------

N_TRAIN, N_TEST = 5000, 1000  # rows of each class
N_COMPONENTS = 12
N_DRAWS = 10
# Factor of the published damping; the picture shows others.
FACTOR = 5.0
FACTORS = (1.0, 5.0, 20.0)
SPIRAL_STEPS = 300
POWERS = (0.05, 0.1, 0.3, 1.0)
CONVERGENCE_POWER = 0.3
# Accuracies in per cent, of training and of test rows.
PUBLISHED = {
    "GMM": (79.48, 80.05),
    "CL-GMM": (86.47, 85.80),
    "MM-GMM": (86.58, 86.05),
}


@dataclass(frozen=True)
class Spiral:
    """A reading of the generator.

    Attributes
    ----------
    name : str
    length : float
        Largest ``t``: half the number of turns.
    deviation : float
        Of the noise.
    """

    name: str
    length: float
    deviation: float

    def arm(self, t: np.ndarray) -> np.ndarray:
        """Return points (n, 2) of the arm of the first class; the other is opposite."""
        return t[:, None] * np.stack([np.cos(4 * np.pi * t), np.sin(4 * np.pi * t)], 1)

    def draw(
        self, n: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw n rows of each class."""
        y = np.repeat([0, 1], n)
        X = self.arm(generator.uniform(0.0, self.length, 2 * n))
        X[n:] *= -1.0
        return X + generator.normal(scale=self.deviation, size=X.shape), y

    def best_accuracy(self, X: np.ndarray, y: np.ndarray) -> float:
        """Return the accuracy of the true densities, by a fine sum along the arms."""
        arm = self.arm(np.linspace(0.0, self.length, 1500))
        scores = []
        for points in (arm, -arm):
            distances = (
                np.square(X).sum(axis=1)[:, None]
                - 2.0 * X @ points.T
                + np.square(points).sum(axis=1)
            )
            density = np.exp(-0.5 * distances / self.deviation**2).sum(axis=1)
            scores.append(density)
        return float(np.mean(np.argmax(scores, axis=0) == y))


SPIRALS = (Spiral("three turns", 1.5, 1 / 16), Spiral("two turns", 1.0, 0.08))


def spiral_template(solver: Solver | str = "lbfgs") -> HybridMixtureClassifier:
    return HybridMixtureClassifier(
        "likelihood",
        n_components=N_COMPONENTS,
        covariance_type="diag",
        covariance_prior=0.0,  # maximum likelihood, as published
        solver=solver,
        random_state=0,
    )


def spiral_settings(
    X: np.ndarray, y: np.ndarray, max_iter: int
) -> list[tuple[str, str, dict[str, Any]]]:
    """Return method, name of the solver and parameters of all discriminative models."""
    settings = []
    # A short step may gain little long before the end, so all take all their steps.
    for name, solver in solvers(max_iter, tol=0.0).items():
        best = choose(spiral_template(solver), margin_candidates(POWERS), X, y)
        settings.append(("CL-GMM", name, {"objective": "conditional", "solver": solver}))
        settings.append(("MM-GMM", name, {**best, "solver": solver}))
    return settings


def spiral_table(spiral: Spiral, quick: bool) -> list[Row]:
    """Average the accuracies of all methods over draws."""
    n_train, n_test = (500, 200) if quick else (N_TRAIN, N_TEST)
    n_draws = 2 if quick else N_DRAWS
    settings: list[tuple[str, str, dict[str, Any]]] = []
    found: dict[tuple[str, str, Any], list[tuple[float, float, int]]] = {}
    best = []
    for seed in range(n_draws):
        generator = np.random.default_rng([seed, 7])
        X, y = spiral.draw(n_train, generator)
        X_test, y_test = spiral.draw(n_test, generator)
        best.append((spiral.best_accuracy(X, y), spiral.best_accuracy(X_test, y_test), 0))
        if not settings:
            settings = spiral_settings(X, y, 20 if quick else SPIRAL_STEPS)
        start = fit_by_em(spiral_template(), X, y)
        models = [("GMM", "EM", None, start)]
        for method, name, params in settings:
            model = spiral_template().set_params(**params, init=start).fit(X, y)
            power = getattr(params.get("loss"), "power", None)
            models.append((method, name, power, model))
        for method, name, power, model in models:
            scores = (model.score(X, y), model.score(X_test, y_test), model.n_iter_)
            found.setdefault((method, name, power), []).append(scores)
    rows = [_spiral_row(spiral, *key, runs) for key, runs in found.items()]
    return [*rows, _spiral_row(spiral, "true densities", "", None, best)]


def _spiral_row(
    spiral: Spiral,
    method: str,
    solver: str,
    power: float | None,
    runs: Sequence[tuple[float, float, int]],
) -> Row:
    train, test, iterations = zip(*runs, strict=True)
    published = PUBLISHED.get(method, (None, None))
    return {
        "spiral": spiral.name,
        "method": method,
        "solver": solver,
        "power": power,
        "iterations": float(np.mean(iterations)) if method != "true densities" else None,
        "train": percent(np.mean(train)),
        "train_se": percent(standard_error(train) or math.nan),
        "test": percent(np.mean(test)),
        "test_se": percent(standard_error(test) or math.nan),
        "published_train": published[0],
        "published_test": published[1],
    }


# Pictures of the spiral -----------------------------------------------------------


def draw_models(options: Options, rows: Sequence[Row]) -> None:
    """Draw components and borders of the first reading, for the published solver."""
    folder = image_folder(options)
    if folder is None:
        return
    plt = prepare_pictures()
    spiral = SPIRALS[0]
    X, y = spiral.draw(N_TRAIN, np.random.default_rng([0, 7]))
    power = {row["solver"]: row["power"] for row in rows if row["method"] == "MM-GMM"}
    available = solvers(SPIRAL_STEPS, tol=0.0)
    start = fit_by_em(spiral_template(), X, y)

    def margin_model(name: str) -> HybridMixtureClassifier:
        loss = ScaledMargin(power=power[name])
        template = spiral_template(available[name]).set_params(init=start)
        return template.set_params(objective="margin", loss=loss).fit(X, y)

    published = "EBW, published"
    conditional = spiral_template(available[published]).set_params(init=start)
    models = {
        "GMM": start,
        f"CL-GMM ({published})": conditional.set_params(objective="conditional").fit(
            X, y
        ),
        f"MM-GMM ({published})": margin_model(published),
        "MM-GMM (L-BFGS)": margin_model("L-BFGS"),
    }
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 8.6), sharex=True, sharey=True)
    for panel, (name, model) in zip(axes.flat, models.items(), strict=True):
        draw_model(panel, model, X, y)
        panel.set_title(f"{name}: {percent(model.score(X, y)):.1f} %")
    save(figure, "pernkopf_spiral", folder)


def draw_model(
    axes: Any, model: HybridMixtureClassifier, X: np.ndarray, y: np.ndarray
) -> None:
    """Draw rows, components as ellipses and the border between the classes."""
    reach = 1.65
    line = np.linspace(-reach, reach, 300)
    grid = np.stack(np.meshgrid(line, line), axis=-1)
    side = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    for label, color, shade in ((0, BLUE, "#dcecf7"), (1, RED, "#fbe5d9")):
        axes.contourf(line, line, side == label, [0.5, 1.5], colors=[shade])
        axes.plot(*X[y == label][::8].T, ".", color=color, markersize=2, alpha=0.5)
    axes.contour(line, line, side, [0.5], colors=BLACK, linewidths=1.2)
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for mean, variances, label in zip(
        model.means_, model.covariances_, model.component_classes_, strict=True
    ):
        ellipse = mean + np.sqrt(variances) * circle
        axes.plot(*ellipse.T, color=(BLUE, RED)[label], linewidth=1.6)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")


def convergence(quick: bool) -> list[Row]:
    """Return the objective along the iterations, for each solver and damping."""
    spiral = SPIRALS[0]
    n_steps = 20 if quick else SPIRAL_STEPS
    X, y = spiral.draw(500 if quick else N_TRAIN, np.random.default_rng([0, 7]))
    start = fit_by_em(spiral_template(), X, y)
    contestants: dict[str, Solver] = {
        f"EBW, published, F={factor:g}": ExtendedBaumWelch(
            n_steps, tol=0.0, monotone=False, factor=factor
        )
        for factor in FACTORS
    }
    contestants["EBW, monotone"] = ExtendedBaumWelch(n_steps, tol=0.0)
    contestants["L-BFGS"] = LimitedMemoryBFGS(n_steps, tol=0.0)
    margin = ScaledMargin(power=CONVERGENCE_POWER)
    rows = []
    for objective, term in (("conditional", "conditional"), ("margin", "margin")):
        for name, solver in contestants.items():
            model = spiral_template(solver).set_params(
                objective=objective, loss=margin, init=start
            )
            values = model.fit(X, y).history_[term] * len(y)
            rows += [
                {"objective": objective, "solver": name, "iteration": i, "value": v}
                for i, v in enumerate(values.tolist())
            ]
    return rows


def draw_convergence(options: Options, rows: Sequence[Row]) -> None:
    folder = image_folder(options)
    if folder is None:
        return
    plt = prepare_pictures()
    names = list(dict.fromkeys(row["solver"] for row in rows))
    colors = dict(zip(names, (GREY, SKY, ORANGE, GREEN, BLACK), strict=True))
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8))
    for panel, objective in zip(axes, ("conditional", "margin"), strict=True):
        highest, start = -np.inf, np.inf
        for name in names:
            values = [
                row["value"]
                for row in rows
                if row["solver"] == name and row["objective"] == objective
            ]
            width = 1.0 if "published" in name else 2.0
            panel.plot(values, color=colors[name], linewidth=width, label=name)
            highest, start = max(highest, *values), values[0]
        # Steps that are too long fall far below the start; the picture shows what rises.
        room = highest - start
        panel.set(ylim=(start - 0.5 * room, highest + 0.08 * room), xlabel="iteration")
    axes[0].set_title("CL-GMM: conditional log-likelihood")
    axes[1].set_title(f"MM-GMM: log D, power {CONVERGENCE_POWER:g}")
    axes[1].legend(loc="lower right", fontsize=9)
    save(figure, "pernkopf_convergence", folder)


# Spectral image -------------------------------------------------------------------

FEWEST_PIXELS = 400
MOST_TRAINING = 5000  # rows of a class
COMPONENTS = (1, 3, 5, 10)
COMPONENTS_FULL = (1, 3, 5)
CHOSEN_AT = 3  # components at which parameters are chosen
N_PRINCIPAL = 30
FEATURES = {"diag": "200 bands", "full": f"{N_PRINCIPAL} principal components"}
N_SPLITS = 3
SPECTRAL_STEPS = 100
SPECTRAL_POWERS = (0.01, 0.03, 0.1)
SHARPNESS = (1.0, 10.0)
TRADEOFFS = (3.0, 30.0, 300.0)
MARGINS = (10.0, 40.0)
SHARES = tuple(round(0.1 * i, 1) for i in range(10))
N_HOLES = 5  # draws of holes for each share


@dataclass(frozen=True)
class Pixels:
    """Training and test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def projected(self) -> Pixels:
        """Return the first principal components of the training rows."""
        pca = PCA(N_PRINCIPAL, random_state=0).fit(self.X)
        return replace(self, X=pca.transform(self.X), X_test=pca.transform(self.X_test))


def load_pixels(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the labelled pixels of classes that have enough of them."""
    arrays = load_arrays(data, "indian_pines")
    labelled = arrays["gt"] > 0
    X, y = arrays["cube"][labelled].astype(float), arrays["gt"][labelled]
    counts = np.bincount(y, minlength=len(arrays["target_names"]))
    kept = np.flatnonzero(counts >= FEWEST_PIXELS)
    dropped = np.setdiff1d(np.unique(y), kept)
    names = ", ".join(f"{arrays['target_names'][c]} ({counts[c]})" for c in dropped)
    print(f"Indian Pines: {len(kept)} classes kept; fewer than {FEWEST_PIXELS}: {names}")
    chosen = np.isin(y, kept)
    return X[chosen], y[chosen]


def split_pixels(X: np.ndarray, y: np.ndarray, seed: int, quick: bool) -> Pixels:
    """Take a random half of each class for training."""
    generator = np.random.default_rng([seed, 11])
    train, test = [], []
    for label in np.unique(y):
        index = generator.permutation(np.flatnonzero(y == label))
        if quick:
            index = index[:120]
        half = min(len(index) // 2, MOST_TRAINING)
        train.append(index[:half])
        test.append(index[half:])
    first, rest = np.concatenate(train), np.concatenate(test)
    return Pixels(X[first], y[first], X[rest], y[rest])


def spectral_template(covariance_type: str = "diag") -> HybridMixtureClassifier:
    return HybridMixtureClassifier(
        "likelihood",
        loss="hinge",
        n_components=CHOSEN_AT,
        covariance_type=covariance_type,
        random_state=0,
    )


def spectral_settings(
    pixels: Pixels, covariance_type: str, quick: bool
) -> dict[str, dict[str, Any]]:
    """Return the parameters of all discriminative methods, chosen where there are any."""
    max_iter = 5 if quick else SPECTRAL_STEPS
    names = ("EBW, published", "L-BFGS") if covariance_type == "diag" else ("L-BFGS",)
    available = {name: solvers(max_iter)[name] for name in names}
    powers = SPECTRAL_POWERS[:1] if quick else SPECTRAL_POWERS
    settings: dict[str, dict[str, Any]] = {}
    template = spectral_template(covariance_type)
    for name, solver in available.items():
        template.set_params(solver=solver)
        best = choose(template, margin_candidates(powers, SHARPNESS), pixels.X, pixels.y)
        settings[f"CL-GMM, {name}"] = {"objective": "conditional", "solver": solver}
        settings[f"MM-GMM, {name}"] = {**best, "solver": solver}
    template.set_params(solver="lbfgs", n_steps=max_iter)
    hybrids = [
        {"objective": "hybrid", "tradeoff": tradeoff, "margin": margin}
        for tradeoff in (TRADEOFFS[:1] if quick else TRADEOFFS)
        for margin in MARGINS
    ]
    best = choose(template, hybrids, pixels.X, pixels.y)
    settings["hybrid, L-BFGS"] = {**best, "n_steps": max_iter}
    return settings


def described(params: dict[str, Any]) -> str:
    """Name the parameters that were chosen."""
    loss = params.get("loss")
    if isinstance(loss, ScaledMargin):
        return f"power {loss.power:g} sharpness {loss.sharpness:g}"
    if "tradeoff" in params:
        return f"tradeoff {params['tradeoff']:g} margin {params['margin']:g}"
    return ""


def spectral_models(
    pixels: Pixels,
    covariance_type: str,
    n_components: int,
    settings: dict[str, dict[str, Any]],
) -> Iterator[tuple[str, HybridMixtureClassifier]]:
    template = spectral_template(covariance_type).set_params(n_components=n_components)
    start = fit_by_em(template, pixels.X, pixels.y)
    yield "GMM, EM", start
    for name, params in settings.items():
        model = clone(template).set_params(**params, init=start)
        yield name, model.fit(pixels.X, pixels.y)


def fit_svm(pixels: Pixels, quick: bool) -> Pipeline:
    """Tune C and gamma on a part of the training rows, and fit to all."""
    grid = {"svc__C": [10.0, 100.0, 1000.0], "svc__gamma": [1e-3, 3e-3, 1e-2, 3e-2]}
    if quick:
        grid = {"svc__C": [100.0], "svc__gamma": [1e-2]}
    pipeline = make_pipeline(StandardScaler(), SVC(cache_size=500))
    part = np.random.default_rng(0).permutation(len(pixels.y))[:2000]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, grid, cv=folds, refit=False)
    search.fit(pixels.X[part], pixels.y[part])
    return pipeline.set_params(**search.best_params_).fit(pixels.X, pixels.y)


def missing_bands(pixels: Pixels, models: dict[str, Any], quick: bool) -> list[Row]:
    """Score models on test rows that miss bands at random, the same for all models.

    Draws of holes are averaged here: they share the models of a split, and would make the
    standard errors over splits look smaller than they are.
    """
    rows: list[Row] = []
    mean = pixels.X.mean(axis=0)
    for share in SHARES[::4] if quick else SHARES:
        scores: dict[str, list[float]] = {name: [] for name in models}
        for seed in range(1 if quick or not share else N_HOLES):
            holed = punch_holes(pixels.X_test, share, seed)
            filled = np.where(np.isnan(holed), mean, holed)
            for name, model in models.items():
                seen = filled if isinstance(model, Pipeline) else holed
                scores[name].append(percent(model.score(seen, pixels.y_test)))
        rows += [
            {"missing": share, "method": name, "test": float(np.mean(values))}
            for name, values in scores.items()
        ]
    return rows


def averaged(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Average accuracies, with standard errors, over rows that agree in the keys."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    table = []
    for key, members in groups.items():
        row = dict(zip(keys, key, strict=True))
        for name in ("train", "test"):
            values = [member[name] for member in members if name in member]
            if values:
                row[name] = float(np.mean(values))
                row[f"{name}_se"] = standard_error(values)
        for name in members[0]:
            if name not in row:
                row[name] = members[0][name]
        table.append(row)
    return table


def spectral_split(
    pixels: Pixels, settings: dict[str, dict[str, dict[str, Any]]], quick: bool
) -> tuple[list[Row], list[Row]]:
    """Compare all methods on one split; return accuracies and those with holes."""
    rows: list[Row] = []
    models: dict[str, Any] = {}
    n_classes = len(np.unique(pixels.y))
    for kind, here in (("diag", pixels), ("full", pixels.projected())):
        for k in COMPONENTS if kind == "diag" else COMPONENTS_FULL:
            if quick and k > CHOSEN_AT:
                continue
            for name, model in spectral_models(here, kind, k, settings[kind]):
                rows.append(
                    {
                        "features": FEATURES[kind],
                        "covariance": kind,
                        "method": name,
                        "components": k,
                        "train": percent(model.score(here.X, here.y)),
                        "test": percent(model.score(here.X_test, here.y_test)),
                        # Proportions and class probabilities all count, as published.
                        "parameters": model.model_.n_parameters + 1 + n_classes,
                        "chosen": described(settings[kind].get(name, {})),
                    }
                )
                if kind == "diag":
                    models[name] = model  # the last, and largest, number remains
    svm = models["SVM, mean imputation"] = fit_svm(pixels, quick)
    rows.append(
        {
            "features": FEATURES["diag"],
            "covariance": "",
            "method": "RBF SVM",
            "components": "",
            "train": percent(svm.score(pixels.X, pixels.y)),
            "test": percent(svm.score(pixels.X_test, pixels.y_test)),
            "parameters": int(svm[-1].n_support_.sum()) * pixels.X.shape[1],
            "chosen": f"C {svm[-1].C:g} gamma {svm[-1].gamma:g}",
        }
    )
    return rows, missing_bands(pixels, models, quick)


def draw_spectral(options: Options, table: Sequence[Row], holes: Sequence[Row]) -> None:
    folder = image_folder(options)
    if folder is None:
        return
    plt = prepare_pictures()
    colors = {
        "GMM, EM": GREY,
        "CL-GMM, EBW, published": SKY,
        "CL-GMM, L-BFGS": BLUE,
        "MM-GMM, EBW, published": ORANGE,
        "MM-GMM, L-BFGS": RED,
        "hybrid, L-BFGS": GREEN,
    }
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.4), sharey=False)
    for name, color in colors.items():
        own = [r for r in table if r["method"] == name and r["covariance"] == "diag"]
        axes[0].errorbar(
            [r["components"] for r in own],
            [r["test"] for r in own],
            [r["test_se"] or 0.0 for r in own],
            color=color,
            marker="o",
            markersize=4,
        )
    svm = next(r["test"] for r in table if r["method"] == "RBF SVM")
    axes[0].axhline(svm, color=BLACK, linestyle="--", linewidth=1.2)
    axes[0].set(xlabel="components of a class", ylabel="test accuracy, %")
    axes[0].set(xticks=COMPONENTS, title="Complete test rows")
    for name, color in [*colors.items(), ("SVM, mean imputation", BLACK)]:
        own = [r for r in holes if r["method"] == name]
        axes[1].plot(
            [percent(r["missing"]) for r in own],
            [r["test"] for r in own],
            color=color,
            linestyle="--" if "SVM" in name else "-",
            marker="" if "SVM" in name else "o",
            markersize=4,
            label=name,
        )
    axes[1].set(xlabel="missing bands, %", title="10 components, bands missing at random")
    axes[1].legend(loc="lower left", fontsize=8)
    save(figure, "pernkopf_hyperspectral", folder)


# Running --------------------------------------------------------------------------


def run_spiral(options: Options) -> None:
    rows: list[Row] = []
    for spiral in SPIRALS:
        rows += spiral_table(spiral, options.quick)
    say(
        "Spiral: accuracy in per cent",
        {
            "power": "of the margin, by cross-validation",
            "train_se, test_se": "standard errors over draws",
        },
    )
    print_table(rows)
    write_table("pernkopf_spiral", rows, options, PACKAGES)
    traces = convergence(options.quick)
    write_table("pernkopf_convergence", traces, options, PACKAGES)
    draw_models(options, [row for row in rows if row["spiral"] == SPIRALS[0].name])
    draw_convergence(options, traces)


def run_spectral(options: Options) -> None:
    try:
        X, y = load_pixels(options.data)
    except MissingDataError as error:
        print(f"LEFT OUT: {error}", flush=True)
        return
    rows: list[Row] = []
    holes: list[Row] = []
    settings: dict[str, dict[str, dict[str, Any]]] = {}
    for seed in range(1 if options.quick else N_SPLITS):
        pixels = split_pixels(X, y, seed, options.quick)
        if not settings:
            settings = {
                "diag": spectral_settings(pixels, "diag", options.quick),
                "full": spectral_settings(pixels.projected(), "full", options.quick),
            }
        more_rows, more_holes = spectral_split(pixels, settings, options.quick)
        rows += more_rows
        holes += more_holes
    table = averaged(rows, ["features", "covariance", "method", "components"])
    say(
        "Indian Pines: accuracy in per cent",
        {
            "parameters": "of the mixtures; support vectors times bands for the SVM",
            "chosen": "by cross-validation; for mixtures in the first split",
            "train_se, test_se": "standard errors over splits",
        },
    )
    print_table(table)
    write_table("pernkopf_hyperspectral", table, options, PACKAGES)
    missing = averaged(holes, ["missing", "method"])
    say("Indian Pines: accuracy in per cent with missing bands")
    print_table(missing)
    write_table("pernkopf_missing", missing, options, PACKAGES)
    draw_spectral(options, table, missing)


def run(options: Options) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_spiral(options)
        run_spectral(options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
