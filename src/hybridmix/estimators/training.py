"""Training of one class: numbers of components, restarts, EM."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._parallel import Workers
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data import UNLABELLED, Dataset
from hybridmix.families import Family
from hybridmix.mixture import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import ExpectationMaximisation, Solution, start_mixture

Components = int | Iterable[int]
_LEAST_EIGENVALUE = 1e-6


@dataclass(frozen=True)
class Fit:
    """A fitted mixture of one class.

    Attributes
    ----------
    solution : Solution
        The best of the restarts.
    log_likelihood : float
        Of the rows, without priors.
    bic : dict of int to float
        The criterion for each number of components that was tried.
    """

    solution: Solution
    log_likelihood: float
    bic: dict[int, float]


@dataclass(frozen=True)
class ClassTrainer:
    """Fits mixtures to the rows of one class.

    Attributes
    ----------
    family_of : callable
        Returns the family for a number of components.
    solver : ExpectationMaximisation
        Runs from each start.
    n_init : int
        Number of starts.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    verbose : bool
        Print what is being tried.
    """

    family_of: Callable[[float], Family[Any, Any]]
    solver: ExpectationMaximisation
    n_init: int
    generator: np.random.Generator
    pool: Workers
    verbose: bool

    def fit(
        self,
        dataset: Dataset,
        candidates: Components,
        init: str | FloatArray | Mixture,
        name: str = "The table",
    ) -> Fit:
        """Try numbers of components in ascending order and keep the best by BIC.

        The search ends when the criterion has risen twice in a row: more components take
        longer, and are hardly ever better from there on.
        """
        fits: dict[int, Fit] = {}
        bic: dict[int, float] = {}
        interrupted = False
        for k in _possible(component_range(candidates), dataset, name):
            try:
                fits[k] = self._fit_restarts(dataset, k, init, name)
            except KeyboardInterrupt:
                if not fits:
                    raise
                interrupted = True
                break
            n_parameters = fits[k].solution.model.n_parameters
            bic[k] = n_parameters * float(np.log(dataset.total_weight))
            bic[k] -= 2.0 * fits[k].log_likelihood
            interrupted = fits[k].solution.interrupted
            last = list(bic.values())[-3:]
            if interrupted or (len(last) == 3 and last == sorted(last)):
                break
        best = fits[min(bic, key=bic.__getitem__)]
        return Fit(
            replace(best.solution, interrupted=interrupted), best.log_likelihood, bic
        )

    def _start(
        self,
        dataset: Dataset,
        family: Family[Any, Any],
        n_components: int,
        init: str | FloatArray | Mixture,
    ) -> Mixture:
        if isinstance(init, Mixture):
            return replace(init, family=family)
        return start_mixture(dataset, family, n_components, init, self.generator)

    def _fit_restarts(
        self,
        dataset: Dataset,
        n_components: int,
        init: str | FloatArray | Mixture,
        name: str,
    ) -> Fit:
        family = self.family_of(n_components)
        problem = Problem(dataset, family, Likelihood(), n_components, self.pool)
        best: Solution | None = None
        for restart in range(self.n_init if isinstance(init, str) else 1):
            if self.verbose:
                print(f"{name}: {n_components} component(s), start {restart + 1}")
            try:
                start = self._start(dataset, family, n_components, init)
                solution = self.solver.solve(problem, start, self.generator)
            except KeyboardInterrupt:
                if best is None:
                    raise
                best = replace(best, interrupted=True)
                break
            if best is None or solution.value > best.value:
                best = solution
            if solution.interrupted:
                best = replace(best, interrupted=True)
                break
        assert best is not None
        log_prior = best.model.log_prior_density()
        return Fit(best, best.value * dataset.total_weight - log_prior, {})


def _possible(candidates: list[int], dataset: Dataset, name: str) -> list[int]:
    """Drop numbers of components that exceed the number of distinct rows."""
    n_distinct = dataset.rows.n_distinct(max(candidates))
    possible = [k for k in candidates if k <= n_distinct]
    if not possible:
        warnings.warn(
            f"{name} has only {n_distinct} distinct row(s), fewer than the "
            f"{candidates[0]} components asked for; it gets no more than these.",
            UserWarning,
            stacklevel=2,
        )
    return possible or [n_distinct]


def component_range(n_components: Components) -> list[int]:
    """Return the numbers of components to try."""
    listed = [n_components] if isinstance(n_components, Integral) else n_components
    try:
        candidates = [int(k) for k in listed]  # type: ignore[union-attr]
    except (TypeError, ValueError):
        candidates = []
    if not candidates or min(candidates) < 1:
        raise ValueError(
            f"n_components={n_components!r} must be a whole number of at least 1, or a "
            "range or list of such numbers to choose from."
        )
    return sorted(set(candidates))


def within_class_variances(dataset: Dataset) -> FloatArray:
    """Return the pooled variances of the real columns within the labelled classes.

    One row of the variance over all rows is added, labelled or not: with a single label
    per class, there is no other.
    """
    rows, weights = dataset.rows, dataset.filled_weights
    d = rows.real.shape[0]
    observed = np.ones((d, 1)) if rows.observed is None else rows.observed
    squares, freedom = np.zeros(d), np.zeros(d)
    for label in np.unique(dataset.labels[dataset.labels != UNLABELLED]):
        here = slice(*np.searchsorted(dataset.labels, [label, label + 1]))
        own, counts = _column_squares(rows.real[:, here], observed, here, weights[here])
        squares += own
        freedom += np.maximum(counts - 1.0, 0.0)
    total, counts = _column_squares(rows.real, observed, slice(None), weights)
    overall = np.divide(total, counts, out=np.ones(d), where=counts > 0)
    return (squares + overall) / (freedom + 1.0)


def _column_squares(
    real: FloatArray,
    observed: FloatArray | BoolArray,
    here: slice,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return sums of squares about the means of columns, and weights of what is seen."""
    squares, counts = np.zeros(len(real)), np.zeros(len(real))
    for i, column in enumerate(real):  # one by one, since the table may be large
        w = weights * (observed[i] if observed.shape[1] == 1 else observed[i, here])
        counts[i] = w.sum()
        mean = column @ w / max(counts[i], np.finfo(float).tiny)
        squares[i] = np.square(column - mean) @ w
    return squares, counts


