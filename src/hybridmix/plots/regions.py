"""Where a classifier decides for which class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.shapes import ColumnShape
from hybridmix.estimators.components import Marginal
from hybridmix.models.calibration import Calibration
from hybridmix.plots.axes import new_axes
from hybridmix.plots.colours import ink, shaded
from hybridmix.plots.drawing import class_handles, draw_rows, ellipse, style_of
from hybridmix.plots.marginals import MarginalView, Variable
from hybridmix.plots.naming import place_legend
from hybridmix.tasks import task_of

# How much of its colour a region has, between these leads over the next class.
_LEADS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.01)
_STRENGTHS = (0.06, 0.15, 0.24, 0.33, 0.42)


class DecisionRegionsDisplay:
    """Decision regions over two real columns, with the components of the model.

    The stronger the shade, the further the probability of the class is ahead of the next
    one. Ellipses are two standard deviations from the means of the components. All other
    columns are integrated out, exactly: the regions are the decisions of the same model
    for rows that have these two columns only, and no column is held at an arbitrary
    value.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    variables : pair of Variable
        The columns, horizontal and vertical.
    probabilities : ndarray of shape (n_classes, m_x, m_y)
        Class probabilities at the points of the variables.
    classes : sequence
        The labels.
    labels : ndarray of shape (n,)
        Class numbers of the rows; -1 where there is no label.
    means : ndarray of shape (n_components, 2)
        Of the components, over the two columns, mapped by their shapes.
    covariances : ndarray of shape (n_components, 2, 2)
        Of the components.
    component_classes : ndarray of shape (n_components,)
        Class numbers of the components.
    n_hidden : int, default=0
        How many other columns are integrated out.
    shapes : pair of ColumnShape
        Shapes of the columns; plain by default.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> from hybridmix.plots import DecisionRegionsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HybridMixtureClassifier("likelihood").fit(X, y)
    >>> display = DecisionRegionsDisplay.from_estimator(model, X, y, columns=[2, 3])
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        probabilities: FloatArray,
        *,
        classes: Sequence[Any],
        labels: IntArray,
        means: FloatArray,
        covariances: FloatArray,
        component_classes: IntArray,
        n_hidden: int = 0,
        shapes: Sequence[ColumnShape] = (ColumnShape(), ColumnShape()),
    ) -> None:
        self.variables = variables
        self.probabilities = probabilities
        self.classes = classes
        self.labels = labels
        self.means = means
        self.covariances = covariances
        self.component_classes = component_classes
        self.n_hidden = n_hidden
        self.shapes = shapes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        columns: Sequence[int | str] | None = None,
        grid_resolution: int = 200,
        ax: Any = None,
    ) -> Self:
        """Draw the decision regions of a fitted classifier.

        Parameters
        ----------
        estimator : HybridMixtureClassifier or HybridMixtureClassifierCV
            Fitted.
        X : array-like or data frame of shape (n, d)
            Rows to draw, which also give the limits.
        y : array-like of shape (n,) or None, default=None
            Their labels; rows without one are grey.
        columns : pair of int or str, or None, default=None
            Two real columns by name or position; None for the two that say most about
            the class of these rows.
        grid_resolution : int, default=200
            Points along each axis.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        view = MarginalView.of(estimator, X, y)
        if task_of(view.estimator).target != "classes":
            raise TypeError(
                f"A {type(view.estimator).__name__} does not decide between classes. "
                "PairwiseMarginalsDisplay draws its density."
            )
        chosen = view.positions(columns, 2, real_only=True)
        if len(chosen) != 2:
            raise ValueError(
                f"Decision regions need two real columns, not {len(chosen)}. "
                "ClassDensitiesDisplay draws a single column."
            )
        variables = [view.variable(column, grid_resolution) for column in chosen]
        log_joint = view.log_joint_on_grid(chosen, variables)
        model = view.estimator
        calibration = Calibration(model.temperature_, model.uniform_share_)
        probabilities = calibration.probabilities(log_joint.reshape(len(log_joint), -1))
        means, covariances = Marginal.of(model, chosen).moments()
        return cls(
            variables,
            probabilities.reshape(log_joint.shape),
            classes=view.classes,
            labels=view.labels,
            means=means,
            covariances=covariances,
            component_classes=model.component_classes_,
            n_hidden=len(view.schema.real) + len(view.schema.categorical) - 2,
            shapes=[view.schema.shapes.get(j, ColumnShape()) for j in chosen],
        ).plot(ax=ax)

    def _in_units(self, points: FloatArray) -> list[FloatArray]:
        """Return coordinates in the units of the table, from mapped ones (2, ...)."""
        pairs = zip(self.shapes, points, strict=True)
        return [shape.inverse(values) for shape, values in pairs]

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        horizontal, vertical = self.variables
        self._draw_regions()
        draw_rows(ax, horizontal.values, vertical.values, self.labels)
        for mean, covariance, number in zip(
            self.means, self.covariances, self.component_classes, strict=True
        ):
            style = style_of(number)
            around = self._in_units(ellipse(mean, covariance))
            ax.plot(*around, color=style.color, linestyle=style.line)
            centre = self._in_units(mean)
            ax.plot(*centre, "+", color=style.color, markersize=9, markeredgewidth=2)
        ax.set(
            xlim=horizontal.limits,
            ylim=vertical.limits,
            xlabel=horizontal.name,
            ylabel=vertical.name,
        )
        if self.n_hidden:
            noun = "column" if self.n_hidden == 1 else "columns"
            ax.set_title(
                f"{self.n_hidden} other {noun} integrated out", fontsize="medium"
            )
        place_legend(ax, class_handles(self.classes, self.labels), beside=True)
        return self

    def _draw_regions(self) -> None:
        """Shade where a class is ahead of all others, and draw where two are equal."""
        x, y = (variable.points for variable in self.variables)
        for number in range(len(self.classes)):
            rivals = np.delete(self.probabilities, number, axis=0)
            lead = self.probabilities[number] - rivals.max(axis=0, initial=0.0)
            if lead.max() <= 0.0:
                continue
            color = style_of(number).color
            shades = [shaded(color, strength) for strength in _STRENGTHS]
            self.ax_.contourf(x, y, lead.T, _LEADS, colors=shades)
            if lead.min() < 0.0:
                self.ax_.contour(x, y, lead.T, [0.0], colors=ink(), linewidths=0.8)
