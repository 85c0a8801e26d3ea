"""The density of sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix._typing import IntArray
from hybridmix.data import Schema
from hybridmix.data.sequence_list import Sequences
from hybridmix.estimators.chain_filter import SequenceFilter
from hybridmix.estimators.chain_fitted import read_sample_lengths
from hybridmix.estimators.chain_options import ChainEstimator
from hybridmix.estimators.chain_published import state_attributes
from hybridmix.estimators.options import warn_of
from hybridmix.models.chain_sampling import drawn_lengths
from hybridmix.models.chains import Chains
from hybridmix.progress import printing
from hybridmix.training.chain_search import fit_chosen
from hybridmix.training.chains import fit_chains


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class HMMDensity(DensityMixin, ChainEstimator):
    n_states: int | str = field(default="auto", kw_only=False)

    def fit(
        self, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None
    ) -> Self:
        self._check_options()
        read = self._learn_sequences(X, lengths, None, sample_weight)
        options, automatic = self._chain_options(), self._automatic()
        generator = np.random.default_rng(self._seed())
        with workers(self.n_jobs) as pool, printing(self.verbose):
            if automatic:
                fitted = fit_chosen(
                    options,
                    automatic,
                    self.effort,
                    read.dataset,
                    read.schema,
                    1,
                    generator,
                    pool,
                )
            else:
                fitted = fit_chains(
                    options, read.dataset, read.schema, 1, generator, pool
                )
        self._publish({**read.attributes, **self._learned_attributes(fitted)})
        warn_of(fitted.messages)
        return self

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Return the mean log density of sequences.

        Parameters
        ----------
        X, lengths
            Sequences, as in `score_samples`.
        y : ignored
            For pipelines.

        Returns
        -------
        score : float
            Of sequences, not of frames; in the units of the columns.
        """
        return float(np.mean(self.score_samples(X, lengths)))

    def filter(self) -> SequenceFilter:
        """Return a filter that takes frames as they come.

        Returns
        -------
        filter : SequenceFilter
            Its ``update(frame)`` returns the log density of each frame given those before
            it, and its ``log_density`` is that of `score_samples` for the frames so far.
        """
        check_is_fitted(self, "model_")
        return SequenceFilter(self)

    def sample(
        self, n_samples: int = 1, lengths: Any = None, random_state: Any = None
    ) -> tuple[Sequences, list[IntArray]]:
        """Draw sequences and their paths of states.

        Parameters
        ----------
        n_samples : int, default=1
            Number of sequences.
        lengths : int or array-like of shape (n_samples,), default=None
            Numbers of frames. By default, sequences end by chance if ends are modelled
            (``exits=True``); otherwise lengths are one more than draws from a Poisson
            distribution, whose mean is such that they have the mean length in training.
        random_state : int, RandomState or None, default=None
            None uses the estimator's own.

        Returns
        -------
        X : Sequences
            A list of sequences, whose frames are like those of training.
        states : list of ndarray of shape (T_i,)
            Number of the state that each frame comes from.
        """
        check_is_fitted(self, "model_")
        given = read_sample_lengths(lengths, n_samples)
        generator = np.random.default_rng(self._seed(random_state))
        labels = np.zeros(n_samples, np.intp)
        if given is None:
            given = drawn_lengths(self.model_, labels, generator)
        return self._sampled(labels, given, generator)

    def _derived_attributes(self, model: Chains, schema: Schema) -> dict[str, Any]:
        return state_attributes(model, schema, has_classes=False)
