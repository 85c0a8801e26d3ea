"""How good the model is: as fitted on rows it has not seen, and retrained by folds."""

from __future__ import annotations

import numpy as np

from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    Markup,
    count,
    element,
    folded,
    note,
    paragraph,
    table,
)
from hybridmix.reporting.subject import Subject
from hybridmix.reporting.wording import SEVERAL, SINGLE, full_name, score_text
from hybridmix.tasks.base import Metric
from hybridmix.tasks.trials import Contender, Trial

# More scores than this, with their intervals, do not fit next to each other.
_MAX_ACROSS = 4


def quality_section(findings: Findings) -> str:
    """Show scores, with those of other models where these could be trained."""
    parts = [paragraph(findings.subject.provenance.sentence)]
    if findings.remark:
        parts.append(note(findings.remark))
    for trial in findings.trials:
        parts.append(_score_table(findings, trial))
        explained = "".join(map(paragraph, _how(findings, trial)))
        parts.append(folded("How these figures came about", explained))
    return "".join(parts)


def _score_table(findings: Findings, trial: Trial) -> str:
    metrics = findings.subject.task.metrics
    parts = [full_name(findings, trial), SEVERAL if trial.is_retrained else SINGLE]
    if len(trial.contenders) == 1 and len(metrics) > _MAX_ACROSS:
        lines = [(metric.name, score_text(trial.ours, metric)) for metric in metrics]
        return table("; ".join(parts), ("score", trial.ours.name), lines)
    best = {metric.name: _best(trial, metric) for metric in metrics}
    if len(trial.contenders) > 1:
        parts.append("the best of each column in bold")
    rows = [
        [one.name, *(_score_cell(one, metric, best) for metric in metrics)]
        for one in trial.contenders
    ]
    names = [metric.name for metric in metrics]
    return table("; ".join(parts), ("model", *names), rows)


def _best(trial: Trial, metric: Metric) -> float:
    """Return the best mean; NaN, which nothing equals, if there are no two of them."""
    return metric.best([one.mean(metric.name) for one in trial.contenders])


def _score_cell(one: Contender, metric: Metric, best: dict[str, float]) -> Markup:
    text = score_text(one, metric)
    is_best = one.mean(metric.name) == best[metric.name]
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
            f"These models did not learn from the {subject.task.unit}s of the model as "
            "fitted, so compare them with each other, not with it."
        )
    if subject.baselines:
        result.append(subject.task.others)
    return result


def _how_fitted(findings: Findings, trial: Trial) -> list[str]:
    unit = findings.subject.task.unit
    units = f"{unit}s"
    sentences = [
        f"Nothing was trained for these figures. If {units} like these were drawn again "
        f"and again, 95 of 100 such intervals would hold the score of all {units} of "
        "that kind."
    ]
    if trial.n_used < trial.n_available:
        sentences.append(
            f"{trial.n_used:,} of {trial.n_available:,} {units} were drawn at random."
        )
    n_others = findings.subject.n_rows - len(findings.subject.unseen)
    if n_others:
        sentences.append(
            f"{count(n_others, unit)} of the table that were in training, or may have "
            "been, are left out."
        )
    return [" ".join(sentences)]


def _folds_sentence(subject: Subject, trial: Trial) -> str:
    shares = " that have about the same share of every class" * subject.has_classes
    return (
        f"{count(len(trial.rows), *subject.task.row)} were held out, each once, in "
        f"{count(trial.n_folds, 'fold')}{shares}. All models were trained on the "
        "other folds, this one with its own options."
    )


def _exceptions(subject: Subject, trial: Trial) -> list[str]:
    """Say how the folds differ from what one would expect."""
    unit = subject.task.unit
    searched = bool(getattr(subject.model, "leaderboard_", []))
    n_single = int(np.sum(subject.class_counts == 1)) if subject.has_classes else 0
    found = {
        f"{unit.capitalize()}s without a "
        f"{'label' if subject.has_classes else 'target'} are in every "
        "training set of this model.": len(subject.known) < subject.n_rows,
        f"{trial.n_used:,} of {subject.n_rows:,} {unit}s took part, drawn at random.": (
            trial.n_used < subject.n_rows
        ),
        f"There are fewer folds than the {subject.n_folds} asked for, since no class "
        f"has that many {unit}s.": subject.has_classes
        and trial.n_folds < subject.n_folds,
        f"{count(n_single, 'class', 'classes')} with a single {unit} cannot be held "
        "out.": n_single > 0,
        f"The settings were chosen by a search that saw all {unit}s, so the figures are "
        "a little too good.": subject.given is not subject.model,
        f"In each fold, the choice of the model was repeated without the {unit}s held "
        "out.": (searched and subject.task.target != "none"),
        f"The folds keep the structure that was chosen from all {unit}s, so the figures "
        "are a little too good.": searched and subject.task.target == "none",
        "Training went on from another model, which has seen all rows; in the folds it "
        "starts from k-means instead.": hasattr(
            getattr(subject.model, "init", None), "fit"
        ),
    }
    return [sentence for sentence, applies in found.items() if applies]
