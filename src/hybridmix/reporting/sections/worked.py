"""One prediction, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.columns import read_columns
from hybridmix.reporting.cell_charts import signed_bar
from hybridmix.reporting.contributions import Contributions, contributions
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    MINUS,
    Markup,
    alike,
    fixed,
    folded,
    note,
    paragraph,
    percent,
    table,
)
from hybridmix.reporting.subject import cell_text, observed_cells
from hybridmix.tasks.base import quiet

_MAX_CELLS = 8
# A row of this many cells takes a second; more are not taken apart.
_MAX_COLUMNS = 200


def worked_section(findings: Findings) -> str:
    """Show what each cell of a row adds to its prediction."""
    n_columns = len(findings.subject.names)
    if n_columns > _MAX_COLUMNS:
        return note(f"Rows of {n_columns} columns are not taken apart.")
    usual, wrong = examples(findings)
    parts = [paragraph(_explained(findings)), _worked(findings, usual)]
    if wrong is not None:
        parts.append(
            folded("The error that the model is surest about", _worked(findings, wrong))
        )
    return "".join(parts)


def _explained(findings: Findings) -> str:
    what = (
        "the log of the ratio between the probability of the predicted class and that "
        "of the runner-up"
        if findings.subject.has_classes
        else "the predicted mean"
    )
    return (
        f"What each cell adds to {what}: its Shapley value, the average change when the "
        "model sees the cell after some of the others. Cells that it does not see are "
        "integrated out. The figures add up exactly."
    )


def examples(findings: Findings) -> tuple[int, int | None]:
    """Return the places of a row of median certainty, and of the surest error."""
    trial = findings.trial
    if not findings.subject.has_classes:
        order = np.argsort(trial.truth, kind="stable")
        return int(order[3 * len(order) // 4]), None
    sure = trial.ours.outputs.max(axis=1)
    right = trial.ours.outputs.argmax(axis=1) == trial.truth
    chosen = np.flatnonzero(right) if right.any() else np.arange(len(sure))
    order = chosen[np.argsort(sure[chosen], kind="stable")]
    wrong = np.flatnonzero(~right)
    surest = int(wrong[sure[wrong].argmax()]) if len(wrong) else None
    # Where most rows are certain, the least sure third says more than the median.
    return int(order[len(order) // 3]), surest


def _worked(findings: Findings, place: int) -> str:
    subject, trial = findings.subject, findings.trial
    from sklearn.utils import _safe_indexing

    model = trial.ours.models[int(trial.folds[place])]
    row = _safe_indexing(trial.ours.X, [int(trial.rows[place])])
    with quiet():
        encoded = subject.model._encode(row)
        present = np.flatnonzero(observed_cells(encoded)[0])
        predict, pair = _predictor(findings, model, row)
        found = contributions(
            row, present, len(subject.names), predict, _repeated, subject.seed
        )
    return _contribution_table(findings, place, row, found, pair)


def _repeated(row: Any, n: int) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(row, np.zeros(n, dtype=np.intp))


def _predictor(findings: Findings, model: Any, row: Any) -> tuple[Any, tuple[int, int]]:
    """Return what is taken apart, and the two classes it is about."""
    if findings.subject.has_numbers:
        return lambda X: np.reshape(model.predict(X), -1), (0, 0)
    order = np.argsort(-model.predict_proba(row)[0], kind="stable")
    first, second = int(order[0]), int(order[1])

    def log_ratio(X: Any) -> FloatArray:
        logs = model.predict_log_proba(X)
        return logs[:, first] - logs[:, second]

    names = [findings.subject.model.classes_.tolist().index(c) for c in model.classes_]
    return log_ratio, (names[first], names[second])


def _contribution_table(
    findings: Findings, place: int, row: Any, found: Contributions, pair: tuple[int, int]
) -> str:
    subject = findings.subject
    order = np.argsort(-np.abs(found.parts), kind="stable")
    shown, others = order[:_MAX_CELLS], order[_MAX_CELLS:]
    largest = float(np.abs(found.parts).max(initial=1e-300))
    written = fixed if subject.has_classes else alike(float(findings.trial.truth.std()))
    columns = read_columns(row)
    lines: list[tuple[str, str, str, Markup]] = [
        ("nothing known yet", "", written(found.start), Markup(""))
    ]
    for k in shown:
        column = int(found.columns[k])
        text = cell_text(columns, 0, column, column in subject.schema.real)
        part = float(found.parts[k])
        bar = Markup(signed_bar(part / largest))
        lines.append((subject.names[column], text, _signed(written(part)), bar))
    if len(others):
        rest = float(found.parts[others].sum())
        name = f"the other {len(others)} cells" if len(others) > 1 else "the other cell"
        lines.append((name, "", _signed(written(rest)), Markup("")))
    lines.append(("all together", "", written(found.total), Markup("")))
    header = ("cell", "value", "adds", "")
    caption = _caption(findings, place, pair)
    text = table(caption, header, lines, text_columns=(0, 1, 3), class_="worked")
    return text + paragraph(_conclusion(findings, place, found, pair))


def _times(odds: float) -> str:
    """Write how many times as probable a class is."""
    return (
        "more than a million times" if odds > 1e6 else f"{float(f'{odds:.2g}'):,g} times"
    )


def _signed(text: str) -> str:
    return text if text.startswith(MINUS) else f"+{text}"


def _caption(findings: Findings, place: int, pair: tuple[int, int]) -> str:
    subject = findings.subject
    name = subject.row_name(int(findings.trial.table_rows[place]))
    if subject.has_numbers:
        return f"Row {name}: what its cells add to the predicted mean"
    first, second = (subject.class_names[k] for k in pair)
    return f"Row {name}: what speaks for {first} and against {second}"


def _conclusion(
    findings: Findings, place: int, found: Contributions, pair: tuple[int, int]
) -> str:
    subject, trial = findings.subject, findings.trial
    if subject.has_numbers:
        written = alike(float(trial.truth.std()))
        return (
            f"The model predicts {written(found.total)}; the target is "
            f"{written(float(trial.truth[place]))}."
        )
    first, second = (subject.class_names[k] for k in pair)
    odds = float(np.exp(np.clip(found.total, -700.0, 700.0)))
    proba = trial.ours.outputs[place]
    label = subject.class_names[int(trial.truth[place])]
    return (
        f"{first} is {_times(odds)} as probable as {second}: {percent(proba[pair[0]])} "
        f"and {percent(proba[pair[1]])}. The label is {label}."
    )
