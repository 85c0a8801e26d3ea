"""What is explored: a fitted model, and rows to try it on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from hybridmix._text import printable, with_article
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Schema, Table
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.chain_fitted import FittedChainsEstimator
from hybridmix.exceptions import UnsupportedError
from hybridmix.explorer.cells import (
    MOST_CELLS,
    column_ranges,
    shape_of,
    shown_columns,
    written,
)
from hybridmix.plots.marginals import MarginalView
from hybridmix.reporting.sequence_subject import subject_of
from hybridmix.reporting.subject import Subject
from hybridmix.tasks.base import quiet

# Drawn from the model, where there is no table.
_N_DRAWN = 200


@dataclass(frozen=True, eq=False)
class Explored:
    """A fitted model with rows or sequences.

    Attributes
    ----------
    subject : Subject
        Model, table and labels, as reports read them.
    is_drawn : bool
        Whether the rows were drawn from the model, as there was no table.
    """

    subject: Subject
    is_drawn: bool = False

    @classmethod
    def of(cls, model: Any, X: Any = None, y: Any = None) -> Explored:
        """Read a table by the schema of a fitted model; draw one if there is none."""
        best: Any = getattr(model, "best_estimator_", model)
        if not isinstance(best, FittedMixture | FittedChainsEstimator):
            raise TypeError(
                "Only mixtures and hidden Markov models of hybridmix can be explored, "
                "which have a density of what they are asked about; this is "
                f"{with_article(type(model).__name__)}."
            )
        check_is_fitted(best, "model_")
        if is_regressor(best) and not hasattr(best, "predict_interval"):
            raise UnsupportedError(
                best,
                "a predictive distribution to show",
                "Use a MixtureRegressor, or output='gaussian'.",
            )
        if X is None:
            if y is not None:
                raise ValueError(
                    "y was given without the rows that it belongs to: add X."
                )
            return cls(subject_of(model, _drawn(best), None, 2, False, 0), True)
        with quiet():
            return cls(subject_of(model, X, y, 2, False, 0))

    @property
    def model(self) -> Any:
        """The fitted model itself."""
        return self.subject.model

    @property
    def schema(self) -> Schema:
        """What training learned about the columns."""
        return self.subject.schema

    @cached_property
    def is_sequential(self) -> bool:
        """Whether the model is of sequences."""
        return isinstance(self.model, FittedChainsEstimator)

    @cached_property
    def ranges(self) -> dict[int, tuple[float, float]]:
        """Ends of the real columns, by position."""
        return column_ranges(self.schema, self.subject.table)

    @cached_property
    def labels(self) -> IntArray:
        """Class numbers of the rows; -1 where there is no label."""
        subject = self.subject
        if subject.has_classes:
            return subject.truth
        return np.full(subject.n_rows, UNLABELLED)

    def view(self, model: Any) -> MarginalView:
        """Return the rows with a model, which may be another one of the same columns."""
        return MarginalView(model, self.subject.table, self.labels)

    def description(self) -> dict[str, Any]:
        """Return what the page has to know before it asks anything."""
        subject, model = self.subject, self.model
        has_labels = not self.is_drawn and subject.y is not None
        return {
            "title": type(subject.given).__name__,
            "purpose": model.purpose,
            "task": subject.task.target,
            "sequential": self.is_sequential,
            "columns": [self._column(column) for column in range(self.schema.n_columns)],
            "classes": list(map(printable, subject.class_names)),
            "targets": list(subject.target_names) if subject.has_numbers else [],
            "n_rows": subject.n_rows,
            "first_row": self._first_row(),
            "is_drawn": self.is_drawn,
            "has_labels": has_labels,
            "threshold": subject.threshold,
            "suggested": self._suggested(),
            "shown": shown_columns(self.schema),
        }

    def _first_row(self) -> int:
        """Return the number of the first row, as the table counts its rows."""
        index: Any = getattr(self.subject.X, "index", None)
        is_counted = getattr(index, "step", None) == 1  # of pandas: a range
        return int(index.start) if is_counted else 0

    def _suggested(self) -> list[int]:
        """Return the columns to begin with: those that say most about the class."""
        if self.is_sequential:
            return []
        if len(self.schema.real) > MOST_CELLS:
            return list(self.schema.real[:2])  # to compare all of them takes too long
        return self.view(self.model).positions(None, 2, real_only=True)

    def _column(self, column: int) -> dict[str, Any]:
        schema = self.schema
        found: dict[str, Any] = {"name": printable(self.subject.names[column])}
        if column in schema.real:
            low, high = self.ranges[column]
            whole = shape_of(schema, column).whole
            return found | {"kind": "real", "low": low, "high": high, "whole": whole}
        if column in schema.categorical:
            categories = schema.categories[schema.categorical.index(column)]
            shown = [printable(str(value)) for value in categories]
            return found | {"kind": "categorical", "categories": shown}
        return found | {"kind": "unused"}

    def row(self, row: int) -> dict[str, Any]:
        """Return a row of the table: its name, cells, and label or targets."""
        table = self.subject.table
        return self.about(row) | {
            "cells": written(self.schema, table.real[row], table.codes[row])
        }

    def about(self, row: int) -> dict[str, Any]:
        """Return the name of a row or sequence, and its label or targets."""
        subject = self.subject
        name = printable(subject.row_name(row))
        found: dict[str, Any] = {"row": row, "name": name}
        if subject.has_classes and subject.truth[row] != UNLABELLED:
            found["label"] = int(subject.truth[row])
        if subject.has_numbers and subject.y is not None:
            found["targets"] = np.atleast_1d(subject.truth[row])
        return found

    def typicality(self) -> FloatArray:
        """Return how typical the rows in ``subject.scored`` are; computed once."""
        return self.subject.typicality


def one_row(table: Table, row: int) -> Table:
    """Return a row of a table, as a table."""
    here = slice(row, row + 1)
    real, codes = table.real[here], table.codes[here]
    return Table(table.schema, real, codes, bool(np.isnan(real).any()))


def _drawn(model: Any) -> Any:
    """Draw rows or sequences."""
    with quiet():
        if isinstance(model, FittedChainsEstimator):
            return model.sample(_N_DRAWN // 10, random_state=0)[0]
        return model._sample_rows(_N_DRAWN, 0)[0]
