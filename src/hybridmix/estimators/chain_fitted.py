"""What fitted hidden Markov models can do, with classes or without."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import is_learned
from hybridmix._logsumexp import class_posterior
from hybridmix._parallel import workers
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.data.sequences import restore
from hybridmix.estimators.chain_reading import EncodedSequences, read_encoded
from hybridmix.estimators.imputation import new_columns
from hybridmix.evaluation import ChunkedRows, log_joint
from hybridmix.models.chain_filling import filled_frames
from hybridmix.models.chains import Chains


class FittedChainsEstimator(BaseEstimator):
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

    n_jobs: int | None
    random_state: Any
    schema_: Schema
    model_: Chains
    fingerprint_: Fingerprint
    # What the estimator does, to follow its name in a sentence, as reports have it.
    purpose: ClassVar[str] = "models sequences by a hidden Markov model"
    # What a fitted estimator has in any case, for files and checks.
    fitted_attributes: ClassVar[tuple[str, ...]] = ("schema_", "model_", "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _publish(self, attributes: dict[str, Any]) -> None:
        """Replace everything that an earlier fit has learned, in one statement."""
        kept = {k: v for k, v in vars(self).items() if not is_learned(k)}
        self.__dict__ = {**kept, **attributes}

    def check_consistent(self) -> None:
        """Raise ValueError unless the fitted attributes fit together."""
        check_is_fitted(self, list(self.fitted_attributes))
        schema = self.schema_
        require_instance("schema_", schema, Schema)
        require(schema.n_columns == self.n_features_in_, "n_features_in_ is wrong")
        names = tuple(getattr(self, "feature_names_in_", schema.names or ()))
        require(schema.names in (None, names), "feature_names_in_ is wrong")
        self._check_model("model_", self.model_)

    def _check_model(self, name: str, model: Any) -> None:
        """Raise ValueError unless a model is one of the columns and of the classes."""
        require_instance(name, model, Chains)
        n_classes = len(getattr(self, "classes_", [0]))
        require(model.n_classes == n_classes, f"{name} has other classes than classes_")
        layout = model.family.layout()
        wanted = (len(self.schema_.real), self.schema_.code_sizes)
        require(layout in (None, wanted), f"{name} has other columns than schema_")

    # Reading and evaluation -------------------------------------------------------------

    def _encode(self, X: Any, lengths: Any) -> EncodedSequences:
        check_is_fitted(self, "model_")
        return read_encoded(self, self.schema_, X, lengths)

    def _seed(self, random_state: Any = None) -> int:
        """Draw a seed from the given random state, or from the estimator's own."""
        state = self.random_state if random_state is None else random_state
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))

    def _log_joint(self, rows: SequenceRows, model: Chains | None = None) -> FloatArray:
        """Return the log joint densities (C, n) of a model, in scaled coordinates."""
        with workers(self.n_jobs) as pool:
            return log_joint(self.model_ if model is None else model, rows, pool)

    def _path_classes(self, rows: SequenceRows) -> IntArray:
        """Return the class numbers (n,) whose paths of states are shown."""
        return self._log_joint(rows).argmax(axis=0)

    # Public -----------------------------------------------------------------------------

    def score_samples(self, X: Any, lengths: Any = None) -> FloatArray:
        """Return the log density of each sequence, over the values that it has.

        Parameters
        ----------
        X : sequences
            A list of arrays or data frames of shape (T_i, d), an array of shape
            (n, T, d), a `Sequences`, a data frame with a two-level index, or stacked
            frames together with ``lengths``. Missing values are marginalised.
        lengths : array-like of shape (n,), default=None
            Numbers of frames, if ``X`` does not show them.

        Returns
        -------
        log_density : ndarray of shape (n,)
            Natural logarithm, in the units of the columns.
        """
        read = self._encode(X, lengths)
        return class_posterior(self._log_joint(read.rows))[0] - read.log_volume()

    def _paths(self, rows: SequenceRows, labels: IntArray) -> tuple[FloatArray, IntArray]:
        """Return scores (n,) and states (F,) of the best paths in given classes."""
        with workers(self.n_jobs) as pool:
            chunked = ChunkedRows(rows, self.model_, pool)

            def paths(number: int) -> tuple[FloatArray, IntArray]:
                prepared = chunked.prepared(number, self.model_)
                return self.model_.paths(prepared, labels[chunked.chunks[number]])

            parts = list(chunked.map(paths))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))  # type: ignore[return-value]

    def _state_posterior(self, rows: SequenceRows, labels: IntArray) -> FloatArray:
        """Return the probabilities (F, K) of states in given classes."""
        with workers(self.n_jobs) as pool:
            chunked = ChunkedRows(rows, self.model_, pool)

            def posterior(number: int) -> FloatArray:
                prepared = chunked.prepared(number, self.model_)
                own = labels[chunked.chunks[number]]
                return self.model_.state_probabilities(prepared, own)

            return np.concatenate(list(chunked.map(posterior)))

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
