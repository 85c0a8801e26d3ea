"""Training of a classifier: a mixture for each class, then what separates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridmix._checks import check_number
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema
from hybridmix.evaluation import log_joint
from hybridmix.families import Family, Subspace
from hybridmix.models.mixture import Mixture, joined_classes
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import Solution
from hybridmix.training.calibration import Calibration, fitted_calibration
from hybridmix.training.classes import ClassFit, ClassTrainer, Estimation
from hybridmix.training.discriminative import Discrimination, validation_error
from hybridmix.training.families import (
    FamilyOf,
    Structure,
    family_maker,
    fitted_subspace,
    subspace_of,
)
from hybridmix.training.memory import check_memory
from hybridmix.training.record import (
    INTERRUPTED,
    Fitted,
    bic_in_units,
    em_messages,
    history_in_units,
)

# Rows are held out in this many folds to calibrate the probabilities, and to choose the
# weight of unlabelled rows among these shares of the balanced one.
_CALIBRATION_FOLDS = 5
_WEIGHT_FOLDS = 3
_WEIGHT_SHARES = (1.0, 0.1, 0.0)
# What follows EM of the single classes starts from it, not from the very optimum.
_PRELIMINARY_TOL = 1e-2


@dataclass(frozen=True)
class ClassifierTraining:
    """The procedure, with its options; checked when made.

    Attributes
    ----------
    structure : Structure
        What components look like.
    estimation : Estimation
        Options of EM.
    discrimination : Discrimination
        Options of what follows EM.
    n_components : list of list of int
        For each class, numbers of components to choose from.
    class_prior : str or ndarray of shape (C,)
        "empirical", "uniform" or class probabilities.
    unlabelled_weight : float or "auto"
        What an unlabelled row counts, compared with a labelled one.
    calibrate : bool
        Whether class probabilities are corrected by held-out rows.
    """

    structure: Structure
    estimation: Estimation
    discrimination: Discrimination
    n_components: list[list[int]]
    class_prior: str | FloatArray
    unlabelled_weight: float | str
    calibrate: bool

    def __post_init__(self) -> None:
        if isinstance(self.class_prior, str):
            if self.class_prior not in ("empirical", "uniform"):
                raise ValueError(
                    f"class_prior={self.class_prior!r} is neither 'empirical' nor "
                    "'uniform' nor an array of probabilities."
                )
        else:
            _check_probabilities(self.class_prior, len(self.n_components))
        if isinstance(self.unlabelled_weight, str):
            if self.unlabelled_weight != "auto":
                raise ValueError(
                    f"unlabelled_weight={self.unlabelled_weight!r} is neither a number "
                    "nor 'auto'."
                )
        else:
            check_number("unlabelled_weight", self.unlabelled_weight, 0.0, 1e9)

    def fit(
        self,
        dataset: Dataset,
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
        dataset : Dataset
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
        if isinstance(init, str):
            fewest = sum(min(candidates) for candidates in self.n_components)
            check_memory(self.structure, len(schema.real), fewest)
        fraction = self.discrimination.validation_fraction
        if validation is None and fraction and not self.discrimination.is_generative:
            dataset, validation = _held_out(dataset, fraction, generator)
        run = _Run(self, schema, dataset, init, generator, pool, names)
        weight = run.chosen_weight(dataset)
        solution, bic, messages = run.solve(dataset, validation, weight, init)
        calibration = Calibration()
        if self.calibrate and INTERRUPTED not in messages:
            calibration = run.calibrated(dataset, validation, weight, solution)
        model = solution.model
        assert isinstance(model, Mixture)
        return Fitted(
            schema,
            model,
            solution.converged,
            solution.n_iter,
            history_in_units(solution, dataset, schema.scale, weight),
            bic_in_units(bic, dataset, schema.scale),
            weight,
            calibration,
            messages,
        )


class _Run:
    """One run of the procedure: what its steps share.

    A model that was given as a start may have seen rows that folds hold out: these start
    from scratch.
    """

    def __init__(
        self,
        options: ClassifierTraining,
        schema: Schema,
        dataset: Dataset,
        init: str | Mixture,
        generator: np.random.Generator,
        pool: Workers,
        names: Sequence[str],
    ) -> None:
        self._options = options
        self._schema = schema
        self._generator = generator
        self._pool = pool
        self._names = names
        self._own_start = init if isinstance(init, str) else "kmeans"
        self._given_subspace = subspace_of(init) if isinstance(init, Mixture) else None
        self._own_subspace: Subspace | None = None
        self._dataset = dataset

    @property
    def _learns_class_prior(self) -> bool:
        prior = self._options.class_prior
        return isinstance(prior, str) and prior == "empirical"

    # Unlabelled rows --------------------------------------------------------------------

    def chosen_weight(self, dataset: Dataset) -> float:
        """Return the weight of an unlabelled row; "auto" asks held-out labels."""
        given = self._options.unlabelled_weight
        if not isinstance(given, str):
            return float(given)
        balanced = _balanced_weight(dataset)
        if dataset.unlabelled().n_rows == 0:
            return balanced
        folds = list(dataset.folds(_WEIGHT_FOLDS, self._generator))

        def wrong(share: float) -> float:
            total = 0.0
            for rest, held in folds:
                rows = rest if share else rest.labelled()
                fold, _, _ = self._solve_likelihood(
                    rows, self._own_start, share * balanced
                )
                error = validation_error(held, fold.model, self._pool)
                total += error(fold.model) * held.total_weight
            return total

        return balanced * min(_WEIGHT_SHARES, key=wrong) if folds else balanced

    # Steps --------------------------------------------------------------------------------

    def solve(
        self,
        dataset: Dataset,
        validation: Dataset | None,
        unlabelled_weight: float,
        init: str | Mixture,
    ) -> tuple[Solution, list[dict[int, float]], list[str]]:
        """Run EM and, if the objective asks for it, discriminative training."""
        discrimination = self._options.discrimination
        bic: list[dict[int, float]] = []
        messages: list[str] = []
        if isinstance(init, Mixture) and not discrimination.is_generative:
            start = self._continued(dataset, init)
        else:
            solution, bic, messages = self._solve_likelihood(
                dataset, init, unlabelled_weight
            )
            if discrimination.is_generative or solution.interrupted:
                return solution, bic, messages
            assert isinstance(solution.model, Mixture)
            start = solution.model
        objective = discrimination.blend(self._n_columns(start), unlabelled_weight)
        solution = discrimination.solve(
            objective, dataset, validation, start, self._pool, self._learns_class_prior
        )
        if solution.interrupted:
            messages = [*messages, INTERRUPTED]
        return solution, bic, messages

    def _n_columns(self, model: Mixture) -> int:
        """Return how many columns a log margin grows with; factors stand for theirs."""
        subspace = subspace_of(model)
        n_real = len(self._schema.real) if subspace is None else subspace.n_factors
        return n_real + len(self._schema.categorical)

    def _solve_likelihood(
        self, dataset: Dataset, init: str | Mixture, unlabelled_weight: float
    ) -> tuple[Solution, list[dict[int, float]], list[str]]:
        """Fit the classes apart, then together if anything couples them."""
        options = self._options
        bic: list[dict[int, float]] = []
        if isinstance(init, Mixture):
            start = self._continued(dataset, init)
        else:
            fits, start = self._fit_apart(dataset, init)
            bic = [fit.bic for fit in fits]
            apart = _joined_solution(start, fits)
            if apart.interrupted or not _are_coupled(dataset, start.family):
                return apart, bic, self._messages(apart)
        problem = Problem(
            dataset,
            Likelihood(unlabelled_weight),
            start,
            self._pool,
            self._learns_class_prior,
        )
        solution = options.estimation.solver().solve(
            problem, start, generator=self._generator
        )
        return solution, bic, self._messages(solution)

    def _messages(self, solution: Solution) -> list[str]:
        return em_messages(
            solution.converged,
            solution.interrupted,
            solution.n_reseeded,
            self._options.estimation.max_iter,
        )

    def _fit_apart(
        self, dataset: Dataset, init: str
    ) -> tuple[list[ClassFit], Mixture]:
        """Fit each class to its labelled rows; return the fits and the joint model."""
        options, labelled = self._options, dataset.labelled()
        family_of = self._family_of(dataset, self._subspace_from_scratch())
        is_preliminary = _are_coupled(dataset, family_of(1.0))
        trainer = ClassTrainer(
            family_of,
            options.estimation.solver(_PRELIMINARY_TOL if is_preliminary else 0.0),
            options.estimation.n_init,
            self._generator,
            self._pool,
        )
        fits = trainer.fit(labelled, options.n_components, init, self._names)
        mean_size = float(np.mean([fit.model.n_components for fit in fits]))
        joint = joined_classes(
            family_of(mean_size),
            [fit.model for fit in fits],
            labelled.class_weights(len(fits)),
        )
        return fits, replace(joint, log_class_prior=self._log_class_prior(dataset))

    def _family_of(self, dataset: Dataset, subspace: Subspace | None) -> FamilyOf:
        return family_maker(
            self._options.structure, self._schema, dataset, subspace, correlated=True
        )

    def _subspace_from_scratch(self) -> Subspace | None:
        if self._own_subspace is None:
            structure = self._options.structure
            self._own_subspace = fitted_subspace(structure, self._schema, self._dataset)
        return self._own_subspace

    def _continued(self, dataset: Dataset, init: Mixture) -> Mixture:
        """Return a given mixture with the options of this training."""
        family_of = self._family_of(dataset, self._given_subspace)
        return replace(
            init,
            family=family_of(init.n_components / init.n_classes),
            log_class_prior=(
                init.log_class_prior
                if self._learns_class_prior
                else self._log_class_prior(dataset)
            ),
        )

    def _log_class_prior(self, dataset: Dataset) -> FloatArray:
        """Return log class probabilities: counted, equal or given."""
        prior, n_classes = self._options.class_prior, len(self._names)
        if not isinstance(prior, str):
            return np.log(prior / prior.sum())
        if prior == "uniform":
            return np.full(n_classes, -np.log(n_classes))
        counts = dataset.class_weights(n_classes)
        return np.log(counts / counts.sum())

    # Calibration --------------------------------------------------------------------------

    def calibrated(
        self,
        dataset: Dataset,
        validation: Dataset | None,
        unlabelled_weight: float,
        solution: Solution,
    ) -> Calibration:
        """Return the calibration that held-out rows call for."""
        if len(self._names) == 1:
            return Calibration()
        held = [(solution.model, validation)] if validation is not None else []
        if validation is None:
            for rest, part in dataset.folds(_CALIBRATION_FOLDS, self._generator):
                fold, _, _ = self.solve(rest, None, unlabelled_weight, self._own_start)
                held.append((fold.model, part))
        if not held:
            raise ValueError("calibrate=True needs a class of two labelled rows or more.")
        return fitted_calibration(
            np.concatenate(
                [log_joint(model, part.rows, self._pool) for model, part in held], axis=1
            ),
            np.concatenate([part.labels for _, part in held]),
            np.concatenate([part.filled_weights for _, part in held]),
        )


def _check_probabilities(prior: FloatArray, n_classes: int) -> None:
    if (
        prior.shape != (n_classes,)
        or not np.all(prior > 0)
        or not np.isclose(prior.sum(), 1.0)
    ):
        raise ValueError(
            f"class_prior must hold {n_classes} positive probabilities that sum to one, "
            "in the order of the sorted labels."
        )


def _held_out(
    dataset: Dataset, fraction: float, generator: np.random.Generator
) -> tuple[Dataset, Dataset]:
    rest, held = dataset.split(fraction, generator)
    if held.n_rows == 0:
        raise ValueError(
            f"validation_fraction={fraction} holds out no row: the classes have too few "
            "labelled rows. Use a larger fraction or None."
        )
    return rest, held


def _balanced_weight(dataset: Dataset) -> float:
    """Return a weight with which unlabelled rows count no more than the labelled."""
    labelled = dataset.labelled().total_weight
    return labelled / max(labelled, dataset.unlabelled().total_weight)


def _are_coupled(dataset: Dataset, family: Family) -> bool:
    """Return whether unlabelled rows or shared parameters couple the classes."""
    return dataset.unlabelled().n_rows > 0 or family.ties_components


def _joined_solution(model: Mixture, fits: list[ClassFit]) -> Solution:
    """Sum up what fits of single classes did."""
    return Solution(
        model,
        float("nan"),
        n_iter=max(fit.n_iter for fit in fits),
        converged=all(fit.converged for fit in fits),
        interrupted=any(fit.interrupted for fit in fits),
        n_reseeded=sum(fit.n_reseeded for fit in fits),
    )
