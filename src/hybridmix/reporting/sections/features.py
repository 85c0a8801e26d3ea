"""Which columns matter for the predictions."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import IntArray
from hybridmix.inspection import (
    FeatureImportance,
    TargetImportance,
    feature_importance,
)
from hybridmix.reporting.charts import bar
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import Markup, alike, fixed, note, paragraph, table
from hybridmix.reporting.wording import drawn_from, hides, scored_rows
from hybridmix.tasks.base import quiet

# Rows by which columns are judged, over all folds.
MAX_ROWS = 2000
# Hiding each of more columns than this would take longer than the rest of the report.
MAX_COLUMNS = 200
_MAX_SHOWN = 30


def features_section(findings: Findings) -> str:
    """Show what hiding each column costs, and what it can do alone."""
    subject = findings.subject
    n_columns = len(subject.names)
    if n_columns > MAX_COLUMNS:
        return note(
            f"Left out: hiding each of {n_columns} columns in turn would take long. "
            "hybridmix.inspection.feature_importance does it."
        )
    parts = [
        paragraph(
            "Each column in turn is hidden from the model, which "
            f"{hides(subject.model)}: this is how "
            "it predicts rows that lack the column. Nothing is trained again, and no "
            f"values are shuffled. The figures are of {scored_rows(findings)}."
        ),
        _importance_table(_importance(findings)),
        paragraph(
            "Where two columns say the same, neither is missed, but both do well alone. "
            "A negative rise means that the model does better without the column."
        ),
    ]
    if n_columns > _MAX_SHOWN:
        parts.append(note(f"The first {_MAX_SHOWN} of {n_columns} columns are shown."))
    if part := drawn_from(findings.trial, MAX_ROWS):
        parts.append(note(part))
    return "".join(parts)


def _importance_table(importance: FeatureImportance | TargetImportance) -> str:
    """Show the most important columns."""
    rise = importance.loss_increase
    largest = max(float(rise.max()), 1e-12)
    order = importance.order[:_MAX_SHOWN]
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
    return table(
        "Columns by how much the log loss rises without them. With all columns: log "
        f"loss {fixed(importance.log_loss)}, accuracy {fixed(importance.accuracy)}",
        (
            "column",
            "rise of the log loss",
            "",
            "accuracy without it",
            "accuracy with it alone",
            "",
        ),
        rows,
        text_columns=(0, 2, 5),
    )


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
    return table(
        "Columns by how much the RMSE rises without them; LPD is the log predictive "
        f"density. With all columns: RMSE {written(importance.rmse)}, LPD "
        f"{fixed(importance.log_density)}",
        (
            "column",
            "rise of the RMSE",
            "",
            "RMSE without it",
            "LPD without it",
            "RMSE with it alone",
            "LPD with it alone",
        ),
        rows,
        text_columns=(0, 2),
    )


def _importance(findings: Findings) -> FeatureImportance | TargetImportance:
    """Return the mean over the folds of what their models show on scored rows."""
    subject, trial = findings.subject, findings.trial
    parts = []
    for fold, model in enumerate(trial.ours.models):
        X, truth = trial.held(trial.ours, fold, MAX_ROWS)
        y = subject.task.given(subject.model, truth)
        with quiet():
            parts.append(feature_importance(model, X, y))

    # Means over the folds of all figures; the names are the first field.
    fields = zip(*(list(vars(part).values())[1:] for part in parts), strict=True)
    return type(parts[0])(subject.names, *(np.mean(own, axis=0) for own in fields))
