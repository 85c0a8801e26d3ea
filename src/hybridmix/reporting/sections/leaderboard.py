"""What a search has tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybridmix.estimators.chosen import described_members
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
        f"mean {_what(model)} per row with its standard error, and higher is better. "
        f"{_rule(model)}"
    )
    header = ("candidate", "score", "seconds", "part in the model")
    return heading("Candidates that were tried") + table(caption, header, rows)


def _what(model: Any) -> str:
    return "log probability of the label" if hasattr(model, "classes_") else "log density"


def _rule(model: Any) -> str:
    """Say how candidates became the model."""
    if described_members(model):
        return (
            "The shares are those with which the votes predict the held-out labels best"
        )
    if hasattr(model, "classes_"):
        return "Nothing else was tried"
    return "The simplest one that is behind the best by no more than noise is kept"


def members_part(model: Any) -> str:
    """Show who votes on the class; nothing, if a single mixture decides."""
    members = described_members(model)
    if not members:
        return ""
    rows = [
        (
            member["candidate"],
            percent(member["share"]),
            str(member["components"]),
            fixed(member["temperature"], 2),
        )
        for member in members
    ]
    caption = (
        "The committee: the class probabilities of a row are the mean of those of the "
        "members, weighted by their shares. A temperature above 1 means that a member "
        "was too sure of itself on held-out rows, and is corrected for it"
    )
    header = ("member", "share", "components", "temperature")
    return heading("Members of the committee") + table(caption, header, rows)
