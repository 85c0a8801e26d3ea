"""The schema of a training table, and tables encoded by it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from hybridmix._chunks import row_chunks
from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_whole
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.columns import (
    Columns,
    as_frame,
    build_table,
    label_of,
    read_columns,
)
from hybridmix.data.rows import MISSING_CODE, Rows

# Beyond this many standard deviations every density is zero to machine precision; the
# limit keeps squares finite.
FARTHEST = 1e50
# Columns that vary less than this part of another one are in another unit, perhaps, and
# few columns are seldom of one kind.
_COMPARABLE, _WIDE = 0.1, 32
# Types of frame columns whose missing cells are null, as NaN would be a value.
_WITHOUT_NAN = ("Categorical", "Boolean", "String", "Object")
_PUBLISHED = ("n_features_in_", "feature_names_in_")


@registered
@dataclass(frozen=True)
class Schema:
    """What training learned about the columns of a table.

    Attributes
    ----------
    names : tuple of str or None
        Column names; None for arrays.
    n_columns : int
        Number of columns of the table.
    real, categorical : tuple of int
        Positions of the columns in use. A column without any observed value is in
        neither.
    categories : tuple of tuple
        Sorted values of each categorical column.
    centre, scale : ndarray of shape (d,)
        Mean and standard deviation of the real columns.
    container : str
        What the table was: "numpy", "pandas", "polars".
    dtype_names : tuple of str
        Types of the columns.
    """

    names: tuple[str, ...] | None
    n_columns: int
    real: tuple[int, ...]
    categorical: tuple[int, ...]
    categories: tuple[tuple[Any, ...], ...]
    centre: FloatArray
    scale: FloatArray
    container: str
    dtype_names: tuple[str, ...]

    def check_consistent(self) -> None:
        """Raise ValueError unless every column has what it needs."""
        require_whole("columns", (self.n_columns, *self.real, *self.categorical))
        positions = self.real + self.categorical
        require(len(positions) > 0, "there are no columns")
        require(max(positions) < self.n_columns, "columns are out of range")
        require(len(set(positions)) == len(positions), "a column is used twice")
        require_array("centre", self.centre, (len(self.real),))
        require_array("scale", self.scale, (len(self.real),), positive=True)
        same = len(self.categories) == len(self.categorical)
        require(same, "categories are missing")
        for values in self.categories:
            require(len(set(values)) == len(values) > 0, "categories are not distinct")
        for names in (self.names, self.dtype_names):
            require(names is None or len(names) == self.n_columns, "names are missing")

    @classmethod
    def learn(
        cls,
        columns: Columns,
        categorical_features: Sequence[int | str | bool] | None = None,
        weights: FloatArray | None = None,
        scaling: str = "columns",
    ) -> Schema:
        """Find types, categories, means and scales.

        Parameters
        ----------
        columns : Columns
            The training table.
        categorical_features : sequence or None
            Columns that are categorical whatever their type: positions, names or a mask.
        weights : ndarray of shape (n,) or None
            Sample weights.
        scaling : {"columns", "common", "comparable"}
            Divide every real column by its deviation, or all of them by one number, so
            that directions and distances are those of the units of the table. The last
            does so for 32 columns or more whose units are comparable: if half of them
            vary by more than a tenth of the one that varies most.
        """
        named = _named_columns(categorical_features, columns)
        is_categorical = [
            j in named or columns.is_categorical(j) for j in range(columns.n_columns)
        ]
        real = [j for j, flag in enumerate(is_categorical) if not flag]
        matrix = columns.real(real)
        _check_finite(matrix, columns.names, real)
        centre, scale, is_seen, is_constant = _moments(matrix, weights)
        kept_real = [j for j, seen in zip(real, is_seen, strict=True) if seen]
        categories: dict[int, tuple[Any, ...]] = {}
        for j in (j for j, flag in enumerate(is_categorical) if flag):
            if found := _categories(columns.values(j), weights):
                categories[j] = found
        empty = set(range(columns.n_columns)) - set(kept_real) - set(categories)
        if len(empty) == columns.n_columns:
            raise ValueError("The table has no observed value at all.")
        if empty:
            listed = ", ".join(label_of(columns.names, j) for j in sorted(empty))
            warnings.warn(
                f"No observed value in {listed}: left out of the model, and ignored in "
                "tables to come. Drop such columns to silence this warning.",
                UserWarning,
                stacklevel=2,
            )
        scale = _scaled(scale[is_seen], is_constant[is_seen], scaling)
        return cls(
            names=columns.names,
            n_columns=columns.n_columns,
            real=tuple(kept_real),
            categorical=tuple(categories),
            categories=tuple(categories.values()),
            centre=centre[is_seen],
            scale=scale,
            container=columns.container,
            dtype_names=tuple(columns.dtype_name(j) for j in range(columns.n_columns)),
        )

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Number of categories of each categorical column."""
        return tuple(len(values) for values in self.categories)

    def encode(self, columns: Columns) -> Table:
        """Encode a table; unseen categories become missing, with one warning."""
        codes = np.empty((columns.n_rows, len(self.categorical)), dtype=np.int32)
        unseen: dict[str, Any] = {}
        for position, j in enumerate(self.categorical):
            lookup = {value: k for k, value in enumerate(self.categories[position])}
            values = columns.values(j)
            codes[:, position] = [lookup.get(v, MISSING_CODE) for v in values]
            strangers = set(values) - lookup.keys() - {None}
            if strangers:
                unseen[label_of(self.names, j)] = min(strangers, key=str)
        if unseen:
            listed = ", ".join(f"{value!r} in {name}" for name, value in unseen.items())
            warnings.warn(
                f"Categories that training did not see count as missing: {listed}.",
                UserWarning,
                stacklevel=2,
            )
        real = columns.real(self.real)
        return Table(self, real, codes, _check_finite(real, self.names, self.real))

    def decode(self, rows: Rows) -> Any:
        """Turn complete encoded rows into a table like the one of training."""
        real = rows.real * self.scale[:, None] + self.centre[:, None]
        columns: list[Any] = [
            [None] * rows.n_rows if name in _WITHOUT_NAN else np.full(rows.n_rows, np.nan)
            for name in self.dtype_names
        ]
        for position, j in enumerate(self.real):
            columns[j] = real[position]
        for position, j in enumerate(self.categorical):
            values = self.categories[position]
            columns[j] = [values[code] for code in rows.codes[position]]
        categories = dict(zip(self.categorical, self.categories, strict=True))
        return build_table(
            self.container, self.names, self.dtype_names, columns, categories
        )

    def positions(self, columns: Sequence[int | str]) -> list[int]:
        """Return the positions of columns given by name or number."""
        return [_position(column, self.names, self.n_columns) for column in columns]

    def places(self, columns: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return where columns stand among the real and among the categorical ones."""
        real = [self.real.index(j) for j in columns if j in self.real]
        categorical = [
            self.categorical.index(j) for j in columns if j in self.categorical
        ]
        return real, categorical

    def restricted(self, columns: Sequence[int]) -> Schema:
        """Return the schema of a table that has only some of the columns, in order."""
        real, categorical = self.places(columns)
        where = {j: position for position, j in enumerate(columns)}
        return replace(
            self,
            names=None if self.names is None else tuple(self.names[j] for j in columns),
            n_columns=len(columns),
            real=tuple(where[self.real[k]] for k in real),
            categorical=tuple(where[self.categorical[k]] for k in categorical),
            categories=tuple(self.categories[k] for k in categorical),
            centre=self.centre[real],
            scale=self.scale[real],
            dtype_names=tuple(self.dtype_names[j] for j in columns),
        )


@dataclass(frozen=True)
class Table:
    """An encoded table: raw real values, category numbers.

    Scaling waits until rows are asked for, so that a table of the size of memory is not
    copied to be predicted.
    """

    schema: Schema
    real: FloatArray
    codes: IntArray
    has_holes: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.real)

    def __getitem__(self, index: slice | IntArray) -> Rows:
        """Encode the rows of a range or of a list of numbers."""
        raw = self.real[index].T
        real = np.empty(raw.shape)
        np.subtract(raw, self.schema.centre[:, None], out=real)
        real /= self.schema.scale[:, None]
        np.clip(real, -FARTHEST, FARTHEST, out=real)
        observed = None
        if self.has_holes:
            hole = np.isnan(real)
            if hole.any():
                observed = ~hole
                real[hole] = 0.0
        return Rows(real, observed, np.ascontiguousarray(self.codes[index].T))

    @property
    def observed(self) -> BoolArray | None:
        """Mask (d, n) of the observed real cells; None when all are."""
        return ~np.isnan(self.real).T if self.has_holes else None

    def log_volume(self) -> FloatArray | float:
        """Return, per row, the log of the volume by which scaling shrank the density."""
        log_scale = np.log(self.schema.scale)
        observed = self.observed
        if observed is None:
            return float(log_scale.sum())
        return np.asarray(log_scale @ observed, dtype=np.float64)


def read_training_table(estimator: Any, X: Any) -> tuple[Columns, dict[str, Any]]:
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
    columns = _validated(scratch, X, reset=True)
    attributes = {k: v for k, v in vars(scratch).items() if k in _PUBLISHED}
    return columns, attributes


def read_table(estimator: Any, X: Any, *, schema: Schema | None = None) -> Columns:
    """Check a table against the one of training, as scikit-learn does, and wrap it.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are compared with the table.
    X : array-like, pandas or polars data frame
        The table.
    schema : Schema or None
        The schema of training. None sets the attributes instead of comparing them.
    """
    return _validated(estimator, X, reset=schema is None)


def _validated(estimator: Any, X: Any, *, reset: bool) -> Columns:
    """Run scikit-learn's checks of a table, which set or compare attributes."""
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
    return read_columns(X)


def _named_columns(
    selection: Sequence[int | str | bool] | None, columns: Columns
) -> set[int]:
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
    return {_position(c, columns.names, columns.n_columns) for c in chosen.tolist()}


def _position(column: int | str, names: tuple[str, ...] | None, n_columns: int) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"Column {column!r} is given by name, but the table is an array without "
                "names; give its position."
            )
        if column not in names:
            raise ValueError(
                f"There is no column {column!r}; the columns are {', '.join(names)}."
            )
        return names.index(column)
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"There is no column {column}; the table has {n_columns} columns."
        )
    return int(column) % n_columns


