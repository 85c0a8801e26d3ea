"""What changed during training."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._typing import FloatArray
from hybridmix.plots.axes import import_pyplot
from hybridmix.plots.colours import ink
from hybridmix.plots.drawing import style_of

_TERMS = ("likelihood", "margin", "conditional")
_ERRORS = ("training_error", "validation_error")


class TrainingDisplay:
    """Traces of discriminative training.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    history : dict of str to ndarray
        As in ``HybridMixtureClassifier.history_``.

    Attributes
    ----------
    figure_ : matplotlib figure
        The figure.
    axes_ : ndarray of matplotlib axes
        One for the objective, one for each of its terms, and one for the errors.
    """

    def __init__(self, history: dict[str, FloatArray]) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Draw the traces of a fitted classifier.

        Parameters
        ----------
        estimator : HybridMixtureClassifier or HybridMixtureClassifierCV
            Trained with a discriminative objective, or by EM over all classes.
        axes : sequence of matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        check_is_fitted(estimator, "history_")
        if not estimator.history_:
            raise ValueError(
                "The classes were fitted one by one, which leaves no common trace. "
                "Training with objective='hybrid', 'conditional' or 'margin' does."
            )
        return cls(estimator.history_).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the traces; see `from_estimator`."""
        panels: list[tuple[str, ...]] = [("value",)]
        terms: list[tuple[str, ...]] = [
            (name,) for name in _TERMS if name in self.history
        ]
        panels += terms if len(terms) > 1 else []
        errors = tuple(name for name in _ERRORS if name in self.history)
        panels += [errors] if errors else []
        if axes is None:
            _, axes = import_pyplot().subplots(
                1, len(panels), figsize=(3.4 * len(panels), 2.8), layout="constrained"
            )
        self.axes_ = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(self.axes_) < len(panels):
            raise ValueError(
                f"There are {len(panels)} panels to draw; pass as many axes."
            )
        self.figure_ = self.axes_[0].figure
        for ax, names in zip(self.axes_, panels, strict=False):
            self._draw(ax, names)
        return self

    def _draw(self, ax: Any, names: tuple[str, ...]) -> None:
        for number, name in enumerate(names):
            color, _, line = style_of(number)
            label = name.replace("_", " ")
            ax.plot(self.history[name], color=color, linestyle=line, label=label)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if "validation_error" in names:
            errors = self.history["validation_error"]
            best = int(np.argmin(errors))
            ax.plot(best, errors[best], "o", color=ink(), label="kept")
        if len(names) > 1:
            ax.legend()
        # Numbers that are left out of the ticks would stand in the way of the title.
        ax.ticklabel_format(axis="y", useOffset=False)
        ax.set(xlabel="iteration", title=_title(names))


def _title(names: tuple[str, ...]) -> str:
    if names == ("value",):
        return "objective, mean per row"
    return "error" if names[0] in _ERRORS else names[0]
