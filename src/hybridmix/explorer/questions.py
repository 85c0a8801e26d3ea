"""The questions that the page asks about a model of rows, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridmix.estimators.imputation import fill_chunk
from hybridmix.explorer.answers import hidden_in_turn, row_answer
from hybridmix.explorer.cells import encoded, written
from hybridmix.explorer.densities import density_answer
from hybridmix.explorer.plain import QuestionError, whole_number
from hybridmix.explorer.sequences import SEQUENCE_QUESTIONS
from hybridmix.explorer.subject import Explored, one_row
from hybridmix.explorer.tradeoffs import TradeoffPath
from hybridmix.tasks import task_of
from hybridmix.tasks.base import quiet

N_UNUSUAL, _MOST_SAMPLES = 30, 100
_LARGEST_SEED = 2**31 - 1

Question = dict[str, Any]
Answer = dict[str, Any]


def row(explored: Explored, question: Question) -> Answer:
    """Return a row of the table."""
    number = whole_number(question, "row", 0, explored.subject.n_rows - 1)
    return explored.row(number)


def answer(explored: Explored, question: Question) -> Answer:
    """Return what the model says about cells."""
    model = explored.model
    return row_answer(
        model, encoded(explored.schema, [question.get("cells")]), explored.ranges
    )


def density(explored: Explored, question: Question) -> Answer:
    """Return the density of one or two columns."""
    return density_answer(explored.view(explored.model), question.get("columns"))


def unusual(explored: Explored, question: Question) -> Answer:  # noqa: ARG001
    """Return the most unusual rows, and the cell that makes each of them so."""
    subject = explored.subject
    typicality = explored.typicality()
    order = np.argsort(typicality, kind="stable")[:N_UNUSUAL]
    rows = []
    for place in order.tolist():
        number = int(subject.scored[place])
        found = {
            "typicality": typicality[place],
            "guilty": _guilty_cell(explored, number),
        }
        rows.append(explored.about(number) | found)
    flagged = int(np.sum(typicality < subject.threshold))
    return {"rows": rows, "n_flagged": flagged, "n_scored": len(typicality)}


def _guilty_cell(explored: Explored, number: int) -> int | None:
    """Return the column without which a row is most typical, if any helps."""
    copies, hidden = hidden_in_turn(one_row(explored.subject.table, number))
    with quiet():
        typicality = explored.model._typicality(copies)
    rises = typicality[hidden] - typicality[0]
    column = int(rises.argmax())
    return column if rises[column] > 0.0 else None


def sample(explored: Explored, question: Question) -> Answer:
    """Draw the cells that a row lacks, several times: whole rows if it has none."""
    model = explored.model
    n_samples = whole_number(question, "n", 1, _MOST_SAMPLES)
    seed = whole_number(question, "seed", 0, _LARGEST_SEED)
    row = encoded(explored.schema, [question.get("cells")])
    rows = type(row)(
        row.schema,
        np.repeat(row.real, n_samples, 0),
        np.repeat(row.codes, n_samples, 0),
        row.has_holes,
    )
    real, codes = fill_chunk(model.model_, rows, slice(0, n_samples), seed)
    # Observed values are those of the row, without the rounding of their scale.
    real = np.where(np.isnan(rows.real.T), real, rows.real.T)
    drawn = type(row)(row.schema, real.T, codes[: rows.codes.shape[1]].T, False)
    cells = [
        written(row.schema, *one) for one in zip(drawn.real, drawn.codes, strict=True)
    ]
    return {"rows": [{"cells": one} for one in cells]} | _sample_labels(model, drawn)


def _sample_labels(model: Any, drawn: Any) -> Answer:
    """Return the most probable classes of rows, or the expected targets."""
    target = task_of(model).target
    if target == "classes":
        return {"labels": model._class_scores(drawn).argmax(axis=0)}
    if target == "numbers":
        return {"targets": model.table_moments(drawn)[0].T}
    return {}


QUESTIONS: dict[str, Callable[[Explored, Question], Answer]] = {
    "row": row,
    "answer": answer,
    "density": density,
    "unusual": unusual,
    "sample": sample,
}


def asking(explored: Explored) -> Callable[[str, Question], Answer]:
    """Return a function that answers questions by name.

    A question may name a "station": the number of a tradeoff along the path, if this was
    trained before; the model itself answers otherwise.
    """
    path = TradeoffPath(explored)
    questions = SEQUENCE_QUESTIONS if explored.is_sequential else QUESTIONS
    description = explored.description() | {"has_path": path.is_offered}

    def describe(_: Question) -> Answer:
        return description

    def train(_: Question) -> Answer:
        path.start()
        return path.status()

    def status(_: Question) -> Answer:
        return path.status()

    own = {"describe": describe, "train": train, "status": status}

    def ask(name: str, question: Question) -> Answer:
        if name in own:
            return own[name](question)
        if name in questions:
            return questions[name](path.station(question.get("station")), question)
        known = ", ".join((*own, *questions))
        raise QuestionError(f"There is no question {name!r}; there are {known}.")

    return ask
