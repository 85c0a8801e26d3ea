"""Gaussian components in a subspace that all of them share."""

from hybridmix.families.subspace.family import RefinedSubspaceGaussian, SubspaceGaussian
from hybridmix.families.subspace.parameters import Subspace, SubspaceParameters
from hybridmix.families.subspace.principal import chosen_n_factors, principal_subspace

__all__ = [
    "RefinedSubspaceGaussian",
    "Subspace",
    "SubspaceGaussian",
    "SubspaceParameters",
    "chosen_n_factors",
    "principal_subspace",
]
