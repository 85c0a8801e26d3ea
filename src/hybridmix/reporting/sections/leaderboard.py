"""What a search has tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybridmix.estimators.chosen import described_members
from hybridmix.reporting.markup import count, fixed, heading, percent, table
from hybridmix.tasks import task_of

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
    unit = task_of(model).unit
    caption = (
        f"{count(len(tried), 'candidate')}, compared on held-out {unit}s; the score is "
        f"the mean {_what(model)} per {unit} with its standard error, and "
        f"higher is better. {_rule(model)}"
    )
    header = ("candidate", "score", "seconds", "part in the model")
    return heading("Candidates that were tried") + table(caption, header, rows)


# What candidates are compared by, for each kind of target.
_WHAT = {
    "classes": "log probability of the label",
    "numbers": "log predictive density of the target",
    "none": "log density",
}


def _what(model: Any) -> str:
    """Say what the scores of candidates are means of."""
    compared = _compared(model)
    by_frame = compared == "none" and task_of(model).unit == "sequence"
    return f"{_WHAT[compared]}{', divided by its frames,' * by_frame}"


def _compared(model: Any) -> str:
    """Return the kind of target that candidates are compared by."""
    target = task_of(model).target
    # A network regressor chooses its mixture by the density of the rows.
    return "none" if target == "numbers" and not hasattr(model, "predictive_") else target


def _rule(model: Any) -> str:
    """Say how candidates became the model."""
    if described_members(model):
        return (
            "The shares are those with which the votes predict the held-out labels best"
        )
    target = _compared(model)
    if target == "numbers":
        return (
            "The shares are those with which the averaged densities predict the held-out "
            "targets best"
        )
    if target == "classes":
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
    unit = task_of(model).unit
    caption = (
        f"The committee: the class probabilities of a {unit} are the mean of those of "
        "the members, weighted by their shares. A temperature above 1 means that a "
        f"member was too sure of itself on held-out {unit}s, and is corrected for it"
    )
    header = ("member", "share", "components", "temperature")
    return heading("Members of the committee") + table(caption, header, rows)
