"""Candidates of a search, trained on some rows and scored on others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema
from hybridmix.evaluation import log_joint
from hybridmix.models.calibration import Calibration
from hybridmix.models.mixture import Mixture
from hybridmix.progress import announce, listening
from hybridmix.training.budget import Budget
from hybridmix.training.leaderboard import Trial, mean_and_error
from hybridmix.training.network import run_of
from hybridmix.training.plan import Candidate
from hybridmix.training.run import ClassifierOptions, ClassifierRun, Outcome, finished
from hybridmix.training.votes import HeldOut

# Rows to train on, and rows to score.
Part = tuple[Dataset, Dataset]
# A candidate that trails the best one by this many standard errors on the first part is
# not trained on the others.
_HOPELESS = 3.0
# A model that was trained on half of the rows or more needs few steps on all of them.
_FURTHER_STEPS = 10
# Subspaces of tables of up to this many rows are fitted anew to all rows.
_FEW_ROWS = 1_000


@dataclass(eq=False)
class Entry:
    """A candidate after some of its stations, and what it says about held-out rows.

    Attributes
    ----------
    candidate : Candidate
        The structure.
    station : int
        How many discriminative trainings it has had; 0 for the likelihood alone.
    blocks : list of ndarray of shape (C, n)
        Log joint densities of the held-out rows of each part.
    first : Outcome or None
        Of the training on the first part.
    seconds : float
        What its trainings took.
    weight_of_all : float or None
        What an unlabelled row counts when all rows are trained on; None for what it
        counts in the search.
    """

    candidate: Candidate
    station: int
    blocks: list[FloatArray] = field(default_factory=list)
    first: Outcome | None = None
    seconds: float = 0.0
    weight_of_all: float | None = None

    @property
    def final_weight(self) -> float:
        """What an unlabelled row counts when all rows are trained on."""
        if self.weight_of_all is None:
            return self.candidate.unlabelled_weight
        return self.weight_of_all

    @property
    def changes_weight(self) -> bool:
        """Whether unlabelled rows count otherwise than in the search."""
        return self.final_weight != self.candidate.unlabelled_weight

    @property
    def name(self) -> str:
        """What to call it."""
        return self.candidate.name(self.station)

    @property
    def outcome(self) -> Outcome:
        """The training on the first part."""
        assert self.first is not None, "it has been tried"
        return self.first

    @property
    def options(self) -> dict[str, object]:
        """The values of the options that it stands for."""
        return self.candidate.values(self.station)

    @property
    def log_joint(self) -> FloatArray:
        """Log joint densities (C, n) of all held-out rows."""
        return np.concatenate(self.blocks, axis=1)


@dataclass(frozen=True)
class Score:
    """How an entry did on held-out rows.

    Attributes
    ----------
    entry : Entry
        What was scored.
    calibration : Calibration
        What its class probabilities call for.
    log_probabilities : ndarray of shape (C, n)
        Calibrated.
    log_scores : ndarray of shape (n,)
        Those of the labels.
    log_densities : ndarray of shape (n,)
        Of the rows.
    """

    entry: Entry
    calibration: Calibration
    log_probabilities: FloatArray
    log_scores: FloatArray
    log_densities: FloatArray

    @classmethod
    def of(cls, entry: Entry, held: HeldOut, calibrate: bool) -> Score:
        """Score an entry by the labels of the held-out rows."""
        densities = entry.log_joint
        calibration = held.calibration(densities) if calibrate else Calibration()
        logs = calibration.log_probabilities(densities)
        evidence, _ = class_posterior(densities)
        return cls(entry, calibration, logs, held.log_scores(logs), evidence)

    def trial(self, held: HeldOut, share: float) -> Trial:
        """Return the line of the leaderboard."""
        mean, error = mean_and_error(self.log_scores, held.weights)
        entry = self.entry
        return Trial(entry.name, mean, error, entry.seconds, share, entry.options)


@dataclass(eq=False)
class _Begun:
    """A path of trainings that goes as far as it is asked to."""

    dataset: Dataset
    path: Iterator[Outcome]
    outcomes: list[Outcome] = field(default_factory=list)

    def at(self, station: int) -> Outcome:
        """Return what a station leads to, or the last one before an interrupt."""
        self.outcomes += islice(self.path, max(0, station + 1 - len(self.outcomes)))
        return self.outcomes[min(station, len(self.outcomes) - 1)]


@dataclass(frozen=True)
class Search:
    """What trials share: the rows, and how they are trained on.

    Attributes
    ----------
    parts : sequence of Part
        Rows to train candidates on and rows to score them by.
    schema : Schema
        Of their table.
    calibrate : bool
        Whether candidates are scored by calibrated probabilities.
    init : str
        Method of the starts.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    names : sequence of str
        What to call the classes in messages.
    """

    parts: Sequence[Part]
    schema: Schema
    calibrate: bool
    init: str
    generator: np.random.Generator
    pool: Workers
    names: Sequence[str]
    _begun: dict[Candidate, _Begun] = field(default_factory=dict, init=False)

    def held(self, n_parts: int | None = None) -> HeldOut:
        """Return labels and weights of the rows that the first parts hold out."""
        held = [held for _, held in self.parts[:n_parts]]
        return HeldOut(
            np.concatenate([part.labels for part in held]),
            np.concatenate([part.filled_weights for part in held]),
        )

    def work(self, entry: Entry) -> int:
        """Return about how many multiplications the evaluation of a row takes."""
        rest, _ = self.parts[0]
        return entry.outcome.solution.model.work(rest.rows.observed)

    def path(self, candidate: Candidate, dataset: Dataset) -> Iterator[Outcome]:
        """Train a candidate: EM, then its stations."""
        weight = candidate.unlabelled_weight
        rows = dataset if weight else dataset.labelled()
        run = self._run_of(candidate.options, rows, self.init)
        return run.solve_path(rows, candidate.stations, weight)

    def continued(self, entry: Entry, dataset: Dataset) -> Outcome:
        """Train an entry on other rows, from where the first part has led.

        A subspace is that of the first part, which is not good enough where rows are few:
        then training begins anew, once for all stations of a candidate.
        """
        candidate, start = entry.candidate, entry.outcome.solution.model
        needs_subspace = candidate.options.structure.covariances.needs_subspace
        if needs_subspace and dataset.n_rows <= _FEW_ROWS:
            begun = self._begun.get(candidate)
            if begun is None or begun.dataset is not dataset:
                begun = _Begun(dataset, self.path(candidate, dataset))
                self._begun[candidate] = begun
            return begun.at(entry.station)
        weight = entry.final_weight
        rows = dataset if weight else dataset.labelled()
        discrimination = candidate.discrimination(entry.station)
        if dataset.n_rows <= 2 * self.parts[0][0].n_rows:
            n_steps = min(discrimination.n_steps, _FURTHER_STEPS)
            discrimination = replace(discrimination, n_steps=n_steps)
        options = replace(candidate.options, discrimination=discrimination)
        return self._run_of(options, rows, start).solve(rows, None, weight, start)

    def _run_of(
        self, options: ClassifierOptions, dataset: Dataset, init: str | Mixture
    ) -> ClassifierRun:
        return run_of(
            options, self.schema, dataset, init, self.generator, self.pool, self.names
        )

    def scores(
        self, plan: Sequence[Candidate], budget: Budget
    ) -> tuple[list[Score], bool]:
        """Try candidates; return their scores, and whether the user ended the search.

        An interrupt, or the end of the seconds, leaves those that were tried on all
        parts. A candidate that is hopeless on the first part is not tried on the others.
        """
        found: list[Score] = []
        longest = 0.0
        for number, candidate in enumerate(plan):
            if found and budget.is_spent(2.0 * longest):
                break
            began = time.perf_counter()
            try:
                entries, held = self.tried(candidate, found), self.held()
                found += [Score.of(entry, held, self.calibrate) for entry in entries]
                announce("search", number + 1, len(plan), candidate.name())
            except KeyboardInterrupt:
                if not found:
                    raise
                return found, True
            longest = max(longest, time.perf_counter() - began)
        return found, False

    def tried(self, candidate: Candidate, before: Sequence[Score] = ()) -> list[Entry]:
        """Train a candidate on all parts; return nothing if it is hopeless."""
        entries = [Entry(candidate, k) for k in range(len(candidate.stations) + 1)]
        for number, (rest, held) in enumerate(self.parts):
            began = time.perf_counter()
            path = self.path(candidate, rest)
            # Progress is that of the search, and candidates that do not suit the table
            # show in their scores.
            with listening(None), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for entry, outcome in zip(entries, path, strict=True):
                    model = finished(outcome)
                    entry.blocks.append(log_joint(model, held.rows, self.pool))
                    entry.first = entry.first or outcome
                    ended = time.perf_counter()
                    entry.seconds += ended - began
                    began = ended
            if number == 0 and self._are_hopeless(entries, before):
                return []
        return entries

    def _are_hopeless(self, entries: list[Entry], before: Sequence[Score]) -> bool:
        """Return whether all entries trail the best one of before on the first part."""
        if not before or len(self.parts) == 1:
            return False
        held = self.held(1)
        n_rows = len(held.labels)
        best = max(
            (score.log_scores[:n_rows] for score in before),
            key=lambda scores: float(held.weights @ scores),
        )
        for entry in entries:
            own = Score.of(entry, held, self.calibrate).log_scores
            lead, error = mean_and_error(best - own, held.weights)
            if lead <= _HOPELESS * error:
                return False
        return True
