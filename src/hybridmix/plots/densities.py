"""The distribution of one column within the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED
from hybridmix.plots.axes import new_axes
from hybridmix.plots.colours import GREY, ink, paper
from hybridmix.plots.drawing import style_of
from hybridmix.plots.marginals import MarginalView, Variable
from hybridmix.plots.naming import name_categories, place_legend

_FEWEST_BINS, _MOST_BINS = 10, 40
# Of the bars of a category, where the next category is at a distance of 1.
_WIDTH = 0.8
# The highest spike reaches this share of the height of the picture.
_SPIKE_HEIGHT = 0.9
# Histograms of more classes than this would cover the curves.
_MOST_FILLED = 3
# With more classes than this, histograms are not drawn.
_MOST_SHADED = 8
_HATCHES = ("", "///", "...", "xxx")


class ClassDensitiesDisplay:
    """The marginal distribution of one column and the class, over that of the rows.

    For a real column, a curve for each class shows the density :math:`p(x_j, c)`, with
    all other columns integrated out exactly; the area below it is the class probability.
    Histograms of the rows are on the same scale. Bars with a percentage are values that
    repeat and have a probability of their own (spikes). For a categorical column, bars
    show the probabilities of category and class, and diamonds the frequencies of the
    rows.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    variable : Variable
        The column.
    joint : ndarray of shape (n_classes, m)
        Densities or probabilities at the points of the variable.
    classes : sequence
        The labels; a single None for a mixture without classes.
    labels : ndarray of shape (n,)
        Class numbers of the rows; -1 where there is no label.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> from hybridmix.plots import ClassDensitiesDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HybridMixtureClassifier("likelihood").fit(X, y)
    >>> display = ClassDensitiesDisplay.from_estimator(model, X, y, column=2)
    """

    def __init__(
        self,
        variable: Variable,
        joint: FloatArray,
        *,
        classes: Sequence[Any],
        labels: IntArray,
    ) -> None:
        self.variable = variable
        self.joint = joint
        self.classes = classes
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        column: int | str | None = None,
        grid_resolution: int = 400,
        ax: Any = None,
    ) -> Self:
        """Draw the distribution of a column by a fitted mixture.

        Parameters
        ----------
        estimator : fitted estimator of hybridmix
            A classifier, or a mixture without classes for a single curve.
        X : array-like or data frame of shape (n, d)
            Rows to compare with.
        y : array-like of shape (n,) or None, default=None
            Their labels. Without labels, the rows are compared with the sum of all
            classes.
        column : int, str or None, default=None
            Name or position; None for the real column that says most about the class
            of these rows.
        grid_resolution : int, default=400
            Points of the curves.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        view = MarginalView.of(estimator, X, y)
        wanted = None if column is None else [column]
        chosen = view.positions(wanted, 1, real_only=False)
        if not chosen:
            raise ValueError("There is no real column to choose; name a column.")
        variable = view.variable(chosen[0], grid_resolution)
        joint = np.exp(view.log_joint_on_grid(chosen, [variable]))
        return cls(variable, joint, classes=view.classes, labels=view.labels).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        draw_distribution(ax, self.variable, self.joint, self.classes, self.labels)
        is_real = self.variable.categories is None
        ax.set(xlabel=self.variable.name, ylabel="density" if is_real else "probability")
        # Bars leave no room but above them.
        place_legend(ax, ax.get_legend_handles_labels()[0], above=not is_real)
        return self


def draw_distribution(
    ax: Any,
    variable: Variable,
    joint: FloatArray,
    classes: Sequence[Any],
    labels: IntArray,
) -> None:
    """Draw the distribution of a variable within classes, over that of the rows.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    variable : Variable
        The column, with the values of the rows.
    joint : ndarray of shape (n_classes, m)
        Densities or probabilities at its points.
    classes : sequence of length n_classes
        For the legend.
    labels : ndarray of shape (n,)
        Class numbers of the rows; -1 where there is no label. If there is none at all,
        rows are compared with the sum of all classes.
    """
    values, observed = variable.values, ~np.isnan(variable.values)
    groups = [values[observed & (labels == number)] for number in range(len(joint))]
    if np.all(labels == UNLABELLED):
        groups = [values[observed]]
    names = ["model" if label is None else str(label) for label in classes]
    draw = _draw_curves if variable.categories is None else _draw_bars
    draw(ax, variable, joint, names, groups)


