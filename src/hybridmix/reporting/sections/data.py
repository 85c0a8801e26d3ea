"""What the table holds, and what it lacks."""

from __future__ import annotations

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray
from hybridmix.reporting.bins import Bins
from hybridmix.reporting.cell_charts import bar, spark_histogram
from hybridmix.reporting.charts import (
    heat_map,
    histogram,
)
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    Markup,
    count,
    figure,
    figures,
    heading,
    note,
    number,
    paragraph,
    percent,
    table,
)
from hybridmix.reporting.subject import Subject

_MAX_COLUMNS = 100
_MAX_MAPPED = 40
_MAX_BLOCKS = 40
_MAX_PAIRS = 6
# Pairs that are missing together hardly more often than by chance are not worth a row.
_LEAST_CORRELATION = 0.3
_MAX_SPARK_CATEGORIES = 20


def data_section(findings: Findings) -> str:
    """Describe columns, holes and classes."""
    subject = findings.subject
    parts = [column_table(subject)]
    if subject.observed.all():
        parts.append(paragraph("No cell is missing."))
    else:
        parts.append(heading("Missing cells"))
        parts.append(figures([_missing_map(subject), _missing_together(subject)]))
    if subject.has_classes:
        parts.append(heading("Classes"))
        parts.append(class_balance(subject))
    if subject.has_numbers:
        if subject.n_targets == 1:
            parts += [heading("The target"), target_part(subject)]
        else:
            names = ", ".join(subject.target_names)
            own = paragraph(f"Each target has a section of its own: {names}.")
            parts += [heading("The targets"), own]
    return "".join(parts)


# Columns ------------------------------------------------------------------------------


def column_table(subject: Subject) -> str:
    """List the columns, with what they hold."""
    n_columns, schema = len(subject.names), subject.schema
    header = ["column", "type", "missing"]
    header += ["mean", "sd", "min", "max"] if schema.real else []
    header += ["most frequent"] if schema.categorical else []
    header += ["distribution"]
    cells = [_column_cells(subject, k) for k in range(min(n_columns, _MAX_COLUMNS))]
    result = table(
        "Columns of the table, as the model reads them",
        header,
        [[own.get(name, "") for name in header] for own in cells],
        text_columns=[
            place
            for place, name in enumerate(header)
            if name in ("column", "type", "most frequent", "distribution")
        ],
    )
    if n_columns > _MAX_COLUMNS:
        result += note(f"The first {_MAX_COLUMNS} of {n_columns} columns are shown.")
    return result


def _column_cells(subject: Subject, column: int) -> dict[str, str | Markup]:
    """Describe a column, by the names of the table's header."""
    name, values = subject.names[column], subject.values(column)
    cells: dict[str, str | Markup] = {
        "column": name,
        "type": _kind(subject, column),
        "missing": percent(1.0 - float(subject.observed[:, column].mean())),
    }
    if len(values) == 0:
        return cells
    if column in subject.schema.categorical:
        counts, cells["most frequent"] = _frequent(subject, column, values)
        picture = spark_histogram(counts, f"frequencies of the categories of {name}")
    else:
        with np.errstate(over="ignore"):
            cells["mean"], cells["sd"] = number(values.mean()), number(values.std())
        cells["min"], cells["max"] = number(values.min()), number(values.max())
        counts = Bins.of(values, n_most=20).count(values).tolist()
        picture = spark_histogram(counts, f"histogram of {name}")
    return {**cells, "distribution": Markup(picture)}


def _kind(subject: Subject, column: int) -> str:
    schema = subject.schema
    if column in schema.shapes:
        return f"real: {schema.shapes[column]}"
    if column in schema.real:
        return "real"
    if column in schema.categorical:
        n_categories = schema.n_categories[schema.categorical.index(column)]
        return count(n_categories, "category", "categories")
    return "empty in training"


def _frequent(
    subject: Subject, column: int, values: FloatArray
) -> tuple[list[float], str]:
    """Return counts, the largest first, and the most frequent categories in words."""
    categories = subject.schema.categories[subject.schema.categorical.index(column)]
    counts = np.bincount(values.astype(int), minlength=len(categories))
    order = np.argsort(-counts, kind="stable")
    words = [
        f"{shortened(str(categories[k]), 24)} ({percent(counts[k] / len(values))})"
        for k in order[:3]
        if counts[k]
    ]
    return counts[order][:_MAX_SPARK_CATEGORIES].tolist(), ", ".join(words)


