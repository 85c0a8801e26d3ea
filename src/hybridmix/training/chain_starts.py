"""Where the training of hidden Markov models begins: segmental k-means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Dataset
from hybridmix.data.sequence_blocks import LengthTotals, TrainingSequenceRows
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.evaluation import ChunkedRows
from hybridmix.families import Family
from hybridmix.families.base import Parameters
from hybridmix.models.chains import Chains
from hybridmix.models.packed import with_previous
from hybridmix.training.starts import sampled, start_memberships
from hybridmix.training.topologies import Topology, first_tables, runs_left_to_right

# Rounds in which frames move to the state of the best path.
_ROUNDS = 2


@dataclass(frozen=True)
class ChainShape:
    """The shape of hidden Markov models.

    Attributes
    ----------
    n_states : int
        States of each class.
    n_mixed : int
        Components of each state.
    topology : str or ndarray of shape (K, K)
        Name or mask of the possible transitions.
    with_exits : bool
        Whether ends of sequences are modelled.
    autoregressive : bool
        Whether frames depend on the frame before.
    concentration : float
        What the Dirichlet priors add to every count.
    """

    n_states: int
    n_mixed: int
    topology: Topology
    with_exits: bool
    autoregressive: bool
    concentration: float


def frames_read(dataset: SequenceDataset, shape: ChainShape) -> Dataset:
    """Return the frames of sequences in memory as components read them."""
    frames = dataset.frames()
    if not shape.autoregressive:
        return frames
    return Dataset(with_previous(dataset.rows), frames.labels, frames.weights)


def start_chains(
    dataset: TrainingSequenceRows,
    family: Family,
    shape: ChainShape,
    log_class_prior: FloatArray,
    generator: np.random.Generator,
    pool: Workers,
) -> Chains:
    """Return first hidden Markov models of labelled sequences, by segmental k-means.

    Frames are assigned to states: by their time, where states follow each other, or by
    k-means. Then the most probable paths assign them anew, for a few rounds. Of sequences
    in blocks, a sample is looked at.
    """
    everything = dataset.labelled()
    labelled = everything.sample()
    states = _first_states(labelled, family, shape, generator)
    model = _chains_of_states(labelled, states, family, shape, log_class_prior, generator)
    for _ in range(_ROUNDS if shape.n_states > 1 else 0):
        states = own_paths(model, labelled, pool)
        model = _chains_of_states(
            labelled, states, family, shape, log_class_prior, generator
        )
    return replace(model, mean_lengths=_mean_lengths(everything, len(log_class_prior)))


def own_paths(model: Chains, dataset: SequenceDataset, pool: Workers) -> IntArray:
    """Return the most probable states (F,) of labelled sequences, in their own class."""
    rows = ChunkedRows(dataset.rows, model.of_class(0), pool)

    def paths(number: int) -> IntArray:
        labels = dataset.labels[rows.chunks[number]]
        return model.paths(rows.prepared(number, model), labels)[1]

    return np.concatenate(list(rows.map(paths)))


def _first_states(
    dataset: SequenceDataset,
    family: Family,
    shape: ChainShape,
    generator: np.random.Generator,
) -> IntArray:
    """Return a first state of each frame; -1 for frames that k-means has not seen."""
    lengths, n_states = dataset.rows.lengths, shape.n_states
    time = np.arange(int(lengths.sum())) - np.repeat(dataset.rows.starts, lengths)
    if n_states == 1 or runs_left_to_right(shape.topology):
        states = time * n_states // np.repeat(lengths, lengths)
        return np.minimum(states, n_states - 1)
    frames = dataset.frames()
    states = np.full(frames.n_rows, -1)
    for label in np.unique(frames.labels):
        first = int(np.searchsorted(frames.labels, label))
        index, members = start_memberships(
            frames.of_class(label), family, n_states, "kmeans", generator
        )
        states[first + index] = members.argmax(axis=0)
    return states


def _chains_of_states(
    dataset: SequenceDataset,
    states: IntArray,
    family: Family,
    shape: ChainShape,
    log_class_prior: FloatArray,
    generator: np.random.Generator,
) -> Chains:
    """Return the models of frames (F,) whose states are known, or -1 if they are not."""
    n_classes = len(log_class_prior)
    frames, read = dataset.frames(), frames_read(dataset, shape)
    parts, proportions = [], []
    for label in range(n_classes):
        first = int(np.searchsorted(frames.labels, label))
        for state in range(shape.n_states):
            own = frames.of_class(label)
            members = first + np.flatnonzero(states[first : first + own.n_rows] == state)
            if len(members) == 0:
                # A state without frames begins with a trace of all of its class.
                members = first + np.arange(own.n_rows)
            components, shares = _components(
                frames, read, members, family, shape, generator
            )
            parts.append(components)
            proportions.append(shares)
    mixing = np.array(proportions).reshape(n_classes, shape.n_states, shape.n_mixed)
    lengths = _mean_lengths(dataset, n_classes)
    tables = [
        first_tables(shape.topology, shape.n_states, float(length), shape.with_exits)
        for length in lengths
    ]
    return Chains(
        family,
        family.concatenate(parts, [1.0] * len(parts)),
        np.log(mixing / mixing.sum(axis=2, keepdims=True)),
        np.stack([start for start, _ in tables]),
        np.stack([moves for _, moves in tables]),
        log_class_prior,
        lengths,
        shape.concentration,
        shape.autoregressive,
    )


def _components(
    frames: Dataset,
    read: Dataset,
    members: IntArray,
    family: Family,
    shape: ChainShape,
    generator: np.random.Generator,
) -> tuple[Parameters, FloatArray]:
    """Return the components of a state with these frames, and how much weight each has.

    Clusters are those of the frames; components also read the frames before them.
    """
    members = members[sampled(len(members), generator)]
    index, memberships = start_memberships(
        frames.take(members), family, shape.n_mixed, "kmeans", generator
    )
    shares = memberships.sum(axis=1) + shape.concentration
    return family.start(read.rows[members[index]], memberships), shares


def _mean_lengths(dataset: TrainingSequenceRows, n_classes: int) -> FloatArray:
    """Return the mean number of frames of the labelled sequences of each class, (C,)."""
    totals = dataset.summed(partial(LengthTotals.of, n_classes=n_classes))
    return totals.frames[:-1] / totals.weights[:-1]
