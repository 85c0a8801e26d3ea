"""Digits with a part of them hidden: what is behind, and which digits they are.

Covariances in a subspace, trained on complete digits. A mixture density fills the hidden
pixels by what it expects, or by draws. A classifier sees the other pixels only, beside
support vector machines that see filled ones.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures import RED, SKY, Options, finish, read_options
from matplotlib.figure import SubFigure
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from hybridmix import HybridMixtureClassifier, MixtureDensity

SIDE = 8
BRIGHTEST = 16.0
BLOCK, SHARE = 5, 0.6
LABELS = (0, 2, 3, 4, 5, 8, 9)
N_DRAWS = 3
N_REPETITIONS = 3


def block_holes(n_rows: int, side: int, generator: np.random.Generator) -> np.ndarray:
    """Return a mask of a square at a random place of each image."""
    hidden = np.zeros((n_rows, SIDE, SIDE), dtype=bool)
    corners = generator.integers(SIDE - side + 1, size=(n_rows, 2))
    for image, (top, left) in zip(hidden, corners, strict=True):
        image[top : top + side, left : left + side] = True
    return hidden.reshape(n_rows, -1)


def scattered_holes(
    n_rows: int, share: float, generator: np.random.Generator
) -> np.ndarray:
    """Return a mask of pixels here and there."""
    return generator.random((n_rows, SIDE**2)) < share


def split_digits(seed: int) -> list[np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)


# Accuracy -------------------------------------------------------------------------------


def classifiers() -> dict[str, Any]:
    return {
        "subspace": HybridMixtureClassifier(
            n_components=1, covariance_type="subspace", tradeoff=10.0, random_state=0
        ),
        "SVM, means of the pixels": make_pipeline(SimpleImputer(), SVC(C=10.0)),
        "SVM, 3 nearest neighbours": make_pipeline(
            KNNImputer(n_neighbors=3), SVC(C=10.0)
        ),
    }


def hidden_parts(X: np.ndarray, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Return images with more and more of them hidden."""
    tables = {"nothing": X}
    for side in (3, BLOCK):
        hidden = block_holes(len(X), side, generator)
        tables[f"{side} x {side}"] = np.where(hidden, np.nan, X)
    for share in (0.3, SHARE):
        hidden = scattered_holes(len(X), share, generator)
        tables[f"{share:.0%}"] = np.where(hidden, np.nan, X)
    return tables


def print_accuracies(n_repetitions: int) -> None:
    results = []
    for seed in range(n_repetitions):
        X, X_test, y, y_test = split_digits(seed)
        tables = hidden_parts(X_test, np.random.default_rng(seed))
        models = [model.fit(X, y) for model in classifiers().values()]
        results.append(
            [
                [model.score(table, y_test) for table in tables.values()]
                for model in models
            ]
        )
    print(f"Accuracy in %, mean over {n_repetitions} splits:\n")
    print(f"{'hidden':<28}" + "".join(f"{kind:>9}" for kind in tables))
    for name, means in zip(classifiers(), np.mean(results, axis=0), strict=True):
        print(f"{name:<28}" + "".join(f"{100.0 * mean:>9.1f}" for mean in means))


# Picture --------------------------------------------------------------------------------


def draw_digits(panel: SubFigure, tables: dict[str, np.ndarray]) -> np.ndarray:
    """Draw a row for each table and a column for each digit; return the axes."""
    panels = panel.subplots(len(tables), len(LABELS))
    colors = plt.get_cmap("gray_r").with_extremes(bad=SKY)
    for axes_row, (name, table) in zip(panels, tables.items(), strict=True):
        for axes, row in zip(axes_row, table, strict=True):
            image = row.reshape(SIDE, SIDE)
            axes.imshow(image, cmap=colors, vmin=0.0, vmax=BRIGHTEST)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        axes_row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return panels


def draw_completions(
    panel: SubFigure,
    whole: np.ndarray,
    hidden: np.ndarray,
    density: MixtureDensity,
    classifier: HybridMixtureClassifier,
) -> None:
    """Draw digits, what is seen of them, what may be behind, and what they are."""
    seen = np.where(hidden, np.nan, whole)
    tables = {"digit": whole, "seen": seen, "expected": density.impute(seen)}
    for i in range(1, N_DRAWS + 1):
        tables[f"draw {i}"] = density.impute(seen, draw=True, random_state=i)
    panels = draw_digits(panel, tables)
    probabilities = classifier.predict_proba(seen)
    for axes, label, row in zip(panels[0], LABELS, probabilities, strict=True):
        best = classifier.classes_[row.argmax()]
        text = axes.set_title(f"{best}: {row.max():.2f}", loc="center", fontsize=9)
        if best != label:
            text.set(color="white", bbox={"color": RED, "pad": 1.5})


def main(options: Options) -> None:
    print_accuracies(1 if options.quick else N_REPETITIONS)
    X, X_test, y, y_test = split_digits(seed=0)
    density = MixtureDensity(
        10, covariance_type="subspace", covariance_prior="auto", random_state=0
    ).fit(X)
    classifier = classifiers()["subspace"].fit(X, y)
    generator = np.random.default_rng(0)
    whole = X_test[[np.flatnonzero(y_test == label)[0] for label in LABELS]]
    kinds = {
        f"a square of {BLOCK} x {BLOCK} pixels hidden": block_holes(
            len(whole), BLOCK, generator
        ),
        f"{100 * SHARE:.0f} % of the pixels hidden": scattered_holes(
            len(whole), SHARE, generator
        ),
    }
    figure = plt.figure(figsize=(10.4, 4.6))
    panels = figure.subfigures(1, 2)
    for panel, (title, hidden) in zip(panels, kinds.items(), strict=True):
        draw_completions(panel, whole, hidden, density, classifier)
        panel.suptitle(title)
    finish(figure, "image_completion", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
