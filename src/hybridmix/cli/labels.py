"""Targets of training rows: classes, or numbers to predict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hybridmix.cli.cells import CellError, is_number, parsed
from hybridmix.cli.columns import is_identifying
from hybridmix.cli.console import Console
from hybridmix.cli.tables import InputError, Table, as_option
from hybridmix.cli.values import Texts, without_mark

CLASSIFY, REGRESS = "classify", "regress"
TASKS = (CLASSIFY, REGRESS)
# More different numbers with fractions than this are measured, not chosen.
_MOST_FRACTIONS = 20
# Up to this many different whole numbers are classes; more than the second are not. In
# between, they are not if this share of them occurs only once: nothing can be learned
# about a class of a single row.
_FEW_WHOLE, _MANY_WHOLE = 20, 100
_SHARE_ONCE = 0.1
# Longer numbers are names: not all of them fit into a column of whole numbers.
_WHOLE = re.compile(r"([+-]?(?:0|[1-9]\d{0,14}))(?:\.0*)?")


@dataclass(frozen=True)
class Target:
    """What is to be predicted.

    Attributes
    ----------
    task : {"classify", "regress"}
        Whether the values are classes or numbers.
    values : ndarray of shape (n,)
        Labels, None where missing; or numbers, NaN where missing.
    reason : str
        What the column holds, in a few words.
    """

    task: str
    values: np.ndarray
    reason: str

    @property
    def known(self) -> np.ndarray:
        """The values that are not missing."""
        cells = self.values.tolist()
        return self.values[[cell is not None and cell == cell for cell in cells]]


def training_target(
    texts: Texts,
    name: str,
    unlabelled: str | None,
    task: str | None,
    table: Table,
    console: Console,
) -> Target:
    """Read the target of a fit, and decide whether it has classes or is a number.

    Parameters
    ----------
    texts : list of str or None
        Cells of the target.
    name : str
        The name of the column.
    unlabelled : str or None
        A label that means none.
    task : {"classify", "regress"} or None
        What was asked for; None to decide by the cells.
    table : Table
        The file.
    console : Console
        Where the decision is shown.
    """
    texts = without_mark(texts, unlabelled)
    counts = Counter(text for text in texts if text is not None)
    if not counts:
        raise InputError(f"--target {name}: no row has a label.")
    whole = _whole_numbers(counts)
    are_numbers = whole is not None or all(
        is_number(text, table.decimal, allow_infinite=True) for text in counts
    )
    found = f"{len(counts)} different {'numbers' if are_numbers else 'labels'}"
    if task is None:
        is_measured = are_numbers and _is_measured(counts, whole is not None)
        task = REGRESS if is_measured else CLASSIFY
        if are_numbers:
            rows = f"--target {name} has {found} in {counts.total()} rows"
            console.note(_DECIDED[task].format(rows=rows))
    if task == REGRESS:
        return Target(task, _numbers(texts, name, table), f"{found}: regression")
    _check_classes(name, counts, are_numbers, console)
    # All whole numbers are numbers, everything else is text.
    labels = texts if whole is None else [_label(text, whole) for text in texts]
    return Target(task, _objects(labels), f"{len(counts)} labels")


_DECIDED = {
    CLASSIFY: "{rows}: each is a class. To predict a number instead, add --task regress",
    REGRESS: "{rows}: it is predicted as a number. For classes, add --task classify",
}


def _is_measured(counts: Counter[str], are_whole: bool) -> bool:
    """Return whether numbers are measurements or counts, and not classes."""
    n_values, n_cells = len(counts), counts.total()
    if not are_whole:
        return n_values > _MOST_FRACTIONS or 2 * n_values > n_cells > 2
    n_once = sum(n == 1 for n in counts.values())
    is_uneven = n_values > _FEW_WHOLE and n_once >= _SHARE_ONCE * n_values
    return n_values > _MANY_WHOLE or is_uneven or is_identifying(n_values, n_cells)


def _numbers(texts: Texts, name: str, table: Table) -> np.ndarray:
    try:
        return parsed(texts, table.decimal)
    except CellError as error:
        row, text = error.position + 1, error.text
        raise InputError(
            f"--task regress: row {row} of --target {name} has {text!r}, which is not a "
            f"finite number. If it means a missing value: --na {as_option(text)}. If the "
            "target has classes: --task classify."
        ) from None


def _whole_numbers(texts: Iterable[str]) -> dict[str, int] | None:
    """Return the whole number that each text spells; None if any text does not."""
    numbers = {}
    for text in texts:
        found = _WHOLE.fullmatch(text)
        if found is None:
            return None
        numbers[text] = int(found[1])
    return numbers


def _label(text: str | None, whole: dict[str, int]) -> int | None:
    return None if text is None else whole[text]


def _objects(labels: Sequence[object]) -> np.ndarray:
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _check_classes(
    name: str, counts: Counter[str], are_numbers: bool, console: Console
) -> None:
    """Refuse labels that are not classes before anything is fitted to them."""
    n_values, n_labels = len(counts), counts.total()
    if are_numbers and n_values > _MANY_WHOLE:
        console.warn(
            f"--target {name} has {n_values} different numbers, and each is treated as a "
            "class."
        )
    if not are_numbers and is_identifying(n_values, n_labels):
        raise InputError(
            f"--target {name}: {n_values} different labels in {n_labels} rows are not "
            "classes. Group them first, or name another column."
        )
