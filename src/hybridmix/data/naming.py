"""Columns that are given by name or position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridmix.data.cells import listed
from hybridmix.data.columns import Columns


def named_columns(
    selection: Sequence[int | str | bool] | None, columns: Columns
) -> set[int]:
    """Return the positions of columns that a user calls categorical."""
    if selection is None:
        return set()
    chosen = np.asarray(selection)
    if chosen.ndim != 1:
        raise ValueError(
            "categorical_features must be a list of column positions or names, or a mask "
            "over the columns."
        )
    if chosen.dtype == bool:
        if len(chosen) != columns.n_columns:
            raise ValueError(
                f"The mask categorical_features has {len(chosen)} entries, but the table "
                f"has {columns.n_columns} columns."
            )
        return set(np.flatnonzero(chosen).tolist())
    return set(positions_of(chosen.tolist(), columns.names, columns.n_columns))


def column_roles(
    columns: Columns, categorical_features: Sequence[int | str | bool] | None
) -> tuple[list[int], list[int]]:
    """Return the positions of the real and of the categorical columns of a table."""
    named = named_columns(categorical_features, columns)
    is_categorical = [
        j in named or columns.is_categorical(j) for j in range(columns.n_columns)
    ]
    real = [j for j, flag in enumerate(is_categorical) if not flag]
    return real, [j for j, flag in enumerate(is_categorical) if flag]


def positions_of(
    columns: Sequence[int | str], names: tuple[str, ...] | None, n_columns: int
) -> list[int]:
    """Return the positions of columns given by name or number."""
    where: dict[str, int] = {}
    if any(isinstance(column, str) for column in columns):
        where = {name: position for position, name in enumerate(names or ())}
    return [_position(column, names, where, n_columns) for column in columns]


def _position(
    column: int | str,
    names: tuple[str, ...] | None,
    where: dict[str, int],
    n_columns: int,
) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"Column {column!r} is given by name, but the table is an array without "
                "names; give its position."
            )
        if column not in where:
            raise ValueError(
                f"There is no column {column!r}; the columns are {listed(names)}."
            )
        return where[column]
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"There is no column {column}; the table has {n_columns} columns."
        )
    return int(column) % n_columns
