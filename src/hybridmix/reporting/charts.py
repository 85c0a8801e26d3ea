"""Charts as inline SVG, for the report.

They are drawn here and not by matplotlib, for four reasons: their colours follow the
theme of the reader (light, dark, print), since they are CSS variables of the page; their
text is text, at a size that a phone can show and that a screen reader can read; a curve
takes a kilobyte or two; and the report needs nothing that the library does not need.

Every chart is as wide as a phone in its own units and scales with the page. Series differ
in dashes as well as in colour. All functions return HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray
from hybridmix.reporting.bins import Bins
from hybridmix.reporting.markup import element, escape, number
from hybridmix.reporting.plane import HEIGHT, TOP, WIDTH, Plane, limits_of, place_text

# Series after these would look like others.
MAX_SERIES = 6
# More points than this cannot be told apart at this size.
_MAX_POINTS = 200
# More intervals than this would cover each other.
_MAX_INTERVALS = 100
_LEVELS = 5


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes
    ----------
    name : str
        For the legend.
    x, y : array-like of shape (n,)
        Points, from left to right.
    band : pair of array-like of shape (n,) or None
        Lower and upper ends of a band around the line.
    weights : array-like of shape (n,) or None
        What the sizes of the marks stand for.
    """

    name: str
    x: Any
    y: Any
    band: Any = None
    weights: Any = None

    @property
    def heights(self) -> FloatArray:
        """All places along y: those of the points, and the ends of the band."""
        parts = (self.y,) if self.band is None else (self.y, *self.band)
        return np.concatenate([np.ravel(part) for part in parts])


def line_chart(
    series: Sequence[Series],
    *,
    description: str,
    x_label: str,
    y_label: str,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    whole_x: bool = False,
    log_x: bool = False,
    diagonal: bool = False,
    steps: bool = False,
    lines: bool = True,
    markers: bool = False,
) -> str:
    """Draw lines, with a legend if there are several.

    Parameters
    ----------
    series : sequence of Series
        At most `MAX_SERIES` of them.
    description : str
        What a screen reader says.
    x_label, y_label : str
        Of the axes.
    x_limits, y_limits : tuple of float or None
        Ends of the axes; None for the range of the values.
    whole_x, log_x : bool
        Whether x counts something; whether its axis is logarithmic.
    diagonal : bool
        Draw the line of equal values.
    steps : bool
        Go from point to point in steps, along x first.
    lines, markers : bool
        Connect the points; mark them.
    """
    across = np.concatenate([np.ravel(s.x) for s in series])
    plane = Plane(
        x_limits or limits_of(across, margin=0.0 if log_x else 0.05),
        y_limits or limits_of(np.concatenate([s.heights for s in series])),
        whole_x,
        log_x,
    )
    parts = [plane.axes(x_label, y_label)]
    if diagonal:
        parts.append(_diagonal(plane))
    for place, one in enumerate(series):
        parts.append(_drawn(plane, one, place, steps, lines, markers))
    picture = svg("".join(parts), description)
    return picture + line_legend([s.name for s in series])


def interval_chart(
    x: FloatArray,
    y: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    description: str,
    x_label: str,
    y_label: str,
) -> str:
    """Draw points and their intervals, upright; points outside theirs stand out.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Points; not all of them are drawn if there are many.
    low, high : ndarray of shape (n,)
        Ends of the intervals, along y.
    description : str
        What a screen reader says.
    x_label, y_label : str
        Of the axes.
    """
    order = np.argsort(x, kind="stable")
    if len(order) > _MAX_INTERVALS:
        places = np.linspace(0, len(order) - 1, _MAX_INTERVALS)
        order = order[np.unique(places.round().astype(int))]
    x, y, low, high = x[order], y[order], low[order], high[order]
    # Points decide about the axis: one interval that is very wide would hide the others.
    plane = Plane(limits_of(x), limits_of(np.concatenate([x, y])))
    parts = [plane.axes(x_label, y_label), _diagonal(plane)]
    ends = [np.clip(end, *plane.y_limits) for end in (low, high)]
    bottoms, tops = (plane.points(x, end) for end in ends)
    is_outside = (y < low) | (y > high)
    names = []
    for place, rows in enumerate((~is_outside, is_outside)):
        kept = np.flatnonzero(rows)
        bars = "".join(f"M{bottoms[k]}V{tops[k].split()[1]}" for k in kept)
        parts.append(f'<path class="interval s{place}" d="{bars}"/>' if bars else "")
        one = Series(("inside", "outside")[place], x[kept], y[kept])
        radius = (2.0, 3.5)[place]
        parts.append(_marks(one, plane.points(one.x, one.y), f"s{place}", radius))
        names.append(f"{one.name} ({len(kept)})")
    marks = (f'<circle class="s{k}" cx="17" cy="5" r="3.5"/>' for k in range(2))
    return svg("".join(parts), description) + legend(zip(marks, names, strict=True))


