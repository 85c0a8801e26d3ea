"""Where chains are after the frames so far, frame by frame and beyond the last one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.models.chain_evaluation import emissions_of, evaluated
from hybridmix.models.chains import Chains
from hybridmix.models.packed import PreparedSequences, after, unknown_frames


@dataclass(frozen=True)
class Belief:
    r"""What is known of sequences that may go on.

    Attributes
    ----------
    log_joint : ndarray of shape (C, n)
        :math:`\log p(x_{1:t}, c)`, where it is open what follows.
    log_states : ndarray of shape (C, K, n)
        :math:`\log p(s_t \mid x_{1:t}, c)`. After `advanced` it is about the next state,
        whose frame has not been seen.
    """

    log_joint: FloatArray
    log_states: FloatArray


def first_belief(model: Chains, n_sequences: int) -> Belief:
    """Return what is known before the first frame."""
    n_classes, n_states = model.log_start.shape
    return Belief(
        np.broadcast_to(model.log_class_prior[:, None], (n_classes, n_sequences)),
        np.broadcast_to(model.log_start[:, :, None], (n_classes, n_states, n_sequences)),
    )


def last_belief(model: Chains, prepared: PreparedSequences) -> Belief:
    """Return what is known after the last frames of sequences."""
    # With no end in it, the posterior of the last state is the filtered one.
    open_ended = replace(model, log_moves=model.log_transition)
    evaluation = evaluated(open_ended, prepared.all_classes)
    packing = prepared.all_classes.packing
    states, _ = evaluation.state_posterior()
    last = states[:, :, packing.last[packing.inverse]]
    with np.errstate(divide="ignore"):
        return Belief(evaluation.log_joint, np.log(last))


def advanced(model: Chains, belief: Belief) -> Belief:
    r"""Return what is known of the next state, if the sequences go on.

    .. math:: p(x_{1:t}, s_{t+1}, c) = \sum_{s_t} p(x_{1:t}, s_t, c)\, A_{c s_t s_{t+1}}

    Where ends are modelled, the probability of going on is less than one, and the joint
    densities fall accordingly.
    """
    moved = belief.log_states[:, :, None] + model.log_transition[..., None]
    return _normalised(belief.log_joint, np.logaddexp.reduce(moved, axis=1))


def corrected(belief: Belief, log_emission: FloatArray) -> Belief:
    """Return what is known once frames of these log densities (C, K, n) are seen."""
    return _normalised(belief.log_joint, belief.log_states + log_emission)


def ended(model: Chains, belief: Belief) -> Belief:
    """Return what is known if the sequences have ended, where ends are modelled."""
    if model.log_exit is None:
        return belief
    return corrected(belief, model.log_exit[:, :, None])


def frame_log_emissions(model: Chains, frames: Rows, before: Rows | None) -> FloatArray:
    """Return the log densities (C, K, n) of frames, given the frames before them."""
    if model.autoregressive:
        if before is None:
            before = unknown_frames(len(frames.real), 0, frames.n_rows)
        frames = after(before, frames)
    return emissions_of(model, model.family.prepare(frames))


def component_weights(
    model: Chains, belief: Belief, log_classes: FloatArray
) -> FloatArray:
    """Return the probabilities (J, n) of all components, given those of the classes.

    Parameters
    ----------
    model : Chains
        The model.
    belief : Belief
        What is known of the states.
    log_classes : ndarray of shape (C, n)
        Log probabilities of the classes.
    """
    logs = (log_classes[:, None] + belief.log_states)[:, :, None]
    weights = np.exp(logs + model.log_mixing[..., None])
    return weights.reshape(model.n_components, -1)


def _normalised(log_joint: FloatArray, logs: FloatArray) -> Belief:
    """Move what log weights (C, K, n) of states sum to into the joint densities."""
    totals = np.logaddexp.reduce(logs, axis=1)
    # Classes of density zero keep any weights, which count for nothing.
    finite = np.where(np.isfinite(totals), totals, 0.0)
    return Belief(log_joint + totals, logs - finite[:, None])
