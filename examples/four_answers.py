"""One fitted model, four answers: classes, missing values, unusual rows, new rows.

Two half moons: 600 rows, 60 of them labelled, with a fifth of the cells missing.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    RED,
    Options,
    Plane,
    draw_classes,
    finish,
    read_options,
)
from matplotlib.axes import Axes
from sklearn.datasets import make_moons

from hybridmix import HybridMixtureClassifier

N_ROWS, N_LABELS, HOLES = 600, 60, 0.2
PLANE = Plane.around_origin(2.25)
KNOWN = 0.3  # the value that the row with a hole has
ODD = np.array([[0.0, 2.0], [-2.0, -1.7], [2.1, -1.9], [0.9, 0.1], [-1.7, 0.3]])


def draw_table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows with holes, of which few have a label."""
    rng = np.random.default_rng(seed)
    X, y = make_moons(N_ROWS, noise=0.15, random_state=seed)
    X = 1.3 * (X - [0.5, 0.25])
    X[rng.random(X.shape) < HOLES] = np.nan
    y[rng.permutation(N_ROWS)[N_LABELS:]] = -1
    return X, y


def draw_rows(axes: Axes, X: np.ndarray) -> None:
    axes.plot(*X.T, ".", color=GREY, markersize=3)
    PLANE.clip(axes)


def draw_hole(axes: Axes, model: HybridMixtureClassifier) -> None:
    """Draw the density of the second column, given the first."""
    values = np.linspace(-2.4, 2.4, 400)
    rows = np.column_stack([np.full_like(values, KNOWN), values])
    given = model.score_samples([[KNOWN, np.nan]])
    density = np.exp(model.score_samples(rows) - given)
    axes.axvline(KNOWN, color=BLACK, linewidth=1.0)
    axes.fill_betweenx(values, KNOWN, KNOWN + density, color=BLUE, alpha=0.5)
    fill = model.impute([[KNOWN, np.nan]])
    axes.plot(*np.asarray(fill).T, "D", color=BLACK, markersize=6)


def draw_typicality(axes: Axes, model: HybridMixtureClassifier) -> None:
    """Draw where rows are usual, and the rows in question."""
    typical = PLANE.of_points(lambda table: np.exp(model.typicality(table)))
    axes.contourf(PLANE.x, PLANE.y, typical, [0.01, 0.1, 1.0], colors=[LIGHT, "#b5cfe0"])
    for row, share in zip(ODD, np.exp(model.typicality(ODD)), strict=True):
        odd = share < 0.01
        axes.plot(*row, "X" if odd else "o", color=RED if odd else BLUE, markersize=9)


def main(options: Options) -> None:
    X, y = draw_table(0)
    model = HybridMixtureClassifier(
        covariance_type="full",
        n_components=4,
        tradeoff=1,
        unlabelled_weight=1.0,
        random_state=0,
    ).fit(X, y)
    figure, panels = plt.subplots(1, 4, figsize=(12.4, 3.5))
    PLANE.draw_border(panels[0], model)
    labelled = y != -1
    panels[0].plot(*X[~labelled].T, ".", color=GREY, markersize=2)
    draw_classes(panels[0], X[labelled], y[labelled], size=5.0)
    draw_rows(panels[1], X)
    draw_hole(panels[1], model)
    draw_typicality(panels[2], model)
    draw_rows(panels[2], X)
    rows, labels = model.sample(N_ROWS, random_state=0)
    draw_classes(panels[3], np.asarray(rows), np.asarray(labels))
    PLANE.clip(panels[3])
    titles = (
        "predict_proba: the border",
        "impute: a missing value",
        "typicality: unusual rows",
        "sample: new rows",
    )
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=10)
    finish(figure, "four_answers", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
