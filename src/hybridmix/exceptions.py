"""Errors and warnings that callers may want to tell apart from others."""

from __future__ import annotations


class UnsupportedError(NotImplementedError):
    """A family, model or solver was asked for something that it does not offer.

    Parameters
    ----------
    owner : object
        What was asked.
    capability : str
        What it lacks, as a noun phrase: "samples", "a gradient".
    remedy : str
        What to do instead, as a sentence.
    """

    def __init__(self, owner: object, capability: str, remedy: str = "") -> None:
        name = owner if isinstance(owner, str) else type(owner).__name__
        message = f"{name} does not offer {capability}."
        super().__init__(f"{message} {remedy}".rstrip())


class ColumnWarning(UserWarning):
    """A column seems to be an identifier, or to hold dates as text.

    Models learn nothing from it that holds for new rows. The warning names the column and
    what to do about it.
    """
