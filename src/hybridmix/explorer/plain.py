"""Answers as plain values, which JSON can hold, and questions that make no sense."""

from __future__ import annotations

import math
from typing import Any

# More digits than this cannot be seen on a screen.
_DIGITS = 6


class QuestionError(ValueError):
    """A question that the page, or somebody else, has asked in the wrong way."""


def plain(value: Any) -> Any:
    """Turn arrays and numbers into lists and rounded numbers; NaN becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def whole_number(question: dict[str, Any], name: str, least: int, most: int) -> int:
    """Return a whole number of a question, or say what it should be."""
    value: Any = question.get(name)
    if not is_whole(value) or not least <= value <= most:
        raise QuestionError(
            f"{name!r} must be a whole number from {least} to {most}, not {value!r}."
        )
    return int(value)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number; booleans are not."""
    return isinstance(value, int) and not isinstance(value, bool)
