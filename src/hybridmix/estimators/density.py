"""Density estimation and clustering."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from hybridmix._registered import registered
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema
from hybridmix.estimators.blocks import over_blocks
from hybridmix.estimators.components import Marginal
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.streaming import StreamedDensity
from hybridmix.models.mixture import MixtureEvaluation


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureDensity(DensityMixin, StreamedDensity):
    r"""Model a table of numbers and categories by a mixture density.

    .. math:: p(x) = \sum_{k=1}^{K} \alpha_k\, p(x \mid k)

    with Gaussian densities of the real columns and independent categorical ones. Missing
    values are marginalised exactly, in training and in everything that follows. Columns
    are shaped, centred and scaled inside; attributes are in the units of the table.

    Parameters
    ----------
    n_components : int, iterable of int or "auto", default="auto"
        Number of components. "auto" chooses it by held-out rows, see ``effort``. From
        given numbers, the Bayesian information criterion chooses if the covariance type
        is given, in ascending order until it has risen twice in a row; otherwise they
        are candidates of the search.
    covariance_type : {"auto", "full", "tied", "diag", "spherical", "subspace"}, \
            default="auto"
        "auto" chooses among all but "spherical" by held-out rows, see ``effort``.
        Covariance of the real columns within a component: any; one for all components;
        diagonal; one variance for all columns (in the units of the table); any within a
        subspace that all components share, plus noise, for hundreds of columns and more.
    n_factors : int, float or "auto", default="auto"
        Dimension of the subspace: a number, or a share of the variance to explain,
        between 0 and 1. "auto" keeps all directions of up to 16 columns; otherwise it is
        the power of two, up to 64, of the highest likelihood on a fifth of the rows.
        There are always fewer factors than rows. Only for
        ``covariance_type="subspace"``.
    noise : {"common", "columns"}, default="common"
        Variance of the noise around the subspace: one for all columns, or for each what
        the subspace leaves of its variance.
    covariance_prior : float or "auto", default="auto"
        Strength of the prior of the covariances, in rows. It lets every component borrow
        from the overall variances, which keeps small components sound. 0 for maximum
        likelihood; "auto" is the number of real columns for "full" and "tied", that of
        factors for "subspace", and 1 otherwise. A search that includes full covariances
        also tries 1 for these.
    variance_floor : float, default=1e-6
        Smallest variance of a component in any direction, relative to the variances of
        the columns.
    smoothing : float, default=1.0
        Rows added to the count of every category of a component.
    categorical_features : list of int or str, or mask, default=None
        Categorical columns, besides those of type category, object, string or bool.
    column_shapes : {"auto", "range", "plain"} or dict, default="auto"
        Shapes of the real columns: chosen by likelihood among symmetric, skewed,
        positive and bounded ones, with values that repeat (spikes) as categories; all as
        they are, but without negative fills and samples where no value is negative, and
        with whole ones where all are whole; all as they are; or a dictionary from columns
        to these words, "symmetric", "skewed", "positive", "bounded", a pair of bounds or
        a `ColumnShape`. Columns that it does not name are "auto". `schema_.shapes` shows
        the result.
    init : {"kmeans", "k-means++"}, ndarray of shape (n_components, n_features) or \
            MixtureDensity, default="kmeans"
        Where EM begins: k-means, k-means++ centres, given centres, or a fitted model.
    n_init : int, default=1
        Number of starts; the best result is kept.
    max_iter : int, default=300
        Largest number of EM iterations per start; each is a pass over the rows.
    tol : float, default=1e-4
        EM stops when a plain step raises the mean log-likelihood per row by less.
    effort : {"fast", "balanced", "thorough"} or float, default="balanced"
        How much to spend on what is "auto". "fast" takes values that suit the size of
        the table, without a search. "balanced" compares candidates on up to 3,000 rows,
        "thorough" more of them on up to 20,000. A number of seconds ends a thorough
        search after about this time: the result then depends on the machine. The final
        fit always takes all rows, and at least three starts where these take little time.
    forgetting : float or None, default=None
        What `partial_fit` forgets with every row, as a share of what it knows: 1e-4 to
        remember about the last 10,000 rows, so that the model follows a source that
        drifts. None to converge: later batches change less and less.
    dtype : {"float64", "float32"}, default="float64"
        Type of the numbers in which training keeps scaled rows and multiplies them; sums
        over rows and parameters are float64. "float32" takes half the memory and about
        half the time, and log densities are rounded to about four decimals. Rows with
        holes gain no time in full covariances. Tables in blocks are not concerned: `scan`
        has a type of its own.
    n_jobs : int or None, default=None
        Threads. None uses as many as BLAS may; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of `sample`.
    verbose : int, default=0
        Print progress if positive.

    Attributes
    ----------
    n_components_ : int
        Number of components.
    covariance_type_ : str or None
        Type of the covariances; None without real columns.
    covariance_prior_ : float or None
        Strength of their prior; None without real columns.
    leaderboard_ : list of dict
        What the search has tried, best first: "candidate", "score" (mean log density of
        held-out rows, in the units of the table), its "standard_error", "seconds", and
        "share", which is 1 for the chosen one. Chosen is the simplest candidate that is
        at most one standard error of their difference behind the best. Empty without a
        search.
    n_searched_ : int
        Rows that the search has seen, a sample of large tables; only after a search.
    mixing_ : ndarray of shape (n_components_,)
        Proportions of the components.
    means_ : ndarray of shape (n_components_, n_real)
        Means of the real columns; of their mapped values where they have a transform
        (`schema_.shapes`).
    covariances_ : ndarray
        Covariances of the real columns: (K, d, d) if full, (d, d) if tied, (K, d) if
        diagonal, (K,) if spherical. If "subspace", (K, q, q) of the latent variables: the
        columns have ``loading_ @ covariances_[k] @ loading_.T`` plus the noise.
    loading_ : ndarray of shape (n_real, q)
        What the latent variables do to the real columns, if "subspace".
    noise_variances_ : ndarray of shape (n_real,)
        Variances of the noise of the real columns, if "subspace".
    category_probabilities_ : list of ndarray of shape (n_components_, n_categories)
        For each categorical column.
    categories_ : list of ndarray
        Values of each categorical column.
    spike_probabilities_ : list of ndarray of shape (n_components_, 1 + n_spikes)
        For each real column with spikes: the probabilities of another value, and of each
        spike.
    bic_ : dict
        The criterion for each number of components that was fitted to all rows.
    converged_ : bool
        Whether EM met its tolerance.
    interrupted_ : bool
        Whether the user ended training (Ctrl-C) before it was done.
    n_iter_ : int
        EM iterations of the best start: passes over the rows. After `partial_fit`, the
        number of batches.
    trace_ : ndarray
        Mean log-likelihood, with prior, along these iterations. After `partial_fit`,
        that of each of the last 1,000 batches, before it was learned from.
    stream_ : Memory
        What `partial_fit` remembers of all batches: their sufficient statistics. Files
        keep it, so that a loaded model goes on.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has them.

    See Also
    --------
    HybridMixtureClassifier : A mixture for each class.
    MixtureImputer : Fill holes in a pipeline.
    MixtureOutlierDetector : Flag rows that do not belong.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MixtureDensity
    >>> X = np.array([[0.1, 1.0], [0.0, np.nan], [5.0, 6.1], [5.1, 5.9], [0.2, 1.1]])
    >>> density = MixtureDensity(2, covariance_type="full", random_state=0).fit(X)
    >>> density.predict_proba(X).round(2)[1]
    array([0., 1.])
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, data frame, scanned table or path, of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values. A table that does
            not fit into memory is read by `scan`.
        y : ignored
            For pipelines.
        sample_weight : array-like of shape (n,), or str, default=None
            A row of weight two counts like two rows. Of a scanned table, the name of the
            column.

        Returns
        -------
        self : MixtureDensity
        """
        fitted, attributes = self._fit_any(X, sample_weight)
        self._publish(attributes)
        warn_of(fitted.messages)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        schema: Schema | None = None,
    ) -> Self:
        """Learn from a batch of rows by online EM, and keep none of them.

        The first batch is fitted like a table, with ``effort="fast"`` for what is
        "auto". It says what columns are like for good, unless a schema does: kinds,
        categories, shapes and scales. A fitted model goes on learning; its training rows
        count as they did in `fit`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            The batch; NaN, None and pandas.NA are missing values.
        y : ignored
            For pipelines.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.
        schema : Schema, default=None
            What columns are like, such as the ``schema_`` of another model; for the first
            call only.

        Returns
        -------
        self : MixtureDensity
        """
        self._publish(self._partially_fitted(X, sample_weight, schema))
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows."""
        return float(np.mean(self.score_samples(X)))

    @over_blocks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the components given each row, (n, K)."""
        table = self._encode(X)
        return self._joined(table, MixtureEvaluation.component_posterior).T

    @over_blocks
    def predict(self, X: Any) -> IntArray:
        """Return the most probable component of each row: a clustering."""
        return self._best_component(self._encode(X))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit the mixture and return the most probable component of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[Any, IntArray]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            None uses the estimator's own.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, d)
            A table like the one of training.
        components : ndarray of shape (n_samples,)
            Where the rows come from.
        """
        return self._sample_rows(n_samples, random_state)

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on a table; lower is better."""
        log_density = self.score_samples(X)
        penalty = self.model_.n_parameters * np.log(len(log_density))
        return float(penalty - 2.0 * log_density.sum())

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion on a table; lower is better."""
        log_density = self.score_samples(X)
        return float(2.0 * self.model_.n_parameters - 2.0 * log_density.sum())

    def marginal(self, columns: Sequence[int | str]) -> Self:
        """Return the density of some columns, with the others integrated out.

        Parameters
        ----------
        columns : sequence of int or str
            Positions or names, in the order that the new table will have.

        Returns
        -------
        density : MixtureDensity
            Fitted; it expects tables with these columns only.
        """
        check_is_fitted(self)
        positions = self.schema_.positions(columns)
        if len(set(positions)) != len(positions) or not positions:
            raise ValueError("marginal needs at least one column, and each only once.")
        real, codes = self.schema_.places(positions)
        if not real and not codes:
            raise ValueError("These columns had no observed value in training.")
        marginal = Marginal.of(self, positions)
        schema, model = marginal.schema, marginal.model
        attributes = {
            "schema_": schema,
            "model_": model,
            "n_features_in_": len(positions),
            "converged_": self.converged_,
            "n_iter_": self.n_iter_,
            **self._derived_attributes(model, schema),
        }
        if hasattr(self, "feature_names_in_"):
            attributes["feature_names_in_"] = self.feature_names_in_[positions]
        result = copy(self)
        result.categorical_features = list(schema.categorical) or None
        result._publish(attributes)
        return result
