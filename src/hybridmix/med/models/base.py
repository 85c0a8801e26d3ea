"""What a model of maximum entropy discrimination offers: its log-partition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.exceptions import UnsupportedError


@dataclass(frozen=True)
class Tilted:
    """The posterior that signed weights make of the prior.

    Attributes
    ----------
    log_partition : float
        Of the weights, 0 where all weights are; infinite if there is no such posterior.
    outputs : ndarray of shape (C, n)
        Its derivatives by the weights: the expected outputs of the rows.
    posterior : object
        What the model needs for predictions; its kind is the model's own.
    """

    log_partition: float
    outputs: FloatArray
    posterior: Any


class TiltedModel(ABC):
    r"""A prior over models, tilted by signed weights of the training rows.

    .. math:: \log Z(w) = \log E_{p_0(\Theta)}
              \exp \sum_{c, n} w_{cn} f_c(x_n; \Theta)

    It is convex in the weights (C, n), and its derivatives are expected outputs.
    """

    n_outputs: int
    n_rows: int
    # Number of rows of `factor`; None for models without one.
    factor_size: int | None = None

    @abstractmethod
    def tilted(self, weights: FloatArray) -> Tilted:
        """Return the posterior of signed weights (C, n)."""

    def factor(self, tilted: Tilted) -> FloatArray:
        """Return a factor F (q, C, n) of the second derivatives, which are F'F."""
        raise UnsupportedError(type(self).__name__, "a factor of its curvature")


def improper(weights: FloatArray) -> Tilted:
    """Return what stands for weights that no posterior exists for."""
    return Tilted(np.inf, np.full_like(weights, np.nan), None)
