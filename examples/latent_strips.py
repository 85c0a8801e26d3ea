"""Four strips of two classes, with two components per class: density, margin, starts.

Each class has four clusters, and its mixture has only two components. By the likelihood,
components sit between the clusters and say nothing about the class. Trained by margins,
they are where the strips need them to be, which is not where the rows are. A start may
end elsewhere, at a much higher objective.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures import (
    BLACK,
    BLUE,
    GREY,
    PALE_BLUE,
    PALE_RED,
    RED,
    Options,
    Plane,
    draw_classes,
    finish,
    read_options,
)
from matplotlib.axes import Axes

from hybridmix import HybridMixtureClassifier, LatentMEDClassifier

PLANE = Plane.around_origin(10.5, 12.5)
N_ROWS, N_TEST, N_STARTS = 160, 4000, 30


def draw_strips(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw from eight unit Gaussians, classes of which alternate upwards."""
    level, side = np.arange(n_rows) % 4, np.arange(n_rows) // 4 % 2
    centres = np.column_stack([12.0 * side - 6.0, 6.0 * level - 9.0])
    noise = np.random.default_rng(seed).normal(size=(n_rows, 2))
    return centres + noise, level % 2


def draw_regions(axes: Axes, model: Any, means: np.ndarray) -> None:
    """Draw the regions of the classes, and the means (4, 2) of their components."""
    second = PLANE.of_points(lambda table: model.predict(table) == 1)
    levels, colors = [-0.5, 0.5, 1.5], [PALE_BLUE, PALE_RED]
    axes.contourf(PLANE.x, PLANE.y, second, levels, colors=colors)
    look = {"markersize": 11, "markeredgecolor": BLACK, "linestyle": "none"}
    for own, color, marker in ((means[:2], BLUE, "o"), (means[2:], RED, "s")):
        axes.plot(*own.T, marker, color=color, **look)


def draw_starts(axes: Axes, X: np.ndarray, y: np.ndarray, n_starts: int) -> None:
    """Draw objectives and test errors of single starts."""
    new, labels = draw_strips(N_TEST, 1)
    found = []
    for seed in range(n_starts):
        model = LatentMEDClassifier(C=10.0, n_init=1, calibrate=False, random_state=seed)
        model.fit(X, y)
        found.append((model.objective_, 1.0 - model.score(new, labels)))
    objectives, errors = np.array(found).T
    axes.plot(objectives, errors, "o", color=GREY, markeredgecolor=BLACK)
    axes.set(xscale="log", ylim=(-0.03, 0.6), title=f"{n_starts} starts")
    axes.set(xlabel="objective", ylabel="test error")
    n_found = int(np.sum(errors < 0.03))
    print(f"{n_found} of {n_starts} starts find the strips")


def main(options: Options) -> None:
    X, y = draw_strips(N_ROWS, 0)
    new, labels = draw_strips(N_TEST, 1)
    density = HybridMixtureClassifier(
        "likelihood", n_components=2, covariance_type="spherical", random_state=0
    ).fit(X, y)
    latent = LatentMEDClassifier(C=10.0, calibrate=False, random_state=0).fit(X, y)
    figure, panels = plt.subplots(1, 3, figsize=(10.4, 3.9))
    cases = [
        ("likelihood", density, np.concatenate(density.means_)),
        ("margins", latent, latent.means_),
    ]
    for axes, (name, model, means) in zip(panels, cases, strict=False):
        draw_regions(axes, model, means)
        draw_classes(axes, X, y)
        PLANE.clip(axes)
        error = 1.0 - model.score(new, labels)
        axes.set_title(f"{name}: test error {100.0 * error:.1f} %")
        print(f"{name}: test error {error:.3f}")
    draw_starts(panels[2], X, y, 5 if options.quick else N_STARTS)
    finish(figure, "latent_strips", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
