"""Training of a classifier: a mixture for each class, then what separates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, overload

import numpy as np

from hybridmix._parallel import Workers
from hybridmix.data import BlockedDataset, Dataset, Schema, TrainingRows
from hybridmix.data.blocks import BlockedUnits
from hybridmix.data.rows import LabelledUnits
from hybridmix.data.sequence_blocks import BlockedSequences
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.evaluation import log_joint
from hybridmix.models.calibration import Calibration
from hybridmix.models.mixture import Mixture
from hybridmix.training.calibration import fitted_calibration
from hybridmix.training.discriminative import validation_error
from hybridmix.training.memory import check_memory
from hybridmix.training.network import run_of
from hybridmix.training.record import INTERRUPTED, Fitted, bic_in_units, history_in_units
from hybridmix.training.run import ClassifierOptions, ClassifierRun, finished

Units = TypeVar("Units", bound=LabelledUnits)
# Rows are held out in this many folds to calibrate the probabilities, and to choose the
# weight of unlabelled rows among these shares of the balanced one.
_CALIBRATION_FOLDS = 5
_WEIGHT_FOLDS = 3
_WEIGHT_SHARES = (1.0, 0.1, 0.0)
# Of rows that are not in memory, this many labelled and unlabelled ones make the folds.
_MOST_FOLDED = 50_000


def fit_classifier(
    options: ClassifierOptions,
    dataset: TrainingRows,
    validation: Dataset | None,
    schema: Schema,
    init: str | Mixture,
    generator: np.random.Generator,
    pool: Workers,
    names: Sequence[str],
) -> Fitted:
    """Fit the classes, train them to discriminate and calibrate.

    Parameters
    ----------
    options : ClassifierOptions
        What to do.
    dataset : Dataset or BlockedDataset
        Labelled and unlabelled rows.
    validation : Dataset or None
        Labelled rows to stop by, if the training is discriminative.
    schema : Schema
        Of their table.
    init : str or Mixture
        Method of the starts, or a model to go on from.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    names : sequence of str
        What to call the classes in messages.
    """
    if isinstance(init, Mixture):
        # Folds that start from scratch are to be like the model that goes on.
        sizes = np.diff(init.offsets).tolist()
        options = replace(options, n_components=[[size] for size in sizes])
    else:
        fewest = sum(min(candidates) for candidates in options.n_components)
        check_memory(options.structure, len(schema.real), fewest)
    fraction = options.discrimination.validation_fraction
    if validation is None and fraction and not options.discrimination.is_generative:
        dataset, validation = held_out(dataset, fraction, generator)
    if options.calibrate and validation is None:
        _check_folds(dataset, len(names))
    run = run_of(options, schema, dataset, init, generator, pool, names)
    weight = chosen_weight(run, options.unlabelled_weight, dataset)
    solution, bic, messages = run.solve(dataset, validation, weight, init)
    calibration = Calibration()
    if options.calibrate and INTERRUPTED not in messages:
        try:
            calibration = _calibrated(run, dataset, validation, weight, solution.model)
        except KeyboardInterrupt:
            messages = (*messages, INTERRUPTED)
    return Fitted(
        schema,
        solution.model,
        solution.converged,
        solution.n_iter,
        history_in_units(solution.traces, dataset, schema, weight),
        bic_in_units(bic, dataset, schema),
        weight,
        calibration,
        messages,
    )


def chosen_weight(run: ClassifierRun, given: float | str, dataset: TrainingRows) -> float:
    """Return the weight of an unlabelled row; "auto" asks held-out labels."""
    if not isinstance(given, str):
        return float(given)
    balanced = balanced_weight(dataset)
    if dataset.unlabelled().n_rows == 0:
        return balanced
    few = dataset.in_memory(_MOST_FOLDED)
    folds = list(few.folds(_WEIGHT_FOLDS, run.generator))

    def wrong(share: float) -> float:
        total = 0.0
        for rest, held in folds:
            rows = rest if share else rest.labelled()
            fold = run.solve_likelihood(rows, run.own_start, share * balanced)
            model = finished(fold)
            error = validation_error(held, model, run.pool)
            total += error(model) * held.total_weight
        return total

    return balanced * min(_WEIGHT_SHARES, key=wrong) if folds else balanced


def _calibrated(
    run: ClassifierRun,
    dataset: TrainingRows,
    validation: Dataset | None,
    unlabelled_weight: float,
    model: Mixture,
) -> Calibration:
    """Return the calibration that held-out rows call for."""
    if model.n_classes == 1:
        return Calibration()
    held = [(model, validation)] if validation is not None else []
    if validation is None:
        few = dataset.in_memory(_MOST_FOLDED)
        for rest, part in few.folds(_CALIBRATION_FOLDS, run.generator):
            fold = run.solve(rest, None, unlabelled_weight, run.own_start)
            held.append((finished(fold), part))
    return fitted_calibration(
        np.concatenate(
            [log_joint(model, part.rows, run.pool) for model, part in held], axis=1
        ),
        np.concatenate([part.labels for _, part in held]),
        np.concatenate([part.filled_weights for _, part in held]),
    )


def _check_folds(dataset: TrainingRows, n_classes: int) -> None:
    n_rows = dataset.label_counts(n_classes)
    if n_classes > 1 and n_rows.max() < 2:
        raise ValueError("calibrate=True needs a class of two labelled rows or more.")


@overload
def held_out(
    dataset: Units, fraction: float, generator: np.random.Generator
) -> tuple[Units, Units]: ...


@overload
def held_out(
    dataset: BlockedDataset, fraction: float, generator: np.random.Generator
) -> tuple[BlockedDataset, Dataset]: ...


@overload
def held_out(
    dataset: BlockedSequences, fraction: float, generator: np.random.Generator
) -> tuple[BlockedSequences, SequenceDataset]: ...


def held_out(
    dataset: LabelledUnits | BlockedUnits,
    fraction: float,
    generator: np.random.Generator,
) -> tuple[LabelledUnits | BlockedUnits, LabelledUnits]:
    """Hold out a share of the labelled rows of each class; return rest and held."""
    rest, held = dataset.split(fraction, generator)
    if held.n_rows == 0:
        raise ValueError(
            f"validation_fraction={fraction} holds out no row: the classes have too few "
            f"labelled rows, n_samples={dataset.labelled().n_rows} in all. Use a larger "
            "fraction or None."
        )
    return rest, held


def balanced_weight(dataset: LabelledUnits | BlockedUnits) -> float:
    """Return a weight with which unlabelled rows count no more than the labelled."""
    labelled = dataset.labelled().total_weight
    return labelled / max(labelled, dataset.unlabelled().total_weight)
