"""Columns that are not what they seem: identifiers, dates, marks of missing values."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray
from hybridmix.data.cells import label_of
from hybridmix.data.columns import Columns
from hybridmix.data.naming import named_columns
from hybridmix.data.schema import Schema
from hybridmix.data.stand_ins import stand_ins
from hybridmix.exceptions import ColumnWarning

# Text with more values than this, and more than half as many as cells, names the rows.
MANY_VALUES = 20
# Up to this many other texts among numbers may be marks of missing values.
_FEW_STRAYS = 5
_NUMBER = re.compile(
    r"\s*[$€£¥]?\s?[+-]?(0|[1-9][\d.,']*|0?[.,]\d+)(e[+-]?\d+)?\s?[%$€£¥]?\s*",
    re.I,
)
# Minus the log probability below which labels do not agree by chance.
_SURPRISE = 20.0
# Every column is looked at by itself, which takes long for more of them.
_MOST_COLUMNS = 1000

DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}.*)?|\d{1,2}([./-])\d{1,2}\2\d{2,4}.*|"
    r"\d{4}/\d{1,2}/\d{1,2}.*"
)
NAME_OF_IDENTIFIER = re.compile(
    r"(^|.*[^a-z])(id|uuid|guid|index|rowid)|unnamed.*|", re.I
)


def is_identifying(n_values: int, n_cells: int) -> bool:
    """Return whether there are too many values among the cells to be categories."""
    return n_values > MANY_VALUES and n_values > n_cells / 2


def names_groups(values: Sequence[Hashable], labels: Sequence[Hashable]) -> bool:
    """Return whether labels agree within each of many values, and not by chance.

    Patients and recordings are such groups of rows.

    Parameters
    ----------
    values, labels : sequence
        One for each row; None where missing.
    """
    pairs = Counter(pair for pair in zip(values, labels, strict=True) if None not in pair)
    n_values = len({value for value, _ in pairs})
    if not len(pairs) == n_values > MANY_VALUES:
        return False
    counts = Counter(label for label in labels if label is not None)
    # Minus the log probability that labels drawn at random agree as well.
    surprise = sum(
        (n - 1) * math.log(counts.total() / counts[label])
        for (_, label), n in pairs.items()
    )
    return surprise > _SURPRISE


def warn_of_suspects(
    columns: Columns,
    schema: Schema,
    categorical_features: Sequence[int | str | bool] | None,
) -> None:
    """Warn about columns of a data frame that are not what they seem to be.

    These are identifiers, dates, and numbers among which some such as -999 seem to stand
    for missing values.

    Columns that the user calls categorical are meant to be so. Arrays have no names, and
    their numbers are seldom those of rows; they are not looked at.

    Parameters
    ----------
    columns : Columns
        The training table.
    schema : Schema
        What was learned about it.
    categorical_features : sequence or None
        Columns that are categorical whatever their type: positions, names or a mask.
    """
    if columns.names is None or columns.n_columns > _MOST_COLUMNS:
        return
    meant = named_columns(categorical_features, columns)
    for text in (
        *_suspect_text(columns, schema, meant),
        *_suspect_numbers(columns, schema),
    ):
        warnings.warn(text, ColumnWarning, stacklevel=4)


def _suspect_text(
    columns: Columns, schema: Schema, meant: Collection[int]
) -> Iterator[str]:
    """Yield what is wrong with categories that are dates, numbers, or all different."""
    for column, values in zip(schema.categorical, schema.categories, strict=True):
        found = None if column in meant else _wrong_with(values, columns.n_rows)
        if found is not None:
            label = label_of(columns.names, column)
            yield (
                f"{label[0].upper()}{label[1:]} {found}, or name it in "
                "categorical_features to keep it."
            )


def _wrong_with(values: Sequence[object], n_rows: int) -> str | None:
    """Say what is wrong with the values of a categorical column, and what to do."""
    if all(isinstance(value, str) and DATE.fullmatch(value) for value in values):
        return (
            "holds dates as text, which become categories that have nothing to do with "
            "each other. Turn them into numbers, such as days or months"
        )
    numbers = _numbers_as_text(values)
    if numbers:
        known = set(numbers)
        strays = [shortened(str(own), 20) for own in values if own not in known]
        others = f" but for {', '.join(map(repr, strays))}" if strays else ""
        return (
            f"holds numbers as text, such as {numbers[0]!r}{others}, which become "
            "categories that have nothing to do with each other. Turn them into numbers "
            "and NaN"
        )
    if is_identifying(len(values), n_rows):
        return (
            f"looks like an identifier: it has {len(values)} different values in "
            f"{n_rows} rows. Drop it"
        )
    return None


def _numbers_as_text(values: Sequence[object]) -> list[str]:
    """Return the texts that are numbers, if nearly all of many categories are.

    Signs such as $ and %, and marks between thousands, are passed over. Codes such as 007
    are no numbers.
    """
    if len(values) <= MANY_VALUES:
        return []
    found = [own for own in values if isinstance(own, str) and _NUMBER.fullmatch(own)]
    return found if len(values) - len(found) <= _FEW_STRAYS else []


def _suspect_numbers(columns: Columns, schema: Schema) -> Iterator[str]:
    """Yield what is wrong with numbers that name the rows, or stand for missing ones."""
    if columns.n_rows <= MANY_VALUES or columns.n_columns == 1:
        return
    for column in schema.real:
        numbers = columns.real([column])[:, 0]
        for mark in stand_ins(numbers):
            label = label_of(columns.names, column)
            yield (
                f"{label[0].upper()}{label[1:]} holds {mark} again and again, far from "
                "all other numbers. If it means missing, replace it by NaN; if not, "
                "ignore hybridmix.exceptions.ColumnWarning."
            )
        name = (columns.names or ())[column]
        how = "count" if _counts(numbers) else "name"
        if how == "count" or (NAME_OF_IDENTIFIER.fullmatch(name) and _differ(numbers)):
            label = label_of(columns.names, column)
            yield (
                f"{label[0].upper()}{label[1:]} looks like an identifier: its whole "
                f"numbers {how} the rows, and say nothing about other rows. Drop it; to "
                "keep it without this warning, ignore hybridmix.exceptions.ColumnWarning."
            )


def _counts(numbers: FloatArray) -> bool:
    """Return whether each number is that of the row before, and one."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(numbers[1] - numbers[0] == 1.0 and (np.diff(numbers) == 1.0).all())


def _differ(numbers: FloatArray) -> bool:
    """Return whether numbers are whole and all of them are different."""
    is_whole = bool((numbers == np.floor(numbers)).all())
    return is_whole and len(np.unique(numbers)) == len(numbers)
