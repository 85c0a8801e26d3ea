"""Training of networks: EM, then the output layer, then both layers together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.evaluation import ChunkedRows
from hybridmix.families import Family
from hybridmix.models.embedding import EXPERTS, LINEAR, LOG_JOINT, Embedding
from hybridmix.models.mixture import Mixture, joined_classes
from hybridmix.models.network import Network
from hybridmix.models.output import OutputLayer
from hybridmix.models.readout import component_log_joint
from hybridmix.objectives import Likelihood, Objective
from hybridmix.problem import problem_of
from hybridmix.solvers import Solution
from hybridmix.training.alternating import (
    EachMixture,
    trained_alternately,
    with_mixture,
)
from hybridmix.training.annihilation import annihilated
from hybridmix.training.classes import ClassFit, ClassTrainer
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.families import family_maker
from hybridmix.training.network_options import NetworkOptions
from hybridmix.training.output import trained_jointly, trained_output
from hybridmix.training.record import INTERRUPTED
from hybridmix.training.run import (
    ClassifierOptions,
    ClassifierRun,
    Outcome,
    joined_solution,
)

# A log joint density that hardly varies is not blown up.
_LEAST_SPREAD = 1e-3


class NetworkRun(ClassifierRun):
    """One run of the training of a network: what its steps share.

    Mixtures are fitted by EM as those of a classifier are, class by class, or without
    regard to labels. What follows is not a mixture but a network.
    """

    def __init__(
        self,
        options: ClassifierOptions,
        schema: Schema,
        dataset: TrainingRows,
        init: str | Mixture | Network,
        generator: np.random.Generator,
        pool: Workers,
        names: Sequence[str],
    ) -> None:
        mixture = init.density if isinstance(init, Network) else init
        super().__init__(options, schema, dataset, mixture, generator, pool, names)
        assert options.network is not None, "the options are those of a network"
        self._network: NetworkOptions = options.network

    # EM ---------------------------------------------------------------------------------

    def solve(
        self,
        dataset: TrainingRows,
        validation: Dataset | None,
        unlabelled_weight: float,
        init: str | Mixture | Network,
    ) -> Outcome:
        """Run EM and train a network; one that goes on as a whole has had its EM."""
        discrimination = self._options.discrimination
        if isinstance(init, Network) and _trains_mixtures(discrimination, self._network):
            density = self._continued(_all_rows(dataset, self._network), init.density)
            start = Solution(replace(init, density=density), float("nan"))
            outcome = Outcome(start, (), ())  # type: ignore[arg-type]
        else:
            mixture = init.density if isinstance(init, Network) else init
            outcome = self.solve_likelihood(dataset, mixture, unlabelled_weight)
        if discrimination.is_generative:
            return outcome
        solution, bic, messages = outcome
        return self.discriminated(
            discrimination,
            dataset,
            validation,
            solution.model,
            unlabelled_weight,
            bic,
            messages,
        )

    def solve_likelihood(
        self, dataset: TrainingRows, init: str | Mixture, unlabelled_weight: float
    ) -> Outcome:
        """Fit the classes, or all rows without regard to their labels."""
        if self._network.mixtures == "classes":
            return super().solve_likelihood(dataset, init, unlabelled_weight)
        rows = _all_rows(dataset, self._network, unlabelled_weight)
        fits, family = self._fit_without_labels(rows, init)
        joint = joined_classes(family, [fit.model for fit in fits], np.ones(len(fits)))
        model = replace(joint, log_class_prior=np.full(len(fits), -np.log(len(fits))))
        solution = joined_solution(model, fits)
        messages = self._messages(solution)
        if self._network.training == "alternating":
            # Its start is not meant to have converged.
            messages = tuple(m for m in messages if m == INTERRUPTED)
        return Outcome(solution, (), messages)

    def _fit_without_labels(
        self, rows: TrainingRows, init: str | Mixture
    ) -> tuple[list[ClassFit], Family]:
        """Fit one mixture to all rows, or one for each class from starts of their own."""
        options, estimation = self._options, self._options.estimation
        is_new = isinstance(init, str)
        subspace = self._subspace_from_scratch() if is_new else self._given_subspace
        family_of = family_maker(options.structure, self._schema, rows, subspace)
        if self._network.training == "alternating":
            # What follows has an EM of its own.
            estimation = replace(estimation, max_iter=1)
        trainer = ClassTrainer(
            family_of,
            estimation.solver(),
            estimation.n_init,
            self.generator,
            self.pool,
        )
        n_mixtures = 1 if self._network.mixtures == "pool" else len(self._names)
        fits = []
        for label, numbers in enumerate(options.n_components[:n_mixtures]):
            start = init if isinstance(init, str) else _alone(init, label)
            fits += trainer.fit(rows, [numbers], start, ["The table"])
        return fits, family_of(float(np.mean([f.model.n_components for f in fits])))

    # Networks ---------------------------------------------------------------------------

    def discriminated(
        self,
        discrimination: Discrimination,
        dataset: TrainingRows,
        validation: Dataset | None,
        start: Mixture | Network,
        unlabelled_weight: float,
        bic: tuple[Mapping[int, float], ...] = (),
        messages: tuple[str, ...] = (),
    ) -> Outcome:
        """Train a network from a mixture, or from another network."""
        density = start.density if isinstance(start, Network) else start
        objective = discrimination.blend(self._n_columns(density), unlabelled_weight)
        network = start if isinstance(start, Network) else self._built(start, dataset)
        # A user who has interrupted EM waits for the output layer alone: without it
        # there is no classifier.
        is_over = INTERRUPTED in messages

        def trained(network: Network) -> Solution[Network]:
            return self._trained(
                network, discrimination, dataset, objective, unlabelled_weight, is_over
            )

        def retrained(network: Network) -> Solution[Network]:
            mixture = self._refitted(network.density, dataset, unlabelled_weight)
            return trained(with_mixture(network, mixture))

        solution = trained(network)
        if self._network.annihilate == "bic" and not (is_over or solution.interrupted):
            solution = annihilated(
                solution, retrained, dataset, unlabelled_weight, self.pool
            )
        if solution.interrupted and not is_over:
            messages = (*messages, INTERRUPTED)
        # Outcomes of a network run hold networks.
        return Outcome(solution, bic, messages)  # type: ignore[arg-type]

    def _trained(
        self,
        network: Network,
        discrimination: Discrimination,
        dataset: TrainingRows,
        objective: Objective,
        unlabelled_weight: float,
        output_only: bool,
    ) -> Solution[Network]:
        """Train the layers of a network, as far as the training asks for."""
        if self._network.training == "alternating" and not output_only:
            return trained_alternately(
                network,
                _all_rows(dataset, self._network, unlabelled_weight),
                dataset,
                objective,
                self._network,
                discrimination.n_steps,
                self.pool,
            )
        solution = trained_output(network, dataset, objective, self.pool)
        if output_only or solution.interrupted:
            return solution
        if not _trains_mixtures(discrimination, self._network):
            return solution
        return trained_jointly(
            solution.model, dataset, objective, discrimination, self.pool
        )

    def _refitted(
        self, mixture: Mixture, dataset: TrainingRows, unlabelled_weight: float
    ) -> Mixture:
        """Go on with the EM of a mixture, such as one that has lost a component."""
        objective: Objective = Likelihood(unlabelled_weight)
        is_by_class = self._network.mixtures == "classes"
        if not is_by_class:
            objective = EachMixture()
        rows = _all_rows(dataset, self._network, unlabelled_weight)
        problem = problem_of(rows, objective, mixture, self.pool, is_by_class)
        solver = self._options.estimation.solver()
        solution = solver.solve(problem, mixture, generator=self.generator)
        if solution.interrupted:
            raise KeyboardInterrupt
        return solution.model

    def _built(self, mixture: Mixture, dataset: TrainingRows) -> Network:
        """Return a network on a mixture, whose output layer knows nothing yet."""
        options = self._network
        embedding = built_embedding(
            options.features,
            options.chosen_temperature(mixture, self._schema),
            options.mixtures == "linked",
            mixture,
            self._schema,
            dataset,
            self.pool,
        )
        penalties = options.penalties(embedding, self._label_weight)
        output = OutputLayer.zero(len(self._names), *penalties)
        return Network(mixture, embedding, output)

    @property
    def _label_weight(self) -> float:
        """What the log probability of a label counts in the objective."""
        discrimination = self._options.discrimination
        is_hybrid = discrimination.objective == "hybrid"
        return 1.0 + discrimination.tradeoff if is_hybrid else 1.0


def _trains_mixtures(discrimination: Discrimination, options: NetworkOptions) -> bool:
    """Return whether the objective moves the mixtures as well."""
    # Stations of a search have a training of their own.
    return getattr(discrimination, "training", options.training) == "joint"


def built_embedding(
    kinds: tuple[str, ...],
    temperature: float,
    by_class: bool,
    mixture: Mixture,
    schema: Schema,
    dataset: TrainingRows,
    pool: Workers,
) -> Embedding:
    """Return the features of a mixture that was fitted to some rows.

    Parameters
    ----------
    kinds : tuple of str
        Which features.
    temperature : float
        Of the posteriors.
    by_class : bool
        Whether components of each class have posteriors of their own.
    mixture : Mixture
        Whose components they are.
    schema : Schema
        Of the table.
    dataset : Dataset or BlockedDataset
        The rows, by which log joint densities are standardised.
    pool : Workers
        Threads.
    """
    centre, spread = np.zeros(mixture.n_components), np.ones(mixture.n_components)
    if LOG_JOINT in kinds:
        centre, spread = _log_joint_moments(mixture, dataset, pool)
    reads_cells = LINEAR in kinds or EXPERTS in kinds
    return Embedding(
        kinds,
        temperature,
        by_class,
        centre,
        spread,
        len(schema.real),
        schema.code_sizes,
        mixture if reads_cells else None,
    )


def _log_joint_moments(
    mixture: Mixture, dataset: TrainingRows, pool: Workers
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (J,) of the components' log joint densities."""
    sums = dataset.summed(partial(_LogJointSums.of, mixture=mixture, pool=pool))
    mean = sums.first / dataset.total_weight
    variance = np.maximum(sums.second / dataset.total_weight - mean**2, 0.0)
    return mean, np.maximum(np.sqrt(variance), _LEAST_SPREAD)


