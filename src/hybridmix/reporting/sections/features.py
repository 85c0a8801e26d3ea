"""Which columns matter for the predictions."""

from __future__ import annotations

from collections.abc import Sequence

from hybridmix._typing import IntArray
from hybridmix.inspection import FeatureImportance, TargetImportance
from hybridmix.reporting.cell_charts import bar
from hybridmix.reporting.findings import MAX_JUDGING, Findings
from hybridmix.reporting.markup import (
    Markup,
    alike,
    fixed,
    folded,
    folded_after,
    note,
    paragraph,
    table,
)
from hybridmix.reporting.wording import drawn_from, hides, scored_rows

_MAX_SHOWN = 6


def features_section(findings: Findings) -> str:
    """Show what hiding each column costs, and what it can do alone."""
    subject = findings.subject
    n_columns = len(subject.names)
    importance = findings.importance
    if importance is None:
        return note(
            f"Left out: hiding each of {n_columns} columns in turn would take long. "
            "hybridmix.inspection.feature_importance does it."
        )
    parts = [
        paragraph(
            "Each column in turn is hidden from the model, which "
            f"{hides(subject.model)}: this is how "
            "it predicts rows that lack the column."
        ),
        _importance_table(importance),
        folded(
            "How to read this",
            paragraph(
                "Nothing is trained again, and no values are shuffled. Where two columns "
                "say the same, neither is missed, but both do well alone. A negative "
                "rise means that the model does better without the column. The figures "
                f"are of {scored_rows(findings)}."
            ),
        ),
    ]
    if part := drawn_from(findings.trial, MAX_JUDGING):
        parts.append(note(part))
    return "".join(parts)


def _importance_table(importance: FeatureImportance | TargetImportance) -> str:
    """Show the most important columns."""
    rise = importance.loss_increase
    largest = max(float(rise.max()), 1e-12)
    order = importance.order
    bars = {j: Markup(bar(rise[j] / largest)) for j in order}
    if isinstance(importance, TargetImportance):
        return _target_table(importance, order, bars)
    rows = [
        (
            importance.names[j],
            fixed(rise[j]),
            bars[j],
            fixed(importance.hidden_accuracy[j]),
            fixed(importance.alone_accuracy[j]),
            Markup(bar(importance.alone_accuracy[j])),
        )
        for j in order
    ]
    caption = (
        "Columns by how much the log loss rises without them. With all columns: log "
        f"loss {fixed(importance.log_loss)}, accuracy {fixed(importance.accuracy)}"
    )
    header = (
        "column",
        "rise of the log loss",
        "",
        "accuracy without it",
        "accuracy with it alone",
        "",
    )
    return _folded(caption, header, rows, (0, 2, 5))


def _target_table(
    importance: TargetImportance, order: IntArray, bars: dict[int, Markup]
) -> str:
    written = alike(importance.rmse)
    rows = [
        (
            importance.names[j],
            written(importance.loss_increase[j]),
            bars[j],
            written(importance.hidden_rmse[j]),
            fixed(importance.hidden_log_density[j]),
            written(importance.alone_rmse[j]),
            fixed(importance.alone_log_density[j]),
        )
        for j in order
    ]
    caption = (
        "Columns by how much the RMSE rises without them; LPD is the log predictive "
        f"density. With all columns: RMSE {written(importance.rmse)}, LPD "
        f"{fixed(importance.log_density)}"
    )
    header = (
        "column",
        "rise of the RMSE",
        "",
        "RMSE without it",
        "LPD without it",
        "RMSE with it alone",
        "LPD with it alone",
    )
    return _folded(caption, header, rows, (0, 2))


def _folded(
    caption: str,
    header: tuple[str, ...],
    rows: Sequence[tuple[str | Markup, ...]],
    text_columns: tuple[int, ...],
) -> str:
    """Show the first columns, and the others folded."""
    return folded_after(
        _MAX_SHOWN,
        rows,
        lambda some: table(caption, header, some, text_columns=text_columns),
        f"The other {len(rows) - _MAX_SHOWN} of {len(rows)} columns",
    )
