"""What a model of sequences is, what it was given, and how it was trained."""

from __future__ import annotations

import numpy as np

from hybridmix.estimators.chosen import described_members
from hybridmix.reporting.charts import histogram
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import (
    code,
    count,
    figure,
    figures,
    heading,
    key_figures,
    note,
    number,
    paragraph,
    percent,
)
from hybridmix.reporting.sections.data import class_balance, column_table
from hybridmix.reporting.sections.leaderboard import leaderboard_part, members_part
from hybridmix.reporting.sections.summary import (
    option_text,
    result_sentence,
    score_figures,
)
from hybridmix.reporting.sections.training import trace_figures
from hybridmix.reporting.sequence_subject import SequenceSubject, sequences_of


def sequence_summary(findings: Findings) -> str:
    """Say what the model is and how it does."""
    subject = sequences_of(findings)
    parts = [paragraph(_model_sentence(subject)), key_figures(_figures(findings))]
    parts.append(paragraph(subject.provenance.sentence))
    parts += [paragraph(result_sentence(findings, trial)) for trial in findings.trials]
    parts.append(code(option_text(subject.given)))
    return "".join(parts)


def _model_sentence(subject: SequenceSubject) -> str:
    model = subject.model
    parts = [count(int(model.n_states_), "state")]
    if subject.has_classes:
        n_classes = count(len(subject.class_names), "class", "classes")
        parts.append(f"for each of {n_classes}")
    parts.append(f"({_order(model.topology_)})")
    if model.covariance_type_ is not None:
        parts.append(f"with covariances of type {model.covariance_type_}")
    size = count(model.model_.n_parameters, "free parameter")
    has = f"has {' '.join(parts)}, and {size}"
    sentence = f"{type(model).__name__} {model.purpose}."
    members = described_members(model)
    if not members:
        return f"{sentence} This one {has}."
    return (
        f"{sentence} This one is a committee of {count(len(members), 'model')}, which "
        f"votes on the class, and a density of the sequences, which {has}. The states "
        "below are those of the density."
    )


def _order(topology: object) -> str:
    """Say which states may follow each other."""
    return topology if isinstance(topology, str) else "with given transitions"


def _figures(findings: Findings) -> list[tuple[str, str]]:
    subject = sequences_of(findings)
    pairs = score_figures(findings)
    pairs.append(("sequences", f"{subject.n_rows:,}"))
    pairs.append(("frames", f"{subject.lengths.sum():,}"))
    pairs.append(("columns", f"{len(subject.names)}"))
    if subject.has_classes:
        pairs.append(("classes", f"{len(subject.class_names)}"))
    pairs.append(("states", f"{subject.model.n_states_}"))
    pairs.append(("cells missing", percent(1.0 - float(subject.observed.mean()))))
    if subject.y is not None:
        missing = 1.0 - len(subject.known) / subject.n_rows
        pairs.append(("labels missing", percent(missing)))
    return pairs


def sequence_data(findings: Findings) -> str:
    """Describe columns, lengths and classes."""
    subject = sequences_of(findings)
    lengths = subject.lengths.astype(float)
    picture = histogram(
        lengths,
        description="Histogram of the numbers of frames of the sequences",
        x_label="frames",
        unit="sequence",
    )
    caption = (
        f"Numbers of frames: from {number(lengths.min())} to {number(lengths.max())}, "
        f"mean {number(float(lengths.mean()))}."
    )
    if np.ptp(lengths) == 0.0:
        shown = paragraph(f"All sequences have {count(int(lengths[0]), 'frame')}.")
    else:
        shown = figures([figure(picture, caption)])
    parts = [column_table(subject), heading("Lengths"), shown]
    if subject.has_classes:
        parts += [heading("Classes"), class_balance(subject)]
    return "".join(parts)


def sequence_training(findings: Findings) -> str:
    """Draw the traces of training, and show what was tried."""
    model = findings.subject.model
    took = f"The last solver took {count(model.n_iter_, 'iteration')}"
    ending = (
        f"{took} and met its tolerance."
        if model.converged_
        else f"{took}, the most it was allowed, without reaching its optimum."
    )
    parts = [paragraph(ending), trace_figures(model)]
    members = members_part(model)
    if members:
        parts.insert(0, note("The traces are those of the density, not of the members."))
    return "".join([*parts, members, leaderboard_part(model)])
