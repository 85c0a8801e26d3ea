"""What fitted hidden Markov models can do, with classes or without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number
from hybridmix._logsumexp import class_posterior
from hybridmix._parallel import workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.lengths import read_lengths
from hybridmix.data.sequence_list import Sequences
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.data.sequences import restore
from hybridmix.estimators.chain_blocks import (
    each_row,
    each_sequence,
    over_sequence_blocks,
    path_scores,
    path_states,
)
from hybridmix.estimators.chain_forecasts import assembled_frames, forecast_frames
from hybridmix.estimators.chain_reading import EncodedSequences, read_encoded
from hybridmix.estimators.chain_typicality import log_typicality
from hybridmix.estimators.fitted import FittedModel
from hybridmix.estimators.imputation import new_columns
from hybridmix.evaluation import ChunkedRows, log_joint
from hybridmix.models.chain_filling import filled_frames
from hybridmix.models.chain_filtering import (
    Belief,
    advanced,
    component_weights,
    last_belief,
)
from hybridmix.models.chain_sampling import drawn_sequences
from hybridmix.models.chains import Chains
from hybridmix.models.packed import PreparedSequences

Result = TypeVar("Result")


class FittedChainsEstimator(FittedModel):
    """Base of the estimators of sequences: use of fitted hidden Markov models.

    Attributes
    ----------
    schema_ : Schema
        What training learned about the columns of frames.
    model_ : Chains
        The model, in scaled coordinates.
    fingerprint_ : Fingerprint
        Which frames were in training.
    """

    model_: Chains
    purpose: ClassVar[str] = "models sequences by a hidden Markov model"
    model_type: ClassVar[type] = Chains

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    # Reading and evaluation -------------------------------------------------------------

    def _encode(self, X: Any, lengths: Any) -> EncodedSequences:
        check_is_fitted(self, "model_")
        return read_encoded(self, self.schema_, X, lengths)

    def _log_joint(self, rows: SequenceRows, model: Chains | None = None) -> FloatArray:
        """Return the log joint densities (C, n) of a model, in scaled coordinates."""
        with workers(self.n_jobs) as pool:
            return log_joint(self.model_ if model is None else model, rows, pool)

    def _by_chunk(
        self,
        rows: SequenceRows,
        model: Chains,
        read: Callable[[PreparedSequences, slice], Result],
    ) -> list[Result]:
        """Return what is read from the chunks of sequences, on threads."""
        with workers(self.n_jobs) as pool:
            chunked = ChunkedRows(rows, model, pool)

            def one(number: int) -> Result:
                return read(chunked.prepared(number, model), chunked.chunks[number])

            return list(chunked.map(one))

    def _path_classes(self, rows: SequenceRows) -> IntArray:
        """Return the class numbers (n,) whose paths of states are shown."""
        return self._log_joint(rows).argmax(axis=0)

    def _decoded(
        self, read: EncodedSequences, labels: IntArray
    ) -> tuple[FloatArray, list[IntArray]]:
        """Return scores and states of the best paths in given classes (n,)."""
        model = self.model_
        parts = self._by_chunk(
            read.rows, model, lambda prepared, here: model.paths(prepared, labels[here])
        )
        scores, states = map(np.concatenate, zip(*parts, strict=True))
        return scores - read.log_volume(), read.sequences.split(states)  # type: ignore[return-value]

    def _state_probabilities(
        self, read: EncodedSequences, labels: IntArray
    ) -> list[FloatArray]:
        """Return the probabilities of states in given classes (n,)."""
        model = self.model_
        parts = self._by_chunk(
            read.rows,
            model,
            lambda prepared, here: model.state_probabilities(prepared, labels[here]),
        )
        return read.sequences.split(np.concatenate(parts))  # type: ignore[return-value]

    def _last_belief(self, rows: SequenceRows, model: Chains) -> Belief:
        """Return what a model knows after the last frames."""
        parts = self._by_chunk(
            rows, model, lambda prepared, _: last_belief(model, prepared)
        )
        return Belief(
            np.concatenate([part.log_joint for part in parts], axis=-1),
            np.concatenate([part.log_states for part in parts], axis=-1),
        )

    def _next_classes(self, rows: SequenceRows, n_steps: int) -> Iterator[FloatArray]:
        """Yield log class probabilities (C, n) of sequences that go on, step by step."""
        for _ in range(n_steps):
            yield np.zeros((1, rows.n_rows))

    def _sampled(
        self, labels: IntArray, lengths: IntArray, generator: np.random.Generator
    ) -> tuple[Sequences, list[IntArray]]:
        """Draw sequences of given classes (n,) and lengths (n,), and their states."""
        drawn = drawn_sequences(self.model_, labels, lengths, generator)
        frames = self.schema_.decode(drawn.rows.frames)
        sequences = Sequences(frames, lengths)
        return sequences, sequences.split(drawn.states)  # type: ignore[return-value]

    # Public -----------------------------------------------------------------------------

    @over_sequence_blocks(each_sequence)
    def score_samples(self, X: Any, lengths: Any = None) -> FloatArray:
        """Return the log density of each sequence, over the values that it has.

        Parameters
        ----------
        X : sequences
            A list of arrays or data frames of shape (T_i, d), an array of shape
            (n, T, d), a `Sequences`, a data frame with a two-level index, or stacked
            frames together with ``lengths``. Missing values are marginalised. Of a table
            in blocks (`Sequences.from_long`), results are in the order of its ``ids``,
            and lazy if it is a Dask data frame; those of frames are arrays with a line
            for each row of the table.
        lengths : array-like of shape (n,), default=None
            Numbers of frames, if ``X`` does not show them.

        Returns
        -------
        log_density : ndarray of shape (n,)
            Natural logarithm, in the units of the columns.
        """
        read = self._encode(X, lengths)
        return class_posterior(self._log_joint(read.rows))[0] - read.log_volume()

    @over_sequence_blocks(path_scores, path_states)
    def decode(self, X: Any, lengths: Any = None) -> tuple[FloatArray, list[IntArray]]:
        r"""Return the most probable path of states of each sequence.

        .. math:: \hat s_{1:T} = \arg\max_{s_{1:T}} p(x_{1:T}, s_{1:T}),

        found by Viterbi's algorithm.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.

        Returns
        -------
        scores : ndarray of shape (n,)
            :math:`\log p(x_{1:T}, \hat s_{1:T})`, in the units of the columns.
        states : list of ndarray of shape (T_i,)
            Number of the state at each frame.
        """
        read = self._encode(X, lengths)
        return self._decoded(read, self._path_classes(read.rows))

    @over_sequence_blocks(each_row)
    def state_proba(self, X: Any, lengths: Any = None) -> list[FloatArray]:
        r"""Return the probabilities of the states at each frame, given whole sequences.

        .. math:: p(s_t \mid x_{1:T})

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.

        Returns
        -------
        probabilities : list of ndarray of shape (T_i, K)
        """
        read = self._encode(X, lengths)
        return self._state_probabilities(read, self._path_classes(read.rows))

    @over_sequence_blocks(each_sequence)
    def typicality(
        self, X: Any, lengths: Any = None, random_state: Any = 0
    ) -> FloatArray:
        r"""Return how typical sequences are, at most 0; the lower, the less typical.

        .. math:: \log P\big( p(X_o) \le p(x_o) \mid T \big),

        the logarithm of the probability that the model itself produces a sequence of no
        higher density, among those of the same length :math:`T` and with the same holes.
        So long sequences can be compared with short ones, and incomplete with complete
        ones, which log densities do not allow. Below log 0.01 lie about one in a hundred
        sequences of the model.

        The log densities of sequences drawn from the model, 400 for each length and
        pattern of holes, show how these are distributed; beyond the drawn ones, a gamma
        distribution with their first three moments says how fast the tail falls.
        With several classes this is done class by class, with at least 40 sequences of
        each.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.
        random_state : int, RandomState or None, default=0
            Of the draws. By default they are always the same, so that results can be
            repeated; None uses the estimator's own.

        Returns
        -------
        log_probability : ndarray of shape (n,)
            Natural logarithm; it does not depend on the units of the columns.
        """
        read = self._encode(X, lengths)
        log_density, _ = class_posterior(self._log_joint(read.rows))
        seed = self._seed(random_state)
        with workers(self.n_jobs) as pool:
            return log_typicality(
                self.model_, read.table, read.lengths, log_density, seed, pool
            )

    def predict_next(
        self, X: Any, lengths: Any = None, n_steps: int = 1, return_std: bool = False
    ) -> Any:
        r"""Forecast the frames that follow the sequences.

        .. math:: p(x_{T+h} \mid x_{1:T}) = \sum_c p(c \mid x_{1:T})
                  \sum_{s} p(s_{T+h} = s \mid x_{1:T}, c)\, p(x_{T+h} \mid c, s)

        Where ends are modelled, all of it is given that the sequence goes on for
        :math:`h` more frames.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.
        n_steps : int, default=1
            How many frames to forecast.
        return_std : bool, default=False
            Return also the standard deviations of the distributions.

        Returns
        -------
        frames : ndarray of shape (n, n_steps, d), or list of data frames
            Means of the real columns and most probable categories of the others, like
            the frames of training: data frames of ``n_steps`` rows if these were.
        std : ndarray of shape (n, n_steps, d)
            Standard deviations of the real columns, NaN for the others; only if
            ``return_std``.
        """
        check_number("n_steps", n_steps, 1, whole=True)
        rows, model = self._encode(X, lengths).rows, self.model_
        belief = self._last_belief(rows, model)
        beliefs, weights = [], []
        for log_classes in self._next_classes(rows, n_steps):
            belief = advanced(model, belief)
            beliefs.append(belief)
            weights.append(component_weights(model, belief, log_classes))
        last = rows.frames[np.cumsum(rows.lengths) - 1]
        steps = forecast_frames(model, self.schema_, last, beliefs, weights)
        frames, deviations = assembled_frames(self.schema_, steps)
        return (frames, deviations) if return_std else frames

    def impute(self, X: Any, lengths: Any = None) -> Any:
        """Fill the holes of sequences by what the whole of each sequence suggests.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.

        Returns
        -------
        X : list, ndarray, data frame or `Sequences`
            A completed copy, in the form of ``X``. Holes of real columns get their
            conditional mean, averaged over classes, states and components; those of
            categorical columns the most probable category. With ``autoregressive=True``,
            frames before and after a hole count by themselves, which follows signals
            that change smoothly.
        """
        read = self._encode(X, lengths)
        with workers(self.n_jobs) as pool:
            chunked = ChunkedRows(read.rows, self.model_, pool)

            def fill(number: int) -> tuple[FloatArray, IntArray]:
                filled = filled_frames(self.model_, read.rows[chunked.chunks[number]])
                return self.schema_.restored(filled), filled.codes

            parts = list(chunked.map(fill))
        frames = read.columns.replaced(new_columns(read.table, read.columns, parts))
        return restore(X, frames, lengths)


def read_sample_lengths(lengths: Any, n_samples: int) -> IntArray | None:
    """Return the lengths (n,) of sequences to be drawn; None if they are not given."""
    check_number("n_samples", n_samples, 1, whole=True)
    if lengths is None:
        return None
    if np.ndim(lengths) == 0:
        check_number("lengths", lengths, 1, whole=True)
        return np.full(n_samples, int(lengths))
    found = read_lengths(lengths)
    if len(found) != n_samples:
        raise ValueError(
            f"lengths has {len(found)} numbers, but n_samples={n_samples}: pass one for "
            "each sequence, or a single number for all."
        )
    return found
