"""A map of the rows: the plane in which classes, or components, lie furthest apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED
from hybridmix.data.columns import read_columns
from hybridmix.reporting.charts import MAX_SERIES
from hybridmix.reporting.distributions import Cloud, map_chart
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import MINUS, element, figure, note, number, paragraph
from hybridmix.reporting.subject import Subject
from hybridmix.tasks.base import quiet

# More points than this cover each other; more rows do not change the plane.
_MAX_POINTS = 800
_MAX_ROWS = 5000
# Columns that are named at an axis.
_N_NAMED = 2
# Classes or components that have their name in the map.
_MAX_NAMED = 30
_N_LEVELS = 5


class _Plane(NamedTuple):
    """Where rows lie, (n, 2), and how much each column adds to both axes, (m, 2)."""

    places: FloatArray
    loadings: FloatArray


def map_section(findings: Findings) -> str:
    """Draw the rows in a plane."""
    subject = findings.subject
    rows = subject.scored
    if len(rows) > _MAX_ROWS:
        rows = np.sort(np.random.default_rng(subject.seed).permutation(rows)[:_MAX_ROWS])
    matrix, names = _numbers(subject, rows)
    if matrix.shape[1] < 2 or len(rows) < 3:
        return note("A map needs two columns that vary, and three rows.")
    groups = _groups(subject, rows)
    plane = _separating(matrix, groups)
    shown = np.unique(np.linspace(0, len(rows) - 1, _MAX_POINTS).round().astype(int))
    picture = map_chart(
        _clouds(subject, rows, groups, plane.places, shown),
        _centres(subject, groups, plane.places),
        description="Map of the rows",
        x_label=_axis(plane.loadings[:, 0], names),
        y_label=_axis(plane.loadings[:, 1], names),
    )
    what = "classes" if subject.has_classes else "components"
    text = (
        f"The plane in which the {what} lie furthest apart (linear discriminants), of "
        "standardised columns and one-hot categories. Holes are filled by the model. The "
        "columns that an axis goes along most are named at it. Two groups that overlap "
        "here may still be separated by other columns."
    )
    caption = f"{len(shown):,} of {subject.n_rows:,} rows." * (
        len(shown) < subject.n_rows
    )
    caption += _ringed(findings)
    return element("div", figure(picture, caption) + paragraph(text), class_="beside")


# The plane ----------------------------------------------------------------------------


def _numbers(subject: Subject, rows: IntArray) -> tuple[FloatArray, list[str]]:
    """Return filled rows as standardised numbers (n, m), and names of these."""
    schema = subject.schema
    with quiet():
        filled = schema.encode(read_columns(subject.model.impute(subject.part(rows))))
    columns, names = [], []
    for k, column in enumerate(schema.real):
        values = filled.real[:, k]
        shape = schema.shapes.get(column)
        # Spikes may lie outside the domain of a transform.
        is_mapped = shape is not None and not shape.spikes
        columns.append(shape.forward(values) if is_mapped and shape else values)
        names.append(subject.names[column])
    for k, column in enumerate(schema.categorical):
        for code, category in enumerate(schema.categories[k]):
            columns.append((filled.codes[:, k] == code).astype(float))
            names.append(f"{subject.names[column]} = {category}")
    matrix = np.column_stack(columns) if columns else np.empty((len(rows), 0))
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    varies = np.isfinite(matrix).all(axis=0)
    return matrix[:, varies], [
        name for name, own in zip(names, varies, strict=True) if own
    ]


def _groups(subject: Subject, rows: IntArray) -> IntArray:
    """Return the classes of rows, predicted where there is no label, or components."""
    with quiet():
        if not subject.has_classes:
            return subject.model._best_component(
                subject.model._encode(subject.part(rows))
            )
        proba = subject.model.predict_proba(subject.part(rows))
    labels = subject.truth[rows]
    return np.where(labels == UNLABELLED, proba.argmax(axis=1), labels)


def _separating(matrix: FloatArray, groups: IntArray) -> _Plane:
    """Return the plane that separates groups best, or in which rows spread most."""
    directions = _discriminants(matrix, groups)
    rest = matrix - matrix @ np.linalg.pinv(directions.T) @ directions.T
    spread = np.linalg.svd(rest, full_matrices=False)[2].T
    directions = np.column_stack([directions, spread])[:, :2]
    # A sign of its own for each axis, so that the same rows always give the same map.
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, [0, 1]])
    places = matrix @ directions
    return _Plane(places / places.std(axis=0).clip(1e-12), directions)


def _discriminants(matrix: FloatArray, groups: IntArray) -> FloatArray:
    """Return at most two directions (m, k) in which groups lie apart."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    numbers, counts = np.unique(groups, return_counts=True)
    kept = np.isin(groups, numbers[counts > 1])
    if np.sum(counts > 1) < 2:
        return np.empty((matrix.shape[1], 0))
    # Shrinkage keeps directions from separating the rows by accident.
    found = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    found.fit(matrix[kept], groups[kept])
    directions = found.scalings_[:, : min(2, np.sum(counts > 1) - 1)]
    return directions / np.linalg.norm(directions, axis=0)


