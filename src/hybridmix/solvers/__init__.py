"""Solvers: from statistics to better models."""

from hybridmix.solvers.base import EarlyStopping, History, Solution, Solver
from hybridmix.solvers.baum_welch import ExtendedBaumWelch
from hybridmix.solvers.em import ExpectationMaximisation
from hybridmix.solvers.lbfgs import LimitedMemoryBFGS

__all__ = [
    "EarlyStopping",
    "ExpectationMaximisation",
    "ExtendedBaumWelch",
    "History",
    "LimitedMemoryBFGS",
    "Solution",
    "Solver",
]
