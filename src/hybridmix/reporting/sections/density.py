"""How probable rows are, which are unusual, and which of their cells make them so."""

from __future__ import annotations

import numpy as np

from hybridmix.data.columns import read_columns
from hybridmix.data.holes import punch_holes
from hybridmix.estimators.components import committee_of
from hybridmix.reporting.charts import histogram
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    Markup,
    count,
    element,
    escape,
    figure,
    figures,
    fixed,
    heading,
    note,
    number,
    paragraph,
    percent,
    table,
)
from hybridmix.reporting.subject import Subject, cell_text
from hybridmix.tasks.base import quiet

N_UNUSUAL = 10
_N_CELLS = 3
# Cells are hidden one by one, which would take long with more columns than this.
_MAX_COLUMNS = 500
# Objectives that separate classes and do not ask the density to fit the rows.
_WITHOUT_LIKELIHOOD = ("conditional", "margin")
# Probabilities below exp of this all mean never.
_LEAST = -20.0


def density_section(findings: Findings) -> str:
    """Draw densities and typicalities, and list the most unusual rows."""
    subject = findings.subject
    parts = [
        paragraph(
            "The typicality of a row is the log of the probability that the model itself "
            "produces a row of no higher density, over the columns that the row has. "
            "Where components overlap, as they do in rows with many holes, it is an "
            "upper bound: such rows look more typical than they are."
        ),
        _histograms(subject),
        heading("The most unusual rows"),
        _unusual_table(subject),
    ]
    is_em = committee_of(subject.model) is not None
    if not is_em and getattr(subject.model, "objective", None) in _WITHOUT_LIKELIHOOD:
        parts.insert(
            0,
            note(
                f"The objective {subject.model.objective!r} does not include the "
                "likelihood of the rows, so the density need not fit them: many rows may "
                "look unusual that are not."
            ),
        )
    if len(subject.scored) < subject.n_rows:
        parts.append(
            note(
                f"{len(subject.scored):,} of {subject.n_rows:,} rows were looked at, "
                "drawn at random."
            )
        )
    return "".join(parts)


def _histograms(subject: Subject) -> str:
    typicality, threshold = subject.typicality, subject.threshold
    n_flagged = int(np.sum(typicality < threshold))
    share = percent(n_flagged / len(typicality))
    expected = percent(float(np.exp(threshold)))
    clipped = np.maximum(typicality, _LEAST)
    n_far = int(np.sum(typicality < _LEAST))
    caption = (
        f"Typicality. {count(n_flagged, 'row')} ({share}) below the threshold "
        f"{fixed(threshold, 2)}; of the model's own rows, about {expected} or fewer "
        "would be."
    )
    if n_far:
        caption += f" {count(n_far, 'row')} below {number(_LEAST)} are shown there."
    return figures(
        [
            figure(
                histogram(
                    subject.log_density,
                    description="Histogram of the log density of the rows",
                    x_label="log density, over the columns that a row has",
                ),
                f"Log density, in the units of the table. "
                f"Mean {number(float(subject.log_density.mean()))}.",
            ),
            figure(
                histogram(
                    clipped,
                    description="Histogram of the typicality of the rows",
                    x_label="typicality (log probability)",
                    threshold=max(threshold, _LEAST),
                ),
                caption,
            ),
        ]
    )


def _unusual_table(subject: Subject) -> str:
    order = np.argsort(subject.typicality, kind="stable")[:N_UNUSUAL]
    n_columns = len(subject.names)
    explains = n_columns <= _MAX_COLUMNS
    header = ["row", "typicality"]
    named = {"classes": ["label"], "numbers": ["target"]}.get(subject.task.target, [])
    header += named
    header += ["cells that make it so"] if explains else []
    lines = []
    for place in order:
        row, score = int(subject.scored[place]), subject.typicality[place]
        text, is_flagged = fixed(score, 2), score < subject.threshold
        line: list[str | Markup] = [subject.row_name(row)]
        line.append(Markup(element("strong", text)) if is_flagged else text)
        line += [subject.label_name(row)] if named else []
        line += [_telling_cells(subject, row)] if explains else []
        lines.append(line)
    where = "its index" if subject.has_index else "its number, from 0"
    result = table(
        f"Rows of the lowest typicality, each by {where}; in bold: below the threshold",
        header,
        lines,
        text_columns=(0, 3) if subject.has_numbers else (0, 2, 3),
        class_="unusual" if explains else "",
    )
    if explains:
        text = (
            "Each cell of these rows is integrated out in turn. The table names those "
            "whose absence raises the typicality most, with the value that the model "
            "expects from the rest of the row."
        )
        return result + paragraph(text)
    return result + note(f"Cells of {n_columns} columns are not looked at one by one.")


def _telling_cells(subject: Subject, row: int) -> str | Markup:
    """Name the cells of a row without which it is most typical."""
    present = np.flatnonzero(subject.observed[row])
    if len(present) < 2:
        return "its only cell" if len(present) else "nothing is observed"
    # The row as often as it has cells, and in each copy another one of them is hidden.
    copies = subject.part(np.full(len(present), row))
    holes = np.zeros((len(present), len(subject.names)), dtype=bool)
    holes[np.arange(len(present)), present] = True
    hidden = punch_holes(copies, holes)
    with quiet():
        before, after = (subject.model.typicality(rows) for rows in (copies, hidden))
        filled = subject.model.impute(hidden)
    rises = after - before
    order = [k for k in np.argsort(-rises, kind="stable")[:_N_CELLS] if rises[k] > 0]
    if not order:
        return "no single one"
    found, expected = read_columns(copies), read_columns(filled)
    words = []
    for k in order:
        column = int(present[k])
        is_real = column in subject.schema.real
        value = cell_text(found, k, column, is_real)
        usual = cell_text(expected, k, column, is_real)
        name = element("b", escape(subject.names[column]))
        words.append(f"{name} {escape(value)} (expected {escape(usual)})")
    return Markup("; ".join(words), 'class="text"')