@dataclass
class _LogJointSums:
    """Sums (J,) of the components' log joint densities, and of their squares."""

    first: FloatArray
    second: FloatArray

    @classmethod
    def of(cls, dataset: Dataset, mixture: Mixture, pool: Workers) -> _LogJointSums:
        """Add up rows in memory."""
        rows = ChunkedRows(dataset.rows, mixture, pool)
        weights = dataset.filled_weights

        def sums(number: int) -> tuple[FloatArray, FloatArray]:
            log_joint, _ = component_log_joint(mixture, rows.prepared(number, mixture))
            own = weights[rows.chunks[number]]
            return log_joint @ own, np.square(log_joint) @ own

        return cls(*(np.sum(part, axis=0) for part in zip(*rows.map(sums), strict=True)))

    def add(self, other: _LogJointSums) -> None:
        """Add the sums of other rows."""
        self.first += other.first
        self.second += other.second


def _all_rows(
    dataset: TrainingRows, options: NetworkOptions, unlabelled_weight: float = 1.0
) -> TrainingRows:
    """Return rows for mixtures that do not look at labels: all have the same one."""
    if options.mixtures == "classes":
        return dataset
    if unlabelled_weight == 0.0:
        dataset = dataset.labelled()
    return dataset.mapped(partial(_without_labels, unlabelled_weight), n_classes=1)


def _without_labels(unlabelled_weight: float, dataset: Dataset) -> Dataset:
    weights = dataset.weights
    if dataset.unlabelled().n_rows and unlabelled_weight != 1.0:
        factors = np.where(dataset.labels < 0, unlabelled_weight, 1.0)
        weights = dataset.filled_weights * factors
    return Dataset(dataset.rows, np.zeros(dataset.n_rows, np.intp), weights)


def _alone(mixture: Mixture, label: int) -> Mixture:
    """Return the mixture of one class, as a density."""
    return replace(mixture.of_class(label), log_class_prior=np.zeros(1))


def run_of(
    options: ClassifierOptions,
    schema: Schema,
    dataset: TrainingRows,
    init: str | Mixture | Network,
    generator: np.random.Generator,
    pool: Workers,
    names: Sequence[str],
) -> ClassifierRun:
    """Return a run of the training that the options ask for."""
    if options.network is not None:
        return NetworkRun(options, schema, dataset, init, generator, pool, names)
    assert not isinstance(init, Network), "only networks go on from networks"
    return ClassifierRun(options, schema, dataset, init, generator, pool, names)
