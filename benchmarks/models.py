"""Mixtures and data sets of the library, built by hand from given parameters."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from common import Blobs

from hybridmix import MixtureDensity
from hybridmix.data.rows import Dataset, Rows
from hybridmix.families import DiagonalGaussian, FullGaussian, VariancePrior
from hybridmix.families.moments import DiagonalParameters, FullParameters
from hybridmix.models import Mixture


def rows_of(X: np.ndarray) -> Rows:
    """Return the rows of an array whose columns have mean 0 and variance 1 already."""
    hole = np.isnan(X)
    return Rows(
        np.where(hole, 0.0, X).T.copy(),
        ~hole.T.copy() if hole.any() else None,
        np.empty((0, len(X)), np.int32),
    )


def dataset_of(X: np.ndarray, labels: np.ndarray | None = None) -> Dataset:
    """Arrange rows for training; without labels they are all of class 0."""
    if labels is None:
        labels = np.zeros(len(X), np.intp)
    return Dataset.arrange(rows_of(X), labels)


def class_mixtures(d: int, n_classes: int, n_components: int, seed: int) -> Mixture:
    """Return a diagonal mixture for each class, with components all over the place."""
    generator = np.random.default_rng([seed, 2])
    total = n_classes * n_components
    means = generator.normal(scale=0.3, size=(total, d))
    variances = generator.uniform(0.7, 1.3, size=(total, d))
    return Mixture(
        DiagonalGaussian(VariancePrior(np.ones(d))),
        DiagonalParameters(means, variances),
        np.full(total, -np.log(n_components)),
        np.full(n_classes, -np.log(n_classes)),
        tuple(range(0, total + 1, n_components)),
    )


def mixture_of(data: Blobs, covariance_type: str) -> Mixture:
    """Return the start that comes with the data as a mixture of one class."""
    k, d = data.means.shape
    prior = VariancePrior(np.ones(d))
    family: Any
    parameters: Any
    if covariance_type in ("diag", "spherical"):
        family = DiagonalGaussian(prior, covariance_type == "spherical")
        variances = np.diagonal(data.covariances, axis1=1, axis2=2).copy()
        parameters = DiagonalParameters(data.means, variances)
    else:
        family = FullGaussian(prior, covariance_type == "tied")
        tied = covariance_type == "tied"
        covariances = data.covariances[:1] if tied else data.covariances
        parameters = FullParameters.of(data.means, covariances)
    return Mixture(family, parameters, np.log(data.weights), np.zeros(1), (0, k))


def started_density(data: Blobs, covariance_type: str, **options: Any) -> MixtureDensity:
    """Return an estimator whose EM begins with exactly the given parameters."""
    k = len(data.means)
    seed = MixtureDensity(
        k,
        covariance_type=covariance_type,
        max_iter=1,
        init=data.means,
        n_jobs=1,
        covariance_prior=1.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed.fit(data.X[: max(1000, 2 * k)])
    schema = seed.schema_
    mixture = mixture_of(data, covariance_type)
    scaled = mixture.components.affine(1.0 / schema.scale, -schema.centre / schema.scale)
    seed.model_ = replace(mixture, components=scaled)
    return MixtureDensity(k, covariance_type=covariance_type, init=seed, **options)


def scikit_precisions(data: Blobs, covariance_type: str) -> np.ndarray:
    """Return the precisions of the start in the shape that scikit-learn wants."""
    variances = np.diagonal(data.covariances, axis1=1, axis2=2)
    if covariance_type == "spherical":
        return 1.0 / variances[:, 0]
    if covariance_type == "diag":
        return 1.0 / variances
    precisions = np.linalg.inv(data.covariances)
    return precisions[0] if covariance_type == "tied" else precisions
