"""What a tradeoff does to errors and likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hybridmix._typing import FloatArray
from hybridmix.plots.axes import import_pyplot
from hybridmix.plots.colours import ink
from hybridmix.plots.drawing import style_of


class TradeoffPathDisplay:
    """Measures along ascending tradeoffs, one picture for each.

    `from_estimator` draws what a search has found, and `from_path` what happens to other
    rows along one path.

    Parameters
    ----------
    tradeoffs : ndarray of shape (t,)
        In ascending order.
    measures : mapping of str to ndarray of shape (t, r)
        What was measured for each tradeoff, in each repetition or fold.
    chosen : int or None, default=None
        Place of the tradeoff that was chosen.

    Attributes
    ----------
    figure_ : matplotlib figure
        The figure.
    axes_ : ndarray of matplotlib axes
        One for each measure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifierCV
    >>> from hybridmix.plots import TradeoffPathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> search = HybridMixtureClassifierCV(
    ...     n_components=1, covariance_type="diag", tradeoff=[0, 1, 10], cv=3
    ... ).fit(X, y)
    >>> display = TradeoffPathDisplay.from_estimator(search)
    """

    def __init__(
        self,
        tradeoffs: FloatArray,
        measures: Mapping[str, FloatArray],
        chosen: int | None = None,
    ) -> None:
        self.tradeoffs = tradeoffs
        self.measures = measures
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Draw the scores of a search by tradeoff, at its best other parameters.

        Parameters
        ----------
        estimator : HybridMixtureClassifierCV
            Fitted, with several tradeoffs.
        axes : sequence of matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        check_is_fitted(estimator, "cv_results_")
        results, best = estimator.cv_results_, estimator.best_params_
        path = [
            index
            for index, params in enumerate(results["params"])
            if {**params, "tradeoff": None} == {**best, "tradeoff": None}
        ]
        if len(path) < 2 or "tradeoff" not in best:
            raise ValueError(
                "The best parameters were scored with tradeoff="
                f"{best.get('tradeoff')} alone, so there is no path to draw. Search "
                "along several tradeoffs, and without per_class."
            )
        path.sort(key=lambda index: results["params"][index]["tradeoff"])
        folds = range(estimator.n_splits_)
        scores = [results[f"split{fold}_test_score"][path] for fold in folds]
        return cls(
            np.array([results["params"][index]["tradeoff"] for index in path], float),
            {_name_of(estimator.scoring): np.column_stack(scores)},
            path.index(estimator.best_index_),
        ).plot(axes=axes)

    @classmethod
    def from_path(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        tradeoffs: Sequence[float] = (0, 1, 3, 10, 30, 100),
        axes: Any = None,
    ) -> Self:
        """Train along a path, and draw the error and the likelihood of other rows.

        Parameters
        ----------
        estimator : HybridMixtureClassifier
            Not fitted. EM comes first, and each training goes on from the result of the
            tradeoff before.
        X, y : table and labels
            Training rows.
        X_test, y_test : table and labels
            Rows to measure on.
        tradeoffs : sequence of float, default=(0, 1, 3, 10, 30, 100)
            Tradeoffs; 0 is the likelihood.
        axes : sequence of matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        path = np.unique(np.asarray(tradeoffs, dtype=np.float64))
        errors, likelihoods = [], []
        model = clone(estimator).set_params(objective="likelihood").fit(X, y)
        for tradeoff in path:
            if tradeoff > 0:
                model = clone(estimator).set_params(
                    objective="hybrid", tradeoff=tradeoff, init=model
                )
                model.fit(X, y)
            errors.append(1.0 - model.score(X_test, y_test))
            likelihoods.append(np.mean(model.score_samples(X_test)))
        measures = {"error": errors, "mean log-likelihood of a row": likelihoods}
        columns = {name: np.array(values)[:, None] for name, values in measures.items()}
        return cls(path, columns).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        if axes is None:
            n_panels = len(self.measures)
            _, axes = import_pyplot().subplots(
                1, n_panels, figsize=(4.4 * n_panels, 3.3), layout="constrained"
            )
        self.axes_ = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(self.axes_) < len(self.measures):
            raise ValueError(
                f"There are {len(self.measures)} measures to draw; pass as many axes."
            )
        self.figure_ = self.axes_[0].figure
        for place, (ax, name) in enumerate(zip(self.axes_, self.measures, strict=False)):
            self._draw(ax, name, place)
        return self

    def _draw(self, ax: Any, name: str, place: int) -> None:
        """Draw mean and standard deviation of a measure, and what was chosen."""
        color, marker, _ = style_of(place)
        mean = self.measures[name].mean(axis=1)
        deviation = self.measures[name].std(axis=1)
        if deviation.any():
            low, high = mean - deviation, mean + deviation
            ax.fill_between(
                self.tradeoffs, low, high, color=color, alpha=0.15, linewidth=0.0
            )
        ax.plot(self.tradeoffs, mean, color=color, marker=marker)
        if self.chosen is not None:
            ax.plot(
                self.tradeoffs[self.chosen],
                mean[self.chosen],
                "o",
                markersize=13,
                markerfacecolor="none",
                markeredgecolor=ink(),
                linestyle="none",
                label="chosen",
            )
            ax.legend()
        _scale_tradeoffs(ax, self.tradeoffs)
        ax.set(xlabel="tradeoff", ylabel=name)


def _scale_tradeoffs(ax: Any, tradeoffs: FloatArray) -> None:
    """Make the axis logarithmic, with a place for zero and a tick for each tradeoff."""
    positive = tradeoffs[tradeoffs > 0]
    if len(positive):
        ax.set_xscale("symlog", linthresh=positive.min())
    ax.set_xticks(tradeoffs, [f"{tradeoff:g}" for tradeoff in tradeoffs])
    ax.minorticks_off()


def _name_of(scoring: Any) -> str:
    """Return a name for what a search maximises."""
    if scoring is None:
        return "accuracy"
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    return name.replace("_", " ")
