"""What changed during training."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.estimators.components import committee_of
from hybridmix.reporting.charts import MAX_SERIES, Series, line_chart
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    count,
    figure,
    figures,
    fixed,
    heading,
    note,
    number,
    paragraph,
    table,
)
from hybridmix.reporting.sections.leaderboard import leaderboard_part, members_part
from hybridmix.reporting.subject import Subject
from hybridmix.tasks import task_of

_TERMS = ("likelihood", "margin", "conditional")
_ERRORS = ("training_error", "validation_error")
_MAX_SETTINGS = 10


def training_section(findings: Findings) -> str:
    """Draw the traces of training, and the scores behind its choices."""
    subject = findings.subject
    traces = _traces(subject.model)
    if not hasattr(subject.model, "trace_"):
        parts = [
            note("The model was derived from another one and has no traces of training.")
        ]
    elif not traces:
        parts = [note("The classes were fitted one by one, so there is no common trace.")]
    else:
        parts = [paragraph(_ending(subject.model)), trace_figures(subject.model)]
    criteria = _criteria(subject)
    if criteria:
        parts.append(figures([_criterion_figure(criteria)]))
    if committee_of(subject.model) is not None:
        parts.insert(0, note("The traces are those of the density, not of the members."))
    if subject.has_numbers:
        parts.insert(0, note(_traced(subject.model)))
    parts += [members_part(subject.model), leaderboard_part(subject.model)]
    if subject.given is not subject.model:
        parts += [heading("Settings that were searched"), _settings_table(subject)]
    return "".join(parts)


def _traced(regressor: Any) -> str:
    traced = "The traces are those of the mixture that gives the density of the rows."
    if hasattr(regressor, "predictive_"):
        return f"{traced} Predictions are averaged over others as well."
    return f"{traced} The output layer was fitted after it."


def _ending(model: Any) -> str:
    if committee_of(model) is not None:
        # Whether it converged is known of the density and its members together.
        n_short = sum(not member.converged_ for member in model.members_)
        return (
            f"EM of the density took {count(model.n_iter_, 'iteration')}. Of the "
            f"{count(len(model.members_), 'member')}, {n_short} took as many steps as "
            "allowed, without reaching their optimum."
        )
    if hasattr(model, "stream_"):
        return (
            f"Online EM has learned from {count(model.n_iter_, 'batch', 'batches')}; "
            "traces show the likelihood of each, before it was learned from."
        )
    took = f"The last solver took {count(model.n_iter_, 'iteration')}"
    if not model.converged_:
        return f"{took}, the most it was allowed, without reaching its optimum."
    if "validation_error" in getattr(model, "history_", {}):
        return f"{took}, and the model with the fewest errors on held-out rows was kept."
    return f"{took} and met its tolerance."


def trace_figures(model: Any) -> str:
    """Draw the traces of training."""
    return figures(_trace_figure(title, own) for title, own in _traces(model).items())


def _traces(model: Any) -> dict[str, dict[str, FloatArray]]:
    """Return the traces that share a picture, by its title."""
    history = getattr(model, "history_", {"value": getattr(model, "trace_", [])})
    history = {name: trace for name, trace in history.items() if len(trace) > 1}
    if "value" not in history:
        return {}
    pictures = {
        f"Objective, mean per {task_of(model).unit}": {"objective": history["value"]}
    }
    pictures |= _term_traces(history)
    errors = {
        name.replace("_", " "): history[name] for name in _ERRORS if name in history
    }
    if errors:
        pictures["Share of wrong predictions"] = errors
    return pictures


def _term_traces(history: dict[str, FloatArray]) -> dict[str, dict[str, FloatArray]]:
    """Return the traces of the terms of an objective, if it has more than one."""
    terms = [name for name in _TERMS if name in history]
    if len(terms) < 2:
        return {}
    return {f"Its {name} term": {name: history[name]} for name in terms}


def _trace_figure(title: str, traces: dict[str, FloatArray]) -> str:
    is_share = "error" in next(iter(traces))
    highest = max(float(own.max()) for own in traces.values())
    picture = line_chart(
        [Series(name, np.arange(len(own)), own) for name, own in traces.items()],
        description=f"{title}, by iteration",
        x_label="iteration",
        whole_x=True,
        y_label=" and ".join(traces) if len(traces) == 1 else "error",
        # Shares are never negative, not even on an axis.
        y_limits=(0.0, max(1.05 * highest, 0.05)) if is_share else None,
        steps=is_share,
    )
    last = "; ".join(f"{name} {number(own[-1])}" for name, own in traces.items())
    return figure(picture, f"{title}; at the end: {last}.")


# Choices ------------------------------------------------------------------------------


def _criteria(subject: Subject) -> dict[str, dict[int, float]]:
    """Return the information criterion of each class by the number of components."""
    found: Any = getattr(subject.model, "bic_", [])
    listed = [found] if isinstance(found, dict) else found
    named = zip(subject.class_names, listed, strict=False)
    return {name: bic for name, bic in named if len(bic) > 1}


def _criterion_figure(criteria: dict[str, dict[int, float]]) -> str:
    shown = list(criteria.items())[:MAX_SERIES]
    series = []
    for name, bic in shown:
        values = np.array(list(bic.values()))
        series.append(Series(name, list(bic), values - values.min()))
    picture = line_chart(
        series,
        description="Bayesian information criterion by the number of components",
        x_label="components",
        whole_x=True,
        y_label="BIC above its least",
        markers=True,
    )
    return figure(
        picture,
        "Bayesian information criterion by the number of components; the number with the "
        "lowest value was chosen.",
    )


def _settings_table(subject: Subject) -> str:
    results = subject.given.cv_results_
    ranks = results["rank_test_score"]
    order = np.argsort(ranks, kind="stable")[:_MAX_SETTINGS]
    varied = [
        name
        for name in results["params"][0]
        if len({repr(params[name]) for params in results["params"]}) > 1
    ]
    rows = [
        (
            str(ranks[k]),
            *(str(results["params"][k][name]) for name in varied),
            f"{fixed(results['mean_test_score'][k])} ± "
            f"{fixed(results['std_test_score'][k])}",
        )
        for k in order
    ]
    n_settings = len(ranks)
    return table(
        f"The best {len(order)} of {count(n_settings, 'setting')}, by their mean score "
        f"over {count(subject.given.n_splits_, 'fold')}",
        ("rank", *varied, "score"),
        rows,
    )
