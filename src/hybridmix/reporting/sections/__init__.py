"""Sections of the report: functions from what was found to HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import heading, note
from hybridmix.reporting.sections.columns import columns_section, dependence_section
from hybridmix.reporting.sections.components import components_section
from hybridmix.reporting.sections.data import data_section, target_part
from hybridmix.reporting.sections.density import density_section
from hybridmix.reporting.sections.errors import errors_section
from hybridmix.reporting.sections.features import features_section
from hybridmix.reporting.sections.frames import frames_section
from hybridmix.reporting.sections.map import map_section
from hybridmix.reporting.sections.missing import missing_section
from hybridmix.reporting.sections.predictions import predictions_section
from hybridmix.reporting.sections.quality import quality_section
from hybridmix.reporting.sections.reproduce import reproduce_section
from hybridmix.reporting.sections.sequence_summary import (
    sequence_data,
    sequence_summary,
    sequence_training,
)
from hybridmix.reporting.sections.states import decoded_section, states_section
from hybridmix.reporting.sections.summary import summary_section
from hybridmix.reporting.sections.training import training_section
from hybridmix.reporting.sections.verdict import verdict_section
from hybridmix.reporting.sections.worked import worked_section
from hybridmix.reporting.sequence_subject import SequenceSubject


class Section(NamedTuple):
    """A part of the report.

    Attributes
    ----------
    anchor, title : str
        Its anchor within the page, and its heading.
    write : callable
        Makes HTML of findings.
    needs_trial : bool, default=False
        Whether it is about scored rows.
    targets : tuple of str or None, default=None
        The targets of the tasks that it is for; None for all tasks.
    by_target : bool, default=False
        Whether each of several targets has its own.
    is_folded : bool, default=False
        Whether readers have to open it.
    """

    anchor: str
    title: str
    write: Callable[[Findings], str]
    needs_trial: bool = False
    targets: tuple[str, ...] | None = None
    by_target: bool = False
    is_folded: bool = False

    def content(self, findings: Findings) -> str | None:
        """Return HTML; None to leave the section out."""
        target = findings.subject.task.target
        if self.targets is not None and target not in self.targets:
            return None
        if self.needs_trial and not findings.trials:
            return note(findings.obstacle or "")
        return self.write(findings)


CLASSES, NUMBERS = ("classes",), ("numbers",)
TARGETS = CLASSES + NUMBERS

SECTIONS = (
    Section("verdict", "Verdict", verdict_section),
    Section("summary", "The model", summary_section, is_folded=True),
    Section("quality", "How good the model is", quality_section, True, None, True),
    Section("errors", "Errors and probabilities", errors_section, True, CLASSES),
    Section(
        "predictions",
        "Predictions and intervals",
        predictions_section,
        True,
        NUMBERS,
        True,
    ),
    Section("features", "Which features matter", features_section, True, TARGETS, True),
    Section("columns", "Columns in the model", columns_section),
    Section(
        "dependence",
        "The target by column",
        dependence_section,
        targets=NUMBERS,
        by_target=True,
    ),
    Section(
        "worked", "One prediction, cell by cell", worked_section, True, TARGETS, True
    ),
    Section("map", "A map of the rows", map_section),
    Section("data", "The table", data_section, is_folded=True),
    Section(
        "missing",
        "When features go missing",
        missing_section,
        True,
        TARGETS,
        True,
        is_folded=True,
    ),
    Section("density", "Density and outliers", density_section, is_folded=True),
    Section("components", "Components", components_section, is_folded=True),
    Section("training", "Training", training_section, is_folded=True),
    Section(
        "reproduce", "How to read and reproduce this", reproduce_section, is_folded=True
    ),
)


OF_SEQUENCES = (
    Section("verdict", "Verdict", verdict_section),
    Section("summary", "The model", sequence_summary, is_folded=True),
    Section("quality", "How good the model is", quality_section, True),
    Section("errors", "Errors and probabilities", errors_section, True, CLASSES),
    Section("worked", "One prediction, frame by frame", frames_section, True, CLASSES),
    Section("states", "States over time", states_section),
    Section("decoded", "Decoded sequences", decoded_section),
    Section("data", "The sequences", sequence_data, is_folded=True),
    Section("training", "Training", sequence_training, is_folded=True),
    Section(
        "reproduce", "How to read and reproduce this", reproduce_section, is_folded=True
    ),
)


def sections_of(findings: Findings) -> list[Section]:
    """Return the sections of a report; each of several targets has one."""
    if isinstance(findings.subject, SequenceSubject):
        return list(OF_SEQUENCES)
    sections = list(SECTIONS)
    if len(findings.parts) == 1:
        return sections
    names = findings.subject.target_names
    of_targets = [
        Section(f"target-{k}", f"Target: {name}", partial(_of_target, number=k))
        for k, name in enumerate(names)
    ]
    place = next(k for k, section in enumerate(sections) if section.by_target)
    others = [section for section in sections[place:] if not section.by_target]
    return [*sections[:place], *of_targets, *others]


def _of_target(findings: Findings, number: int) -> str:
    """Write all that is about one of several targets."""

    def parts() -> Iterator[str]:
        own = findings.parts[number]
        yield target_part(own.subject)
        for section in SECTIONS:
            if section.by_target:
                yield heading(section.title)
                yield section.content(own) or ""

    return "".join(parts())
