"""Targets of training rows: classes, or numbers to predict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix.cli.cells import CellError, is_number, parsed
from hybridmix.cli.console import Console
from hybridmix.cli.tables import InputError, Table, as_option, way_out
from hybridmix.cli.values import Texts, without_mark
from hybridmix.data.suspects import is_identifying, names_groups

CLASSIFY, REGRESS = "classify", "regress"
TASKS = (CLASSIFY, REGRESS)
# More different numbers with fractions than this are measured, not chosen.
_MOST_FRACTIONS = 20
# Up to this many different whole numbers are classes; more than the second are not. In
# between, they are not if this share of them occurs only once: nothing can be learned
# about a class of a single row. In a short table fewer are too many: more than the last,
# and more than half as many as cells.
_FEW_WHOLE, _MANY_WHOLE, _FEWEST_WHOLE = 20, 100, 10
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
    values : ndarray of shape (n,) or str
        Labels, None where missing; or numbers, NaN where missing. Of a table that is read
        in blocks, the name of their column.
    reason : str
        What the column holds, in a few words.
    """

    task: str
    values: Any
    reason: str

    @property
    def known(self) -> np.ndarray:
        """The values that are not missing."""
        values: np.ndarray = self.values
        cells = values.tolist()
        return values[[cell is not None and cell == cell for cell in cells]]

    @property
    def n_known(self) -> int:
        """How many values are not missing."""
        return len(self.known)

    @property
    def n_different(self) -> int:
        """How many different values there are."""
        return len(set(self.known.tolist()))


def training_target(
    texts: Texts,
    name: str,
    unlabelled: str | None,
    task: str | None,
    table: Table,
    console: Console,
    units: str = "rows",
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
    units : str, default="rows"
        What the cells are labels of.
    """
    texts = without_mark(texts, unlabelled)
    counts = Counter(text for text in texts if text is not None)
    task, whole = decided_task(counts, name, task, table, console, units)
    if task == REGRESS:
        reason = f"{len(counts)} different numbers: regression"
        return Target(task, _numbers(texts, name, table), reason)
    return Target(CLASSIFY, class_labels(texts, whole), f"{len(counts)} labels")


def decided_task(
    counts: Counter[str],
    name: str,
    task: str | None,
    table: Table,
    console: Console,
    units: str,
) -> tuple[str, dict[str, int] | None]:
    """Decide whether a target has classes or is a number, by how often cells occur.

    Returns
    -------
    task : {"classify", "regress"}
        What to do.
    whole : dict of str to int or None
        The whole numbers that the cells spell; None if any is not one.
    """
    if not counts:
        raise InputError(f"--target {name}: none of the {units} has a label.")
    whole = _whole_numbers(counts)
    are_numbers = whole is not None or _are_numbers(counts, table.decimal)
    if task is None and are_numbers:
        task = _decided(counts, whole is not None)
        found = f"{len(counts)} different numbers in {counts.total()} {units}"
        console.note(f"--target {name} has {found}: {_CONSEQUENCES[task]}")
    if task != REGRESS:
        _check_classes(name, counts, are_numbers, console, units)
    return task or CLASSIFY, whole


_CONSEQUENCES = {
    CLASSIFY: "each is a class. To predict a number instead, add --task regress",
    REGRESS: "it is predicted as a number. For classes, add --task classify",
}


def _are_numbers(texts: Iterable[str], decimal: str) -> bool:
    return all(is_number(text, decimal, allow_infinite=True) for text in texts)


def _decided(counts: Counter[str], are_whole: bool) -> str:
    """Decide whether numbers are classes, or measurements and counts."""
    n_values, n_cells = len(counts), counts.total()
    if are_whole:
        n_once = sum(n == 1 for n in counts.values())
        is_uneven = n_values > _FEW_WHOLE and n_once >= _SHARE_ONCE * n_values
        is_many = n_values > _MANY_WHOLE or n_values > max(_FEWEST_WHOLE, n_cells / 2)
        return REGRESS if is_many or is_uneven else CLASSIFY
    is_many = n_values > _MOST_FRACTIONS or 2 * n_values > n_cells > 2
    return REGRESS if is_many else CLASSIFY


def _numbers(texts: Texts, name: str, table: Table) -> np.ndarray:
    try:
        return parsed(texts, table.decimal)
    except CellError as error:
        row, text = error.position + 1, error.text
        raise InputError(
            f"--task regress: row {row} of --target {name} has {text!r}, which is not a "
            f"finite number. {way_out(text, table.decimal)} If the target has classes: "
            "--task classify."
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


def class_labels(texts: Texts, whole: dict[str, int] | None) -> np.ndarray:
    """Return labels: whole numbers if all are, else text; None if missing."""
    labels = np.empty(len(texts), dtype=object)
    labels[:] = texts
    if whole is not None:
        labels[:] = [None if text is None else whole[text] for text in texts]
    return labels


def warn_of_groups(columns: dict[str, Any], target: Target, console: Console) -> None:
    """Warn of columns that name groups of rows, all of which have the same label.

    Patients and recordings are such groups. New rows come from others, so that a model
    that has learned their names looks better than it is.

    Parameters
    ----------
    columns : dict of str to list
        Cells of the columns, None where missing.
    target : Target
        Classes of the rows.
    console : Console
        Where to warn.
    """
    labels = target.values.tolist()
    for name, texts in columns.items():
        if names_groups(texts, labels):
            option = as_option(name)
            console.warn(
                f"all rows with the same {name!r} have the same label. If new rows will "
                f"have other values there, use --drop {option}, or --sequence {option} "
                "if the rows of each value are a sequence"
            )


def _check_classes(
    name: str, counts: Counter[str], are_numbers: bool, console: Console, units: str
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
            f"--target {name}: {n_values} different labels in {n_labels} {units} are "
            "not classes. Group them first, or name another column."
        )
