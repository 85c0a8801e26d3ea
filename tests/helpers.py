"""Models and tables that several test modules use."""

import numpy as np

from hybridmix import HybridMixtureClassifier, MixtureRegressor
from hybridmix._parallel import Workers
from hybridmix.data import Dataset, Rows
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Product,
    RefinedSubspaceGaussian,
    SubspaceGaussian,
    VariancePrior,
)
from hybridmix.families.subspace import principal_subspace
from hybridmix.models import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import ExpectationMaximisation
from hybridmix.training.starts import start_mixture

D, N_CATEGORIES, N_FACTORS = 5, (3, 2), 2
# One Gaussian for each class: nothing is chosen.
PLAIN = {
    "covariance_type": "full",
    "n_components": 1,
    "tradeoff": 10.0,
    "column_shapes": "plain",
}


def plain_classifier(*objective, **options):
    """Return a classifier that chooses nothing by itself, except for what is given."""
    return HybridMixtureClassifier(*objective, **{**PLAIN, **options})


def plain_regressor(**options):
    """Return a regressor that chooses nothing by itself, except for what is given."""
    plain = {
        "n_components": 1,
        "covariance_type": "full",
        "covariance_prior": 0.0,
        "tradeoff": 0.0,
        "column_shapes": "plain",
        "target_shapes": "plain",
        "random_state": 0,
    }
    return MixtureRegressor(**{**plain, **options})


def families(strength=0.7):
    """All kinds of families over five real and two categorical columns."""
    variances = np.linspace(0.5, 1.5, D)
    prior = VariancePrior(variances, strength)
    correlated = VariancePrior(variances, strength, correlations=0.7 * np.eye(D) + 0.3)
    categorical = Categorical(N_CATEGORIES, 0.8)
    subspace = principal_subspace(make_rows(500), np.ones(500), N_FACTORS, 1e-2)
    latent_prior = VariancePrior(
        np.ones(N_FACTORS), strength, correlations=np.array([[1.0, -0.4], [-0.4, 1.0]])
    )
    full, tied = FullGaussian(correlated), FullGaussian(prior, tied=True)
    return {
        "spherical": DiagonalGaussian(prior, spherical=True),
        "diag": DiagonalGaussian(prior),
        "tied": tied,
        "full": full,
        "subspace": SubspaceGaussian(latent_prior, subspace),
        "refined subspace": RefinedSubspaceGaussian(latent_prior, subspace),
        "categorical": categorical,
        "full x categorical": Product((full, categorical)),
        "diag x categorical": Product((DiagonalGaussian(prior), categorical)),
        "subspace x categorical": Product(
            (SubspaceGaussian(latent_prior, subspace), categorical)
        ),
    }


def make_rows(n_rows, missing=0.0, n_patterns=None, seed=0):
    """Correlated rows in two groups; holes by cell, or by a few repeated patterns."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n_rows)
    factor = np.tril(rng.normal(size=(D, D)), -1) * 0.4 + np.eye(D)
    real = factor @ rng.normal(size=(D, n_rows)) + 2.0 * group
    codes = np.stack(
        [np.minimum(rng.integers(k, size=n_rows) + group, k - 1) for k in N_CATEGORIES]
    ).astype(np.int32)
    observed = None
    if missing:
        observed = rng.random((D, n_rows)) >= missing
        codes[rng.random(codes.shape) < missing] = -1
        if n_patterns:
            observed = observed[:, rng.integers(n_patterns, size=n_rows)]
        real = np.where(observed, real, 0.0)
    return Rows(real, observed, codes)


def make_dataset(rows, labels=None, weights=None):
    labels = np.zeros(rows.n_rows, dtype=int) if labels is None else labels
    return Dataset.arrange(rows, labels, weights)


def make_mixture(family, rows, sizes=(2, 3), seed=0):
    """A mixture with random, overlapping components."""
    rng = np.random.default_rng(seed)
    n_components = sum(sizes)
    memberships = rng.dirichlet(np.full(n_components, 0.4), size=rows.n_rows).T
    log_mixing = np.concatenate([np.log(rng.dirichlet(np.full(k, 5.0))) for k in sizes])
    log_class_prior = np.log(rng.dirichlet(np.full(len(sizes), 5.0)))
    offsets = tuple(np.concatenate([[0], np.cumsum(sizes)]).tolist())
    components = family.start(rows, memberships)
    return Mixture(family, components, log_mixing, log_class_prior, offsets)


def with_nan(rows):
    """The real columns of rows as (n, d) with NaN where missing."""
    real = rows.real.copy()
    if rows.observed is not None:
        real[~rows.observed] = np.nan
    return real.T


def make_problem(name, missing=0.0, n_patterns=None, n_rows=500, weighted=True):
    """Rows of two classes, some of them unlabelled, with a mixture near them."""
    model = make_mixture(families()[name], make_rows(n_rows, missing, n_patterns))
    dataset = partly_labelled(missing, n_patterns, n_rows, weighted)
    return Problem(dataset, Likelihood(0.5), model, Workers(1)), model


def partly_labelled(missing=0.0, n_patterns=None, n_rows=500, weighted=True):
    """Rows of two classes, some of them unlabelled."""
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 2, size=n_rows)
    weights = rng.random(n_rows) + 0.5 if weighted else None
    return make_dataset(make_rows(n_rows, missing, n_patterns), labels, weights)


def fitted_by_em(family, rows, n_components):
    """The solution of EM for a mixture of one class."""
    dataset, generator = make_dataset(rows), np.random.default_rng(0)
    start = start_mixture(dataset, family, n_components, "kmeans", generator)
    problem = Problem(dataset, Likelihood(), start, Workers(1))
    return ExpectationMaximisation(tol=1e-9).solve(problem, start, generator=generator)
