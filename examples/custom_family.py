"""A family of one's own: Poisson components for columns of counts.

The first part is the family, method by method, as docs/adding_a_family.md explains it.
The second part checks it: the gradient by finite differences, with holes and with weights
of both signs, and the M-step against its neighbourhood. The third part fits mixtures by
EM, chooses their number of components, fills a hole, and joins the family with another.
"""

# ruff: noqa: D102 (the methods are documented in the base class)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln

from hybridmix._parallel import Workers
from hybridmix.data import Dataset, Rows
from hybridmix.families import Categorical, Coordinates, Family, Product
from hybridmix.families.base import Parameters, Statistics
from hybridmix.models import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import ExpectationMaximisation, start_mixture

# A rate of zero would make any other count impossible.
LOWEST_RATE = 1e-10


@dataclass(frozen=True, eq=False)
class PoissonParameters(Parameters):
    """Log rates (J, d): every array has the components first."""

    log_rates: np.ndarray


@dataclass
class PoissonStatistics(Statistics):
    """Weighted numbers of observed values and their weighted sums, both (J, d)."""

    counts: np.ndarray
    first: np.ndarray


@dataclass(frozen=True)
class PoissonRows:
    """Prepared rows: values above mask, (2 d, n), and the sum of log x!, (n,)."""

    features: np.ndarray
    log_factorials: np.ndarray


