"""Where the recorded problems meet the inner parts of the library.

This is the only module of the recorded problems that uses more than the public
estimators. When the inner interface changes, change this file and nothing else.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np

from hybridmix._parallel import Workers
from hybridmix.data import Dataset, Rows
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Product,
    RefinedSubspaceGaussian,
    Subspace,
    SubspaceGaussian,
    VariancePrior,
)
from hybridmix.families.categorical import CategoricalParameters
from hybridmix.families.moments import DiagonalParameters, FullParameters
from hybridmix.families.product import ProductParameters
from hybridmix.families.subspace import SubspaceParameters
from hybridmix.models import Mixture
from hybridmix.models.coordinates import MixtureCoordinates
from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    ScaledMargin,
)
from hybridmix.problem import Problem
from hybridmix.training.classes import Estimation


@dataclass(frozen=True)
class Parameters:
    """Numbers that every family takes its own parameters from; the first axis is J."""

    means: np.ndarray
    covariances: np.ndarray
    prior_variances: np.ndarray
    prior_correlations: np.ndarray
    centre: np.ndarray
    loading: np.ndarray
    noise: np.ndarray
    latent_means: np.ndarray
    latent_covariances: np.ndarray
    probabilities: tuple[np.ndarray, ...]
    mixing: np.ndarray
    class_prior: np.ndarray
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class Cells:
    """Rows of a table: real (d, n) with NaN where missing, codes (f, n) with -1."""

    real: np.ndarray
    codes: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None

    def rows(self):
        observed = ~np.isnan(self.real)
        return Rows(
            np.where(observed, self.real, 0.0),
            None if observed.all() else observed,
            self.codes,
        )


def _gaussian(name, numbers):
    prior = VariancePrior(numbers.prior_variances, 0.7)
    variances = np.diagonal(numbers.covariances, axis1=1, axis2=2)
    if name == "diag":
        return DiagonalGaussian(prior), DiagonalParameters(numbers.means, variances)
    if name == "spherical":
        same = np.repeat(variances[:, :1], variances.shape[1], axis=1)
        family = DiagonalGaussian(prior, spherical=True)
        return family, DiagonalParameters(numbers.means, same)
    if name == "tied":
        tied = FullParameters.of(numbers.means, numbers.covariances[:1])
        return FullGaussian(prior, tied=True), tied
    correlated = VariancePrior(
        numbers.prior_variances, 0.7, correlations=numbers.prior_correlations
    )
    return FullGaussian(correlated), FullParameters.of(numbers.means, numbers.covariances)


def _subspace(name, numbers):
    subspace = Subspace(numbers.centre, numbers.loading, numbers.noise)
    latent = FullParameters.of(numbers.latent_means, numbers.latent_covariances)
    kind = SubspaceGaussian if name == "subspace" else RefinedSubspaceGaussian
    prior = VariancePrior(np.ones(subspace.n_factors), 0.7)
    return kind(prior, subspace), SubspaceParameters(latent, subspace)


def _categorical(numbers):
    family = Categorical(tuple(p.shape[1] for p in numbers.probabilities), 0.8)
    return family, CategoricalParameters(np.log(np.hstack(numbers.probabilities)))


def _family(name, numbers):
    if " x " in name:
        parts = [_family(part, numbers) for part in name.split(" x ")]
        families, parameters = zip(*parts, strict=True)
        return Product(families), ProductParameters(parameters)
    if name == "categorical":
        return _categorical(numbers)
    if name.endswith("subspace"):
        return _subspace(name, numbers)
    return _gaussian(name, numbers)


def _objective(name):
    term = {
        "log": ConditionalLikelihood(),
        "hinge": Margin(margin=2.0, width=1.0),
        "ramp": Margin(margin=2.0, width=1.0, largest_loss=4.0),
        "scaled": ScaledMargin(power=0.35),
    }
    if name == "likelihood":
        return Likelihood(0.5)
    if name == "conditional":
        return term["log"]
    if name == "margin":
        return term["hinge"]
    return Blend(Likelihood(0.5), term[name.removeprefix("hybrid ")], 3.0)


def model_of(name, numbers):
    """Return a mixture of the named family."""
    family, components = _family(name, numbers)
    return Mixture(
        family,
        components,
        np.log(numbers.mixing),
        np.log(numbers.class_prior),
        numbers.offsets,
    )


def looked_at(name, numbers, cells, objective, counts, vector_of):
    """Return what a problem says at the start of the coordinates, and elsewhere.

    Parameters
    ----------
    name : str
        Of the family.
    numbers : Parameters
        Of the start.
    cells : Cells
        The rows.
    objective : str
        Name of the objective.
    counts : ndarray of shape (J,)
        Rows per component, which the coordinates are scaled by.
    vector_of : callable
        Returns a vector of the given length.
    """
    start = model_of(name, numbers)
    dataset = Dataset.arrange(cells.rows(), cells.labels, cells.weights)
    problem = Problem(dataset, _objective(objective), start, Workers(1))
    coordinates = MixtureCoordinates(start, counts, objective != "conditional")
    found = {}
    vectors = {"start": np.zeros(coordinates.size), "away": vector_of(coordinates.size)}
    for place, vector in vectors.items():
        point = coordinates.at(vector)
        model = point.model
        assessment = problem.assess(model)
        statistics = assessment.statistics
        found[f"{place} parts"] = assessment.parts
        found[f"{place} wrong"] = np.array([assessment.wrong])
        found[f"{place} counts"] = statistics.counts
        found[f"{place} positive"] = statistics.positive
        found[f"{place} prior"] = np.array([model.log_prior_density()])
        found[f"{place} gradient"] = point.gradient(statistics)
        found[f"{place} prior gradient"] = point.prior_gradient()
    return found


@contextmanager
def plain_em():
    """Let estimators train by plain EM, as version 0.1 did.

    Accelerated EM ends elsewhere within the tolerance, which is far more than the digits
    that were recorded.
    """
    accelerated = Estimation.solver

    def solver(*args, **kwargs):
        return replace(accelerated(*args, **kwargs), accelerate=False)

    with patch.object(Estimation, "solver", solver):
        yield
