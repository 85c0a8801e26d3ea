"""How the columns that matter are distributed, and whether the model knows it."""

from __future__ import annotations

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import MISSING_CODE
from hybridmix.data.shapes import ColumnShape
from hybridmix.data.table import single_column
from hybridmix.estimators.components import Marginal
from hybridmix.reporting.bins import Bins
from hybridmix.reporting.charts import MAX_SERIES, Series, line_chart
from hybridmix.reporting.checks import ColumnCheck
from hybridmix.reporting.distributions import (
    MAX_CATEGORIES,
    Group,
    category_chart,
    density_chart,
)
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    count,
    figure,
    figures,
    fixed,
    folded,
    heading,
    note,
    number,
    paragraph,
    percent,
    table,
)
from hybridmix.reporting.subject import Subject
from hybridmix.tasks.base import quiet

_MAX_DRAWN = 6
_N_POINTS = 120
_MAX_CHECKED = 6


def columns_section(findings: Findings) -> str:
    """Draw the most important columns by class, and check the fit of all columns."""
    subject = findings.subject
    parts = [paragraph(_explained(subject))]
    # How a target depends on these columns says more, and comes next.
    n_drawn = _MAX_DRAWN // 2 if subject.has_numbers else _MAX_DRAWN
    with quiet(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        parts.append(
            figures(_drawn(subject, k) for k in important_columns(findings)[:n_drawn])
        )
    parts += [heading("Fit of the columns"), fit_part(findings)]
    return "".join(parts)


def dependence_section(findings: Findings) -> str:
    """Draw what the model expects of the target, given each important column alone."""
    subject = findings.subject
    with quiet():
        pictures = [
            _dependence(subject, column)
            for column in important_columns(findings)
            if column in subject.schema.real and len(subject.values(column))
        ]
    return paragraph(
        "The target as the model expects it in rows of which only this column is known: "
        "the mean, and a band that holds nine of ten targets. All other columns are "
        "integrated out."
    ) + figures(pictures)


def important_columns(findings: Findings) -> list[int]:
    """Return the columns to draw: those that matter most, or that fit least."""
    importance = findings.importance
    if importance is not None:
        order = importance.order.tolist()
    else:
        order = [own.column for own in findings.checks]
    with_values = [k for k in order if len(findings.subject.values(k)) > 1]
    return with_values[:_MAX_DRAWN]


def _explained(subject: Subject) -> str:
    if subject.has_classes:
        return (
            "The columns that matter most, within each class: lines are the model, with "
            "all other columns integrated out, and shaded areas the rows. Where the "
            "lines of two classes lie apart, the column separates them. Bars are "
            "probabilities of categories in the model, and the marks on them frequencies "
            "in the rows."
        )
    return (
        "Lines and bars are the model, with all other columns integrated out; shaded "
        "areas and marks are the rows."
    )


# Pictures -----------------------------------------------------------------------------


def _drawn(subject: Subject, column: int) -> str:
    """Draw a column within the classes, or within all rows."""
    if column in subject.schema.categorical:
        return _drawn_categories(subject, column)
    shape = subject.schema.shapes.get(column, ColumnShape())
    values = subject.values(column)
    spread = values[~np.isin(values, shape.spikes)]
    if len(spread) == 0:
        return ""
    bins = Bins.of(spread)
    ends = float(bins.edges[0]), float(bins.edges[-1])
    space = np.geomspace if bins.is_log else np.linspace
    points = space(*ends, _N_POINTS)
    points = np.where(
        np.isin(points, shape.spikes), np.nextafter(points, ends[1]), points
    )
    joint = np.exp(
        Marginal.of(subject.model, [column]).log_joint(
            points[:, None], np.empty((_N_POINTS, 0), np.int32)
        )
    )
    groups = _groups(subject, column, np.nan_to_num(joint), shape.spikes)
    name = subject.names[column]
    picture = density_chart(
        groups, points, bins, name=name, what=f"Densities of {name}{_by(subject)}"
    )
    return figure(picture, f"{name}. {_spike_text(shape, values)}".rstrip())


def _by(subject: Subject) -> str:
    return " by class" if subject.has_classes else ""


def _spike_text(shape: ColumnShape, values: FloatArray) -> str:
    """Say how often the values occur that have no density."""
    shares = [
        f"{number(spike)} ({percent(float(np.mean(values == spike)))})"
        for spike in shape.spikes[:3]
    ]
    listed = ", ".join(shares)
    return f"Values that repeat are not drawn: {listed}." if shares else ""


def _drawn_categories(subject: Subject, column: int) -> str:
    place = subject.schema.categorical.index(column)
    categories = [str(value) for value in subject.schema.categories[place]]
    codes = np.arange(len(categories), dtype=np.int32)[:, None]
    joint = np.exp(
        Marginal.of(subject.model, [column]).log_joint(
            np.empty((len(categories), 0)), codes
        )
    )
    name = subject.names[column]
    groups = _groups(subject, column, joint, ())
    picture = category_chart(
        groups, categories, what=f"Probabilities of the categories of {name}"
    )
    caption = f"{name}."
    if len(categories) > MAX_CATEGORIES:
        caption += f" The {MAX_CATEGORIES} most probable of {len(categories)} categories."
    return figure(picture, caption)


def _groups(
    subject: Subject, column: int, joint: FloatArray, spikes: tuple[float, ...]
) -> list[Group]:
    """Put rows and densities (C, m) together by class; rare classes together."""
    cells, labels = _cells(subject, column), subject.truth
    is_there = ~np.isnan(cells)
    is_drawn = is_there & ~np.isin(cells, spikes)
    names = subject.class_names
    if not subject.has_classes or not len(subject.known):
        n_rows = int(is_there.sum())
        return [Group("all rows", cells[is_drawn], n_rows, joint.sum(axis=0))]
    prior = np.exp(subject.model.model_.log_class_prior)
    sets = _class_sets(subject)
    found = []
    for own in sets:
        name = names[own[0]] if len(own) == 1 else "all others"
        is_own = np.isin(labels, own)
        n_rows = int(np.sum(is_there & is_own))
        density = joint[own].sum(axis=0) / max(float(prior[own].sum()), 1e-300)
        values = cells[is_drawn & is_own]
        found.append(Group(shortened(name, 30), values, n_rows, density))
    return found


def _class_sets(subject: Subject) -> list[IntArray]:
    """Return the classes that are drawn one by one, and all others together."""
    order = np.argsort(-subject.class_counts, kind="stable")
    n_own = len(order) if len(order) <= MAX_SERIES else MAX_SERIES - 1
    sets = [np.array([k]) for k in np.sort(order[:n_own])]
    return sets if n_own == len(order) else [*sets, np.sort(order[n_own:])]


def _cells(subject: Subject, column: int) -> FloatArray:
    """Return a column with its holes, (n,)."""
    real, categorical = subject.schema.places([column])
    if real:
        return subject.table.real[:, real[0]]
    codes = subject.table.codes[:, categorical[0]]
    return np.where(codes == MISSING_CODE, np.nan, codes)


def _dependence(subject: Subject, column: int) -> str:
    """Draw mean and band of the target along a real column."""
    values = subject.values(column)
    low, high = np.quantile(values, [0.01, 0.99])
    bins = Bins.of(values)
    space = np.geomspace if bins.is_log else np.linspace
    points = space(low, high, _N_POINTS) if high > low else np.array([low])
    distinct = np.unique(values)
    if len(distinct) <= _N_POINTS and np.all(distinct == np.rint(distinct)):
        # Between whole numbers there are no rows.
        points = distinct[(distinct >= low) & (distinct <= high)]
    rows = single_column(subject.schema, column, points)
    [means] = subject.model.table_moments(rows)[0]
    [[lower, upper]] = subject.model.table_quantiles(rows, np.array([0.05, 0.95]))
    name = subject.names[column]
    picture = line_chart(
        [Series("mean", points, means, band=(lower, upper))],
        description=f"Expected target by {name}",
        x_label=shortened(name, 44),
        y_label="target",
        log_x=bins.is_log,
    )
    return figure(picture, f"{name}.")


# Fit ----------------------------------------------------------------------------------


def fit_part(findings: Findings) -> str:
    """List how far the model's distribution of each column is from the rows."""
    checks = findings.checks
    if not checks:
        return note("No column has values to compare.")
    n_wrong = sum(not own.is_match for own in checks)
    text = (
        "The distance is the largest difference between the shares of values up to a "
        "number, in the model and in the rows (Kolmogorov and Smirnov), and for "
        "categories half the sum of the differences in frequency. Up to 0.05, or to what "
        "chance explains, columns match."
    )
    lead = (
        f"{len(checks) - n_wrong} of {count(len(checks), 'column')} are distributed as "
        "the model says."
    )
    shown = max(min(n_wrong, _MAX_CHECKED), min(3, len(checks)))
    parts = [paragraph(lead), _fit_table(findings.subject, checks[:shown])]
    if shown < len(checks):
        others = _fit_table(findings.subject, checks[shown:])
        n_others = len(checks) - shown
        title = "The other column" if n_others == 1 else f"The other {n_others} columns"
        parts.append(folded(title, others))
    parts.append(folded("What the distance is", paragraph(text)))
    return "".join(parts)


def _fit_table(subject: Subject, checks: list[ColumnCheck]) -> str:
    rows = [
        (
            subject.names[own.column],
            fixed(own.distance),
            "matches" if own.is_match else "does not match",
            own.where,
            own.advice,
        )
        for own in checks
    ]
    return table(
        "Columns by the distance between the model and the rows",
        ("column", "distance", "", "where it is largest", "what may help"),
        rows,
        text_columns=(0, 2, 3, 4),
        class_="advice",
    )