def _axis(loadings: FloatArray, names: list[str]) -> str:
    """Name the columns that an axis goes along most, with their signs."""
    order = np.argsort(-np.abs(loadings), kind="stable")[:_N_NAMED]
    words = [
        f"{'+' if loadings[k] > 0 else MINUS} {shortened(names[k], 22)}" for k in order
    ]
    return f"{' '.join(words)} …".removeprefix("+ ")


# What is drawn ------------------------------------------------------------------------


def _clouds(
    subject: Subject,
    rows: IntArray,
    groups: IntArray,
    places: FloatArray,
    shown: IntArray,
) -> list[Cloud]:
    if subject.has_numbers and subject.truth.ndim == 1 and len(subject.known):
        clouds = _by_level(subject.truth[rows[shown]], places[shown])
    else:
        clouds = _by_group(subject, groups[shown], places[shown])
    is_ringed = _unusual(subject, rows)
    name = "predicted wrongly" if subject.has_classes else "unusual"
    if subject.has_classes:
        is_ringed = _wrong(subject, rows)
    ringed = shown[is_ringed[shown]]
    return [*clouds, Cloud(name, places[ringed], "ring")] if len(ringed) else clouds


def _by_group(subject: Subject, groups: IntArray, places: FloatArray) -> list[Cloud]:
    """Give the largest groups a colour each."""
    numbers, counts = np.unique(groups, return_counts=True)
    n_own = len(numbers) if len(numbers) <= MAX_SERIES else MAX_SERIES - 1
    own = np.sort(numbers[np.argsort(-counts, kind="stable")[:n_own]])
    clouds = []
    others = places[~np.isin(groups, own)]
    if len(others):
        clouds.append(Cloud("all others", others, "plain"))
    for place, number_of_group in enumerate(own):
        name = _group_name(subject, int(number_of_group))
        clouds.append(Cloud(name, places[groups == number_of_group], f"s{place}"))
    return clouds


def _by_level(targets: FloatArray, places: FloatArray) -> list[Cloud]:
    """Shade rows by fifths of their targets."""
    known = ~np.isnan(targets)
    edges = np.unique(np.quantile(targets[known], np.linspace(0, 1, _N_LEVELS + 1)))
    levels = np.clip(np.searchsorted(edges, targets[known], "right"), 1, len(edges) - 1)
    return [
        Cloud(
            f"{number(edges[k - 1])} to {number(edges[k])}",
            places[known][levels == k],
            f"level{k}",
        )
        for k in range(1, len(edges))
    ]


def _group_name(subject: Subject, group: int) -> str:
    if subject.has_classes:
        return shortened(subject.class_names[group], 24)
    return f"component {group + 1}"


def _centres(
    subject: Subject, groups: IntArray, places: FloatArray
) -> list[tuple[str, float, float]]:
    """Return names of classes and the medians of their rows; no two are too near."""
    if not subject.has_classes:
        return []
    numbers, counts = np.unique(groups, return_counts=True)
    found: list[tuple[str, float, float]] = []
    span = np.ptp(places, axis=0)
    for group in numbers[np.argsort(-counts, kind="stable")][:_MAX_NAMED]:
        x, y = np.median(places[groups == group], axis=0)
        name = shortened(subject.class_names[group], 14)
        # Text is about 6 wide and 13 high in a picture of 360 by 240.
        apart = all(
            abs(x - own[1]) > span[0] * (4.2 * (len(name) + len(own[0])) + 4.0) / 320
            or abs(y - own[2]) > span[1] * 14 / 170
            for own in found
        )
        if apart:
            found.append((name, float(x), float(y)))
    return found


def _wrong(subject: Subject, rows: IntArray) -> np.ndarray:
    """Return which labelled rows the model as fitted predicts wrongly."""
    with quiet():
        predicted = subject.model.predict_proba(subject.part(rows)).argmax(axis=1)
    labels = subject.truth[rows]
    return (labels != UNLABELLED) & (predicted != labels)


def _unusual(subject: Subject, rows: IntArray) -> np.ndarray:
    """Return which rows are below the threshold of typicality."""
    is_flagged = subject.typicality < subject.threshold
    return np.isin(rows, subject.scored[is_flagged])


def _ringed(findings: Findings) -> str:
    if not findings.subject.has_classes:
        return ""
    return (
        " Small dark points are rows that the model as fitted predicts wrongly; rows "
        "without a label are drawn by their predicted class."
    )
