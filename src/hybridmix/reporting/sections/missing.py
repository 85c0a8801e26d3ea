"""How the model and others do when cells of a row to be classified are hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.inspection import missing_feature_curve
from hybridmix.reporting.charts import Series, line_chart
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    figure,
    figures,
    fixed,
    paragraph,
    percent,
    table,
)
from hybridmix.reporting.subject import Subject, quiet
from hybridmix.reporting.validation import Contender, Validation

# Held-out rows that cells are hidden from, over all folds.
MAX_ROWS = 1000
# Of ten rates, those that the table shows.
_TABULATED = (0, 3, 5, 7, 9)


def missing_section(findings: Findings) -> str:
    """Draw accuracies while more and more cells are hidden."""
    subject, validation = findings.subject, findings.held_out
    curves = [_curve(subject, validation, one) for one in validation.contenders]
    rates = curves[0].rates
    series = [
        Series(curve.name, 100.0 * rates, curve.mean, curve.deviation) for curve in curves
    ]
    picture = line_chart(
        series,
        description="Accuracy on held-out rows by the share of cells hidden from them",
        x_label="cells hidden, %",
        y_label="accuracy",
        markers=True,
    )
    scores = table(
        "Accuracy by the share of cells hidden",
        ("model", *(percent(rates[k]) for k in _TABULATED)),
        [(curve.name, *(fixed(curve.mean[k]) for k in _TABULATED)) for curve in curves],
    )
    text = (
        "Cells of held-out rows are hidden completely at random, beside those that are "
        "missing already, and from all models the same ones. No model is trained anew: "
        "this one marginalises what it does not see, exactly."
    )
    n_held = len(validation.rows)
    if n_held > MAX_ROWS:
        text += f" {MAX_ROWS:,} of {n_held:,} held-out rows serve for this."
    caption = "Mean accuracy, and its standard deviation over the folds."
    return paragraph(text) + figures([figure(picture, caption), scores])


@dataclass(frozen=True)
class _Curve:
    """Accuracies of one model at growing rates."""

    name: str
    rates: FloatArray
    mean: FloatArray
    deviation: FloatArray


def _curve(subject: Subject, validation: Validation, one: Contender) -> _Curve:
    parts = []
    for fold, model in enumerate(one.models):
        X, labels = validation.held(one, fold, MAX_ROWS)
        y = subject.model.classes_[labels]
        # The same seed hides the same cells from all models.
        seed = subject.seed + fold
        with quiet():
            part = missing_feature_curve(model, X, y, n_repeats=1, random_state=seed)
        parts.append(part)
    scores = np.array([part.scores[:, 0] for part in parts])
    return _Curve(
        one.name,
        parts[0].rates,
        scores.mean(axis=0),
        scores.std(axis=0),
    )
