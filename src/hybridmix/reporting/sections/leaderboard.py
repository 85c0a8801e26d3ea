"""What a search has tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybridmix.reporting.markup import count, fixed, heading, percent, table

_MOST_SHOWN = 20


def leaderboard_part(model: Any) -> str:
    """Show the candidates of a search, for any model that has a `leaderboard_`.

    It is empty for models without a search.
    """
    tried: Sequence[Mapping[str, Any]] = getattr(model, "leaderboard_", [])
    if not tried:
        return ""
    shown = [row for k, row in enumerate(tried) if k < _MOST_SHOWN or row["share"] > 0.0]
    rows = [
        (
            row["candidate"],
            f"{fixed(row['score'])} ± {fixed(row['standard_error'])}",
            fixed(row["seconds"], 2),
            percent(row["share"]) if row["share"] > 0.0 else "",
        )
        for row in shown
    ]
    caption = (
        f"{count(len(tried), 'candidate')}, compared on held-out rows; the score is the "
        "mean per row with its standard error, and higher is better. The simplest one "
        "whose lead over it is no more than noise is kept"
    )
    header = ("candidate", "score", "seconds", "part in the model")
    return heading("Candidates that were tried") + table(caption, header, rows)
