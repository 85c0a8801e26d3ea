"""Families of component densities."""

from hybridmix.families.autoregressive import AutoregressiveGaussian
from hybridmix.families.base import Coordinates, Family, Point
from hybridmix.families.categorical import Categorical
from hybridmix.families.diagonal import DiagonalGaussian
from hybridmix.families.full import FullGaussian
from hybridmix.families.prior import VariancePrior
from hybridmix.families.product import Product
from hybridmix.families.subspace import (
    RefinedSubspaceGaussian,
    Subspace,
    SubspaceGaussian,
)

__all__ = [
    "AutoregressiveGaussian",
    "Categorical",
    "Coordinates",
    "DiagonalGaussian",
    "Family",
    "FullGaussian",
    "Point",
    "Product",
    "RefinedSubspaceGaussian",
    "Subspace",
    "SubspaceGaussian",
    "VariancePrior",
]
