"""Rows without a label tell the shape of the classes.

Two long classes lie side by side; one value in five is missing. With a handful of labels
the shape of a class cannot be seen, with unlabelled rows it can. How far these rows are
trusted is the option ``unlabelled_weight``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, GREY, ORANGE, RED, SKY, Options, finish, read_options
from matplotlib.axes import Axes

from hybridmix import HybridMixtureClassifier

N_UNLABELLED = 400
LABELS_PER_CLASS = [3, 5, 10, 20, 40]
N_REPETITIONS = 30
OFFSET = np.array([-1.0, 1.0])
FACTOR = np.linalg.cholesky(np.array([[2.0, 1.8], [1.8, 2.0]]))
WEIGHTS = {
    "labelled rows only": None,
    "all rows, unlabelled_weight='auto'": "auto",
    "all rows, unlabelled_weight=1": 1.0,
}
STYLES = [(GREY, "o", "-"), (BLUE, "s", "-"), (ORANGE, "^", "-")]


def draw_rows(
    n_rows: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n_rows) % 2
    X = generator.standard_normal((n_rows, 2)) @ FACTOR.T
    X += np.where(y[:, None] == 1, OFFSET, -OFFSET) * 0.7
    X[generator.random(X.shape) < 0.2] = np.nan
    return X, y


def fit(X: np.ndarray, y: np.ndarray, weight: float | str | None) -> object:
    """Fit to all rows, or to those with a label if there is no weight for others."""
    model = HybridMixtureClassifier(
        "likelihood", n_components=1, covariance_type="full", random_state=0
    )
    if weight is None:
        return model.fit(X[y >= 0], y[y >= 0])
    return model.set_params(unlabelled_weight=weight).fit(X, y)


def test_errors(n_labels: int, seed: int) -> list[float]:
    generator = np.random.default_rng(seed)
    X, y = draw_rows(N_UNLABELLED + 2 * max(LABELS_PER_CLASS), generator)
    y[2 * n_labels :] = -1
    X_test, y_test = draw_rows(1000, generator)
    models = [fit(X, y, weight) for weight in WEIGHTS.values()]
    return [1.0 - model.score(X_test, y_test) for model in models]


def draw_model(axes: Axes, model: object, X: np.ndarray, y: np.ndarray) -> None:
    grid_x, grid_y = np.meshgrid(np.linspace(-5, 5, 200), np.linspace(-5, 5, 200))
    points = np.column_stack([grid_x.ravel(), grid_y.ravel()])
    probability = model.predict_proba(points)[:, 1].reshape(grid_x.shape)
    levels = [0.0, 0.1, 0.5, 0.9, 1.0]
    colors = [SKY, "#cfe8f7", "#f9dcc8", "#eea77f"]
    axes.contourf(grid_x, grid_y, probability, levels, colors=colors, alpha=0.75)
    axes.contour(grid_x, grid_y, probability, [0.5], colors=BLACK, linewidths=1.5)
    axes.plot(*X[y < 0].T, ".", color="#606060", markersize=2.5, label="no label")
    for label, color, marker in ((0, BLUE, "o"), (1, RED, "s")):
        axes.plot(
            *X[y == label].T,
            marker,
            color=color,
            markersize=9,
            markeredgecolor="white",
            label=f"label {label}",
        )
    axes.set(xlim=(-5, 5), ylim=(-5, 5), aspect="equal")


def main(options: Options) -> None:
    n_repetitions = 2 if options.quick else N_REPETITIONS
    generator = np.random.default_rng(1)
    figure, panels = plt.subplots(1, 3, figsize=(11.0, 4.3))
    X, y = draw_rows(N_UNLABELLED + 6, generator)
    complete = ~np.isnan(X).any(axis=1)
    shown = [np.flatnonzero(complete & (y == label))[:3] for label in (0, 1)]
    y[~np.isin(np.arange(len(y)), shown)] = -1
    draw_model(panels[0], fit(X, y, None), X, y)
    panels[0].set_title("Fitted to 6 labelled rows")
    draw_model(panels[1], fit(X, y, 1.0), X, y)
    panels[1].set_title(f"Fitted to these and {N_UNLABELLED} unlabelled rows")
    handles, labels = panels[0].get_legend_handles_labels()
    panels[0].legend(handles, labels, loc="lower left", fontsize=9, frameon=True)
    errors = np.array(
        [
            [test_errors(n_labels, seed) for seed in range(n_repetitions)]
            for n_labels in LABELS_PER_CLASS
        ]
    )
    mean = errors.mean(axis=1)
    half = 2.0 * errors.std(axis=1, ddof=1) / np.sqrt(n_repetitions)
    print(f"Test error in %, mean over {n_repetitions} tables:\n")
    print("labels per class" + "".join(f"{n:>7}" for n in LABELS_PER_CLASS))
    for i, (name, (color, marker, line)) in enumerate(zip(WEIGHTS, STYLES, strict=True)):
        print(f"{name}\n{'':16}" + "".join(f"{100 * e:>7.1f}" for e in mean[:, i]))
        panels[2].errorbar(
            LABELS_PER_CLASS,
            100 * mean[:, i],
            100 * half[:, i],
            color=color,
            marker=marker,
            linestyle=line,
            capsize=3,
            label=name,
        )
    panels[2].set_xscale("log")
    panels[2].set_xticks(LABELS_PER_CLASS, [str(n) for n in LABELS_PER_CLASS])
    panels[2].minorticks_off()
    panels[2].set(xlabel="labels per class", ylabel="test error in %", ylim=(10, None))
    panels[2].set_title(f"Mean of {n_repetitions} tables, two standard errors")
    panels[2].legend(loc="upper right", fontsize=9)
    finish(figure, "semi_supervised", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
