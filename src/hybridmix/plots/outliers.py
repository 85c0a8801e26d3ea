"""How unusual rows are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.estimators.base import outlier_level
from hybridmix.plots.axes import new_axes
from hybridmix.plots.colours import ink, palette, paper

_N_BINS = 40
# Numbers of rows are on a logarithmic scale, so that single ones show, from here on.
_LOWEST = 0.5
# The axis ends at this many times the largest one.
_ROOM = 4.0
# Scores below this are drawn on a logarithmic scale.
_FAR = -10.0


class OutlierScoresDisplay:
    """A histogram of the scores of rows, with the threshold and the outliers.

    A score is the log of the probability that the model itself produces a row of no
    higher density (``typicality``). The dotted line shows how many rows of each score
    there would be if the model had produced them, or more where its components overlap:
    the more rows lie above it at the left, the more of them are unlike what the model has
    learned. Below -10, scores are on a logarithmic scale.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the rows, at most 0.
    threshold : float
        Rows of a lower score are outliers.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from hybridmix import MixtureOutlierDetector
    >>> from hybridmix.plots import OutlierScoresDisplay
    >>> X, _ = load_wine(return_X_y=True)
    >>> detector = MixtureOutlierDetector(1).fit(X)
    >>> display = OutlierScoresDisplay.from_estimator(detector, X)
    """

    def __init__(self, scores: FloatArray, threshold: float) -> None:
        self.scores = scores
        self.threshold = threshold

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, threshold: float | None = None, ax: Any = None
    ) -> Self:
        """Draw how unusual rows are to a fitted model.

        Parameters
        ----------
        estimator : fitted estimator of hybridmix
            With ``typicality``.
        X : array-like or data frame of shape (n, d)
            Rows, with or without holes.
        threshold : float or None, default=None
            Rows of a lower score are outliers; None for the ``offset_`` of an outlier
            detector, and for the logarithm of 0.01 otherwise.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        if not hasattr(estimator, "typicality"):
            raise TypeError(
                f"A {type(estimator).__name__} does not say how typical rows are; "
                "estimators of hybridmix do."
            )
        if threshold is None:
            threshold = outlier_level(estimator)
        return cls(estimator.typicality(X), threshold).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        scores, threshold = self.scores, self.threshold
        is_outlier = scores < threshold
        lowest = min(scores.min(), 1.5 * threshold)
        if lowest < _FAR:
            ax.set_xscale("symlog", linthresh=-_FAR)
        edges = _edges(lowest, threshold, ax.xaxis.get_transform())
        n_outliers = int(is_outlier.sum())
        counts, _, _ = ax.hist(
            [scores[~is_outlier], scores[is_outlier]],
            edges,
            stacked=True,
            color=[palette()[5], palette()[1]],
            edgecolor=paper(),
            linewidth=0.4,
            label=[
                f"{len(scores) - n_outliers} other rows",
                f"{n_outliers} outlier{'s' * (n_outliers != 1)}",
            ],
        )
        expected = len(scores) * np.diff(np.exp(edges))
        ax.stairs(
            expected, edges, baseline=None, color=ink(), linestyle=":", label="expected"
        )
        ax.axvline(
            threshold,
            color=ink(),
            linestyle="--",
            linewidth=1.0,
            label=f"threshold {threshold:.2f}",
        )
        _mark(ax, scores[is_outlier])
        ax.set(
            xlim=(edges[0], 0.0),
            yscale="log",
            ylim=(_LOWEST, _ROOM * max(np.max(counts), expected.max())),
            xlabel="log probability of a row as unusual",
            ylabel="rows",
        )
        ax.legend(loc="upper left")
        return self


def _mark(ax: Any, scores: FloatArray) -> None:
    """Point at scores from below: a bin of one row may be too thin to be seen."""
    ax.plot(
        scores,
        np.full(len(scores), _LOWEST),
        "v",
        color=palette()[1],
        markeredgecolor=ink(),
        markersize=6,
        clip_on=False,
    )


def _edges(lowest: float, threshold: float, scale: Any) -> FloatArray:
    """Return bins about equally wide in the picture, with an edge at the threshold."""
    first, last = scale.transform(np.array([lowest, 0.0]))
    edges = scale.inverted().transform(np.linspace(first, last, _N_BINS + 1))
    inner = 1 + int(np.argmin(np.abs(edges[1:-1] - threshold)))
    edges[inner] = threshold
    return np.asarray(edges)
