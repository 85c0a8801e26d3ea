"""The distribution of a few columns, one by one and in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray, IntArray
from hybridmix.plots.axes import import_pyplot
from hybridmix.plots.densities import draw_distribution
from hybridmix.plots.drawing import class_handles, draw_rows, style_of
from hybridmix.plots.marginals import MarginalView, Variable
from hybridmix.plots.naming import name_categories

# Contours hold these shares of the probability.
_SHARES = (0.9, 0.5)
_N_DEFAULT = 4
# How far from its category a point is drawn at most, if the next is at a distance of 1.
_JITTER = 0.25
# Letters of names that fit next to a panel, and of categories at its ticks.
_LONGEST, _LONGEST_CATEGORY = 22, 12


class PairwiseMarginalsDisplay:
    """A matrix of pictures: a few columns of the rows, and the marginals of the model.

    On the diagonal are the densities of single columns over histograms of the rows, as in
    `ClassDensitiesDisplay`. Below it are the rows over pairs of columns, with contours
    that hold 50 and 90 per cent of the probability of each class, all other columns
    integrated out exactly. Where a column is categorical, bars take the place of curves,
    and the points of a category are scattered around it, without contours.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    variables : sequence of Variable, of length k
        The columns.
    joint : mapping of (int, int) to ndarray
        For ``(i, i)``, densities (n_classes, m_i) of the variable i; for ``(i, j)`` with
        ``i > j``, densities (n_classes, m_i, m_j) of a pair of real ones.
    classes : sequence
        The labels; a single None for a mixture without classes.
    labels : ndarray of shape (n,)
        Class numbers of the rows; -1 where there is no label.

    Attributes
    ----------
    figure_ : matplotlib figure
        The figure.
    axes_ : ndarray of shape (k, k)
        Matplotlib axes; those above the diagonal are empty.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import MixtureDensity
    >>> from hybridmix.plots import PairwiseMarginalsDisplay
    >>> X, _ = load_iris(return_X_y=True)
    >>> density = MixtureDensity(3, random_state=0).fit(X)
    >>> display = PairwiseMarginalsDisplay.from_estimator(density, X, columns=[0, 2])
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        joint: Mapping[tuple[int, int], FloatArray],
        *,
        classes: Sequence[Any],
        labels: IntArray,
    ) -> None:
        self.variables = variables
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
        columns: Sequence[int | str] | None = None,
        grid_resolution: int = 80,
        axes: Any = None,
    ) -> Self:
        """Draw the marginals of a fitted mixture.

        Parameters
        ----------
        estimator : fitted estimator of hybridmix
            With or without classes.
        X : array-like or data frame of shape (n, d)
            Rows to compare with.
        y : array-like of shape (n,) or None, default=None
            Their labels, if the estimator has classes.
        columns : sequence of int or str, or None, default=None
            Names or positions; None for up to four real columns: those that say most
            about the class, or the first ones if there are no classes.
        grid_resolution : int, default=80
            Points along each axis.
        axes : array of matplotlib axes, shape (k, k), or None, default=None
            Where to draw; None for a new figure.
        """
        view = MarginalView.of(estimator, X, y)
        chosen = view.positions(columns, _N_DEFAULT, real_only=False)
        if not chosen:
            raise ValueError("There is no real column to choose; name columns.")
        variables = [view.variable(column, grid_resolution) for column in chosen]
        joint = {}
        for i, row in enumerate(variables):
            joint[i, i] = np.exp(view.log_joint_on_grid([chosen[i]], [row]))
            for j, column in enumerate(variables[:i]):
                if row.categories is None and column.categories is None:
                    pair = [chosen[i], chosen[j]]
                    joint[i, j] = np.exp(view.log_joint_on_grid(pair, [row, column]))
        return cls(variables, joint, classes=view.classes, labels=view.labels).plot(
            axes=axes
        )

    def plot(self, *, axes: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        k = len(self.variables)
        if axes is None:
            _, axes = import_pyplot().subplots(
                k,
                k,
                figsize=(2.2 * k + 0.6, 2.0 * k + 0.4),
                squeeze=False,
                layout="constrained",
            )
        self.axes_ = np.asarray(axes, dtype=object)
        if self.axes_.shape != (k, k):
            raise ValueError(f"There are {k} columns to draw; pass {k} x {k} axes.")
        self.figure_ = self.axes_[0, 0].figure
        for i, row in enumerate(self.variables):
            for j, column in enumerate(self.variables):
                ax = self.axes_[i, j]
                if j > i:
                    ax.set_axis_off()
                    continue
                if j < i:
                    self._draw_pair(ax, i, j)
                else:
                    draw_distribution(
                        ax, row, self.joint[i, i], self.classes, self.labels
                    )
                    ax.set_yticks([])
                _label(ax, row, column, is_last=i == k - 1, is_first=j == 0 < i)
        self.figure_.align_ylabels(self.axes_[:, 0])
        if len(self.classes) > 1:
            # The corner above the diagonal is free, unless there is no corner.
            handles = class_handles(self.classes, self.labels)
            legend = self.axes_[0, -1].legend(handles=handles, loc="upper right")
            legend.set_in_layout(False)  # a long one must not push the axes apart
        return self

    def _draw_pair(self, ax: Any, i: int, j: int) -> None:
        row, column = self.variables[i], self.variables[j]
        generator = np.random.default_rng(0)
        x, y = _scattered(column, generator), _scattered(row, generator)
        draw_rows(ax, x, y, self.labels, size=3.5)
        ax.set(xlim=column.limits, ylim=row.limits)
        for number, density in enumerate(self.joint.get((i, j), ())):
            style = style_of(number)
            levels = _levels(density)
            if len(levels):
                ax.contour(
                    column.points,
                    row.points,
                    density,
                    levels,
                    colors=style.color,
                    linestyles=style.line,
                    linewidths=1.2,
                )


def _label(
    ax: Any, row: Variable, column: Variable, *, is_last: bool, is_first: bool
) -> None:
    """Name the variables at the left and at the bottom of the matrix."""
    if column.categories is not None:
        name_categories(ax, column.points, _short(column.categories), upright=True)
    if row.categories is not None and row is not column:
        ax.set_yticks(row.points, _short(row.categories))
    if is_last:
        ax.set_xlabel(shortened(column.name, _LONGEST), fontsize="small")
    else:
        ax.tick_params(labelbottom=False)
    if is_first:
        ax.set_ylabel(shortened(row.name, _LONGEST), fontsize="small")
    else:
        ax.tick_params(labelleft=False)


def _short(categories: Sequence[Any]) -> list[str]:
    return [shortened(str(value), _LONGEST_CATEGORY) for value in categories]


def _scattered(variable: Variable, generator: np.random.Generator) -> FloatArray:
    """Return the values of a variable; those of a category lie around its number."""
    if variable.categories is None:
        return variable.values
    size = len(variable.values)
    return variable.values + generator.uniform(-_JITTER, _JITTER, size)


def _levels(density: FloatArray) -> FloatArray:
    """Return the densities of the contours that hold given shares of the probability."""
    falling = np.sort(density, axis=None)[::-1]
    held = np.cumsum(falling) / max(falling.sum(), np.finfo(float).tiny)
    levels = falling[np.searchsorted(held, _SHARES).clip(max=len(held) - 1)]
    # A density that is narrower than the grid has no contour.
    return np.unique(levels[(levels > 0.0) & (levels < falling[0])])
