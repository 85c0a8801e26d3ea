"""Pieces of HTML that the sections of the report share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from typing import Any

from hybridmix._text import printable

NONE = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
_SHORT_NAME = 20


@dataclass(frozen=True)
class Markup:
    """Text that is HTML already and must not be escaped.

    Attributes
    ----------
    html : str
        The HTML.
    attributes : str
        Attributes of the table cell that holds it.
    """

    html: str
    attributes: str = ""


def escape(text: str) -> str:
    """Make HTML of text; control characters are shown, not obeyed."""
    return escape_html(printable(text, keep="\n\t"))


def element(tag: str, content: str, **attributes: str) -> str:
    """Put HTML into an element; ``class_`` and ``aria_label`` are written as in HTML."""
    written = "".join(
        f' {name.removesuffix("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{written}>{content}</{tag}>"


def paragraph(text: str) -> str:
    """Make a paragraph of plain text."""
    return element("p", escape(text))


def note(text: str) -> str:
    """Make a paragraph that says what was left out, and why."""
    return element("p", escape(text), class_="note")


def code(text: str) -> str:
    """Make a block of code."""
    return element("pre", element("code", escape(text)), tabindex="0")


def heading(text: str) -> str:
    """Make a heading within a section."""
    return element("h3", escape(text))


def figure(picture: str, caption: str) -> str:
    """Put a picture and its caption together."""
    return element("figure", picture + element("figcaption", escape(caption)))


def figures(pictures: Iterable[str]) -> str:
    """Put figures side by side, as many as fit."""
    return element("div", "".join(pictures), class_="figures")


def folded(summary: str, content: str) -> str:
    """Put HTML behind a line that opens it."""
    return element("details", element("summary", escape(summary)) + content)


def folded_after(
    n_shown: int, rows: Sequence[Sequence[Any]], make: Callable[..., str], more: str
) -> str:
    """Make a table of the first rows, and a folded one of the others.

    Parameters
    ----------
    n_shown : int
        Rows that are shown. A few more than this are shown as well.
    rows : sequence of sequences
        Cells, as `table` has them.
    make : callable
        Makes a table of some rows.
    more : str
        What opens the others.
    """
    if len(rows) <= n_shown + n_shown // 3:
        return make(rows)
    return make(rows[:n_shown]) + folded(more, make(rows[n_shown:]))


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    text_columns: Sequence[int] = (0,),
    class_: str = "",
    frame: str = "",
) -> str:
    """Make a table that scrolls sideways when there is no room for it.

    Parameters
    ----------
    caption : str
        What it shows.
    header : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells, of which the first is text that names its row. Everything but `Markup` is
        escaped.
    text_columns : sequence of int
        Columns of text, which are aligned left; numbers are aligned right.
    class_ : str
        Class of the table.
    frame : str
        Class of what it scrolls in.
    """
    kinds = ["text" if k in text_columns else "number" for k in range(len(header))]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(name)}</th>'
        for name, kind in zip(header, kinds, strict=True)
    )
    body = "".join(element("tr", "".join(_cells(row, kinds))) for row in rows)
    content = (
        element("caption", element("span", escape(caption)))
        + element("thead", element("tr", head))
        + element("tbody", body)
    )
    attributes = {"class_": class_} if class_ else {}
    scrolled = element("table", content, **attributes)
    # What scrolls must be reachable by the keyboard, and then needs a name.
    return element(
        "div",
        scrolled,
        class_=f"scroll {frame}".rstrip(),
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def key_figures(pairs: Iterable[tuple[str, str]]) -> str:
    """Make a list of figures with their names."""
    items = "".join(
        element("div", element("dt", escape(name)) + element("dd", escape(value)))
        for name, value in pairs
    )
    return element("dl", items, class_="merits")


def tinted(text: str, share: float, kind: str = "tint") -> Markup:
    """Make a table cell with a background as strong as a share between 0 and 1."""
    strength = f"{min(max(share, 0.0), 1.0):.2f}"
    return Markup(escape(text), f'class="number {kind}" style="--share:{strength}"')


def number(value: float) -> str:
    """Write a number with four digits."""
    if not math.isfinite(value):
        return NONE
    if 1e3 <= abs(value) < 1e7:
        text = f"{value:.0f}"
    else:
        # Without the zeros of 1e+08.
        text = f"{value:.4g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    return text.replace("-", MINUS)


def tick_texts(values: Sequence[float]) -> list[str]:
    """Write equidistant numbers with enough digits to see that they differ."""
    largest = max((abs(value) for value in values), default=0.0)
    step = values[1] - values[0] if len(values) > 1 else largest
    if step == 0.0 or largest >= 1e6 or step < 1e-5:
        return [f"{value:g}".replace("-", MINUS) for value in values]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [fixed(value, digits) for value in values]


def fixed(value: float, digits: int = 3) -> str:
    """Write a number with a fixed number of digits, as other scores in its table."""
    if not math.isfinite(value):
        return NONE
    # Adding zero turns minus zero into zero.
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", MINUS)


def with_deviation(mean: float, deviation: float) -> str:
    """Write a mean with as many digits as its standard deviation, which has two."""
    ordinary = 1e-4 <= deviation < 1e6 and abs(mean) < 1e6
    if not ordinary:
        return f"{number(mean)} ± {number(deviation)}"
    digits = max(0, 1 - math.floor(math.log10(deviation)))
    return f"{fixed(mean, digits)} ± {fixed(deviation, digits)}"


def alike(scale: float) -> Callable[[float], str]:
    """Return how to write numbers of a column: with the digits that a typical one needs.

    Parameters
    ----------
    scale : float
        A typical number, which is written with four digits.
    """
    if not 1e-4 <= abs(scale) < 1e6:
        return number
    digits = max(0, 3 - math.floor(math.log10(abs(scale))))
    return lambda value: fixed(value, digits)


def percent(share: float) -> str:
    """Write a share in per cent; only 0 and 1 look like none and all."""
    if 0.0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1.0:
        return "> 99.9 %"
    return f"{100.0 * share:.1f} %".replace(".0 %", " %")


def count(n: int, singular: str, plural: str | None = None) -> str:
    """Write a number of things."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def _cells(row: Sequence[Any], kinds: Sequence[str]) -> Iterable[str]:
    first, *others = row
    # Tables that are too wide would break the shortest names first.
    kind = f"{kinds[0]} short" if len(first) <= _SHORT_NAME else kinds[0]
    yield f'<th scope="row" class="{kind}">{escape(first)}</th>'
    for cell, kind in zip(others, kinds[1:], strict=True):
        attributes, html = f'class="{kind}"', escape(str(cell))
        if isinstance(cell, Markup):
            attributes, html = cell.attributes or attributes, cell.html
        yield f"<td {attributes}>{html}</td>"
