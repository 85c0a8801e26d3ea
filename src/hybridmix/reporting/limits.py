"""What in the data keeps a model from being better, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._text import shortened
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import UNLABELLED
from hybridmix.data.stand_ins import stand_ins
from hybridmix.data.suspects import names_groups
from hybridmix.metrics import means_of
from hybridmix.reporting.comparisons import row_scores
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import count, percent
from hybridmix.reporting.sequence_subject import SequenceSubject
from hybridmix.reporting.subject import Subject, observed_cells
from hybridmix.tasks.base import quiet
from hybridmix.tasks.trials import Trial

# A class of fewer rows is known only roughly, and a column needs a few rows of its own.
FEW_ROWS = 20
_FEW_PER_COLUMN = 5
# Shares of the rows from which on a class makes accuracy look good by itself.
MOSTLY = 0.8
# A most probable class of less than this is a guess between two.
_UNSURE = 0.6
_MANY_UNSURE = 0.05
# Labels of a lower probability are looked at again.
UNLIKELY = 0.05
_FEWEST_UNLIKELY = 3
# A pair of classes that makes up this share of the errors is named.
_MAIN_ERROR = 0.2
_FEWEST_ERRORS = 5
# Holes below this share of the cells hardly matter.
_FEW_HOLES = 0.05
_MANY_UNLABELLED = 0.5
# So many of the rows make up half of the squared error, if a few decide it.
_FEW_DECIDE = 0.05


def limits(findings: Findings) -> list[str]:
    """Return sentences about what limits the model, the most telling first."""
    found = [*_column_limits(findings.subject)]
    if findings.trials and findings.subject.has_classes:
        found += _class_limits(findings)
    if findings.trials and findings.subject.has_numbers:
        found += _number_limits(findings.trial)
    found += _size_limits(findings.subject)
    if findings.trials:
        found += _hole_limits(findings)
    return found


def listed(names: list[str]) -> str:
    """Name the first three, and say how many others there are."""
    shown = ", ".join(shortened(name, 50) for name in names[:3])
    n_others = len(names) - 3
    return f"{shown} and {count(n_others, 'other')}" if n_others > 0 else shown


def groups_of(subject: Subject) -> list[str]:
    """Return the columns that name groups of rows, all of which have the same label."""
    if subject.task.unit != "row" or not subject.has_classes:
        return []
    names = subject.class_names
    labels = [None if code == UNLABELLED else names[code] for code in subject.truth]
    return [
        subject.names[column]
        for column in subject.schema.categorical
        if names_groups(subject.columns.values(column), labels)
    ]


def stand_ins_of(subject: Subject) -> dict[str, list[int]]:
    """Return numbers that probably stand for missing values, by their columns."""
    if subject.task.unit != "row":
        return {}
    found = {
        subject.names[column]: list(stand_ins(subject.values(column)))
        for column in subject.schema.real
    }
    return {name: marks for name, marks in found.items() if marks}


def unlikely_labels(trial: Trial) -> IntArray:
    """Return places of scored rows whose labels have hardly any probability."""
    own = trial.ours.outputs[np.arange(len(trial.truth)), trial.truth]
    order = np.argsort(own, kind="stable")
    return order[own[order] < UNLIKELY]


def has_wrong_labels(trial: Trial) -> bool:
    """Return whether more labels are unlikely than right probabilities let expect."""
    expected = 2.0 * _expected_unlikely(trial.ours.outputs)
    return len(unlikely_labels(trial)) >= max(_FEWEST_UNLIKELY, expected)


def few_of(subject: Subject) -> list[str]:
    """Return the classes that have few labelled rows."""
    pairs = zip(subject.class_names, subject.class_counts.tolist(), strict=True)
    return [name for name, n in pairs if n < FEW_ROWS]


# Columns ------------------------------------------------------------------------------


def _column_limits(subject: Subject) -> Iterator[str]:
    """Name columns that are not what the model takes them for."""
    for name in groups_of(subject):
        yield (
            f"All rows with the same {name} have the same label, so the model may have "
            f"learned the names by heart. If new rows have another {name}, all these "
            "figures are too good."
        )
    found = [
        f"{' and '.join(map(str, marks))} in {shortened(name, 30)}"
        for name, marks in stand_ins_of(subject).items()
    ]
    if found:
        yield (
            f"Some numbers are far from all others: {listed(found)}. If they mean "
            "missing, the model has taken them for numbers."
        )


# Classes ------------------------------------------------------------------------------


def _class_limits(findings: Findings) -> Iterator[str]:
    subject, trial = findings.subject, findings.trial
    unit, proba = subject.task.unit, trial.ours.outputs
    right = proba.argmax(axis=1) == trial.truth
    is_unsure = proba.max(axis=1) < _UNSURE
    if _MANY_UNSURE * len(right) <= is_unsure.sum() < len(right):
        yield (
            f"{percent(float(is_unsure.mean()))} of the {unit}s lie between classes: the "
            f"most probable one has less than {percent(_UNSURE)}. The model is right in "
            f"{percent(float(right[is_unsure].mean()))} of these, and in "
            f"{percent(float(right[~is_unsure].mean()))} of the others."
        )
    yield from _main_error(subject, trial)
    if has_wrong_labels(trial):
        n_unlikely, expected = len(unlikely_labels(trial)), _expected_unlikely(proba)
        yield (
            f"{count(n_unlikely, unit)} have a label that the model gives less than "
            f"{percent(UNLIKELY)}; by its probabilities, one would expect "
            f"{max(round(expected), 1)}. Some labels may be wrong, or a column that "
            "explains them is not in the table. They are listed under the errors."
        )
    yield from _contradictions(subject)
    largest = int(subject.class_counts.argmax())
    share = subject.class_counts[largest] / max(len(subject.known), 1)
    if share >= MOSTLY:
        yield (
            f"{percent(float(share))} of the labels are {subject.class_names[largest]}, "
            "so a high accuracy says little: look at the balanced accuracy."
        )


def _main_error(subject: Subject, trial: Trial) -> Iterator[str]:
    """Name the two classes that are confused most often."""
    predicted = trial.ours.outputs.argmax(axis=1)
    wrong = predicted != trial.truth
    if wrong.sum() < _FEWEST_ERRORS or len(subject.class_names) == 2:
        return
    pairs = np.sort(np.stack([trial.truth[wrong], predicted[wrong]], axis=1), axis=1)
    kinds, counts = np.unique(pairs, axis=0, return_counts=True)
    most = int(counts.argmax())
    share = counts[most] / wrong.sum()
    if share >= _MAIN_ERROR:
        first, second = (shortened(subject.class_names[k], 40) for k in kinds[most])
        yield (
            f"{counts[most]:,} of {wrong.sum():,} errors ({percent(float(share))}) "
            f"confuse {first} with {second}."
        )


def _expected_unlikely(proba: FloatArray) -> float:
    """Return how many labels below `UNLIKELY` right probabilities would have."""
    return float(np.where(proba < UNLIKELY, proba, 0.0).sum())


def _contradictions(subject: Subject) -> Iterator[str]:
    """Say how many equal rows have different labels, which no model can get right."""
    known = subject.known
    if subject.task.unit != "row" or len(known) == 0:
        return
    cells = np.column_stack([subject.table.real[known], subject.table.codes[known]])
    _, rows = np.unique(np.nan_to_num(cells, nan=np.inf), axis=0, return_inverse=True)
    n_classes = len(subject.class_names)
    flat = rows.reshape(-1) * n_classes + subject.truth[known]
    kinds, counts = np.unique(flat, return_counts=True)
    best = np.zeros(rows.max() + 1, dtype=counts.dtype)
    np.maximum.at(best, kinds // n_classes, counts)
    n_wrong = len(known) - int(best.sum())
    if n_wrong:
        most = percent(1.0 - n_wrong / len(known))
        yield (
            f"Rows that are equal in all columns have different labels: no model can be "
            f"right in more than {most} of these rows."
        )


# Numbers ------------------------------------------------------------------------------


def _number_limits(trial: Trial) -> Iterator[str]:
    squares = np.sort((trial.truth - means_of(trial.ours.outputs)) ** 2)[::-1]
    total = float(squares.sum())
    n_half = 1 + int(np.searchsorted(np.cumsum(squares), 0.5 * total))
    if total > 0.0 and n_half <= _FEW_DECIDE * len(squares):
        yield (
            f"{count(n_half, 'row')} of {len(squares):,} make up half of the squared "
            "error: a few targets are far from everything else, or wrong."
        )


# Size and holes -----------------------------------------------------------------------


def _size_limits(subject: Subject) -> Iterator[str]:
    task, n_known, n_columns = subject.task, len(subject.known), len(subject.names)
    if subject.has_classes and subject.y is not None:
        yield from _rare_classes(subject)
    if task.unit == "row" and 0 < n_known < _FEW_PER_COLUMN * n_columns:
        yield (
            f"There are {count(n_known, *task.row)} for {count(n_columns, 'column')}: "
            "with so few, simple models win, and more rows help most."
        )
    n_without = subject.n_rows - n_known
    if subject.y is not None and n_without > _MANY_UNLABELLED * subject.n_rows:
        kind = "label" if subject.has_classes else "target"
        yield f"{percent(n_without / subject.n_rows)} of the {task.unit}s have no {kind}."


def _rare_classes(subject: Subject) -> Iterator[str]:
    """Name the classes that have few labelled rows."""
    few = few_of(subject)
    if not few:
        return
    n_classes = count(len(subject.class_names), "class", "classes")
    yield (
        f"{len(few)} of {n_classes} have fewer than {FEW_ROWS} labelled "
        f"{subject.task.unit}s: {listed(few)}."
    )


def _hole_limits(findings: Findings) -> Iterator[str]:
    subject = findings.subject
    missing = 1.0 - float(subject.observed.mean())
    if missing < _FEW_HOLES or isinstance(subject, SequenceSubject):
        return
    sentence = f"{percent(missing)} of the cells are missing."
    loss = _loss_by_holes(findings)
    yield sentence if loss is None else f"{sentence} {loss}"


def _loss_by_holes(findings: Findings) -> str | None:
    """Say how much worse rows with many holes are predicted, if that is no accident."""
    target, trial = findings.subject.task.target, findings.trial
    if target == "none":
        return None
    shares = 1.0 - observed_cells_of(findings).mean(axis=1)
    has_many = shares > np.median(shares)
    scores = row_scores(target, trial.truth, trial.ours.outputs)
    if min(has_many.sum(), (~has_many).sum()) < FEW_ROWS:
        return None
    parts = [Estimate.of_values(scores[rows]) for rows in (has_many, ~has_many)]
    if parts[0].high >= parts[1].low:
        return None
    name = "right" if target == "classes" else "explained (R²)"
    many, few = (percent(max(part.value, 0.0)) for part in parts)
    return f"Rows with more holes than the median are {name} in {many}, others in {few}."


def observed_cells_of(findings: Findings) -> BoolArray:
    """Return which cells of the scored rows have a value, (n, d)."""
    from sklearn.utils import _safe_indexing

    trial = findings.trial
    with quiet():
        table = findings.subject.model._encode(_safe_indexing(trial.ours.X, trial.rows))
    return observed_cells(table)
