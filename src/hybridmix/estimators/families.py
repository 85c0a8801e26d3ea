"""From the options of an estimator and its training rows to a family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema
from hybridmix.estimators.training import (
    within_class_correlations,
    within_class_variances,
)
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    Family,
    FullGaussian,
    Product,
    RefinedSubspaceGaussian,
    Subspace,
    SubspaceGaussian,
    VariancePrior,
)
from hybridmix.families.subspace import (
    SubspaceParameters,
    chosen_n_factors,
    principal_subspace,
)
from hybridmix.mixture import Mixture

NOISES = ("common", "columns")
COVARIANCE_TYPES = ("spherical", "diag", "tied", "full", "subspace")
# Columns need a common scale for a sphere to be one in the units of the table. Principal
# directions should not have to explain columns that hardly ever vary, such as pixels at
# the border of an image, beside others of the same unit.
SCALINGS = {"spherical": "common", "subspace": "comparable"}
# A prior of latent variables need not be better than so many rows can tell.
_MOST_ROWS = 10_000

FamilyOf = Callable[[float], Family[Any, Any]]


def check_n_factors(n_factors: Any, n_columns: int) -> None:
    """Refuse a number of factors that is none, or more than there are columns."""
    if isinstance(n_factors, str) and n_factors == "auto":
        return
    is_number = isinstance(n_factors, Real) and not isinstance(n_factors, bool)
    if isinstance(n_factors, Integral) and is_number:
        if not 1 <= int(n_factors) <= n_columns:
            raise ValueError(
                f"n_factors={n_factors} must be at least 1 and at most the number of "
                f"real columns, {n_columns}."
            )
    elif not (is_number and 0.0 < float(n_factors) < 1.0):
        raise ValueError(
            f"n_factors={n_factors!r} is neither a whole number nor a share of the "
            "variance between 0 and 1, nor 'auto'."
        )


def fitted_subspace(estimator: Any, schema: Schema, dataset: Dataset) -> Subspace | None:
    """Return the subspace of all rows, labelled or not, if the covariances need one."""
    if estimator.covariance_type != "subspace" or not schema.real:
        return None
    n_factors = estimator.n_factors
    check_n_factors(n_factors, len(schema.real))
    rows, weights = dataset.rows, dataset.filled_weights
    floor = float(estimator.variance_floor)
    if not isinstance(n_factors, Integral):
        explained = None if isinstance(n_factors, str) else float(n_factors)
        n_factors = chosen_n_factors(rows, weights, floor, explained)
    equal_noise = estimator.noise == "common"
    return principal_subspace(rows, weights, int(n_factors), floor, equal_noise)


def subspace_of(model: Mixture) -> Subspace | None:
    """Return the subspace of a mixture, if it has one."""
    for factor in getattr(model.components, "factors", (model.components,)):
        if hasattr(factor, "subspace"):
            return factor.subspace
    return None


def family_maker(
    estimator: Any,
    schema: Schema,
    dataset: Dataset,
    subspace: Subspace | None,
    correlated: bool = False,
) -> FamilyOf:
    """Return the family as a function of the number of components of a class.

    Its prior is what the classes have in common: variances and, if `correlated`,
    correlations.
    """
    categorical: list[Family[Any, Any]] = []
    if schema.categorical:
        categorical = [Categorical(schema.n_categories, float(estimator.smoothing))]
    if not schema.real:
        return lambda _: categorical[0]
    covariance_type = estimator.covariance_type
    floor = float(estimator.variance_floor)
    unknown: FloatArray | float = 0.0
    if subspace is not None:
        dataset, unknown = _latent_dataset(dataset, subspace)
    variances = within_class_variances(dataset) + unknown
    correlations = None
    if correlated and covariance_type in ("full", "subspace"):
        correlations = within_class_correlations(dataset.labelled())
    strength = _prior_strength(estimator, len(variances))

    def family_of(n_components: float) -> Family[Any, Any]:
        # Components that share the spread of a class evenly have this part of it.
        part = n_components ** (-2.0 / len(variances))
        target = np.maximum(variances * part, floor)
        prior = VariancePrior(target, strength, floor, correlations)
        gaussian: Family[Any, Any]
        if subspace is not None:
            gaussian = SubspaceGaussian(prior, subspace)
        elif covariance_type in ("spherical", "diag"):
            gaussian = DiagonalGaussian(prior, covariance_type == "spherical")
        else:
            gaussian = FullGaussian(prior, covariance_type == "tied")
        return Product((gaussian, *categorical)) if categorical else gaussian

    return family_of


def _prior_strength(estimator: Any, n_columns: int) -> float:
    if estimator.covariance_prior != "auto":
        return float(estimator.covariance_prior)
    # The rows that it takes to know a covariance grow with the columns; those for a
    # variance do not.
    return 1.0 if estimator.covariance_type in ("spherical", "diag") else float(n_columns)


def _latent_dataset(
    dataset: Dataset, subspace: Subspace
) -> tuple[Dataset, FloatArray | float]:
    """Return expected latent variables of a part of the rows, in place of the rows.

    The second result are the variances (q,) that they have beside, as rows do not tell
    all of them.
    """
    numbers = np.arange(dataset.n_rows)
    parts = np.split(numbers, [dataset.unlabelled().n_rows])
    thinned = dataset.take(
        np.concatenate([part[:: -(-len(part) // _MOST_ROWS) or 1] for part in parts])
    )
    standard = SubspaceParameters.standard(subspace)
    family = SubspaceGaussian(VariancePrior(np.ones(subspace.n_factors)), subspace)
    latent = family.embed(thinned.rows)
    moments = family.summarise(thinned.rows, standard, thinned.filled_weights[None])
    squares = np.square(latent.real) @ thinned.filled_weights
    unknown = (np.diagonal(moments.second[0]) - squares) / thinned.total_weight
    return replace(thinned, rows=latent), np.maximum(unknown, 0.0)


def refining(model: Mixture) -> Mixture:
    """Let gradient methods move the subspace of a mixture, too."""
    return _with_subspaces(model, RefinedSubspaceGaussian)


def refined(model: Mixture) -> Mixture:
    """Keep the subspace of a mixture where it is."""
    return _with_subspaces(model, SubspaceGaussian)


def _with_subspaces(model: Mixture, kind: type[SubspaceGaussian]) -> Mixture:
    family, subspace = model.family, subspace_of(model)
    if subspace is None:
        return model

    def changed(part: Family[Any, Any]) -> Family[Any, Any]:
        if not isinstance(part, SubspaceGaussian):
            return part
        return kind(part.prior, subspace)

    if isinstance(family, Product):
        return replace(model, family=Product(tuple(map(changed, family.families))))
    return replace(model, family=changed(family))
