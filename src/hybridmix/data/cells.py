"""Single cells of tables: what is missing, what is a number, and how to say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import InvalidOperation
from numbers import Number

import numpy as np

from hybridmix._typing import FloatArray

_MOST_LISTED = 20

# Types of columns, as narwhals calls them, that are neither numbers nor categories.
_DATES = ("Date", "Datetime", "Duration", "Time")


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, pandas.NA or NaT."""
    if value is None:
        return True
    if isinstance(value, Number):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def label_of(names: tuple[str, ...] | None, column: int) -> str:
    """Name a column in a message."""
    return f"column {column}" if names is None else f"column {names[column]!r}"


def listed(items: Sequence[str]) -> str:
    """Join names for a message, the first ones of many."""
    more = len(items) - _MOST_LISTED
    shown = ", ".join(items[:_MOST_LISTED])
    return shown if more <= 0 else f"{shown} and {more} more"


def number_of(value: object) -> float | None:
    """Return what a number, or text that spells one, stands for; None for all else.

    Booleans, dates and spans of time are not numbers. Numbers beyond the largest float
    are infinite. Text that spells NaN is not a number: where text says that a value is
    missing is for the user to decide, who has made the table.
    """
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        return None
    if isinstance(value, str) and "_" in value:
        return None  # Python reads "1_000" as a number; in a table it is a name.
    if not isinstance(value, Number | str | bytes):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
        is_text = isinstance(value, str | bytes)
        return None if is_text and number != number else number
    except OverflowError:
        return np.inf if value > 0 else -np.inf  # type: ignore[operator]
    except (TypeError, ValueError, InvalidOperation):
        return None


def numbers_in(values: Iterable[object], label: str) -> FloatArray:
    """Read the cells of a column that held numbers in training, NaN where missing.

    Text is never missing: empty text and "nan" are refused like any other word, as
    training would have made categories of them.

    Parameters
    ----------
    values : iterable of length n
        The cells, of any kind.
    label : str
        Names the column in the error.

    Raises
    ------
    TypeError, ValueError
        If an observed cell is neither a number nor text that spells one: to treat it as
        missing would hide a mistake.
    """
    result = []
    for row, value in enumerate(values):
        number = np.nan if is_missing(value) else number_of(value)
        if number is None:
            raise _not_a_number(value, row, label)
        result.append(number)
    return np.array(result, dtype=np.float64)


def _not_a_number(value: object, row: int, label: str) -> Exception:
    kind = ValueError if isinstance(value, str | bytes) else TypeError
    what = f"{value!r} in row {row}"
    if kind is TypeError:
        what += f", of the type {type(value).__name__}"
    return kind(
        f"The {label} held numbers in training, but here it holds {what}. Convert the "
        "column to numbers, or make the cells that have none missing (None or NaN)."
    )


def refused_type(label: str, dtype: object) -> TypeError:
    """Return the error for a column that can be neither real nor categorical."""
    return TypeError(
        f"The {label} has the type {dtype}, which is neither numeric nor categorical. "
        "Convert it to a number (a date to days, say) or to a string, or drop it."
    )


def refused_change(label: str, dtype: object) -> TypeError:
    """Return the error for a column of numbers that has become something else."""
    return TypeError(
        f"The {label} held numbers in training, but here it has the type {dtype}. "
        "Convert it to the numbers that it held."
    )


def in_precision(values: np.ndarray, single: bool) -> FloatArray:
    """Return numbers in double precision, or as they are if they may stay single."""
    if single and values.dtype == np.float32:
        return values
    return np.asarray(values, dtype=np.float64)


def are_numbers(values: Iterable[object]) -> bool:
    """Return whether all cells that are not missing are numbers; booleans are not."""
    return all(
        is_missing(value) or (isinstance(value, Number) and not isinstance(value, bool))
        for value in values
    )


def distinct(values: Iterable[object], label: str) -> set[object]:
    """Return the distinct values of a categorical column, without None.

    Parameters
    ----------
    values : iterable of length n
        The cells.
    label : str
        Names the column in the error.

    Raises
    ------
    TypeError
        If a cell is a list or something else that cannot be compared.
    """
    try:
        return set(values) - {None}
    except TypeError as error:
        raise TypeError(
            f"The {label} holds what cannot be a category ({error}). Convert it to text "
            "or numbers, or drop the column."
        ) from None


def check_dates(label: str, dtype: str, trained: str, values: list[object]) -> None:
    """Refuse dates where training had other categories: all would be unseen.

    Parameters
    ----------
    label : str
        Names the column.
    dtype, trained : str
        The type of the column now, and that of training.
    values : list
        The cells, None where missing; a column without any value is exempt.
    """
    kind = dtype.split("(")[0]
    is_new = kind in _DATES and not trained.startswith(kind)
    if is_new and any(value is not None for value in values):
        raise TypeError(
            f"The {label} held categories in training, but here it has the type {dtype}. "
            "Convert it to what it was, or drop it."
        )
