"""Filling the holes of a table by a fitted mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Rows, Schema, Table
from hybridmix.data.columns import Columns, NewColumn
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.conditional import conditional
from hybridmix.models.mixture import Mixture


def impute_table(
    model: Mixture, schema: Schema, columns: Columns, seed: int | None, pool: Workers
) -> Any:
    """Return a completed copy of a table.

    Parameters
    ----------
    model : Mixture
        The fitted mixture.
    schema : Schema
        Of its training table.
    columns : Columns
        The table, whose observed values are kept as they are.
    seed : int or None
        Seed of draws; None for conditional means and modes.
    pool : Workers
        Threads.
    """
    table = schema.encode(columns)
    chunked = ChunkedRows(table, model, pool)

    def fill(number: int) -> tuple[FloatArray, IntArray]:
        return fill_chunk(model, table, chunked.chunks[number], seed)

    return columns.replaced(new_columns(table, columns, list(chunked.map(fill))))


def fill_chunk(
    model: Mixture, table: Table, chunk: slice, seed: int | None = None
) -> tuple[FloatArray, IntArray]:
    """Return some rows of an encoded table, completed.

    Parameters
    ----------
    model : Mixture
        The fitted mixture.
    table : Table
        The table.
    chunk : slice
        Which rows.
    seed : int or None, default=None
        Seed of draws; None for conditional means and modes.

    Returns
    -------
    real : ndarray of shape (d, n)
        Real columns, in the units of the table.
    codes : ndarray of shape (f, n)
        Numbers of categories, and of spikes.
    """
    schema, rows = table.schema, table[chunk]
    if seed is None:
        filled = model.impute(rows)
        means = _shaped_means(model, table, chunk, rows)
        return schema.restored(filled, means), filled.codes
    # A generator for each chunk makes draws independent of the number of threads.
    drawn = model.draw(rows, np.random.default_rng([seed, chunk.start]))
    return schema.restored(drawn), drawn.codes


def _shaped_means(
    model: Mixture, table: Table, chunk: slice, rows: Rows
) -> dict[int, FloatArray]:
    """Return the conditional means of columns with a transform or with spikes.

    They are those of the values themselves, in the units of the table: the mean of a
    column is not what the mean of its mapped values stands for. NaN where a value is
    observed.
    """
    schema = table.schema
    codes = {k: len(schema.categorical) + n for n, k in enumerate(schema.shaping.spiked)}
    means = {}
    for place, shape in schema.shaping.shapes.items():
        hole = np.isnan(table.real[chunk, place])
        if hole.any() and (shape.transform is not None or shape.spikes):
            own = conditional(model, rows[hole.nonzero()[0]], place, codes.get(place))
            centre, scale = schema.centre[place], schema.scale[place]
            mean, _ = shape.moments(own.means * scale + centre, own.deviations * scale)
            means[place] = np.full(len(hole), np.nan)
            mean = (own.weights * mean).sum(axis=0)
            means[place][hole] = np.clip(mean, shape.least, shape.most)
    return means


def new_columns(
    table: Table, columns: Columns, parts: list[tuple[FloatArray, IntArray]]
) -> dict[int, NewColumn]:
    """Return the columns that had holes, filled; what was observed stays as it is."""
    schema = table.schema
    new: dict[int, NewColumn] = {}
    for position, j in enumerate(schema.real):
        hole = np.isnan(table.real[:, position])
        if hole.any():
            filled = np.concatenate([values[position] for values, _ in parts])
            new[j] = np.where(hole, filled, table.real[:, position])
    for position, j in enumerate(schema.categorical):
        values = columns.values(j)
        if None in values:
            found = np.concatenate([codes[position] for _, codes in parts])
            new[j] = _completed(values, found, schema.categories[position])
    return new


def _completed(
    values: list[Any], codes: IntArray, categories: tuple[Any, ...]
) -> list[Any]:
    """Replace None by the categories of the given numbers."""
    pairs = zip(values, codes, strict=True)
    return [categories[code] if value is None else value for value, code in pairs]