def within_class_correlations(dataset: Dataset) -> FloatArray:
    """Return the pooled correlations of the real columns within the labelled classes.

    Every pair of columns is judged by the rows that have both. The fewer rows there are
    beside columns, the more the correlations are drawn to zero.
    """
    d = dataset.rows.real.shape[0]
    products, squares = np.zeros((d, d)), np.zeros((d, d))
    for label in np.unique(dataset.labels):
        first, last = np.searchsorted(dataset.labels, [label, label + 1])
        own = dataset.rows[slice(first, last)]
        weights = dataset.filled_weights[first:last]
        seen = np.ones((d, 1)) if own.observed is None else own.observed
        counts = np.maximum((seen * weights).sum(axis=1), np.finfo(float).tiny)
        means = own.real @ weights / counts
        for chunk in row_chunks(own.n_rows, 4 * d):
            real = own.real[:, chunk]
            mask = np.ones(real.shape) if own.observed is None else own.observed[:, chunk]
            centred = np.where(mask, real - means[:, None], 0.0)
            weighted = centred * weights[chunk]
            products += weighted @ centred.T
            squares += (weighted * centred) @ mask.T
    joint = np.sqrt(squares * squares.T)
    correlations = np.divide(products, joint, out=np.zeros((d, d)), where=joint > 0.0)
    correlations *= 1.0 - d / (dataset.total_weight + d)
    np.fill_diagonal(correlations, 1.0)
    # Pairs that are judged by different rows need not fit together.
    values, vectors = np.linalg.eigh(correlations)
    rebuilt = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T
    deviations = np.sqrt(np.diagonal(rebuilt))
    return rebuilt / deviations[:, None] / deviations


def log_class_prior(class_prior: Any, labelled: Dataset, n_classes: int) -> FloatArray:
    """Return log class probabilities: counted, equal or given."""
    if isinstance(class_prior, str):
        if class_prior == "uniform":
            return np.full(n_classes, -np.log(n_classes))
        if class_prior == "empirical":
            counts = np.bincount(labelled.labels, labelled.weights, n_classes)
            return np.log(counts / counts.sum())
        raise ValueError(
            f"class_prior={class_prior!r} is neither 'empirical' nor 'uniform' nor an "
            "array of probabilities."
        )
    prior = np.asarray(class_prior, dtype=np.float64)
    if (
        prior.shape != (n_classes,)
        or not np.all(prior > 0)
        or not np.isclose(prior.sum(), 1.0)
    ):
        raise ValueError(
            f"class_prior must hold {n_classes} positive probabilities that sum to one, "
            "in the order of the sorted labels."
        )
    return np.log(prior / prior.sum())


def balanced_weight(dataset: Dataset) -> float:
    """Return a weight with which unlabelled rows count no more than the labelled."""
    labelled = dataset.labelled().total_weight
    return labelled / max(labelled, dataset.unlabelled().total_weight)


def joined_mixture(
    family_of: Callable[[float], Family[Any, Any]],
    labelled: Dataset,
    fits: list[Fit],
    log_prior: FloatArray,
) -> Mixture:
    """Put the mixtures of the classes into one model."""
    models = [fit.solution.model for fit in fits]
    sizes = [model.n_components for model in models]
    family = family_of(float(np.mean(sizes)))
    counts = np.bincount(labelled.labels, labelled.weights, len(models))
    return Mixture(
        family,
        family.concatenate([model.components for model in models], counts.tolist()),
        np.concatenate([model.log_mixing for model in models]),
        log_prior,
        tuple(np.concatenate([[0], np.cumsum(sizes)]).tolist()),
    )


def joined_solution(model: Mixture, solutions: list[Solution]) -> Solution:
    """Sum up what fits of single classes did."""
    return Solution(
        model,
        float("nan"),
        n_iter=max(solution.n_iter for solution in solutions),
        converged=all(solution.converged for solution in solutions),
        interrupted=any(solution.interrupted for solution in solutions),
        n_reseeded=sum(solution.n_reseeded for solution in solutions),
    )


def history_in_units(
    solution: Solution, dataset: Dataset, scale: FloatArray, unlabelled_weight: float
) -> dict[str, FloatArray]:
    """Return the traces in the units of the table, which likelihoods depend on."""
    history = {name: np.array(trace) for name, trace in solution.traces.items()}
    if "likelihood" not in history:
        return history
    log_volume = dataset.labelled().log_volume(scale)
    log_volume += unlabelled_weight * dataset.unlabelled().log_volume(scale)
    for name in ("value", "likelihood"):
        history[name] = history[name] - log_volume / dataset.total_weight
    return history
