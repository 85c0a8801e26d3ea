"""Forward and backward passes over packed sequences.

Arrays of states have the shape (P, K, F): planes, states, columns of a `Packing`. A plane
is a class that all sequences are compared with; where every sequence looks at its own
class only, there is one plane, and the groups of the packing are the classes. Parameters
of chains have the shape (G, P, ...) accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.models.packing import Packing
from hybridmix.models.time_steps import (
    follow_back,
    step_backward,
    step_forward,
    step_to_best,
    step_to_posteriors,
)

# Log densities of a frame that are lower than this, compared with its most probable
# state, are raised to it. Sequences in which that shows are passed again in logarithms.
_LOWEST = -600.0
# Log likelihoods that differ by less are the same.
_SAME = 1e-10
# Where so little of the mass of a frame is left, digits may be lost: such sequences are
# passed again in logarithms.
_SMALLEST = 1e-200
# Probabilities of the states of a frame sum to one up to this.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class ChainWeights:
    """Parameters of Markov chains, for the groups and planes of a packing.

    Attributes
    ----------
    log_start : ndarray of shape (G, P, K)
        Log probabilities of the first state.
    log_transition : ndarray of shape (G, P, K, K)
        Log probabilities of the next state, which with that of an end sum to one.
    log_exit : ndarray of shape (G, P, K) or None
        Log probabilities that the sequence ends after a state; None if ends are not
        modelled.
    """

    log_start: FloatArray
    log_transition: FloatArray
    log_exit: FloatArray | None

    def on_lanes(self, logs: FloatArray, packing: Packing) -> FloatArray:
        """Spread values (G, P, K) of groups over the lanes, (P, K, n) or (P, K, 1)."""
        if len(logs) == 1:
            return logs[0][:, :, None]
        return logs[packing.group_of].transpose(1, 2, 0)


@dataclass(frozen=True)
class ForwardPass:
    """What a forward pass leaves for the backward pass.

    Attributes
    ----------
    packing : Packing
        Order of the frames.
    chains : ChainWeights
        Parameters of the chains.
    log_likelihood : ndarray of shape (P, n)
        Log density of each sequence, by lane.
    emission : ndarray of shape (P, K, F)
        Emission densities, divided by the largest one of the frame in its plane.
    alpha : ndarray of shape (P, K, F)
        Probabilities of the states given the frames up to this one.
    scale : ndarray of shape (P, F)
        Density of each frame given those before, divided like the emissions.
    end : ndarray of shape (P, n) or None
        Probability of an end after the last frame.
    is_exact : ndarray of bool, shape (n,)
        False for lanes whose scaled numbers have become too small to be trusted.
    """

    packing: Packing
    chains: ChainWeights
    log_likelihood: FloatArray
    emission: FloatArray
    alpha: FloatArray
    scale: FloatArray
    end: FloatArray | None
    is_exact: BoolArray


def forward(
    packing: Packing, log_emission: FloatArray, chains: ChainWeights
) -> ForwardPass:
    """Pass forward with scaled probabilities; this uses up `log_emission` (P, K, F)."""
    n = packing.n_sequences
    largest = log_emission.max(axis=1)
    emission = np.ascontiguousarray(log_emission)
    emission -= largest[:, None]
    is_raised = not emission.min() >= _LOWEST
    np.maximum(emission, _LOWEST, out=emission)
    np.exp(emission, out=emission)
    alpha, scale, end = _scaled_pass(packing, emission, chains)
    with np.errstate(all="ignore"):
        log_scale = np.log(scale)
    largest += log_scale
    log_likelihood = _sums_by_lane(packing, largest)
    is_exact = np.ones(n, dtype=bool)
    is_small = ~(scale > _SMALLEST)
    if is_small.any():
        is_exact[packing.lane[is_small.any(axis=0)]] = False
    if end is not None:
        with np.errstate(divide="ignore"):
            log_likelihood += np.log(end)
        is_exact &= np.all(end > _SMALLEST, axis=0)
    if is_raised:
        misled = _misled_lanes(packing, emission, chains, log_scale, end, is_exact)
        is_exact[misled] = False
    return ForwardPass(
        packing, chains, log_likelihood, emission, alpha, scale, end, is_exact
    )


def _scaled_pass(
    packing: Packing, emission: FloatArray, chains: ChainWeights
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return `alpha`, `scale` and `end` of a `ForwardPass` over emissions (P, K, F)."""
    n = packing.n_sequences
    alpha, scale = np.empty_like(emission), np.empty_like(emission[:, 0])
    start = np.exp(chains.on_lanes(chains.log_start, packing))
    with np.errstate(all="ignore"):
        here = alpha[:, :, :n]
        np.multiply(start, emission[:, :, :n], out=here)
        np.add.reduce(here, axis=1, out=scale[:, :n])
        here /= scale[:, None, :n]
        step_forward(packing, np.exp(chains.log_transition), emission, alpha, scale)
        if chains.log_exit is None:
            return alpha, scale, None
        leaving = np.exp(chains.on_lanes(chains.log_exit, packing))
        return alpha, scale, np.sum(alpha[:, :, packing.last] * leaving, axis=1)


