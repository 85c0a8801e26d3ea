"""The option ``column_shapes``, and the shapes that it leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TypeAlias

import numpy as np

from hybridmix._checks import check_word
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.cells import label_of
from hybridmix.data.columns import Columns
from hybridmix.data.naming import positions_of
from hybridmix.data.shape_choice import (
    FEWEST,
    Cells,
    bounds_around,
    chosen_shape,
    logarithm,
    logit_between,
    shape_with,
    skewed,
    spikes_of,
)
from hybridmix.data.shapes import ColumnShape, Transform

AUTO, PLAIN, RANGE = "auto", "plain", "range"
SHAPE_WORDS = (AUTO, PLAIN, RANGE, "symmetric", "skewed", "positive", "bounded")
Wish: TypeAlias = "str | tuple[float, float] | ColumnShape"
ShapeOption: TypeAlias = "str | Mapping[int | str, Wish]"

# Shapes are chosen by at most this many rows, or this many for each class, spread evenly
# over the table.
_MOST_ROWS, _MOST_PER_GROUP = 1000, 100
# Values that repeat are looked for in more rows: each of them may be rare.
MOST_SEARCHED = 50_000
# Tables of more real columns are left as they are, unless columns are named; so are those
# of this many columns of one unit, such as images, whose distances are to be kept.
_MOST_COLUMNS, _WIDE = 200, 32
# Full covariances treat every pattern of holes by itself: more columns than this do not
# get spikes.
_MOST_SPIKED = 8


def check_shape_option(option: object, name: str = "column_shapes") -> None:
    """Refuse shapes that are neither words nor a mapping from columns to shapes."""
    if not isinstance(option, Mapping):
        hint = " It may also be a dictionary from columns to shapes."
        check_word(name, option, (AUTO, PLAIN, RANGE), hint)
        return
    for column, wish in option.items():
        if isinstance(wish, ColumnShape) or _are_bounds(wish):
            continue
        hint = " It may also be a pair of bounds or a ColumnShape."
        check_word(f"{name}[{column!r}]", wish, SHAPE_WORDS, hint)


def _are_bounds(wish: object) -> bool:
    if not isinstance(wish, tuple) or len(wish) != 2:
        return False
    are_numbers = all(isinstance(end, Real) and np.isfinite(float(end)) for end in wish)
    return are_numbers and bool(wish[0] < wish[1])


def learned_shapes(
    option: ShapeOption,
    columns: Columns,
    real: Sequence[int],
    weights: FloatArray | None,
    groups: IntArray | None,
    scaling: str,
) -> dict[int, ColumnShape]:
    """Return the shapes of real columns that are not plain, by position.

    Parameters
    ----------
    option : str or mapping
        What the user asks for.
    columns : Columns
        The training table.
    real : sequence of int
        Positions of the real columns.
    weights : ndarray of shape (n,) or None
        Sample weights.
    groups : ndarray of shape (n,) or None
        Class numbers of the rows, -1 where there is no label. Rows without one say
        nothing then: what classes look like together is not the shape of any.
    scaling : str
        As in `Schema.learn`. Columns of a common scale are not mapped one by one.
    """
    if option == PLAIN:
        return {}
    total = columns.n_rows if weights is None else float(weights.sum())
    wishes = _wishes(option, columns, real, scaling, total)
    if not wishes:
        return {}
    sample = Sample.of(columns, list(wishes), weights, groups, scaling != "common")
    shapes = {j: sample.shape(j, wish) for j, wish in wishes.items()}
    spiked = [j for j, wish in wishes.items() if wish == AUTO and shapes[j].spikes]
    spiked.sort(key=lambda j: sample.spike_weight(j, shapes[j]), reverse=True)
    for j in spiked[_MOST_SPIKED:]:
        shapes[j] = sample.shape(j, AUTO, spikes=False)
    return {j: shape for j, shape in shapes.items() if not shape.is_plain}


def _wishes(
    option: ShapeOption,
    columns: Columns,
    real: Sequence[int],
    scaling: str,
    total: float,
) -> dict[int, Wish]:
    """Return what is asked for each real column, as far as rows can have a say in it."""
    named: dict[int, Wish] = {}
    if isinstance(option, Mapping):
        positions = positions_of(list(option), columns.names, columns.n_columns)
        named = dict(zip(positions, option.values(), strict=True))
        _check_real(named, columns, real)
    most = _WIDE - 1 if scaling == "comparable" else _MOST_COLUMNS
    is_wide = len(real) > most
    if is_wide or total < FEWEST:
        return {j: wish for j, wish in sorted(named.items()) if wish not in (AUTO, PLAIN)}
    others = option if isinstance(option, str) else AUTO
    return {j: named.get(j, others) for j in real}


def _check_real(named: Mapping[int, Wish], columns: Columns, real: Sequence[int]) -> None:
    known = set(real)
    for j, wish in named.items():
        if j not in known and wish not in (AUTO, PLAIN, ColumnShape()):
            raise ValueError(
                f"column_shapes has an entry for {label_of(columns.names, j)}, which is "
                "categorical. Only real columns have shapes."
            )


@dataclass(frozen=True)
class Sample:
    """Rows by which shapes are chosen.

    Attributes
    ----------
    names : tuple of str or None
        Of the columns.
    values : dict of int to ndarray of shape (n,)
        Real columns by position, NaN where missing.
    weights, groups : ndarray of shape (n,)
        Weights and class numbers of the rows.
    transforms : bool
        Whether columns may be mapped if nobody asks for it.
    step : int
        Every step-th row is enough, except for rare values.
    """

    names: tuple[str, ...] | None
    values: dict[int, FloatArray]
    weights: FloatArray
    groups: IntArray
    transforms: bool
    step: int

    @classmethod
    def of(
        cls,
        columns: Columns,
        positions: list[int],
        weights: FloatArray | None,
        groups: IntArray | None,
        transforms: bool,
    ) -> Sample:
        """Take rows evenly from a table: those of positive weight, with a label."""
        rows = np.arange(columns.n_rows)
        if groups is not None:
            rows = rows[groups >= 0]
        if weights is not None:
            rows = rows[weights[rows] > 0.0]
        rows = rows[:: max(1, -(-len(rows) // MOST_SEARCHED))]
        n_groups = 1 if groups is None else len(np.unique(groups[rows]))
        most = max(_MOST_ROWS, _MOST_PER_GROUP * n_groups)
        cells = columns.real(positions, single=True)[rows]
        matrix = np.ascontiguousarray(cells.T, dtype=np.float64)
        return cls(
            columns.names,
            dict(zip(positions, matrix, strict=True)),
            np.ones(len(rows)) if weights is None else weights[rows],
            np.zeros(len(rows), np.intp) if groups is None else groups[rows],
            transforms,
            max(1, -(-len(rows) // most)),
        )

    def cells(self, column: int, step: int = 1) -> Cells:
        """Return the observed cells of a column, from every step-th row."""
        values = self.values[column][::step]
        # Infinite values are refused later, with a message.
        observed = np.isfinite(values)
        cells = Cells(values, self.weights[::step], self.groups[::step])
        return cells.part(observed)

    def spike_weight(self, column: int, shape: ColumnShape) -> float:
        """Return the weight of the cells of a column that are spikes."""
        return float(self.weights @ (shape.spike_codes(self.values[column]) > 0))

    def shape(self, column: int, wish: Wish, *, spikes: bool = True) -> ColumnShape:
        """Return the shape of a column, as it is asked for."""
        if isinstance(wish, ColumnShape):
            return wish
        if wish == PLAIN:
            return ColumnShape()
        cells = self.cells(column, self.step)
        if wish == RANGE:
            shape = chosen_shape(cells, transforms=False, spikes=False)
            is_positive = len(cells.values) and cells.values.min() >= 0.0
            return replace(shape, low=0.0) if is_positive else shape
        if wish == AUTO:
            more = self.cells(column)
            return chosen_shape(
                cells, transforms=self.transforms, spikes=spikes, more=more
            )
        found = spikes_of(cells)
        others = cells.part(~np.isin(cells.values, found))
        if len(others.values) == 0:
            return ColumnShape()
        label = label_of(self.names, column)
        return shape_with(_asked_transform(wish, others, label), found, cells)


def _asked_transform(
    wish: str | tuple[float, float], cells: Cells, label: str
) -> Transform | None:
    """Return the transform that is asked for, if the values allow for it."""
    if wish == "symmetric":
        return None
    if wish == "skewed":
        return skewed(cells)
    if wish == "positive":
        _check_within(cells, (0.0, np.inf), label)
        return logarithm(cells)
    bounds = bounds_around(cells) if isinstance(wish, str) else wish
    if bounds is None:
        raise ValueError(
            f"The values of {label} lie neither between 0 and 1 nor between 0 and 100; "
            "give its bounds, such as (0.0, 10.0), in place of 'bounded'."
        )
    _check_within(cells, bounds, label)
    return logit_between(cells, float(bounds[0]), float(bounds[1]))


def _check_within(cells: Cells, bounds: tuple[float, float], label: str) -> None:
    low, high = bounds
    strange = cells.values[(cells.values < low) | (cells.values > high)]
    if low == 0.0 and high == np.inf:
        strange = cells.values[cells.values <= low]
    if len(strange):
        raise ValueError(
            f"column_shapes wants values between {low:g} and {high:g} in {label}, but "
            f"there is {strange[0]:g}."
        )
