"""The loops over time of hidden Markov models, compiled or in NumPy.

`hybridmix.models.forward_backward` says what the arrays hold; states have the shape
(P, K, F). NumPy has a few calls for each step of time, which is slow where few sequences
are long.
"""

from __future__ import annotations

import numpy as np

from hybridmix import _kernels
from hybridmix._kernels import FramesArgument, Kernels, address
from hybridmix._typing import FloatArray, IntArray
from hybridmix.models.packing import Packing

# Number of columns that NumPy copies at a time.
_RUN = 4096


def step_forward(
    packing: Packing,
    transition: FloatArray,
    emission: FloatArray,
    alpha: FloatArray,
    scale: FloatArray,
) -> None:
    """Fill `alpha` (P, K, F) and `scale` (P, F), whose first frames are given.

    Transition probabilities are (G, P, K, K).
    """
    kernels = _kernels.active()
    if kernels is None:
        _step_forward(packing, transition, emission, alpha, scale)
    else:
        about, scratch = _arguments(kernels, packing, alpha)
        kernels.call("chains_forward", about, transition, emission, alpha, scale, scratch)


def step_backward(
    packing: Packing,
    transition: FloatArray,
    alpha: FloatArray,
    ending: FloatArray,
    arriving: FloatArray,
) -> FloatArray:
    """Multiply `arriving` (P, K, F) by what is to come of each state; return sums (P, F).

    These are the sums of the probabilities of all states at a frame. What is to come of
    the last frames is given, (P, K, n) or (P, 1, n).
    """
    kernels = _kernels.active()
    if kernels is None:
        return _step_backward(packing, transition, alpha, ending, arriving)
    about, scratch = _arguments(kernels, packing, alpha)
    last = alpha[:, :, packing.last] * ending
    totals = np.empty((len(alpha), packing.n_frames))
    totals[:, packing.last] = last.sum(axis=1)
    arriving[:, :, packing.last] *= ending
    transposed = np.ascontiguousarray(np.swapaxes(transition, 2, 3))
    kernels.call("chains_backward", about, transposed, alpha, arriving, totals, scratch)
    return totals


def step_to_posteriors(
    packing: Packing,
    transition: FloatArray,
    arriving: FloatArray,
    weights: FloatArray,
    states: FloatArray,
) -> FloatArray:
    """Turn forward probabilities `states` (P, K, F) into weighted posteriors.

    Those of the last frames are given; weights (P, n) are those of the lanes. Return the
    weighted sums (G, P, K, K) of forward probabilities times what arrives next.
    """
    sums = np.zeros_like(transition)
    kernels = _kernels.active()
    if kernels is None:
        _step_to_posteriors(packing, transition, arriving, weights, states, sums)
    else:
        about, _ = _arguments(kernels, packing, states)
        k = states.shape[1]
        scratch = np.empty((k * (k + 2), kernels.width))
        transposed = np.ascontiguousarray(np.swapaxes(transition, 2, 3))
        weights = np.ascontiguousarray(weights)
        kernels.call(
            "chains_posteriors",
            about,
            transposed,
            arriving,
            weights,
            states,
            sums,
            scratch,
        )
    return sums


def step_to_best(
    packing: Packing, log_transition: FloatArray, score: FloatArray
) -> np.ndarray:
    """Add to scores (P, K, F) those of the best states before, which are returned.

    The scores are log emissions, plus the log probabilities of the start at first frames.
    """
    origin = np.zeros(score.shape, np.int16)
    kernels = _kernels.active()
    if kernels is None:
        _step_to_best(packing, log_transition, score, origin)
    else:
        about, _ = _arguments(kernels, packing, score)
        scratch = np.empty((2, score.shape[1]))
        logs = np.ascontiguousarray(log_transition)
        kernels.call("chains_best", about, logs, score, origin, scratch)
    return origin


def follow_back(packing: Packing, origin: np.ndarray, states: IntArray) -> None:
    """Fill the states (P, F) of best paths, given those of the last frames."""
    kernels = _kernels.active()
    if kernels is None:
        _follow_back(packing, origin, states)
    else:
        about, _ = _arguments(kernels, packing, origin)
        kernels.call("chains_back", about, origin, states)


def _arguments(
    kernels: Kernels, packing: Packing, states: np.ndarray
) -> tuple[FramesArgument, FloatArray]:
    """Return what kernels have to know about a packing, and memory to work in."""
    about = FramesArgument(
        *states.shape,
        *packing.sizes.shape,
        address(packing.sizes),
        address(packing.starts),
    )
    return about, np.empty((states.shape[1], kernels.width))


def _step_forward(
    packing: Packing,
    transition: FloatArray,
    emission: FloatArray,
    alpha: FloatArray,
    scale: FloatArray,
) -> None:
    transposed = np.swapaxes(transition, 2, 3).copy()
    for columns, blocks in packing.steps:
        here = alpha[:, :, columns]
        for block in blocks:
            np.matmul(
                transposed[block.group],
                alpha[:, :, block.before],
                out=alpha[:, :, block.here],
            )
        here *= emission[:, :, columns]
        total = np.add.reduce(here, axis=1, out=scale[:, columns])
        here /= total[:, None]


def _step_backward(
    packing: Packing,
    transition: FloatArray,
    alpha: FloatArray,
    ending: FloatArray,
    arriving: FloatArray,
) -> FloatArray:
    beta = np.empty_like(alpha)
    beta[:, :, packing.last] = ending
    for columns, blocks in reversed(packing.steps):
        arriving[:, :, columns] *= beta[:, :, columns]
        for block in blocks:
            np.matmul(
                transition[block.group],
                arriving[:, :, block.here],
                out=beta[:, :, block.before],
            )
    return np.einsum("pkf,pkf->pf", alpha, beta)


def _step_to_posteriors(
    packing: Packing,
    transition: FloatArray,
    arriving: FloatArray,
    weights: FloatArray,
    states: FloatArray,
    sums: FloatArray,
) -> None:
    for group, before, here in packing.arrivals(_RUN):
        own = arriving[:, :, here]
        leaving = states[:, :, before] * weights[:, None, packing.lane[here]]
        sums[group] += np.matmul(leaving, own.transpose(0, 2, 1))
        leaving *= np.matmul(transition[group], own)
        states[:, :, before] = leaving


def _step_to_best(
    packing: Packing, log_transition: FloatArray, score: FloatArray, origin: np.ndarray
) -> None:
    logs = log_transition[..., None]
    for _, blocks in packing.steps:
        for block in blocks:
            moved = score[:, :, None, block.before] + logs[block.group]
            best = moved.argmax(axis=1)
            origin[:, :, block.here] = best
            reached = np.take_along_axis(moved, best[:, None], axis=1)[:, 0]
            score[:, :, block.here] += reached


def _follow_back(packing: Packing, origin: np.ndarray, states: IntArray) -> None:
    for _, blocks in reversed(packing.steps):
        for block in blocks:
            here = states[:, None, block.here]
            states[:, block.before] = np.take_along_axis(
                origin[:, :, block.here], here, axis=1
            )[:, 0]