def _sums_by_lane(packing: Packing, values: FloatArray) -> FloatArray:
    """Sum values (P, F) of columns by lane, (P, n)."""
    sums = np.empty((len(values), packing.n_sequences))
    for plane, part in enumerate(values):
        sums[plane] = np.bincount(packing.lane, part, packing.n_sequences)
    return sums


def _misled_lanes(
    packing: Packing,
    emission: FloatArray,
    chains: ChainWeights,
    log_scale: FloatArray,
    end: FloatArray | None,
    is_exact: BoolArray,
) -> IntArray:
    """Return the lanes whose log likelihood depends on emissions that were raised.

    A path with raised emissions has a relative density of at most ``exp(_LOWEST)``. Where
    the sum over all paths is much larger, they do not matter. Otherwise the lane is
    passed again without these emissions, and the difference shows.
    """
    lowest = np.exp(_LOWEST)
    has_raised = np.zeros(packing.n_sequences, dtype=bool)
    has_raised[packing.lane[(emission <= lowest).any(axis=(0, 1))]] = True
    total = _relative_log_likelihood(packing, log_scale, end)
    room = np.log(packing.lengths * emission.shape[1] / _SAME)
    is_doubtful = has_raised & is_exact & np.any(total < _LOWEST + room, axis=0)
    lanes = np.flatnonzero(is_doubtful)
    if len(lanes) == 0:
        return lanes
    part, columns = packing.of_lanes(lanes)
    kept = np.take(emission, columns, axis=2)
    kept[kept <= lowest] = 0.0
    _, scale, end = _scaled_pass(part, kept, chains)
    with np.errstate(divide="ignore"):
        without = _relative_log_likelihood(part, np.log(scale), end)
    own = lanes[part.order]
    is_same = np.all(np.abs(total[:, own] - without) < _SAME, axis=0)
    return own[~is_same]


def _relative_log_likelihood(
    packing: Packing, log_scale: FloatArray, end: FloatArray | None
) -> FloatArray:
    """Return log densities (P, n) relative to the largest emissions of all frames."""
    total = _sums_by_lane(packing, log_scale)
    with np.errstate(divide="ignore"):
        return total if end is None else total + np.log(end)


@dataclass(frozen=True)
class BackwardPass:
    """What a backward pass adds to a forward pass.

    Attributes
    ----------
    arriving : ndarray of shape (P, K, F)
        What the probability of an arrival at each state is made of, together with
        `ForwardPass.alpha` of the frame before and the transition probabilities.
    ending : ndarray of shape (P, K, n) or (P, 1, n)
        Probability of the end after the last frame, by its state, divided by that of all.
    is_exact : ndarray of bool, shape (n,)
        False for lanes whose scaled numbers cannot be trusted.
    """

    arriving: FloatArray
    ending: FloatArray
    is_exact: BoolArray


def backward(passed: ForwardPass) -> BackwardPass:
    """Pass backward; this uses up `passed.emission`."""
    packing, chains = passed.packing, passed.chains
    arriving = passed.emission
    with np.errstate(all="ignore"):
        if passed.end is None or chains.log_exit is None:
            ending = np.ones((len(arriving), 1, packing.n_sequences))
        else:
            leaving = np.exp(chains.on_lanes(chains.log_exit, packing))
            ending = leaving / passed.end[:, None]
        arriving /= passed.scale[:, None]
        transition = np.exp(chains.log_transition)
        totals = step_backward(packing, transition, passed.alpha, ending, arriving)
        is_off = ~(np.abs(totals - 1.0) < _ROUNDING)
    is_exact = passed.is_exact.copy()
    if is_off.any():
        is_exact[packing.lane[is_off.any(axis=0)]] = False
    return BackwardPass(arriving, ending, is_exact)