def histogram(
    values: FloatArray,
    *,
    description: str,
    x_label: str,
    threshold: float | None = None,
    threshold_name: str = "threshold",
    unit: str = "row",
) -> str:
    """Draw how often values occur, and a threshold if there is one."""
    bins = Bins.of(values)
    counts, edges = bins.count(values), bins.edges
    ends = edges if threshold is None else np.append(edges, threshold)
    plane = Plane(
        limits_of(ends, margin=0.0 if bins.is_log else 0.02),
        (0.0, max(float(counts.max()), 1.0) * 1.05),
        log_x=bins.is_log,
    )
    parts = [plane.axes(x_label, f"{unit}s")]
    bottom = place_text(plane.y(0.0))
    for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True):
        if count == 0:
            continue
        x, top = plane.x([left, right]), place_text(plane.y(count))
        parts.append(
            f'<path class="bin" d="M{place_text(x[0])} {bottom}V{top}H{place_text(x[1])}'
            f'V{bottom}z"><title>{number(left)} to {number(right)}: {count} {unit}s'
            "</title></path>"
        )
    if threshold is not None:
        across = place_text(plane.x(threshold))
        # The name is written where there is more room.
        is_left = float(plane.x(threshold)) < WIDTH / 2
        side = "start" if is_left else "end"
        parts.append(
            f'<path class="threshold" d="M{across} {TOP - 12}V{bottom}"/>'
            f'<text x="{across}" dx="{4 if is_left else -4}" y="{TOP - 4}" '
            f'class="{side}">{escape(threshold_name)}</text>'
        )
    return svg("".join(parts), description)


def heat_map(
    shares: FloatArray,
    row_names: Sequence[str],
    *,
    description: str,
    x_label: str,
    x_ends: tuple[str, str],
) -> str:
    """Draw shares between 0 and 1 as shaded cells, in levels of a fifth.

    Parameters
    ----------
    shares : ndarray of shape (r, c)
        What the shades stand for.
    row_names : sequence of str
        Names of the rows.
    description : str
        What a screen reader says.
    x_label : str
        What goes from left to right.
    x_ends : tuple of str
        Names of the first and the last column of cells.
    """
    left, cell_height = 118, 15
    n_rows, n_columns = shares.shape
    cell_width = (WIDTH - left - 4) / n_columns
    bottom = n_rows * cell_height + 4
    levels = np.ceil(shares * _LEVELS - 1e-9).astype(int)
    parts = [
        f'<rect class="frame" x="{left}" y="4" width="{WIDTH - left - 4}" '
        f'height="{n_rows * cell_height}"/>'
    ]
    for level in range(1, _LEVELS + 1):
        # One path for all cells of a level takes a fifth of the space of rectangles.
        path = "".join(
            f"M{place_text(left + k * cell_width)} {4 + row * cell_height}"
            f"h{place_text(cell_width)}v{cell_height}h-{place_text(cell_width)}z"
            for row, k in np.argwhere(levels == level)
        )
        if path:
            parts.append(f'<path class="shade{level}" d="{path}"/>')
    for row, name in enumerate(row_names):
        parts.append(
            f'<text x="{left - 6}" y="{4 + (row + 0.5) * cell_height}" dy="4" '
            f'class="end"><title>{escape(name)}</title>'
            f"{escape(shortened(name, 15))}</text>"
        )
    parts.append(
        f'<text x="{left}" y="{bottom + 13}">{escape(x_ends[0])}</text>'
        f'<text x="{WIDTH - 4}" y="{bottom + 13}" class="end">{escape(x_ends[1])}</text>'
        f'<text x="{(left + WIDTH) / 2}" y="{bottom + 13}" class="middle label">'
        f"{escape(x_label)}</text>"
    )
    return svg("".join(parts), description, height=bottom + 18) + _shade_legend()


