"""How good the model is: as fitted on rows it has not seen, and retrained by folds."""

from __future__ import annotations

import numpy as np

from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    Markup,
    count,
    element,
    note,
    paragraph,
    table,
)
from hybridmix.reporting.subject import Subject
from hybridmix.reporting.wording import SEVERAL, SINGLE, full_name, score_text
from hybridmix.tasks.base import Metric
from hybridmix.tasks.trials import Contender, Trial


def quality_section(findings: Findings) -> str:
    """Show scores, with those of other models where these could be trained."""
    parts = [paragraph(findings.subject.provenance.sentence)]
    if findings.remark:
        parts.append(note(findings.remark))
    for trial in findings.trials:
        parts.append(_score_table(findings, trial))
        parts += map(paragraph, _how(findings, trial))
    return "".join(parts)


def _score_table(findings: Findings, trial: Trial) -> str:
    metrics = findings.subject.task.metrics
    parts = [full_name(findings, trial), SEVERAL if trial.is_retrained else SINGLE]
    best: dict[str, float] = {}
    if len(trial.contenders) > 1:
        parts.append("the best of each column in bold")
        best = {metric.name: _best(trial, metric) for metric in metrics}
    rows = [
        [one.name, *(_score_cell(one, metric.name, best) for metric in metrics)]
        for one in trial.contenders
    ]
    names = [metric.name for metric in metrics]
    return table("; ".join(parts), ("model", *names), rows)


def _best(trial: Trial, metric: Metric) -> float:
    """Return the best mean; NaN, which nothing equals, where a fold has no score."""
    means = [one.mean(metric.name) for one in trial.contenders]
    return min(means) if metric.is_loss else max(means)


def _score_cell(one: Contender, metric: str, best: dict[str, float]) -> Markup:
    text = score_text(one, metric)
    is_best = one.mean(metric) == best.get(metric)
    return Markup(element("strong", text) if is_best else text)


# Explanations -------------------------------------------------------------------------


def _how(findings: Findings, trial: Trial) -> list[str]:
    """Explain how the figures came about."""
    if not trial.is_retrained:
        return _how_fitted(findings, trial)
    subject = findings.subject
    sentences = [_folds_sentence(subject, trial), *_exceptions(subject, trial)]
    result = [" ".join(sentences)]
    if findings.fitted is not None:
        result.append(
            "These models did not learn from the rows of the model as fitted, so compare "
            "them with each other, not with it."
        )
    if subject.baselines:
        result.append(_baseline_sentence(subject))
    return result


def _how_fitted(findings: Findings, trial: Trial) -> list[str]:
    sentences = [
        "Nothing was trained for these figures. If rows like these were drawn again and "
        "again, 95 of 100 such intervals would hold the score of all rows of that kind."
    ]
    if trial.n_used < trial.n_available:
        sentences.append(
            f"{trial.n_used:,} of {trial.n_available:,} rows were drawn at random."
        )
    n_others = findings.subject.n_rows - len(findings.subject.unseen)
    if n_others:
        sentences.append(
            f"{count(n_others, 'row')} of the table that were in training, or may have "
            "been, are left out."
        )
    return [" ".join(sentences)]


def _folds_sentence(subject: Subject, trial: Trial) -> str:
    shares = " that have about the same share of every class" * subject.has_classes
    kind = "labelled row" if subject.has_classes else "row"
    return (
        f"{count(len(trial.rows), kind)} were held out, each once, in "
        f"{count(trial.n_folds, 'fold')}{shares}. All models were trained on the "
        "other folds, this one with its own options."
    )


def _exceptions(subject: Subject, trial: Trial) -> list[str]:
    """Say how the folds differ from what one would expect."""
    n_single = int(np.sum(subject.class_counts == 1)) if subject.has_classes else 0
    found = {
        "Rows without a label are in every training set of this model.": (
            subject.has_classes and len(subject.labelled) < subject.n_rows
        ),
        f"{trial.n_used:,} of {subject.n_rows:,} rows took part, drawn at random.": (
            trial.n_used < subject.n_rows
        ),
        f"There are fewer folds than the {subject.n_folds} asked for, since no class "
        "has that many rows.": trial.n_folds < subject.n_folds,
        f"{count(n_single, 'class', 'classes')} with a single row cannot be held out.": (
            n_single > 0
        ),
        "The settings were chosen by a search that saw all rows, so the figures are a "
        "little too good.": subject.given is not subject.model,
        "In each fold, the choice of the model was repeated without the rows held out.": (
            subject.has_classes and hasattr(subject.model, "leaderboard_")
        ),
        "The folds keep the structure that was chosen from all rows, so the figures are "
        "a little too good.": (
            not subject.has_classes and bool(getattr(subject.model, "leaderboard_", []))
        ),
        "Training went on from another model, which has seen all rows; in the folds it "
        "starts from k-means instead.": hasattr(subject.model.init, "fit"),
    }
    return [sentence for sentence, applies in found.items() if applies]


def _baseline_sentence(subject: Subject) -> str:
    if not subject.has_classes:
        return (
            "The other model assumes independent columns: a normal distribution "
            "for each real one, and frequencies for the categories of the others."
        )
    return (
        "Logistic regression gets medians and most frequent categories for missing "
        "cells, scaled columns and one-hot categories; boosted trees (scikit-learn's "
        "HistGradientBoosting) take missing cells and categories as they are. Both have "
        "their default options, except for smaller leaves where labels are few, and "
        "learn from labelled rows only."
    )