# Holes --------------------------------------------------------------------------------


def _missing_map(subject: Subject) -> str:
    missing = ~subject.observed
    shares = missing.mean(axis=0)
    with_holes = np.flatnonzero(shares > 0)
    shown = with_holes
    if len(shown) > _MAX_MAPPED:
        shown = np.sort(shown[np.argsort(-shares[shown], kind="stable")[:_MAX_MAPPED]])
    edges = np.linspace(0, subject.n_rows, min(_MAX_BLOCKS, subject.n_rows) + 1)
    starts = edges[:-1].astype(int)
    sums = np.add.reduceat(missing[:, shown], starts, axis=0, dtype=float)
    sizes = np.diff(np.append(starts, subject.n_rows))
    picture = heat_map(
        (sums / sizes[:, None]).T,
        [subject.names[column] for column in shown],
        description="Share of missing cells, by column and by block of rows",
        x_label="rows",
        x_ends=(subject.row_name(0), subject.row_name(subject.n_rows - 1)),
    )
    caption = (
        f"Share of missing cells, by column and by block of rows. "
        f"{len(with_holes)} of {count(len(shares), 'column')} have holes."
    )
    if len(shown) < len(with_holes):
        caption += f" The {len(shown)} with the most are shown."
    return figure(picture, caption)


def _missing_together(subject: Subject) -> str:
    """List the pairs of columns whose holes coincide."""
    observed = subject.observed[subject.scored]
    shares = 1.0 - observed.mean(axis=0)
    partial = np.flatnonzero((shares > 0) & (shares < 1))
    partial = partial[np.argsort(-shares[partial], kind="stable")[:_MAX_COLUMNS]]
    if len(partial) < 2:
        return ""
    missing = 1.0 - observed[:, partial]
    together = missing.T @ missing / len(missing)
    centred = together - np.outer(shares[partial], shares[partial])
    scale = np.sqrt(np.diag(centred))
    correlations = np.triu(centred / np.outer(scale, scale), 1)
    order = np.argsort(-correlations, axis=None, kind="stable")[:_MAX_PAIRS]
    pairs = np.column_stack(np.unravel_index(order, correlations.shape))
    rows = [
        (
            f"{subject.names[partial[a]]}, {subject.names[partial[b]]}",
            percent(together[a, b]),
            f"{correlations[a, b]:.2f}",
        )
        for a, b in pairs
        if correlations[a, b] >= _LEAST_CORRELATION
    ]
    if not rows:
        return paragraph("No two columns are missing together much more than by chance.")
    return table(
        "Columns that are missing together",
        ("columns", "rows that lack both", "correlation of the holes"),
        rows,
    )


# Targets ------------------------------------------------------------------------------


def class_balance(subject: Subject) -> str:
    """Count the rows or sequences of each class."""
    unit = subject.task.unit
    if subject.y is None:
        return note("No labels were given.")
    names, counts = list(subject.class_names), subject.class_counts.tolist()
    n_unlabelled = subject.n_rows - len(subject.known)
    if n_unlabelled:
        names.append("without a label")
        counts.append(n_unlabelled)
    most = max(counts)
    rows = [
        (name, f"{n:,}", percent(n / subject.n_rows), Markup(bar(n / most)))
        for name, n in zip(names, counts, strict=True)
    ]
    return table(
        f"{unit.capitalize()}s of each class",
        ("class", f"{unit}s", "share", ""),
        rows,
        text_columns=(0, 3),
    )


def target_part(subject: Subject) -> str:
    """Draw the target, and say what it is taken as."""
    if len(subject.known) == 0:
        return note("No targets were given.")
    values = subject.truth[subject.known]
    picture = histogram(
        values, description="Histogram of the target", x_label="value of the target"
    )
    caption = (
        f"{len(values):,} of {subject.n_rows:,} rows have a target: mean "
        f"{number(values.mean())}, standard deviation {number(values.std())}, from "
        f"{number(values.min())} to {number(values.max())}."
    )
    shape = subject.model.target_schema_.shapes.get(0)
    if shape is not None:
        caption += f" The model takes it as {shape}."
    return figures([figure(picture, caption)])
