"""What the sections of a report are written from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybridmix.data.fingerprint import Origin
from hybridmix.inspection import (
    FeatureImportance,
    TargetImportance,
    feature_importance,
)
from hybridmix.reporting.checks import ColumnCheck, check_columns
from hybridmix.reporting.subject import Subject
from hybridmix.tasks.base import FEWEST_ROWS, quiet
from hybridmix.tasks.trials import Trial, as_given, cross_validated

# For a table that was partly in training, folds of all rows say more than fewer unseen
# rows than this.
FEWEST_UNSEEN = 50
# Rows by which columns are judged, over all folds.
MAX_JUDGING = 2000
# Hiding each of more columns than this would take longer than the rest of the report.
MAX_JUDGED = 200


@dataclass(frozen=True)
class Findings:
    """A subject and how it does.

    Attributes
    ----------
    subject : Subject
        The model and the table.
    fitted : Trial or None
        The model as it was given, on rows that are not known to have been in training.
    retrained : Trial or None
        The model retrained by folds within the table, with others for comparison.
    obstacle : str or None
        Why there is neither trial.
    remark : str
        Why one of them is missing; empty if nothing needs to be said.
    """

    subject: Subject
    fitted: Trial | None
    retrained: Trial | None
    obstacle: str | None
    remark: str = ""

    @property
    def trials(self) -> list[Trial]:
        """The trials, the more telling one first.

        A model may have been trained on the rows if nothing is known about them, and
        would look too good: then folds say more.
        """
        found = [trial for trial in (self.fitted, self.retrained) if trial is not None]
        is_doubtful = self.subject.provenance.origin == Origin.UNKNOWN
        return found[::-1] if is_doubtful else found

    @cached_property
    def parts(self) -> list[Findings]:
        """The same about each of several targets; of one target, all of it."""
        n_targets = self.subject.n_targets
        if n_targets == 1:
            return [self]
        return [self._for_target(target) for target in range(n_targets)]

    def _for_target(self, target: int) -> Findings:
        subject = self.subject.for_target(target)
        task = subject.task
        obstacle = task.obstacle(subject)
        if obstacle is not None:
            return Findings(subject, None, None, obstacle)

        def part(trial: Trial | None) -> Trial | None:
            own = None if trial is None else trial.for_target(task, target)
            return None if own is None or len(own.rows) < FEWEST_ROWS else own

        fitted, retrained = part(self.fitted), part(self.retrained)
        if fitted is None and retrained is None:
            obstacle = self.obstacle or "Too few of the scored rows have this target."
        return Findings(subject, fitted, retrained, obstacle, self.remark)

    @property
    def trial(self) -> Trial:
        """The more telling trial, for sections that are written only if there is one."""
        return self.trials[0]

    @cached_property
    def checks(self) -> list[ColumnCheck]:
        """Whether the model knows how columns are distributed, the worst first.

        Nothing is checked for sequences, whose frames depend on each other.
        """
        subject = self.subject
        if subject.task.unit != "row":
            return []
        return check_columns(subject, list(range(len(subject.names)))[:MAX_JUDGED])

    @cached_property
    def importance(self) -> FeatureImportance | TargetImportance | None:
        """Mean over the folds of what hiding each column costs.

        None without a trial or a target, for several targets together, and for sequences
        and very many columns.
        """
        subject = self.subject
        is_judged = subject.task.target != "none" and subject.task.unit == "row"
        is_judged = is_judged and subject.n_targets == 1
        if not (is_judged and self.trials) or len(subject.names) > MAX_JUDGED:
            return None
        trial, parts = self.trial, []
        for fold, model in enumerate(trial.ours.models):
            X, truth = trial.held(trial.ours, fold, MAX_JUDGING)
            y = subject.task.given(subject.model, truth)
            with quiet():
                parts.append(feature_importance(model, X, y))
        # The names are the first field; all others are figures.
        fields = zip(*(list(vars(part).values())[1:] for part in parts), strict=True)
        return type(parts[0])(subject.names, *(np.mean(own, axis=0) for own in fields))


def found_out(subject: Subject) -> Findings:
    """Score the model on rows it has not seen, by folds where it has seen all of them."""
    task = subject.task
    obstacle = task.obstacle(subject)
    if obstacle is not None:
        return Findings(subject, None, None, obstacle)
    fitted, remark = _as_fitted(subject)
    origin = subject.provenance.origin
    needs_folds = fitted is None or origin == Origin.UNKNOWN or subject.baselines
    if not needs_folds:
        return Findings(subject, fitted, None, None, remark)
    obstacle = task.fold_obstacle(subject)
    if obstacle is not None:
        return Findings(subject, fitted, None, obstacle, f"{remark} {obstacle}".strip())
    retrained = cross_validated(task, subject, with_baselines=subject.baselines)
    return Findings(subject, fitted, retrained, None, remark)


def _as_fitted(subject: Subject) -> tuple[Trial | None, str]:
    """Return the trial of the model as it was given, or why there is none."""
    rows, origin = subject.unseen, subject.provenance.origin
    units = f"{subject.task.unit}s"
    n_scored = int(np.sum(subject.task.groups(subject)[rows] >= 0))
    if origin == Origin.SEEN:
        return None, (
            f"The model itself would look too good on its own training {units}, so it "
            "was retrained on parts of them."
        )
    fewest = FEWEST_UNSEEN if origin == Origin.MIXED else FEWEST_ROWS
    if n_scored < fewest:
        return None, (
            f"Only {n_scored:,} {units} that can be scored are known not to have been in "
            f"training; {fewest} or more would be needed to score the model as it is."
        )
    return as_given(subject.task, subject, rows), ""
