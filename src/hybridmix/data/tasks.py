"""Tasks of the rows of a table: given apart, or as one of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._typing import IntArray
from hybridmix.data.columns import is_missing
from hybridmix.data.frames import as_frame
from hybridmix.data.labels import as_labels


def split_column(X: Any, column: str | int) -> tuple[Any, np.ndarray]:
    """Take a column out of a table.

    Parameters
    ----------
    X : array-like or data frame of shape (n, p)
        The table.
    column : str or int
        Name of a column of a data frame, or position.

    Returns
    -------
    rest : array or data frame of shape (n, p - 1)
        The other columns.
    values : ndarray of shape (n,)
        The column.
    """
    frame = as_frame(X)
    if isinstance(column, str):
        if frame is None:
            raise ValueError(
                f"task_column={column!r} is a name, but X has none: pass a data frame, "
                "or the position of the column."
            )
        if column not in frame.columns:
            raise ValueError(f"X has no column {column!r}, which task_column names.")
        return frame.drop(column).to_native(), frame[column].to_numpy()
    table = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    if len(table.shape) != 2 or not -table.shape[1] <= column < table.shape[1]:
        raise ValueError(
            f"task_column={column} is not a column of X, which has the shape "
            f"{table.shape}."
        )
    if frame is not None:
        return split_column(X, frame.columns[column])
    kept = np.delete(np.arange(table.shape[1]), column)
    if hasattr(table, "tocsr"):
        rows = table.tocsr()
        return rows[:, kept], rows[:, [column]].toarray()[:, 0]
    return table[:, kept], np.asarray(table[:, column])


def encode_tasks(task: object, n_rows: int) -> tuple[np.ndarray, IntArray]:
    """Give tasks numbers.

    Parameters
    ----------
    task : array-like of shape (n,) or None
        The task of each row, of any kind; None if all have the same, which is then 0.
    n_rows : int
        n.

    Returns
    -------
    tasks : ndarray of shape (T,)
        Distinct tasks, sorted.
    numbers : ndarray of shape (n,)
        Task number of each row.
    """
    if task is None:
        return np.zeros(1, dtype=np.intp), np.zeros(n_rows, dtype=np.intp)
    values = _read(task, n_rows)
    tasks, numbers = np.unique(values, return_inverse=True)
    return tasks, numbers


def number_tasks(task: object, tasks: np.ndarray, n_rows: int) -> IntArray:
    """Return the task numbers of rows whose tasks must be among those of training."""
    if task is None:
        if len(tasks) == 1:
            return np.zeros(n_rows, dtype=np.intp)
        raise ValueError(
            f"task is missing: the model was trained on {len(tasks)} tasks "
            f"({_listed(tasks)}), and each row needs one of them."
        )
    numbers = {name: number for number, name in enumerate(tasks.tolist())}
    values = _read(task, n_rows).tolist()
    for row, value in enumerate(values):
        if value not in numbers:
            raise ValueError(
                f"The task {value!r} of row {row} is none of those of training: "
                f"{_listed(tasks)}."
            )
    return np.array([numbers[value] for value in values], dtype=np.intp)


def _read(task: object, n_rows: int) -> np.ndarray:
    """Return the tasks of rows, all of one kind."""
    values = as_labels(task)
    check_consistent_length(np.empty(n_rows), values)
    cells = values.tolist()
    for row, value in enumerate(cells):
        if is_missing(value):
            raise ValueError(f"Row {row} has no task.")
    if values.dtype.kind != "O":
        return values
    if len({isinstance(value, str) for value in cells}) > 1:
        raise TypeError("task mixes text and other values: make all of them text.")
    return np.array(cells)


def _listed(tasks: np.ndarray, most: int = 8) -> str:
    names = [repr(name) for name in tasks.tolist()[:most]]
    return ", ".join([*names, "..."] if len(tasks) > most else names)
