"""What fitted classifiers of sequences can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._checks import is_single
from hybridmix._logsumexp import class_posterior
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import number_labels
from hybridmix.data.sequence_list import Sequences
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.estimators.chain_blocks import (
    each_row,
    each_sequence,
    labels_in_memory,
    over_sequence_blocks,
    path_scores,
    path_states,
)
from hybridmix.estimators.chain_filter import ClassFilter
from hybridmix.estimators.chain_fitted import FittedChainsEstimator, read_sample_lengths
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.models.chain_filtering import advanced
from hybridmix.models.chain_sampling import Ends, drawn_lengths, drawn_numbers


class ChainClassifier(ClassifierMixin, FittedChainsEstimator):
    """Prediction of classes by fitted hidden Markov models."""

    classes_: np.ndarray
    committee_: ChainCommittee
    purpose = "models the sequences of each class by a hidden Markov model"
    fitted_attributes = (
        *FittedChainsEstimator.fitted_attributes,
        "classes_",
        "committee_",
    )

    # Classes ----------------------------------------------------------------------------

    @over_sequence_blocks(each_sequence)
    def predict(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Return the most probable class of each sequence.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.

        Returns
        -------
        y : ndarray of shape (n,)
        """
        best = self._log_probabilities(self._encode(X, lengths).rows).argmax(axis=0)
        return self.classes_[best]

    @over_sequence_blocks(each_sequence)
    def predict_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """Return the class probabilities of each sequence.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.

        Returns
        -------
        probabilities : ndarray of shape (n, C)
            Columns are in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X, lengths))

    @over_sequence_blocks(each_sequence)
    def predict_log_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """Return the logarithms of the class probabilities of each sequence.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.

        Returns
        -------
        log_probabilities : ndarray of shape (n, C)
            Columns are in the order of ``classes_``.
        """
        return self._log_probabilities(self._encode(X, lengths).rows).T

    @over_sequence_blocks(each_sequence)
    def predict_joint_log_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        r"""Return the joint log densities of sequences and classes.

        .. math:: \log p(x, c) = \log p(x) + \log p(c \mid x)

        with the density of `score_samples` and the probabilities of `predict_proba`.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.

        Returns
        -------
        log_joint : ndarray of shape (n, C)
            Natural logarithms, in the units of the columns.
        """
        read = self._encode(X, lengths)
        log_density, _ = class_posterior(self._log_joint(read.rows))
        log_density -= read.log_volume()
        return (self._log_probabilities(read.rows) + log_density).T

    def score(
        self, X: Any, y: Any, lengths: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the share of sequences whose class is predicted correctly.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.
        y : array-like of shape (n,), or str
            Their classes; of a table in blocks, the name of the column.
        sample_weight : array-like of shape (n,), default=None
            What sequences count.

        Returns
        -------
        accuracy : float
        """
        found, known = np.asarray(self.predict(X, lengths)), labels_in_memory(X, y)
        return float(accuracy_score(known, found, sample_weight=sample_weight))

    # States -----------------------------------------------------------------------------

    @over_sequence_blocks(path_scores, path_states)
    def decode(
        self, X: Any, lengths: Any = None, y: Any = None
    ) -> tuple[FloatArray, list[IntArray]]:
        r"""Return the most probable path of states of each sequence, in one class.

        .. math:: \hat s_{1:T} = \arg\max_{s_{1:T}} p(x_{1:T}, s_{1:T}, c),

        found by Viterbi's algorithm.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.
        y : label or array-like of shape (n,), default=None
            The class whose states are to be found, for all sequences or for each; by
            default the predicted one.

        Returns
        -------
        scores : ndarray of shape (n,)
            :math:`\log p(x_{1:T}, \hat s_{1:T}, c)`, in the units of the columns.
        states : list of ndarray of shape (T_i,)
            Number of the state at each frame, among those of the class.
        """
        read = self._encode(X, lengths)
        return self._decoded(read, self._chosen_classes(read.rows, y))

    @over_sequence_blocks(each_row)
    def state_proba(self, X: Any, lengths: Any = None, y: Any = None) -> list[FloatArray]:
        r"""Return the probabilities of the states at each frame, given whole sequences.

        .. math:: p(s_t \mid x_{1:T}, c)

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.
        y : label or array-like of shape (n,), default=None
            The class :math:`c` of all sequences or of each; by default the predicted one.

        Returns
        -------
        probabilities : list of ndarray of shape (T_i, K)
        """
        read = self._encode(X, lengths)
        return self._state_probabilities(read, self._chosen_classes(read.rows, y))

    def filter(self) -> ClassFilter:
        """Return a filter that takes frames as they arrive.

        Returns
        -------
        filter : ClassFilter
            Its ``update(frame)`` returns the class probabilities after each frame, those
            of `predict_proba` for the frames so far.
        """
        check_is_fitted(self, "model_")
        return ClassFilter(self)

    def sample(
        self,
        n_samples: int = 1,
        lengths: Any = None,
        y: Any = None,
        random_state: Any = None,
    ) -> tuple[Sequences, np.ndarray]:
        """Draw sequences and their classes from the joint distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of sequences.
        lengths : int or array-like of shape (n_samples,), default=None
            Numbers of frames. By default, sequences end by chance if ends are modelled
            (``exits=True``); otherwise lengths are one more than draws from Poisson
            distributions, whose means are such that classes have their mean lengths in
            training.
        y : label or array-like of shape (n_samples,), default=None
            Class of all sequences or of each; by default drawn as well.
        random_state : int, RandomState or None, default=None
            None uses the estimator's own.

        Returns
        -------
        X : Sequences
            A list of sequences, whose frames are like those of training.
        y : ndarray of shape (n_samples,)
            Their classes.
        """
        check_is_fitted(self, "model_")
        model = self.model_
        given = read_sample_lengths(lengths, n_samples)
        generator = np.random.default_rng(self._seed(random_state))
        if y is not None:
            labels = self._labels_of(y, n_samples)
        else:
            log_classes = np.repeat(model.log_class_prior[:, None], n_samples, axis=1)
            if given is not None:
                log_classes = Ends.of(model, given.max()).log_classes(model, given)
            labels = drawn_numbers(np.exp(log_classes.T), generator)
        chosen = drawn_lengths(model, labels, generator) if given is None else given
        return self._sampled(labels, chosen, generator)[0], self.classes_[labels]

    # Inside -----------------------------------------------------------------------------

    def _log_probabilities(self, rows: SequenceRows) -> FloatArray:
        """Return the log probabilities (C, n) of the classes."""
        return self.committee_.log_probabilities(
            lambda member: self._log_joint(rows, member), rows.lengths
        )

    def _path_classes(self, rows: SequenceRows) -> IntArray:
        return self._log_probabilities(rows).argmax(axis=0)

    def _chosen_classes(self, rows: SequenceRows, y: Any) -> IntArray:
        """Return the class numbers (n,) of given labels, or of the predicted ones."""
        if y is None:
            return self._path_classes(rows)
        return self._labels_of(y, rows.n_rows)

    def _labels_of(self, y: Any, n_sequences: int) -> IntArray:
        """Return the class numbers (n,) of one label or n, none of them missing."""
        given = np.full(n_sequences, y) if is_single(y) else y
        labels = number_labels(given, self.classes_, None)
        check_consistent_length(labels, np.empty(n_sequences))
        for number in np.flatnonzero(labels < 0)[:1]:
            raise ValueError(
                f"y has no label for sequence {number}: every sequence needs a class."
            )
        return labels

    def _next_classes(self, rows: SequenceRows, n_steps: int) -> Iterator[FloatArray]:
        members = self.committee_.members
        beliefs = [self._last_belief(rows, member) for member in members]
        for _ in range(n_steps):
            pairs = zip(members, beliefs, strict=True)
            beliefs = [advanced(member, own) for member, own in pairs]
            joints = [own.log_joint for own in beliefs]
            yield self.committee_.votes(joints, rows.lengths)

    def check_consistent(self) -> None:
        """Raise ValueError unless classes and members belong together."""
        super().check_consistent()
        require(np.ndim(self.classes_) == 1, "classes_ is not a list of labels")
        n_distinct = len(set(self.classes_.tolist()))
        require(n_distinct == len(self.classes_), "classes_ has a label twice")
        require_instance("committee_", self.committee_, ChainCommittee)
        for member in self.committee_.members:
            self._check_model("committee_", member)
