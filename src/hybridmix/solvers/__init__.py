"""Solvers: from a problem and a start to a fitted mixture."""

from hybridmix.solvers.em import ExpectationMaximisation, Solution
from hybridmix.solvers.starts import start_mixture

__all__ = ["ExpectationMaximisation", "Solution", "start_mixture"]
