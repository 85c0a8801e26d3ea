"""The steps of the training of a classifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from hybridmix._checks import check_flag, check_number
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.families import Family, Subspace
from hybridmix.models.mixture import Mixture, joined_classes
from hybridmix.objectives import Likelihood
from hybridmix.problem import problem_of
from hybridmix.solvers import Solution
from hybridmix.training.classes import ClassFit, ClassTrainer, Estimation
from hybridmix.training.discriminative import Discrimination, discriminate
from hybridmix.training.families import (
    FamilyOf,
    Structure,
    family_maker,
    fitted_subspace,
    subspace_of,
)
from hybridmix.training.network_options import NetworkOptions
from hybridmix.training.record import INTERRUPTED, em_messages

# Rows that a procedure can be run on.
D = TypeVar("D", bound=TrainingRows)
# What follows EM of the single classes starts from it, not from the very optimum.
_PRELIMINARY_TOL = 1e-2


@dataclass(frozen=True)
class ClassifierOptions:
    """The options of the training of a classifier; checked when made.

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
    network : NetworkOptions or None
        What follows EM, if it is not a mixture that discriminates.
    """

    structure: Structure
    estimation: Estimation
    discrimination: Discrimination
    n_components: list[list[int]]
    class_prior: str | FloatArray
    unlabelled_weight: float | str
    calibrate: bool
    network: NetworkOptions | None = None

    def __post_init__(self) -> None:
        check_class_prior(self.class_prior, len(self.n_components))
        weight = self.unlabelled_weight
        check_number("unlabelled_weight", weight, 0.0, 1e9, or_word="auto")
        check_flag("calibrate", self.calibrate)
        solver = self.discrimination.chosen_solver()
        if (
            self.discrimination.refine_subspace
            and self.structure.covariances.needs_subspace
            and not self.discrimination.is_generative
            and "coordinates" not in getattr(solver, "needs", ())
        ):
            raise ValueError(
                "refine_subspace=True needs a gradient method: use solver='lbfgs' "
                f"instead of {self.discrimination.solver!r}."
            )

    @property
    def learns_class_prior(self) -> bool:
        """Whether class probabilities are estimated."""
        return isinstance(self.class_prior, str) and self.class_prior == "empirical"


class Outcome(NamedTuple):
    """What a run of solvers found.

    Attributes
    ----------
    solution : Solution
        Of the last solver.
    bic : tuple of mappings of int to float
        For each class: the criterion of each number of components that was tried.
    messages : tuple of str
        What the user should be warned about.
    """

    solution: Solution[Mixture]
    bic: tuple[Mapping[int, float], ...]
    messages: tuple[str, ...]


class ClassifierRun(Generic[D]):
    """One run of the procedure: what its steps share.

    A model that was given as a start may have seen rows that folds hold out: these start
    from scratch.
    """

    def __init__(
        self,
        options: ClassifierOptions,
        schema: Schema,
        dataset: D,
        init: str | Mixture,
        generator: np.random.Generator,
        pool: Workers,
        names: Sequence[str],
    ) -> None:
        self._options = options
        self._schema = schema
        self.generator = generator
        self.pool = pool
        self._names = names
        self.own_start = init if isinstance(init, str) else "kmeans"
        self._given_subspace = subspace_of(init) if isinstance(init, Mixture) else None
        self._own_subspace: Subspace | None = None
        self._dataset = dataset

    def solve(
        self,
        dataset: D,
        validation: Dataset | None,
        unlabelled_weight: float,
        init: str | Mixture,
    ) -> Outcome:
        """Run EM and, if the objective asks for it, discriminative training."""
        options = self._options
        discrimination = options.discrimination
        bic: tuple[Mapping[int, float], ...] = ()
        messages: tuple[str, ...] = ()
        if isinstance(init, Mixture) and not discrimination.is_generative:
            start = self._continued(dataset, init)
        else:
            outcome = self.solve_likelihood(dataset, init, unlabelled_weight)
            solution, bic, messages = outcome
            if discrimination.is_generative or solution.interrupted:
                return outcome
            start = solution.model
        return self.discriminated(
            discrimination, dataset, validation, start, unlabelled_weight, bic, messages
        )

    def solve_path(
        self,
        dataset: D,
        stations: Sequence[Discrimination],
        unlabelled_weight: float,
    ) -> Iterator[Outcome]:
        """Run EM, then one discriminative training after the other, each from the last.

        An outcome that the user has interrupted is the last one.

        Parameters
        ----------
        dataset : Dataset or BlockedDataset
            Labelled and unlabelled rows.
        stations : sequence of Discrimination
            What follows EM, such as training with ascending tradeoffs.
        unlabelled_weight : float
            What an unlabelled row counts.
        """
        outcome = self.solve_likelihood(dataset, self.own_start, unlabelled_weight)
        yield outcome
        for station in stations:
            solution, bic, messages = outcome
            if solution.interrupted:
                return
            outcome = self.discriminated(
                station, dataset, None, solution.model, unlabelled_weight, bic, messages
            )
            yield outcome

    def discriminated(
        self,
        discrimination: Discrimination,
        dataset: D,
        validation: Dataset | None,
        start: Mixture,
        unlabelled_weight: float,
        bic: tuple[Mapping[int, float], ...] = (),
        messages: tuple[str, ...] = (),
    ) -> Outcome:
        """Train a mixture to discriminate; criteria and messages are those before."""
        objective = discrimination.blend(self._n_columns(start), unlabelled_weight)
        solution = discriminate(
            discrimination,
            objective,
            dataset,
            validation,
            start,
            self._options.learns_class_prior,
            self.generator,
            self.pool,
        )
        if solution.interrupted:
            messages = (*messages, INTERRUPTED)
        return Outcome(solution, bic, messages)

    def _n_columns(self, model: Mixture) -> int:
        """Return how many columns a log margin grows with; factors stand for theirs."""
        subspace = subspace_of(model)
        n_real = len(self._schema.real) if subspace is None else subspace.n_factors
        return n_real + len(self._schema.categorical)

    def solve_likelihood(
        self, dataset: D, init: str | Mixture, unlabelled_weight: float
    ) -> Outcome:
        """Fit the classes apart, then together if anything couples them."""
        options = self._options
        bic: tuple[Mapping[int, float], ...] = ()
        if isinstance(init, Mixture):
            start = self._continued(dataset, init)
        else:
            fits, start = self._fit_apart(dataset, init)
            bic = tuple(fit.bic for fit in fits)
            apart = joined_solution(start, fits)
            if apart.interrupted or not _are_coupled(dataset, start.family):
                return Outcome(apart, bic, self._messages(apart))
        problem = problem_of(
            dataset,
            Likelihood(unlabelled_weight),
            start,
            self.pool,
            options.learns_class_prior,
        )
        solution = options.estimation.solver().solve(
            problem, start, generator=self.generator
        )
        return Outcome(solution, bic, self._messages(solution))

    def _messages(self, solution: Solution[Mixture]) -> tuple[str, ...]:
        return em_messages(
            solution.converged,
            solution.interrupted,
            solution.n_reseeded,
            self._options.estimation.max_iter,
        )

    def _fit_apart(
        self, dataset: TrainingRows, init: str
    ) -> tuple[list[ClassFit], Mixture]:
        """Fit each class to its labelled rows; return the fits and the joint model."""
        options, labelled = self._options, dataset.labelled()
        family_of = self._family_of(dataset, self._subspace_from_scratch())
        is_preliminary = _are_coupled(dataset, family_of(1.0))
        trainer = ClassTrainer(
            family_of,
            options.estimation.solver(_PRELIMINARY_TOL if is_preliminary else 0.0),
            options.estimation.n_init,
            self.generator,
            self.pool,
        )
        fits = trainer.fit(labelled, options.n_components, init, self._names)
        mean_size = float(np.mean([fit.model.n_components for fit in fits]))
        joint = joined_classes(
            family_of(mean_size),
            [fit.model for fit in fits],
            labelled.class_weights(len(fits)),
        )
        return fits, replace(joint, log_class_prior=self._log_class_prior(dataset))

    def _family_of(self, dataset: TrainingRows, subspace: Subspace | None) -> FamilyOf:
        return family_maker(
            self._options.structure, self._schema, dataset, subspace, correlated=True
        )

    def _subspace_from_scratch(self) -> Subspace | None:
        if self._own_subspace is None:
            structure = self._options.structure
            self._own_subspace = fitted_subspace(structure, self._schema, self._dataset)
        return self._own_subspace

    def _continued(self, dataset: TrainingRows, init: Mixture) -> Mixture:
        """Return a given mixture with the options of this training."""
        family_of = self._family_of(dataset, self._given_subspace)
        return replace(
            init,
            family=family_of(init.n_components / init.n_classes),
            log_class_prior=(
                init.log_class_prior
                if self._options.learns_class_prior
                else self._log_class_prior(dataset)
            ),
        )

    def _log_class_prior(self, dataset: TrainingRows) -> FloatArray:
        """Return log class probabilities: counted, equal or given."""
        prior, n_classes = self._options.class_prior, len(self._names)
        if not isinstance(prior, str):
            return np.log(prior / prior.sum())
        if prior == "uniform":
            return np.full(n_classes, -np.log(n_classes))
        counts = dataset.class_weights(n_classes)
        return np.log(counts / counts.sum())


def finished(outcome: Outcome) -> Mixture:
    """Return the model of an outcome; an interrupt of one fit is meant for all."""
    if outcome.solution.interrupted:
        raise KeyboardInterrupt
    return outcome.solution.model


def check_class_prior(prior: str | FloatArray, n_classes: int) -> None:
    """Refuse what is neither a known word nor a probability for each class."""
    if isinstance(prior, str):
        if prior not in ("empirical", "uniform"):
            raise ValueError(
                f"class_prior={prior!r} is neither 'empirical' nor 'uniform' nor an "
                "array of probabilities."
            )
    elif (
        prior.shape != (n_classes,)
        or not np.all(prior > 0)
        or not np.isclose(prior.sum(), 1.0)
    ):
        raise ValueError(
            f"class_prior must hold {n_classes} positive probabilities that sum to one, "
            "in the order of the sorted labels."
        )


def _are_coupled(dataset: TrainingRows, family: Family) -> bool:
    """Return whether unlabelled rows or shared parameters couple the classes."""
    return dataset.unlabelled().n_rows > 0 or family.ties_components


def joined_solution(model: Mixture, fits: list[ClassFit]) -> Solution[Mixture]:
    """Sum up what fits of single classes did."""
    return Solution(
        model,
        float("nan"),
        n_iter=max(fit.n_iter for fit in fits),
        converged=all(fit.converged for fit in fits),
        interrupted=any(fit.interrupted for fit in fits),
        n_reseeded=sum(fit.n_reseeded for fit in fits),
    )
