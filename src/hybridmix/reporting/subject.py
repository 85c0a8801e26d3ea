"""What a report is about: a fitted model and a table, read once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import MISSING_CODE, UNLABELLED, Schema, Table
from hybridmix.data.columns import Columns, as_frame, is_missing
from hybridmix.data.fingerprint import UNSEEN, Origin, Overlap
from hybridmix.estimators.base import FittedMixture, outlier_level
from hybridmix.exceptions import UnsupportedError
from hybridmix.reporting.markup import NONE, number
from hybridmix.tasks import Provenance, Task, looked_up, task_of
from hybridmix.tasks.base import quiet

# Rows beyond these are not scored; a random part of them is.
MAX_SCORED = 100_000


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model, a table, and its labels.

    Attributes
    ----------
    given, model, table, y, truth, n_folds, seed
        As in `hybridmix.tasks.base.Cases`.
    X : array or data frame of shape (n, d)
        The table.
    columns : Columns
        The same, to be read column by column.
    baselines : bool
        Whether to compare with other models.
    """

    given: Any
    model: Any
    X: Any
    columns: Columns
    table: Table
    y: np.ndarray | None
    truth: np.ndarray
    n_folds: int
    baselines: bool
    seed: int

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, n_folds: int, baselines: bool, seed: int
    ) -> Subject:
        """Read a table by the schema of a fitted model, and targets by its task."""
        mixture: Any = getattr(model, "best_estimator_", model)
        if not isinstance(mixture, FittedMixture):
            raise TypeError(
                "A report needs a fitted mixture of hybridmix, which has a density of "
                f"the rows; this is a {type(model).__name__}."
            )
        if is_regressor(mixture) and not hasattr(mixture, "predict_interval"):
            raise UnsupportedError(
                mixture,
                "a predictive distribution, which a report needs",
                "Use a MixtureRegressor, or output='gaussian'.",
            )
        check_is_fitted(mixture, "model_")
        columns = mixture._read(X)
        X = X if as_frame(X) is not None else np.asarray(X)
        table = mixture.schema_.encode(columns)
        known, truth = task_of(mixture).read(mixture, y, table.n_rows)
        return cls(
            model, mixture, X, columns, table, known, truth, n_folds, baselines, seed
        )

    # The table --------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """What training learned about the columns."""
        return self.model.schema_

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; by their positions if they have none."""
        names = self.columns.names
        if names is None:
            return tuple(f"column {k}" for k in range(self.columns.n_columns))
        return names

    @cached_property
    def observed(self) -> BoolArray:
        """Which cells have a value that the model can read, (n, d)."""
        return observed_cells(self.table)

    def values(self, column: int) -> FloatArray:
        """Return the values of a column that are not missing; numbers of categories."""
        real, categorical = self.schema.places([column])
        if real:
            values = self.table.real[:, real[0]]
            return values[~np.isnan(values)]
        if categorical:
            codes = self.table.codes[:, categorical[0]]
            return codes[codes != MISSING_CODE].astype(np.float64)
        return np.empty(0)

    @property
    def has_index(self) -> bool:
        """Whether rows are named by an index, each of them differently."""
        return self.columns.container == "pandas" and self.X.index.is_unique

    def row_name(self, row: int) -> str:
        """Name a row: its label in the index of pandas, its number elsewhere."""
        name = self.X.index[row] if self.has_index else row
        # The numbers in a tuple would be written with their types.
        return f"({', '.join(map(str, name))})" if isinstance(name, tuple) else str(name)

    # The targets ------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """What the model is for."""
        return task_of(self.model)

    @property
    def has_classes(self) -> bool:
        """Whether the rows are labelled by classes."""
        return self.task.target == "classes"

    @property
    def has_numbers(self) -> bool:
        """Whether the rows have a real target."""
        return self.task.target == "numbers"

    @cached_property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets of a regressor; by their positions if they have none."""
        schema = self.model.target_schema_
        unnamed = tuple(f"target {k}" for k in range(schema.n_columns))
        return schema.names or (unnamed if len(unnamed) > 1 else ("target",))

    @property
    def n_targets(self) -> int:
        """Number of targets; classes are one."""
        return len(self.target_names) if self.has_numbers else 1

    def for_target(self, target: int) -> Subject:
        """Return the same about one of several targets of a regressor."""
        model = self.model.for_target(target)
        y = None if self.y is None else self.y[:, target]
        return replace(self, given=model, model=model, y=y, truth=self.truth[:, target])

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes; of the whole, if the model knows no classes."""
        return tuple(map(str, getattr(self.model, "classes_", np.array(["all rows"]))))

    @cached_property
    def known(self) -> IntArray:
        """Rows that can be scored, as they have a label or a target if there are any."""
        return np.flatnonzero(self.task.groups(self) >= 0)

    @cached_property
    def class_counts(self) -> IntArray:
        """Labelled rows of each class."""
        return np.bincount(self.truth[self.known], minlength=len(self.class_names))

    def label_name(self, row: int) -> str:
        """Name the label of a row, or write its target."""
        truth = self.truth[row]
        if not self.has_classes:
            return ", ".join(map(number, np.atleast_1d(truth)))
        return NONE if truth == UNLABELLED else self.class_names[truth]

    # Training ---------------------------------------------------------------------

    @cached_property
    def _found(self) -> IntArray | None:
        return looked_up(self.model, self.X)

    @cached_property
    def provenance(self) -> Provenance:
        """Whether the model was trained on these rows."""
        overlap = Overlap(self.n_rows) if self._found is None else Overlap.of(self._found)
        fingerprint = getattr(self.model, "fingerprint_", None)
        return Provenance(fingerprint, overlap, f"{self.task.unit}s")

    @cached_property
    def unseen(self) -> IntArray:
        """Rows that are not known to have been in training.

        None of a training table; of a table that was partly in training, only those that
        are known not to have been.
        """
        origin = self.provenance.origin
        if origin == Origin.SEEN:
            return np.empty(0, dtype=np.intp)
        if origin == Origin.MIXED and self._found is not None:
            return np.flatnonzero(self._found == UNSEEN)
        return np.arange(self.n_rows)

    # The density ------------------------------------------------------------------

    @cached_property
    def scored(self) -> IntArray:
        """Rows whose density is looked at: all, or a part drawn at random."""
        if self.n_rows <= MAX_SCORED:
            return np.arange(self.n_rows)
        generator = np.random.default_rng(self.seed)
        return np.sort(generator.choice(self.n_rows, MAX_SCORED, replace=False))

    @cached_property
    def log_density(self) -> FloatArray:
        """Log densities of the scored rows."""
        with quiet():
            # An outlier detector has other scores than densities.
            return FittedMixture.score_samples(self.model, self.part(self.scored))

    @cached_property
    def typicality(self) -> FloatArray:
        """How typical the scored rows are."""
        with quiet():
            return self.model.typicality(self.part(self.scored))

    @property
    def threshold(self) -> float:
        """Rows of a lower typicality are called outliers."""
        return outlier_level(self.model)

    def part(self, rows: IntArray) -> Any:
        """Return some rows, as a table of the kind that was given."""
        from sklearn.utils import _safe_indexing

        return _safe_indexing(self.X, rows)


def observed_cells(table: Table) -> BoolArray:
    """Return which cells have a value that a model can read, (n, d)."""
    schema = table.schema
    mask = np.zeros((table.n_rows, schema.n_columns), dtype=bool)
    mask[:, list(schema.real)] = ~np.isnan(table.real)
    mask[:, list(schema.categorical)] = table.codes != MISSING_CODE
    return mask


def cell_text(columns: Columns, row: int, column: int, is_real: bool) -> str:
    """Write the value of a cell."""
    if is_real:
        return number(columns.real([column])[row, 0])
    value = columns.values(column)[row]
    return "missing" if is_missing(value) else str(value)
