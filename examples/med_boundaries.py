"""From prior to posterior: boundaries, and margins with the losses that follow from them.

Above: lines drawn from a distribution over (weights, bias), which is a standard normal a
priori and has moved to where margins are met a posteriori. Its spread stays the same; a
long weight vector makes the same spread of the weights a small one of the line.
Below: priors over the margin of a row, and the losses that they amount to.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    RED,
    Options,
    Plane,
    draw_classes,
    finish,
    read_options,
)
from matplotlib.axes import Axes
from scipy.stats import laplace, norm

from hybridmix import MEDClassifier
from hybridmix.med.margins import ExponentialMargin, GaussianMargin, LaplaceMargin

PLANE = Plane.around_origin(3.6, 2.6)
# The width of a margin prior is its smoothness over C.
C, SMOOTHNESS, MEAN = 2.0, 1.0, 3.0


def two_clouds(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    y = np.arange(n_rows) % 2
    X = generator.normal(size=(n_rows, 2)) * [0.8, 0.9]
    return X + np.outer(2 * y - 1, [1.3, 0.5]), y


def draw_lines(axes: Axes, weights: np.ndarray, n_lines: int) -> None:
    """Draw the lines f = 0 of functions around (weights, bias), of variance one."""
    generator = np.random.default_rng(0)
    for a, b, bias in generator.normal(weights, 1.0, size=(n_lines, 3)):
        # The point of the line that is closest to the origin, and its direction.
        foot = -bias * np.array([a, b]) / (a**2 + b**2)
        along = np.array([-b, a]) / np.hypot(a, b)
        ends = foot + np.outer([-20.0, 20.0], along)
        axes.plot(*ends.T, color=GREY, linewidth=0.7, alpha=0.6, zorder=0)


def draw_posterior(axes: Axes, model: MEDClassifier, X: np.ndarray) -> None:
    """Draw the expected boundary, lines of the mean margin and rows that matter."""
    scores = PLANE.of_points(model.decision_function)
    axes.contour(
        PLANE.x,
        PLANE.y,
        scores,
        [-model.margin_, 0.0, model.margin_],
        colors=BLACK,
        linewidths=[1.1, 2.0, 1.1],
        linestyles=["--", "-", "--"],
    )
    axes.plot(
        *X[model.support_].T,
        "o",
        markersize=9,
        markerfacecolor="none",
        markeredgecolor=BLACK,
        markeredgewidth=0.8,
    )


def draw_margins(densities: Axes, losses: Axes) -> None:
    """Draw three margin priors, and the loss of an expected margin that each leads to."""
    width, margins = SMOOTHNESS / C, MEAN + np.linspace(-3.0, 2.0, 501)
    below = np.maximum(MEAN + width - margins, 0.0)
    cases = [
        (
            "exponential",
            ExponentialMargin(C, SMOOTHNESS, MEAN),
            np.where(below > 0.0, np.exp(-below / width) / width, 0.0),
            (BLUE, "-"),
        ),
        (
            "laplace",
            LaplaceMargin(C, SMOOTHNESS, MEAN),
            laplace.pdf(margins, MEAN, width),
            (RED, "--"),
        ),
        (
            "gaussian",
            GaussianMargin(C, SMOOTHNESS, MEAN),
            norm.pdf(margins, MEAN, width),
            (GREEN, "-."),
        ),
    ]
    for name, prior, density, (color, line) in cases:
        look = {"color": color, "linestyle": line, "linewidth": 1.8}
        densities.plot(margins, density, label=name, **look)
        losses.plot(margins, prior.loss(margins).value, **look)
    hinge = ExponentialMargin(C, 0.0, MEAN).loss(margins).value
    losses.plot(margins, hinge, ":", color=BLACK, label="hinge (smoothness 0)")
    for axes in (densities, losses):
        axes.axvline(MEAN, color=GREY, linewidth=0.8, zorder=0)
        axes.legend()
    densities.set(title="priors of a margin", xlabel="margin", ylabel="density")
    losses.set(title="their losses", xlabel="expected margin", ylim=(-0.1, 6.0))


def main(options: Options) -> None:
    n_lines = 20 if options.quick else 60
    X, y = two_clouds(60)
    model = MEDClassifier(
        C=C, smoothness=SMOOTHNESS, margin=MEAN, bias=1.0, calibrate=False
    ).fit(X, y)
    weights = np.append(model.coef_[0], model.intercept_[0])
    figure, panels = plt.subplots(2, 2, figsize=(8.6, 6.4))
    for axes, mean in zip(panels[0], (np.zeros(3), weights), strict=True):
        draw_lines(axes, mean, n_lines)
        draw_classes(axes, X, y, size=5.0)
        PLANE.clip(axes)
    draw_posterior(panels[0, 1], model, X)
    panels[0, 0].set_title("prior: any line")
    panels[0, 1].set_title("posterior: lines with margins")
    draw_margins(*panels[1])
    n_support = len(model.support_)
    print(
        f"{n_support} of {len(X)} rows have a multiplier; the expected weights and bias"
    )
    print("are", ", ".join(f"{value:.2f}" for value in weights))
    finish(figure, "med_boundaries", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
