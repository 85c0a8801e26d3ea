"""The same hidden Markov models in several libraries, ready for iterations of EM."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from models import rows_of
from sequence_data import Sequences

# Probability of staying in a state at the start.
STAY = 0.9


@dataclass(frozen=True)
class Start:
    """Parameters that EM begins with.

    Attributes
    ----------
    first : ndarray of shape (K,)
        Probabilities of the first state, in all classes.
    moves : ndarray of shape (K, K)
        Probabilities of the next state, in all classes.
    means : ndarray of shape (C, K, M, d)
        Of the components of each state, which have equal weights.
    covariances : ndarray of shape (C, K, d, d)
        Shared by the components of a state.
    """

    first: np.ndarray
    moves: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


@dataclass(frozen=True)
class Engine:
    """A library that is ready to work.

    Attributes
    ----------
    iterate : callable
        Runs this many iterations of EM, from the same start every time.
    log_likelihood : callable
        Returns the log-likelihood of all sequences in their classes, at the start.
    """

    iterate: Callable[[int], None]
    log_likelihood: Callable[[], float]


def start_of(sequences: Sequences, n_states: int, n_mixed: int) -> Start:
    """Cut sequences into equal parts, one for each state; move components a little."""
    generator = np.random.default_rng(0)
    d = sequences.X[0].shape[1]
    means, covariances = [], []
    for label in np.unique(sequences.y):
        X = [x for x, y in zip(sequences.X, sequences.y, strict=True) if y == label]
        frames = np.concatenate(X)
        state = np.concatenate([np.arange(len(x)) * n_states // len(x) for x in X])
        for own in (frames[state == k] for k in range(n_states)):
            covariance = np.cov(own.T) + 0.01 * np.eye(d)
            moved = generator.multivariate_normal(np.zeros(d), covariance, n_mixed)
            means.append(own.mean(axis=0) + 0.5 * moved * (n_mixed > 1))
            covariances.append(covariance)
    leave = (1.0 - STAY) / max(n_states - 1, 1)
    return Start(
        np.full(n_states, 1.0 / n_states),
        leave + (STAY - leave) * np.eye(n_states) if n_states > 1 else np.ones((1, 1)),
        np.reshape(means, (-1, n_states, n_mixed, d)),
        np.reshape(covariances, (-1, n_states, d, d)),
    )


def ours(sequences: Sequences, start: Start, covariance: str) -> Engine:
    from hybridmix._parallel import Workers
    from hybridmix.data.sequence_rows import SequenceDataset
    from hybridmix.families import DiagonalGaussian, FullGaussian, VariancePrior
    from hybridmix.families.moments import DiagonalParameters, FullParameters
    from hybridmix.models.chains import Chains
    from hybridmix.objectives import Likelihood
    from hybridmix.problem import Problem

    n_classes, n_states, n_mixed, d = start.means.shape
    means = start.means.reshape(-1, d)
    covariances = np.repeat(start.covariances.reshape(-1, d, d), n_mixed, axis=0)
    prior = VariancePrior(np.ones(d))
    if covariance == "diag":
        variances = np.diagonal(covariances, axis1=1, axis2=2).copy()
        family, components = (
            DiagonalGaussian(prior),
            DiagonalParameters(means, variances),
        )
    else:
        family, components = FullGaussian(prior), FullParameters.of(means, covariances)
    lengths = np.array([len(x) for x in sequences.X])
    log_class_prior = np.full(n_classes, -np.log(n_classes))
    model = Chains(
        family,
        components,
        np.full((n_classes, n_states, n_mixed), -np.log(n_mixed)),
        np.tile(np.log(start.first), (n_classes, 1)),
        np.tile(np.log(start.moves), (n_classes, 1, 1)),
        log_class_prior,
        np.full(n_classes, lengths.mean()),
        concentration=1e-3,
    )
    frames = rows_of(np.concatenate(sequences.X))
    dataset = SequenceDataset.arrange(frames, lengths, sequences.y)
    problem = Problem(dataset, Likelihood(), model, Workers(1))

    def iterate(iterations: int) -> None:
        current = model
        for _ in range(iterations):
            current = current.maximised(problem.assess(current).statistics)

    def log_likelihood() -> float:
        return problem.assess(model).value - float(log_class_prior[sequences.y].sum())

    return Engine(iterate, log_likelihood)


def hmmlearn(
    sequences: Sequences, start: Start, covariance: str, implementation: str
) -> Engine:
    """Return models of hmmlearn, one for each class."""
    from hmmlearn import hmm

    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    n_classes, n_states, n_mixed, _ = start.means.shape
    parts = []
    for label in range(n_classes):
        own = sequences.take(np.flatnonzero(sequences.y == label))
        parts.append((np.concatenate(own.X), [len(x) for x in own.X]))

    def model(label: int, iterations: int):
        options = {
            "covariance_type": covariance,
            "n_iter": iterations,
            "tol": -np.inf,
            "init_params": "",
            "implementation": implementation,
        }
        covariances = start.covariances[label]
        if covariance == "diag":
            covariances = np.diagonal(covariances, axis1=1, axis2=2).copy()
        if n_mixed == 1:
            made = hmm.GaussianHMM(n_states, **options)
            made.means_, made.covars_ = start.means[label, :, 0], covariances
        else:
            made = hmm.GMMHMM(n_states, n_mixed, **options)
            made.means_ = start.means[label].copy()
            made.covars_ = np.repeat(covariances[:, None], n_mixed, axis=1)
            made.weights_ = np.full((n_states, n_mixed), 1.0 / n_mixed)
        made.startprob_, made.transmat_ = start.first, start.moves
        return made

    def iterate(iterations: int) -> None:
        for label, (frames, lengths) in enumerate(parts):
            model(label, iterations).fit(frames, lengths)

    def log_likelihood() -> float:
        total = 0.0
        for label, (frames, lengths) in enumerate(parts):
            made = model(label, 1)
            made.n_features = frames.shape[1]
            made._init(frames, lengths)
            total += made.score(frames, lengths)
        return total

    return Engine(iterate, log_likelihood)


def dynamax(sequences: Sequences, start: Start, covariance: str) -> Engine:
    """Return a compiled model of dynamax in double precision, for a single class."""
    # A step on several threads would not be comparable.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import jax

    jax.config.update("jax_enable_x64", True)
    from dynamax.hidden_markov_model import DiagonalGaussianHMM, GaussianHMM

    n_classes, n_states, _, d = start.means.shape
    if n_classes > 1:
        raise ValueError("dynamax is measured on one class only")
    covariances = start.covariances[0]
    if covariance == "diag":
        deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        model = DiagonalGaussianHMM(n_states, d)
        spread = {"emission_scale_diags": jax.numpy.asarray(deviations)}
    else:
        model = GaussianHMM(n_states, d)
        spread = {"emission_covariances": jax.numpy.asarray(covariances)}
    parameters, properties = model.initialize(
        initial_probs=jax.numpy.asarray(start.first),
        transition_matrix=jax.numpy.asarray(start.moves),
        emission_means=jax.numpy.asarray(start.means[0, :, 0]),
        **spread,
    )
    frames = jax.numpy.asarray(np.stack(sequences.X))
    first_state = model.initialize_m_step_state(parameters, properties)

    @jax.jit
    def step(parameters, state):
        statistics, _ = jax.vmap(partial(model.e_step, parameters))(frames)
        return model.m_step(parameters, properties, statistics, state)

    def iterate(iterations: int) -> None:
        current, state = parameters, first_state
        for _ in range(iterations):
            current, state = step(current, state)
        jax.block_until_ready(current)

    def log_likelihood() -> float:
        each = jax.vmap(partial(model.marginal_log_prob, parameters))(frames)
        return float(each.sum())

    return Engine(iterate, log_likelihood)


ENGINES: dict[str, Callable[..., Engine]] = {
    "ours": ours,
    "hmmlearn_scaling": partial(hmmlearn, implementation="scaling"),
    "hmmlearn_log": partial(hmmlearn, implementation="log"),
    "dynamax": dynamax,
}
