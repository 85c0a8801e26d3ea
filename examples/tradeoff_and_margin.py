"""What tradeoff and margin do to the border between two classes.

Two bent classes in the plane, each with two diagonal Gaussians, which do not fit them.
The first line has ascending tradeoffs at a fixed margin, the second ascending margins at
a fixed tradeoff, the third the class probabilities of the second.
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
from matplotlib.axes import Axes

from hybridmix import HybridMixtureClassifier

N_ROWS = 200
TRADEOFFS = [0.0, 3.0, 100.0]
MARGINS = [0.5, 2.0, 8.0]
MARGIN, TRADEOFF = 2.0, 10.0
PLANE = Plane.around_origin(3.6)


def draw_rows(
    n_rows: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points along two half circles that reach into each other."""
    y = np.arange(n_rows) % 2
    angle = np.pi * generator.random(n_rows)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * 1.8
    X[y == 1] *= -1.0
    X += np.where(y[:, None] == 1, [0.9, 0.4], [-0.9, -0.4])
    return X + 0.35 * generator.standard_normal(X.shape), y


def fit(X: np.ndarray, y: np.ndarray, tradeoff: float, margin: float) -> object:
    model = HybridMixtureClassifier(
        "hybrid",
        tradeoff=tradeoff,
        loss="hinge",
        margin=margin,
        n_steps=200,
        n_components=2,
        covariance_type="diag",
        random_state=0,
    )
    return model.fit(X, y)


def draw_panel(
    axes: Axes, model: object, margin: float, X: np.ndarray, y: np.ndarray
) -> None:
    PLANE.draw_border(axes, model, margin)
    draw_classes(axes, X, y)
    for mean, covariance, label in zip(
        model.means_, model.covariances_, model.component_classes_, strict=True
    ):
        draw_ellipse(axes, mean, np.diag(covariance), (BLUE, RED)[label])


def main(options: Options) -> None:
    generator = np.random.default_rng(0)
    X, y = draw_rows(N_ROWS, generator)
    X_test, y_test = draw_rows(10_000, generator)
    figure, panels = plt.subplots(3, 3, figsize=(9.6, 9.8))
    print("tradeoff  margin  test error  log loss  mean log-likelihood")
    settings = [(t, MARGIN) for t in TRADEOFFS] + [(TRADEOFF, m) for m in MARGINS]
    for number, (tradeoff, margin) in enumerate(settings):
        model = fit(X, y, tradeoff, margin)
        axes = panels.flat[number]
        draw_panel(axes, model, margin, X, y)
        error = 1.0 - model.score(X_test, y_test)
        own = model.predict_log_proba(X_test)[np.arange(len(y_test)), y_test]
        fit_of_rows = model.score_samples(X_test).mean()
        print(
            f"{tradeoff:8g}{margin:8g}{100 * error:10.1f} %{-own.mean():10.3f}"
            f"{fit_of_rows:21.2f}"
        )
        axes.set_title(f"tradeoff {tradeoff:g}, margin {margin:g}: {100 * error:.1f} %")
        if number >= 3:
            below = panels[2, number - 3]
            shown = below.contourf(
                PLANE.x,
                PLANE.y,
                PLANE.of_points(lambda t, m=model: m.predict_proba(t)[:, 1]),
                np.linspace(0.0, 1.0, 11),
                cmap="PuOr_r",
            )
            below.set_title(f"p(class 1), margin {margin:g}")
            PLANE.clip(below)
    figure.colorbar(shown, ax=panels[2], shrink=0.8, ticks=[0, 0.5, 1])
    finish(figure, "tradeoff_and_margin", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
