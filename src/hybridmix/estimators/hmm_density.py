"""The density of sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

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


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class HMMDensity(DensityMixin, ChainEstimator):
    r"""Model sequences of numbers and categories by a hidden Markov model.

    .. math:: p(x_{1:T}) = \sum_{s_{1:T}} a_{s_1} \prod_{t=2}^{T} A_{s_{t-1} s_t}
              \prod_{t=1}^{T} p(x_t \mid s_t)

    with states :math:`s_t` whose frames have mixture densities: Gaussian in the real
    columns, and independent categorical ones. It is fitted by EM from segmental k-means.
    Missing values are marginalised exactly, in training and in everything that follows.

    Parameters
    ----------
    n_states : int or "auto", default="auto"
        Number of states. By default, numbers of states, topologies and covariance types
        compete by the density of held-out sequences, and the simplest within the noise of
        the best is fitted.
    topology, covariance_type, exits, autoregressive, n_components, transition_prior, \
    n_factors, noise, covariance_prior, variance_floor, smoothing, \
    categorical_features, column_shapes, n_init, max_iter, tol, effort, n_jobs, \
    random_state, verbose
        As in `HybridHMMClassifier`; but frames do not depend on the frame before unless
        ``autoregressive`` is True or "auto".

    Attributes
    ----------
    n_states_, topology_, covariance_type_
        What was given or chosen; ``covariance_type_`` is None without real columns.
    start_ : ndarray of shape (n_states_,)
        Probabilities :math:`a_s` of the first state.
    transitions_ : ndarray of shape (n_states_, n_states_)
        Probabilities :math:`A_{ss'}` of the next state (column).
    exits_ : ndarray of shape (n_states_,)
        Probabilities of an end after each state; those of its transitions sum to the
        rest. Only if ``exits``.
    mixing_ : ndarray of shape (n_states_, n_components)
        Proportions of the components of each state.
    means_, covariances_, category_probabilities_, spike_probabilities_
        As in `MixtureDensity`, with the axes of ``mixing_`` in place of that of the
        components.
    loading_, noise_variances_, categories_
        As in `MixtureDensity`.
    mean_lengths_ : float
        Mean number of frames of the training sequences.
    leaderboard_ : list of dict
        What the search has tried, best first, as in `MixtureDensity`; the score is the
        mean log density per frame of held-out sequences, in scaled coordinates. Absent
        without a search.
    n_searched_ : int
        How many sequences the search has looked at. Absent without a search.
    model_ : Chains
        The model, in scaled coordinates.
    n_iter_ : int
        EM iterations of the best start.
    history_ : dict of str to ndarray
        What changed along these iterations, as means per sequence.
    trace_ : ndarray
        Mean log-likelihood of the sequences, with prior, along these iterations.
    converged_, interrupted_, n_features_in_, feature_names_in_
        As in `HybridHMMClassifier`.

    See Also
    --------
    HybridHMMClassifier : A hidden Markov model for each class.
    MixtureDensity : The same for tables.
    Sequences : Sequences, read from arrays and data frames.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import HMMDensity
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(np.repeat([0.0, 4.0], 5), 0.5)[:, None] for _ in range(20)]
    >>> density = HMMDensity(2, topology="left-right", covariance_type="diag",
    ...                      random_state=0).fit(X)
    >>> density.means_.round(1).ravel()
    array([0., 4.])
    >>> density.decode(X[:1])[1]
    [array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])]
    >>> density.predict_next([X[0][:3]], n_steps=2).round(1)
    array([[[0.8],
            [1.5]]])
    >>> sequences, states = density.sample(3, random_state=0)
    >>> sequences
    Sequences(3 sequences of 8 to 16 frames, 1 column, numpy)
    """

    n_states: int | str = field(default="auto", kw_only=False)

    def fit(
        self, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : sequences
            A list of arrays or data frames of shape (T_i, d), an array of shape
            (n, T, d), a `Sequences`, a data frame with a two-level index, or stacked
            frames together with ``lengths``. NaN, None and pandas.NA are missing values.
            What `Sequences.from_long` returns for a table in blocks is read block by
            block, with names of columns as ``sample_weight``.
        y : ignored
            For pipelines.
        lengths : array-like of shape (n,), default=None
            Numbers of frames, if ``X`` does not show them.
        sample_weight : array-like of shape (n,), default=None
            A sequence of weight two counts like two sequences.

        Returns
        -------
        self : HMMDensity
        """
        self._check_options()
        with self._learning(X, None, lengths, sample_weight) as read:
            fitted = self._fit_read(read, self._chain_options())
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
        return float(np.mean(np.asarray(self.score_samples(X, lengths))))

    def filter(self) -> SequenceFilter:
        """Return a filter that takes frames as they arrive.

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
