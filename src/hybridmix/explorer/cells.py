"""Rows as the page has them: a list with a number, a category's number or None."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import MISSING_CODE, Schema, Table
from hybridmix.data.cells import label_of
from hybridmix.data.shapes import ColumnShape
from hybridmix.explorer.plain import QuestionError, is_whole

# Cells beyond these are neither shown nor hidden in turn, which would take too long.
MOST_CELLS = 100
# Beyond the values of the table, cells can be moved by this share of their range.
_MARGIN = 0.1
# Without any values, by this many deviations from the centre.
_REACH = 3.0


def shape_of(schema: Schema, column: int) -> ColumnShape:
    """Return the shape of a real column."""
    return schema.shapes.get(column, ColumnShape())


def shown_columns(schema: Schema) -> list[int]:
    """Return the columns whose cells are shown: not more than can be looked at."""
    return sorted((*schema.real, *schema.categorical))[:MOST_CELLS]


def encoded(schema: Schema, rows: Any) -> Table:
    """Read rows of the page.

    Parameters
    ----------
    schema : Schema
        What training learned about the columns.
    rows : list of lists of length n_columns
        Each has a number for a real column, the number of a category for a categorical
        one, and None for a hidden cell.

    Returns
    -------
    table : Table
        The same rows.
    """
    for cells in rows:
        if not isinstance(cells, list) or len(cells) != schema.n_columns:
            raise QuestionError(f"A row must be a list of {schema.n_columns} values.")
    sizes = list(zip(schema.categorical, schema.n_categories, strict=True))
    real = [[_number(schema, cells, j) for j in schema.real] for cells in rows]
    codes = [[_code(schema, cells, j, size) for j, size in sizes] for cells in rows]
    values = np.array(real, dtype=np.float64).reshape(len(rows), len(schema.real))
    return Table(
        schema,
        values,
        np.array(codes, dtype=np.int32).reshape(len(rows), len(sizes)),
        bool(np.isnan(values).any()),
    )


def _number(schema: Schema, cells: list[Any], column: int) -> float:
    value = cells[column]
    if value is None:
        return np.nan
    is_number = isinstance(value, float) or is_whole(value)
    if not is_number or not np.isfinite(value):
        raise QuestionError(
            f"The {label_of(schema.names, column)} holds numbers: {value!r} is not one. "
            "Hide the cell if there is no value."
        )
    return float(value)


def _code(schema: Schema, cells: list[Any], column: int, n_categories: int) -> int:
    value = cells[column]
    if value is None:
        return MISSING_CODE
    if not is_whole(value) or not 0 <= value < n_categories:
        raise QuestionError(
            f"The {label_of(schema.names, column)} has {n_categories} categories, "
            f"numbered from 0: {value!r} is not one of them."
        )
    return int(value)


def written(schema: Schema, real: FloatArray, codes: IntArray) -> list[Any]:
    """Return a row, real values (d,) and codes (f,), as the page has it."""
    cells: list[Any] = [None] * schema.n_columns
    for column, value in zip(schema.real, real.tolist(), strict=True):
        cells[column] = None if np.isnan(value) else value
    for column, code in zip(schema.categorical, codes.tolist(), strict=False):
        cells[column] = None if code == MISSING_CODE else code
    return cells


def column_ranges(schema: Schema, table: Table) -> dict[int, tuple[float, float]]:
    """Return the ends of the real columns, somewhat beyond the values of a table."""
    ranges = {}
    for place, column in enumerate(schema.real):
        values = table.real[:, place]
        shape = shape_of(schema, column)
        known = values[~np.isnan(values)]
        if len(known):
            low, high = float(known.min()), float(known.max())
        else:
            centre, scale = schema.centre[place], schema.scale[place]
            ends = shape.inverse(np.array([-_REACH, _REACH]) * scale + centre)
            low, high = map(float, ends)
        margin = _MARGIN * (high - low) or float(schema.scale[place])
        # Spikes may lie outside of where the other values do.
        least = min((shape.low, *shape.spikes))
        most = max((shape.high, *shape.spikes))
        ranges[column] = max(low - margin, least), min(high + margin, most)
    return ranges
