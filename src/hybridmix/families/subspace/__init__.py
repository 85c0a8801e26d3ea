"""Gaussian components in a subspace that all of them share."""

from hybridmix.families.subspace.family import SubspaceGaussian
from hybridmix.families.subspace.parameters import Subspace, SubspaceParameters
from hybridmix.families.subspace.principal import principal_subspace
from hybridmix.families.subspace.refined import RefinedSubspaceGaussian
from hybridmix.families.subspace.selection import chosen_n_factors

__all__ = [
    "RefinedSubspaceGaussian",
    "Subspace",
    "SubspaceGaussian",
    "SubspaceParameters",
    "chosen_n_factors",
    "principal_subspace",
]
