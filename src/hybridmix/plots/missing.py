"""What missing features cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from hybridmix.inspection import MissingFeatureCurve, missing_feature_curve
from hybridmix.plots.axes import new_axes
from hybridmix.plots.drawing import style_of


class MissingFeatureDisplay:
    """A score as more and more cells go missing in prediction.

    The line is the mean over draws of the holes, the band one standard deviation around
    it. Draw further classifiers into the same axes by ``ax=display.ax_``; with the same
    ``random_state`` they meet the same holes.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    curve : MissingFeatureCurve
        As returned by `hybridmix.inspection.missing_feature_curve`.
    name : str or None, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> from hybridmix.plots import MissingFeatureDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HybridMixtureClassifier("likelihood").fit(X[::2], y[::2])
    >>> display = MissingFeatureDisplay.from_estimator(
    ...     model, X[1::2], y[1::2], random_state=0
    ... )
    """

    def __init__(self, curve: MissingFeatureCurve, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        rates: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        n_repeats: int = 3,
        scoring: Any = None,
        random_state: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the score of a fitted classifier, on rows that it has not seen.

        Parameters
        ----------
        estimator : classifier
            Any classifier with the interface of scikit-learn that takes missing values.
        X, y : table and labels
            Held-out rows.
        rates : sequence of float, default=(0, 0.1, ..., 0.9)
            Shares of the cells to remove, completely at random.
        n_repeats : int, default=3
            Draws of the holes at each rate.
        scoring : str, callable or None, default=None
            Any score of scikit-learn; None for the accuracy.
        random_state : int, RandomState or None, default=None
            Seed for the holes.
        name : str or None, default=None
            Name of the model; None for that of its class.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        curve = missing_feature_curve(
            estimator,
            X,
            y,
            rates=rates,
            n_repeats=n_repeats,
            scoring=scoring,
            random_state=random_state,
        )
        return cls(curve, name or type(estimator).__name__).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        curve = self.curve
        style = style_of(len(ax.lines))  # one after those that are there already
        ax.plot(
            curve.rates,
            curve.mean,
            color=style.color,
            linestyle=style.line,
            marker=style.marker,
            label=self.name or "model",
        )
        ax.fill_between(
            curve.rates,
            curve.mean - curve.deviation,
            curve.mean + curve.deviation,
            color=style.color,
            alpha=0.15,
            linewidth=0.0,
        )
        ax.set(xlabel="share of missing cells", ylabel=curve.metric.replace("_", " "))
        ax.legend()
        return self
