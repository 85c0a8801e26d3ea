"""Unlabelled rows hold the hybrid objective to the shape of the table.

Two rectangles with a gap between them, and a few labels in a corner of each. The labels
alone are parted by many borders. With the unlabelled rows in the likelihood, the border
runs through the gap; unless EM takes the wrong turn at the start, which it does for some
tables if the rectangles are tall.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import Options, Plane, draw_classes, finish, read_options

from hybridmix import HybridMixtureClassifier

N_ROWS = 400
N_LABELS = 4
N_REPETITIONS = 20
WIDTH, GAP = 3.0, 1.5
HEIGHTS = [3.0, 4.0]
PLANE = Plane.around_origin(4.2, 2.6)
SETTINGS = {
    "likelihood, labelled rows only": ("likelihood", False),
    "hybrid, labelled rows only": ("hybrid", False),
    "likelihood, all rows": ("likelihood", True),
    "hybrid, all rows": ("hybrid", True),
}


def draw_rows(
    height: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows of two rectangles, labels, and the few labels that are known."""
    y = np.arange(N_ROWS) % 2
    X = generator.uniform(-0.5, 0.5, size=(N_ROWS, 2)) * [WIDTH, height]
    X[:, 0] += np.where(y == 1, 0.5, -0.5) * (WIDTH + GAP)
    few = np.full(N_ROWS, -1)
    # The upper right corner of the left one, the lower right corner of the right one.
    corners = 0.5 * np.array([[-GAP, height], [GAP + 2.0 * WIDTH, -height]])
    for label, corner in enumerate(corners):
        rows = np.flatnonzero(y == label)
        distance = np.linalg.norm(X[rows] - corner, axis=1)
        few[rows[np.argsort(distance)[:N_LABELS]]] = label
    return X, y, few


def fit(X: np.ndarray, y: np.ndarray, objective: str, unlabelled: bool) -> object:
    kept = np.full(len(y), True) if unlabelled else y >= 0
    model = HybridMixtureClassifier(
        objective,
        tradeoff=1.0,
        loss="hinge",
        margin=1.0,
        n_components=1,
        covariance_type="full",
        unlabelled_weight=1.0,
        random_state=0,
    )
    return model.fit(X[kept], y[kept])


def errors(height: float, n_repetitions: int) -> np.ndarray:
    """Return errors (tables, settings)."""
    generator = np.random.default_rng(1)
    result = []
    for _ in range(n_repetitions):
        X, y, few = draw_rows(height, generator)
        models = [fit(X, few, *setting) for setting in SETTINGS.values()]
        result.append([1.0 - model.score(X, y) for model in models])
    return 100.0 * np.array(result)


def main(options: Options) -> None:
    n_repetitions = 2 if options.quick else N_REPETITIONS
    print(f"Error over {n_repetitions} tables of {N_ROWS} rows, {2 * N_LABELS} labels:")
    for height in HEIGHTS:
        print(f"\n{f'height {height:g}':<32}{'mean':>8}{'largest':>10}")
        table = errors(height, n_repetitions)
        for name, own in zip(SETTINGS, table.T, strict=True):
            print(f"{name:<32}{own.mean():>6.1f} %{own.max():>8.1f} %")
    X, y, few = draw_rows(HEIGHTS[0], np.random.default_rng(0))
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.0))
    for axes, name in zip(panels, list(SETTINGS)[1::2], strict=True):
        model = fit(X, few, *SETTINGS[name])
        PLANE.draw_border(axes, model, 1.0)
        axes.plot(*X[few < 0].T, ".", color="#606060", markersize=3, label="no label")
        draw_classes(axes, X, few, 9.0)
        axes.set_title(f"{name}: {100 * (1.0 - model.score(X, y)):.1f} %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    finish(figure, "hybrid_semi_supervised", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
