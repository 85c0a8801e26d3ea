"""The alternating training of a network, after Caetano (2018).

Every step is an EM step of a mixture for each class, whose proportions have a prior by
the weights of the output layer (the link), and then the optimal output layer. No
objective is improved by both, so that there is no guarantee of convergence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import TrainingRows
from hybridmix.families.base import Parameters
from hybridmix.models.mixture import Mixture
from hybridmix.models.network import Network
from hybridmix.objectives import Objective
from hybridmix.problem import problem_of
from hybridmix.progress import announce
from hybridmix.solvers import Solution
from hybridmix.training.annihilation import component_weights, without_idle
from hybridmix.training.network_options import NetworkOptions
from hybridmix.training.output import trained_output

# Training ends when no step changes parameters by more than this share of their length.
_SMALL_CHANGE = 1e-3
# Proportions of components that nothing speaks for.
_LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class EachMixture(Objective):
    """The likelihood of all rows under the mixture of every class, whatever the label."""

    needs_rivals = True
    signed = False
    parts = ("likelihood",)

    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sums over classes, and a weight of one for each."""
        return log_joint.sum(axis=0, keepdims=True), np.ones(log_joint.shape)


def trained_alternately(
    network: Network,
    rows: TrainingRows,
    labelled: TrainingRows,
    objective: Objective,
    options: NetworkOptions,
    n_steps: int,
    pool: Workers,
) -> Solution[Network]:
    """Alternate between the mixtures and the output layer.

    An interrupt ends it with the last network.

    Parameters
    ----------
    network : Network
        Where to begin; it has a mixture for each class.
    rows : Dataset or BlockedDataset
        All rows, for the mixtures.
    labelled : Dataset or BlockedDataset
        Rows for the output layer.
    objective : Objective
        What the output layer maximises.
    options : NetworkOptions
        Link and annihilation.
    n_steps : int
        Most steps.
    pool : Workers
        Threads.
    """
    values: list[float] = []
    converged = False
    is_new = True
    try:
        for step in range(n_steps):
            before = network
            link = 0.0 if is_new else float(options.link)
            network = with_mixture(network, _em_step(network, rows, link, pool))
            solution = trained_output(network, labelled, objective, pool)
            network, is_new = solution.model, False
            values.append(solution.value)
            announce("alternating", step + 1, n_steps, f"mean value {values[-1]:.4f}")
            if solution.interrupted:
                raise KeyboardInterrupt
            if options.annihilate == "weights":
                network = without_idle(network)
            if _change(before.density, network.density) < _SMALL_CHANGE:
                converged = True
                break
    except KeyboardInterrupt:
        if not values:
            raise
        return Solution(network, values[-1], {"value": values}, interrupted=True)
    last = trained_output(network, labelled, objective, pool)
    return replace(
        last, traces={"value": values}, converged=converged, n_iter=len(values)
    )


def with_mixture(network: Network, mixture: Mixture) -> Network:
    """Return a network with another mixture, which also fills holes."""
    embedding = network.embedding
    if embedding.reads_cells:
        embedding = replace(embedding, filler=mixture)
    return replace(network, density=mixture, embedding=embedding)


def _em_step(network: Network, rows: TrainingRows, link: float, pool: Workers) -> Mixture:
    r"""Return the mixtures after a step of EM to all rows.

    The prior of the proportions adds :math:`\gamma |w_k| / \sum_{k'} |w_{k'}|` rows to
    each component of a class, for centred weights :math:`w`.
    """
    mixture = network.density
    problem = problem_of(rows, EachMixture(), mixture, pool, learn_class_prior=False)
    statistics = problem.assess(mixture).statistics
    stepped = mixture.maximised(statistics, learn_class_prior=False)
    if not link:
        return stepped
    counts, weights = statistics.counts, component_weights(network)
    log_mixing = stepped.log_mixing.copy()
    for label in range(mixture.n_classes):
        here = mixture.part(label)
        total = weights[here].sum()
        added = link * weights[here] / total if total > 0.0 else 0.0
        own = counts[here] + added
        log_mixing[here] = np.log(np.maximum(own / own.sum(), _LEAST_SHARE))
        log_mixing[here] -= np.logaddexp.reduce(log_mixing[here])
    return replace(stepped, log_mixing=log_mixing)


def _change(before: Mixture, after: Mixture) -> float:
    """Return how much the parameters of a mixture have changed, relative to before."""
    if before.n_components != after.n_components:
        return np.inf
    old, new = (np.concatenate(list(_numbers(model))) for model in (before, after))
    return float(np.linalg.norm(new - old) / np.linalg.norm(old))


def _numbers(mixture: Mixture) -> Iterator[FloatArray]:
    yield np.exp(mixture.log_mixing)
    yield from _arrays(mixture.components)


def _arrays(parameters: Parameters) -> Iterator[FloatArray]:
    """Yield all numbers of parameters, and of the factors that these are made of."""
    for field in fields(parameters):  # type: ignore[arg-type]
        value = getattr(parameters, field.name)
        if isinstance(value, np.ndarray):
            yield value.ravel()
        elif isinstance(value, tuple):
            for factor in value:
                yield from _arrays(factor)
