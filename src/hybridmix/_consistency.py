"""Whether the parts of a fitted estimator fit together, whoever put them together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix.data import Schema
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.estimators import (
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Product,
    Subspace,
    SubspaceGaussian,
)
from hybridmix.families.subspace import SubspaceParameters
from hybridmix.mixture import Mixture

_LEARNED: dict[type, list[str]] = {
    HybridMixtureClassifier: [
        "classes_",
        "component_classes_",
        "temperature_",
        "uniform_share_",
    ],
    MixtureDensity: [],
    MixtureImputer: ["draw_models_"],
    MixtureOutlierDetector: ["offset_"],
}


def check_estimator(estimator: Any) -> None:
    """Raise ValueError unless the parts of a fitted estimator fit together."""
    check_is_fitted(
        estimator, ["schema_", "model_", "n_features_in_", *_LEARNED[type(estimator)]]
    )
    schema, model = estimator.schema_, estimator.model_
    _require(isinstance(schema, Schema), "schema_ is no schema")
    _check_schema(schema)
    _require(schema.n_columns == estimator.n_features_in_, "n_features_in_ is wrong")
    names = tuple(getattr(estimator, "feature_names_in_", schema.names or ()))
    _require(schema.names in (None, names), "feature_names_in_ is wrong")
    if hasattr(estimator, "fingerprint_"):  # files of version 0.1 have none
        _require(isinstance(estimator.fingerprint_, Fingerprint), "fingerprint_ is wrong")
        estimator.fingerprint_.check()
    n_classes = len(getattr(estimator, "classes_", [0]))
    for mixture in [model, *getattr(estimator, "draw_models_", [])]:
        _require(isinstance(mixture, Mixture), "model_ or draw_models_ is no mixture")
        _check_mixture(mixture, schema, n_classes)
    if isinstance(estimator, HybridMixtureClassifier):
        _require(np.ndim(estimator.classes_) == 1, "classes_ is no list of labels")
        same = np.array_equal(estimator.component_classes_, model.class_of)
        _require(same, "component_classes_ belongs to another mixture")
        temperature, share = estimator.temperature_, estimator.uniform_share_
        positive = isinstance(temperature, float) and temperature > 0.0
        _require(positive, "temperature_ is no positive number")
        _require(isinstance(share, float) and 0.0 <= share < 1.0, "uniform_share_ is odd")
    if isinstance(estimator, MixtureOutlierDetector):
        _require(isinstance(estimator.offset_, float), "offset_ is no number")


def _check_schema(schema: Schema) -> None:
    positions = schema.real + schema.categorical
    _check_whole("columns", (schema.n_columns, *positions))
    in_range = all(0 <= position < schema.n_columns for position in positions)
    _require(in_range and len(positions) > 0, "columns are out of range")
    _require(len(set(positions)) == len(positions), "a column is used twice")
    _check_shape("centre", schema.centre, (len(schema.real),))
    _check_shape("scale", schema.scale, (len(schema.real),))
    _require(len(schema.categories) == len(schema.categorical), "categories are missing")
    for values in schema.categories:
        _require(len(set(values)) == len(values) > 0, "categories are not distinct")
    for names in (schema.names, schema.dtype_names):
        _require(names is None or len(names) == schema.n_columns, "names are missing")


def _check_mixture(model: Mixture, schema: Schema, n_classes: int) -> None:
    _check_whole("offsets", model.offsets)
    _require(len(model.offsets) == n_classes + 1 > 1, "offsets and classes differ")
    increasing = all(a < b for a, b in pairwise(model.offsets))
    _require(increasing and model.offsets[0] == 0, "offsets do not increase from 0")
    _check_shape("log_prior", model.log_prior, (n_classes,))
    _check_shape("log_mixing", model.log_mixing, (model.n_components,))
    families: tuple[Any, ...] = (model.family,)
    factors: tuple[Any, ...] = (model.components,)
    if isinstance(model.family, Product):
        families, factors = model.family.families, model.components.factors
    _require(len(families) == len(factors), "families and parameters differ")
    columns: list[Any] = []
    for family, parameters in zip(families, factors, strict=True):
        columns.append(_columns_of(family))
        _check_parameters(family, parameters, model.n_components)
    wanted: list[Any] = [len(schema.real)] * bool(schema.real)
    wanted += [schema.n_categories] * bool(schema.categorical)
    _require(columns == wanted, "the mixture has other columns than the schema")


def _columns_of(family: Any) -> int | tuple[int, ...]:
    """Return the number of real columns, or the numbers of categories."""
    if isinstance(family, Categorical):
        return family.n_categories
    gaussians = DiagonalGaussian | FullGaussian | SubspaceGaussian
    _require(isinstance(family, gaussians), "a family is unknown")
    size = family.n_columns
    if isinstance(family, SubspaceGaussian):
        _check_subspace(family.subspace, (family.n_columns, family.n_factors))
        size = family.n_factors
    _check_shape("the prior", family.prior.variances, (size,))
    if family.prior.correlations is not None:
        _check_shape("the prior", family.prior.correlations, (size, size))
    return family.n_columns


def _check_parameters(family: Any, parameters: Any, n_components: int) -> None:
    """Refuse parameters whose arrays have not the shapes that the family asks for."""
    if isinstance(family, SubspaceGaussian):
        _require(isinstance(parameters, SubspaceParameters), "a subspace is missing")
        _check_subspace(parameters.subspace, (family.n_columns, family.n_factors))
        for name in ("centre", "loading", "noise"):
            mine, theirs = (getattr(x.subspace, name) for x in (family, parameters))
            _require(np.array_equal(mine, theirs), "the subspaces differ")
        family, parameters = family.latent, parameters.latent
    for name, shape in _shapes_of(family, n_components).items():
        _check_shape(name, getattr(parameters, name), shape)


def _check_subspace(subspace: Any, shape: tuple[int, int]) -> None:
    _require(isinstance(subspace, Subspace), "a subspace is missing")
    _check_shape("centre", subspace.centre, shape[:1])
    _check_shape("loading", subspace.loading, shape)
    _check_shape("noise", subspace.noise, shape[:1])


def _shapes_of(family: Any, n_components: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters of a family."""
    if isinstance(family, Categorical):
        return {"log_probabilities": (n_components, sum(family.n_categories))}
    means = (n_components, family.n_columns)
    if isinstance(family, DiagonalGaussian):
        return {"means": means, "variances": means}
    matrices = (1 if family.tied else n_components, family.n_columns, family.n_columns)
    return {"means": means, "covariances": matrices, "whiteners": matrices}


def _check_whole(name: str, numbers: tuple[int, ...]) -> None:
    _require(all(type(n) is int for n in numbers), f"{name} are not whole numbers")


def _check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    fits = isinstance(array, np.ndarray) and array.dtype == np.float64
    _require(fits and array.shape == shape, f"{name} has not the shape {shape}")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(f"The parts of the model do not fit together: {problem}.")
