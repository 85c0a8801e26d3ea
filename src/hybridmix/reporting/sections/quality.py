"""How good the model is on rows that it has not seen, beside others."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    Markup,
    count,
    element,
    fixed,
    paragraph,
    table,
)
from hybridmix.reporting.subject import Subject
from hybridmix.reporting.validation import METRICS, Contender, Validation


def quality_section(findings: Findings) -> str:
    """Compare the model with others on the same folds."""
    subject, validation = findings.subject, findings.held_out
    return "".join(
        [
            _score_table(validation),
            *(paragraph(text) for text in _how(subject, validation)),
        ]
    )


def _score_table(validation: Validation) -> str:
    caption = f"Means and standard deviations over {count(validation.n_folds, 'fold')}"
    best: dict[str, float] = {}
    if len(validation.contenders) > 1:
        caption += "; the best of each column in bold"
        best = {metric: _best(validation, metric) for metric in METRICS}
    rows = [
        [one.name, *(_score_cell(one, metric, best) for metric in METRICS)]
        for one in validation.contenders
    ]
    return table(caption, ("model", *METRICS), rows)


def _best(validation: Validation, metric: str) -> float:
    """Return the best mean; NaN, which nothing equals, where a fold has no score."""
    means = [float(one.scores[metric].mean()) for one in validation.contenders]
    return min(means) if metric == "log loss" else max(means)


def _score_cell(one: Contender, metric: str, best: dict[str, float]) -> Markup:
    scores = one.scores[metric]
    text = f"{fixed(float(scores.mean()))} ± {fixed(_deviation(scores))}"
    is_best = scores.mean() == best.get(metric)
    return Markup(element("strong", text) if is_best else text)


def _deviation(scores: FloatArray) -> float:
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else float("nan")


def _how(subject: Subject, validation: Validation) -> list[str]:
    """Explain how the figures came about."""
    sentences = [
        f"{count(len(validation.rows), 'labelled row')} were held out, each once, in "
        f"{count(validation.n_folds, 'fold')} that have about the same share of every "
        "class. All models were trained anew on the other folds, this one with its own "
        "options."
    ]
    if len(subject.labelled) < subject.n_rows:
        sentences.append("Rows without a label are in every training set of this model.")
    if validation.n_used < subject.n_rows:
        sentences.append(
            f"{validation.n_used:,} of {subject.n_rows:,} rows took part, drawn at "
            "random."
        )
    if validation.n_folds < subject.n_folds:
        sentences.append(
            f"There are fewer folds than the {subject.n_folds} asked for, since no class "
            "has as many rows."
        )
    n_single = int(np.sum(subject.class_counts == 1))
    if n_single:
        sentences.append(
            f"{count(n_single, 'class', 'classes')} of a single row cannot be held out."
        )
    if subject.given is not subject.model:
        sentences.append(
            "The settings were chosen by a search that saw all rows, so that its figures "
            "are a little too good."
        )
    if not isinstance(subject.model.init, str):
        sentences.append(
            "The model went on from another one, which has seen all rows; in the folds "
            "it starts by k-means instead."
        )
    result = [" ".join(sentences)]
    if subject.baselines:
        result.append(
            "Logistic regression gets medians and most frequent categories for missing "
            "cells, scaled and one-hot columns; boosted trees (scikit-learn's "
            "HistGradientBoosting) take missing cells and categories as they are. Both "
            "have their default options, but for smaller leaves where labels are few, "
            "and learn from labelled rows only."
        )
    return result
