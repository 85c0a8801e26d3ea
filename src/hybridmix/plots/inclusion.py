"""Which columns a model with switches includes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number
from hybridmix._text import shortened
from hybridmix._typing import FloatArray
from hybridmix.plots.axes import new_axes
from hybridmix.plots.colours import GREY
from hybridmix.plots.drawing import style_of

_HEIGHT = 0.8
# Inches that a column needs, and letters of its name that are shown.
_PER_COLUMN, _LONGEST = 0.24, 40


class InclusionDisplay:
    """Probabilities that columns are included, the highest at the top.

    Tasks or classes that have switches of their own have a bar each.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    inclusion : ndarray of shape (k,) or (T, k)
        Posterior probabilities of the columns to be drawn, in their order.
    names : sequence of str
        Names of these columns.
    prior : float
        Probability that a column was included a priori.
    labels : sequence of str, default=()
        Names of the tasks or classes that have switches of their own.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from hybridmix import MEDFeatureSelector
    >>> from hybridmix.plots import InclusionDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = MEDFeatureSelector().fit(X, y)
    >>> display = InclusionDisplay.from_estimator(selector, n_columns=8)
    """

    def __init__(
        self, inclusion: FloatArray, names: Any, prior: float, labels: Any = ()
    ) -> None:
        self.inclusion = inclusion
        self.names = names
        self.prior = prior
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_columns: int = 20,
        feature_names: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw the columns of a fitted estimator that are included with most probability.

        Parameters
        ----------
        estimator : estimator
            With `inclusion_` of columns: `MEDFeatureSelector`, `MEDClassifier` with
            ``inclusion`` below 1, or one of several tasks.
        n_columns : int, default=20
            How many columns to draw, at most.
        feature_names : array-like of str, default=None
            Names of all columns; None for those of training.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        check_number("n_columns", n_columns, 1, whole=True)
        check_is_fitted(estimator)
        found = getattr(estimator, "inclusion_", None)
        n_features = estimator.n_features_in_
        if found is None or found.shape[-1] != n_features:
            raise ValueError(
                f"{type(estimator).__name__} has no switches of columns: train it with "
                "linear functions and inclusion below 1."
            )
        names = feature_names
        if names is None:
            default = [f"column {j}" for j in range(n_features)]
            names = getattr(estimator, "feature_names_in_", default)
        if len(names) != n_features:
            raise ValueError(
                f"feature_names has {len(names)} names for {n_features} columns."
            )
        best = best_columns(estimator)[:n_columns]
        labels = () if found.ndim == 1 else _labels(estimator, len(found))
        return cls(
            found[..., best], [str(names[j]) for j in best], estimator.inclusion, labels
        ).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax, 1.0 + _PER_COLUMN * len(self.names))
        self.figure_ = ax.figure
        rows = np.atleast_2d(self.inclusion)
        places, height = np.arange(rows.shape[1]), _HEIGHT / len(rows)
        for number, row in enumerate(rows):
            shift = (number + 0.5) * height - 0.5 * _HEIGHT
            label = self.labels[number] if len(self.labels) else None
            colour = style_of(number).color
            ax.barh(places + shift, row, height=height, color=colour, label=label)
        ax.axvline(self.prior, color=GREY, linestyle=":")
        ax.set_yticks(places, [shortened(name, _LONGEST) for name in self.names])
        ax.set(xlim=(0.0, 1.0), xlabel="probability that the column is included")
        ax.invert_yaxis()
        if len(self.labels):
            ax.legend()
        return self


def best_columns(estimator: Any) -> np.ndarray:
    """Return the columns in the order of their scores, or else of their weights."""
    scores = getattr(estimator, "scores_", None)
    if scores is None:
        scores = np.abs(estimator.coef_)
    total = np.sqrt(np.sum(np.atleast_2d(scores) ** 2, axis=0))
    return np.argsort(-total, kind="stable")


def _labels(estimator: Any, n_rows: int) -> list[str]:
    """Return names of the outputs that have switches of their own."""
    names = getattr(estimator, "tasks_", getattr(estimator, "classes_", range(n_rows)))
    return [str(name) for name in names]
