"""A warning before discriminative training that may take long."""

from __future__ import annotations

import time
import warnings

import numpy as np

from hybridmix.models.base import Model
from hybridmix.models.chains import Chains
from hybridmix.models.mixture import Mixture
from hybridmix.problem import Problem
from hybridmix.solvers import Solver

# Below both of these nothing is measured.
_MANY_CLASSES = 100
_MANY_PARAMETERS = 1_000_000
_LONG_SECONDS = 60.0


def warn_if_long(
    problem: Problem, start: Mixture | Chains, solver: Solver, n_steps: int
) -> None:
    """Warn if many classes or many columns make training last for minutes.

    EM looks at the class of each row alone, and has few steps. What separates classes
    compares every row with all of them, step by step.

    Parameters
    ----------
    problem : Problem
        What is to be maximised.
    start : Model
        Where it begins.
    solver : Solver
        How it is maximised.
    n_steps : int
        Most steps of the solver.
    """
    if start.n_classes < _MANY_CLASSES and start.n_parameters < _MANY_PARAMETERS:
        return
    seconds = n_steps * (
        problem.estimated_seconds(start) + _update_seconds(start, solver)
    )
    if seconds > _LONG_SECONDS:
        warnings.warn(
            f"Training to discriminate may take about {_duration(seconds)}: each of up "
            f"to {n_steps} steps compares every row with {start.n_classes} classes and "
            f"updates {start.n_parameters} parameters. Use objective='likelihood', which "
            "is much faster, fewer n_steps, fewer components, or covariance_type='diag'.",
            UserWarning,
            stacklevel=2,
        )


def _update_seconds(start: Model, solver: Solver) -> float:
    """Return how long a gradient method takes from a vector to a model and back."""
    if "coordinates" not in getattr(solver, "needs", ()):
        return 0.0
    coordinates = start.coordinates(1.0)
    before = time.perf_counter()
    coordinates.at(np.zeros(coordinates.size)).gradient(start.zero_statistics())
    return time.perf_counter() - before


def _duration(seconds: float) -> str:
    minutes = seconds / 60.0
    return f"{minutes:.0f} minutes" if minutes < 90.0 else f"{minutes / 60.0:.0f} hours"
