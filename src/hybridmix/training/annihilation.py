"""Networks with fewer components: which ones to remove, and what is left."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import TrainingRows
from hybridmix.models.base import Model
from hybridmix.models.embedding import EXPERTS, LINEAR, POSTERIOR, Embedding
from hybridmix.models.mixture import Mixture
from hybridmix.models.network import Network
from hybridmix.objectives import Likelihood
from hybridmix.problem import problem_of
from hybridmix.progress import announce
from hybridmix.solvers import Solution

# Centred weights below this share of the largest one are zero.
_ZERO = 1e-6


def reduced(network: Network, kept: IntArray) -> Network:
    """Return a network with some of its components; the others share their proportions.

    Every class of the density has to keep one.
    """
    density, embedding = network.density, network.embedding
    places = _kept_features(embedding, kept)
    output = replace(
        network.output,
        weights=network.output.weights[:, places],
        l1=network.output.l1[places],
        l2=network.output.l2[places],
    )
    embedding = replace(
        embedding, centre=embedding.centre[kept], spread=embedding.spread[kept]
    )
    return Network(_reduced_mixture(density, kept), embedding, output)


def _reduced_mixture(mixture: Mixture, kept: IntArray) -> Mixture:
    sizes = np.bincount(mixture.class_of[kept], minlength=mixture.n_classes)
    offsets = (0, *itertools.accumulate(sizes.tolist()))
    log_mixing = mixture.log_mixing[kept]
    for first, last in itertools.pairwise(offsets):
        log_mixing[first:last] -= np.logaddexp.reduce(log_mixing[first:last])
    return replace(
        mixture,
        components=mixture.components.take(kept),
        log_mixing=log_mixing,
        offsets=offsets,
    )


def _kept_features(embedding: Embedding, kept: IntArray) -> IntArray:
    """Return the numbers of the features that do not need removed components."""
    numbers = []
    for kind, place in embedding.places().items():
        own = np.arange(place.start, place.stop)
        if kind == EXPERTS:
            own = own.reshape(embedding.n_components, -1)[kept].ravel()
        elif kind != LINEAR:
            own = own[kept]
        numbers.append(own)
    return np.concatenate(numbers)


# By weights -----------------------------------------------------------------------------


def component_weights(network: Network) -> FloatArray:
    """Return how much each component (J,) matters for the class of its mixture.

    Posteriors of a mixture sum to one: a constant that is added to all weights moves to
    the bias. Weights are counted from their median within the class.
    """
    density, place = network.density, network.embedding.places()[POSTERIOR]
    own = network.output.weights[:, place]
    weights = own[density.class_of, np.arange(density.n_components)]
    for label in range(density.n_classes):
        here = density.part(label)
        weights[here] -= np.median(weights[here])
    return np.abs(weights)


def without_idle(network: Network) -> Network:
    """Remove components whose centred weight is zero; the heaviest of a class stays.

    Without it, rows of such components would have to go to components that matter.
    """
    density, weights = network.density, component_weights(network)
    kept = np.ones(density.n_components, bool)
    for label in range(density.n_classes):
        here = np.arange(density.n_components)[density.part(label)]
        idle = here[weights[here] <= _ZERO * weights[here].max()]
        heaviest = idle[np.argmax(density.log_mixing[idle])] if len(idle) else None
        kept[[j for j in idle if j != heaviest]] = False
    return network if kept.all() else reduced(network, np.flatnonzero(kept))


# By the criterion -----------------------------------------------------------------------


def criterion(
    network: Network, dataset: TrainingRows, unlabelled_weight: float, pool: Workers
) -> float:
    """Return the Bayesian information criterion of rows and labels; lower is better."""
    problem = problem_of(dataset, Likelihood(unlabelled_weight), network, pool)
    model: Model = network
    log_likelihood = problem.assess(model).value
    return network.n_parameters * np.log(dataset.total_weight) - 2.0 * log_likelihood


def annihilated(
    solution: Solution[Network],
    retrained: Callable[[Network], Solution[Network]],
    dataset: TrainingRows,
    unlabelled_weight: float,
    pool: Workers,
) -> Solution[Network]:
    """Remove the lightest component and train again, as long as the criterion falls.

    Parameters
    ----------
    solution : Solution
        With a trained network.
    retrained : callable
        Trains a network that has lost a component.
    dataset : Dataset or BlockedDataset
        Labelled and unlabelled rows.
    unlabelled_weight : float
        What an unlabelled row counts.
    pool : Workers
        Threads.
    """
    best, n_before = solution, solution.model.n_components
    lowest = criterion(best.model, dataset, unlabelled_weight, pool)
    try:
        while (kept := _all_but_lightest(best.model.density)) is not None:
            smaller = retrained(reduced(best.model, kept))
            value = criterion(smaller.model, dataset, unlabelled_weight, pool)
            if smaller.interrupted or value >= lowest:
                return replace(best, interrupted=smaller.interrupted)
            best, lowest = smaller, value
            n_removed = n_before - best.model.n_components
            announce("annihilation", n_removed, n_before, f"criterion {value:.1f}")
    except KeyboardInterrupt:
        return replace(best, interrupted=True)
    return best


def _all_but_lightest(mixture: Mixture) -> IntArray | None:
    """Return all components but the lightest that has company in its class."""
    alone = np.diff(mixture.offsets)[mixture.class_of] == 1
    if alone.all():
        return None
    lightest = np.argmin(np.where(alone, np.inf, mixture.log_weights))
    return np.delete(np.arange(mixture.n_components), lightest)
