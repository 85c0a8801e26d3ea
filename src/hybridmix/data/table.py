"""Encoded tables, and the checks of tables that scikit-learn asks for."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import validate_data

from hybridmix._checks import is_learned
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.columns import Columns, as_frame, read_columns
from hybridmix.data.dense import refuse_sparse
from hybridmix.data.rows import MISSING_CODE, Rows

if TYPE_CHECKING:
    from hybridmix.data.schema import Schema

# Beyond this many standard deviations every density is zero to machine precision; the
# limit keeps squares finite.
FARTHEST = 1e50
PUBLISHED = ("n_features_in_", "feature_names_in_")
# Rows that are picked and encoded together.
_BLOCK = 1 << 13


@dataclass(frozen=True)
class Table:
    """An encoded table: raw real values, category numbers.

    Scaling waits until rows are asked for, so that a table of the size of memory is not
    copied to be predicted.

    Attributes
    ----------
    schema : Schema
        What is known of its columns.
    real : ndarray of shape (n, d)
        Real values as they are, NaN where missing; in training they may be in single
        precision, and all that is done with them is done in double precision.
    codes : ndarray of shape (n, f)
        Category numbers, -1 where missing.
    has_holes : bool
        Whether a real value is missing.
    dtype : type
        Of the real values of the rows that it hands out; these are scaled in double
        precision first.
    """

    schema: Schema
    real: FloatArray
    codes: IntArray
    has_holes: bool
    dtype: type[np.floating] = np.float64

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.real)

    @property
    def lengths(self) -> None:
        """None: every unit is a single row."""
        return

    def __getitem__(self, index: slice | IntArray) -> Rows:
        """Encode the rows of a range or of a list of numbers."""
        if isinstance(index, slice) or len(index) <= _BLOCK:
            return self._encoded(index)
        # Rows that are picked are copied before they are scaled: better not all at once.
        parts = (
            (slice(first, first + _BLOCK), self._encoded(index[first : first + _BLOCK]))
            for first in range(0, len(index), _BLOCK)
        )
        n_codes = self.codes.shape[1] + len(self.schema.shaping.spiked)
        real = np.empty((self.real.shape[1], len(index)), self.dtype)
        codes = np.empty((n_codes, len(index)), self.codes.dtype)
        observed = None
        for own, part in parts:
            real[:, own], codes[:, own] = part.real, part.codes
            if part.observed is not None:
                if observed is None:
                    observed = np.ones(real.shape, dtype=bool)
                observed[:, own] = part.observed
        return Rows(real, observed, codes)

    def _encoded(self, index: slice | IntArray) -> Rows:
        values = self._values(index)
        real = self.schema.standardised(values)
        observed = None
        if self.has_holes or self.schema.shaping.spiked:
            hole = np.isnan(real)
            if hole.any():
                observed = ~hole
                real[hole] = 0.0
        codes = np.vstack([self.codes[index].T, self.schema.shaping.codes(values)])
        rows = Rows(real, observed, np.ascontiguousarray(codes))
        return rows.astype(self.dtype)

    def _values(self, index: slice | IntArray = slice(None)) -> FloatArray:
        """Return real values (d, n) of some rows, in double precision."""
        return np.asarray(self.real[index].T, dtype=np.float64)

    @property
    def observed(self) -> BoolArray | None:
        """Mask (d, n) of the real cells that rows have, without spikes; None for all."""
        shaping = self.schema.shaping
        if not self.has_holes and not shaping.spiked:
            return None
        observed = ~np.isnan(self.real).T
        shaping.hide(observed, shaping.codes(self._values()))
        return None if observed.all() else observed

    def log_volume(self) -> FloatArray | float:
        """Return, per row, the log of the volume by which encoding shrank the density."""
        log_scale = np.log(self.schema.scale)
        observed = self.observed
        if self.schema.shapes:
            mapped = self.schema.shaping.log_volume(self._values())
            if observed is None:
                return mapped + log_scale.sum()
            return np.asarray(mapped + log_scale @ observed, dtype=np.float64)
        if observed is None:
            return float(log_scale.sum())
        return np.asarray(log_scale @ observed, dtype=np.float64)


def single_column(schema: Schema, column: int, values: FloatArray) -> Table:
    """Return rows of which only one real column is known.

    Parameters
    ----------
    schema : Schema
        All columns.
    column : int
        Position of the known one.
    values : ndarray of shape (n,)
        Its values.
    """
    real = np.full((len(values), len(schema.real)), np.nan)
    real[:, schema.real.index(column)] = values
    codes = np.full((len(values), len(schema.categorical)), MISSING_CODE, np.int32)
    return Table(schema, real, codes, True)


def read_training_table(
    estimator: object, X: object
) -> tuple[Columns, dict[str, object]]:
    """Check a training table as scikit-learn does, and leave the estimator alone.

    Parameters
    ----------
    estimator : estimator
        The estimator to be trained. It is not changed, so that a refused or failed fit
        leaves no trace in it.
    X : array-like, pandas or polars data frame
        The table.

    Returns
    -------
    columns : Columns
        The table, column by column.
    attributes : dict of str to object
        What to publish after training: ``n_features_in_``, and ``feature_names_in_`` if
        the columns have names. An estimator that has ``feature_names_in_`` from an
        earlier fit must lose it if it is not here.
    """
    scratch = copy(estimator)
    # An earlier fit must not be compared with.
    scratch.__dict__ = {k: v for k, v in vars(estimator).items() if not is_learned(k)}
    columns = _validated(scratch, X, reset=True)
    attributes = {k: v for k, v in vars(scratch).items() if k in PUBLISHED}
    return columns, attributes


def read_table(estimator: object, X: object) -> Columns:
    """Check a table against the one of training, as scikit-learn does, and wrap it.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are compared with the table.
    X : array-like, pandas or polars data frame
        The table.
    """
    return _validated(estimator, X, reset=False)


def _validated(estimator: object, X: object, *, reset: bool) -> Columns:
    """Run scikit-learn's checks of a table, which set or compare attributes."""
    refuse_sparse(X)
    frame = as_frame(X)
    if frame is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if frame.shape[0] == 0 or frame.shape[1] == 0:
            raise ValueError(
                f"Found array with {frame.shape[0]} sample(s) and {frame.shape[1]} "
                "feature(s) while a minimum of 1 is required."
            )
    else:
        X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    return read_columns(X if frame is None else frame)
