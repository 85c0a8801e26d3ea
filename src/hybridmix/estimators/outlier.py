"""Outlier detection."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from hybridmix._checks import check_number
from hybridmix._registered import registered
from hybridmix._require import require
from hybridmix._typing import FloatArray, IntArray
from hybridmix.estimators.base import MixtureEstimator
from hybridmix.estimators.training import Components
from hybridmix.estimators.typicality import LOG_RARE

THRESHOLDS = ("contamination", "f1", "fpr", "recall")


@registered
class MixtureOutlierDetector(OutlierMixin, MixtureEstimator):
    r"""Flag rows that a mixture density finds improbable.

    The score of a row is the logarithm of the probability that the model itself produces
    a row of no higher density, with the same columns observed:

    .. math:: s(x) = \log P\big( p(X_o) \le p(x_o) \big)
              \approx \log \sum_k \alpha_k\,
              P_k\big( \alpha_k\, p_k(X_o) \le p(x_o) \big)

    For real columns, :math:`-\log p_k(X_o)` has a gamma distribution that depends on the
    observed columns only, so that rows with holes are on the same scale as complete ones;
    with categories it is the gamma distribution of the same mean and variance. Among rows
    with the same columns observed, the order is that of the densities.

    Parameters
    ----------
    n_components : int or iterable of int, default=(1, 2, 4, 8)
        Number of components, or numbers from which the Bayesian information criterion
        chooses; they are tried in ascending order until it has risen twice in a row.
    threshold : {"contamination", "f1", "fpr", "recall"}, default="contamination"
        How the threshold is chosen: from ``contamination``, or from labelled anomalies,
        by cross-validation: for the best F1 score, for a false-positive rate of at most
        ``target``, or for a recall of at least ``target``.
    contamination : float or "auto", default="auto"
        Share of the training rows to flag. "auto" flags rows of a score below log 0.01:
        at most about one in a hundred rows of the model itself.
    target : float or None, default=None
        The false-positive rate or the recall to reach; None for 0.05 and 0.95.
    cv : int, splitter or iterable of splits, default=5
        Number of folds, or anything else that scikit-learn takes.
    covariance_type, n_factors, noise, covariance_prior, variance_floor, smoothing, \
    categorical_features
        As in `MixtureDensity`.
    init, n_init, max_iter, tol, n_jobs, random_state, verbose
        As in `MixtureDensity`.

    Attributes
    ----------
    offset_ : float
        Rows of a lower score are outliers.
    precision_recall_curve_ : dict of ndarray
        ``precision``, ``recall`` and ``thresholds`` of cross-validated scores, if the
        threshold was chosen by labelled anomalies.
    roc_curve_ : dict of ndarray
        ``fpr``, ``tpr`` and ``thresholds`` of the same scores.
    n_components_, mixing_, means_, covariances_, loading_, noise_variances_, \
    category_probabilities_, categories_, bic_, converged_, n_iter_, trace_, \
    n_features_in_, feature_names_in_
        As in `MixtureDensity`.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MixtureOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> detector = MixtureOutlierDetector(1).fit(X)
    >>> detector.predict([[0.1, 0.2], [5.0, np.nan]])
    array([ 1, -1])
    """

    fitted_attributes = (*MixtureEstimator.fitted_attributes, "offset_")

    def __init__(
        self,
        n_components: Components = (1, 2, 4, 8),
        *,
        threshold: str = "contamination",
        contamination: float | str = "auto",
        target: float | None = None,
        cv: Any = 5,
        covariance_type: str = "full",
        n_factors: int | float | str = "auto",
        noise: str = "common",
        covariance_prior: float | str = 1.0,
        variance_floor: float = 1e-6,
        smoothing: float = 1.0,
        categorical_features: Sequence[int | str | bool] | None = None,
        init: Any = "kmeans",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.contamination = contamination
        self.target = target
        self.cv = cv
        self.covariance_type = covariance_type
        self.n_factors = n_factors
        self.noise = noise
        self.covariance_prior = covariance_prior
        self.variance_floor = variance_floor
        self.smoothing = smoothing
        self.categorical_features = categorical_features
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density and choose the threshold.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Training table.
        y : array-like of shape (n,), default=None
            -1 for known anomalies, 1 for other rows. Used only if ``threshold`` is to be
            chosen by it; the density is then fitted to the other rows.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.

        Returns
        -------
        self : MixtureOutlierDetector
        """
        self._check_threshold()
        for curve in ("precision_recall_curve_", "roc_curve_"):
            self.__dict__.pop(curve, None)
        if self.threshold == "contamination":
            self._fit_density(X, sample_weight)
            self.offset_ = self._contamination_offset(X, sample_weight)
            return self
        is_anomaly = self._check_anomalies(y)
        normal = np.flatnonzero(~is_anomaly)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, is_anomaly)
        scores = self._cross_validated_scores(X, is_anomaly, weights)
        self._fit_density(
            _safe_indexing(X, normal), None if weights is None else weights[normal]
        )
        self._choose_offset(scores, is_anomaly, weights)
        return self

    def check_consistent(self) -> None:
        """Raise ValueError unless the threshold is a number."""
        super().check_consistent()
        is_number = isinstance(self.offset_, float) and not np.isnan(self.offset_)
        require(is_number, "offset_ is not a number")

    def score_samples(self, X: Any) -> FloatArray:
        """Return the score of each row, at most 0; the lower, the more of an outlier.

        The exponential of a score is the share of the model's own rows that are at most
        as dense, over the columns that the row has.
        """
        return self.typicality(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score minus the threshold: negative for outliers."""
        scores = self.score_samples(X)
        return scores - self.offset_

    def predict(self, X: Any) -> IntArray:
        """Return -1 for outliers and 1 for other rows."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    # Threshold --------------------------------------------------------------------

    def _check_threshold(self) -> None:
        if self.threshold not in THRESHOLDS:
            raise ValueError(
                f"threshold={self.threshold!r} is not one of {', '.join(THRESHOLDS)}."
            )
        if self.contamination != "auto":
            if not isinstance(self.contamination, Real):
                raise ValueError(
                    f"contamination={self.contamination!r} is neither a number nor "
                    "'auto'."
                )
            check_number("contamination", self.contamination, 0.0, 0.5)
        if self.target is not None:
            check_number("target", self.target, 0.0, 1.0)

    def _contamination_offset(self, X: Any, sample_weight: Any) -> float:
        if self.contamination == "auto":
            return LOG_RARE
        scores = self.score_samples(X)
        weights = _check_sample_weight(sample_weight, scores)
        return _weighted_quantile(scores, weights, float(self.contamination))

    def _check_anomalies(self, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError(
                f"threshold={self.threshold!r} needs y, with -1 for known anomalies and "
                "1 for other rows."
            )
        labels = column_or_1d(y)
        if set(np.unique(labels).tolist()) != {-1, 1}:
            raise ValueError(
                "y must hold -1 for known anomalies and 1 for other rows, and some of "
                "both."
            )
        is_anomaly = labels == -1
        fewest = min(is_anomaly.sum(), np.sum(~is_anomaly))
        if isinstance(self.cv, int) and fewest < self.cv:
            raise ValueError(
                f"cv={self.cv} folds need as many anomalies and other rows; there are "
                f"only {fewest} of one kind. Lower cv."
            )
        return is_anomaly

    def _cross_validated_scores(
        self, X: Any, is_anomaly: np.ndarray, weights: FloatArray | None
    ) -> FloatArray:
        """Score each row by a density that was fitted without it."""
        # Few need this module, and it takes a while to load.
        from sklearn.model_selection import check_cv

        folds = check_cv(self.cv, is_anomaly, classifier=True)
        scores = np.empty(len(is_anomaly))
        for train, test in folds.split(np.zeros((len(is_anomaly), 1)), is_anomaly):
            normal = train[~is_anomaly[train]]
            detector = clone(self).set_params(threshold="contamination")
            detector.fit(
                _safe_indexing(X, normal),
                sample_weight=None if weights is None else weights[normal],
            )
            scores[test] = detector.score_samples(_safe_indexing(X, test))
        return scores

    def _choose_offset(
        self, scores: FloatArray, is_anomaly: np.ndarray, weights: FloatArray | None
    ) -> None:
        from sklearn.metrics import precision_recall_curve, roc_curve

        precision, recall, levels = precision_recall_curve(
            is_anomaly, -scores, sample_weight=weights
        )
        fpr, tpr, roc_levels = roc_curve(
            is_anomaly, -scores, sample_weight=weights, drop_intermediate=False
        )
        self.precision_recall_curve_ = {
            "precision": precision,
            "recall": recall,
            "thresholds": -levels,
        }
        self.roc_curve_ = {"fpr": fpr, "tpr": tpr, "thresholds": -roc_levels}
        if self.threshold == "f1":
            total = np.maximum(precision + recall, np.finfo(float).tiny)
            f1 = 2.0 * precision * recall / total
            level = levels[np.argmax(f1[:-1])]
        elif self.threshold == "recall":
            target = 0.95 if self.target is None else self.target
            level = levels[recall[:-1] >= target].max()
        else:
            target = 0.05 if self.target is None else self.target
            level = roc_levels[fpr <= target].min()
        # A row whose score equals the level is flagged; outliers lie below the offset.
        self.offset_ = float(np.nextafter(-level, np.inf))


def _weighted_quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    """Return a level below which lies the given share of the weight."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    position = np.searchsorted(cumulated, share * cumulated[-1], side="right")
    return float(values[order[min(position, len(values) - 1)]])
