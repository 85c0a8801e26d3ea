"""The schema of a training table: kinds of columns, categories, centres and scales."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_instance, require_whole
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.categories import category_lookup, report_unseen, sorted_categories
from hybridmix.data.cells import check_dates, label_of, listed
from hybridmix.data.columns import Columns, NewColumn, build_table
from hybridmix.data.frames import CONTAINERS
from hybridmix.data.naming import column_roles, positions_of
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.data.shape_options import PLAIN, ShapeOption, learned_shapes
from hybridmix.data.shapes import ColumnShape
from hybridmix.data.shaping import Shaping
from hybridmix.data.summaries import TableSummary, check_finite, relative_weights
from hybridmix.data.table import FARTHEST, Table

# Columns that vary less than this part of another one are perhaps in another unit, and
# few columns are seldom of one kind.
_COMPARABLE, _WIDE = 0.1, 32
# Types of frame columns whose missing cells are null, as NaN would be a value.
_WITHOUT_NAN = ("Categorical", "Boolean", "String", "Object")
# Differences of values in larger units than this may be too large for a float.
_HUGE, _DOWN = 2.0**500, 2.0**-600


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
        Mean and standard deviation of the real columns; of their mapped values without
        spikes, where a column has a shape.
    container : str
        What the table was: "numpy", "pandas", "polars" or another kind of frame.
    dtype_names : tuple of str
        Types of the columns.
    shapes : dict of int to ColumnShape
        Shapes of the real columns that are not plain, by their position.
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
    shapes: dict[int, ColumnShape] = field(default_factory=dict)

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
        wanted = ("numpy",) if self.names is None else CONTAINERS
        require(self.container in wanted, f"container is none of {', '.join(wanted)}")
        for names in (self.names or self.dtype_names, self.dtype_names):
            are_names = all(isinstance(name, str) for name in names)
            require(are_names and len(names) == self.n_columns, "names are missing")
        require_instance("shapes", self.shapes, dict)
        require(set(self.shapes) <= set(self.real), "a shape belongs to no real column")
        for shape in self.shapes.values():
            require_instance("a shape", shape, ColumnShape)

    @classmethod
    def learn(
        cls,
        columns: Columns,
        categorical_features: Sequence[int | str | bool] | None = None,
        column_shapes: ShapeOption = PLAIN,
        *,
        weights: FloatArray | None = None,
        scaling: str = "columns",
        groups: IntArray | None = None,
    ) -> Schema:
        """Find types, categories, shapes, means and scales.

        Parameters
        ----------
        columns : Columns
            The training table.
        categorical_features : sequence or None
            Columns that are categorical whatever their type: positions, names or a mask.
        column_shapes : {"auto", "plain"} or mapping
            Shapes of the real columns; see `MixtureDensity`.
        weights : ndarray of shape (n,) or None
            Sample weights.
        scaling : {"columns", "common", "comparable"}
            Divide every real column by its deviation, or all of them by one number, so
            that directions and distances are those of the units of the table. The last
            does so for 32 columns or more whose units are comparable: if half of them
            vary by more than a tenth of the one that varies most.
        groups : ndarray of shape (n,) or None
            Class numbers of the rows, -1 where there is no label: shapes are those within
            classes.
        """
        real, categorical = column_roles(columns, categorical_features)
        shapes = learned_shapes(column_shapes, columns, real, weights, groups, scaling)
        relative = None if weights is None else relative_weights(weights)
        summary = TableSummary.of(columns, real, categorical, relative, shapes)
        return cls.from_summary(columns, real, categorical, summary, scaling, shapes)

    @classmethod
    def from_summary(
        cls,
        columns: Columns,
        real: Sequence[int],
        categorical: Sequence[int],
        summary: TableSummary,
        scaling: str = "columns",
        shapes: Mapping[int, ColumnShape] | None = None,
    ) -> Schema:
        """Build a schema from the summary of all rows.

        Parameters
        ----------
        columns : Columns
            The table, or a block of its rows, for names and types.
        real, categorical : sequence of int
            Positions of the columns that were summarised.
        summary : TableSummary
            What the rows show.
        scaling : {"columns", "common", "comparable"}
            As in `learn`.
        shapes : mapping of int to ColumnShape or None
            Those that the summary was made with.
        """
        # Spikes may be all that a column has.
        is_seen = summary.real.is_seen | np.isin(real, list(shapes or ()))
        kept = [j for j, seen in zip(real, is_seen, strict=True) if seen]
        in_order = map(sorted_categories, summary.categories)
        found = dict(zip(categorical, in_order, strict=True))
        categories = {j: values for j, values in found.items() if values}
        _warn_about_empty(columns, {*kept, *categories})
        scale, is_constant = summary.real.scales()
        return cls(
            names=columns.names,
            n_columns=columns.n_columns,
            real=tuple(kept),
            categorical=tuple(categories),
            categories=tuple(categories.values()),
            centre=summary.real.centre[is_seen],
            scale=_chosen_scale(scale[is_seen], is_constant[is_seen], scaling),
            container=columns.container,
            dtype_names=tuple(columns.dtype_name(j) for j in range(columns.n_columns)),
            shapes=dict(shapes or {}),
        )

    # Columns ----------------------------------------------------------------------

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Number of categories of each categorical column."""
        return tuple(len(values) for values in self.categories)

    @cached_property
    def shaping(self) -> Shaping:
        """The shapes of the real columns, as rows need them."""
        return Shaping.of(self.shapes, self.real)

    @property
    def code_sizes(self) -> tuple[int, ...]:
        """Sizes of all codes of a row: categorical columns, then those with spikes."""
        return self.n_categories + self.shaping.code_sizes

    def positions(self, columns: Sequence[int | str]) -> list[int]:
        """Return the positions of columns given by name or number."""
        return positions_of(columns, self.names, self.n_columns)

    def places(self, columns: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return where columns stand among the real and among the categorical ones."""
        of_real, of_categorical = self._places
        real = [of_real[j] for j in columns if j in of_real]
        return real, [of_categorical[j] for j in columns if j in of_categorical]

    def model_places(self, columns: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return where columns stand among the real values and the codes of rows."""
        real, codes = self.places(columns)
        where = {place: k for k, place in enumerate(self.shaping.spiked)}
        spiked = [len(self.categorical) + where[k] for k in real if k in where]
        return real, codes + spiked

    @cached_property
    def _places(self) -> tuple[dict[int, int], dict[int, int]]:
        """Where each column stands; a search in tuples is slow for wide tables."""
        real = {j: place for place, j in enumerate(self.real)}
        return real, {j: place for place, j in enumerate(self.categorical)}

    def marginal(self, columns: Sequence[int]) -> Schema:
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
            shapes={where[j]: s for j, s in self.shapes.items() if j in where},
        )

    # Tables -----------------------------------------------------------------------

    def encode(
        self, columns: Columns, strict: bool = False, single: bool = False
    ) -> Table:
        """Encode a table; unseen categories become missing, with one warning.

        If it is to be strict, they are refused instead. Values in single precision stay
        so in the table if `single` is true.
        """
        codes = np.empty((columns.n_rows, len(self.categorical)), dtype=np.int32)
        unseen: dict[str, object] = {}
        for position, j in enumerate(self.categorical):
            values, label = columns.values(j), label_of(self.names, j)
            check_dates(label, columns.dtype_name(j), self.dtype_names[j], values)
            lookup, strangers = category_lookup(values, self.categories[position], label)
            codes[:, position] = [lookup.get(v, MISSING_CODE) for v in values]
            if strangers:
                unseen[label] = min(strangers, key=str)
        if unseen:
            report_unseen(unseen, strict)
        real = columns.real(self.real, single)
        return Table(self, real, codes, check_finite(real, self.names, self.real))

    def decode(self, rows: Rows) -> object:
        """Turn complete encoded rows into a table like the one of training."""
        return self.assembled(self.restored(rows), rows.codes)

    def assembled(self, real: FloatArray, codes: IntArray) -> object:
        """Make a table of real columns (d, n), in their units, and of codes (f, n)."""
        n_rows = real.shape[1]
        columns: list[NewColumn] = [
            [None] * n_rows if name in _WITHOUT_NAN else np.full(n_rows, np.nan)
            for name in self.dtype_names
        ]
        for j, values in zip(self.real, real, strict=True):
            columns[j] = values
        categories = dict(zip(self.categorical, self.categories, strict=True))
        for (j, known), numbers in zip(categories.items(), codes, strict=False):
            columns[j] = [known[number] for number in numbers]
        return build_table(
            self.container, self.names, self.dtype_names, columns, categories
        )

    def standardised(self, values: FloatArray) -> FloatArray:
        """Shape, centre and scale real columns, NaN where missing, (d, n) both ways.

        Values beyond `FARTHEST` deviations are moved there.
        """
        values = self.shaping.forward(values)
        down = self._down
        result = np.empty(values.shape)
        if down is None:
            np.subtract(values, self.centre[:, None], out=result)
        else:
            np.multiply(values, down[:, None], out=result)
            result -= (self.centre * down)[:, None]
        scale = self.scale if down is None else self.scale * down
        with np.errstate(over="ignore"):
            result /= scale[:, None]
        return np.clip(result, -FARTHEST, FARTHEST, out=result)

    def unscaled(self, values: FloatArray) -> FloatArray:
        """Undo centring and scaling, (d, n) both ways; results are finite."""
        centre, scale, down = self.centre, self.scale, self._down
        if down is None:
            return values * scale[:, None] + centre[:, None]
        down = down[:, None]
        result = values * (scale[:, None] * down) + centre[:, None] * down
        most = np.finfo(float).max * down
        return np.clip(result, -most, most) / down

    def restored(
        self, rows: Rows, means: Mapping[int, FloatArray] | None = None
    ) -> FloatArray:
        """Return the real columns (d, n) of complete rows, in the units of the table.

        Parameters
        ----------
        rows : Rows
            Complete rows.
        means : mapping of int to ndarray of shape (n,), or None
            What takes the place of values of some columns, where it is not NaN.
        """
        values = self.shaping.inverse(self.unscaled(rows.real))
        for place, own in (means or {}).items():
            values[place] = np.where(np.isnan(own), values[place], own)
        self.shaping.restore(values, rows.codes[len(self.categorical) :])
        return values

    def without_spikes(self, rows: Rows) -> Rows:
        """Hide the values of sampled rows whose codes say that they are spikes."""
        codes = rows.codes[len(self.categorical) :]
        if len(codes) == 0:
            return rows
        observed = np.ones(rows.real.shape, dtype=bool)
        self.shaping.hide(observed, codes)
        return Rows(np.where(observed, rows.real, 0.0), observed, rows.codes)[:]

    def log_volumes(self, rows: Rows) -> FloatArray:
        """Return by how much shaping and scaling raised the log density of rows, (n,)."""
        log_scale, observed = np.log(self.scale), rows.observed
        if observed is None:
            volumes = np.full(rows.n_rows, log_scale.sum())
        else:
            volumes = np.asarray(log_scale @ observed, dtype=np.float64)
        if not self.shapes:
            return volumes
        values = self.shaping.inverse(self.unscaled(rows.real))
        if observed is not None:
            values[~observed] = np.nan
        return volumes + self.shaping.log_volume(values)

    def total_log_volume(self, rows: Rows, weights: FloatArray) -> float:
        """Return by how much shaping and scaling raised the log-likelihood of rows."""
        return float(self.log_volumes(rows) @ weights)

    @cached_property
    def _down(self) -> FloatArray | None:
        """Powers of two that bring huge columns into range; None without such columns."""
        is_huge = self.scale > _HUGE
        return np.where(is_huge, _DOWN, 1.0) if is_huge.any() else None


def _warn_about_empty(columns: Columns, used: set[int]) -> None:
    """Warn about columns without any observed value; refuse a table of such columns."""
    empty = [j for j in range(columns.n_columns) if j not in used]
    if not used:
        raise ValueError("The table has no observed value at all.")
    if empty:
        found = listed([label_of(columns.names, j) for j in empty])
        warnings.warn(
            f"No observed value in {found}: left out of the model, and ignored in later "
            "tables. Drop such columns to silence this warning.",
            UserWarning,
            stacklevel=4,
        )


def _chosen_scale(scale: FloatArray, is_constant: BoolArray, scaling: str) -> FloatArray:
    """Return the scales that columns are divided by, from their own scales."""
    varying = scale[~is_constant]
    if scaling == "columns" or len(varying) == 0:
        return scale
    largest = varying.max()
    if scaling == "comparable":
        is_wide = len(varying) >= _WIDE
        if not is_wide or np.median(varying) < _COMPARABLE * largest:
            return scale
    # Squares of the quotients are in the range of floats whatever the unit is.
    common = largest * np.sqrt(np.mean((varying / largest) ** 2))
    return np.full_like(scale, max(common, np.finfo(float).smallest_subnormal))
