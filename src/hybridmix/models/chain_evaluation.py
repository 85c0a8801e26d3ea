"""Log joint densities of sequences, and the way back from weights to statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hybridmix._logsumexp import grouped_logsumexp
from hybridmix._typing import FloatArray, IntArray
from hybridmix.families.base import Notes, Prepared
from hybridmix.models.base import Evaluation
from hybridmix.models.chain_statistics import ChainStatistics, components_of
from hybridmix.models.forward_backward import (
    ChainWeights,
    ForwardPass,
    LogPass,
    backward,
    forward,
    log_forward_backward,
    posteriors,
)
from hybridmix.models.packed import PackedFrames
from hybridmix.models.packing import Packing

if TYPE_CHECKING:
    from hybridmix.models.chains import Chains


@dataclass(frozen=True)
class _Emissions:
    """What the evaluation of a piece leaves for its statistics.

    Attributes
    ----------
    relative : ndarray of shape (P K M, f) or None
        Densities of components divided by the largest one of their state; None if states
        have one component each.
    sums : ndarray of shape (P K, f) or None
        Their sums within the states.
    notes : object
        What the family noted for its statistics.
    """

    relative: FloatArray | None
    sums: FloatArray | None
    notes: Notes


def evaluated(model: Chains, packed: PackedFrames) -> ChainEvaluation:
    """Pass forward over packed sequences."""
    log_emission, emissions = _all_emissions(model, packed)
    passed = forward(packed.packing, log_emission, chain_weights(model, packed))
    log_likelihood = passed.log_likelihood
    if not passed.is_exact.all():
        lanes = np.flatnonzero(~passed.is_exact)
        exact, packing, _ = _in_logarithms(model, packed, lanes)
        log_likelihood[:, lanes[packing.order]] = exact.log_likelihood
    return ChainEvaluation(
        model, packed, _log_joint(model, packed, log_likelihood), passed, emissions
    )


def chain_weights(model: Chains, packed: PackedFrames) -> ChainWeights:
    """Return the parameters of the chains, arranged for a packing."""
    axis = 1 if packed.looks_at_own else 0
    log_exit = model.log_exit
    return ChainWeights(
        np.expand_dims(model.log_start, axis),
        np.expand_dims(model.log_transition, axis),
        None if log_exit is None else np.expand_dims(log_exit, axis),
    )


def log_emissions(model: Chains, packed: PackedFrames) -> FloatArray:
    """Return the log emission densities of all frames, (P, K, F)."""
    return _all_emissions(model, packed)[0]


def emissions_of(model: Chains, frames: Prepared) -> FloatArray:
    """Return the log emission densities (C, K, f) of frames that were prepared."""
    return _emissions(model, frames)[0]


def _all_emissions(
    model: Chains, packed: PackedFrames
) -> tuple[FloatArray, list[_Emissions]]:
    """Evaluate all pieces; return their log emissions side by side, and each."""
    n_planes = 1 if packed.looks_at_own else model.n_classes
    joined = np.empty((n_planes, model.n_states, packed.packing.n_frames))
    parts = []
    for piece in packed.pieces:
        own = model.of_class(piece.group) if packed.looks_at_own else model
        joined[:, :, piece.columns], part = _emissions(own, piece.frames())
        parts.append(part)
    return joined, parts


def _emissions(model: Chains, frames: Prepared) -> tuple[FloatArray, _Emissions]:
    """Return log densities (C, K, f) of all states, and what statistics need."""
    log_density, notes = model.family.evaluate(frames, model.components)
    shape = (model.n_classes, model.n_states, log_density.shape[1])
    if model.n_mixed == 1:
        return log_density.reshape(shape), _Emissions(None, None, notes)
    log_density += model.log_mixing.reshape(-1, 1)
    offsets = tuple(range(0, model.n_components + 1, model.n_mixed))
    by_state, sums = grouped_logsumexp(log_density, offsets)
    return by_state.reshape(shape), _Emissions(log_density, sums, notes)


def _log_joint(
    model: Chains, packed: PackedFrames, log_likelihood: FloatArray
) -> FloatArray:
    """Return log joint densities (C, n) in the order of the sequences."""
    packing = packed.packing
    if not packed.looks_at_own:
        return log_likelihood[:, packing.inverse] + model.log_class_prior[:, None]
    joint = np.full((model.n_classes, packing.n_sequences), -np.inf)
    labels = packing.group_of
    joint[labels, packing.order] = log_likelihood[0] + model.log_class_prior[labels]
    return joint


def _in_logarithms(
    model: Chains, packed: PackedFrames, lanes: IntArray
) -> tuple[LogPass, Packing, IntArray]:
    """Pass over some lanes in logarithms; return also their packing and columns."""
    packing, columns = packed.packing.of_lanes(lanes)
    log_emission = log_emissions(model, packed)[:, :, columns]
    chains = chain_weights(model, packed)
    return log_forward_backward(packing, log_emission, chains), packing, columns


@dataclass(frozen=True)
class ChainEvaluation(Evaluation[ChainStatistics]):
    """Log joint densities of sequences, with what is needed for their statistics.

    Attributes
    ----------
    model : Chains
        What was evaluated.
    packed : PackedFrames
        The sequences.
    log_joint : ndarray of shape (C, n)
        Log of ``p(x, c)``; minus infinity for classes that were not looked at.
    """

    model: Chains
    packed: PackedFrames
    log_joint: FloatArray
    _passed: ForwardPass
    _emissions: list[_Emissions]

    def state_posterior(self) -> tuple[FloatArray, FloatArray]:
        """Return probabilities of states given whole sequences; uses up the evaluation.

        Returns
        -------
        states : ndarray of shape (P, K, F)
            By plane and column of the packing.
        transitions : ndarray of shape (G, P, K, K)
            Expected numbers of transitions.
        """
        return self._weighted_states(
            np.ones((len(self._passed.scale), self.packed.packing.n_sequences))
        )

    def component_posterior(self, weights: FloatArray) -> FloatArray:
        """Return probabilities of components given whole sequences, (J, F).

        The weights (C, n) are those of the classes, all of which were looked at. Frames
        stand one sequence after the other. This uses up the evaluation.
        """
        packing = self.packed.packing
        states, _ = self._weighted_states(weights[:, packing.order])
        by_frame = np.empty((self.model.n_components, packing.n_frames))
        for piece, emissions in zip(self.packed.pieces, self._emissions, strict=True):
            spread = _spread(states[:, :, piece.columns], emissions)
            by_frame[:, packing.source[piece.columns]] = spread
        return by_frame

    def statistics(self, weights: FloatArray) -> ChainStatistics:
        """Pull signed weights (C, n) back; this uses up the evaluation."""
        packing, model = self.packed.packing, self.model
        own = self.packed.looks_at_own
        by_lane = weights[:, packing.order]
        if own:
            by_lane = by_lane[packing.group_of, np.arange(packing.n_sequences)][None]
        states, transitions = self._weighted_states(by_lane)
        first, last = states[:, :, : packing.n_sequences], states[:, :, packing.last]
        total = model.zero_statistics()
        shape = (model.n_classes, model.n_states, model.n_states)
        total.transitions += transitions.reshape(shape)
        total.starts += _sums_of_lanes(first, packing)
        total.exits += _sums_of_lanes(last, packing)
        total.classes += np.sum(weights, axis=1)
        for piece, emissions in zip(self.packed.pieces, self._emissions, strict=True):
            part = slice(piece.group, piece.group + 1) if own else slice(None)
            spread = _spread(states[:, :, piece.columns], emissions)
            counts = np.dot(spread, np.ones(spread.shape[1]))
            total.counts[part] += counts.reshape(total.counts[part].shape)
            components = components_of(part, model.n_states * model.n_mixed)
            statistics = model.family.accumulate(
                piece.frames(),
                model.components.take(components),
                spread,
                emissions.notes,
            )
            total.components.add(statistics, components)
        return total

    def _weighted_states(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weighted posteriors of states, and weighted counts of transitions.

        The weights (P, n) are those of the lanes.
        """
        passed = self._passed
        back = backward(passed)
        lanes = np.flatnonzero(~back.is_exact)
        if len(lanes) == 0:
            return posteriors(passed, back, weights)
        exact, own_packing, columns = _in_logarithms(self.model, self.packed, lanes)
        for array in (passed.alpha, back.arriving):
            array[:, :, columns] = 0.0
        states, transitions = posteriors(passed, back, weights)
        own = weights[:, lanes[own_packing.order][own_packing.lane]]
        group = own_packing.group_of[own_packing.lane]
        for g in np.unique(group):
            here = group == g
            moves = exact.transitions[..., here] * own[:, None, None, here]
            transitions[g] += moves.sum(axis=-1)
        states[:, :, columns] = exact.states * own[:, None]
        return states, transitions


def _spread(states: FloatArray, emissions: _Emissions) -> FloatArray:
    """Spread weights of states (P, K, f) over their components, (P K M, f).

    The result takes the memory of `emissions.relative`, if there is any.
    """
    by_state = states.reshape(-1, states.shape[2])
    if emissions.relative is None or emissions.sums is None:
        return by_state
    blocks = emissions.relative.reshape(len(by_state), -1, by_state.shape[1])
    blocks *= (by_state / emissions.sums)[:, None]
    return emissions.relative


def _sums_of_lanes(states: FloatArray, packing: Packing) -> FloatArray:
    """Sum values (P, K, n) over the lanes of each class, (C, K)."""
    if packing.n_groups == 1:
        return states.sum(axis=2)
    return np.stack(
        [np.bincount(packing.group_of, row, packing.n_groups) for row in states[0]],
        axis=1,
    )
