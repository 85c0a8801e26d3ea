"""Which columns a distribution over trees connects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._text import shortened
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.plots.axes import class_axes
from hybridmix.plots.colours import ink, paper
from hybridmix.plots.drawing import style_of

# Edges of a lower probability are not drawn, and a certain one is this many points wide.
_LEAST, _WIDEST = 0.02, 6.0
# Where names stand, in radii of the circle, and the room that panels have for them.
_NAMES, _WIDTH, _HEIGHT = 1.12, 4.4, 2.8
# More names than this are written along the radii, in panels of this size, and shortened.
_MOST_LEVEL, _SIZE, _LONGEST = 14, 5.8, 22


class TreeEdgesDisplay:
    """How probable it is that columns are connected, class by class.

    Columns are on a circle. The wider and darker the line between two of them, the more
    probable is the edge in the tree of the class. Probabilities sum to the number of
    columns less one, the edges of a tree.

    Use `from_estimator` to draw it.

    Parameters
    ----------
    probabilities : ndarray of shape (C, k, k)
        Of the edges, symmetric, for every class.
    names : sequence of str
        Of the k columns.
    classes : sequence
        The C labels, for the titles.

    Attributes
    ----------
    figure_ : matplotlib figure
        The figure.
    axes_ : ndarray of matplotlib axes
        One for each class.
    """

    def __init__(
        self, probabilities: FloatArray, names: Sequence[str], classes: Sequence[Any]
    ) -> None:
        self.probabilities = probabilities
        self.names = names
        self.classes = classes

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Draw the edges of a fitted classifier.

        Parameters
        ----------
        estimator : MEDClassifier
            With ``model="tree"``.
        axes : sequence of matplotlib axes or None, default=None
            Where to draw, one for each class; None for a new figure.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "edge_probabilities_"):
            raise TypeError(
                f"This {type(estimator).__name__} has no trees: use "
                "MEDClassifier(model='tree') and a table with categorical columns."
            )
        names = _names_of(estimator.schema_)
        return cls(estimator.edge_probabilities_, names, estimator.classes_).plot(
            axes=axes
        )

    def plot(self, *, axes: Any = None) -> Self:
        """Draw them; see `from_estimator`."""
        width, height = self._room
        self.axes_ = class_axes(axes, len(self.classes), width, height + 0.6)
        self.figure_ = self.axes_[0].figure
        for number, (ax, label) in enumerate(zip(self.axes_, self.classes, strict=False)):
            self._draw(ax, self.probabilities[number], style_of(number).color)
            ax.set_title(str(label))
        return self

    @property
    def _room(self) -> tuple[float, float]:
        """Width and height that a circle and its names need, in its radii."""
        is_level = len(self.names) <= _MOST_LEVEL
        return (_WIDTH, _HEIGHT) if is_level else (_SIZE, _SIZE)

    def _draw(self, ax: Any, probabilities: FloatArray, color: str) -> None:
        # The first column is at the top, and the others follow clockwise.
        angles = np.pi / 2 - 2.0 * np.pi * np.arange(len(self.names)) / len(self.names)
        places = np.column_stack([np.cos(angles), np.sin(angles)])
        pairs = np.column_stack(np.triu_indices(len(self.names), 1))
        for u, v in pairs:
            p = float(probabilities[u, v])
            if p >= _LEAST:
                ax.plot(
                    *places[[u, v]].T,
                    color=color,
                    linewidth=_WIDEST * p,
                    alpha=0.25 + 0.75 * p,
                    solid_capstyle="round",
                )
        ax.plot(*places.T, "o", color=paper(), markeredgecolor=ink(), markersize=7)
        is_level = len(self.names) <= _MOST_LEVEL
        for name, place in zip(self.names, places, strict=True):
            look = _alignment(place) if is_level else _along(place)
            text = shortened(name, _LONGEST)
            written = ax.text(*(_NAMES * place), text, fontsize="small", **look)
            # Room for the names is part of the limits.
            written.set_in_layout(False)
        width, height = self._room
        ax.set(
            xlim=(-0.5 * width, 0.5 * width),
            ylim=(-0.5 * height, 0.5 * height),
            aspect="equal",
        )
        ax.set_axis_off()


def _names_of(schema: Schema) -> list[str]:
    """Return the names of the categorical columns, or else their positions."""
    names = schema.names or [str(j) for j in range(schema.n_columns)]
    return [names[j] for j in schema.categorical]


def _along(place: FloatArray) -> dict[str, Any]:
    """Return how a name is written along a radius, never upside down."""
    angle = float(np.degrees(np.arctan2(place[1], place[0])))
    is_left = place[0] < -1e-9
    return {
        "rotation": angle + 180.0 if is_left else angle,
        "rotation_mode": "anchor",
        "horizontalalignment": "right" if is_left else "left",
        "verticalalignment": "center",
    }


def _alignment(place: FloatArray) -> dict[str, str]:
    """Return how a name outside of the circle is aligned, to stay off it."""
    x, y = (int(np.sign(round(value, 1))) for value in place)
    return {
        "horizontalalignment": ("right", "center", "left")[x + 1],
        "verticalalignment": ("top", "center", "bottom")[y + 1],
    }
