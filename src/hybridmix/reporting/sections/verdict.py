"""What to make of the model, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix.metrics import COVERAGE, means_of, regression_scores
from hybridmix.reporting.advice import Advice, advice
from hybridmix.reporting.comparisons import (
    Calibration,
    Comparison,
    best_rival,
    compared,
    score_of,
)
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.limits import limits, listed
from hybridmix.reporting.markup import code, element, escape, fixed, number, percent
from hybridmix.reporting.wording import scored_rows

# From these shares of what could be gained on, a model is said to be better and far
# better than one that knows nothing.
_CLEARLY, _FAR = 0.2, 0.6
_MAX_LIMITS = 4
# From this many rows on, an interval is narrow enough.
_MANY_ROWS = 2500


def verdict_section(findings: Findings) -> str:
    """Say how good the model is, how sure that is, what limits it, and what to try."""
    items = [("How good", list(map(_how_good, findings.parts)))]
    if findings.trials:
        items += [
            ("Compared with others", _unique(map(_rivalry, findings.parts))),
            ("How sure", _unique(map(_how_sure, findings.parts))),
            (_TRUST[findings.subject.task.target], _trusts(findings)),
        ]
    mismatched = [own for own in findings.checks if not own.is_match]
    names = [findings.subject.names[own.column] for own in mismatched]
    limited = _unique(sentence for own in findings.parts for sentence in limits(own))
    limited = limited[:_MAX_LIMITS] + _mismatches(names)
    items.append(("What limits it", limited or ["Nothing stands out in the data."]))
    found = [
        element("dt", escape(name)) + element("dd", "".join(map(_line, lines)))
        for name, lines in items
        if any(lines)
    ]
    found.append(_next(advice(findings.parts[0], names)))
    return element("dl", "".join(found), class_="verdict")


_TRUST = {
    "classes": "Can probabilities be trusted",
    "numbers": "Can intervals be trusted",
    "none": "Can the density be trusted",
}


def _line(text: str) -> str:
    return element("p", escape(text)) if text else ""


def _unique(lines: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(line for line in lines if line))


# How good -----------------------------------------------------------------------------


def _how_good(findings: Findings) -> str:
    """Compare the model with one that knows nothing about the columns."""
    if not findings.trials:
        return findings.obstacle or ""
    subject, trial = findings.subject, findings.trial
    score = score_of(subject.task.target, trial.truth, trial.ours.outputs)
    if subject.has_classes:
        return _accuracy_text(findings, score)
    if subject.has_numbers:
        return _explained_text(findings)
    return _density_text(findings, score)


def _accuracy_text(findings: Findings, score: Estimate) -> str:
    subject, trial = findings.subject, findings.trial
    counts = np.bincount(trial.truth, minlength=len(subject.class_names))
    usual = float(counts.max()) / len(trial.truth)
    most = subject.class_names[int(counts.argmax())]
    return (
        f"{_grade(score, usual)}: it is right in {percent(score.value)} of new "
        f"{subject.task.unit}s. Always answering with the most frequent class, {most}, "
        f"would be right in {percent(usual)}."
    )


def _explained_text(findings: Findings) -> str:
    trial = findings.trial
    explained = regression_scores(trial.truth, trial.ours.outputs)["R²"]
    names = findings.subject.target_names
    error = trial.truth - means_of(trial.ours.outputs)
    what = "the target" if names == ("target",) else names[0]
    return (
        f"{_grade(explained, 0.0)}: it explains {percent(max(explained.value, 0.0))} of "
        f"the variance of {what} in new rows. Predictions are off by "
        f"{number(float(np.sqrt(np.mean(error**2))))} (root mean square); always "
        f"predicting the mean would be off by {number(float(trial.truth.std()))}."
    )


def _grade(score: Estimate, usual: float) -> str:
    """Say in words how much of what could be gained the model gains."""
    if score.low <= usual:
        return "Not clearly better than a constant answer"
    share = (score.value - usual) / (1.0 - usual) if usual < 1.0 else 0.0
    if share < _CLEARLY:
        return "A little better than a constant answer"
    return "Far better than a constant answer" if share >= _FAR else "Useful"


def _density_text(findings: Findings, score: Estimate) -> str:
    unit = findings.subject.task.unit
    metric = findings.subject.task.metrics[0].name
    found = compared(findings)
    if not found:
        return f"New {unit}s have a {metric} of {number(score.value)}."
    gain = found[0].gain
    if gain.low <= 0.0:
        return (
            f"Not clearly better than {found[0].name}, which do as well on new {unit}s."
        )
    return (
        f"It knows how the columns depend on each other: new {unit}s are denser than for "
        f"{found[0].name}, by {number(gain.value)} in the log density, with a 95 % "
        f"interval of {number(gain.low)} to {number(gain.high)}."
    )


# Others -------------------------------------------------------------------------------


def _rivalry(findings: Findings) -> str:
    """Compare the model with the best other one that learns from the columns."""
    rival = best_rival(findings) if findings.trials else None
    if rival is None or findings.subject.task.target == "none":
        return ""
    theirs = percent(max(rival.theirs, 0.0))
    who = f"{rival.name} ({theirs})"
    if findings.fitted is not None:
        who += ", with this model retrained on the same folds"
    if rival.gain.low > 0.0:
        return f"Better than the best other model, {who}, by {_points(rival)}."
    if rival.gain.high < 0.0:
        return f"Worse than the best other model, {who}, by {_points(rival, -1.0)}."
    if rival.gain.low == rival.gain.high:
        return (
            f"As good as the best other model, {who}: both score the same in every row."
        )
    return (
        f"As good as the best other model, {who}: the difference of "
        f"{_points(rival)} may be chance."
    )


def _points(rival: Comparison, sign: float = 1.0) -> str:
    """Write a gain, or a loss, in points of a hundred."""
    ends = sorted(sign * end for end in (rival.gain.low, rival.gain.high))
    value, low, high = (fixed(100.0 * end, 1) for end in (sign * rival.gain.value, *ends))
    return f"{value} points (95 % interval {low} to {high})"


# How sure -----------------------------------------------------------------------------


def _how_sure(findings: Findings) -> str:
    """Say what interval the main score has, and what it is computed from."""
    if not findings.trials or findings.subject.task.target == "none":
        return ""
    subject, trial = findings.subject, findings.trial
    score = score_of(subject.task.target, trial.truth, trial.ours.outputs)
    name = "accuracy"
    if subject.has_numbers:
        name = "share of the variance"
        score = regression_scores(trial.truth, trial.ours.outputs)["R²"]
    low, high = (percent(max(end, 0.0)) for end in (score.low, score.high))
    # Half an interval takes four times the rows.
    units = f"{subject.task.unit}s"
    wide = len(trial.rows) < _MANY_ROWS
    more = f" Four times as many {units} would halve this interval." if wide else ""
    return (
        f"With 95 % confidence, this {name} is between {low} and {high}, judged by "
        f"{scored_rows(findings)}.{more}"
    )


def _trusts(findings: Findings) -> list[str]:
    target = findings.subject.task.target
    parts = [own for own in findings.parts if own.trials]
    if target == "classes":
        return [_probability_text(Calibration.of(findings.trial))]
    if target == "numbers":
        return _unique(map(_coverage_text, parts))
    return _density_trust(findings)


def _probability_text(found: Calibration) -> str:
    error = f"expected calibration error {fixed(found.error)}"
    if found.is_fine:
        return (
            f"Yes: they are as often right as they say ({error}, where chance alone "
            f"makes {fixed(found.by_chance)})."
        )
    said, was = percent(found.confidence), percent(found.accuracy)
    how = "too sure" if found.confidence > found.accuracy else "not sure enough"
    return (
        f"Not as they are: the model is {how} of itself. It says {said} on average and "
        f"is right in {was} ({error}, where chance alone makes {fixed(found.by_chance)})."
    )


def _coverage_text(findings: Findings) -> str:
    coverage = regression_scores(findings.trial.truth, findings.trial.ours.outputs)[
        "coverage"
    ]
    held = (
        f"intervals of 90 % hold {percent(coverage.value)} of the targets (95 % interval "
        f"{percent(coverage.low)} to {percent(coverage.high)})"
    )
    if coverage.low <= COVERAGE <= coverage.high:
        return f"Yes: {held}."
    how = "narrow" if coverage.high < COVERAGE else "wide"
    return f"Not quite: {held}, so they are too {how}."


def _density_trust(findings: Findings) -> list[str]:
    checks = findings.checks
    if not checks:
        return []
    n_matched = sum(own.is_match for own in checks)
    return [
        f"{n_matched} of {len(checks)} columns are distributed as the model says; see "
        "the fit of the columns."
    ]


# Limits and advice --------------------------------------------------------------------


def _mismatches(names: list[str]) -> list[str]:
    if not names:
        return []
    verb = "is" if len(names) == 1 else "are"
    return [
        f"The model misses how {listed(names)} {verb} distributed: see the fit of the "
        "columns."
    ]


def _next(following: list[Advice]) -> str:
    """List what to try; nothing if there is nothing."""
    if not following:
        return ""
    found = [
        element("li", escape(own.text) + (code(own.code) if own.code else ""))
        for own in following
    ]
    listing = element("dd", element("ol", "".join(found)))
    return element("dt", "What to try next") + listing
