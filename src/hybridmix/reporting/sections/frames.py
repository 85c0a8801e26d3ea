"""One prediction of a sequence, frame by frame."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.reporting.charts import Series, line_chart
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import figure, figures, fixed, paragraph, percent
from hybridmix.reporting.sections.worked import examples
from hybridmix.tasks.base import quiet

# Frames that are taken in; the first ones of a longer sequence.
_MAX_FRAMES = 300
_LEAST = 1e-300


def frames_section(findings: Findings) -> str:
    """Draw how the odds of two classes change as the frames of a sequence arrive."""
    text = (
        "A prediction taken apart: the log of the ratio between the probability of the "
        "predicted class and that of the runner-up, after each frame. Each step of the "
        "line is what a frame adds, and the steps add up to the prediction. Where the "
        "line crosses zero, the model changes its mind."
    )
    usual, wrong = examples(findings)
    places = [usual] if wrong is None else [usual, wrong]
    return paragraph(text) + figures(_drawn(findings, place) for place in places)


def _drawn(findings: Findings, place: int) -> str:
    subject, trial = findings.subject, findings.trial
    proba = _along(findings, place)
    order = np.argsort(-proba[-1], kind="stable")
    first, second = (subject.class_names[k] for k in order[:2])
    logs = np.log(np.maximum(proba, _LEAST))
    ratio = logs[:, order[0]] - logs[:, order[1]]
    name = subject.row_name(int(trial.table_rows[place]))
    picture = line_chart(
        [Series(f"{first} against {second}", np.arange(len(ratio)), ratio)],
        description=f"Log ratio of {first} and {second} along sequence {name}",
        x_label="frames seen",
        y_label=f"log of {first} to {second}",
        whole_x=True,
        markers=len(ratio) <= 40,
    )
    label = subject.class_names[int(trial.truth[place])]
    steps = np.diff(ratio)
    largest = int(np.abs(steps).argmax())
    return figure(
        picture,
        f"Sequence {name}: {percent(float(proba[-1].max()))} for {first}; the label is "
        f"{label}. Frame {largest + 1} says most: {fixed(float(steps[largest]), 2)}.",
    )


def _along(findings: Findings, place: int) -> FloatArray:
    """Return class probabilities (T + 1, C) before and after each frame of a sequence."""
    from sklearn.utils import _safe_indexing

    trial = findings.trial
    model = trial.ours.models[int(trial.folds[place])]
    frames = trial.ours.X[int(trial.rows[place])]
    places = np.searchsorted(findings.subject.model.classes_, model.classes_)
    with quiet():
        stream = model.filter()
        found = [stream.proba]
        n_frames = min(len(frames), _MAX_FRAMES)
        found += [stream.update(_safe_indexing(frames, [k])) for k in range(n_frames)]
    proba = np.zeros((len(found), len(findings.subject.class_names)))
    proba[:, places] = np.stack(found)
    return proba
