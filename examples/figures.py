"""What the pictures of the examples share: colours, ellipses, saving."""

from __future__ import annotations

import argparse
import io
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
# The palette of Okabe and Ito, which people with any colour vision can tell apart.
BLACK, GREY, LIGHT = "#000000", "#8c8c8c", "#d9d9d9"
BLUE, ORANGE, GREEN, RED, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9"

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
class Options:
    """What the command line asks for."""

    save: bool
    quick: bool


def read_options(description: str) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--save", action="store_true", help="write to docs/images")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
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
