"""Hidden states of sequences: when a sequence is in which, and how they follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.sequences import read_sequences
from hybridmix.estimators.chain_fitted import FittedChainsEstimator
from hybridmix.plots.axes import class_axes, new_axes
from hybridmix.plots.colours import ink, paper, shades
from hybridmix.plots.drawing import style_of

# Transitions of a lower probability are not drawn, and a certain one is this many points
# wide.
_LEAST, _WIDEST = 0.02, 6.0
# Diameter of a state, in points, and width of a panel, in inches.
_NODE, _PANEL = 24.0, 3.6
# Least width for each state, in inches.
_STEP = 0.5
# Largest size of the numbers of states, in points.
_FONT = 10.0
# How much arrows bend, so that both directions can be seen.
_BEND = 0.3


class StateDisplay:
    """The states of one sequence over time.

    Shades are the probabilities of the states at each frame, given the whole sequence;
    the line is the most probable path.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    probabilities : ndarray of shape (T, K)
        Of the states, at each frame.
    path : ndarray of shape (T,)
        The number of the state at each frame, on the most probable path.
    title : str, default=""
        Of the picture.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it is drawn.
    figure_ : matplotlib figure
        The figure.
    """

    def __init__(
        self, probabilities: FloatArray, path: IntArray, title: str = ""
    ) -> None:
        self.probabilities = probabilities
        self.path = path
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        lengths: Any = None,
        *,
        sequence: int = 0,
        label: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw the states of a sequence.

        Parameters
        ----------
        estimator : HybridHMMClassifier or HMMDensity
            Fitted.
        X, lengths
            Sequences, in any form that ``estimator.decode`` takes.
        sequence : int, default=0
            The number of the sequence to draw.
        label : label or None, default=None
            The class whose states are drawn; None for the predicted one. For classifiers.
        ax : matplotlib axes or None, default=None
            Where to draw; None for a new figure.
        """
        _check_has_states(estimator)
        sequences = read_sequences(X, lengths)
        check_number("sequence", sequence, 0, len(sequences) - 1, whole=True)
        one = sequences[[sequence]]
        name = str(sequence if one.ids is None else one.ids[0])
        title, options = f"sequence {name}", {}
        if hasattr(estimator, "classes_"):
            shown = estimator.predict(one)[0] if label is None else label
            title, options = f"{title}, states of {shown}", {"y": [shown]}
        elif label is not None:
            raise ValueError(
                f"label={label!r}: a {type(estimator).__name__} has no classes."
            )
        [probabilities] = estimator.state_proba(one, **options)
        [path] = estimator.decode(one, **options)[1]
        return cls(probabilities, path, title).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw them; see `from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        n_frames, n_states = self.probabilities.shape
        # Frames and states are the middles of cells.
        edges = np.arange(n_frames + 1) - 0.5
        ax.pcolormesh(
            edges,
            np.arange(n_states + 1) - 0.5,
            self.probabilities.T,
            cmap=shades(style_of(0).color),
            vmin=0.0,
            vmax=1.0,
            rasterized=True,
        )
        # Paper around the line keeps it apart from dark cells.
        for color, width in ((paper(), 4.0), (style_of(1).color, 2.0)):
            ax.stairs(self.path, edges, baseline=None, color=color, linewidth=width)
        ax.set(
            xlabel="frame", ylabel="state", title=self.title, ylim=(n_states - 0.5, -0.5)
        )
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_locator().set_params(integer=True)
        return self


class TransitionDisplay:
    """Which states follow each other, class by class.

    The wider an arrow, the more probable is the transition; the number below a state is
    the probability of staying there. Chains that never go back stand in a row, others in
    a circle.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    transitions : ndarray of shape (C, K, K)
        Probabilities of the next state (last axis) in each state of each class.
    classes : sequence
        The C labels, for the titles.

    Attributes
    ----------
    figure_ : matplotlib figure
        The figure.
    axes_ : ndarray of matplotlib axes
        One for each class.
    """

    def __init__(self, transitions: FloatArray, classes: Sequence[Any]) -> None:
        self.transitions = transitions
        self.classes = classes

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Draw the transitions of a fitted model.

        Parameters
        ----------
        estimator : HybridHMMClassifier or HMMDensity
            Fitted.
        axes : sequence of matplotlib axes or None, default=None
            Where to draw, one for each class; None for a new figure.
        """
        _check_has_states(estimator)
        transitions = np.exp(estimator.model_.log_transition)
        # A density is a single chain, whose picture needs no title.
        return cls(transitions, getattr(estimator, "classes_", [""])).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw them; see `from_estimator`."""
        height = _PANEL if any(map(_goes_back, self.transitions)) else 0.4 * _PANEL
        width = max(_PANEL, _STEP * self.transitions.shape[1])
        self.axes_ = class_axes(axes, len(self.classes), width, height)
        self.figure_ = self.axes_[0].figure
        for number, (ax, label) in enumerate(zip(self.axes_, self.classes, strict=False)):
            _draw_graph(ax, self.transitions[number], style_of(number).color)
            ax.set_title(str(label))
        return self


def _draw_graph(ax: Any, transitions: FloatArray, color: str) -> None:
    """Draw states, and arrows between them."""
    goes_back = _goes_back(transitions)
    places = _circle(len(transitions)) if goes_back else _row(len(transitions))
    height = 1.5 if goes_back else 0.6
    # In a row, states are as far apart as the width allows.
    aspect = "equal" if goes_back else "auto"
    ax.set(xlim=(-1.5, 1.5), ylim=(-height, height), aspect=aspect)
    node = _node_size(ax, places)
    size = min(_FONT, 0.62 * node)
    for source, target in np.argwhere(transitions >= _LEAST).tolist():
        if source == target:
            continue
        p = float(transitions[source, target])
        arrow = {
            "arrowstyle": f"-|>,head_width={0.15 + 0.2 * p},head_length=0.4",
            "connectionstyle": f"arc3,rad={-_BEND}",
            "color": color,
            "linewidth": max(_WIDEST * p * node / _NODE, 0.5),
            "alpha": 0.4 + 0.6 * p,
            "shrinkA": 0.6 * node,
            "shrinkB": 0.6 * node,
        }
        ax.annotate("", places[target], places[source], arrowprops=arrow)
    ax.plot(*places.T, "o", color=paper(), markeredgecolor=ink(), markersize=node)
    for state, place in enumerate(places):
        ax.text(*place, str(state), ha="center", va="center", fontsize=size)
        # Outside of a circle, where there are no arrows.
        away = place if goes_back else np.array([0.0, -1.0])
        ax.annotate(
            f"{transitions[state, state]:.2f}",
            place,
            0.95 * node * away,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=0.85 * size,
        )
    ax.set_axis_off()


def _node_size(ax: Any, places: FloatArray) -> float:
    """Return how large circles may be, in points, so that arrows fit between them."""
    if len(places) == 1:
        return _NODE
    apart = np.linalg.norm(places[1] - places[0])
    width = 72.0 * ax.get_window_extent().width / ax.figure.dpi
    return float(min(_NODE, 0.65 * apart * width / np.ptp(ax.get_xlim())))


def _goes_back(transitions: FloatArray) -> bool:
    """Return whether a state can be followed by an earlier one."""
    return bool(np.tril(transitions, -1).any())


def _row(n_states: int) -> FloatArray:
    """Return the places (K, 2) of states in a row."""
    along = np.linspace(-1.1, 1.1, n_states) if n_states > 1 else np.zeros(1)
    return np.column_stack([along, np.zeros(n_states)])


def _circle(n_states: int) -> FloatArray:
    """Return the places (K, 2) of states on a circle."""
    # The first state is at the top, and the others follow clockwise.
    angles = np.pi / 2 - 2.0 * np.pi * np.arange(n_states) / n_states
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _check_has_states(estimator: Any) -> None:
    """Refuse estimators that are not hidden Markov models."""
    if not isinstance(estimator, FittedChainsEstimator):
        raise TypeError(
            f"A {type(estimator).__name__} has no hidden states: use HybridHMMClassifier "
            "or HMMDensity."
        )
    check_is_fitted(estimator, "model_")
