"""Summaries in files that never run code."""

from __future__ import annotations

import os

from hybridmix.data import Schema
from hybridmix.federated.columns import ColumnSummary
from hybridmix.federated.summaries import Summary
from hybridmix.files import load_record, save_record

_KINDS = (Summary, ColumnSummary, Schema)


def save_summary(
    summary: Summary | ColumnSummary | Schema, path: str | os.PathLike[str]
) -> None:
    """Save a summary or a schema to a file, in the format of model files.

    Parameters
    ----------
    summary : Summary, ColumnSummary or Schema
        What to save.
    path : str or path-like
        The file.
    """
    if not isinstance(summary, _KINDS):
        raise TypeError(
            f"A {type(summary).__name__} is neither a summary nor a schema. Use "
            "hybridmix.save for models."
        )
    save_record(summary, path)


def load_summary(path: str | os.PathLike[str]) -> Summary | ColumnSummary | Schema:
    """Load what `save_summary` has written; no code from the file is run.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    summary : Summary, ColumnSummary or Schema
        What was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, or holds something else.
    """
    found: Summary | ColumnSummary | Schema = load_record(path, _KINDS)
    return found
