"""What the pictures of the examples share: colours, ellipses, planes, saving."""

from __future__ import annotations

import argparse
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from sklearn.linear_model import LogisticRegressionCV

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
# The palette of Okabe and Ito, which people with any colour vision can tell apart.
BLACK, GREY, LIGHT = "#000000", "#8c8c8c", "#d9d9d9"
BLUE, ORANGE, GREEN, RED, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9"
PALE_BLUE, PALE_RED = "#d6e9f5", "#fbe3d3"

plt.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "savefig.dpi": 110,
    }
)


def draw_ellipse(
    axes: Axes,
    mean: np.ndarray,
    covariance: np.ndarray,
    color: str,
    label: str | None = None,
    style: str = "-",
) -> None:
    """Draw the curve two standard deviations from the mean of a Gaussian."""
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    curve = mean[:, None] + 2.0 * np.linalg.cholesky(covariance) @ circle
    axes.plot(*curve, color=color, linestyle=style, linewidth=2.0, label=label)
    axes.plot(*mean, "+", color=color, markersize=10, markeredgewidth=2.0)


@dataclass(frozen=True)
class Plane:
    """A grid of points in the plane: their coordinates, each of shape (m, n)."""

    x: np.ndarray
    y: np.ndarray

    @classmethod
    def around_origin(cls, x: float, y: float | None = None) -> Plane:
        """Return the points of a rectangle, a square unless both sides are given."""
        y = x if y is None else y
        n = int(240 * y / x)
        return cls(*np.meshgrid(np.linspace(-x, x, 240), np.linspace(-y, y, n)))

    def of_points(self, function: Any) -> np.ndarray:
        """Return the values of a function of a table, for the points."""
        table = np.column_stack([self.x.ravel(), self.y.ravel()])
        return np.asarray(function(table)).reshape(self.x.shape)

    def log_ratio(self, model: Any) -> np.ndarray:
        """Return how far the second class is ahead of the first, in log densities."""
        return self.of_points(lambda t: np.diff(model.predict_joint_log_proba(t), axis=1))

    def draw_border(self, axes: Axes, model: Any, margin: float | None = None) -> None:
        """Draw where two classes are equally probable, and lines of a log margin."""
        ratio = self.log_ratio(model)
        colors = [PALE_BLUE, PALE_RED]
        axes.contourf(self.x, self.y, ratio, [-np.inf, 0.0, np.inf], colors=colors)
        axes.contour(self.x, self.y, ratio, [0.0], colors=BLACK, linewidths=1.8)
        if margin is not None:
            axes.contour(
                self.x,
                self.y,
                ratio,
                [-margin, margin],
                colors=BLACK,
                linewidths=1.1,
                linestyles="--",
            )
        self.clip(axes)

    def clip(self, axes: Axes) -> None:
        """Let axes show the grid in a frame, without ticks."""
        axes.spines[["top", "right"]].set_visible(True)
        axes.set(
            xlim=(self.x.min(), self.x.max()),
            ylim=(self.y.min(), self.y.max()),
            aspect="equal",
            xticks=[],
            yticks=[],
        )


def draw_classes(axes: Axes, X: np.ndarray, y: np.ndarray, size: float = 3.0) -> None:
    """Draw rows of two classes, as discs and squares."""
    for label, color, marker in ((0, BLUE, "o"), (1, RED, "s")):
        axes.plot(
            *X[y == label].T,
            marker,
            color=color,
            markersize=size,
            markeredgecolor="white",
            markeredgewidth=0.2 * size / 3.0,
            label=f"class {label}",
        )


def fit_l1_logistic(X: np.ndarray, y: np.ndarray) -> LogisticRegressionCV:
    """Fit a logistic regression with an L1 penalty that is chosen by five folds."""
    with warnings.catch_warnings():
        # Later versions of scikit-learn have another name for the penalty.
        warnings.simplefilter("ignore", FutureWarning)
        model = LogisticRegressionCV(Cs=8, penalty="l1", solver="liblinear", cv=5)
        return model.fit(X, y)


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    save: bool
    quick: bool
    data: Path | None = None


def read_options(description: str, data: str | None = None) -> Options:
    """Read the command line; `data` is the file that a folder of data would have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--save", action="store_true", help="write to docs/images")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    if data is not None:
        parser.add_argument("--data", type=Path, help=f"folder that has {data}")
    return Options(**vars(parser.parse_args()))


def finish(figure: Figure, name: str, save: bool) -> None:
    """Save a figure to docs/images, or show it."""
    if save:
        IMAGES.mkdir(parents=True, exist_ok=True)
        path = IMAGES / f"{name}.png"
        stream = io.BytesIO()
        figure.savefig(stream)
        # A palette of 64 colours makes the file three times smaller.
        image = Image.open(stream).convert("RGB").quantize(64, dither=Image.Dither.NONE)
        image.save(path, optimize=True)
        print(f"written to {path}")
    else:
        plt.show()
    plt.close(figure)
