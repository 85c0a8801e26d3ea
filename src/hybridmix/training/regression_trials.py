"""Candidates of a regressor, trained on some rows and scored on others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

from hybridmix._typing import FloatArray
from hybridmix.data import Dataset
from hybridmix.models.mixture import Mixture
from hybridmix.progress import announce, listening
from hybridmix.solvers import Solution
from hybridmix.training.budget import Budget
from hybridmix.training.candidates import Candidate
from hybridmix.training.classes import Estimation
from hybridmix.training.leaderboard import Trial, mean_and_error
from hybridmix.training.regression_plan import Plan
from hybridmix.training.targets import SPREADS, TargetTrainer

# Rows to train on, and rows to score.
Part = tuple[Dataset, Dataset]
# Where the spread is 1.
PLAIN = len(SPREADS) // 2
# A candidate that trails the best one by this many standard errors on the first part is
# not trained on the others.
_HOPELESS = 2.0
# EM of a candidate need not come closer to its maximum than candidates are apart.
_ROUGH = Estimation(n_init=1, max_iter=30, tol=1e-3)


@dataclass(eq=False)
class Entry:
    """A candidate with a tradeoff, and what it says about held-out rows.

    Attributes
    ----------
    candidate : Candidate
        The structure.
    tradeoff : float
        Weight of the predictive likelihood; 0 for EM alone.
    blocks : list of ndarray of shape (G + 1, n)
        For the held-out rows of each part: log predictive densities for all spreads, then
        log densities of the rows without their targets.
    models : list of Mixture
        One for each start, trained on the first part.
    seconds : float
        What its trainings took.
    """

    candidate: Candidate
    tradeoff: float
    blocks: list[FloatArray] = field(default_factory=list)
    models: list[Mixture] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """What to call it."""
        if self.tradeoff == 0.0:
            return self.candidate.name
        return f"{self.candidate.name}, tradeoff {self.tradeoff:g}"

    @property
    def options(self) -> dict[str, object]:
        """The values of the options that it stands for."""
        return {
            **self.candidate.options,
            "noise": self.candidate.structure.noise,
            "tradeoff": self.tradeoff,
            "n_starts": len(self.models),
        }

    def logs(self) -> FloatArray:
        """Return the blocks of all parts side by side."""
        return np.concatenate(self.blocks, axis=1)

    def trial(self, weights: FloatArray, share: float) -> Trial:
        """Return the line of the leaderboard."""
        mean, error = mean_and_error(self.logs()[PLAIN], weights)
        return Trial(self.name, mean, error, self.seconds, share, self.options)


@dataclass(frozen=True)
class RegressionSearch:
    """What trials share: the rows, and how they are trained on.

    Attributes
    ----------
    trainer : TargetTrainer
        Trains and scores single mixtures.
    parts : sequence of Part
        Rows to train candidates on and rows to score them by.
    plan : Plan
        What to try.
    init : str
        Method of the starts.
    seed : int
        Source of randomness.
    """

    trainer: TargetTrainer
    parts: Sequence[Part]
    plan: Plan
    init: str
    seed: int

    def weights(self, n_parts: int | None = None) -> FloatArray:
        """Return the weights of the rows that the first parts hold out."""
        held = [held.filled_weights for _, held in self.parts[:n_parts]]
        return np.concatenate(held)

    def tried(self, budget: Budget) -> tuple[list[Entry], bool]:
        """Try all candidates; return entries, and whether the user ended the search.

        An interrupt, or the end of the seconds, leaves those that were tried on all
        parts.
        """
        found: list[Entry] = []
        longest = 0.0
        total = len(self.plan.candidates)
        for number, candidate in enumerate(self.plan.candidates):
            if found and budget.is_spent(2.0 * longest):
                break
            began = time.perf_counter()
            try:
                found += self.entries(candidate, found)
                announce("search", number + 1, total, candidate.name)
            except KeyboardInterrupt:
                if not found:
                    raise
                return found, True
            longest = max(longest, time.perf_counter() - began)
        return found, False

    def entries(self, candidate: Candidate, before: Sequence[Entry]) -> list[Entry]:
        """Train a candidate on all parts; return nothing if it is hopeless."""
        entries = [Entry(candidate, t) for t in (0.0, *self.plan.tradeoffs)]
        # Progress is that of the search, and candidates that do not suit the table show
        # in their scores.
        with listening(None), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(len(self.parts)):
                if number == 0:
                    entries = self._first_part(entries)
                else:
                    self._train(entries, number)
                if number == 0 and self._are_hopeless(entries, before):
                    return []
        return entries

    def _first_part(self, entries: list[Entry]) -> list[Entry]:
        """Train on the first part, as far as higher tradeoffs do better there."""
        weights = self.weights(1)
        last = -np.inf
        for n_kept in range(1, len(entries) + 1):
            self._train(entries[:n_kept], 0, n_kept - 1)
            score = float(weights @ entries[n_kept - 1].blocks[0][PLAIN])
            if score < last and not self.plan.is_given:
                return entries[:n_kept]
            last = score
        return entries

    def _train(self, entries: Sequence[Entry], number: int, first: int = 0) -> None:
        """Train entries on a part, each from the one before, and score them.

        Those before the given one are trained already.
        """
        rest, held = self.parts[number]
        candidate = entries[0].candidate
        n_starts = self.plan.starts[candidate.name]
        models = list(entries[first - 1].models) if first else []
        for entry in entries[first:]:
            began = time.perf_counter()
            if entry.tradeoff == 0.0:
                models = [
                    _finished(
                        self.trainer.fitted(
                            candidate,
                            rest,
                            _ROUGH,
                            self.init,
                            [self.seed, 1, number, start],
                        )
                    )
                    for start in range(n_starts)
                ]
            else:
                models = [
                    _finished(self.trainer.conditioned(model, rest, entry.tradeoff))
                    for model in models
                ]
            logs = [self.trainer.log_predictive(model, held) for model in models]
            entry.blocks.append(_averaged(logs))
            entry.models = entry.models or models
            entry.seconds += time.perf_counter() - began

    def _are_hopeless(self, entries: list[Entry], before: Sequence[Entry]) -> bool:
        """Return whether all entries trail the best one of before on the first part."""
        if not before or len(self.parts) == 1:
            return False
        weights = self.weights(1)
        scores = [entry.blocks[0][PLAIN] for entry in before]
        best = max(scores, key=lambda own: float(weights @ own))
        for entry in entries:
            lead, error = mean_and_error(best - entry.blocks[0][PLAIN], weights)
            if lead <= _HOPELESS * error:
                return False
        return True


def _finished(solution: Solution[Mixture]) -> Mixture:
    """Return the model of a solution; an interrupt of one fit is meant for all."""
    if solution.interrupted:
        raise KeyboardInterrupt
    return solution.model


def _averaged(logs: Sequence[FloatArray]) -> FloatArray:
    """Return the logs of the mean densities; a density that is lost counts nothing."""
    means = logsumexp(np.stack(logs), axis=0) - np.log(len(logs))
    return np.nan_to_num(means, nan=-1e6, posinf=-1e6, neginf=-1e6)
