"""Objectives: values and signed weights of rows, from their log joint densities."""

from hybridmix.objectives.base import Objective
from hybridmix.objectives.likelihood import Likelihood

__all__ = ["Likelihood", "Objective"]
