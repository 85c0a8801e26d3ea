"""A density of your own in six methods: Poisson components for columns of counts.

docs/adding_a_family.md explains the file, and adds gradients, samples and the rest.
"""

# ruff: noqa: D102 (the methods are documented in the base class)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from hybridmix._parallel import Workers
from hybridmix.data import Dataset, Rows
from hybridmix.families import Family
from hybridmix.families.base import Parameters, Statistics
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import ExpectationMaximisation, Solution
from hybridmix.training.starts import start_mixture


@dataclass(frozen=True, eq=False)
class PoissonParameters(Parameters):
    """Rates (J, d): every array has the components first."""

    rates: np.ndarray


@dataclass
class PoissonStatistics(Statistics):
    """Weighted numbers of observed values and their weighted sums, both (J, d)."""

    counts: np.ndarray
    first: np.ndarray


@dataclass(frozen=True)
class Poisson(Family[PoissonParameters, PoissonStatistics]):
    """Independent columns of counts; the prior is one row with the rates `typical`."""

    typical: np.ndarray

    def width(self, n_components: int, observed: np.ndarray | None = None) -> int:
        return max(n_components, 2 * len(self.typical) + 1)

    def prepare(self, rows: Rows) -> np.ndarray:
        # Missing values are 0 in `rows.real`, and log 0! is 0.
        log_factorials = gammaln(rows.real + 1.0).sum(axis=0, keepdims=True)
        mask = np.ones(rows.real.shape) if rows.observed is None else rows.observed
        return np.concatenate([rows.real, mask, log_factorials])

    def evaluate(
        self, prepared: np.ndarray, parameters: PoissonParameters
    ) -> tuple[np.ndarray, None]:
        rates = parameters.rates
        coefficients = np.hstack([np.log(rates), -rates, np.full((len(rates), 1), -1.0)])
        return coefficients @ prepared, None

    def accumulate(
        self,
        prepared: np.ndarray,
        parameters: PoissonParameters,
        weights: np.ndarray,
        notes: None,
    ) -> PoissonStatistics:
        sums, d = weights @ prepared.T, len(self.typical)
        return PoissonStatistics(counts=sums[:, d : 2 * d], first=sums[:, :d])

    def zero_statistics(self, n_components: int) -> PoissonStatistics:
        shape = (n_components, len(self.typical))
        return PoissonStatistics(np.zeros(shape), np.zeros(shape))

    def maximise(self, statistics: PoissonStatistics) -> PoissonParameters:
        rates = (statistics.first + self.typical) / (statistics.counts + 1.0)
        return PoissonParameters(rates)

    def log_prior(self, parameters: PoissonParameters) -> float:
        rates = parameters.rates
        return float(np.sum(self.typical * np.log(rates) - rates))


def fit(family: Family[Any, Any], rows: Rows, n_components: int) -> Solution:
    """Fit a mixture by EM."""
    dataset = Dataset(rows, np.zeros(rows.n_rows, dtype=np.intp), None)
    generator = np.random.default_rng(0)
    start = start_mixture(dataset, family, n_components, "kmeans", generator)
    problem = Problem(dataset, Likelihood(), start, Workers(1))
    return ExpectationMaximisation(tol=1e-7).solve(problem, start, generator=generator)


def make_rows(rates: np.ndarray, n_rows: int) -> Rows:
    """Draw rows from equally frequent components; a quarter of the cells is missing."""
    generator = np.random.default_rng(0)
    component = generator.integers(len(rates), size=n_rows)
    counts = generator.poisson(rates[component]).T.astype(float)
    observed = generator.random(counts.shape) > 0.25
    no_codes = np.empty((0, n_rows), np.int32)
    return Rows(np.where(observed, counts, 0.0), observed, no_codes)


if __name__ == "__main__":
    true = np.array([[2.0, 9.0, 0.5, 30.0], [6.0, 3.0, 4.0, 20.0]])
    model = fit(Poisson(np.array([4.0, 6.0, 2.0, 25.0])), make_rows(true, 4000), 2).model
    print("true rates:  ", true.tolist())
    print("fitted rates:", model.components.rates.round(2).tolist())
