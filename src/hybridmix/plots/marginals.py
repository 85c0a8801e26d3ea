"""A fitted mixture and some rows, as pictures of a few columns need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Schema, Table, number_labels, read_table
from hybridmix.data.columns import label_of
from hybridmix.data.shapes import ColumnShape
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.components import Marginal
from hybridmix.models import class_posterior
from hybridmix.tasks import task_of

# Beyond the rows, pictures show this share of their range on each side.
_MARGIN = 0.1
# This many rows decide which columns to show.
_TELLING_ROWS = 500


@dataclass(frozen=True)
class Variable:
    """A column, as pictures show it.

    Attributes
    ----------
    name : str
        For the axis.
    values : ndarray of shape (n,)
        Of the rows, NaN where missing; numbers of categories for a categorical column.
    points : ndarray of shape (m,)
        Where densities are evaluated: a grid from end to end, or all category numbers.
    categories : tuple or None, default=None
        What the numbers stand for; None for a real column.
    spikes : tuple of float, default=()
        Values of a real column that have a probability instead of a density.
    masses : ndarray of shape (n_classes, s) or None, default=None
        Probabilities of spike and class.
    """

    name: str
    values: FloatArray
    points: FloatArray
    categories: tuple[Any, ...] | None = None
    spikes: tuple[float, ...] = ()
    masses: FloatArray | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the axis."""
        room = 0.0 if self.categories is None else 0.5
        return float(self.points[0] - room), float(self.points[-1] + room)


