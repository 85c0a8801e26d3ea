"""The questions that the page asks about a model of sequences, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._parallel import workers
from hybridmix._typing import FloatArray
from hybridmix.data import Table
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.estimators.chain_typicality import log_typicality
from hybridmix.explorer.cells import encoded, written
from hybridmix.explorer.plain import QuestionError, whole_number
from hybridmix.explorer.subject import Explored
from hybridmix.models.chain_filling import filled_frames
from hybridmix.tasks.base import quiet

_N_UNUSUAL, _MOST_SAMPLES = 30, 20
_LARGEST_SEED = 2**31 - 1

Question = dict[str, Any]
Answer = dict[str, Any]


def sequence(explored: Explored, question: Question) -> Answer:
    """Return a sequence of the table, frame by frame."""
    number = whole_number(question, "row", 0, explored.subject.n_rows - 1)
    lengths = explored.subject.X.lengths
    first = int(lengths[:number].sum())
    frames = slice(first, first + int(lengths[number]))
    table = explored.subject.table
    return explored.about(number) | {"frames": _written(table, frames)}


def answer(explored: Explored, question: Question) -> Answer:
    """Decode a sequence.

    Returns
    -------
    answer : dict
        "probabilities" of the classes, if there are any; "class", whose states these
        are: the one that the question names, or else the most probable one; "path", the
        most probable states; "states", their probabilities at each frame, (K, T);
        "fills", the frames with their holes filled.
    """
    model, chains = explored.model, explored.model.model_
    table, rows = _encoded(explored, question)
    found: Answer = {"class": 0}
    if explored.subject.has_classes:
        logs = model._log_probabilities(rows)[:, 0]
        found = {"class": int(logs.argmax()), "probabilities": np.exp(logs)}
        if question.get("class") is not None:
            found["class"] = whole_number(question, "class", 0, len(logs) - 1)
    labels = np.array([found["class"]])
    prepared = chains.prepare(rows)
    filled = filled_frames(chains, rows)
    whole = Table(
        table.schema,
        np.where(np.isnan(table.real), explored.schema.restored(filled).T, table.real),
        filled.codes[: len(table.schema.categorical)].T,
        False,
    )
    return found | {
        "path": chains.paths(prepared, labels)[1],
        "states": chains.state_probabilities(chains.prepare(rows), labels).T,
        "fills": _written(whole, slice(None)),
    }


def typicality(explored: Explored, question: Question) -> Answer:
    """Return how typical a sequence is; others are drawn from the model to compare."""
    chains = explored.model.model_
    table, rows = _encoded(explored, question)
    log_density, _ = class_posterior(chains.evaluate(chains.prepare(rows)).log_joint)
    seed = explored.model._seed(0)
    with workers(1) as pool:
        found = log_typicality(chains, table, rows.lengths, log_density, seed, pool)
    return {"typicality": found[0]}


def unusual(explored: Explored, question: Question) -> Answer:  # noqa: ARG001
    """Return the sequences of the lowest log density per frame."""
    subject = explored.subject
    log_density: FloatArray = subject.log_density
    order = np.argsort(log_density, kind="stable")[:_N_UNUSUAL]
    rows = [
        explored.about(int(subject.scored[place])) | {"log_density": log_density[place]}
        for place in order.tolist()
    ]
    return {"rows": rows, "n_scored": len(log_density)}


def sample(explored: Explored, question: Question) -> Answer:
    """Draw sequences from the model."""
    model = explored.model
    n_samples = whole_number(question, "n", 1, _MOST_SAMPLES)
    seed = whole_number(question, "seed", 0, _LARGEST_SEED)
    with quiet():
        sequences, drawn = model.sample(n_samples, random_state=seed)
        table = model._encode(sequences, None).table
    ends = np.cumsum(sequences.lengths)
    frames = [
        _written(table, slice(end - length, end))
        for end, length in zip(ends.tolist(), sequences.lengths.tolist(), strict=True)
    ]
    found: Answer = {"rows": [{"frames": own} for own in frames]}
    if explored.subject.has_classes:
        found["labels"] = np.searchsorted(model.classes_, drawn)
    return found


def _encoded(explored: Explored, question: Question) -> tuple[Table, SequenceRows]:
    frames = question.get("frames")
    if not isinstance(frames, list) or not frames:
        raise QuestionError("'frames' must be a list of at least one frame.")
    table = encoded(explored.schema, frames)
    return table, SequenceRows(table[:], np.array([table.n_rows]))


def _written(table: Table, frames: slice) -> list[list[Any]]:
    """Return frames as the page has them."""
    pairs = zip(table.real[frames], table.codes[frames], strict=True)
    return [written(table.schema, real, codes) for real, codes in pairs]


SEQUENCE_QUESTIONS: dict[str, Callable[[Explored, Question], Answer]] = {
    "row": sequence,
    "answer": answer,
    "typicality": typicality,
    "unusual": unusual,
    "sample": sample,
}
