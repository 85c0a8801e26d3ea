"""What the pictures share: styles of classes, rows, ellipses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED
from hybridmix.plots.axes import import_pyplot
from hybridmix.plots.colours import GREY, palette, paper

_MARKERS = "os^DvPX*"
_LINES = ("-", "--", "-.", ":")
_MANY_ROWS = 500


class Style(NamedTuple):
    """How a class looks; classes never differ in colour alone."""

    color: str
    marker: str
    line: str


def style_of(number: int) -> Style:
    """Return the style of a class by its number; no two of the first 32 are alike."""
    colors = palette()
    cycle, place = divmod(number, len(colors))
    return Style(
        colors[place],
        _MARKERS[(place + cycle) % len(_MARKERS)],
        _LINES[(place + cycle) % len(_LINES)],
    )


def draw_rows(
    ax: Any, x: FloatArray, y: FloatArray, labels: IntArray, size: float = 5.0
) -> None:
    """Draw rows as points, by class; those without a label as small grey ones."""
    is_many = len(x) > _MANY_ROWS
    size = 0.6 * size if is_many else size
    for number in np.unique(labels):
        own = labels == number
        if number == UNLABELLED:
            look = {"marker": ".", "color": GREY, "markeredgewidth": 0.0}
        else:
            style = style_of(number)
            look = {"marker": style.marker, "color": style.color}
            look |= {"markeredgecolor": paper(), "markeredgewidth": 0.1 * size}
        ax.plot(
            x[own],
            y[own],
            linestyle="none",
            markersize=size,
            alpha=0.5 if is_many else 0.8,
            rasterized=is_many,
            **look,
        )


def class_handles(classes: Sequence[Any], labels: IntArray) -> list[Any]:
    """Return one entry of a legend for each class, and one for rows without a label."""
    line = import_pyplot().Line2D
    entries = []
    for number, label in enumerate(classes):
        style = style_of(number)
        entries.append(
            line(
                [],
                [],
                color=style.color,
                linestyle=style.line,
                marker=style.marker if np.any(labels == number) else "none",
                markersize=5.0,
                label=str(label),
            )
        )
    if np.any(labels == UNLABELLED) and np.any(labels != UNLABELLED):
        entries.append(
            line([], [], color=GREY, marker=".", linestyle="none", label="unlabelled")
        )
    return entries


def ellipse(
    mean: FloatArray, covariance: FloatArray, n_deviations: float = 2.0
) -> FloatArray:
    """Return points (2, 200) a number of standard deviations from a Gaussian's mean."""
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    # Unlike a Cholesky factor, this root also exists for a flat ellipse.
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(mean)[:, None] + n_deviations * root @ circle