@dataclass(frozen=True)
class Poisson(Family[PoissonParameters, PoissonStatistics]):
    r"""Independent columns of counts.

    .. math:: \log p_j(x) = \sum_{i \in \text{observed}}
              \big[ x_i \log\lambda_{ji} - \lambda_{ji} - \log x_i! \big]

    Parameters
    ----------
    target : ndarray of shape (d,)
        Rates that the prior pulls to.
    strength : float
        Rows that the prior counts like.
    """

    target: np.ndarray
    strength: float = 1.0

    # Evaluation and statistics --------------------------------------------------------

    def width(self, n_components: int, observed: np.ndarray | None = None) -> int:
        return max(n_components, 2 * len(self.target))

    def prepare(self, rows: Rows) -> PoissonRows:
        mask = np.ones(rows.real.shape) if rows.observed is None else rows.observed
        # Missing values are 0 in `rows.real`, and log 0! is 0.
        log_factorials = gammaln(rows.real + 1.0).sum(axis=0)
        return PoissonRows(np.concatenate([rows.real, mask]), log_factorials)

    def evaluate(
        self, prepared: PoissonRows, parameters: PoissonParameters
    ) -> tuple[np.ndarray, None]:
        natural = np.hstack([parameters.log_rates, -np.exp(parameters.log_rates)])
        return natural @ prepared.features - prepared.log_factorials, None

    def accumulate(
        self,
        prepared: PoissonRows,
        parameters: PoissonParameters,
        weights: np.ndarray,
        notes: None,
    ) -> PoissonStatistics:
        sums = np.dot(weights, prepared.features.T)
        d = len(self.target)
        return PoissonStatistics(counts=sums[:, d:], first=sums[:, :d])

    def zero_statistics(self, n_components: int) -> PoissonStatistics:
        shape = (n_components, len(self.target))
        return PoissonStatistics(np.zeros(shape), np.zeros(shape))

    # Estimation -----------------------------------------------------------------------

    def maximise(self, statistics: PoissonStatistics) -> PoissonParameters:
        counts = np.maximum(statistics.counts, 0.0) + self.strength
        sums = np.maximum(statistics.first, 0.0) + self.strength * self.target
        rates = np.divide(sums, counts, out=self.target + 0.0 * sums, where=counts > 0)
        return PoissonParameters(np.log(np.maximum(rates, LOWEST_RATE)))

    def expected_statistics(
        self, parameters: PoissonParameters, counts: np.ndarray
    ) -> PoissonStatistics:
        rates = np.exp(parameters.log_rates)
        filled = np.repeat(counts[:, None], rates.shape[1], axis=1)
        return PoissonStatistics(filled, filled * rates)

    def proper(self, statistics: PoissonStatistics) -> np.ndarray:
        return np.all((statistics.counts > 0) & (statistics.first > 0), axis=1)

    def start(self, rows: Rows, weights: np.ndarray) -> PoissonParameters:
        # The statistics do not depend on parameters, so that none are needed here.
        ignored = PoissonParameters(np.zeros((len(weights), len(self.target))))
        return self.maximise(self.accumulate(self.prepare(rows), ignored, weights, None))

    def log_prior(self, parameters: PoissonParameters) -> float:
        log_rates = parameters.log_rates
        return self.strength * float(np.sum(self.target * log_rates - np.exp(log_rates)))

    def collapsed(self, parameters: PoissonParameters) -> np.ndarray:
        # A probability is at most one: there is no point to shrink to.
        return np.zeros(len(parameters.log_rates), dtype=bool)

    def coordinates(
        self, start: PoissonParameters, counts: np.ndarray
    ) -> PoissonCoordinates:
        return PoissonCoordinates(self, start, counts)

    def n_parameters(self, n_components: int) -> int:
        return n_components * len(self.target)

    # Filling and drawing --------------------------------------------------------------

    def impute(
        self, rows: Rows, parameters: PoissonParameters, posterior: np.ndarray
    ) -> Rows:
        if rows.observed is None:
            return rows
        mean = np.exp(parameters.log_rates).T @ posterior
        return Rows(np.where(rows.observed, rows.real, mean), None, rows.codes)

    def draw(
        self,
        rows: Rows,
        parameters: PoissonParameters,
        components: np.ndarray,
        generator: np.random.Generator,
    ) -> Rows:
        if rows.observed is None:
            return rows
        drawn = self.sample(parameters, components, generator).real
        return Rows(np.where(rows.observed, rows.real, drawn), None, rows.codes)

    def sample(
        self,
        parameters: PoissonParameters,
        components: np.ndarray,
        generator: np.random.Generator,
    ) -> Rows:
        drawn = generator.poisson(np.exp(parameters.log_rates[components]))
        no_codes = np.empty((0, len(components)), np.int32)
        return Rows(drawn.T.astype(float), None, no_codes)

    # Columns and components -----------------------------------------------------------

    def reads(self, real: list[int], codes: list[int]) -> bool:
        return bool(real)

    def restrict(
        self, parameters: PoissonParameters, real: list[int], codes: list[int]
    ) -> tuple[Poisson, PoissonParameters]:
        kept = PoissonParameters(parameters.log_rates[:, real])
        return Poisson(self.target[real], self.strength), kept

    def concatenate(
        self, parts: list[PoissonParameters], counts: list[float]
    ) -> PoissonParameters:
        return PoissonParameters(np.concatenate([part.log_rates for part in parts]))

    def surprise(
        self, prepared: PoissonRows, parameters: PoissonParameters, notes: None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rates = np.exp(parameters.log_rates)
        most = int(np.max(rates + 12.0 * np.sqrt(rates))) + 30
        values = np.arange(most)[:, None, None]
        logs = stats.poisson.logpmf(values, rates)
        mean = np.sum(-np.exp(logs) * logs, axis=0)
        variance = np.sum(np.exp(logs) * logs**2, axis=0) - mean**2
        mask = prepared.features[len(self.target) :]
        return np.zeros((len(rates), mask.shape[1])), mean @ mask, variance @ mask


class PoissonCoordinates(Coordinates[PoissonParameters, PoissonStatistics]):
    r"""Log rates relative to the start, times the root of their information.

    A log rate has the information :math:`n \lambda` when the component has ``n`` rows.
    """

    def __init__(
        self, family: Poisson, start: PoissonParameters, counts: np.ndarray
    ) -> None:
        self._family = family
        self._start = start.log_rates
        information = np.maximum(counts, 1.0)[:, None] * np.exp(self._start)
        self._step = 1.0 / np.sqrt(np.maximum(information, 1.0))
        self.size = self._start.size

    def parameters(self, vector: np.ndarray) -> PoissonParameters:
        return PoissonParameters(
            self._start + vector.reshape(self._step.shape) * self._step
        )

    def gradient(self, vector: np.ndarray, statistics: PoissonStatistics) -> np.ndarray:
        rates = np.exp(self.parameters(vector).log_rates)
        return ((statistics.first - statistics.counts * rates) * self._step).ravel()

    def prior_gradient(self, vector: np.ndarray) -> np.ndarray:
        rates = np.exp(self.parameters(vector).log_rates)
        slope = self._family.strength * (self._family.target - rates)
        return (slope * self._step).ravel()


# Checks -------------------------------------------------------------------------------


def make_rows(generator: np.random.Generator, rates: np.ndarray, n_rows: int) -> Rows:
    """Draw rows from equally frequent components; a quarter of the cells is missing."""
    component = generator.integers(len(rates), size=n_rows)
    counts = generator.poisson(rates[component]).T.astype(float)
    observed = generator.random(counts.shape) > 0.25
    no_codes = np.empty((0, n_rows), np.int32)
    return Rows(np.where(observed, counts, 0.0), observed, no_codes)


def largest_gradient_error(family: Poisson, rows: Rows) -> float:
    """Compare the gradient of ``sum r log p + log prior`` with finite differences."""
    generator = np.random.default_rng(1)
    prepared = family.prepare(rows)
    start = family.start(rows, generator.random((3, rows.n_rows)))
    coordinates = family.coordinates(start, np.array([20.0, 30.0, 40.0]))
    weights = generator.normal(size=(3, rows.n_rows))  # of both signs

    def value(vector: np.ndarray) -> float:
        parameters = coordinates.parameters(vector)
        log_density, _ = family.evaluate(prepared, parameters)
        return float(np.sum(weights * log_density)) + family.log_prior(parameters)

    vector = generator.normal(size=coordinates.size)
    parameters = coordinates.parameters(vector)
    _, notes = family.evaluate(prepared, parameters)
    statistics = family.accumulate(prepared, parameters, weights, notes)
    gradient = coordinates.gradient(vector, statistics)
    gradient += coordinates.prior_gradient(vector)
    step = 1e-5
    numeric = [
        (value(vector + step * unit) - value(vector - step * unit)) / (2.0 * step)
        for unit in np.eye(coordinates.size)
    ]
    return float(np.abs(gradient - numeric).max())


def m_step_is_a_maximum(family: Poisson, rows: Rows) -> bool:
    generator = np.random.default_rng(2)
    prepared = family.prepare(rows)
    weights = generator.dirichlet(np.ones(3), size=rows.n_rows).T
    best = family.start(rows, weights)
    coordinates = family.coordinates(best, weights.sum(axis=1))

    def value(parameters: PoissonParameters) -> float:
        log_density, _ = family.evaluate(prepared, parameters)
        return float(np.sum(weights * log_density)) + family.log_prior(parameters)

    nearby = [0.3 * generator.normal(size=coordinates.size) for _ in range(20)]
    return all(value(coordinates.parameters(v)) < value(best) for v in nearby)


# Use ----------------------------------------------------------------------------------


def fit(family: Family[Any, Any], rows: Rows, n_components: int) -> tuple[Mixture, float]:
    """Fit a mixture by EM; return it and its Bayesian information criterion."""
    dataset = Dataset(rows, np.zeros(rows.n_rows, dtype=np.intp), None)
    generator = np.random.default_rng(0)
    start = start_mixture(dataset, family, n_components, "kmeans", generator)
    problem = Problem(dataset, family, Likelihood(), n_components, Workers(1))
    solution = ExpectationMaximisation(tol=1e-7).solve(problem, start, generator)
    assert np.diff(solution.trace).min(initial=0.0) > -1e-12, "EM must not lose"
    log_likelihood = problem.assess(solution.model).value
    penalty = solution.model.n_parameters * np.log(rows.n_rows)
    return solution.model, penalty - 2.0 * log_likelihood


def with_categories(rows: Rows, generator: np.random.Generator) -> Rows:
    """Add a categorical column that has nothing to do with the counts."""
    codes = generator.integers(3, size=(1, rows.n_rows)).astype(np.int32)
    return Rows(rows.real, rows.observed, codes)


def main() -> None:
    rates = np.array([[2.0, 9.0, 0.5, 30.0], [6.0, 3.0, 4.0, 20.0]])
    rows = make_rows(np.random.default_rng(0), rates, 4000)
    family = Poisson(target=np.array([4.0, 6.0, 2.0, 25.0]))
    error = largest_gradient_error(family, rows[:300])
    print(f"largest error of the gradient: {error:.1e}")
    assert error < 1e-4
    assert m_step_is_a_maximum(family, rows[:300])
    print("the M-step is a maximum")

    fits = {k: fit(family, rows, k) for k in (1, 2, 3)}
    chosen = min(fits, key=lambda k: fits[k][1])
    print(f"{chosen} components have the lowest BIC")
    assert chosen == 2
    model = fits[chosen][0]
    order = np.argsort(model.components.log_rates[:, 0])
    fitted = np.exp(model.components.log_rates[order])
    print("true rates:  ", rates.tolist())
    print("fitted rates:", fitted.round(2).tolist())
    np.testing.assert_allclose(fitted, rates, rtol=0.1)

    row = rows[np.array([1])]
    print("a row:       ", np.where(row.observed, row.real, np.nan)[:, 0].tolist())
    print("filled:      ", model.impute(row).real[:, 0].round(1).tolist())

    # Beside a categorical column, the family is a factor of a product.
    generator = np.random.default_rng(3)
    mixed = Product((family, Categorical((3,))))
    model, _ = fit(mixed, with_categories(rows, generator), 2)
    drawn, _ = model.sample(3, generator)
    print(
        "drawn counts:", drawn.real.T.tolist(), "with categories", drawn.codes[0].tolist()
    )


if __name__ == "__main__":
    main()
