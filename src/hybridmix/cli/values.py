"""Values of training, recognised in cells of text, and lists of names in options."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Texts = list[str | None]

_LONG_NUMBER = 7
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def split(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Join what a repeated option gives; its parts may be separated by commas.

    Quotes keep commas together: ``"width, cm",id`` are two names.
    """
    rows = csv.reader(texts or (), skipinitialspace=True)
    parts = (part.strip() for row in rows for part in row)
    return tuple(dict.fromkeys(part for part in parts if part))


def matcher(known: Sequence[Any]) -> Callable[[Texts], list[Any]]:
    """Return a function that recognises values of training in cells of text.

    Text of other values stays text. Booleans are recognised in any spelling, numbers by
    what they are worth: 1 and 1.0 are the same.
    """
    if all(isinstance(value, bool | np.bool_) for value in known):
        return _lookup_by(str.lower, _BOOLEANS)
    if all(isinstance(value, int | float | np.number) for value in known):
        return _lookup_by(_worth, {float(value): value for value in known})
    return _lookup_by(str, {str(value): value for value in known})


def without_mark(texts: Texts, mark: str | None) -> Texts:
    """Return labels, None in place of the mark; -1 and -1.0 are the same mark."""
    if mark is None:
        return texts
    worth = _worth(mark)
    same = {text for text in set(texts) if text == mark or _is_worth(text, worth)}
    return [None if text in same else text for text in texts]


def in_few_digits(text: str) -> str:
    """Write a fraction of many digits with four of them; other text stays as it is."""
    is_long = len(text) > _LONG_NUMBER and "." in text
    worth = _worth(text) if is_long else None
    return text if worth is None else f"{worth:.4g}"


def _lookup_by(
    key: Callable[[str], Any], values: dict[Any, Any]
) -> Callable[[Texts], list[Any]]:
    """Return a function that looks up cells by a key; missing ones stay None."""

    def found(texts: Texts) -> list[Any]:
        return [None if text is None else values.get(key(text), text) for text in texts]

    return found


def _is_worth(text: str | None, worth: float | None) -> bool:
    return text is not None and worth is not None and _worth(text) == worth


def _worth(text: str) -> float | None:
    """Return the number that a text spells; None if it does not spell any."""
    try:
        return float(text)
    except ValueError:
        return None
