"""Charts of the size of a word, for cells of tables."""

from __future__ import annotations

from collections.abc import Sequence

from hybridmix.reporting.markup import escape
from hybridmix.reporting.plane import place_text


def bar(share: float) -> str:
    """Draw a bar for a cell of a table, next to its number."""
    width = place_text(100.0 * min(max(share, 0.0), 1.0))
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect width="{width}" height="10"/></svg>'
    )


def signed_bar(share: float) -> str:
    """Draw a bar from the middle of a cell: more to the right, less to the left."""
    length = 50.0 * min(abs(share), 1.0)
    start = 50.0 if share > 0.0 else 50.0 - length
    kind = "more" if share > 0.0 else "less"
    return (
        '<svg class="bar wide" viewBox="0 0 100 10" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect class="{kind}" x="{place_text(start)}" '
        f'width="{place_text(length)}" height="10"/>'
        '<path class="axis" d="M50 0v10"/></svg>'
    )


def spark_histogram(counts: Sequence[float], description: str) -> str:
    """Draw a histogram of the size of a word."""
    most = max(*counts, 1)
    width = 80 / len(counts)
    path = "".join(
        f"M{place_text(k * width)} 20v-{place_text(max(19 * count / most, 0.8))}"
        f"h{place_text(width * 0.86)}V20z"
        for k, count in enumerate(counts)
        if count
    )
    return (
        f'<svg class="spark" viewBox="0 0 80 20" role="img" aria-label='
        f'"{escape(description)}"><path d="{path}"/></svg>'
    )