def _diagonal(plane: Plane) -> str:
    """Draw the line of equal values."""
    low = max(plane.x_limits[0], plane.y_limits[0])
    high = min(plane.x_limits[1], plane.y_limits[1])
    ends = plane.points(np.array([low, high]), np.array([low, high]))
    return f'<path class="reference" d="M{"L".join(ends)}"/>'


def _drawn(
    plane: Plane, series: Series, place: int, steps: bool, lines: bool, markers: bool
) -> str:
    series = _thinned(series)
    kind = f"s{place % MAX_SERIES}"
    points = plane.points(series.x, series.y)
    parts = []
    if series.band is not None:
        parts.append(_band(plane, series, kind))
    if lines:
        path = _steps(points) if steps else f"M{'L'.join(points)}"
        parts.append(f'<path class="line {kind}" d="{path}"/>')
    if markers or len(points) == 1:
        parts.append(_marks(series, points, kind))
    return "".join(parts)


def _thinned(series: Series) -> Series:
    """Return a series as arrays, without points that cannot be told apart."""
    x = np.asarray(series.x, dtype=float)
    kept = np.arange(len(x))
    if len(x) > _MAX_POINTS:
        kept = np.unique(np.linspace(0, len(x) - 1, _MAX_POINTS).round().astype(int))
    values = (series.x, series.y, series.band, series.weights)
    return Series(
        series.name,
        *(None if v is None else np.asarray(v, dtype=float)[..., kept] for v in values),
    )


def _band(plane: Plane, series: Series, kind: str) -> str:
    """Draw how far the values of a line deviate."""
    low, high = (np.clip(values, *plane.y_limits) for values in series.band)
    outline = plane.points(
        np.append(series.x, series.x[::-1]), np.append(high, low[::-1])
    )
    return f'<path class="band {kind}" d="M{"L".join(outline)}z"/>'


def _steps(points: list[str]) -> str:
    """Return a path in steps, along x first."""
    corners = (point.split() for point in points[1:])
    return f"M{points[0]}" + "".join(f"H{x}V{y}" for x, y in corners)


def _marks(series: Series, points: list[str], kind: str, radius: float = 3.0) -> str:
    """Draw circles, whose areas stand for weights if there are any."""
    radii = np.full(len(points), radius)
    if series.weights is not None:
        radii = 2.0 + 5.0 * np.sqrt(series.weights / series.weights.max())
    parts = []
    for point, x, y, r in zip(points, series.x, series.y, radii, strict=True):
        cx, cy = point.split()
        parts.append(
            f'<circle class="{kind}" cx="{cx}" cy="{cy}" r="{place_text(r)}">'
            f"<title>{escape(series.name)}: {number(x)}, {number(y)}</title></circle>"
        )
    return "".join(parts)


def svg(content: str, description: str, height: float = HEIGHT) -> str:
    """Put what is drawn into a picture that screen readers describe."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {place_text(height)}" role="img" '
        f'aria-label="{escape(description)}">{content}</svg>'
    )


def legend(samples: Iterable[tuple[str, str]]) -> str:
    """Explain styles, each by a sample that is 34 wide and 10 high, and its name."""
    items = "".join(
        element(
            "li",
            f'<svg viewBox="0 0 34 10" aria-hidden="true">{sample}</svg>{escape(name)}',
        )
        for sample, name in samples
    )
    return element("ul", items, class_="legend")


def line_legend(names: Sequence[str]) -> str:
    """Explain the lines of a chart; nothing needs to be explained about one."""
    if len(names) < 2:
        return ""
    lines = (f'<path class="line s{k}" d="M1 5H33"/>' for k in range(len(names)))
    return legend(zip(lines, names, strict=True))


def _shade_legend() -> str:
    items = "".join(
        '<li><svg viewBox="0 0 14 10" aria-hidden="true"><rect class="frame" width="14" '
        f'height="10"/><rect class="shade{level}" width="14" height="10"/></svg>'
        f"{'none' if level == 0 else f'to {100 * level // _LEVELS} %'}</li>"
        for level in range(_LEVELS + 1)
    )
    return element("ul", items, class_="legend")
