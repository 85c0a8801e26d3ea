"""What to try next, with the code and the command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hybridmix.reporting.comparisons import Calibration, best_rival
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.limits import (
    MOSTLY,
    few_of,
    groups_of,
    has_wrong_labels,
    listed,
    stand_ins_of,
)
from hybridmix.reporting.subject import Subject

_FIT = "hybridmix fit train.csv --target NAME --output model.hmx"
_FIT_DENSITY = "hybridmix fit train.csv --output model.hmx"
_MOST = 3


class Advice(NamedTuple):
    """Something to try.

    Attributes
    ----------
    text : str
        What, and why.
    code : str
        How, in Python or in a shell; empty if no code does it.
    """

    text: str
    code: str = ""


def advice(findings: Findings, mismatched: list[str]) -> list[Advice]:
    """Return what to try next, the most promising first.

    Parameters
    ----------
    findings : Findings
        What is known about the model.
    mismatched : list of str
        Names of columns whose distribution the model misses.
    """
    found = [*_misread(findings.subject), *_search(findings)]
    found += [*_probabilities(findings), *_labels(findings)]
    found += _columns(findings.subject, mismatched)
    found += _rivals(findings)
    found += _rows(findings.subject)
    return found[:_MOST]


def _misread(subject: Subject) -> Iterator[Advice]:
    """Read columns as what they are."""
    marks = sorted({m for own in stand_ins_of(subject).values() for m in own})
    if marks:
        texts = list(map(str, marks))
        verb = "means" if len(marks) == 1 else "mean"
        yield Advice(
            f"If {' and '.join(texts)} {verb} missing, say so, and fit the model again.",
            f"X.replace({marks}, np.nan)\n{_command(subject)} --na {','.join(texts)}",
        )
    groups = groups_of(subject)
    if groups:
        yield Advice(
            f"Leave out {listed(groups)}, unless new rows have the same values there.",
            f"X.drop(columns={groups})\n{_command(subject)} --drop {','.join(groups)}",
        )


def _search(findings: Findings) -> Iterator[Advice]:
    """Let the library choose, or choose with more patience."""
    model = findings.subject.model
    if "effort" not in model.get_params():
        return
    name, command = type(model).__name__, _command(findings.subject)
    if model.effort == "fast" or not getattr(model, "leaderboard_", []):
        yield Advice(
            "Let the library choose: candidates compete on held-out rows, and the best "
            "of them vote.",
            f"{name}(random_state=0).fit(X{_labels_of(findings.subject)})\n{command}",
        )
        return
    rival = best_rival(findings)
    is_ahead = rival is not None and rival.gain.low > 0.0
    if model.effort == "balanced" and not is_ahead and not _is_perfect(findings):
        yield Advice(
            "Search longer, among larger models.",
            f'{name}(effort="thorough", random_state=0).fit(X'
            f"{_labels_of(findings.subject)})\n{command} --effort thorough",
        )


def _is_perfect(findings: Findings) -> bool:
    """Return whether all scored rows are predicted right: nothing can be gained."""
    if not (findings.subject.has_classes and findings.trials):
        return False
    trial = findings.trial
    return bool(np.all(trial.ours.outputs.argmax(axis=1) == trial.truth))


def _command(subject: Subject) -> str:
    command = _FIT_DENSITY if subject.task.target == "none" else _FIT
    return f"{command} --sequence ID" if subject.task.unit == "sequence" else command


def _labels_of(subject: Subject) -> str:
    return "" if subject.task.target == "none" else ", y"


def _probabilities(findings: Findings) -> Iterator[Advice]:
    """Calibrate what is not calibrated."""
    subject = findings.subject
    if not (subject.has_classes and findings.trials):
        return
    if getattr(subject.model, "calibrate", True) is True:
        return
    if not Calibration.of(findings.trial).is_fine:
        name = type(subject.model).__name__
        yield Advice(
            "Correct the probabilities by held-out rows.",
            f"{name}(calibrate=True, ...).fit(X, y)\n{_command(subject)} --calibrate",
        )


def _labels(findings: Findings) -> Iterator[Advice]:
    """Look at labels, and at classes that are rare."""
    subject = findings.subject
    if not (subject.has_classes and findings.trials):
        return
    if has_wrong_labels(findings.trial):
        text = "Check the labels that are listed under the errors."
        if hasattr(subject.model, "loss"):
            name = type(subject.model).__name__
            text += " A bounded loss is robust against wrong ones."
            yield Advice(text, f'{name}(loss="ramp", random_state=0).fit(X, y)')
        else:
            yield Advice(text)
    few = few_of(subject)
    if few:
        listed = ", ".join(few[:3])
        unit = subject.task.unit
        yield Advice(f"Collect {unit}s of the rarest classes first: {listed}.")
    share = subject.class_counts.max() / max(len(subject.known), 1)
    if share >= MOSTLY and hasattr(subject.model, "class_weight"):
        name = type(subject.model).__name__
        yield Advice(
            "If rare classes matter as much as frequent ones, give them the same weight.",
            f'{name}(class_weight="balanced", random_state=0).fit(X, y)',
        )


def _columns(subject: Subject, mismatched: list[str]) -> Iterator[Advice]:
    """Let columns have shapes, if some do not match."""
    if not mismatched or getattr(subject.model, "column_shapes", "auto") == "auto":
        return
    name = type(subject.model).__name__
    yield Advice(
        f"Let columns have shapes: the model misses {', '.join(mismatched[:3])}.",
        f'{name}(column_shapes="auto", random_state=0).fit(X{_labels_of(subject)})',
    )


def _rivals(findings: Findings) -> Iterator[Advice]:
    """Say so if another kind of model is better."""
    rival = best_rival(findings)
    if rival is not None and rival.gain.high < 0.0:
        yield Advice(
            f"If nothing but the score matters, and no holes, densities or outliers, use "
            f"{rival.name}."
        )


def _rows(subject: Subject) -> Iterator[Advice]:
    """Look at unusual rows."""
    if subject.task.unit == "row":
        yield Advice(
            "Look at the unusual rows, and at the cells that make them so.",
            "hybridmix outliers model.hmx table.csv",
        )
