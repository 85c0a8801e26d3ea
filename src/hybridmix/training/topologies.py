"""Which states may follow each other, and where chains begin."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hybridmix._typing import BoolArray, FloatArray

# A name, or a mask (K, K) of the possible transitions.
Topology: TypeAlias = str | npt.ArrayLike
TOPOLOGIES = ("left-right", "ergodic")
# No state is left with a higher probability than this at the start.
_MOST_LEAVING = 0.5


def check_topology(topology: object, n_states: int | None) -> None:
    """Refuse what is neither the name of a topology nor a mask of transitions."""
    if isinstance(topology, str):
        if topology not in TOPOLOGIES:
            words = ", ".join(map(repr, TOPOLOGIES))
            raise ValueError(
                f"topology={topology!r} is not one of {words}; it may also be a mask of "
                "the possible transitions, an array of shape (n_states, n_states)."
            )
        return
    mask = np.asarray(topology)
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1] or mask.dtype.kind not in "biuf":
        raise ValueError(
            "topology must be a name or a square mask of the possible transitions; this "
            f"one has the shape {mask.shape} and the type {mask.dtype}."
        )
    if n_states is not None and len(mask) != n_states:
        raise ValueError(
            f"topology is a mask of {len(mask)} states, and n_states={n_states}."
        )
    stuck = np.flatnonzero(~mask.astype(bool).any(axis=1))
    if len(stuck):
        raise ValueError(
            f"topology leaves no transition from state {stuck[0]}: allow it to stay, by "
            f"topology[{stuck[0]}, {stuck[0]}] = True."
        )


def transition_mask(topology: Topology, n_states: int) -> BoolArray:
    """Return which state (column) may follow which (row), (K, K)."""
    if isinstance(topology, str):
        if topology == "ergodic":
            return np.ones((n_states, n_states), dtype=bool)
        stay = np.eye(n_states, dtype=bool)
        return stay | np.eye(n_states, k=1, dtype=bool)
    return np.asarray(topology).astype(bool)


def runs_left_to_right(topology: Topology) -> bool:
    """Return whether states follow each other in time, from the first one on."""
    if isinstance(topology, str):
        return topology == "left-right"
    return not np.tril(np.asarray(topology), -1).any()


def first_tables(
    topology: Topology, n_states: int, mean_length: float, with_exits: bool
) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities of first states and of moves, to begin training with.

    Sequences of mean length pass all states once.

    Parameters
    ----------
    topology : str or array-like of shape (K, K)
        Name or mask.
    n_states : int
        ``K``.
    mean_length : float
        Mean number of frames of the sequences.
    with_exits : bool
        Whether ends are modelled: a sequence may end after any state.

    Returns
    -------
    log_start : ndarray of shape (K,)
        Minus infinity where no sequence begins.
    log_moves : ndarray of shape (K, K) or (K, K + 1)
        Minus infinity where there is no transition; the last column is for ends.
    """
    mask = transition_mask(topology, n_states)
    start = np.full(n_states, 1.0 / n_states)
    if runs_left_to_right(topology):
        start = np.eye(n_states)[0]
    leaving = min(_MOST_LEAVING, n_states / mean_length)
    stay = np.diag(mask) * (1.0 - leaving)
    others = mask & ~np.eye(n_states, dtype=bool)
    n_others = others.sum(axis=1)
    moves = others * ((1.0 - stay) / np.maximum(n_others, 1))[:, None]
    np.fill_diagonal(moves, np.where(n_others > 0, stay, 1.0))
    if with_exits:
        exits = min(_MOST_LEAVING, 1.0 / mean_length)
        moves = np.column_stack([moves * (1.0 - exits), np.full(n_states, exits)])
    with np.errstate(divide="ignore"):
        return np.log(start), np.log(moves)
