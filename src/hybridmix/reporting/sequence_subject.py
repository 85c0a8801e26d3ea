"""What a report on sequences is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED
from hybridmix.data.sequences import read_sequences
from hybridmix.estimators.chain_fitted import FittedChainsEstimator
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.subject import Subject
from hybridmix.tasks import task_of
from hybridmix.tasks.base import quiet
from hybridmix.tasks.provenance import looked_up_sequences


@dataclass(frozen=True, eq=False)
class SequenceSubject(Subject):
    """A fitted model of sequences, sequences, and their labels.

    Attributes are those of `Subject`. ``X`` is a `Sequences`; ``columns`` and ``table``
    have its frames, and ``y`` and ``truth`` an item for each sequence.
    """

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, n_folds: int, baselines: bool, seed: int
    ) -> SequenceSubject:
        """Read sequences by the schema of a fitted model, and labels by its task."""
        check_is_fitted(model, "model_")
        sequences = read_sequences(X)
        with quiet():
            read = model._encode(sequences, None)
        known, truth = task_of(model).read(model, y, len(sequences))
        return cls(
            model,
            model,
            sequences,
            read.columns,
            read.table,
            known,
            truth,
            n_folds,
            baselines,
            seed,
        )

    @property
    def n_rows(self) -> int:
        """Number of sequences."""
        return len(self.X)

    @property
    def lengths(self) -> IntArray:
        """Numbers of frames, (n,)."""
        return self.X.lengths

    def row_name(self, row: int) -> str:
        """Name a sequence: by its id, or by its number if it has none."""
        return str(row if self.X.ids is None else self.X.ids[row])

    @cached_property
    def _found(self) -> IntArray | None:
        return looked_up_sequences(self.model, self.X)

    @cached_property
    def log_density(self) -> FloatArray:
        """Log densities of the scored sequences, per frame."""
        with quiet():
            scores = self.model.score_samples(self.part(self.scored))
        return scores / self.lengths[self.scored]

    # States -----------------------------------------------------------------------

    @cached_property
    def predicted(self) -> IntArray:
        """The numbers of the predicted classes, (n,)."""
        with quiet():
            return self.model.predict_proba(self.X).argmax(axis=1)

    @cached_property
    def shown_classes(self) -> IntArray:
        """The classes whose states are shown, (n,): labels, or else predictions."""
        if not self.has_classes:
            return self.truth
        return np.where(self.truth == UNLABELLED, self.predicted, self.truth)

    @cached_property
    def state_probabilities(self) -> list[FloatArray]:
        """For each sequence, probabilities (T_i, K) of the states of that class."""
        with quiet():
            return self.model.state_proba(self.X, **self._shown_labels)

    @cached_property
    def paths(self) -> list[IntArray]:
        """For each sequence, the most probable path (T_i,) of states of that class."""
        with quiet():
            return self.model.decode(self.X, **self._shown_labels)[1]

    @property
    def _shown_labels(self) -> dict[str, np.ndarray]:
        if not self.has_classes:
            return {}
        return {"y": self.model.classes_[self.shown_classes]}


def subject_of(
    model: Any, X: Any, y: Any, n_folds: int, baselines: bool, seed: int
) -> Subject:
    """Return what a report on a model of rows or of sequences is about."""
    is_sequential = isinstance(model, FittedChainsEstimator)
    kind = SequenceSubject if is_sequential else Subject
    return kind.of(model, X, y, n_folds, baselines, seed)


def sequences_of(findings: Findings) -> SequenceSubject:
    """Return the sequences that findings are about."""
    assert isinstance(findings.subject, SequenceSubject)
    return findings.subject
