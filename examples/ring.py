"""A blob in a ring, one Gaussian each: a margin may be too small, and too large.

No Gaussian describes a ring; by the likelihood, the ring gets a wide one around the blob.
With a small margin only the rows at the border and on the wrong side count, too few
compared with the likelihood of all. With a margin that hardly a row reaches, those far
from the border pull as much as those next to it.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import (
    BLUE,
    RED,
    Options,
    Plane,
    draw_classes,
    draw_ellipse,
    finish,
    read_options,
)

from hybridmix import HybridMixtureClassifier

N_ROWS = 400
N_REPETITIONS = 20
TRADEOFF = 1.0
MARGINS = [None, 0.1, 3.0, 10.0]
PLANE = Plane.around_origin(4.4)


def draw_rows(
    n_rows: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n_rows) % 2
    X = 0.7 * generator.standard_normal((n_rows, 2))
    angle = 2.0 * np.pi * generator.random(n_rows)
    radius = 3.0 + 0.4 * generator.standard_normal(n_rows)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None]
    X[y == 1] = ring[y == 1]
    return X, y


def fit(X: np.ndarray, y: np.ndarray, margin: float | None) -> object:
    """Fit by the likelihood, or by the hybrid objective if there is a margin."""
    if margin is None:
        model = HybridMixtureClassifier("likelihood")
    else:
        model = HybridMixtureClassifier(
            "hybrid", tradeoff=TRADEOFF, loss="hinge", margin=margin, n_steps=200
        )
    return model.set_params(n_components=1, covariance_type="full").fit(X, y)


def name_of(margin: float | None) -> str:
    return "likelihood" if margin is None else f"hybrid, margin {margin:g}"


def mean_errors(n_repetitions: int) -> np.ndarray:
    generator = np.random.default_rng(1)
    errors = []
    for _ in range(n_repetitions):
        X, y = draw_rows(N_ROWS, generator)
        X_test, y_test = draw_rows(5000, generator)
        models = [fit(X, y, margin) for margin in MARGINS]
        errors.append([1.0 - model.score(X_test, y_test) for model in models])
    return np.mean(errors, axis=0)


def main(options: Options) -> None:
    n_repetitions = 2 if options.quick else N_REPETITIONS
    errors = mean_errors(n_repetitions)
    X, y = draw_rows(N_ROWS, np.random.default_rng(0))
    figure, panels = plt.subplots(1, 4, figsize=(11.6, 3.3))
    print(f"Test error, mean over {n_repetitions} tables:\n")
    for axes, margin, error in zip(panels, MARGINS, errors, strict=True):
        model = fit(X, y, margin)
        PLANE.draw_border(axes, model, margin)
        draw_classes(axes, X, y)
        for j, color in enumerate((BLUE, RED)):
            draw_ellipse(axes, model.means_[j], model.covariances_[j], color)
        axes.set_title(f"{name_of(margin)}: {100 * error:.1f} %")
        print(f"{name_of(margin):<20}{100 * error:>6.1f} %")
    finish(figure, "ring", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
