"""From options and training rows to a family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from hybridmix._checks import check_number, check_word
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.families import (
    AutoregressiveGaussian,
    Categorical,
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
from hybridmix.models.chains import Chains
from hybridmix.models.mixture import Mixture
from hybridmix.training.covariances import COVARIANCE_TYPES, CovarianceType
from hybridmix.training.moments import within_class_correlations, within_class_variances

NOISES = ("common", "columns")
# A prior of latent variables need not be better than this many rows can make it.
_MOST_ROWS = 10_000
# Of rows that are not in memory, this many numbers show where a subspace is.
_MOST_NUMBERS = 1 << 24

FamilyOf = Callable[[float], Family]
# Models of components of one family.
M = TypeVar("M", Mixture, Chains)


@dataclass(frozen=True)
class Structure:
    """The options that say what components look like; checked when made.

    The attributes are those of `MixtureDensity`.
    """

    covariance_type: str
    n_factors: int | float | str
    noise: str
    covariance_prior: float | str
    variance_floor: float
    smoothing: float

    def __post_init__(self) -> None:
        check_word("covariance_type", self.covariance_type, COVARIANCE_TYPES)
        check_word("noise", self.noise, NOISES)
        prior = self.covariance_prior
        check_number("covariance_prior", prior, 0.0, 1e12, or_word="auto")
        check_number("variance_floor", self.variance_floor, 1e-12, 1.0)
        check_number("smoothing", self.smoothing, 1e-10, 1e12)
        _check_n_factors(self.n_factors)

    @property
    def covariances(self) -> CovarianceType:
        """The type of the covariances."""
        return COVARIANCE_TYPES[self.covariance_type]

    def prior_strength(self, n_columns: int) -> float:
        """Return the strength of the prior, in rows."""
        if not isinstance(self.covariance_prior, str):
            return float(self.covariance_prior)
        return float(n_columns) if self.covariances.has_correlations else 1.0


def _check_n_factors(n_factors: object) -> None:
    if isinstance(n_factors, str) and n_factors == "auto":
        return
    if isinstance(n_factors, Integral) and not isinstance(n_factors, bool):
        is_possible = int(n_factors) >= 1
    else:
        is_possible = isinstance(n_factors, Real) and 0.0 < float(n_factors) < 1.0
    if not is_possible:
        raise ValueError(
            f"n_factors={n_factors!r} is neither a whole number of at least 1 nor a "
            "share of the variance between 0 and 1, nor 'auto'."
        )


def fitted_subspace(
    structure: Structure, schema: Schema, dataset: TrainingRows
) -> Subspace | None:
    """Return the subspace of all rows, labelled or not, if the covariances need one.

    Of rows that are not in memory, a part is taken.
    """
    if not structure.covariances.needs_subspace or not schema.real:
        return None
    dataset = dataset.in_memory(max(_MOST_ROWS, _MOST_NUMBERS // len(schema.real)))
    rows, weights = dataset.rows, dataset.filled_weights
    floor = float(structure.variance_floor)
    if isinstance(structure.n_factors, Integral):
        n_factors = int(structure.n_factors)
        if n_factors > len(schema.real):
            raise ValueError(
                f"n_factors={n_factors} must be at most the number of real columns, "
                f"n_features={len(schema.real)}."
            )
    else:
        wanted = structure.n_factors
        explained = None if isinstance(wanted, str) else float(wanted)
        n_factors = chosen_n_factors(rows, weights, floor, explained)
    equal_noise = structure.noise == "common"
    return principal_subspace(rows, weights, n_factors, floor, equal_noise)


def subspace_of(model: Mixture | Chains) -> Subspace | None:
    """Return the subspace of a model, if it has one."""
    for factor in getattr(model.components, "factors", (model.components,)):
        if isinstance(factor, SubspaceParameters):
            return factor.subspace
    return None


def family_maker(
    structure: Structure,
    schema: Schema,
    dataset: TrainingRows,
    subspace: Subspace | None,
    correlated: bool = False,
) -> FamilyOf:
    """Return the family as a function of the number of components of a class.

    Its prior is what the classes have in common: variances and, if `correlated`,
    correlations.
    """
    categorical: list[Family] = []
    if schema.code_sizes:
        categorical = [Categorical(schema.code_sizes, float(structure.smoothing))]
    if not schema.real:
        return lambda _: categorical[0]
    floor = float(structure.variance_floor)
    unknown: FloatArray | float = 0.0
    if subspace is not None:
        dataset, unknown = _latent_dataset(dataset, subspace)
    variances = within_class_variances(dataset) + unknown
    correlations = None
    if correlated and structure.covariances.borrows_correlations:
        correlations = within_class_correlations(dataset.labelled())
    strength = structure.prior_strength(len(variances))

    def family_of(n_components: float) -> Family:
        # Components that share the spread of a class evenly have this part of it.
        part = n_components ** (-2.0 / len(variances))
        target = np.maximum(variances * part, floor)
        prior = VariancePrior(target, strength, floor, correlations)
        gaussian = structure.covariances.family(prior, subspace)
        return Product((gaussian, *categorical)) if categorical else gaussian

    return family_of


def _latent_dataset(
    dataset: TrainingRows, subspace: Subspace
) -> tuple[Dataset, FloatArray | float]:
    """Return expected latent variables of a part of the rows, in place of the rows.

    The second result are the variances (q,) that they have besides, as rows do not
    determine them completely.
    """
    dataset = dataset.in_memory(_MOST_ROWS)
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


def refining(model: M) -> M:
    """Let gradient methods move the subspace of a model as well."""
    return _with_subspaces(model, RefinedSubspaceGaussian)


def refined(model: M) -> M:
    """Keep the subspace of a model where it is."""
    return _with_subspaces(model, SubspaceGaussian)


def _with_subspaces(model: M, kind: type[SubspaceGaussian]) -> M:
    subspace = subspace_of(model)
    if subspace is None:
        return model

    def changed(part: Family) -> Family:
        if not isinstance(part, SubspaceGaussian):
            return part
        return kind(part.prior, subspace)

    return replace(model, family=_with_factors(model.family, changed))


def autoregressive(family: Family) -> Family:
    """Let the Gaussians of pairs of frames say what follows a frame."""

    def changed(part: Family) -> Family:
        return AutoregressiveGaussian(part) if isinstance(part, FullGaussian) else part

    return _with_factors(family, changed)


def _with_factors(family: Family, changed: Callable[[Family], Family]) -> Family:
    """Return a family whose factors, or itself, are changed."""
    if isinstance(family, Product):
        return Product(tuple(map(changed, family.families)))
    return changed(family)
