"""The types of covariances: each is one record, and this is the only place to add one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hybridmix._typing import FloatArray
from hybridmix.families import (
    DiagonalGaussian,
    Family,
    FullGaussian,
    Subspace,
    SubspaceGaussian,
    VariancePrior,
)
from hybridmix.families.moments import DiagonalParameters, FullParameters
from hybridmix.families.subspace import SubspaceParameters


@dataclass(frozen=True)
class CovarianceType:
    """What distinguishes a type of covariances from the others.

    Attributes
    ----------
    name : str
        The value of the option ``covariance_type``.
    family : callable
        Returns the family for a prior and a subspace.
    matches : callable
        Returns whether a family is of this type.
    published : callable
        Returns the fitted attributes, from parameters in the units of the table.
    scaling : str
        How columns are scaled; see `Schema`.
    has_correlations : bool
        Whether the covariances have any: the rows that it takes to know them grow with
        the number of columns, and so does the default strength of the prior.
    borrows_correlations : bool
        Whether the prior of a class has the correlations within all classes.
    needs_subspace : bool
        Whether a subspace is fitted first.
    """

    name: str
    family: Callable[[VariancePrior, Subspace | None], Family]
    matches: Callable[[Family], bool]
    published: Callable[[Any], dict[str, FloatArray]]
    scaling: str = "columns"
    has_correlations: bool = True
    borrows_correlations: bool = False
    needs_subspace: bool = False


def _published_spherical(parameters: DiagonalParameters) -> dict[str, FloatArray]:
    return {"covariances_": parameters.variances[:, 0]}


def _published_diagonal(parameters: DiagonalParameters) -> dict[str, FloatArray]:
    return {"covariances_": parameters.variances}


def _published_tied(parameters: FullParameters) -> dict[str, FloatArray]:
    return {"covariances_": parameters.covariances[0]}


def _published_full(parameters: FullParameters) -> dict[str, FloatArray]:
    return {"covariances_": parameters.covariances}


def _published_subspace(parameters: SubspaceParameters) -> dict[str, FloatArray]:
    return {
        "covariances_": parameters.latent.covariances,
        "loading_": parameters.subspace.loading,
        "noise_variances_": parameters.subspace.noise,
    }


def _subspace_family(prior: VariancePrior, subspace: Subspace | None) -> Family:
    assert subspace is not None, "it is fitted first"
    return SubspaceGaussian(prior, subspace)


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    record.name: record
    for record in (
        CovarianceType(
            "spherical",
            lambda prior, _: DiagonalGaussian(prior, spherical=True),
            lambda family: isinstance(family, DiagonalGaussian) and family.spherical,
            _published_spherical,
            # A sphere in standardised columns is not one in the units of the table.
            scaling="common",
            has_correlations=False,
        ),
        CovarianceType(
            "diag",
            lambda prior, _: DiagonalGaussian(prior),
            lambda family: isinstance(family, DiagonalGaussian) and not family.spherical,
            _published_diagonal,
            has_correlations=False,
        ),
        CovarianceType(
            "tied",
            lambda prior, _: FullGaussian(prior, tied=True),
            lambda family: isinstance(family, FullGaussian) and family.tied,
            _published_tied,
        ),
        CovarianceType(
            "full",
            lambda prior, _: FullGaussian(prior),
            lambda family: isinstance(family, FullGaussian) and not family.tied,
            _published_full,
            borrows_correlations=True,
        ),
        CovarianceType(
            "subspace",
            _subspace_family,
            lambda family: isinstance(family, SubspaceGaussian),
            _published_subspace,
            # Principal directions should not have to explain columns that hardly ever
            # vary, such as pixels at the border of an image, next to others of the same
            # unit.
            scaling="comparable",
            borrows_correlations=True,
            needs_subspace=True,
        ),
    )
}


def covariance_type_of(family: Family) -> str | None:
    """Return the type of the covariances of a family; None if it has none."""
    for part in getattr(family, "families", (family,)):
        for record in COVARIANCE_TYPES.values():
            if record.matches(part):
                return record.name
    return None


def prior_strength_of(family: Family) -> float | None:
    """Return the strength of the prior of covariances; None without covariances."""
    for part in getattr(family, "families", (family,)):
        prior = getattr(part, "prior", None)
        if isinstance(prior, VariancePrior):
            return float(prior.strength)
    return None
