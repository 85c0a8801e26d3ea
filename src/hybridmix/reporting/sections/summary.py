"""What the model is and how good it is, in a few figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix.data.fingerprint import Origin
from hybridmix.estimators.components import committee_of
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    code,
    count,
    key_figures,
    paragraph,
    percent,
)
from hybridmix.reporting.subject import Subject
from hybridmix.reporting.wording import (
    SEVERAL,
    SINGLE,
    full_name,
    score_number,
    score_text,
    short_name,
)
from hybridmix.tasks.trials import Trial
from hybridmix.training.covariances import covariance_type_of


def summary_section(findings: Findings) -> str:
    """Say what the model is and how it does."""
    subject = findings.subject
    parts = [paragraph(_model_sentence(subject)), key_figures(_figures(findings))]
    parts.append(paragraph(subject.provenance.sentence))
    for own in findings.parts:
        parts += [paragraph(result_sentence(own, trial)) for trial in own.trials]
    parts.append(code(option_text(subject.given)))
    if subject.given is not subject.model:
        parts.append(paragraph("The search chose:"))
        parts.append(code(option_text(subject.model)))
    return "".join(parts)


def option_text(model: Any) -> str:
    """Write a model with the options that differ from their defaults."""
    return model.__repr__(N_CHAR_MAX=2000)


def _model_sentence(subject: Subject) -> str:
    model = subject.model
    name = type(model).__name__
    n_components = int(np.sum(model.n_components_))
    parts = [count(n_components, "component")]
    if subject.has_classes:
        parts.append(f"for {count(len(subject.class_names), 'class', 'classes')}")
    if subject.schema.real:
        covariance_type = covariance_type_of(model.model_.family) or model.covariance_type
        parts.append(f"with covariances of type {covariance_type}")
    size = count(model.model_.n_parameters, "free parameter")
    if hasattr(model, "weights_") and subject.has_numbers:
        n_weights = count(model.weights_.size, "weight")
        return (
            f"{name} {model.purpose}. This one has an output layer of {n_weights}, on a "
            f"mixture that has {' '.join(parts)}, and {size}."
        )
    if subject.has_numbers:
        n_averaged = count(len(model.predictive_.members), "mixture")
        return (
            f"{name} {model.purpose}. This one averages the predictions of {n_averaged}. "
            f"Its density of the rows has {' '.join(parts)}, and {size}."
        )
    committee = committee_of(model)
    if committee is None:
        has = f"This one has {' '.join(parts)}, and {size} in all."
        return f"{name} {model.purpose}. {has}"
    return (
        f"{name} {model.purpose}. This one is a committee of "
        f"{count(len(committee.members), 'mixture')}, which votes on the class, and a "
        f"density of the rows, which has {' '.join(parts)}, and {size}."
    )


def _figures(findings: Findings) -> list[tuple[str, str]]:
    subject = findings.subject
    pairs = score_figures(findings)
    pairs.append(("rows", f"{subject.n_rows:,}"))
    pairs.append(("columns", f"{len(subject.names)}"))
    if subject.has_classes:
        pairs.append(("classes", f"{len(subject.class_names)}"))
    pairs.append(("cells missing", percent(1.0 - float(subject.observed.mean()))))
    if subject.y is not None:
        kind = "labels" if subject.has_classes else "targets"
        missing = 1.0 - len(subject.known) / subject.n_rows
        pairs.append((f"{kind} missing", percent(missing)))
    flagged = float(np.mean(subject.typicality < subject.threshold))
    pairs.append(("unusual rows", percent(flagged)))
    return pairs


def score_figures(findings: Findings) -> list[tuple[str, str]]:
    """Return the most telling scores of the trials that say most."""
    task = findings.subject.task
    return [
        (
            f"{name}{_of_which(own)}, {short_name(own, trial)}",
            score_number(task.metric(name))(trial.ours.mean(name)),
        )
        for own in findings.parts
        for trial in _summarised(own)
        for name in task.headline
    ]


def _of_which(findings: Findings) -> str:
    """Name the target of a regressor, if it has a name."""
    subject = findings.subject
    if not subject.has_numbers or subject.target_names == ("target",):
        return ""
    return f" of {subject.target_names[0]}"


def _summarised(findings: Findings) -> list[Trial]:
    """Return the trial that says most; both where neither does without the other."""
    is_doubtful = findings.subject.provenance.origin == Origin.UNKNOWN
    return findings.trials if is_doubtful else findings.trials[:1]


def result_sentence(findings: Findings, trial: Trial) -> str:
    """Say in a sentence how the model does, and others on the same rows."""
    task = findings.subject.task
    metric = task.metric(task.headline[0])
    uncertainty = SEVERAL if trial.is_retrained else SINGLE
    sentence = (
        f"{full_name(findings, trial)}: {metric.name}{_of_which(findings)} "
        f"{score_text(trial.ours, metric)}, "
        f"{uncertainty}"
    )
    others = [
        f"{other.name} {score_text(other, metric)}" for other in trial.contenders[1:]
    ]
    return f"{sentence}; {', '.join(others)}." if others else f"{sentence}."
