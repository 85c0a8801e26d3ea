"""Results in the form for the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.table import Table as RichTable

from hybridmix._text import printable
from hybridmix._typing import FloatArray
from hybridmix.cli import machine_views, sequence_views
from hybridmix.cli.columns import ColumnKind
from hybridmix.cli.grids import grid
from hybridmix.cli.guilt import GuiltyCell
from hybridmix.cli.models import Model
from hybridmix.cli.results import WorstRow
from hybridmix.estimators.chosen import described_members

_SHOWN_COLUMNS = 1
_SHOWN_CATEGORIES = 6
# Longer lists of columns are cut: they take minutes to lay out, and nobody reads them.
SHOWN_ROWS = 100
# A matrix of more classes is too wide for a screen.
_SHOWN_CLASSES = 8
# If names of classes have more letters in total, columns get numbers instead.
_SHOWN_LETTERS = 40
_LONGEST = 30
# Candidates of a search that are shown, best first; the chosen one always is.
_SHOWN_TRIED = 8


def column_table(kinds: Sequence[ColumnKind]) -> RichTable:
    """Show what the columns of a table are treated as."""
    rows = [
        (
            kind.name,
            kind.kind,
            kind.reason,
            ", ".join(map(_excerpt, kind.examples)),
            f"{100 * kind.missing:.1f} %" if kind.missing else "",
        )
        for kind in kinds[:SHOWN_ROWS]
    ]
    header = ("column", "type", "why", "examples", "missing")
    return _counted(grid(header, rows, right=("missing",)), [kind.kind for kind in kinds])


def _counted(table: RichTable, kinds: Sequence[str]) -> RichTable:
    """Say below a table of columns which of them it does not show."""
    left = Counter(kinds[SHOWN_ROWS:])
    if left:
        parts = ", ".join(f"{n} {kind}" for kind, n in left.items())
        table.caption = f"and {left.total()} more columns: {parts}"
        table.caption_justify = "left"
    return table


def evaluation(values: dict[str, Any]) -> list[Any]:
    """Show scores, and how often labels were predicted as which class."""
    if "targets" in values:
        parts: list[Any] = []
        for name, own in values["targets"].items():
            parts += [f"Target {printable(name)}:", *evaluation(own)]
        return parts
    if "classes" not in values:
        counted = (
            f"{values['rows']} rows with a target, {values['without_target']} without"
        )
        return [counted, values["provenance"]["sentence"], _scores(values)]
    units = "sequences" if "sequences" in values else "rows"
    counted = f"{values[units]} {units} with a label, {values['unlabelled']} without"
    names = [_excerpt(str(label)) for label in values["classes"]]
    shown = _confusion if len(names) <= _SHOWN_CLASSES else _mistakes
    provenance = values["provenance"]["sentence"]
    return [counted, provenance, _scores(values), *shown(names, values["confusion"])]


def _scores(values: dict[str, Any]) -> RichTable:
    """Show scores with their intervals."""
    intervals = values["intervals"]
    scores = [
        (
            name.replace("_", " "),
            _score(value),
            " to ".join(map(_score, intervals.get(name, ()))),
        )
        for name, value in values.items()
        if isinstance(value, float)
    ]
    return grid(("score", "value", "95 % interval"), scores, right=("value",))


def _score(value: float) -> str:
    """Write a score, which may be in units of any size."""
    is_usual = value == 0.0 or 1e-3 <= abs(value) < 1e5
    return f"{value:.4f}" if is_usual or value != value else f"{value:.4g}"


def _confusion(names: list[str], counts: np.ndarray) -> list[Any]:
    """Show how often each label was predicted as each class."""
    header = names
    if sum(map(len, names)) > _SHOWN_LETTERS:
        header = [f"({k})" for k in range(1, len(names) + 1)]
        names = [f"{name} {k}" for name, k in zip(names, header, strict=True)]
    rows = [(name, *row) for name, row in zip(names, counts.tolist(), strict=True)]
    title = "Labels in rows, predictions in columns:"
    return [title, grid(("label", *header), rows, right=header)]


def _mistakes(names: list[str], counts: np.ndarray) -> list[Any]:
    """Show for each label how often it was predicted, and what most often instead."""
    wrong = counts - np.diag(np.diag(counts))
    rows = []
    for k, name in enumerate(names):
        worst = int(wrong[k].argmax())
        instead = f"{names[worst]} ({wrong[k, worst]})" if wrong[k].any() else ""
        rows.append((name, counts[k].sum(), counts[k, k], instead))
    header = ("label", "rows", "right", "most often predicted as")
    return [grid(header, rows, right=header[1:3])]


def outliers(
    worst: Sequence[WorstRow],
    guilty: Sequence[Sequence[GuiltyCell]],
    scores: FloatArray,
    level: float,
    unit: str = "row",
) -> tuple[dict[str, Any], Any, Any]:
    """Return the values and the form of rows of low typicality and their guilty cells."""
    names = list(worst[0].cells)[:_SHOWN_COLUMNS] if worst else []
    rows = [
        (
            row.row,
            f"{row.typicality:.1f}",
            f"{np.exp(row.typicality):.2g}",
            "yes" if row.typicality < level else "no",
            *(_excerpt(row.cells[name]) for name in names),
            _blamed(row, cells) if row.typicality < level else "",
        )
        for row, cells in zip(worst, guilty, strict=True)
    ]
    header = (unit, "typicality", "probability", "outlier", *names, "guilty cells")
    n_flagged = int(np.sum(scores < level))
    values = {
        f"{unit}s": len(scores),
        "outliers": n_flagged,
        "threshold": float(np.exp(level)),
        "worst": [
            {
                "row": row.row,
                "typicality": row.typicality,
                "cells": row.cells,
                "guilty": [asdict(cell) for cell in cells],
            }
            for row, cells in zip(worst, guilty, strict=True)
        ],
    }
    verb = "is an outlier" if n_flagged == 1 else "are outliers"
    summary = f"{n_flagged:,} of {len(scores):,} {unit}s {verb}"
    return values, summary, grid(header, rows, right=header[:3])


def _blamed(row: WorstRow, guilty: Sequence[GuiltyCell]) -> str:
    """Name the guilty cells of a row, with what would be expected instead."""
    parts = []
    for cell in guilty:
        value, expected = row.cells.get(cell.column), cell.expected
        if isinstance(expected, float):
            expected = f"{expected:.4g}"
        known = f"{cell.column} {_excerpt(value)}" if value else cell.column
        parts.append(known if expected is None else f"{known} (expected {expected})")
    return ", ".join(parts) or "no single cell"


def described(model: Model) -> dict[str, Any]:
    """Return what a model is: options, columns, classes, components."""
    estimator = model.estimator
    defaults = type(estimator)().get_params()
    options = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(defaults[name])
    }
    columns = []
    for j, (name, kind) in enumerate(zip(model.column_names, model.kinds, strict=True)):
        categories = list(model.categories.get(j, ()))
        shape = model.shapes.get(j, "")
        columns.append(
            {"name": name, "type": kind, "shape": shape, "categories": categories}
        )
    values: dict[str, Any] = {
        "class": type(estimator).__name__,
        "options": {name: _plain(value) for name, value in options.items()},
        "columns": columns,
        "target": model.target,
        "weight": model.weight,
        "dropped": list(model.dropped),
        "missing_marks": sorted(model.marks),
        "converged": bool(estimator.converged_),
    }
    if model.is_machine:
        return values | machine_views.described_machine(model)
    if model.is_sequential:
        values |= sequence_views.described_chains(model)
    elif model.is_classifier:
        values["classes"] = [
            {
                "label": label,
                "prior": prior,
                "components": estimator.mixing_[estimator.component_classes_ == k],
            }
            for k, (label, prior) in enumerate(
                zip(estimator.classes_.tolist(), estimator.class_prior_, strict=True)
            )
        ]
    else:
        values["components"] = estimator.mixing_
    if model.is_regressor:
        values["predictions"] = described_predictions(estimator)
    values["leaderboard"] = list(getattr(estimator, "leaderboard_", []))
    values["members"] = described_members(estimator)
    return values


def described_predictions(estimator: Any) -> dict[str, Any]:
    """Return what the predictions of a regressor are made of."""
    if not hasattr(estimator, "predictive_"):
        deviations = getattr(estimator, "deviations_", None)
        return {
            "features": list(estimator.embedding_.kinds),
            "weights": estimator.weights_.size,
            "deviations": None if deviations is None else deviations.tolist(),
        }
    shapes = estimator.target_schema_.shapes
    return {
        "mixtures": len(estimator.predictive_.members),
        "spread": float(estimator.predictive_.spread),
        "target_shape": "; ".join(map(str, shapes.values())),
    }


def predicted_by(values: Mapping[str, Any]) -> str:
    """Say what the predictions of a regressor are made of."""
    if "mixtures" in values:
        return averaged(values["mixtures"], values["spread"])
    kinds = ", ".join(values["features"])
    layer = f"a linear layer of {values['weights']} weights ({kinds})"
    if values["deviations"] is None:
        return f"Predictions come from {layer}."
    written = ", ".join(f"{deviation:.4g}" for deviation in values["deviations"])
    return f"Predictions come from {layer}, with errors of standard deviation {written}."


def inspection(values: dict[str, Any]) -> list[Any]:
    """Show what `described` returns."""
    parts = [*_heading(values), _known_columns(values["columns"])]
    if "machine" in values:
        return [*parts, *machine_views.machine(values)]
    if "predictions" in values:
        own = values["predictions"]
        parts.append(predicted_by(own))
        if own.get("target_shape"):
            parts.append(f"Shape of the target: {own['target_shape']}.")
    if values["members"] or "predictions" in values:
        what = (
            "Density of the sequences"
            if "states" in values
            else "Components of the density of the rows"
        )
        parts.append(f"{what}:")
    parts += sequence_views.chains(values) if "states" in values else [_parts(values)]
    return [*parts, *search_of(values)]


def averaged(n_mixtures: int, spread: float) -> str:
    """Say what the predictions of a regressor are made of."""
    mixtures = (
        "one mixture" if n_mixtures == 1 else f"an average of {n_mixtures} mixtures"
    )
    corrected = f", with deviations times {spread:.3g}" if spread != 1.0 else ""
    return f"Predictions come from {mixtures} of rows and targets{corrected}."


def search_of(values: Mapping[str, Any]) -> list[Any]:
    """Show what a search has tried and what it has made of it; nothing without one."""
    units = "sequences" if "states" in values else "rows"
    return [*leaderboard(values["leaderboard"], units), *_members(values["members"])]


def leaderboard(tried: Sequence[Mapping[str, Any]], units: str = "rows") -> list[Any]:
    """Show the candidates of a search, as `leaderboard_` has them; nothing if empty."""
    if not tried:
        return []
    shown = [row for k, row in enumerate(tried) if k < _SHOWN_TRIED or row["share"] > 0]
    rows = [
        (
            row["candidate"],
            f"{row['score']:.3f}",
            f"{row['standard_error']:.3f}",
            f"{row['seconds']:.2f}",
            f"{100 * row['share']:.0f} %" if row["share"] > 0 else "",
        )
        for row in shown
    ]
    header = ("candidate", "score", "± error", "seconds", "share")
    title = (
        f"{len(tried)} candidates were compared on held-out {units} (score: mean log "
        "probability, the higher the better); the best of them:"
    )
    if len(tried) == 1:
        title = f"One candidate was tried, and scored on held-out {units}:"
    return [title, grid(header, rows, right=header[1:])]


def _members(members: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Show the members of a committee; nothing if there is none."""
    if not members:
        return []
    rows = [
        (
            member["candidate"],
            f"{100 * member['share']:.0f} %",
            member["components"],
            f"{member['temperature']:.2f}",
        )
        for member in members
    ]
    header = ("member", "share", "components", "temperature")
    title = f"Classes are predicted by a committee of {len(members)}:"
    return [title, grid(header, rows, right=header[1:])]


