"""Solvers: from a problem and a start to a fitted mixture."""

from hybridmix.solvers.baum_welch import ExtendedBaumWelch
from hybridmix.solvers.em import ExpectationMaximisation
from hybridmix.solvers.lbfgs import LimitedMemoryBFGS
from hybridmix.solvers.solution import EarlyStopping, Solution
from hybridmix.solvers.starts import start_mixture

__all__ = [
    "EarlyStopping",
    "ExpectationMaximisation",
    "ExtendedBaumWelch",
    "LimitedMemoryBFGS",
    "Solution",
    "start_mixture",
]