def _draw_curves(
    ax: Any,
    variable: Variable,
    joint: FloatArray,
    names: list[str],
    groups: list[FloatArray],
) -> None:
    """Draw curves over histograms: of each class, or of all rows together."""
    by_class = len(groups) > 1
    everything = np.concatenate(groups)
    n_bins = int(np.clip(1.5 * np.sqrt(len(everything)), _FEWEST_BINS, _MOST_BINS))
    edges = np.histogram_bin_edges(everything, n_bins)
    volume = np.maximum(len(everything), 1) * np.diff(edges)
    # Histograms of many classes would hide each other, and the curves.
    for number, values in enumerate(groups if len(groups) <= _MOST_SHADED else []):
        values = values[~np.isin(values, variable.spikes)]
        ax.stairs(
            np.histogram(values, edges)[0] / volume,
            edges,
            fill=True,
            color=style_of(number).color if by_class else GREY,
            alpha=0.3 if len(groups) <= _MOST_FILLED else 0.12,
            label=None if by_class else "rows",
        )
    for number, density in enumerate(joint):
        color, _, line = style_of(number)
        ax.plot(
            variable.points, density, color=color, linestyle=line, label=names[number]
        )
    if len(groups) < len(joint):
        total = joint.sum(axis=0)
        ax.plot(variable.points, total, color=ink(), linewidth=0.8, label="all classes")
    ax.set_xlim(variable.limits)
    ax.set_ylim(bottom=0.0)
    if variable.masses is not None:
        _draw_spikes(ax, variable.spikes, variable.masses)


def _draw_spikes(ax: Any, spikes: Sequence[float], masses: FloatArray) -> None:
    """Draw spikes side by side, with their probabilities, which curves cannot show."""
    unit = _SPIKE_HEIGHT * ax.get_ylim()[1] / max(float(masses.max()), 1e-300)
    low, high = ax.get_xlim()
    for number, own in enumerate(masses):
        shift = 0.01 * (high - low) * (number - 0.5 * (len(masses) - 1))
        for spike, mass in zip(spikes, own, strict=True):
            color = style_of(number).color
            ax.plot([spike + shift] * 2, [0.0, mass * unit], color=color, linewidth=3.0)
            ax.annotate(f"{mass:.0%}", (spike + shift, mass * unit), color=color)


def _draw_bars(
    ax: Any,
    variable: Variable,
    joint: FloatArray,
    names: list[str],
    groups: list[FloatArray],
) -> None:
    """Draw bars side by side, or one upon the other to compare with all rows."""
    assert variable.categories is not None
    width = _WIDTH / len(groups)
    n_rows = max(sum(map(len, groups)), 1)
    foot = np.zeros(len(variable.points))
    for number, probability in enumerate(joint):
        place = number if len(groups) > 1 else 0
        ax.bar(
            variable.points + _shift(place, len(groups)),
            probability,
            width,
            bottom=foot,
            color=style_of(number).color,
            alpha=0.6,
            edgecolor=paper(),
            hatch=_HATCHES[number % len(_HATCHES)],
            label=names[number],
        )
        if len(groups) == 1:
            foot = foot + probability
    for place, values in enumerate(groups):
        counts = np.bincount(values.astype(np.intp), minlength=len(variable.points))
        ax.plot(
            variable.points + _shift(place, len(groups)),
            counts / n_rows,
            "D",
            color=ink(),
            markeredgecolor=paper(),
            markersize=5,
            label="rows" if place == 0 else None,
        )
    name_categories(ax, variable.points, variable.categories)
    ax.set_xlim(variable.limits)


def _shift(place: int, n_places: int) -> float:
    """Return how far a bar stands from the centre of its group."""
    return _WIDTH * ((place + 0.5) / n_places - 0.5)
