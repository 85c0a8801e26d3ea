"""The states of a model of sequences: what they are, and when sequences are in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from hybridmix._text import shortened
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import MISSING_CODE
from hybridmix.data.fingerprint import Origin
from hybridmix.reporting.charts import heat_map
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.graphs import LEAST, transition_graph
from hybridmix.reporting.markup import (
    NONE,
    figure,
    figures,
    fixed,
    heading,
    note,
    number,
    paragraph,
    percent,
    table,
    with_deviation,
)
from hybridmix.reporting.sequence_subject import SequenceSubject, sequences_of

# Classes, and columns of frames, that are shown.
_MAX_CLASSES = 20
_MAX_COLUMNS = 8
# Pictures have at most this many places in time.
_MAX_TIMES = 60
# Examples of each class, and in all.
_MAX_EXAMPLES = 8
# Runs of a path that are written out.
_MAX_RUNS = 12
_MAX_ERRORS = 10


# States -------------------------------------------------------------------------------


def states_section(findings: Findings) -> str:
    """Draw transitions and timelines, and describe the frames of each state."""
    subject = sequences_of(findings)
    parts = [
        paragraph(
            "In each frame, a sequence is in one of the hidden states of its class. In "
            "the graph, the wider an arrow, the more probable the transition (below "
            f"{percent(LEAST)} it is not drawn); the share next to a state is the "
            "probability of staying there. The timeline shows the mean probability of "
            "each state along the sequences of the class, stretched to equal length."
        )
    ]
    for number_of_class, name in enumerate(subject.class_names[:_MAX_CLASSES]):
        members = np.flatnonzero(subject.shown_classes == number_of_class)
        parts += _class_part(subject, number_of_class, name, members)
    if len(subject.class_names) > _MAX_CLASSES:
        n_classes = len(subject.class_names)
        parts.append(note(f"The first {_MAX_CLASSES} of {n_classes} classes are shown."))
    return "".join(parts)


def _class_part(
    subject: SequenceSubject, label: int, name: str, members: IntArray
) -> Iterator[str]:
    """Show the states of one class."""
    chains = subject.model.model_
    transitions = np.exp(chains.log_transition[label])
    which = f" of class {name}" if subject.has_classes else ""
    if subject.has_classes:
        yield heading(f"Class {name}")
    graph = figure(
        transition_graph(transitions, f"Transitions between the states{which}"),
        f"Transitions between the states{which}, by frame.",
    )
    if len(members) == 0:
        yield figures([graph]) + note("No sequence of this class was given.")
        return
    yield figures([graph, _timeline(subject, members, which)])
    start = np.exp(chains.log_start[label])
    yield _state_table(subject, members, start, transitions, which)


def _timeline(subject: SequenceSubject, members: IntArray, which: str) -> str:
    mean = np.mean(
        [resampled(subject.state_probabilities[k], _MAX_TIMES) for k in members], axis=0
    )
    picture = heat_map(
        mean.T,
        [f"state {state}" for state in range(mean.shape[1])],
        description=f"Mean probability of each state over time{which}",
        x_label="time",
        x_ends=("start", "end"),
    )
    return figure(picture, f"Timeline: states of {len(members):,} sequences{which}.")


def resampled(values: FloatArray, n_most: int) -> FloatArray:
    """Return values (T, K) at a given number of places (n, K), equally far apart."""
    places = (np.arange(n_most) + 0.5) / n_most * len(values)
    return values[places.astype(int)]


def _state_table(
    subject: SequenceSubject,
    members: IntArray,
    start: FloatArray,
    transitions: FloatArray,
    which: str,
) -> str:
    weights = np.concatenate([subject.state_probabilities[k] for k in members])
    frames = np.concatenate(
        [np.arange(s, s + n) for s, n in _bounds(subject.lengths, members)]
    )
    columns = _telling_columns(subject, weights, frames)
    shares = weights.mean(axis=0)
    rows = []
    for state, staying in enumerate(np.diag(transitions)):
        stay = fixed(1.0 / (1.0 - staying), 1) if staying < 1.0 else "to the end"
        cells = [_mean_text(subject, weights[:, state], frames, j) for j in columns]
        line = [percent(float(start[state])), percent(float(shares[state])), stay]
        rows.append([f"state {state}", *line, *cells])
    names = [subject.names[j] for j in columns]
    caption = (
        f"States{which}: how often sequences begin there, the share of the frames, how "
        "many frames they stay on average, and what these frames are like"
    )
    if len(columns) < len(subject.names):
        caption += f" (the {len(columns)} columns that differ most)"
    return table(caption, ("state", "starts", "frames", "mean stay", *names), rows)


def _bounds(lengths: IntArray, members: IntArray) -> Iterator[tuple[int, int]]:
    """Yield the first frames of some sequences, and how many there are."""
    starts = np.cumsum(lengths) - lengths
    return zip(starts[members].tolist(), lengths[members].tolist(), strict=True)


def _telling_columns(
    subject: SequenceSubject, weights: FloatArray, frames: IntArray
) -> list[int]:
    """Return the columns in which states differ most, in their order."""
    spreads = np.zeros(len(subject.names))
    for j in range(len(spreads)):
        spreads[j] = _spread(subject, weights, frames, j)
    best = np.argsort(-spreads, kind="stable")[:_MAX_COLUMNS]
    return sorted(int(j) for j in best if spreads[j] > 0.0)


def _spread(
    subject: SequenceSubject, weights: FloatArray, frames: IntArray, column: int
) -> float:
    """Return how much the states differ in a column, in standard deviations or shares."""
    real, categorical = subject.schema.places([column])
    if categorical:
        codes = subject.table.codes[frames, categorical[0]]
        size = subject.schema.n_categories[categorical[0]]
        shares = _shares(codes, weights, size)
        return float(np.ptp(shares, axis=0).max())
    if not real:
        return 0.0
    values = subject.table.real[frames, real[0]]
    known = ~np.isnan(values)
    deviation = float(values[known].std()) if known.any() else 0.0
    if deviation == 0.0:
        return 0.0
    masses = np.maximum(weights[known].sum(axis=0), 1e-9)
    means = weights[known].T @ values[known] / masses
    return float(np.ptp(means)) / deviation


def _shares(codes: IntArray, weights: FloatArray, size: int) -> FloatArray:
    """Return the shares (K, size) of categories in each state."""
    counts = np.stack(
        [weights[codes == code].sum(axis=0) for code in range(size)], axis=1
    )
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)


def _mean_text(
    subject: SequenceSubject, weights: FloatArray, frames: IntArray, column: int
) -> str:
    """Write mean and deviation of a column in a state, or its most frequent category."""
    real, categorical = subject.schema.places([column])
    if real:
        values = subject.table.real[frames, real[0]]
        known = ~np.isnan(values)
        mass = float(weights[known].sum())
        if mass < 1e-6:
            return NONE
        mean = float(weights[known] @ values[known]) / mass
        variance = float(weights[known] @ (values[known] - mean) ** 2) / mass
        return with_deviation(mean, variance**0.5) if variance > 0 else number(mean)
    place = categorical[0]
    codes = subject.table.codes[frames, place]
    if not weights[codes != MISSING_CODE].sum() > 1e-6:
        return NONE
    categories: tuple[Any, ...] = subject.schema.categories[place]
    shares = _shares(codes, weights[:, None], len(categories))[0]
    best = int(shares.argmax())
    return f"{shortened(str(categories[best]), 20)} ({percent(float(shares[best]))})"


# Examples -----------------------------------------------------------------------------


def decoded_section(findings: Findings) -> str:
    """Draw the states of some sequences over time, and list those that are wrong."""
    subject = sequences_of(findings)
    parts = [
        paragraph(
            "Some sequences of median length, frame by frame: how probable each state of "
            "the class is, given the whole sequence, and below it the most probable path."
        ),
        figures(_example(subject, k) for k in _examples(subject)),
    ]
    if subject.has_classes and len(subject.known):
        parts += [heading("Sequences that the model gets wrong"), _wrong(subject)]
        if subject.provenance.origin == Origin.SEEN:
            parts.append(note("It was trained on them, so these are too few."))
    return "".join(parts)


def _examples(subject: SequenceSubject) -> list[int]:
    """Return a sequence of median length of each class, and more of a single one."""
    n_classes = min(len(subject.class_names), _MAX_EXAMPLES)
    each = 2 if n_classes <= _MAX_EXAMPLES // 2 else 1
    chosen: list[int] = []
    for label in range(n_classes):
        members = np.flatnonzero(subject.shown_classes == label)
        ordered = members[np.argsort(subject.lengths[members], kind="stable")]
        middle = max(len(ordered) // 2 - each // 2, 0)
        chosen += ordered[middle : middle + each].tolist()
    return chosen


def _example(subject: SequenceSubject, place: int) -> str:
    probabilities = subject.state_probabilities[place]
    if len(probabilities) > _MAX_TIMES:
        probabilities = resampled(probabilities, _MAX_TIMES)
    name = subject.row_name(place)
    picture = heat_map(
        probabilities.T,
        [f"state {state}" for state in range(probabilities.shape[1])],
        description=f"Probability of each state over time in sequence {name}",
        x_label="frames",
        x_ends=("1", f"{subject.lengths[place]:,}"),
    )
    title = f"Sequence {shortened(name, 40)}"
    if subject.has_classes:
        title += f", label {subject.label_name(place)}, predicted as "
        title += subject.class_names[subject.predicted[place]]
    return figure(picture, f"{title}. {_path_text(subject.paths[place])}")


def _path_text(path: IntArray) -> str:
    """Write a path as runs of states."""
    runs = [(state, len(list(run))) for state, run in groupby(path.tolist())]
    words = [f"state {state} for {n}" for state, n in runs[:_MAX_RUNS]]
    more = f", and {len(runs) - _MAX_RUNS} more changes" if len(runs) > _MAX_RUNS else ""
    return f"Path: {', '.join(words)}{more}."


def _wrong(subject: SequenceSubject) -> str:
    """List sequences whose label is not the predicted class, the surest first."""
    wrong = subject.known[
        subject.predicted[subject.known] != subject.truth[subject.known]
    ]
    if len(wrong) == 0:
        return paragraph("The model as fitted gets all labelled sequences right.")
    proba = subject.model.predict_proba(subject.part(wrong))
    order = np.argsort(-proba.max(axis=1), kind="stable")[:_MAX_ERRORS]
    rows = [
        (
            subject.row_name(int(wrong[k])),
            f"{subject.lengths[wrong[k]]:,}",
            subject.label_name(int(wrong[k])),
            subject.class_names[int(proba[k].argmax())],
            percent(float(proba[k].max())),
            percent(float(proba[k, subject.truth[wrong[k]]])),
        )
        for k in order.tolist()
    ]
    return table(
        f"{len(wrong):,} of {len(subject.known):,} labelled sequences are predicted "
        "wrongly by the model as fitted; those it is surest about come first",
        ("sequence", "frames", "label", "predicted as", "probability", "of the label"),
        rows,
        text_columns=(0, 2, 3),
    )
