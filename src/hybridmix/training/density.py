"""Training of a density: one mixture for all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Schema, TrainingRows
from hybridmix.models.mixture import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import problem_of
from hybridmix.training.budget import Budget
from hybridmix.training.candidates import Choice
from hybridmix.training.classes import ClassTrainer, Estimation
from hybridmix.training.families import (
    Structure,
    family_maker,
    fitted_subspace,
    subspace_of,
)
from hybridmix.training.leaderboard import Trial
from hybridmix.training.memory import check_memory
from hybridmix.training.record import (
    INTERRUPTED,
    Fitted,
    bic_in_units,
    em_messages,
    history_in_units,
)
from hybridmix.training.selection import Search, choose

# Most iterations of EM on more rows than this are spent on what a sample shows as well.
_LARGE, _SAMPLE = 50_000, 20_000


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
    choice : Choice
        What else to choose; what is free replaces the other options.
    effort : str or float
        How much effort to spend on the choice.
    fills : bool
        Whether the choice is by how hidden cells are filled.
    """

    structure: Structure
    estimation: Estimation
    n_components: list[int]
    choice: Choice = field(default_factory=Choice)
    effort: str | float = "balanced"
    fills: bool = False


def fit_density(
    options: DensityOptions,
    dataset: TrainingRows,
    schema: Schema,
    init: str | FloatArray | Mixture,
    generator: np.random.Generator,
    pool: Workers,
) -> Fitted:
    """Fit a mixture to all rows by EM, and choose what is free.

    What is free is chosen by held-out rows, and the choice is then fitted to all rows.
    Among numbers of components of a fixed structure, BIC chooses.

    Parameters
    ----------
    options : DensityOptions
        What to do.
    dataset : Dataset or BlockedDataset
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
    _check_number(options, dataset)
    if isinstance(init, Mixture):
        options = replace(options, n_components=[init.n_components])
    if isinstance(init, Mixture) or not options.choice.is_free:
        return _fit_fixed(options, dataset, schema, init, generator, pool)
    if not options.choice.covariance_type:
        check_memory(options.structure, len(schema.real), min(options.n_components))
    search = Search(
        options.choice,
        options.structure,
        options.n_components,
        Budget(options.effort),
        options.fills,
    )
    chosen = choose(search, dataset, schema, init, generator, pool)
    estimation = options.estimation
    if chosen.n_starts > estimation.n_init:
        estimation = replace(estimation, n_init=chosen.n_starts)
    numbers = options.n_components
    if chosen.trials or options.choice.n_components:
        numbers = [chosen.candidate.n_components]
    options = replace(
        options,
        structure=chosen.candidate.structure,
        estimation=estimation,
        n_components=numbers,
    )
    start: str | FloatArray | Mixture = init
    if chosen.trials and not chosen.interrupted and dataset.n_rows > _LARGE:
        first = _sample_fit(options, dataset, schema, init, generator, pool)
        if first.interrupted:
            return replace(
                first, trials=tuple(chosen.trials), n_searched=chosen.n_searched
            )
        start = first.model
    fitted = _fit_fixed(
        options,
        dataset,
        schema,
        start,
        generator,
        pool,
        chosen.trials,
        chosen.interrupted,
    )
    return replace(fitted, n_searched=chosen.n_searched)


def _sample_fit(
    options: DensityOptions,
    dataset: TrainingRows,
    schema: Schema,
    init: str | FloatArray,
    generator: np.random.Generator,
    pool: Workers,
) -> Fitted:
    """Fit a mixture to a part of the rows, for a fit to all of them to go on from."""
    index = np.sort(generator.choice(dataset.n_rows, _SAMPLE, replace=False))
    return _fit_fixed(options, dataset.take(index), schema, init, generator, pool)


def _check_number(options: DensityOptions, dataset: TrainingRows) -> None:
    """Refuse more components than rows."""
    if options.choice.n_components:
        return
    fewest = min(options.n_components)
    if fewest > dataset.n_rows:
        raise ValueError(
            f"n_components={fewest} is more than the number of rows, "
            f"n_samples={dataset.n_rows}. Use fewer components."
        )


def _fit_fixed(
    options: DensityOptions,
    dataset: TrainingRows,
    schema: Schema,
    init: str | FloatArray | Mixture,
    generator: np.random.Generator,
    pool: Workers,
    trials: Sequence[Trial] = (),
    interrupted: bool = False,
) -> Fitted:
    """Fit a mixture of a given structure, whose number of components BIC may choose."""
    structure, estimation = options.structure, options.estimation
    candidates = options.n_components
    if isinstance(init, Mixture):
        subspace = subspace_of(init)
    else:
        check_memory(structure, len(schema.real), min(candidates))
        subspace = fitted_subspace(structure, schema, dataset)
    family_of = family_maker(structure, schema, dataset, subspace)
    solver = estimation.solver()
    trainer = ClassTrainer(family_of, solver, estimation.n_init, generator, pool)
    [fit] = trainer.fit(dataset, [candidates], init, ["The table"])
    # Users who have not asked for a number of components cannot ask for fewer.
    n_reseeded = 0 if options.choice.n_components else fit.n_reseeded
    messages = em_messages(
        fit.converged, fit.interrupted, n_reseeded, estimation.max_iter
    )
    if interrupted and INTERRUPTED not in messages:
        messages = (INTERRUPTED, *messages)
    return Fitted(
        schema,
        fit.model,
        fit.converged,
        fit.n_iter,
        history_in_units(fit.traces, dataset, schema),
        bic_in_units([fit.bic], dataset, schema),
        messages=messages,
        trials=tuple(trials),
    )


def bootstrapped(
    model: Mixture,
    dataset: TrainingRows,
    n_models: int,
    estimation: Estimation,
    generator: np.random.Generator,
    pool: Workers,
) -> list[Mixture]:
    """Refit a mixture to bootstrap samples of the rows it was fitted to.

    An interrupt ends it with the mixtures that are done; there is at least one, unless
    none was asked for.
    """
    models: list[Mixture] = []
    for _ in range(n_models):
        sample = dataset.resampled(generator)
        problem = problem_of(sample, Likelihood(), model, pool)
        solution = estimation.solver().solve(problem, model, generator=generator)
        if solution.interrupted and not models:
            raise KeyboardInterrupt
        if solution.interrupted:
            break
        models.append(solution.model)
    return models