def _heading(values: dict[str, Any]) -> list[str]:
    """Say in a few lines what a model is, and what wrote it."""
    options = ", ".join(f"{name}={value!r}" for name, value in values["options"].items())
    lines = [f"{values['class']}({options})"]
    roles = {n: values.get(n) for n in ("target", "weight", "time")}
    lines += [f"{name}: {value}" for name, value in roles.items() if value is not None]
    if values.get("sequence"):
        lines.append(f"sequence: {', '.join(values['sequence'])}")
    if values["dropped"]:
        lines.append(f"dropped: {shortened(values['dropped'], SHOWN_ROWS)}")
    written = ", ".join(f"{name} {text}" for name, text in values["versions"].items())
    return [*lines, f"written by {written}"]


def _known_columns(columns: list[dict[str, Any]]) -> RichTable:
    """Show the columns of a model."""
    rows = [
        (
            column["name"],
            column["type"],
            column["shape"] or shortened(column["categories"]),
        )
        for column in columns[:SHOWN_ROWS]
    ]
    table = grid(("column", "type", "shape or categories"), rows)
    return _counted(table, [column["type"] for column in columns])


def _parts(values: dict[str, Any]) -> RichTable:
    """Show the classes of a model and their components, or the components alone."""
    if "classes" not in values:
        rows = [(k, f"{share:.3f}") for k, share in enumerate(values["components"])]
        return grid(("component", "share"), rows, right=("share",))
    shares = [
        (group["label"], f"{group['prior']:.3f}", _shares(group["components"]))
        for group in values["classes"]
    ]
    header = ("class", "share", "shares of its components")
    return grid(header, shares, right=("share",))


def _excerpt(text: str) -> str:
    """Return the beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def shortened(values: Sequence[Any], most: int = _SHOWN_CATEGORIES) -> str:
    """List some values, and say how many there are if not all are listed."""
    more = f", ... ({len(values)})" if len(values) > most else ""
    return ", ".join(map(str, values[:most])) + more


def _shares(mixing: np.ndarray) -> str:
    return ", ".join(f"{share:.3f}" for share in np.sort(mixing)[::-1])


def _plain(value: Any) -> Any:
    """Return an option in a form that JSON has."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    is_plain = isinstance(value, bool | int | float | str | list | tuple | dict)
    return value if is_plain or value is None else repr(value)
