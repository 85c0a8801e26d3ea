"""Labels and targets of the tables that models are applied to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hybridmix._typing import FloatArray
from hybridmix.cli.models import Matching, Model, listed, numbers_of
from hybridmix.cli.tables import Chunk, InputError, Table
from hybridmix.cli.values import matcher, without_mark
from hybridmix.data.cells import number_of
from hybridmix.estimators.targets import has_distribution


def target_columns(model: Model, table: Table, target: str | None) -> list[str]:
    """Return the columns of the labels or targets, which must be there."""
    names = model.target_columns(target)
    if not names:
        raise InputError("The model file does not name its target: add --target NAME.")
    for name in names:
        table.check_column(name, "--target")
    return names


def check_distribution(regressor: Any) -> None:
    """Refuse regressors that predict means alone, made in Python."""
    if not has_distribution(regressor):
        has_option = "output" in regressor.get_params(deep=False)
        remedy = "fit it with output='gaussian', or " if has_option else ""
        raise InputError(
            f"This {type(regressor).__name__} has no predictive distribution, which is "
            f"needed here: {remedy}use a MixtureRegressor."
        )


def labels_of(model: Model, table: Table, chunk: Chunk, target: str) -> list[Any]:
    """Return labels of rows, None where missing; unknown ones are an error."""
    classes = model.estimator.classes_.tolist()
    texts = without_mark(chunk.columns[target].texts(model.marks), model.unlabelled)
    labels = matcher(classes)(texts)
    known = {None, *classes}
    for position, label in enumerate(labels):
        if label not in known:
            row = chunk.start + position + 1
            raise InputError(
                f"{table.path}: row {row} has the label {label!r}, which the model does "
                f"not know; it knows {listed(classes)}."
            )
    return labels


def targets_of(
    model: Model, table: Table, chunk: Chunk, targets: Sequence[str]
) -> FloatArray:
    """Return the targets (n, t) of rows, NaN where missing."""
    mark = model.unlabelled
    marks = model.marks if mark is None else model.marks | {mark}
    columns = [numbers_of(table, chunk, name, marks) for name in targets]
    numbers = np.column_stack(columns)
    # -1 and -1.0 are the same mark.
    worth = None if mark is None else number_of(mark)
    if worth is not None:
        numbers[numbers == worth] = np.nan
    return numbers


def read_all(
    matching: Matching, chunks: Iterable[Chunk], target: str | None
) -> tuple[Any, np.ndarray | None]:
    """Read a whole table for a model, and its labels or targets if it has any."""
    model, table = matching.model, matching.table
    named = _targets_in(model, table, target)
    frames: list[Any] = []
    found: list[Any] = []
    for chunk in chunks:
        frames.append(matching.frame(chunk))
        if named and model.is_regressor:
            found.extend(targets_of(model, table, chunk, named))
        elif named:
            found.extend(labels_of(model, table, chunk, named[0]))
    is_array = isinstance(frames[0], np.ndarray)
    X: Any = np.concatenate(frames) if is_array else pd.concat(frames, ignore_index=True)
    if not is_array:
        X.index = pd.RangeIndex(1, len(X) + 1)  # as all commands count rows
    if not found:
        return X, None
    if not model.is_regressor:
        return X, np.array(found, dtype=object)
    y = np.array(found)
    return X, y[:, 0] if len(named) == 1 else y


def _targets_in(model: Model, table: Table, target: str | None) -> list[str]:
    """Return the columns of the targets; none if the model or the table has none."""
    named = model.target_columns(target) if model.predicts else []
    if target is not None:
        for name in named or [target]:
            table.check_column(name, "--target")
    return named if set(named) <= set(table.names) else []
