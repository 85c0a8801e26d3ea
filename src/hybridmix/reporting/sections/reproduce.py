"""How to read the report, and how to get it again."""

from __future__ import annotations

import platform

import numpy as np
import scipy
import sklearn

from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import code, heading, paragraph, table
from hybridmix.reporting.subject import Subject

_TERMS = (
    (
        "log density",
        "How probable a row is, in the units of the table. It can be compared only "
        "between rows that have the same columns.",
    ),
    (
        "typicality",
        "Log of the share of the model's own rows that are no denser, or an upper bound "
        "of it; below log 0.01 = \N{MINUS SIGN}4.6, at most about one in a hundred.",
    ),
)


_TERMS_OF_SEQUENCES = (
    ("frame", "A row of a sequence: what was measured at one time."),
    (
        "state",
        "What a sequence is in at each frame, which is never observed. States have "
        "numbers from 0, and each class has its own.",
    ),
)


def reproduce_section(findings: Findings) -> str:
    """Explain terms; list versions and the call."""
    from hybridmix import __version__

    subject = findings.subject
    metrics = [(metric.name, metric.meaning) for metric in subject.task.metrics]
    is_sequential = subject.task.unit == "sequence"
    terms = [*metrics, *(_TERMS_OF_SEQUENCES if is_sequential else _TERMS)]
    versions = (
        ("hybridmix", __version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", scipy.__version__),
        ("scikit-learn", sklearn.__version__),
        ("table", subject.columns.container),
    )
    return "".join(
        [
            table(
                "Terms", ("term", "meaning"), terms, text_columns=(0, 1), class_="terms"
            ),
            heading("How to make this report again"),
            paragraph(
                "The same model, table, title, options and versions give the same "
                "report, byte for byte. The summary says how the model was made."
            ),
            code(_call(subject)),
            table("Versions", ("package", "version"), versions, text_columns=(0, 1)),
        ]
    )


def _call(subject: Subject) -> str:
    options = []
    if subject.n_folds != 5:
        options.append(f"cv={subject.n_folds}")
    if not subject.baselines:
        options.append("baselines=False")
    options.append(f"random_state={subject.seed}")
    y = ", y" if subject.y is not None else ""
    return (
        "import hybridmix\n\n"
        f"report = hybridmix.report(model, X{y}, {', '.join(options)})\n"
        'report.save("report.html")\n'
    )
