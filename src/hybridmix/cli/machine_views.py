"""Machines of maximum entropy discrimination in the form for the screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix.cli.grids import grid
from hybridmix.cli.models import Model

# Columns that are shown, those of the largest weights first.
_SHOWN_WEIGHTS = 10


def described_machine(model: Model) -> dict[str, Any]:
    """Return what a machine is: its kind, its gap, and the weights of the columns."""
    estimator = model.estimator
    values: dict[str, Any] = {
        "machine": type(estimator.machine_).__name__,
        "dual_gap": float(estimator.dual_gap_),
    }
    if model.is_classifier:
        values["labels"] = estimator.classes_.tolist()
    coef = getattr(estimator, "coef_", None)
    if coef is not None:
        weights = np.atleast_2d(coef)
        values["weights"] = dict(zip(model.column_names, weights.T.tolist(), strict=True))
    return values


def machine(values: dict[str, Any]) -> list[Any]:
    """Show what `described_machine` returns."""
    parts: list[Any] = []
    if "labels" in values:
        parts.append(f"Classes: {', '.join(map(str, values['labels']))}")
    parts.append(f"Gap between primal and dual: {values['dual_gap']:.3g}")
    if "weights" in values:
        largest = sorted(
            values["weights"].items(), key=lambda item: -float(np.abs(item[1]).max())
        )
        rows = [
            (name, ", ".join(f"{weight:.3g}" for weight in weights))
            for name, weights in largest[:_SHOWN_WEIGHTS]
        ]
        parts += ["Columns of the largest weights:", grid(("column", "weights"), rows)]
    return parts
