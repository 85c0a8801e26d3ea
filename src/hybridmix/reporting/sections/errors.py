"""Which classes are confused, and how far probabilities can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray, IntArray
from hybridmix.metrics import calibration_report
from hybridmix.reporting.charts import (
    MAX_SERIES,
    Series,
    histogram,
    line_chart,
)
from hybridmix.reporting.comparisons import n_bins_for
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.limits import UNLIKELY, unlikely_labels
from hybridmix.reporting.markup import (
    NONE,
    Markup,
    figure,
    figures,
    fixed,
    folded,
    heading,
    paragraph,
    percent,
    table,
    tinted,
)
from hybridmix.reporting.subject import Subject
from hybridmix.reporting.wording import scored_rows
from hybridmix.tasks.trials import Trial

# With more classes, a cell has room for its count only.
_MAX_SHARES = 8
# With more than this, a table of all pairs would be megabytes that nobody reads.
_MAX_CONFUSED = 50
_MAX_ERRORS = 20
_MAX_LABELS = 20
_PALEST = 0.2


def errors_section(findings: Findings) -> str:
    """Show the confusion of classes, curves of thresholds, and calibration."""
    subject, trial = findings.subject, findings.trial
    parts = [
        paragraph(f"All of this is about {scored_rows(findings)}."),
        heading("Confusion of classes"),
    ]
    if len(subject.class_names) <= _MAX_CONFUSED:
        parts.append(_confusion_table(subject, trial))
    if len(subject.class_names) > _MAX_SHARES:
        parts.append(_frequent_errors(subject, trial))
    parts += [heading("Curves and calibration"), _curves(subject, trial)]
    parts.append(_labels_to_check(subject, trial))
    return "".join(parts)


def confusion(trial: Trial, n_classes: int) -> IntArray:
    """Count scored rows by class (rows) and by predicted class (columns)."""
    predicted = trial.ours.outputs.argmax(axis=1)
    flat = trial.truth * n_classes + predicted
    return np.bincount(flat, minlength=n_classes**2).reshape(n_classes, n_classes)


def _confusion_table(subject: Subject, trial: Trial) -> str:
    names = subject.class_names
    counts = confusion(trial, len(names))
    totals = counts.sum(axis=1)
    shares = counts / np.maximum(totals, 1)[:, None]
    has_room = len(names) <= _MAX_SHARES
    rows = [
        [
            name,
            *_confusion_cells(k, counts[k], shares[k], has_room),
            f"{totals[k]:,}",
            percent(shares[k, k]) if totals[k] else NONE,
        ]
        for k, name in enumerate(names)
    ]
    return table(
        f"Scored {subject.task.unit}s by class (lines) and predicted class (columns)"
        + ("; in brackets the share of the line" if has_room else ""),
        ("class", *(_predicted_as(name, has_room) for name in names), "all", "right"),
        rows,
        class_="confusion",
        frame="" if has_room else "heat",
    )


def _confusion_cells(
    own: int, counts: IntArray, shares: FloatArray, has_room: bool
) -> Iterator[Markup]:
    """Write a line of the table of confusion."""
    for other, (n, share) in enumerate(zip(counts, shares, strict=True)):
        text = f"{n:,}" if has_room or n else "·"
        text += f" ({percent(share)})" if has_room and n else ""
        kind = "right" if own == other else "wrong" if n else "none"
        # Single errors among many classes would be too pale to be seen.
        strength = max(share, _PALEST) if kind == "wrong" else share
        yield tinted(text, strength, f"tint {kind}")


def _predicted_as(name: str, has_room: bool) -> str:
    return f"as {name}" if has_room else shortened(name, 12)


def _frequent_errors(subject: Subject, trial: Trial) -> str:
    """List the errors that are made most often, which many classes hide in a table."""
    names = subject.class_names
    wrong = confusion(trial, len(names))
    totals = wrong.sum(axis=1)
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_ERRORS]
    pairs = np.column_stack(np.unravel_index(order, wrong.shape)).tolist()
    rows = [
        (
            names[k],
            names[other],
            f"{wrong[k, other]:,}",
            percent(wrong[k, other] / totals[k]),
        )
        for k, other in pairs
        if wrong[k, other]
    ]
    if not rows:
        return paragraph(f"No {subject.task.unit} was mistaken for another class.")
    header = ("class", "mistaken for", f"{subject.task.unit}s", "share of the class")
    errors = table("The most frequent errors", header, rows, text_columns=(0, 1))
    return folded("The most frequent errors", errors)


def _labels_to_check(subject: Subject, trial: Trial) -> str:
    """List rows whose labels the model hardly believes, folded."""
    places = unlikely_labels(trial)
    if len(places) == 0:
        return ""
    rows = []
    for k in places[:_MAX_LABELS].tolist():
        proba, label = trial.ours.outputs[k], int(trial.truth[k])
        best = int(proba.argmax())
        rows.append(
            (
                subject.row_name(int(trial.table_rows[k])),
                subject.class_names[label],
                percent(float(proba[label])),
                subject.class_names[best],
                percent(float(proba[best])),
            )
        )
    unit = subject.task.unit
    listed = table(
        f"{unit.capitalize()}s whose label has a probability below {percent(UNLIKELY)}, "
        f"the least probable first ({len(rows)} of {len(places)})",
        (unit, "label", "its probability", "predicted", "its probability"),
        rows,
        text_columns=(0, 1, 3),
    )
    return folded(f"Labels to check ({len(places)})", listed)


def _curves(subject: Subject, trial: Trial) -> str:
    from sklearn.metrics import auc, precision_recall_curve, roc_curve

    shown, which = _curves_shown(subject, trial)
    roc, precision_recall = [], []
    for k in shown:
        is_class, score = trial.truth == k, trial.ours.outputs[:, k]
        fpr, tpr, _ = roc_curve(is_class, score)
        precision, recall, _ = precision_recall_curve(is_class, score)
        name = subject.class_names[k]
        roc.append(Series(f"{name}: area {fixed(auc(fpr, tpr))}", fpr, tpr))
        # From left to right; the last point is a convention, not a threshold.
        precision_recall.append(Series(name, recall[:-1][::-1], precision[:-1][::-1]))
    area = f", with area {fixed(auc(roc[0].x, roc[0].y))}" if len(roc) == 1 else ""
    unit = (-0.02, 1.02)
    pictures = [
        figure(
            line_chart(
                roc,
                description=f"ROC curve {which}{area}",
                x_label="false positive rate",
                y_label="true positive rate",
                x_limits=unit,
                y_limits=unit,
                diagonal=True,
            ),
            f"ROC curve {which}{area}. Dotted: by chance.",
        ),
        _reliability(subject, trial),
        figure(
            histogram(
                trial.ours.outputs.max(axis=1),
                description="Histogram of the probability of the most probable class",
                x_label="probability of the most probable class",
                unit=subject.task.unit,
            ),
            "How sure the model is of its predictions.",
        ),
    ]
    precision_figure = figure(
        line_chart(
            precision_recall,
            description=f"Precision and recall {which}",
            x_label="recall",
            y_label="precision",
            x_limits=unit,
            y_limits=unit,
        ),
        f"Precision and recall {which}.",
    )
    return figures(pictures) + folded("Precision and recall", figures([precision_figure]))


def _curves_shown(subject: Subject, trial: Trial) -> tuple[list[int], str]:
    """Return the classes that curves are drawn for, and how to speak of them."""
    names = subject.class_names
    if len(names) == 2:
        # The curve of the other class is its mirror image.
        return [1], f"of class {names[1]}"
    counts = np.bincount(trial.truth, minlength=len(names))
    order = np.argsort(-counts, kind="stable")[:MAX_SERIES]
    shown = sorted(k for k in order.tolist() if counts[k])
    which = "of each class against all others"
    if len(shown) < np.sum(counts > 0):
        which += f", for the {len(shown)} most frequent classes"
    return shown, which


def _reliability(subject: Subject, trial: Trial) -> str:
    classes = subject.model.classes_
    report = calibration_report(
        classes[trial.truth], trial.ours.outputs, classes, n_bins_for(trial)
    )
    unit = (-0.02, 1.02)
    picture = line_chart(
        [
            Series(
                f"{subject.task.unit}s in the bin",
                report.confidence,
                report.bin_accuracy,
                weights=report.bin_counts,
            )
        ],
        description="How often the most probable class is right, by its probability",
        x_label="probability of the most probable class",
        y_label="how often it is right",
        x_limits=unit,
        y_limits=unit,
        diagonal=True,
        lines=False,
        markers=True,
    )
    return figure(
        picture,
        f"Reliability. Expected calibration error {fixed(report.calibration_error)}, "
        f"Brier score {fixed(report.brier_score)}. On the dotted line, probabilities are "
        f"as they should be. The larger a point, the more {subject.task.unit}s it stands "
        "for.",
    )
