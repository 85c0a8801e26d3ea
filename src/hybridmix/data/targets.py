"""Real targets as further columns of a table: reading them, and hiding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_array

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.cells import is_missing, number_of, numbers_in
from hybridmix.data.columns import Columns, as_frame, read_columns
from hybridmix.data.rows import MISSING_CODE, Rows, RowSource
from hybridmix.data.schema import Schema


def read_targets(y: object) -> tuple[Columns, int]:
    """Read targets of one or several columns.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,) or (n, t)
        Numbers; NaN, None and null are missing.

    Returns
    -------
    columns : Columns
        The targets; all of them can be read as real columns.
    n_dimensions : int
        1 if the targets came as a vector, else 2.
    """
    frame = as_frame(y, "y")
    if frame is not None:
        return read_columns(frame), 2
    values = np.asarray(y)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y is of type {values.dtype}.")
    if values.dtype.kind not in "fiub":
        values = _numbers(values)
    values = check_array(
        values.astype(np.float64),
        ensure_2d=False,
        allow_nd=True,
        ensure_all_finite="allow-nan",
        input_name="y",
    )
    if values.ndim not in (1, 2):
        raise ValueError(f"y should be of shape (n,) or (n, t), got {values.shape}.")
    return read_columns(values.reshape(len(values), -1)), values.ndim


def _numbers(values: np.ndarray) -> FloatArray:
    """Read numbers among objects or text, NaN where missing."""
    cells = values.ravel().tolist()
    for value in cells:
        if not is_missing(value) and number_of(value) is None:
            raise ValueError(f"y holds {value!r}, which is not a number.")
    return numbers_in(cells, "y").reshape(values.shape)


def check_observed(targets: Columns, weights: FloatArray | None) -> None:
    """Refuse targets that are categories, or have no value in a row of some weight."""
    for place in range(targets.n_columns):
        if targets.is_categorical(place):
            raise ValueError(f"{_name(targets, place)} does not hold numbers.")
    values = targets.real(range(targets.n_columns))
    counted = slice(None) if weights is None else weights > 0.0
    is_seen = ~np.isnan(values[counted]).all(axis=0)
    if not is_seen.all():
        name = _name(targets, int(np.argmin(is_seen)))
        raise ValueError(f"{name} has no observed value.")


def _name(targets: Columns, place: int) -> str:
    """Return what to call a target in messages."""
    if targets.names is not None:
        return f"The target {targets.names[place]!r}"
    return "y" if targets.n_columns == 1 else f"column {place} of y"


def joined_schema(features: Schema, targets: Schema) -> Schema:
    """Return the schema of tables that have the targets after all other columns.

    Models know the real values of such a table in this order: those of the features,
    those of the targets; and codes: categories, spikes of features, spikes of targets.
    """
    shift = features.n_columns
    names = None
    if features.names is not None:
        names = features.names + tuple(f"y[{j}]" for j in range(targets.n_columns))
    return replace(
        features,
        names=names,
        n_columns=shift + targets.n_columns,
        real=features.real + tuple(shift + j for j in targets.real),
        centre=np.concatenate([features.centre, targets.centre]),
        scale=np.concatenate([features.scale, targets.scale]),
        dtype_names=features.dtype_names + targets.dtype_names,
        shapes=features.shapes | {shift + j: s for j, s in targets.shapes.items()},
    )


@dataclass(frozen=True)
class TargetPlaces:
    """Where targets stand in the rows of a joint table.

    Attributes
    ----------
    real : tuple of int
        Places of the targets among the real values.
    codes : tuple of (int or None)
        For each target, the place of the code of its spikes; None if it has none.
    """

    real: tuple[int, ...]
    codes: tuple[int | None, ...]

    @classmethod
    def of(cls, features: Schema, targets: Schema) -> TargetPlaces:
        """Find the targets after the features."""
        n_real, n_codes = len(features.real), len(features.code_sizes)
        spiked = {k: n_codes + number for number, k in enumerate(targets.shaping.spiked)}
        places = range(len(targets.real))
        return cls(
            tuple(n_real + k for k in places), tuple(spiked.get(k) for k in places)
        )

    @property
    def code_places(self) -> list[int]:
        """Places of the codes of all targets that have spikes."""
        return [code for code in self.codes if code is not None]

    def hidden(self, rows: Rows) -> Rows:
        """Return rows without their targets."""
        return with_hidden(rows, self.real, self.code_places)

    def has_target(self, rows: Rows) -> BoolArray:
        """Return which rows (n,) have at least one target."""
        if rows.observed is None:
            return np.ones(rows.n_rows, dtype=bool)
        is_seen = rows.observed[list(self.real)].any(axis=0)
        return is_seen | (rows.codes[self.code_places] != MISSING_CODE).any(axis=0)


def with_hidden(rows: Rows, real: Sequence[int], codes: Sequence[int]) -> Rows:
    """Return rows in which values and codes at some places are missing."""
    observed = np.ones(rows.real.shape, bool)
    if rows.observed is not None:
        observed[:] = rows.observed
    values = rows.real.copy()
    observed[list(real)], values[list(real)] = False, 0.0
    new_codes = rows.codes
    if codes:
        new_codes = rows.codes.copy()
        new_codes[list(codes)] = MISSING_CODE
    return Rows(values, observed, new_codes)


@dataclass(frozen=True)
class PairedRows:
    """Rows of a table, with targets after its columns; it hands out rows of both.

    Attributes
    ----------
    features : RowSource
        The table.
    targets : RowSource or None
        The targets; None if all of them are missing.
    target_schema : Schema
        Of the targets.
    """

    features: RowSource
    targets: RowSource | None
    target_schema: Schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.features.n_rows

    @property
    def lengths(self) -> None:
        """None: every unit is a single row."""
        return

    @property
    def observed(self) -> BoolArray | None:
        """Mask of the observed real cells; None when all are."""
        n_targets = len(self.target_schema.real)
        hidden = np.zeros((n_targets, self.n_rows), dtype=bool)
        own = hidden if self.targets is None else self.targets.observed
        others = self.features.observed
        if own is None and others is None:
            return None
        if own is None:
            own = ~hidden
        if others is None:
            others = np.ones((self.features[:0].real.shape[0], self.n_rows), dtype=bool)
        return np.vstack([others, own])

    def __getitem__(self, index: slice | np.ndarray) -> Rows:
        features = self.features[index]
        if self.targets is not None:
            own = self.targets[index]
        else:
            n_real, n_codes = len(self.target_schema.real), len(self._code_sizes)
            own = Rows(
                np.zeros((n_real, features.n_rows)),
                np.zeros((n_real, features.n_rows), dtype=bool),
                np.full((n_codes, features.n_rows), MISSING_CODE, features.codes.dtype),
            )
        observed = None
        if features.observed is not None or own.observed is not None:
            masks = [
                np.ones(part.real.shape, bool) if part.observed is None else part.observed
                for part in (features, own)
            ]
            observed = np.vstack(masks)
        return Rows(
            np.vstack([features.real, own.real.astype(features.real.dtype, copy=False)]),
            observed,
            np.vstack([features.codes, own.codes]),
        )

    @property
    def _code_sizes(self) -> tuple[int, ...]:
        return self.target_schema.code_sizes
