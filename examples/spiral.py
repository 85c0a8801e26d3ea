"""Two spirals, seven diagonal Gaussians each: what a better border costs in likelihood.

Axis-parallel ellipses have a hard time along a spiral. The likelihood places them so that
they cover the rows; training to discriminate places them so that they part the classes.
With a small margin the densities stay near to those of the likelihood, with a large one
they need not describe the rows at all.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, RED, Options, Plane, draw_classes, finish, read_options
from matplotlib.axes import Axes

from hybridmix import HybridMixtureClassifier

N_PER_CLASS = 500
N_COMPONENTS = 7
TRADEOFF = 1000.0
MARGINS = [0.1, 10.0]
PLANE = Plane.around_origin(13.0)


def draw_rows(
    n_rows: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n_rows) % 2
    angle = 3.5 * np.pi * np.sqrt(generator.uniform(0.06, 1.0, n_rows))
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * angle[:, None]
    X[y == 1] *= -1.0
    return X + 0.6 * generator.standard_normal(X.shape), y


def fit(X: np.ndarray, y: np.ndarray, margin: float | None, n_steps: int) -> object:
    """Fit by the likelihood, or by the hybrid objective if there is a margin."""
    model = HybridMixtureClassifier(
        "likelihood",
        n_components=N_COMPONENTS,
        covariance_type="diag",
        n_init=5,
        random_state=0,
    )
    if margin is not None:
        model.set_params(
            objective="hybrid",
            tradeoff=TRADEOFF,
            loss="hinge",
            margin=margin,
            n_steps=n_steps,
        )
    return model.fit(X, y)


def draw_densities(axes: Axes, model: object, X: np.ndarray, y: np.ndarray) -> None:
    """Draw contours of the density of each class, at shares of its peak."""
    draw_classes(axes, X, y, 2.0)
    for label, color in enumerate((BLUE, RED)):
        density = np.exp(
            PLANE.of_points(lambda t, c=label: model.predict_joint_log_proba(t)[:, c])
        )
        levels = density.max() * np.array([0.05, 0.2, 0.5])
        axes.contour(PLANE.x, PLANE.y, density, levels, colors=color, linewidths=1.2)
    PLANE.clip(axes)


def main(options: Options) -> None:
    generator = np.random.default_rng(0)
    n_steps = 20 if options.quick else 500
    X, y = draw_rows(2 * N_PER_CLASS, generator)
    X_test, y_test = draw_rows(10_000, generator)
    figure, panels = plt.subplots(2, 2, figsize=(8.2, 8.6))
    print(f"{'':30}{'error':>8}{'test error':>12}{'-log p(x, y) per row':>23}")
    for axes, margin in zip(panels.flat[1:], [None, *MARGINS], strict=True):
        model = fit(X, y, margin, n_steps)
        name = "likelihood"
        if margin is None:
            draw_densities(panels[0, 0], model, X, y)
            panels[0, 0].set_title("likelihood: densities of the classes")
        else:
            name = f"hybrid, tradeoff {TRADEOFF:g}, margin {margin:g}"
        own = model.predict_joint_log_proba(X)[np.arange(len(y)), y]
        error, test_error = 1.0 - model.score(X, y), 1.0 - model.score(X_test, y_test)
        print(
            f"{name:<30}{100 * error:>6.1f} %{100 * test_error:>10.1f} %"
            f"{-own.mean():>23.2f}"
        )
        PLANE.draw_border(axes, model)
        draw_classes(axes, X, y, 2.0)
        axes.set_title(f"{name}: {100 * test_error:.1f} %")
    finish(figure, "spiral", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
