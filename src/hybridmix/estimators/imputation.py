"""Filling the holes of a table by a fitted mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import IntArray
from hybridmix.data import Rows, Schema, Table
from hybridmix.data.columns import Columns, NewColumn
from hybridmix.evaluation import ChunkedRows
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

    def fill(number: int) -> Rows:
        chunk = chunked.chunks[number]
        if seed is None:
            return model.impute(table[chunk])
        # A generator for each chunk makes draws independent of the number of threads.
        return model.draw(table[chunk], np.random.default_rng([seed, chunk.start]))

    return columns.replaced(_new_columns(table, columns, list(chunked.map(fill))))


def _new_columns(
    table: Table, columns: Columns, parts: list[Rows]
) -> dict[int, NewColumn]:
    """Return the columns that had holes, filled; what was observed stays as it is."""
    schema = table.schema
    new: dict[int, NewColumn] = {}
    for position, j in enumerate(schema.real):
        hole = np.isnan(table.real[:, position])
        if hole.any():
            filled = np.concatenate([part.real[position] for part in parts])
            filled = schema.restored(filled[None], slice(position, position + 1))[0]
            new[j] = np.where(hole, filled, table.real[:, position])
    for position, j in enumerate(schema.categorical):
        values = columns.values(j)
        if None in values:
            codes = np.concatenate([part.codes[position] for part in parts])
            new[j] = _completed(values, codes, schema.categories[position])
    return new


def _completed(
    values: list[Any], codes: IntArray, categories: tuple[Any, ...]
) -> list[Any]:
    """Replace None by the categories of the given numbers."""
    pairs = zip(values, codes, strict=True)
    return [categories[code] if value is None else value for value, code in pairs]
