"""Whether predicted probabilities are right."""

from __future__ import annotations

from typing import Any, Self

from hybridmix.metrics import CalibrationReport, calibration_report
from hybridmix.plots.axes import new_axes
from hybridmix.plots.colours import GREY
from hybridmix.plots.drawing import style_of


class ReliabilityDisplay:
    """How often the most probable class is right, against its probability.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    report : CalibrationReport
        As returned by `hybridmix.metrics.calibration_report`.
    name : str or None
        Name of the model, for the legend.

    Attributes
    ----------
    figure_, ax_
        The matplotlib figure and axes.
    """

    def __init__(self, report: CalibrationReport, name: str | None = None) -> None:
        self.report = report
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the reliability of a fitted classifier, on rows that it has not seen.

        Parameters
        ----------
        estimator : classifier
            With ``predict_proba`` and ``classes_``.
        X, y : table and labels
            Held-out rows.
        n_bins : int, default=10
            Number of bins of the probability.
        name : str or None, default=None
            Name of the model; None for that of its class.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        probabilities = estimator.predict_proba(X)
        report = calibration_report(y, probabilities, estimator.classes_, n_bins)
        return cls(report, name or type(estimator).__name__).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        label = f"{self.name or 'model'}, error {self.report.calibration_error:.3f}"
        if not ax.lines:
            ax.plot(
                [0, 1], [0, 1], color=GREY, linestyle=":", label="perfectly calibrated"
            )
        style = style_of(len(ax.lines) - 1)  # one after those that are there already
        ax.plot(
            self.report.confidence,
            self.report.bin_accuracy,
            color=style.color,
            linestyle=style.line,
            marker=style.marker,
            label=label,
        )
        ax.set(
            xlabel="probability of the most probable class",
            ylabel="how often it is right",
            xlim=(0, 1.02),
            ylim=(0, 1.02),
        )
        ax.legend()
        return self
