"""Filling the holes of a table by a fitted mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._parallel import Workers
from hybridmix.data import Rows, Schema
from hybridmix.data.columns import Columns
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

    parts = list(chunked.map(fill))
    replaced: dict[int, Any] = {}
    for position, j in enumerate(schema.real):
        hole = np.isnan(table.real[:, position])
        if hole.any():
            filled = np.concatenate([part.real[position] for part in parts])
            filled = schema.restored(filled[None], slice(position, position + 1))[0]
            replaced[j] = np.where(hole, filled, table.real[:, position])
    for position, j in enumerate(schema.categorical):
        values = columns.values(j)
        if any(value is None for value in values):
            codes = np.concatenate([part.codes[position] for part in parts])
            categories = schema.categories[position]
            replaced[j] = [
                categories[code] if value is None else value
                for code, value in zip(codes, values, strict=True)
            ]
    return columns.replaced(replaced)
