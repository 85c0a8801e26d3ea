"""Training of networks: EM, then the output layer, then both layers together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema
from hybridmix.evaluation import ChunkedRows
from hybridmix.families import Family
from hybridmix.models.embedding import EXPERTS, LINEAR, LOG_JOINT, Embedding
from hybridmix.models.mixture import Mixture, joined_classes
from hybridmix.models.network import Network
from hybridmix.models.output import OutputLayer
from hybridmix.models.readout import Readout, component_log_joint
from hybridmix.objectives import Objective
from hybridmix.problem import Problem
from hybridmix.solvers import LimitedMemoryBFGS, Solution
from hybridmix.training.classes import ClassFit, ClassTrainer
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.families import family_maker
from hybridmix.training.network_options import NetworkOptions
from hybridmix.training.record import INTERRUPTED
from hybridmix.training.run import (
    ClassifierOptions,
    ClassifierRun,
    Outcome,
    joined_solution,
)

# The output layer is solved to this precision of the mean value, which takes little time
# compared with the mixtures.
_OUTPUT_STEPS, _OUTPUT_TOL = 500, 1e-7
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
        dataset: Dataset,
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
        dataset: Dataset,
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
        self, dataset: Dataset, init: str | Mixture, unlabelled_weight: float
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
        self, rows: Dataset, init: str | Mixture
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
        dataset: Dataset,
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
        solution = trained_output(network, dataset, objective, self.pool)
        # A user who has interrupted EM waits for the output layer alone: without it
        # there is no classifier.
        is_over = solution.interrupted or INTERRUPTED in messages
        if not is_over and _trains_mixtures(discrimination, self._network):
            solution = trained_jointly(
                solution.model, dataset, objective, discrimination, self.pool
            )
        if solution.interrupted and INTERRUPTED not in messages:
            messages = (*messages, INTERRUPTED)
        # Outcomes of a network run hold networks.
        return Outcome(solution, bic, messages)  # type: ignore[arg-type]

    def _built(self, mixture: Mixture, dataset: Dataset) -> Network:
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


def trained_output(
    network: Network, dataset: Dataset, objective: Objective, pool: Workers
) -> Solution[Network]:
    """Solve the output layer to optimality; the mixtures stay as they are.

    Its traces have no likelihood, which does not change.
    """
    readout = network.readout
    labelled = dataset.labelled()
    problem = Problem(labelled, objective, readout, pool)
    solution = LimitedMemoryBFGS(_OUTPUT_STEPS, _OUTPUT_TOL).solve(problem, readout)
    found: Readout = solution.model
    traces = {k: v for k, v in solution.traces.items() if k in _KEPT_TRACES}
    output = found.output.settled()
    return Solution(
        replace(network, output=output),
        solution.value,
        traces,
        converged=solution.converged,
        interrupted=solution.interrupted,
        n_iter=solution.n_iter,
    )


_KEPT_TRACES = ("value", "training_error")


def trained_jointly(
    network: Network,
    dataset: Dataset,
    objective: Objective,
    discrimination: Discrimination,
    pool: Workers,
) -> Solution[Network]:
    """Train both layers by L-BFGS, then solve the output layer for what it has led to."""
    problem = Problem(dataset, objective, network, pool)
    solution = discrimination.chosen_solver().solve(problem, network)
    model: Network = solution.model
    model = replace(model, output=model.output.settled())
    if solution.interrupted:
        return replace(solution, model=model)
    last = trained_output(model, dataset, objective, pool)
    return replace(solution, model=last.model, interrupted=last.interrupted)


def built_embedding(
    kinds: tuple[str, ...],
    temperature: float,
    by_class: bool,
    mixture: Mixture,
    schema: Schema,
    dataset: Dataset,
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
    dataset : Dataset
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
    mixture: Mixture, dataset: Dataset, pool: Workers
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (J,) of the components' log joint densities."""
    rows = ChunkedRows(dataset.rows, mixture, pool)
    weights = dataset.filled_weights
    total = weights.sum()

    def sums(number: int) -> tuple[FloatArray, FloatArray]:
        log_joint, _ = component_log_joint(mixture, rows.prepared(number, mixture))
        own = weights[rows.chunks[number]]
        return log_joint @ own, np.square(log_joint) @ own

    both = [np.sum(part, axis=0) / total for part in zip(*rows.map(sums), strict=True)]
    mean, square = both
    variance = np.maximum(square - mean**2, 0.0)
    return mean, np.maximum(np.sqrt(variance), _LEAST_SPREAD)


def _all_rows(
    dataset: Dataset, options: NetworkOptions, unlabelled_weight: float = 1.0
) -> Dataset:
    """Return rows for mixtures that do not look at labels: all have the same one."""
    if options.mixtures == "classes":
        return dataset
    if unlabelled_weight == 0.0:
        dataset = dataset.labelled()
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
    dataset: Dataset,
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
