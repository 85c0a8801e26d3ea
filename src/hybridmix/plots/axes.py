"""Matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np


def import_pyplot() -> Any:
    """Import matplotlib's pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib: pip install 'hybridmix[plot]'."
        ) from error
    return plt


def new_axes(ax: Any = None, height: float | None = None) -> Any:
    """Return given axes, or those of a new figure.

    Parameters
    ----------
    ax : matplotlib axes or None
        What was given.
    height : float or None, default=None
        Least height of a new figure, in inches.
    """
    if ax is not None:
        return ax
    pyplot = import_pyplot()
    width, usual = pyplot.rcParams["figure.figsize"]
    _, ax = pyplot.subplots(
        figsize=(width, max(usual, height or 0.0)), layout="constrained"
    )
    return ax


def class_axes(axes: Any, n_classes: int, width: float, height: float) -> np.ndarray:
    """Return given axes, or those of a new figure; at least one for each class.

    Parameters
    ----------
    axes : sequence of matplotlib axes or None
        What was given.
    n_classes : int
        Number of classes.
    width, height : float
        Of a new panel, in inches.
    """
    if axes is None:
        _, axes = import_pyplot().subplots(
            1, n_classes, figsize=(width * n_classes, height), layout="constrained"
        )
    panels = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(panels) < n_classes:
        raise ValueError(f"There are {n_classes} classes to draw; pass as many axes.")
    return panels
