"""How the model and others do when cells of the rows to predict are hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.inspection import missing_feature_curve
from hybridmix.reporting.charts import Series, line_chart
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    alike,
    figure,
    figures,
    fixed,
    paragraph,
    percent,
    table,
)
from hybridmix.reporting.subject import Subject
from hybridmix.reporting.wording import drawn_from, hides, scored_rows
from hybridmix.tasks.base import quiet
from hybridmix.tasks.trials import Contender, Trial

# Scored rows that cells are hidden from, over all folds.
MAX_ROWS = 1000
# By kind of target: the score that is drawn, and its name and sign in scikit-learn.
_SCORES = {
    "classes": ("accuracy", "accuracy", 1.0),
    "numbers": ("RMSE", "neg_root_mean_squared_error", -1.0),
}
# Of ten rates, those that the table shows.
_TABULATED = (0, 3, 5, 7, 9)


def missing_section(findings: Findings) -> str:
    """Draw scores while more and more cells are hidden."""
    task = findings.subject.task
    name = _SCORES[task.target][0]
    curves = [
        _curve(findings.subject, trial, one, model)
        for trial, one, model in _compared(findings)
    ]
    rates = curves[0].rates
    has_unit = task.metric(name).has_unit
    written = alike(float(curves[0].mean[0])) if has_unit else fixed
    series = [
        Series(curve.name, 100.0 * rates, curve.mean, curve.band) for curve in curves
    ]
    picture = line_chart(
        series,
        description=f"{_capital(name)} on scored rows by the share of cells hidden",
        x_label="cells hidden, %",
        y_label=name,
        markers=True,
    )
    scores = table(
        f"{_capital(name)} by the share of cells hidden",
        ("model", *(percent(rates[k]) for k in _TABULATED)),
        [(curve.name, *(written(curve.mean[k]) for k in _TABULATED)) for curve in curves],
    )
    caption = f"Mean {name}"
    if any(curve.deviation is not None for curve in curves):
        caption += ", and its standard deviation over the folds"
    pictures = figures([figure(picture, f"{caption}."), scores])
    return paragraph(_explained(findings, len(curves))) + pictures


def _explained(findings: Findings, n_curves: int) -> str:
    """Say which rows the curves are about, and what is hidden from them."""
    text = (
        f"This is about {scored_rows(findings)}. Their cells are hidden completely at "
        "random, in addition to those that are missing already. No model is trained for "
        f"this: this one {hides(findings.subject.model)}."
    )
    if not findings.trial.is_retrained and n_curves > 1:
        text += " The other models are those of the cross-validation, on held-out rows."
    return f"{text} {drawn_from(findings.trial, MAX_ROWS)}".rstrip()


def _compared(findings: Findings) -> list[tuple[Trial, Contender, str]]:
    """Return the models to draw: this one, and others from the trial that has them."""
    trial, retrained = findings.trial, findings.retrained
    name = trial.ours.name if trial.is_retrained else f"{trial.ours.name} as fitted"
    found = [(trial, trial.ours, name)]
    if retrained is not None:
        found += [(retrained, one, one.name) for one in retrained.contenders[1:]]
    return found


@dataclass(frozen=True)
class _Curve:
    """Scores of one model at growing rates."""

    name: str
    rates: FloatArray
    mean: FloatArray
    deviation: FloatArray | None

    @property
    def band(self) -> tuple[FloatArray, FloatArray] | None:
        """One standard deviation around the mean."""
        if self.deviation is None:
            return None
        return self.mean - self.deviation, self.mean + self.deviation


def _curve(subject: Subject, trial: Trial, one: Contender, name: str) -> _Curve:
    parts = []
    _, scoring, sign = _SCORES[subject.task.target]
    for fold, model in enumerate(one.models):
        X, truth = trial.held(one, fold, MAX_ROWS)
        y = subject.task.given(subject.model, truth)
        # The same seed hides the same cells from all models.
        seed = subject.seed + fold
        with quiet():
            part = missing_feature_curve(
                model, X, y, n_repeats=1, random_state=seed, scoring=scoring
            )
        parts.append(part)
    scores = sign * np.array([part.scores[:, 0] for part in parts])
    deviation = scores.std(axis=0) if len(scores) > 1 else None
    return _Curve(name, parts[0].rates, scores.mean(axis=0), deviation)


def _capital(name: str) -> str:
    """Return the name of a score for the beginning of a sentence."""
    return name[0].upper() + name[1:]
