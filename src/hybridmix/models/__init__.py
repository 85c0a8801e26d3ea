"""Joint densities of rows and classes, log p(x, c)."""

from hybridmix._logsumexp import class_posterior, grouped_logsumexp
from hybridmix.models.base import Evaluation, Model, ModelCoordinates, ModelPoint
from hybridmix.models.mixture import Mixture
from hybridmix.models.statistics import MixtureStatistics

__all__ = [
    "Evaluation",
    "Mixture",
    "MixtureStatistics",
    "Model",
    "ModelCoordinates",
    "ModelPoint",
    "class_posterior",
    "grouped_logsumexp",
]
