"""Candidates of a search for hidden Markov models, scored by held-out sequences."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.sequence_blocks import TrainingSequenceRows
from hybridmix.data.sequence_rows import SequenceDataset
from hybridmix.evaluation import log_joint
from hybridmix.models.calibration import Calibration
from hybridmix.models.chains import Chains
from hybridmix.progress import announce, listening
from hybridmix.solvers import Solution
from hybridmix.training.budget import Budget
from hybridmix.training.chain_plan import ChainCandidate
from hybridmix.training.chain_record import ChainOptions
from hybridmix.training.chains import ChainRun, finished
from hybridmix.training.leaderboard import Trial, mean_and_error
from hybridmix.training.votes import HeldOut

# Sequences to train on, and sequences to score.
Part = tuple[SequenceDataset, SequenceDataset]


@dataclass(frozen=True, eq=False)
class ChainScore:
    """How a candidate did on held-out sequences, after some of its stations.

    Attributes
    ----------
    candidate : ChainCandidate
        What was tried.
    station : int
        After this many discriminative trainings; 0 for EM alone.
    calibration : Calibration
        Of its class probabilities.
    log_probabilities : ndarray of shape (C, n)
        Of the classes of the held-out sequences, calibrated.
    log_densities : ndarray of shape (n,)
        Of the held-out sequences with their labels, per frame.
    seconds : float
        What its fits took.
    first : Solution
        Its training on the first part.
    """

    candidate: ChainCandidate
    station: int
    calibration: Calibration
    log_probabilities: FloatArray
    log_densities: FloatArray
    seconds: float
    first: Solution[Chains]

    @property
    def name(self) -> str:
        """What to call it."""
        return self.candidate.name(self.station)

    def trial(self, values: FloatArray, weights: FloatArray) -> Trial:
        """Return a line of the leaderboard, by values (n,) of held-out sequences."""
        mean, error = mean_and_error(values, weights)
        return Trial(self.name, mean, error, self.seconds)


class ChainSearch:
    """A search: its sequences, and what it has found.

    Parameters
    ----------
    parts : sequence of (SequenceDataset, SequenceDataset)
        Sequences to train on, and to hold out.
    schema : Schema
        Of the frames.
    n_classes : int
        Number of classes.
    unlabelled_weight : float
        What an unlabelled sequence counts.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.

    Attributes
    ----------
    unlabelled_weight : float
        As above.
    held : HeldOut
        Labels and weights of the held-out sequences.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        schema: Schema,
        n_classes: int,
        unlabelled_weight: float,
        generator: np.random.Generator,
        pool: Workers,
    ) -> None:
        self._parts = parts
        self._schema = schema
        self._n_classes = n_classes
        self.unlabelled_weight = unlabelled_weight
        # Every run begins with the same seed: candidates differ by their options alone.
        self._seed = int(generator.integers(2**31))
        self._pool = pool
        self.held = HeldOut(
            np.concatenate([held.labels for _, held in parts]),
            np.concatenate([held.filled_weights for _, held in parts]),
        )

    @property
    def first_part(self) -> SequenceDataset:
        """The sequences that candidates are trained on first."""
        return self._parts[0][0]

    def weighing(self, unlabelled_weight: float) -> ChainSearch:
        """Return the same search with another weight of unlabelled sequences."""
        other = copy.copy(self)
        other.unlabelled_weight = unlabelled_weight
        return other

    def run_of(self, options: ChainOptions) -> ChainRun:
        """Return a run of training with some options."""
        generator = np.random.default_rng(self._seed)
        return ChainRun(options, self._schema, self._n_classes, generator, self._pool)

    def solutions(
        self, candidate: ChainCandidate, dataset: TrainingSequenceRows, last: int
    ) -> list[Solution[Chains]]:
        """Run EM and then the stations up to the last one, each from the one before.

        An interrupt ends all of it.
        """
        run = self.run_of(candidate.options)
        found = [run.solve_likelihood(dataset, self.unlabelled_weight)]
        for station in candidate.stations[:last]:
            start = finished(found[-1])
            found.append(
                run.discriminated(station, dataset, None, start, self.unlabelled_weight)
            )
        finished(found[-1])
        return found

    def scores(
        self, plan: Sequence[ChainCandidate], budget: Budget
    ) -> tuple[list[ChainScore], bool]:
        """Score candidates one by one, until the user or the budget ends it.

        Return the scores, and whether the user has ended it. At least one candidate is
        scored: an interrupt of the first one goes on to the caller.
        """
        scores: list[ChainScore] = []
        for number, candidate in enumerate(plan):
            if scores and budget.is_spent(reserve=0.5 * budget.elapsed):
                break
            try:
                # Progress is that of the search, and candidates that do not suit the
                # sequences show in their scores.
                with listening(None), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores.extend(self._scores_of(candidate))
                announce("search", number + 1, len(plan), candidate.name(0))
            except KeyboardInterrupt:
                if not scores:
                    raise
                return scores, True
        return scores, False

    def _scores_of(self, candidate: ChainCandidate) -> list[ChainScore]:
        """Fit a candidate to every part; return a score for each of its stations."""
        began = time.perf_counter()
        n_stations = len(candidate.stations) + 1
        run = self.run_of(candidate.options)
        solutions = [
            self.solutions(candidate, rest, n_stations) for rest, _ in self._parts
        ]
        result = []
        for station in range(n_stations):
            joints, densities = [], []
            for own, (_, held) in zip(solutions, self._parts, strict=True):
                joint = log_joint(own[station].model, held.rows, self._pool)
                density = joint[held.labels, np.arange(held.n_rows)]
                densities.append(density / held.rows.lengths)
                joints.append(run.scaled(joint, held))
            scores = np.concatenate(joints, axis=1)
            calibrate = candidate.options.calibrate
            calibration = self.held.calibration(scores) if calibrate else Calibration()
            result.append(
                ChainScore(
                    candidate,
                    station,
                    calibration,
                    calibration.log_probabilities(scores),
                    np.concatenate(densities),
                    0.0,
                    solutions[0][station],
                )
            )
        seconds = (time.perf_counter() - began) / n_stations
        return [replace(score, seconds=seconds) for score in result]

    def refitted(
        self, scores: Sequence[ChainScore], dataset: TrainingSequenceRows
    ) -> tuple[dict[ChainScore, Solution[Chains]], bool]:
        """Train what was scored on all sequences.

        Return the solutions, and whether the user has ended it. Those that are missing
        then are not in the dictionary.
        """
        stations: dict[ChainCandidate, int] = {}
        for score in scores:
            last = stations.get(score.candidate, 0)
            stations[score.candidate] = max(last, score.station)
        found: dict[ChainCandidate, list[Solution[Chains]]] = {}
        interrupted = False
        try:
            for number, (candidate, last) in enumerate(stations.items()):
                announce("members", number, len(stations), candidate.name(last))
                found[candidate] = self.solutions(candidate, dataset, last)
        except KeyboardInterrupt:
            interrupted = True
        done = [score for score in scores if score.candidate in found]
        return {s: found[s.candidate][s.station] for s in done}, interrupted
