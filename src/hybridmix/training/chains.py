"""Training of hidden Markov models: EM, then what separates the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.sequence_blocks import TrainingSequenceRows
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.evaluation import log_joint
from hybridmix.families import Family
from hybridmix.models.calibration import Calibration, per_frame_scales
from hybridmix.models.chains import Chains
from hybridmix.objectives import Blend, Likelihood, Objective, PerFrame
from hybridmix.problem import problem_of
from hybridmix.solvers import ExpectationMaximisation, Solution
from hybridmix.training.calibration import fitted_calibration
from hybridmix.training.chain_record import ChainOptions, FittedChains
from hybridmix.training.chain_starts import frames_read, start_chains
from hybridmix.training.classifier import balanced_weight, held_out
from hybridmix.training.discriminative import Discrimination, discriminate
from hybridmix.training.families import (
    autoregressive,
    family_maker,
    fitted_subspace,
)
from hybridmix.training.record import INTERRUPTED, em_messages, history_in_units

# Sequences are held out in this many folds to calibrate the probabilities, and to choose
# the weight of unlabelled sequences.
_FOLDS = 3


def fit_chains(
    options: ChainOptions,
    dataset: TrainingSequenceRows,
    schema: Schema,
    n_classes: int,
    generator: np.random.Generator,
    pool: Workers,
) -> FittedChains:
    """Fit hidden Markov models with given options.

    Parameters
    ----------
    options : ChainOptions
        What to do.
    dataset : SequenceDataset or BlockedSequences
        Labelled and unlabelled sequences.
    schema : Schema
        Of their frames.
    n_classes : int
        Number of classes.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """
    run = ChainRun(options, schema, n_classes, generator, pool)
    validation: SequenceDataset | None = None
    fraction = options.discrimination.validation_fraction
    if fraction and not options.discrimination.is_generative:
        dataset, validation = held_out(dataset, fraction, generator)
    weight = chosen_weight(run, dataset)
    solution = run.solve(dataset, validation, weight)
    messages, calibration = run.messages(solution), Calibration()
    if options.calibrate and n_classes > 1 and not solution.interrupted:
        try:
            calibration = _calibrated(run, dataset, validation, weight, solution.model)
        except KeyboardInterrupt:
            messages = (*messages, INTERRUPTED)
    return FittedChains(
        schema,
        solution.model,
        options,
        solution.converged,
        solution.n_iter,
        sequence_history(solution, dataset, schema, weight),
        weight,
        calibration,
        messages,
    )


def candidate_weights(
    given: float | str, dataset: TrainingSequenceRows
) -> tuple[float, ...]:
    """Return what an unlabelled sequence may count; a given weight, or the choices.

    Unlabelled sequences help where classes are clusters and harm where they are not:
    they may count as much as labelled ones, no more than these in total, or nothing.
    """
    if not isinstance(given, str):
        return (float(given),)
    if dataset.unlabelled().n_rows == 0:
        return (1.0,)
    return (balanced_weight(dataset), 1.0, 0.0)


def chosen_weight(run: ChainRun, dataset: TrainingSequenceRows) -> float:
    """Return the weight of an unlabelled sequence; "auto" asks held-out labels."""
    weights = candidate_weights(run.options.unlabelled_weight, dataset)
    if len(weights) == 1:
        return weights[0]
    folds = list(dataset.sample().folds(_FOLDS, run.generator))

    def wrong(weight: float) -> float:
        total = 0.0
        for rest, held in folds:
            model = finished(run.solve_likelihood(rest, weight))
            best = log_joint(model, held.rows, run.pool).argmax(axis=0)
            total += float(held.filled_weights @ (best != held.labels))
        return total

    return min(weights, key=wrong)


def _calibrated(
    run: ChainRun,
    dataset: TrainingSequenceRows,
    validation: SequenceDataset | None,
    weight: float,
    model: Chains,
) -> Calibration:
    """Return the calibration that held-out sequences call for."""
    held = [(model, validation)] if validation is not None else []
    if validation is None:
        for rest, part in dataset.sample().folds(_FOLDS, run.generator):
            held.append((finished(run.solve(rest, None, weight)), part))
    if not held:
        return Calibration()
    return fitted_calibration(
        np.concatenate([run.class_scores(model, part) for model, part in held], axis=1),
        np.concatenate([part.labels for _, part in held]),
        np.concatenate([part.filled_weights for _, part in held]),
    )


def finished(solution: Solution[Chains]) -> Chains:
    """Return the model of a solution; an interrupt of one fit is meant for all."""
    if solution.interrupted:
        raise KeyboardInterrupt
    return solution.model


def sequence_history(
    solution: Solution[Chains],
    dataset: TrainingSequenceRows,
    schema: Schema,
    unlabelled_weight: float,
) -> Mapping[str, FloatArray]:
    """Return the traces of a solution: means per sequence, in units of the table."""
    if "likelihood" not in solution.traces:
        return {name: np.array(trace) for name, trace in solution.traces.items()}
    frames = dataset.mapped(SequenceDataset.frames, dataset.n_labels)
    return history_in_units(
        solution.traces, frames, schema, unlabelled_weight, dataset.total_weight
    )


class ChainRun:
    """One run of the procedure: what its steps share.

    Parameters
    ----------
    options : ChainOptions
        What to do.
    schema : Schema
        Of the frames.
    n_classes : int
        Number of classes.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """

    def __init__(
        self,
        options: ChainOptions,
        schema: Schema,
        n_classes: int,
        generator: np.random.Generator,
        pool: Workers,
    ) -> None:
        self.options = options
        self._schema = schema
        self._n_classes = n_classes
        self.generator = generator
        self.pool = pool

    def solve(
        self,
        dataset: TrainingSequenceRows,
        validation: SequenceDataset | None,
        unlabelled_weight: float,
    ) -> Solution[Chains]:
        """Run EM and, if the objective asks for it, discriminative training."""
        solution = self.solve_likelihood(dataset, unlabelled_weight)
        if self.options.discrimination.is_generative or solution.interrupted:
            return solution
        return self.discriminated(
            self.options.discrimination,
            dataset,
            validation,
            solution.model,
            unlabelled_weight,
        )

    def solve_likelihood(
        self, dataset: TrainingSequenceRows, unlabelled_weight: float
    ) -> Solution[Chains]:
        """Run EM from segmental k-means; the best of several starts is kept."""
        options = self.options
        rows = dataset if unlabelled_weight else dataset.labelled()
        family = self._family(rows)
        solver = ExpectationMaximisation(
            options.estimation.max_iter, options.estimation.tol * rows.mean_length
        )
        best: Solution[Chains] | None = None
        for _ in range(options.estimation.n_init):
            start = start_chains(
                rows,
                family,
                options.shape,
                self._log_class_prior(rows),
                self.generator,
                self.pool,
            )
            problem = problem_of(
                rows,
                Likelihood(unlabelled_weight),
                start,
                self.pool,
                self._learns_class_prior,
            )
            solution = solver.solve(problem, start, generator=self.generator)
            if best is None or solution.value > best.value:
                best = solution
            if solution.interrupted:
                best = replace(best, interrupted=True)
                break
        assert best is not None, "there is at least one start"
        return best

    def discriminated(
        self,
        discrimination: Discrimination,
        dataset: TrainingSequenceRows,
        validation: SequenceDataset | None,
        start: Chains,
        unlabelled_weight: float,
    ) -> Solution[Chains]:
        """Train models to discriminate."""
        rows = dataset if unlabelled_weight else dataset.labelled()
        return discriminate(
            discrimination,
            self._objective(discrimination, rows, unlabelled_weight),
            rows,
            validation,
            start,
            self._learns_class_prior,
            self.generator,
            self.pool,
        )

    def _objective(
        self,
        discrimination: Discrimination,
        dataset: TrainingSequenceRows,
        unlabelled_weight: float,
    ) -> Objective:
        """Return what is maximised: the discriminative term counts per frame."""
        n_columns = len(self._schema.real) + len(self._schema.categorical)
        term = PerFrame(discrimination.term(n_columns), self.options.length_power)
        if discrimination.objective != "hybrid":
            return term
        # The likelihood grows with the number of frames, and so should the other term.
        tradeoff = float(discrimination.tradeoff) * dataset.mean_length
        return Blend(Likelihood(unlabelled_weight), term, tradeoff)

    def _family(self, dataset: TrainingSequenceRows) -> Family:
        structure, shape = self.options.structure, self.options.shape
        read = partial(frames_read, shape=shape)
        frames = dataset.mapped(read, dataset.n_labels)
        subspace = fitted_subspace(structure, self._schema, frames)
        family_of = family_maker(
            structure, self._schema, frames, subspace, correlated=True
        )
        family = family_of(shape.n_states * shape.n_mixed)
        if not shape.autoregressive:
            return family
        if not self._schema.real:
            raise ValueError(
                "autoregressive=True needs real columns; all columns are categorical."
            )
        return autoregressive(family)

    def class_scores(self, model: Chains, dataset: SequenceDataset) -> FloatArray:
        """Return log joint densities (C, n), divided by a power of the length."""
        return self.scaled(log_joint(model, dataset.rows, self.pool), dataset)

    def scaled(self, joint: FloatArray, dataset: SequenceDataset) -> FloatArray:
        """Divide log joint densities (C, n) by a power of the length."""
        return joint * per_frame_scales(dataset.rows.lengths, self.options.length_power)

    @property
    def _learns_class_prior(self) -> bool:
        prior = self.options.class_prior
        return isinstance(prior, str) and prior == "empirical"

    def _log_class_prior(self, dataset: TrainingSequenceRows) -> FloatArray:
        """Return log class probabilities: counted, equal or given."""
        prior, n_classes = self.options.class_prior, self._n_classes
        if not isinstance(prior, str):
            return np.log(prior / prior.sum())
        if prior == "uniform":
            return np.full(n_classes, -np.log(n_classes))
        counts = dataset.class_weights(n_classes)
        return np.log(counts / counts.sum())

    def messages(self, solution: Solution[Chains]) -> tuple[str, ...]:
        """Say what a user should know of a solution."""
        if not self.options.discrimination.is_generative:
            return (INTERRUPTED,) if solution.interrupted else ()
        return em_messages(
            solution.converged,
            solution.interrupted,
            solution.n_reseeded,
            self.options.estimation.max_iter,
            "states",
        )