def _scaled(scale: FloatArray, is_constant: BoolArray, scaling: str) -> FloatArray:
    """Return by what columns are divided, from their own scales."""
    varying = scale[~is_constant]
    if scaling == "columns" or len(varying) == 0:
        return scale
    if scaling == "comparable":
        is_wide = len(varying) >= _WIDE
        if not is_wide or np.median(varying) < _COMPARABLE * varying.max():
            return scale
    return np.full_like(scale, np.sqrt(np.mean(varying**2)))


def _moments(
    real: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Return mean, scale, whether anything is observed and whether all is the same.

    Values are divided by the largest one before they are squared, so that columns of any
    magnitude have a finite variance. A constant column is scaled by its value.
    """
    n_rows, n_columns = real.shape
    count, total, largest = (np.zeros(n_columns) for _ in range(3))
    square = np.zeros(n_columns)

    def weighted(block: slice) -> tuple[FloatArray, FloatArray]:
        # Sums in another order of memory would differ in the last bits.
        values = np.ascontiguousarray(real[block])
        weight = np.ones((1, 1)) if weights is None else weights[block, None]
        hole = np.isnan(values)
        if weights is None and not hole.any():
            return values, np.broadcast_to(weight, values.shape)
        present = ~hole * weight
        return np.where(present > 0, values, 0.0), present

    for block in row_chunks(n_rows, 3 * max(n_columns, 1)):
        values, present = weighted(block)
        largest = np.maximum(largest, np.abs(values).max(axis=0, initial=0.0))
        count += present.sum(axis=0)
    is_seen = count > 0
    unit = np.where(largest > 0, largest, 1.0)
    for block in row_chunks(n_rows, 3 * max(n_columns, 1)):
        values, present = weighted(block)
        total += (values / unit * present).sum(axis=0)
    mean = np.divide(total, count, out=np.zeros(n_columns), where=is_seen)
    for block in row_chunks(n_rows, 3 * max(n_columns, 1)):
        values, present = weighted(block)
        square += ((values / unit - mean) ** 2 * present).sum(axis=0)
    deviation = np.sqrt(np.divide(square, count, out=np.zeros(n_columns), where=is_seen))
    is_constant = deviation <= 8 * np.finfo(float).eps
    scale = unit * np.where(is_constant, 1.0, deviation)
    return mean * unit, scale, is_seen, is_constant


def _check_finite(
    real: FloatArray, names: tuple[str, ...] | None, positions: Sequence[int]
) -> bool:
    """Refuse infinite values; tell whether there are missing ones."""
    has_holes = False
    for block in row_chunks(len(real), max(real.shape[1], 1)):
        values = real[block]
        if np.isfinite(values).all():
            continue
        infinite = np.argwhere(np.isinf(values))
        if len(infinite):
            row, position = infinite[0]
            name = label_of(names, positions[position])
            raise ValueError(
                f"Input X contains infinity or a value too large: {name}, row "
                f"{block.start + row}. Replace it by a finite value, or by NaN to treat "
                "it as missing."
            )
        has_holes = True
    return has_holes


def _categories(values: list[Any], weights: FloatArray | None) -> tuple[Any, ...]:
    """Return the distinct values, sorted; those of weightless rows do not count."""
    if weights is not None:
        values = [v for v, weight in zip(values, weights, strict=True) if weight > 0]
    found = set(values) - {None}
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=lambda v: (type(v).__name__, str(v))))