def posteriors(
    passed: ForwardPass, back: BackwardPass, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return probabilities of states and numbers of transitions, weighted by lane (P, n).

    With the forward probabilities alpha and what arrives, r = emission times beta,

        gamma_t(i) = alpha_t(i) sum_j A_ij r_{t+1}(j),
        xi(i, j) = A_ij sum_t alpha_t(i) r_{t+1}(j).

    Lanes of weight zero may hold anything but infinities. This uses up `passed.alpha`,
    which becomes the first result: of a long sequence, another array of this size would
    count.

    Returns
    -------
    states : ndarray of shape (P, K, F)
        Of each state at each frame.
    transitions : ndarray of shape (G, P, K, K)
        Expected over all frames.
    """
    packing, states = passed.packing, passed.alpha
    transition = np.exp(passed.chains.log_transition)
    with np.errstate(all="ignore"):
        states[:, :, packing.last] *= back.ending * weights[:, None]
        sums = step_to_posteriors(packing, transition, back.arriving, weights, states)
    return states, sums * transition


@dataclass(frozen=True)
class LogPass:
    """Both passes in logarithms, three to seven times as slow, with all digits.

    Attributes
    ----------
    log_likelihood : ndarray of shape (P, n)
        Log density of each sequence, by lane.
    states : ndarray of shape (P, K, F)
        Probability of each state at each frame; zero in planes of density zero.
    transitions : ndarray of shape (P, K, K, F)
        Probability of each transition to a frame; zero at first frames.
    """

    log_likelihood: FloatArray
    states: FloatArray
    transitions: FloatArray


def log_forward_backward(
    packing: Packing, log_emission: FloatArray, chains: ChainWeights
) -> LogPass:
    """Pass forward and backward in logarithms."""
    n = packing.n_sequences
    log_alpha, log_beta = np.empty_like(log_emission), np.empty_like(log_emission)
    log_alpha[:, :, :n] = (
        chains.on_lanes(chains.log_start, packing) + log_emission[:, :, :n]
    )
    logs = chains.log_transition[..., None]  # (G, P, K, K, 1)
    transitions = np.full((*log_emission.shape[:2], *log_emission.shape[1:]), -np.inf)
    with np.errstate(all="ignore"):
        for _, blocks in packing.steps:
            for block in blocks:
                moved = log_alpha[:, :, None, block.before] + logs[block.group]
                log_alpha[:, :, block.here] = (
                    _logsumexp(moved, 1) + log_emission[:, :, block.here]
                )
        log_beta[:, :, packing.last] = (
            0.0 if chains.log_exit is None else chains.on_lanes(chains.log_exit, packing)
        )
        for _, blocks in reversed(packing.steps):
            for block in blocks:
                arriving = log_emission[:, :, block.here] + log_beta[:, :, block.here]
                moved = logs[block.group] + arriving[:, None]
                log_beta[:, :, block.before] = _logsumexp(moved, 2)
                transitions[:, :, :, block.here] = (
                    moved + log_alpha[:, :, None, block.before]
                )
        last = packing.last
        log_likelihood = _logsumexp(log_alpha[:, :, last] + log_beta[:, :, last], 1)
        # Each frame has a sum of its own: large logarithms have few digits left.
        states = _shares(log_alpha + log_beta, (1,))
        transitions = _shares(transitions, (1, 2))
    return LogPass(log_likelihood, states, transitions)


def _shares(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return exponentials divided by their sum over axes; zero where all are zero."""
    largest = logs.max(axis=axes, keepdims=True)
    shares = np.exp(logs - np.where(np.isfinite(largest), largest, 0.0))
    total = shares.sum(axis=axes, keepdims=True)
    return shares / np.where(total > 0.0, total, 1.0)


def _logsumexp(values: FloatArray, axis: int) -> FloatArray:
    largest = values.max(axis=axis, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    return np.squeeze(largest, axis) + np.log(np.exp(values - largest).sum(axis=axis))


def most_probable_paths(
    packing: Packing, log_emission: FloatArray, chains: ChainWeights
) -> tuple[FloatArray, IntArray]:
    """Return the log density (P, n) of the best path of states, and the states (P, F).

    This is Viterbi's algorithm, and uses up `log_emission` (P, K, F). Lanes and columns
    are those of the packing.
    """
    score = np.ascontiguousarray(log_emission)
    score[:, :, : packing.n_sequences] += chains.on_lanes(chains.log_start, packing)
    origin = step_to_best(packing, chains.log_transition, score)
    final = score[:, :, packing.last]
    if chains.log_exit is not None:
        final = final + chains.on_lanes(chains.log_exit, packing)
    states = np.zeros((len(score), packing.n_frames), np.int64)
    states[:, packing.last] = final.argmax(axis=1)
    follow_back(packing, origin, states)
    return final.max(axis=1), states
