"""Draws of sequences from hidden Markov models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.models.chains import Chains
from hybridmix.models.packed import after, unknown_frames
from hybridmix.models.packing import Packing

# No drawn sequence is longer than this many times the mean length of its class.
_LONGEST = 100


class DrawnSequences(NamedTuple):
    """Drawn sequences.

    Attributes
    ----------
    rows : SequenceRows
        The sequences.
    states : ndarray of shape (F,)
        State of each frame, one sequence after the other.
    """

    rows: SequenceRows
    states: IntArray


def drawn_sequences(
    model: Chains, labels: IntArray, lengths: IntArray, generator: np.random.Generator
) -> DrawnSequences:
    """Draw sequences of given classes (n,) and lengths (n,).

    Where ends are modelled, the paths of states are those of sequences that end there.
    """
    packing = Packing(lengths)
    on_lane = labels[packing.order]
    ends = Ends.of(model, int(lengths.max()))
    start, transition = np.exp(model.log_start), np.exp(model.log_transition)
    mixing = np.exp(model.log_mixing)
    states: IntArray = np.empty(0, np.intp)
    all_states = np.empty(packing.n_frames, np.intp)
    frames: Rows | None = None
    all_frames: Rows | None = None
    for time, n_lanes in enumerate(packing.sizes[:, 0].tolist()):
        own = on_lane[:n_lanes]
        likely = transition[own, states[:n_lanes]] if time else start[own]
        to_come = ends.weights[packing.lengths[:n_lanes] - time - 1, own]
        states = drawn_numbers(likely * to_come, generator)
        mixed = drawn_numbers(mixing[own, states], generator)
        components = (own * model.n_states + states) * model.n_mixed + mixed
        before = None if frames is None else frames[:n_lanes]
        frames = drawn_frames(model, components, before, generator)
        if all_frames is None:
            all_frames = _room_for(packing.n_frames, frames)
        first = int(packing.starts[time, 0])
        here = packing.source[first : first + n_lanes]
        all_states[here] = states
        all_frames.real[:, here], all_frames.codes[:, here] = frames.real, frames.codes
    assert all_frames is not None, "there is at least one frame"
    return DrawnSequences(SequenceRows(all_frames, lengths), all_states)


def _room_for(n_frames: int, frames: Rows) -> Rows:
    """Return memory for complete frames like some others."""
    real = np.empty((len(frames.real), n_frames))
    return Rows(real, None, np.empty((len(frames.codes), n_frames), frames.codes.dtype))


def drawn_frames(
    model: Chains,
    components: IntArray,
    before: Rows | None,
    generator: np.random.Generator,
) -> Rows:
    """Draw a frame from each of the components (n,), given the frames before them."""
    if before is None or not model.autoregressive:
        return model.family.sample(model.components, components, generator)
    n_real, n_codes = len(before.real), len(before.codes)
    pairs = after(before, unknown_frames(n_real, n_codes, len(components)))
    drawn = model.family.draw(pairs, model.components, components, generator)
    return Rows(drawn.real[n_real:], None, drawn.codes)


def drawn_lengths(
    model: Chains, labels: IntArray, generator: np.random.Generator
) -> IntArray:
    r"""Draw lengths (n,) of sequences of given classes.

    They are those of the chains if ends are modelled, and otherwise one more than draws
    from the Poisson distribution of mean :math:`\bar T_c - 1`.
    """
    if not model.models_ends:
        return 1 + generator.poisson(model.mean_lengths[labels] - 1.0)
    level = generator.random(len(labels))
    share, transition = np.exp(model.log_start)[:, None], np.exp(model.log_transition)
    lengths, goes_on = np.ones(len(labels), np.intp), np.ones(len(labels), dtype=bool)
    for _ in range(int(_LONGEST * model.mean_lengths.max())):
        share = share @ transition
        goes_on &= level < share.sum(axis=(1, 2))[labels]
        if not goes_on.any():
            break
        lengths += goes_on
    return lengths


@dataclass(frozen=True)
class Ends:
    r"""How probable it is that chains end after a number of further steps.

    .. math:: h_{0}(s) = e_{cs}, \qquad h_{r}(s) = \sum_{s'} A_{css'}\, h_{r-1}(s')

    All of them are one where ends are not modelled.

    Attributes
    ----------
    weights : ndarray of shape (R, C, K)
        :math:`h_r(s)`, divided by its largest value over the states.
    logs : ndarray of shape (R, C)
        Logs of these largest values.
    """

    weights: FloatArray
    logs: FloatArray

    @classmethod
    def of(cls, model: Chains, longest: int) -> Ends:
        """Return the probabilities of up to this many frames."""
        shape = (longest, model.n_classes, model.n_states)
        if model.log_exit is None:
            return cls(np.broadcast_to(1.0, shape), np.zeros(shape[:2]))
        weights, logs = np.empty(shape), np.empty(shape[:2])
        transition = np.exp(model.log_transition)
        here, log_scale = np.exp(model.log_exit), np.zeros(model.n_classes)
        for step in range(longest):
            largest = here.max(axis=1)
            log_scale = log_scale + np.log(largest)
            weights[step], logs[step] = here / largest[:, None], log_scale
            here = np.matmul(transition, weights[step][:, :, None])[:, :, 0]
        return cls(weights, logs)

    def log_classes(self, model: Chains, lengths: IntArray) -> FloatArray:
        """Return log probabilities (C, n) of the classes, given lengths (n,)."""
        steps = lengths - 1
        starting = np.einsum("ck,nck->cn", np.exp(model.log_start), self.weights[steps])
        logs = np.log(starting) + self.logs[steps].T + model.log_class_prior[:, None]
        return logs - np.logaddexp.reduce(logs, axis=0)


def drawn_numbers(weights: FloatArray, generator: np.random.Generator) -> IntArray:
    """Draw the number of a column for each row of weights (n, K)."""
    steps = np.cumsum(weights, axis=1)
    level = generator.random(len(weights)) * steps[:, -1]
    return np.sum(steps[:, :-1] <= level[:, None], axis=1)
