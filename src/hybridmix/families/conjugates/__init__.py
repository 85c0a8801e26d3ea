"""Conjugate priors of families, for posteriors over their parameters."""

from hybridmix.families.conjugates.base import Conjugate
from hybridmix.families.conjugates.counts import (
    Dirichlet,
    DirichletMultinomial,
    GammaPoisson,
)
from hybridmix.families.conjugates.gaussian import NormalGamma, NormalMeans, NormalWishart
from hybridmix.families.conjugates.independent import Independent
from hybridmix.families.conjugates.trees import DirichletTrees

__all__ = [
    "Conjugate",
    "Dirichlet",
    "DirichletMultinomial",
    "DirichletTrees",
    "GammaPoisson",
    "Independent",
    "NormalGamma",
    "NormalMeans",
    "NormalWishart",
]
