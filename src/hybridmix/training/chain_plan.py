"""Which hidden Markov models suit sequences of some kind: what a search tries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from hybridmix.data import Dataset, Schema
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.training.budget import Budget
from hybridmix.training.chain_record import ChainOptions
from hybridmix.training.discriminative import Discrimination

# Tradeoffs that are tried, one after the other; the first of them if there is no search.
TRADEOFFS = (10.0, 100.0)
# A state should have this many frames of its class for every column it has covariances
# with, and for its means alone.
_FRAMES_PER_COVARIANCE, _FRAMES_PER_MEAN = 4, 5
# With more real columns than this, full covariances are left out, and regressions on the
# frame before with more than that.
_WIDE, _WIDE_PAIRS = 60, 20
# Holes are scattered if there are more patterns of them than this share of the frames.
_SCATTERED = 0.1


class Form(NamedTuple):
    """What a search chooses of a hidden Markov model.

    Attributes
    ----------
    topology : str
        Name of the topology.
    n_states : int
        Number of states.
    covariance_type : str
        Type of the covariances.
    autoregressive : bool
        Whether frames depend on the frame before.
    """

    topology: str
    n_states: int
    covariance_type: str
    autoregressive: bool = False


@dataclass(frozen=True)
class AutomaticChains:
    """Which options are chosen, and not given.

    Attributes
    ----------
    n_states, topology, covariance_type, autoregressive, tradeoff : bool
        Whether the option is chosen.
    """

    n_states: bool
    topology: bool
    covariance_type: bool
    autoregressive: bool
    tradeoff: bool

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, eq=False)
class ChainCandidate:
    """A form, and the discriminative trainings that follow its EM.

    Attributes
    ----------
    options : ChainOptions
        Of the training; those of discrimination are in `stations`.
    stations : tuple of Discrimination
        One for each tradeoff, in ascending order; none for the likelihood alone.
    """

    options: ChainOptions
    stations: tuple[Discrimination, ...]

    def name(self, station: int) -> str:
        """Return what to call it, after this many of its stations."""
        shape = self.options.shape
        topology = shape.topology if isinstance(shape.topology, str) else "given mask"
        plural = "" if shape.n_states == 1 else "s"
        words = f"{topology}, {shape.n_states} state{plural}, "
        words += self.options.structure.covariance_type
        if shape.autoregressive:
            words += ", autoregressive"
        if shape.n_mixed > 1:
            words += f", {shape.n_mixed} components each"
        if station == 0:
            return f"{words}, likelihood"
        discrimination = self.stations[station - 1]
        if discrimination.objective == "hybrid":
            return f"{words}, tradeoff {discrimination.tradeoff:g}"
        return f"{words}, {discrimination.objective}"

    def discrimination(self, station: int) -> Discrimination:
        """Return the last training of the first stations; the likelihood, for none."""
        if station == 0:
            return replace(self.options.discrimination, objective="likelihood")
        return self.stations[station - 1]


def usual_options(autoregressive: bool) -> Form:
    """Return what is fitted where nothing is given and nothing chosen."""
    return Form("left-right", 5, "full" if autoregressive else "diag", autoregressive)


def chain_candidates(
    options: ChainOptions,
    automatic: AutomaticChains,
    dataset: SequenceDataset,
    schema: Schema,
    budget: Budget,
) -> list[ChainCandidate]:
    """Return what to try, from the simplest to the largest.

    Parameters
    ----------
    options : ChainOptions
        What the user has fixed; automatic options have usual values.
    automatic : AutomaticChains
        Which ones are chosen.
    dataset : SequenceDataset
        What candidates are trained on.
    schema : Schema
        Of the frames.
    budget : Budget
        How much effort it may take.
    """
    stations = tuple(_stations(options.discrimination, automatic, budget))
    found: dict[tuple[str, int, str, bool], ChainCandidate] = {}
    for form in _forms(options, automatic, dataset, schema, budget):
        shape, structure = options.shape, options.structure
        if automatic.topology:
            shape = replace(shape, topology=form.topology)
        if automatic.n_states:
            shape = replace(shape, n_states=form.n_states)
        if automatic.autoregressive:
            shape = replace(shape, autoregressive=form.autoregressive)
        if automatic.covariance_type:
            structure = replace(structure, covariance_type=form.covariance_type)
        changed = replace(options, shape=shape, structure=structure)
        topology = shape.topology if isinstance(shape.topology, str) else "mask"
        covariance_type = structure.covariance_type
        key = (topology, shape.n_states, covariance_type, shape.autoregressive)
        found.setdefault(key, ChainCandidate(changed, stations))
    return list(found.values())


def _stations(
    given: Discrimination, automatic: AutomaticChains, budget: Budget
) -> Iterator[Discrimination]:
    if given.is_generative:
        return
    if given.objective != "hybrid" or not automatic.tradeoff:
        yield given
        return
    tradeoffs = TRADEOFFS if budget.searches else TRADEOFFS[:1]
    # Each training goes on where the one before has ended.
    n_steps = -(-given.n_steps // len(tradeoffs))
    for tradeoff in tradeoffs:
        yield replace(given, tradeoff=tradeoff, n_steps=n_steps)


def _forms(
    options: ChainOptions,
    automatic: AutomaticChains,
    dataset: SequenceDataset,
    schema: Schema,
    budget: Budget,
) -> Iterator[Form]:
    """Yield forms that the frames of the classes allow, the simplest first."""
    if not budget.searches:
        yield usual_options(options.shape.autoregressive)
        return
    n_columns = len(schema.real)
    frames = dataset.labelled().frames()
    per_class = float(np.median(np.bincount(frames.labels))) / options.shape.n_mixed
    for autoregressive, covariance_type in _emissions(options, automatic, frames):
        needed = _frames_per_state(covariance_type, n_columns, autoregressive)
        most = max(1, int(per_class / needed))
        # Regressions of each state take long and leave little to topologies.
        is_largest = autoregressive and covariance_type == "full"
        most_ergodic = 1 if is_largest and not budget.is_thorough else most
        for topology, n_states in _shapes(most, most_ergodic, budget):
            yield Form(topology, n_states, covariance_type, autoregressive)


def _emissions(
    options: ChainOptions, automatic: AutomaticChains, frames: Dataset
) -> Iterator[tuple[bool, str]]:
    """Yield whether frames depend on the frame before, with types of covariances."""
    n_columns = len(frames.rows.real)
    if not options.shape.autoregressive:
        yield False, "diag"
        if 1 < n_columns <= _WIDE:
            yield False, "tied"
            yield False, "full"
    is_possible = (
        automatic.autoregressive
        and options.can_be_autoregressive
        and 0 < n_columns <= _WIDE_PAIRS
    )
    if options.shape.autoregressive or is_possible:
        yield True, "tied"
        if not (is_possible and _has_scattered_holes(frames)):
            yield True, "full"


def _has_scattered_holes(frames: Dataset) -> bool:
    """Return whether many frames have holes in places of their own.

    Each pair of such frames would need inverses of its own for every component.
    """
    observed = frames.rows.observed
    if observed is None:
        return False
    n_patterns = len(np.unique(np.packbits(observed, axis=0), axis=1).T)
    return n_patterns > _SCATTERED * frames.n_rows


def _shapes(most: int, most_ergodic: int, budget: Budget) -> Iterator[tuple[str, int]]:
    """Yield topologies and numbers of states, up to largest numbers."""
    sizes = (1, 2, 3, 5, 8, 12, 20) if budget.is_thorough else (1, 3, 8)
    if not budget.is_thorough:
        most_ergodic = min(most_ergodic, 3)
    for n_states in sizes:
        if n_states <= most:
            yield "left-right", n_states
            if 1 < n_states <= most_ergodic:
                yield "ergodic", n_states


def _frames_per_state(covariance_type: str, n_columns: int, autoregressive: bool) -> int:
    """Return how many frames of its class a state should have."""
    if covariance_type != "full":
        return _FRAMES_PER_MEAN
    n_read = 2 * n_columns if autoregressive else n_columns
    return _FRAMES_PER_MEAN + _FRAMES_PER_COVARIANCE * n_read
