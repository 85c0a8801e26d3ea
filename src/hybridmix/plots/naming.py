"""Names of columns, categories and classes, so that they do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridmix._text import shortened

# Letters that fit into an inch of an axis, and those of one name at most.
_PER_INCH = 11.0
_LONGEST = 24
# Of a longer legend, there is no room within the axes.
_MOST_INSIDE = 4


def name_categories(
    ax: Any, places: Any, categories: Sequence[Any], *, upright: bool = False
) -> None:
    """Write categories at the ticks of the x axis, slanted if they need more room.

    Parameters
    ----------
    ax : matplotlib axes
        Where.
    places : array-like
        Of the categories.
    categories : sequence
        The categories.
    upright : bool, default=False
        Whether to turn them by 90 degrees if they need more room.
    """
    names = [shortened(str(value), _LONGEST) for value in categories]
    width = ax.get_window_extent().width / ax.figure.dpi
    longest = max(map(len, names), default=0) + 2
    if longest * len(names) <= _PER_INCH * width:
        ax.set_xticks(places, names)
    elif upright:
        ax.set_xticks(places, names, rotation=90)
    else:
        ax.set_xticks(places, names, rotation=30, ha="right", rotation_mode="anchor")


def place_legend(
    ax: Any, entries: Sequence[Any], *, above: bool = False, beside: bool = False
) -> None:
    """Draw a legend within the axes, or outside of them if it is long.

    Parameters
    ----------
    ax : matplotlib axes
        Where.
    entries : sequence of artists
        What it explains.
    above : bool, default=False
        Whether there is no room within the axes anyway.
    beside : bool, default=False
        Whether a long legend stands on the right, as there is a title above.
    """
    if len(entries) <= _MOST_INSIDE and not above:
        ax.legend(handles=entries)
        return
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4}
    if beside:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    ax.legend(handles=entries, frameon=False, fontsize="small", **place)
