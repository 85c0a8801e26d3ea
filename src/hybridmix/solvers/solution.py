"""What solvers return, and how they are watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hybridmix.mixture import Mixture
from hybridmix.problem import Assessment, Problem
from hybridmix.progress import announce

Watch = Callable[[Mixture], bool]


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    model : Mixture
        The best model.
    value : float
        Mean objective of the rows, with the log density of the priors.
    traces : dict of str to list of float
        What changed from the start over the iterations; see `History`.
    converged : bool
        Whether the tolerance was met, or whoever watched said to stop.
    interrupted : bool
        Whether the user stopped the solver.
    n_reseeded : int
        How often a collapsed component was started anew.
    n_iter : int
        Number of iterations.
    """

    model: Mixture
    value: float
    traces: dict[str, list[float]] = field(default_factory=dict)
    converged: bool = False
    interrupted: bool = False
    n_reseeded: int = 0
    n_iter: int = 0

    @property
    def trace(self) -> list[float]:
        """The value at the start and after every iteration."""
        return self.traces.get("value", [])


class History:
    """Collects the traces of a solver, and tells of its progress.

    Parameters
    ----------
    problem : Problem
        What is maximised.
    task : str
        Name of the solver.
    max_iter : int
        Largest number of iterations.
    verbose : bool
        Print the value of every tenth iteration.

    Attributes
    ----------
    traces : dict of str to list of float
        "value": mean objective of the rows, with the log density of the priors; the name
        of every term of the objective: its mean over the rows; "training_error": share of
        the labelled rows that are misclassified, if the objective looks at rivals.
    """

    def __init__(self, problem: Problem, task: str, max_iter: int, verbose: bool) -> None:
        self._task = task
        self._max_iter = max_iter
        self._verbose = verbose
        self._total = problem.total_weight
        self._labelled = problem.dataset.labelled().total_weight
        self._parts = problem.objective.parts
        names = ["value", *self._parts]
        if problem.objective.needs_rivals:
            names.append("training_error")
        self.traces: dict[str, list[float]] = {name: [] for name in names}

    @property
    def n_iter(self) -> int:
        """Number of iterations after the start."""
        return max(0, len(self.traces["value"]) - 1)

    def value(self, assessment: Assessment, model: Mixture) -> float:
        """Return the mean objective of the rows, with the log density of the priors."""
        return (assessment.value + model.log_prior_density()) / self._total

    def add(self, assessment: Assessment, model: Mixture) -> float:
        """Note the start or an iteration; return its value."""
        value = self.value(assessment, model)
        self.traces["value"].append(value)
        for name, part in zip(self._parts, assessment.parts, strict=True):
            self.traces[name].append(float(part) / self._total)
        if "training_error" in self.traces:
            share = assessment.wrong / self._labelled if self._labelled else float("nan")
            self.traces["training_error"].append(share)
        self._tell(value)
        return value

    def _tell(self, value: float) -> None:
        announce(self._task, self.n_iter, self._max_iter, f"mean value {value:.4f}")
        if self._verbose and self.n_iter % 10 == 0:
            print(f"  iteration {self.n_iter:4d}  mean value {value:.6f}")


class EarlyStopping:
    r"""Keeps the model of the lowest validation loss, and says when to stop.

    Parameters
    ----------
    loss : callable
        Validation loss of a mixture.
    patience : int
        Stop after so many iterations without a lower loss.
    generalisation_loss : float
        Stop when the loss has risen by this share of the lowest one so far,
        :math:`l(t) / \min_{t' \le t} l(t') - 1` (Prechelt 1998).

    Attributes
    ----------
    losses : list of float
        Validation loss of the start and of every iteration.
    best_model : Mixture or None
        The model of the lowest loss.
    """

    def __init__(
        self,
        loss: Callable[[Mixture], float],
        patience: int,
        generalisation_loss: float = np.inf,
    ) -> None:
        self._loss = loss
        self._patience = patience
        self._generalisation_loss = generalisation_loss
        self.losses: list[float] = []
        self.best_model: Mixture | None = None

    def __call__(self, model: Mixture) -> bool:
        """Look at the model of an iteration; return True to stop."""
        loss = self._loss(model)
        if not self.losses or loss < min(self.losses):
            self.best_model = model
        self.losses.append(loss)
        lowest = min(self.losses)
        waited = len(self.losses) - 1 - self.losses.index(lowest)
        if waited >= self._patience:
            return True
        return waited > 0 and loss - lowest > self._generalisation_loss * lowest
