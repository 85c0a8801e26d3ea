"""Solvers: from statistics to better models."""

from hybridmix.solvers.base import EarlyStopping, History, Solution, Solver
from hybridmix.solvers.baum_welch import ExtendedBaumWelch
from hybridmix.solvers.em import ExpectationMaximisation
from hybridmix.solvers.lbfgs import LimitedMemoryBFGS
from hybridmix.solvers.online import Memory, OnlineEM, OnlineStep

__all__ = [
    "EarlyStopping",
    "ExpectationMaximisation",
    "ExtendedBaumWelch",
    "History",
    "LimitedMemoryBFGS",
    "Memory",
    "OnlineEM",
    "OnlineStep",
    "Solution",
    "Solver",
]
