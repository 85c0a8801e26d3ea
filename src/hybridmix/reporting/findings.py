"""What the sections of a report are written from."""

from __future__ import annotations

from dataclasses import dataclass

from hybridmix.reporting.subject import Subject
from hybridmix.reporting.validation import Validation


@dataclass(frozen=True)
class Findings:
    """A subject and its cross-validation.

    Attributes
    ----------
    subject : Subject
        The model and the table.
    validation : Validation or None
        None if there is none.
    obstacle : str or None
        Why there is none.
    """

    subject: Subject
    validation: Validation | None
    obstacle: str | None

    @property
    def held_out(self) -> Validation:
        """The cross-validation, for sections that are written only if there is one."""
        assert self.validation is not None
        return self.validation
