"""Matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any


def import_pyplot() -> Any:
    """Import matplotlib's pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib: pip install 'hybridmix[plot]'."
        ) from error
    return plt


def new_axes(ax: Any = None) -> Any:
    """Return given axes, or those of a new figure."""
    if ax is not None:
        return ax
    _, ax = import_pyplot().subplots(layout="constrained")
    return ax
