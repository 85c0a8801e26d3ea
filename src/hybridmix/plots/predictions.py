"""Predictions of real targets: how near, how sure, and what they depend on."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hybridmix._checks import check_number
from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray
from hybridmix.data.table import single_column
from hybridmix.plots.axes import new_axes
from hybridmix.plots.colours import GREY, palette
from hybridmix.plots.drawing import style_of

_MOST_BARS = 300
_N_POINTS = 60
_LEVELS, _GRID = tuple(np.linspace(0.05, 0.95, 19)), tuple(np.linspace(0.0, 1.0, 41))


def check_has_distribution(estimator: Any) -> None:
    """Refuse models that do not say how a target is distributed."""
    if not hasattr(estimator, "predict_quantiles"):
        raise TypeError(
            f"This {type(estimator).__name__} has no predictive distribution to draw: "
            "use a MixtureRegressor, or a MixtureNetworkRegressor of output='gaussian'."
        )


def one_target(y: Any, target: int) -> FloatArray:
    """Return a target (n,), NaN where missing, of one or several."""
    values = np.asarray(y, dtype=np.float64)
    return values.reshape(len(values), -1)[:, target]


class PredictionIntervalsDisplay:
    """Predicted against true targets, with intervals.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    true, predicted : ndarray of shape (n,)
        The targets.
    intervals : ndarray of shape (n, 2)
        Lower and upper ends.
    coverage : float
        The probability that an interval should hold its target.

    Attributes
    ----------
    covered : float
        The share of the rows whose interval holds the target.
    figure_, ax_
        The matplotlib figure and axes.
    """

    def __init__(
        self,
        true: FloatArray,
        predicted: FloatArray,
        intervals: FloatArray,
        coverage: float,
    ) -> None:
        self.true = true
        self.predicted = predicted
        self.intervals = intervals
        self.coverage = coverage
        self.covered = float(np.mean(self._is_covered()))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverage: float = 0.9,
        target: int = 0,
        ax: Any = None,
    ) -> Self:
        """Draw the predictions of a fitted regressor, on rows that it has not seen.

        Parameters
        ----------
        estimator : MixtureRegressor or MixtureNetworkRegressor
            Fitted.
        X, y : table and targets
            Held-out rows; those without a target are left out.
        coverage : float, default=0.9
            Probability of the intervals.
        target : int, default=0
            Which of several targets to draw.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        check_has_distribution(estimator)
        true = one_target(y, target)
        predicted = one_target(estimator.predict(X), target)
        ends = np.asarray(estimator.predict_interval(X, coverage))
        ends = ends.reshape(len(true), -1, 2)[:, target]
        known = ~np.isnan(true)
        return cls(true[known], predicted[known], ends[known], coverage).plot(ax=ax)

    def _is_covered(self) -> Any:
        low, high = self.intervals.T
        return (low <= self.true) & (self.true <= high)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        # More bars than this hide each other.
        shown = slice(None, None, max(1, -(-len(self.true) // _MOST_BARS)))
        is_covered = self._is_covered()[shown]
        true, predicted = self.true[shown], self.predicted[shown]
        reach = np.abs(self.intervals[shown] - predicted[:, None])
        for number, (own, word) in enumerate(
            [(is_covered, "in"), (~is_covered, "not in")]
        ):
            style = style_of(number)
            ax.errorbar(
                true[own],
                predicted[own],
                yerr=reach[own].T,
                fmt=style.marker,
                color=style.color,
                markersize=4,
                elinewidth=0.8,
                alpha=0.7,
                label=f"{word} its interval",
            )
        ends = [self.true.min(), self.true.max()]
        ax.plot(ends, ends, color=GREY, linestyle=":")
        ax.set(
            xlabel="true",
            ylabel="predicted",
            title=f"{self.coverage:.0%} intervals hold {self.covered:.1%} of the rows",
        )
        ax.legend()
        return self


class QuantileCalibrationDisplay:
    """How often targets fall below predicted quantiles.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    levels : ndarray of shape (q,)
        Levels of the quantiles.
    shares : ndarray of shape (q,)
        Shares of the rows whose target is at most the quantile.
    n_rows : int
        Number of rows.
    name : str or None
        Name of the model, for the legend.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.
    """

    def __init__(
        self,
        levels: FloatArray,
        shares: FloatArray,
        n_rows: int,
        name: str | None = None,
    ) -> None:
        self.levels = levels
        self.shares = shares
        self.n_rows = n_rows
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        levels: Any = _LEVELS,
        target: int = 0,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the calibration of a fitted regressor, on rows that it has not seen.

        Parameters
        ----------
        estimator : MixtureRegressor or MixtureNetworkRegressor
            Fitted.
        X, y : table and targets
            Held-out rows; those without a target are left out.
        levels : array-like of shape (q,), default=0.05 to 0.95
            Levels of the quantiles.
        target : int, default=0
            Which of several targets to draw.
        name : str or None, default=None
            Name of the model; None for that of its class.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        check_has_distribution(estimator)
        levels = np.asarray(levels, dtype=np.float64)
        true = one_target(y, target)
        found = np.asarray(estimator.predict_quantiles(X, levels))
        found = found.reshape(len(true), -1, len(levels))[:, target]
        known = ~np.isnan(true)
        shares = np.mean(true[known, None] <= found[known], axis=0)
        own_name = name or type(estimator).__name__
        return cls(levels, shares, int(known.sum()), own_name).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        if not ax.lines:
            ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="right")
            # What shares of as many rows vary by if all quantiles are right.
            found = [Estimate.of_share(level, self.n_rows) for level in _GRID]
            ends = [own.low for own in found], [own.high for own in found]
            ax.fill_between(_GRID, *ends, color=GREY, alpha=0.2, linewidth=0)
        style = style_of(len(ax.lines) - 1)
        ax.plot(
            self.levels,
            self.shares,
            color=style.color,
            linestyle=style.line,
            marker=style.marker,
            markersize=4,
            label=self.name or "model",
        )
        ax.set(
            xlabel="level of the quantile",
            ylabel="share of the targets below it",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        ax.legend()
        return self


class DependenceDisplay:
    """What a target is like, given one column alone.

    All other columns are integrated out exactly. So this is what the model predicts for
    rows of which only this column is known: mean, and a band that holds the target with
    some probability. Use `from_estimator` to draw it.

    Parameters
    ----------
    values : ndarray of shape (g,)
        Values of the column.
    means : ndarray of shape (g,)
        Expected targets.
    band : ndarray of shape (g, 2)
        Lower and upper ends.
    column : str
        Name of the column.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.
    """

    def __init__(
        self, values: FloatArray, means: FloatArray, band: FloatArray, column: str
    ) -> None:
        self.values = values
        self.means = means
        self.band = band
        self.column = column

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        column: int | str,
        coverage: float = 0.9,
        target: int = 0,
        ax: Any = None,
    ) -> Self:
        """Draw what a fitted regressor predicts from one real column.

        Parameters
        ----------
        estimator : MixtureRegressor or MixtureNetworkRegressor
            Fitted.
        X : table
            Rows; the picture covers the middle 98 % of what the column has in them.
        y : targets or None, default=None
            Their targets, to be drawn as points.
        column : int or str
            Position or name of a real column.
        coverage : float, default=0.9
            Probability of the band.
        target : int, default=0
            Which of several targets to draw.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        check_has_distribution(estimator)
        check_number("coverage", coverage, 1e-9, 1.0 - 1e-9)
        schema = estimator.schema_
        [position] = schema.positions([column])
        if position not in schema.real:
            raise ValueError(f"Column {column!r} is not a real column of the model.")
        place = schema.real.index(position)
        known = estimator.encoded(X).real[:, place]
        first, last = np.nanquantile(known, [0.01, 0.99])
        values = np.linspace(first, last, _N_POINTS)
        table = single_column(schema, position, values)
        tail = 0.5 * (1.0 - coverage)
        means, _ = estimator.table_moments(table)
        band = estimator.table_quantiles(table, np.array([tail, 1.0 - tail]))
        name = str(column) if schema.names is None else schema.names[position]
        display = cls(values, means[target], band[target].T, name)
        display.plot(ax=ax)
        if y is not None:
            own = one_target(y, target)
            inside = (known >= first) & (known <= last)
            style = {"color": GREY, "marker": ".", "linestyle": "", "markersize": 3}
            display.ax_.plot(known[inside], own[inside], zorder=0, **style)
        return display

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        ax.fill_between(
            self.values, *self.band.T, color=palette()[0], alpha=0.2, linewidth=0
        )
        ax.plot(self.values, self.means, color=palette()[0])
        ax.set(xlabel=self.column, ylabel="target")
        return self
