"""Outlier detection."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, column_or_1d

from hybridmix._checks import check_number, check_splits, check_word
from hybridmix._registered import registered
from hybridmix._require import require
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema
from hybridmix.data.block_sources import source_of
from hybridmix.data.weights import read_weights
from hybridmix.estimators.blocks import column_of
from hybridmix.estimators.options import end_if_interrupted, warn_of
from hybridmix.estimators.streaming import StreamedDensity
from hybridmix.models.typicality import LOG_RARE
from hybridmix.training.record import INTERRUPTED

THRESHOLDS = ("contamination", "f1", "fpr", "recall")
# A hundredth of the rows that are drawn from a model decide what is rare. Ten thousand
# do so within a tenth of it; tables of many columns are content with fewer rows.
_N_DRAWN, _MOST_CELLS = (1000, 10_000), 10_000_000
# Scores that differ by less are the same but for rounding.
_ROUNDING = 1e-6


def _threshold_needs_no_labels(detector: MixtureOutlierDetector) -> bool:
    if detector.threshold != "contamination":
        raise AttributeError(
            f"partial_fit cannot choose a threshold by labels: use "
            f"threshold='contamination' instead of {detector.threshold!r}."
        )
    return True


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureOutlierDetector(OutlierMixin, StreamedDensity):
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
    n_components : int, iterable of int or "auto", default="auto"
        As in `MixtureDensity`.
    threshold : {"contamination", "f1", "fpr", "recall"}, default="contamination"
        How the threshold is chosen: from ``contamination``, or from labelled anomalies,
        by cross-validation: for the best F1 score, for a false-positive rate of at most
        ``target``, or for a recall of at least ``target``.
    contamination : float or "auto", default="auto"
        Share of the training rows to flag. "auto" flags rows of a score that at most
        about one in a hundred rows of the model itself has: below log 0.01 for a single
        component, and otherwise found by drawing rows from the model, since scores are
        upper bounds where components overlap.
    target : float or None, default=None
        The false-positive rate or the recall to reach; None for 0.05 and 0.95.
    cv : int, splitter or iterable of splits, default=5
        Number of folds, or anything else that scikit-learn takes.
    covariance_type, n_factors, noise, covariance_prior, variance_floor, smoothing, \
    categorical_features, column_shapes
        As in `MixtureDensity`.
    init, n_init, max_iter, tol, effort, forgetting, dtype, n_jobs, random_state, verbose
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
    n_components_, covariance_type_, covariance_prior_, leaderboard_, n_searched_, \
    mixing_, means_, covariances_, loading_, noise_variances_, \
    category_probabilities_, categories_, spike_probabilities_, bic_, converged_, \
    interrupted_, n_iter_, trace_, stream_, n_features_in_, feature_names_in_
        As in `MixtureDensity`.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MixtureOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> detector = MixtureOutlierDetector(1, covariance_type="full").fit(X)
    >>> detector.predict([[0.1, 0.2], [5.0, np.nan]])
    array([ 1, -1])
    """

    purpose = "flags rows that a mixture density finds improbable"
    fitted_attributes = (*StreamedDensity.fitted_attributes, "offset_")

    threshold: str = "contamination"
    contamination: float | str = "auto"
    target: float | None = None
    cv: Any = 5

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density and choose the threshold.

        Parameters
        ----------
        X : array-like, data frame, scanned table or path, of shape (n, d)
            Training table. One that does not fit into memory is read by `scan`, if no
            threshold is chosen by ``y``.
        y : array-like of shape (n,), default=None
            -1 for known anomalies, 1 for other rows. Used only if ``threshold`` is to be
            chosen by it; the density is then fitted to the other rows.
        sample_weight : array-like of shape (n,), or str, default=None
            A row of weight two counts like two rows. Of a scanned table, the name of the
            column.

        Returns
        -------
        self : MixtureOutlierDetector
        """
        self._check_options()
        if self.threshold == "contamination":
            fitted, attributes = self._fit_any(X, sample_weight)
            scratch = copy(self)
            scratch._publish(attributes)
            attributes["offset_"] = scratch._contamination_offset(X, sample_weight)
            self._publish(attributes)
            warn_of(fitted.messages)
            return self
        if source_of(X) is not None:
            raise ValueError(
                f"threshold={self.threshold!r} needs a table in memory, to hold rows "
                "out. Use threshold='contamination', or fit to a part of the rows."
            )
        [X] = indexable(X)
        is_anomaly = self._check_anomalies(y)
        check_consistent_length(X, is_anomaly)
        normal = np.flatnonzero(~is_anomaly)
        weights = read_weights(sample_weight, len(is_anomaly))
        if weights is not None and len(set(is_anomaly[weights > 0.0].tolist())) < 2:
            raise ValueError(
                "The anomalies or the other rows have no weight, or less than 1e-30 of "
                "the largest weight: the threshold needs some of both."
            )
        scores = self._cross_validated_scores(X, is_anomaly, weights)
        fitted, attributes = self._fit_any(
            _safe_indexing(X, normal),
            None if weights is None else weights[normal],
        )
        attributes.update(self._chosen_offset(scores, is_anomaly, weights))
        self._publish(attributes)
        warn_of(fitted.messages)
        return self

    @available_if(_threshold_needs_no_labels)
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        schema: Schema | None = None,
    ) -> Self:
        """Learn from a batch of rows by online EM, and move the threshold.

        Only with ``threshold="contamination"``. A share of rows to flag is that of each
        batch: the threshold is the mean over batches, weighted like their rows.

        Parameters
        ----------
        X, y, sample_weight, schema
            As in `MixtureDensity.partial_fit`.

        Returns
        -------
        self : MixtureOutlierDetector
        """
        attributes = self._partially_fitted(X, sample_weight, schema)
        scratch = copy(self)
        scratch._publish(attributes)
        offset = scratch._contamination_offset(X, sample_weight)
        if self.contamination != "auto" and hasattr(self, "offset_"):
            memory = attributes["stream_"]
            added = memory.seen - self._memory().seen
            share = min(added / memory.weight, 1.0)
            offset = (1.0 - share) * self.offset_ + share * offset
        self._publish({**attributes, "offset_": offset})
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

    def _check_options(self) -> None:
        super()._check_options()
        check_splits(self.cv)
        check_word("threshold", self.threshold, THRESHOLDS)
        check_number("contamination", self.contamination, 0.0, 0.5, or_word="auto")
        if self.target is not None:
            check_number("target", self.target, 0.0, 1.0)

    def _contamination_offset(self, X: Any, sample_weight: Any) -> float:
        if self.contamination == "auto":
            return self._rare_offset()
        scores = np.asarray(self.score_samples(X))
        weights = read_weights(column_of(X, sample_weight), len(scores))
        return level_of(scores, weights, float(self.contamination))

    def _rare_offset(self) -> float:
        """Return the score below which a hundredth of the model's own rows lies.

        Rows with holes overlap more, so that fewer of them are flagged.
        """
        if self.model_.n_components == 1:
            return LOG_RARE
        n_rows = int(np.clip(_MOST_CELLS // self.n_features_in_, *_N_DRAWN))
        # The seed is fixed, so that the level is a function of the model alone.
        rows, _ = self.model_.sample(n_rows, np.random.default_rng(0))
        rows = self.schema_.without_spikes(rows)
        return level_of(self._typicality(rows), None, float(np.exp(LOG_RARE)))

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
            # A clone would lose the fit of a model that is given as init.
            detector = copy(self).set_params(threshold="contamination")
            detector._publish({})
            with warnings.catch_warnings():
                # Nothing is kept if the user interrupts this one: it is an error instead.
                warnings.filterwarnings("ignore", INTERRUPTED, ConvergenceWarning)
                detector.fit(
                    _safe_indexing(X, normal),
                    sample_weight=None if weights is None else weights[normal],
                )
            end_if_interrupted(detector)
            scores[test] = detector.score_samples(_safe_indexing(X, test))
        return scores

    def _chosen_offset(
        self, scores: FloatArray, is_anomaly: np.ndarray, weights: FloatArray | None
    ) -> dict[str, Any]:
        """Return the threshold and the curves that it was chosen from."""
        from sklearn.metrics import precision_recall_curve, roc_curve

        precision, recall, levels = precision_recall_curve(
            is_anomaly, -scores, sample_weight=weights
        )
        fpr, tpr, roc_levels = roc_curve(
            is_anomaly, -scores, sample_weight=weights, drop_intermediate=False
        )
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
        return {
            "offset_": float(np.nextafter(-level, np.inf)),
            "precision_recall_curve_": {
                "precision": precision,
                "recall": recall,
                "thresholds": -levels,
            },
            "roc_curve_": {"fpr": fpr, "tpr": tpr, "thresholds": -roc_levels},
        }


def level_of(scores: FloatArray, weights: FloatArray | None, share: float) -> float:
    """Return a level below which lies the given share of the weight, or less.

    It is half-way between the scores of two rows. At the very score of a row, rounding
    would decide, which depends on the rows that are scored together.
    """
    order = np.argsort(scores, kind="stable")
    if weights is None:
        cumulated = np.arange(1.0, len(scores) + 1.0)
    else:
        order = order[weights[order] > 0.0]
        cumulated = np.cumsum(weights[order])
    values = scores[order]
    position = np.searchsorted(cumulated, share * cumulated[-1], side="right")
    upper = float(values[min(position, len(values) - 1)])
    rounding = _ROUNDING * max(1.0, abs(upper))
    lower = values[values < upper - rounding]
    return 0.5 * (upper + float(lower[-1])) if len(lower) else upper - rounding
