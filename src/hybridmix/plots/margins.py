"""How far rows are on the right side of the border."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, number_labels
from hybridmix.plots.axes import new_axes
from hybridmix.plots.colours import ink, palette, paper

_N_BINS = 40


class MarginsDisplay:
    """A histogram of the margins of rows, with the mean that they have a priori.

    The margin of a row is how far the output of its label is ahead of that of the best
    rival, in expectation. Rows below the mean of the prior lack margin: in training,
    these are the rows that have a multiplier (``support_``), and the only ones that the
    model depends on, unless classes were trained apart. Below 0, a row is classified
    wrongly.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Of the rows.
    mean_margin : float
        Mean of the margins a priori.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.
    """

    def __init__(self, margins: FloatArray, mean_margin: float) -> None:
        self.margins = margins
        self.mean_margin = mean_margin

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Draw the margins of rows under a fitted classifier.

        Parameters
        ----------
        estimator : MEDClassifier, or a pipeline that ends with one
            The classifier.
        X, y : table and labels
            Rows of training, or others. Rows without a label are left out.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        classifier = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        check_is_fitted(classifier)
        if not hasattr(classifier, "multipliers_"):
            raise TypeError(
                f"A {type(classifier).__name__} is not trained by margins; "
                "a MEDClassifier is."
            )
        labels = number_labels(y, classifier.classes_, classifier.unlabelled)
        margins = margins_of(estimator.decision_function(X), labels)
        return cls(margins, classifier.margin_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        margins, mean = self.margins, self.mean_margin
        wrong, enough = margins < 0.0, margins >= mean
        colors = palette()
        parts = {
            "wrong": (margins[wrong], colors[1]),
            "less than the mean margin": (margins[~wrong & ~enough], colors[4]),
            "enough": (margins[enough], colors[5]),
        }
        ax.hist(
            [values for values, _ in parts.values()],
            _edges(margins, mean),
            stacked=True,
            color=[color for _, color in parts.values()],
            edgecolor=paper(),
            linewidth=0.4,
            label=[f"{name}: {len(values)}" for name, (values, _) in parts.items()],
        )
        ax.axvline(0.0, color=ink(), linewidth=1.0)
        ax.axvline(
            mean,
            color=ink(),
            linestyle="--",
            linewidth=1.0,
            label=f"mean a priori: {mean:g}",
        )
        ax.set(xlabel="expected margin", ylabel="rows")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
        return self


def margins_of(scores: FloatArray, labels: IntArray) -> FloatArray:
    """Return by how much labels are ahead of their best rival, for rows with a label.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, C)
        As ``decision_function`` returns them.
    labels : ndarray of shape (n,)
        Class numbers.
    """
    check_consistent_length(scores, labels)
    known = labels != UNLABELLED
    scores, labels = scores[known], labels[known]
    if scores.ndim == 1:
        return np.where(labels == 1, scores, -scores)
    rows = np.arange(len(labels))
    own = scores[rows, labels]
    rivals = scores.copy()
    rivals[rows, labels] = -np.inf
    return own - rivals.max(axis=1)


def _edges(margins: FloatArray, mean: float) -> FloatArray:
    """Return bins of equal width that have an edge at 0, and at the mean if they can."""
    low, high = min(margins.min(initial=0.0), 0.0), max(margins.max(initial=0.0), mean)
    parts = round(_N_BINS * mean / (high - low))
    width = mean / parts if parts else (high - low) / _N_BINS
    first, last = np.floor(low / width), np.ceil(high / width)
    return width * np.arange(first, last + 1)
