"""Objectives: values and signed weights of rows, from their log joint densities."""

from hybridmix.objectives.base import Objective
from hybridmix.objectives.blend import Blend
from hybridmix.objectives.conditional import ConditionalLikelihood
from hybridmix.objectives.likelihood import Likelihood
from hybridmix.objectives.margin import Margin, ScaledMargin
from hybridmix.objectives.per_frame import PerFrame
from hybridmix.objectives.predictive import PredictiveLikelihood

__all__ = [
    "Blend",
    "ConditionalLikelihood",
    "Likelihood",
    "Margin",
    "Objective",
    "PerFrame",
    "PredictiveLikelihood",
    "ScaledMargin",
]
