"""What the components of the mixture stand for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.estimators.components import Marginal, committee_of
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    NONE,
    Markup,
    note,
    paragraph,
    percent,
    table,
    tinted,
    with_deviation,
)
from hybridmix.reporting.subject import Subject
from hybridmix.tasks.base import quiet

_MAX_COMPONENTS = 30
_MAX_COLUMNS = 15
_N_TYPICAL = 3
# Standard deviations from the overall mean at which a cell has its full colour.
_FAR = 2.0


def components_section(findings: Findings) -> str:
    """Describe the components: their size, where they lie, rows that they explain."""
    subject = findings.subject
    with quiet():
        part = subject.model._encode(subject.part(subject.scored))
    assigned = subject.model._best_component(part)
    shown = _largest(subject)
    parts = [_size_table(subject, shown, assigned), _profile_table(subject, shown)]
    if committee_of(subject.model) is not None:
        parts.insert(
            0,
            paragraph(
                "These are the components of the density, which gives densities, filled "
                "cells and typicality. Classes are predicted by the committee, whose "
                "members have other components: see the section on training."
            ),
        )
    n_components = subject.model.model_.n_components
    if len(shown) < n_components:
        parts.append(
            note(f"The {len(shown)} largest of {n_components} components are shown.")
        )
    return "".join(parts)


def _largest(subject: Subject) -> IntArray:
    weights = subject.model.model_.log_weights
    return np.sort(np.argsort(-weights, kind="stable")[:_MAX_COMPONENTS])


def _component_name(subject: Subject, component: int) -> str:
    """Name a component by its class, and by a number if the class has several."""
    model = subject.model.model_
    label = int(model.class_of[component])
    first, last = model.offsets[label : label + 2]
    name = shortened(subject.class_names[label], 24) if subject.has_classes else ""
    number_within = f"{component - first + 1}" if last - first > 1 or not name else ""
    return " ".join(filter(None, (name, number_within)))


# Sizes --------------------------------------------------------------------------------


def _size_table(subject: Subject, shown: IntArray, assigned: IntArray) -> str:
    shares = np.exp(subject.model.model_.log_weights)
    counts = np.bincount(assigned, minlength=len(shares))
    # A row with few cells is typical whatever they hold.
    half_full = subject.observed[subject.scored].mean(axis=1) >= 0.5
    rows = []
    for j in shown.tolist():
        typical = _most_typical(subject, half_full & (assigned == j))
        listed = ", ".join(map(subject.row_name, typical)) or NONE
        name = _component_name(subject, j)
        rows.append((name, percent(shares[j]), f"{counts[j]:,}", listed))
    first = "class and component" if subject.has_classes else "component"
    return table(
        "Components: their share in the model, rows that they explain best, and the most "
        "typical ones of these",
        (first, "share", "rows", "most typical rows"),
        rows,
        text_columns=(0, 3),
    )


def _most_typical(subject: Subject, candidates: BoolArray) -> list[int]:
    """Return the rows of highest typicality among some of the scored ones."""
    places = np.flatnonzero(candidates)
    # Where components overlap, many rows are as typical as can be, but for rounding; of
    # these, the densest come first.
    typicality = subject.typicality[places].round(6)
    order = np.lexsort((-subject.log_density[places], -typicality))[:_N_TYPICAL]
    return subject.scored[places[order]].tolist()


# Profiles -----------------------------------------------------------------------------


class _Profile(NamedTuple):
    """A column seen by the components: how much they differ in it, and its cells."""

    difference: float
    name: str
    overall: str
    cells: list[str | Markup]


def _profile_table(subject: Subject, shown: IntArray) -> str:
    profiles = [
        *(_real_profile(subject, k, shown) for k in range(len(subject.schema.real))),
        *(
            _categorical_profile(subject, k, shown)
            for k in range(len(subject.schema.categorical))
        ),
    ]
    profiles.sort(key=lambda profile: -profile.difference)
    n_columns = len(profiles)
    rows = [(p.name, p.overall, *p.cells) for p in profiles[:_MAX_COLUMNS]]
    names = [_component_name(subject, j) for j in shown.tolist()]
    text = (
        "Real columns have mean ± standard deviation, in the units of the table; "
        "categorical ones the most probable category. Colours show how far a mean lies "
        "above (▲) or below (▼) the overall one, or how unusual a category is."
    )
    if n_columns > _MAX_COLUMNS:
        text += (
            f" The {_MAX_COLUMNS} of {n_columns} columns in which the components differ "
            "most are shown."
        )
    return paragraph(text) + table(
        "Columns in the components, starting with those in which they differ most",
        ("column", "all", *names),
        rows,
        class_="profiles",
    )


def _real_profile(subject: Subject, place: int, shown: IntArray) -> _Profile:
    column = subject.schema.real[place]
    with np.errstate(over="ignore", invalid="ignore"):
        means, deviations = Marginal.of(subject.model, [column]).column_moments()
        centre, scale = _overall(subject, means, deviations)
        distances = (means - centre) / scale
    cells: list[str | Markup] = []
    for j in shown.tolist():
        arrow = "▲ " if distances[j] > 0.5 else "▼ " if distances[j] < -0.5 else ""
        text = f"{arrow}{with_deviation(means[j], deviations[j])}"
        kind = "tint high" if distances[j] > 0 else "tint low"
        cells.append(tinted(text, abs(distances[j]) / _FAR, kind))
    return _Profile(
        float(np.abs(distances[shown]).max()),
        subject.names[column],
        with_deviation(centre, scale),
        cells,
    )


def _overall(
    subject: Subject, means: FloatArray, deviations: FloatArray
) -> tuple[float, float]:
    """Return mean and standard deviation of a column in the whole mixture."""
    weights = np.exp(subject.model.model_.log_weights)
    centre = float(weights @ means)
    variance = float(weights @ (deviations**2 + (means - centre) ** 2))
    return centre, float(np.sqrt(variance))


def _categorical_profile(subject: Subject, place: int, shown: IntArray) -> _Profile:
    probabilities = subject.model.category_probabilities_[place]
    categories = subject.schema.categories[place]
    overall = np.exp(subject.model.model_.log_weights) @ probabilities
    cells: list[str | Markup] = []
    for j in shown.tolist():
        best = int(probabilities[j].argmax())
        text = _category_text(categories, probabilities[j])
        rise = probabilities[j, best] - overall[best]
        cells.append(tinted(text, 2.0 * max(rise, 0.0), "tint high"))
    # Half the sum of differences, between 0 and 1, on the scale of standard deviations.
    differences = np.abs(probabilities - overall).sum(axis=1)
    return _Profile(
        float(differences[shown].max()) * _FAR / 2.0,
        subject.names[subject.schema.categorical[place]],
        _category_text(categories, overall),
        cells,
    )


def _category_text(categories: tuple[Any, ...], probabilities: FloatArray) -> str:
    best = int(probabilities.argmax())
    return f"{shortened(str(categories[best]), 20)} ({percent(probabilities[best])})"
