"""Classifiers that read matrices, counts or tables of any columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.shape_options import PLAIN
from hybridmix.data.suspects import warn_of_suspects
from hybridmix.data.table import read_table, read_training_table
from hybridmix.data.weights import filled_weights
from hybridmix.estimators.machines import MachineEstimator
from hybridmix.estimators.med_densities import (
    COUNTS,
    DENSITIES,
    TABLES,
    refuse_holes,
    rows_of_counts,
)


@dataclass(eq=False, repr=False)
class TableMachine(MachineEstimator):
    """Base of the estimators whose models may be densities of tables.

    The options are documented in `MEDClassifier`.
    """

    _: KW_ONLY
    categorical_features: Sequence[int | str | bool] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_table = self._has_densities(TABLES)
        tags.input_tags.allow_nan = self._has_densities(("independent",))
        tags.input_tags.categorical = tags.input_tags.string = is_table
        tags.input_tags.positive_only = self._has_densities(COUNTS)
        return tags

    def _has_densities(self, kinds: tuple[str, ...] = DENSITIES) -> bool:
        return isinstance(self.model, str) and self.model in kinds

    def _read_features(
        self, X: Any, sample_weight: Any
    ) -> tuple[Any, FloatArray, dict[str, Any]]:
        """Read a training table and its weights.

        The table becomes a matrix, or encoded rows for densities.
        """
        if not self._has_densities(TABLES):
            matrix, attributes = self._read_training(X)
            weights = filled_weights(sample_weight, matrix.shape[0])
            return self._as_counts(matrix), weights, attributes
        columns, found = read_training_table(self, X)
        weights = filled_weights(sample_weight, columns.n_rows)
        schema = Schema.learn(columns, self.categorical_features, PLAIN, weights=weights)
        warn_of_suspects(columns, schema, self.categorical_features)
        return schema.encode(columns)[:], weights, {**found, "schema_": schema}

    def _as_counts(self, matrix: Any) -> Any:
        """Return rows of counts, if the densities are those of counts."""
        return rows_of_counts(matrix) if self._has_densities(COUNTS) else matrix

    def _outputs(self, X: Any) -> FloatArray:
        if not self._has_densities(TABLES):
            matrix = self._read(X)
            return self.machine_.outputs(self._as_counts(matrix))
        check_is_fitted(self, "machine_")
        rows = self.schema_.encode(read_table(self, X))[:]
        refuse_holes(self.model, rows, self.schema_)
        return self.machine_.outputs(rows)
