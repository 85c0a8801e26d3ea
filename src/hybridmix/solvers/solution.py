"""What solvers return, and how they are watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hybridmix.mixture import Mixture


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    model : Mixture
        The best model.
    value : float
        Mean objective of the rows, with the log density of the priors.
    trace : list of float
        The value at the start and after every iteration.
    converged : bool
        Whether the tolerance was met.
    interrupted : bool
        Whether the user stopped the solver.
    n_reseeded : int
        How often a collapsed component was started anew.
    n_iter : int
        Number of iterations.
    """

    model: Mixture
    value: float
    trace: list[float] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    n_reseeded: int = 0
    n_iter: int = 0


class EarlyStopping:
    """Keeps the model of the lowest validation loss, and says when to stop.

    Parameters
    ----------
    loss : callable
        Validation loss of a mixture.
    patience : int
        Stop after so many iterations without a lower loss.

    Attributes
    ----------
    losses : list of float
        Validation loss of the start and of every iteration.
    best_model : Mixture or None
        The model of the lowest loss.
    """

    def __init__(self, loss: Callable[[Mixture], float], patience: int) -> None:
        self._loss = loss
        self._patience = patience
        self.losses: list[float] = []
        self.best_model: Mixture | None = None

    def __call__(self, model: Mixture) -> bool:
        """Look at the model of an iteration; return True to stop."""
        loss = self._loss(model)
        if not self.losses or loss < min(self.losses):
            self.best_model = model
        self.losses.append(loss)
        best = self.losses.index(min(self.losses))
        return len(self.losses) - 1 - best >= self._patience
