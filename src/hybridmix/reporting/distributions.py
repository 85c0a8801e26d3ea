"""Charts of how values are distributed: densities, categories, and rows as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray
from hybridmix.reporting.bins import Bins
from hybridmix.reporting.charts import legend, line_legend, svg
from hybridmix.reporting.markup import escape, percent
from hybridmix.reporting.plane import WIDTH, Plane, limits_of, place_text

# Categories that a chart has room for.
MAX_CATEGORIES = 6
# With more groups than this, their histograms would cover each other.
_MAX_FILLED = 3


@dataclass(frozen=True)
class Group:
    """Rows that are drawn alike, and what the model says about them.

    Attributes
    ----------
    name : str
        For the legend.
    values : ndarray of shape (n,)
        Values of the rows; numbers of categories.
    n_rows : int
        Rows of the group, those among them whose values are not drawn.
    model : ndarray of shape (m,)
        Densities at the points of the chart, or probabilities of the categories.
    """

    name: str
    values: FloatArray
    n_rows: int
    model: FloatArray


def density_chart(
    groups: Sequence[Group], points: FloatArray, bins: Bins, *, name: str, what: str
) -> str:
    """Draw densities of groups as lines, over histograms of their rows.

    On a logarithmic axis, densities are those of the logarithm.

    Parameters
    ----------
    groups : sequence of Group
        At most `MAX_SERIES` of them.
    points : ndarray of shape (m,)
        Where the densities are.
    bins : Bins
        Of the histograms.
    name : str
        Name of the column.
    what : str
        What a screen reader says.
    """
    edges = bins.edges
    lines = [own.model * (points if bins.is_log else 1.0) for own in groups]
    widths = np.diff(np.log(edges)) if bins.is_log else np.diff(edges)
    filled = groups if len(groups) <= _MAX_FILLED else []
    bars = [bins.count(own.values) / (max(own.n_rows, 1) * widths) for own in filled]
    highest = max(float(np.max(np.concatenate([*lines, *bars]))), 1e-300)
    limits = float(edges[0]), float(edges[-1])
    plane = Plane(limits, (0.0, 1.05 * highest), log_x=bins.is_log)
    parts = [plane.axes(shortened(name, 44), "density")]
    for place, heights in enumerate(bars):
        parts.append(_outline(plane, edges, heights, f"s{place}"))
    for place, line in enumerate(lines):
        drawn = "L".join(plane.points(points, line))
        parts.append(f'<path class="line s{place}" d="M{drawn}"/>')
    return svg("".join(parts), what) + line_legend([own.name for own in groups])


def _outline(plane: Plane, edges: FloatArray, heights: FloatArray, kind: str) -> str:
    """Draw a histogram as one filled shape."""
    corners = plane.points(np.repeat(edges, 2)[1:-1], np.repeat(heights, 2))
    bottom = place_text(plane.y(0.0))
    first, last = (place_text(plane.x(edge)) for edge in (edges[0], edges[-1]))
    return (
        f'<path class="band {kind}" d="M{first} {bottom}L{"L".join(corners)}'
        f'L{last} {bottom}z"/>'
    )


def category_chart(
    groups: Sequence[Group], categories: Sequence[str], *, what: str
) -> str:
    """Draw probabilities of categories as bars, and frequencies of the rows as marks.

    Parameters
    ----------
    groups : sequence of Group
        At most `MAX_SERIES` of them.
    categories : sequence of str
        Their names; only the most probable ones are drawn if there are many.
    what : str
        What a screen reader says.
    """
    most = np.argsort(-np.max([own.model for own in groups], axis=0), kind="stable")
    shown = np.sort(most[:MAX_CATEGORIES])
    found = [
        np.bincount(own.values.astype(np.intp), minlength=len(categories))
        / max(own.n_rows, 1)
        for own in groups
    ]
    left, step, line = 120.0, max(8.0, 34.0 / len(groups)), 10.0
    high = step * len(groups) + line
    parts = []
    for row, category in enumerate(shown):
        top = row * high
        parts.append(
            f'<text x="{left - 6}" y="{place_text(top + high / 2)}" dy="2" class="end">'
            f"<title>{escape(categories[category])}</title>"
            f"{escape(shortened(categories[category], 16))}</text>"
        )
        for place, own in enumerate(groups):
            y = top + place * step + line / 2
            end = (WIDTH - left - 44) * own.model[category]
            mark = left + (WIDTH - left - 44) * found[place][category]
            text = percent(float(own.model[category]))
            parts.append(
                f'<rect class="block s{place}" x="{left}" y="{place_text(y)}" '
                f'width="{place_text(max(end, 0.5))}" height="{place_text(step - 1.5)}">'
                f"<title>{escape(own.name)}: {escape(text)}</title></rect>"
                f'<path class="mark" d="M{place_text(mark)} {place_text(y - 1)}'
                f'v{place_text(step + 0.5)}"/>'
            )
    parts.append(f'<path class="axis" d="M{left} 0v{place_text(high * len(shown))}"/>')
    height = high * len(shown) + 4
    picture = svg("".join(parts), what, height)
    if len(groups) == 1:
        return picture
    blocks = (
        f'<rect class="block s{k}" x="6" width="22" height="9"/>'
        for k in range(len(groups))
    )
    return picture + legend(zip(blocks, (own.name for own in groups), strict=True))


@dataclass(frozen=True)
class Cloud:
    """Rows of one kind in a map.

    Attributes
    ----------
    name : str
        For the legend.
    places : ndarray of shape (n, 2)
        Where they are.
    style : str
        Class of their style.
    """

    name: str
    places: FloatArray
    style: str


def map_chart(
    clouds: Sequence[Cloud],
    names: Sequence[tuple[str, float, float]],
    *,
    description: str,
    x_label: str,
    y_label: str,
) -> str:
    """Draw rows as points in a plane, and names at some places.

    Parameters
    ----------
    clouds : sequence of Cloud
        The rows; later ones are drawn over earlier ones.
    names : sequence of tuples
        Names with their places.
    description : str
        What a screen reader says.
    x_label, y_label : str
        Of the axes.
    """
    everything = np.concatenate([own.places for own in clouds])
    plane = Plane(limits_of(everything[:, 0]), limits_of(everything[:, 1]))
    parts = [plane.axes(x_label, y_label)]
    for own in clouds:
        dots = "".join(f"M{point}h0" for point in plane.points(*own.places.T))
        parts.append(f'<path class="dots {own.style}" d="{dots}"/>' if dots else "")
    for text, across, up in names:
        x, y = plane.points([across], [up])[0].split()
        parts.append(
            f'<text x="{x}" y="{y}" dy="4" class="middle named">{escape(text)}</text>'
        )
    samples = [
        (f'<path class="dots {own.style}" d="M17 5h0"/>', own.name) for own in clouds
    ]
    return svg("".join(parts), description) + legend(samples)
