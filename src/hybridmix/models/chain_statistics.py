"""Statistics of hidden Markov models."""

from __future__ import annotations

from dataclasses import dataclass

from hybridmix._typing import FloatArray
from hybridmix.families.base import Statistics


@dataclass
class ChainStatistics:
    """What an M-step or a gradient needs to know of the sequences.

    Expected numbers, weighted by the signed weights of the sequences.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        Numbers of sequences.
    starts : ndarray of shape (C, K)
        Numbers of sequences that begin in each state.
    transitions : ndarray of shape (C, K, K)
        Numbers of transitions from the first state to the second one.
    exits : ndarray of shape (C, K)
        Numbers of sequences that end in each state.
    counts : ndarray of shape (C, K, M)
        Numbers of frames of each component of each state.
    components : Statistics
        Of the family, for all ``C K M`` components.
    """

    classes: FloatArray
    starts: FloatArray
    transitions: FloatArray
    exits: FloatArray
    counts: FloatArray
    components: Statistics

    def add(self, other: ChainStatistics, part: slice = slice(None)) -> None:
        """Add statistics that concern a run of the classes."""
        self.classes[part] += other.classes
        self.starts[part] += other.starts
        self.transitions[part] += other.transitions
        self.exits[part] += other.exits
        self.counts[part] += other.counts
        self.components.add(other.components, components_of(part, self.counts[0].size))


def components_of(part: slice, per_class: int) -> slice:
    """Return the run of components that a run of classes has."""
    if part == slice(None):
        return part
    return slice(part.start * per_class, part.stop * per_class)
