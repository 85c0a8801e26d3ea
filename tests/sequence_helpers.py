"""Sequences, hidden Markov models near them, and slow references of both."""

import itertools

import numpy as np
from helpers import N_CATEGORIES, D, families, make_rows
from scipy.special import logsumexp
from test_families import reference_log_density

from hybridmix.data.rows import Rows
from hybridmix.data.sequence_rows import SequenceDataset, SequenceRows
from hybridmix.families import (
    AutoregressiveGaussian,
    Categorical,
    FullGaussian,
    Product,
    VariancePrior,
)
from hybridmix.models.chains import Chains
from hybridmix.models.packed import with_previous

TOPOLOGIES = ("left-right", "ergodic", "mask")


def covering_cases(**factors):
    """Return cases in which any two levels of different factors meet at least once."""
    names = list(factors)
    cases = list(itertools.product(*factors.values()))
    order = np.random.default_rng(0).permutation(len(cases))
    met, chosen = set(), []
    for number in order.tolist():
        pairs = set(itertools.combinations(zip(names, cases[number], strict=True), 2))
        # The first cases are those that bring in the most.
        if not pairs <= met:
            met |= pairs
            chosen.append(cases[number])
    return chosen


def emissions():
    """All kinds of families, and frames that depend on the one before."""
    prior = VariancePrior(np.linspace(0.5, 1.5, 2 * D), 0.7)
    pairs = [AutoregressiveGaussian(FullGaussian(prior, tied)) for tied in (False, True)]
    return {
        **families(),
        "autoregressive": pairs[0],
        "autoregressive, tied x categorical": Product(
            (pairs[1], Categorical(N_CATEGORIES, 0.8))
        ),
    }


def read_frames(model, rows):
    """Frames as the family of a model reads them."""
    return with_previous(rows) if model.autoregressive else rows.frames


def make_sequences(lengths, missing=0.0, seed=0):
    """Sequences of frames like those of `make_rows`."""
    lengths = np.asarray(lengths, np.intp)
    return SequenceRows(make_rows(int(lengths.sum()), missing, seed=seed), lengths)


def transition_tables(topology, n_states, with_exits, rng):
    """Random log probabilities of first states and of moves."""
    start, mask = np.ones(n_states), np.ones((n_states, n_states))
    if topology == "left-right":
        start, mask = np.eye(n_states)[0], np.eye(n_states) + np.eye(n_states, k=1)
    elif topology == "mask":
        # The last state is never the first one, and cannot be left; a cycle is missing.
        start[-1] = 0.0
        mask = np.triu(mask)
        mask[0, -1] = 1.0
    if with_exits:
        mask = np.column_stack([mask, np.ones(n_states)])
    with np.errstate(divide="ignore"):
        return [
            np.log(own / own.sum(axis=-1, keepdims=True))
            for own in (
                table * rng.uniform(0.3, 1.0, table.shape) for table in (start, mask)
            )
        ]


def make_chains(
    name, topology="ergodic", with_exits=False, n_mixed=1, n_classes=2, n_states=3, seed=0
):
    """Hidden Markov models with random, overlapping components."""
    rng = np.random.default_rng(seed)
    family, rows = emissions()[name], make_rows(200, seed=1)
    is_autoregressive = name.startswith("autoregressive")
    if is_autoregressive:
        rows = with_previous(SequenceRows(rows, np.full(20, 10)))
    n_components = n_classes * n_states * n_mixed
    members = rng.dirichlet(np.full(n_components, 0.4), size=rows.n_rows).T
    tables = [
        transition_tables(topology, n_states, with_exits, rng) for _ in range(n_classes)
    ]
    return Chains(
        family,
        family.start(rows, members),
        np.log(rng.dirichlet(np.full(n_mixed, 5.0), size=(n_classes, n_states))),
        np.stack([start for start, _ in tables]),
        np.stack([moves for _, moves in tables]),
        np.log(rng.dirichlet(np.full(n_classes, 5.0))),
        np.linspace(4.0, 6.0, n_classes),
        0.3,
        is_autoregressive,
    )


def make_sequence_dataset(n_sequences=24, missing=0.0, n_classes=2, unlabelled=True):
    """Labelled and unlabelled sequences of one to eight frames, with weights."""
    rng = np.random.default_rng(3)
    rows = make_sequences(rng.integers(1, 9, n_sequences), missing, seed=3)
    labels = np.arange(n_sequences) % n_classes
    if unlabelled:
        labels[::4] = -1
    weights = rng.uniform(0.5, 1.5, n_sequences)
    return SequenceDataset.arrange(rows.frames, rows.lengths, labels, weights)


def reference_components(model, rows):
    """Log densities (J, F) of frames in components, one by one."""
    if not model.autoregressive:
        return reference_log_density(model.components, rows.frames)
    first, *others = getattr(model.components, "factors", [model.components])
    pairs = with_previous(rows)
    is_before = np.arange(2 * D)[:, None] < D
    before = Rows(pairs.real, pairs.observed & is_before, pairs.codes)
    both, one = (reference_log_density(first.joint, own) for own in (pairs, before))
    return both - one + sum(reference_log_density(own, rows.frames) for own in others)


def reference_emissions(model, rows):
    """Log densities of frames in states (C, K, F), and posteriors of components."""
    by_component = reference_components(model, rows)
    by_component = by_component.reshape(*model.log_mixing.shape, -1)
    by_component += model.log_mixing[..., None]
    by_state = logsumexp(by_component, axis=2)
    return by_state, np.exp(by_component - by_state[:, :, None])


class Enumeration:
    """One sequence in one class, by all paths of states."""

    def __init__(self, model, label, log_emission):
        n_states, n_times = log_emission.shape
        paths = np.array(list(itertools.product(range(n_states), repeat=n_times)))
        scores = np.array([_path_score(model, label, log_emission, p) for p in paths])
        self.log_likelihood = logsumexp(scores)
        self.best, self.best_score = paths[scores.argmax()], scores.max()
        share = np.exp(scores - self.log_likelihood)
        self.states = np.zeros((n_states, n_times))
        self.transitions = np.zeros((n_states, n_states))
        for path, own in zip(paths, share, strict=True):
            self.states[path, np.arange(n_times)] += own
            np.add.at(self.transitions, (path[:-1], path[1:]), own)


def _path_score(model, label, log_emission, path):
    moves = model.log_moves[label]
    score = model.log_start[label, path[0]]
    score += sum(log_emission[state, t] for t, state in enumerate(path))
    score += sum(moves[before, here] for before, here in itertools.pairwise(path))
    return score + (moves[path[-1], -1] if model.models_ends else 0.0)


def reference_log_likelihood(model, label, log_emission):
    """Textbook forward pass over one sequence (K, T), in logarithms."""
    log_alpha = model.log_start[label] + log_emission[:, 0]
    for here in log_emission.T[1:]:
        moved = log_alpha[:, None] + model.log_transition[label]
        log_alpha = logsumexp(moved, axis=0) + here
    if model.models_ends:
        log_alpha = log_alpha + model.log_exit[label]
    return logsumexp(log_alpha)