@dataclass(frozen=True)
class MarginalView:
    """A fitted mixture, and rows of a table that it knows.

    Attributes
    ----------
    estimator : FittedMixture
        The mixture.
    table : Table
        The rows.
    labels : ndarray of shape (n,)
        Class numbers of the rows; -1 where there is no label.
    """

    estimator: Any
    table: Table
    labels: IntArray

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any = None) -> MarginalView:
        """Read a table by the schema of a fitted estimator, or of the best of a search.

        Parameters
        ----------
        estimator : FittedMixture, or a search with ``best_estimator_``
            Fitted.
        X : array-like or data frame of shape (n, d)
            Rows to show.
        y : array-like of shape (n,) or None
            Their labels.
        """
        mixture: Any = getattr(estimator, "best_estimator_", estimator)
        if not isinstance(mixture, FittedMixture):
            raise TypeError(
                "Only mixtures of hybridmix have exact marginals to draw; this is a "
                f"{type(mixture).__name__}."
            )
        check_is_fitted(mixture, "model_")
        table = mixture.schema_.encode(read_table(mixture, X))
        labels = np.full(table.n_rows, UNLABELLED)
        if y is not None:
            if task_of(mixture).target != "classes":
                raise ValueError(
                    f"A {type(mixture).__name__} has no classes to compare y with; "
                    "leave y out."
                )
            labels = number_labels(y, mixture.classes_, mixture.unlabelled)
            check_consistent_length(table.real, labels)
        return cls(mixture, table, labels)

    @property
    def schema(self) -> Schema:
        """What training learned about the columns."""
        return self.estimator.schema_

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, or a single None if the mixture has no classes."""
        return tuple(getattr(self.estimator, "classes_", np.array([None])).tolist())

    def name_of(self, column: int) -> str:
        """Name a column."""
        names = self.schema.names
        return f"column {column}" if names is None else names[column]

    def positions(
        self, columns: Sequence[int | str] | None, n_default: int, *, real_only: bool
    ) -> list[int]:
        """Return the positions of chosen columns, after a check that they can be shown.

        None chooses real columns: those that say most about the class, or the first
        ones if there are no classes.
        """
        if columns is None:
            return self._default_positions(n_default)
        positions = self.schema.positions(columns)
        for column in positions:
            label = label_of(self.schema.names, column)
            if column in self.schema.categorical and real_only:
                listed = ", ".join(map(self.name_of, self.schema.real)) or "none"
                raise ValueError(
                    f"The {label} is categorical, and this picture needs real ones. "
                    f"These are real: {listed}."
                )
            if column not in (*self.schema.real, *self.schema.categorical):
                raise ValueError(f"The {label} had no value in training; drop it here.")
        if len(set(positions)) < len(positions):
            raise ValueError("A column is chosen more than once; choose each only once.")
        return positions

    def _default_positions(self, n_columns: int) -> list[int]:
        """Add, one after the other, the real column that leaves the class least open."""
        candidates = list(self.schema.real)
        if len(self.classes) == 1 or len(candidates) <= n_columns:
            return candidates[:n_columns]
        chosen: list[int] = []
        while len(chosen) < n_columns:
            best = min(candidates, key=lambda column: self._openness([*chosen, column]))
            candidates.remove(best)
            chosen.append(best)
        return chosen

    def _openness(self, columns: list[int]) -> float:
        """Return the mean entropy of the class, given some columns of the rows."""
        real, codes = self.schema.places(columns)
        some = slice(None, None, max(1, self.table.n_rows // _TELLING_ROWS))
        log_joint = Marginal.of(self.estimator, columns).log_joint(
            self.table.real[some][:, real], self.table.codes[some][:, codes]
        )
        return float(entr(class_posterior(log_joint)[1]).sum(axis=0).mean())

    def variable(self, column: int, n_points: int) -> Variable:
        """Return a column with its values, and a grid or the categories."""
        name = self.name_of(column)
        real, codes = self.schema.places([column])
        if codes:
            categories = self.schema.categories[codes[0]]
            numbers = self.table.codes[:, codes[0]].astype(np.float64)
            values = np.where(numbers < 0, np.nan, numbers)
            points = np.arange(len(categories), dtype=np.float64)
            return Variable(name, values, points, categories)
        values = self.table.real[:, real[0]]
        if np.isnan(values).all():
            label = label_of(self.schema.names, column)
            raise ValueError(f"The {label} has no value in any of these rows.")
        low, high = np.nanmin(values), np.nanmax(values)
        shape = self.schema.shapes.get(column, ColumnShape())
        margin = _MARGIN * (high - low) or self._spread(shape, real[0])
        points = np.linspace(low - margin, high + margin, n_points)
        # Curves show densities, which spikes do not have.
        is_spike = np.isin(points, shape.spikes)
        points = np.where(is_spike, np.nextafter(points, high), points)
        masses = None
        if shape.spikes:
            cells = np.array(shape.spikes)[:, None], np.empty((len(shape.spikes), 0), int)
            masses = np.exp(Marginal.of(self.estimator, [column]).log_joint(*cells))
        return Variable(name, values, points, spikes=shape.spikes, masses=masses)

    def _spread(self, shape: ColumnShape, place: int) -> float:
        """Return how far a column spreads, in the units of the table."""
        centre, scale = self.schema.centre[[place]], self.schema.scale[[place]]
        return float(shape.moments(centre, scale)[1][0])

    def log_joint_on_grid(
        self, columns: list[int], variables: list[Variable]
    ) -> FloatArray:
        """Return ``log p(x, c)`` at all combinations of points, (C, m_1, m_2, ...)."""
        grid = np.meshgrid(*(variable.points for variable in variables), indexing="ij")
        cells = [points.ravel() for points in grid]
        is_real = [variable.categories is None for variable in variables]
        real = [cell for cell, flag in zip(cells, is_real, strict=True) if flag]
        codes = [cell for cell, flag in zip(cells, is_real, strict=True) if not flag]
        n = len(cells[0])
        log_joint = Marginal.of(self.estimator, columns).log_joint(
            np.array(real, dtype=np.float64).reshape(len(real), n).T,
            np.array(codes, dtype=np.int32).reshape(len(codes), n).T,
        )
        return log_joint.reshape(-1, *grid[0].shape)
