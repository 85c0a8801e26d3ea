"""Labels of training rows: which of them are classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from hybridmix.cli.cells import is_number
from hybridmix.cli.columns import is_identifying
from hybridmix.cli.console import Console
from hybridmix.cli.tables import InputError
from hybridmix.cli.values import Texts, without_mark

# More different numbers with fractions than this are measured, not chosen.
_MOST_FRACTIONS = 20
# More different whole numbers than this may be counts or measurements.
_MANY_WHOLE = 100
# Longer numbers are names: not all of them fit into a column of whole numbers.
_WHOLE = re.compile(r"([+-]?(?:0|[1-9]\d{0,14}))(?:\.0*)?")


def training_labels(
    texts: Texts, target: str, unlabelled: str | None, decimal: str, console: Console
) -> np.ndarray:
    """Return the labels of rows: whole numbers if all are, else text; None if missing.

    Parameters
    ----------
    texts : list of str or None
        Cells of the target.
    target : str
        The name of the column.
    unlabelled : str or None
        A label that means none.
    decimal : str
        How the file writes fractions.
    console : Console
        Where doubts are shown.
    """
    texts = without_mark(texts, unlabelled)
    known = [text for text in texts if text is not None]
    if not known:
        raise InputError(f"--target {target}: no row has a label.")
    values = set(known)
    whole = _whole_numbers(values)
    are_whole = whole is not None
    are_numbers = are_whole or all(is_number(text, decimal, True) for text in values)
    _check_classes(target, len(values), len(known), are_numbers, are_whole)
    if whole is None:
        return _objects(texts)
    if len(values) > _MANY_WHOLE:
        console.warn(
            f"--target {target} has {len(values)} different whole numbers, and each is "
            "treated as a class. Regression is not supported yet."
        )
    return _objects([None if text is None else whole[text] for text in texts])


def _whole_numbers(texts: Iterable[str]) -> dict[str, int] | None:
    """Return the whole number that each text spells; None if any text does not."""
    numbers = {}
    for text in texts:
        found = _WHOLE.fullmatch(text)
        if found is None:
            return None
        numbers[text] = int(found[1])
    return numbers


def _objects(labels: Sequence[object]) -> np.ndarray:
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _check_classes(
    target: str, n_values: int, n_labels: int, are_numbers: bool, are_whole: bool
) -> None:
    """Refuse labels that are not classes before anything is fitted to them."""
    if are_numbers and not are_whole:
        is_refused = n_values > _MOST_FRACTIONS or 2 * n_values > n_labels > 2
    else:
        is_refused = is_identifying(n_values, n_labels)
    if not is_refused:
        return
    found = f"--target {target}: {n_values} different"
    if are_numbers:
        raise InputError(
            f"{found} numbers in {n_labels} rows look like a regression target, which is "
            "not supported yet. Group them into classes first, or name another column."
        )
    raise InputError(
        f"{found} labels in {n_labels} rows are not classes. Group them first, or name "
        "another column."
    )
