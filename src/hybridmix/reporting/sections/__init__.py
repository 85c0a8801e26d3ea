"""Sections of the report: functions from what was found to HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import note
from hybridmix.reporting.sections.components import components_section
from hybridmix.reporting.sections.data import data_section
from hybridmix.reporting.sections.density import density_section
from hybridmix.reporting.sections.errors import errors_section
from hybridmix.reporting.sections.features import features_section
from hybridmix.reporting.sections.missing import missing_section
from hybridmix.reporting.sections.quality import quality_section
from hybridmix.reporting.sections.reproduce import reproduce_section
from hybridmix.reporting.sections.summary import summary_section
from hybridmix.reporting.sections.training import training_section


class Section(NamedTuple):
    """A part of the report.

    Attributes
    ----------
    anchor, title : str
        Where it is found, and its heading.
    write : callable
        Makes HTML of findings.
    needs_validation : bool
        Whether it is about predictions of held-out rows.
    """

    anchor: str
    title: str
    write: Callable[[Findings], str]
    needs_validation: bool = False

    def content(self, findings: Findings) -> str | None:
        """Return HTML; why there is nothing to show; or None where nothing belongs."""
        if not self.needs_validation:
            return self.write(findings)
        if not findings.subject.has_classes:
            return None
        if findings.obstacle is not None:
            return note(findings.obstacle)
        return self.write(findings)


SECTIONS = (
    Section("summary", "Summary", summary_section),
    Section("data", "The table", data_section),
    Section("quality", "Quality on held-out rows", quality_section, True),
    Section("errors", "Errors and probabilities", errors_section, True),
    Section("missing", "When features go missing", missing_section, True),
    Section("features", "Which features carry the decision", features_section, True),
    Section("components", "Components", components_section),
    Section("density", "Density and outliers", density_section),
    Section("training", "Training", training_section),
    Section("reproduce", "How to read and reproduce this", reproduce_section),
)
