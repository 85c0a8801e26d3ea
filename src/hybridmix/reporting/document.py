"""The report as a document."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridmix.progress import announce
from hybridmix.reporting.markup import element, escape

if TYPE_CHECKING:
    from hybridmix.reporting.subject import Subject


@dataclass(frozen=True)
class Report:
    """A report on a fitted model.

    Shows itself in notebooks.

    Attributes
    ----------
    title : str
        Its title.
    html : str
        A whole page, which needs no other file and no network.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; the file is replaced at once or not at all.

        Parameters
        ----------
        path : str or path-like
            The file, such as ``"report.html"``.
        """
        from hybridmix._writing import replacing

        with replacing(path) as stream:
            stream.write(self.html.encode("utf-8"))

    def __repr__(self) -> str:
        return f"Report(title={self.title!r}, {len(self.html) / 1000:.0f} kB)"

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles of page and notebook apart. Within it, links
        # would lead to anchors of the notebook without the base.
        framed = self.html.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(framed)}" '
            'sandbox width="100%" height="800" style="border:0"></iframe>'
        )


def report(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    title: str | None = None,
    cv: int = 5,
    baselines: bool = True,
    random_state: int = 0,
) -> Report:
    """Write a report on a fitted model and a table.

    It shows the table, how the model compares with others, calibration, what missing
    features cost, which columns matter, components, and unusual rows with the cells that
    make them so.

    Rows that the model has not seen are scored by the model as it is. On its own training
    rows it would look too good, so it is retrained by cross-validation. The report says
    which of the two its figures are; see `hybridmix.tasks`.

    Parameters
    ----------
    model : estimator
        A fitted model of hybridmix, or a search among them.
    X : array-like or data frame of shape (n, d), or sequences
        Rows to judge the model by: new ones, or those of training. For a model of
        sequences, sequences in any form that it takes without ``lengths``.
    y : array-like of shape (n,) or (n, t), default=None
        Labels or targets, for classifiers and regressors; they may be missing. Without
        them there are no scores. Each of several targets has a section of its own.
    title : str or None, default=None
        Title of the page; None for the name of the model.
    cv : int, default=5
        Number of folds, where the model is retrained.
    baselines : bool, default=True
        Whether to compare with other models, trained by the same folds: logistic
        regression, boosted trees and the most frequent class for classifiers; ridge
        regression, boosted trees, a random forest and the mean for regressors;
        independent columns for densities. For sequences: models that do not know the
        order of the frames.
    random_state : int, default=0
        Seed for the folds and everything else that is drawn.

    Returns
    -------
    report : Report
        Shows itself in notebooks; ``save`` writes a file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> from hybridmix.reporting import report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = HybridMixtureClassifier().fit(X, y)
    >>> report(model, X, y, title="Iris", cv=2, baselines=False).title
    'Iris'
    """
    # Imported here, so that the library itself loads fast.
    import numpy as np
    from threadpoolctl import threadpool_limits

    from hybridmix._checks import check_number
    from hybridmix._text import with_article
    from hybridmix.reporting.sequence_subject import subject_of

    check_number("cv", cv, 2, whole=True)
    check_number("random_state", random_state, 0, np.iinfo(np.int32).max, whole=True)
    subject = subject_of(model, X, y, cv, baselines, random_state)
    title = title or f"Report on {with_article(type(subject.model).__name__)}"
    # For this few rows, threads of the boosted trees mostly wait for each other.
    with threadpool_limits(limits=1, user_api="openmp"):
        sections = _sections(subject)
    return Report(title, page(title, sections))


class Part(NamedTuple):
    """A section as it is written: its anchor, title and content; whether it is folded."""

    anchor: str
    title: str
    content: str
    is_folded: bool = False


def _sections(subject: Subject) -> list[Part]:
    """Write the sections."""
    from hybridmix.reporting.findings import found_out
    from hybridmix.reporting.sections import sections_of

    findings = found_out(subject)
    written = []
    sections = sections_of(findings)
    for place, section in enumerate(sections):
        announce("report", place, len(sections), section.title)
        content = section.content(findings)
        if content is not None:
            written.append(
                Part(section.anchor, section.title, content, section.is_folded)
            )
    announce("report", len(sections), len(sections))
    return written


def page(title: str, sections: list[Part]) -> str:
    """Put sections into a page."""
    from importlib.resources import files

    style = (files("hybridmix.reporting") / "style.css").read_text("utf-8")
    links = "".join(
        element("li", element("a", escape(own.title), href=f"#{own.anchor}"))
        for own in sections
    )
    contents = element(
        "nav", element("ol", links, class_="contents"), aria_label="Contents"
    )
    body = "".join(map(_section, sections))
    # No line breaks between a number and its sign.
    body = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", body)
    # The policy makes sure that the page loads nothing, whatever a table holds.
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header>{element('h1', escape(title))}</header>\n{contents}\n"
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section(part: Part) -> str:
    """Put a section into its frame; its title opens it if it is folded."""
    title = element("h2", escape(part.title), id=f"{part.anchor}-title")
    inner = title + part.content
    if part.is_folded:
        inner = element("details", element("summary", title) + part.content)
    return element(
        "section",
        inner,
        id=part.anchor,
        class_="folded" if part.is_folded else "open",
        aria_labelledby=f"{part.anchor}-title",
    )
