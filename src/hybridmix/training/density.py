"""Training of a density: one mixture for all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema
from hybridmix.models.mixture import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.training.classes import ClassTrainer, Estimation
from hybridmix.training.families import (
    Structure,
    family_maker,
    fitted_subspace,
    subspace_of,
)
from hybridmix.training.memory import check_memory
from hybridmix.training.record import (
    Fitted,
    bic_in_units,
    em_messages,
    history_in_units,
)


@dataclass(frozen=True)
class DensityOptions:
    """The options of the training of a density.

    Attributes
    ----------
    structure : Structure
        What components look like.
    estimation : Estimation
        Options of EM.
    n_components : list of int
        Numbers of components to choose from.
    """

    structure: Structure
    estimation: Estimation
    n_components: list[int]


def fit_density(
    options: DensityOptions,
    dataset: Dataset,
    schema: Schema,
    init: str | FloatArray | Mixture,
    generator: np.random.Generator,
    pool: Workers,
) -> Fitted:
    """Fit a mixture to all rows by EM, and choose the number of components.

    Parameters
    ----------
    options : DensityOptions
        What to do.
    dataset : Dataset
        All rows, with the label 0.
    schema : Schema
        Of their table.
    init : str, ndarray or Mixture
        Method of the starts, scaled centres, or a model to go on from.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """
    structure, estimation = options.structure, options.estimation
    candidates = options.n_components
    fewest = min(candidates)
    if fewest > dataset.n_rows:
        raise ValueError(
            f"n_components={fewest} is more than the number of rows, "
            f"n_samples={dataset.n_rows}. Use fewer components."
        )
    if isinstance(init, Mixture):
        candidates = [init.n_components]
        subspace = subspace_of(init)
    else:
        check_memory(structure, len(schema.real), fewest)
        subspace = fitted_subspace(structure, schema, dataset)
    family_of = family_maker(structure, schema, dataset, subspace)
    solver = estimation.solver()
    trainer = ClassTrainer(family_of, solver, estimation.n_init, generator, pool)
    [fit] = trainer.fit(dataset, [candidates], init, ["The table"])
    return Fitted(
        schema,
        fit.model,
        fit.converged,
        fit.n_iter,
        history_in_units(fit.traces, dataset, schema),
        bic_in_units([fit.bic], dataset, schema),
        messages=em_messages(
            fit.converged, fit.interrupted, fit.n_reseeded, estimation.max_iter
        ),
    )


def bootstrapped(
    model: Mixture,
    dataset: Dataset,
    n_models: int,
    estimation: Estimation,
    generator: np.random.Generator,
    pool: Workers,
) -> list[Mixture]:
    """Refit a mixture to bootstrap samples of the rows it was fitted to.

    An interrupt ends it with the mixtures that are done; there is at least one, unless
    none was asked for.
    """
    weights = dataset.filled_weights
    models: list[Mixture] = []
    for _ in range(n_models):
        sample = replace(dataset, weights=_resampled(weights, generator))
        problem = Problem(sample, Likelihood(), model, pool)
        solution = estimation.solver().solve(problem, model, generator=generator)
        if solution.interrupted and not models:
            raise KeyboardInterrupt
        if solution.interrupted:
            break
        models.append(solution.model)
    return models


def _resampled(weights: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Draw how often a bootstrap sample of the rows holds each of them."""
    total = weights.sum()
    counts = generator.multinomial(max(1, round(total)), weights / total)
    return counts * (total / counts.sum())
