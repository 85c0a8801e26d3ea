"""How the score of a model falls as cells are hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import _num_samples, check_consistent_length

from hybridmix._checks import check_number
from hybridmix._typing import FloatArray
from hybridmix.data.holes import punch_holes, random_holes
from hybridmix.progress import announce

_RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class MissingFeatureCurve:
    """What `missing_feature_curve` finds.

    Attributes
    ----------
    rates : ndarray of shape (r,)
        Shares of the cells that were hidden.
    scores : ndarray of shape (r, n_repeats)
        Scores of the model, for each draw of the cells.
    metric : str
        Name of the score.
    """

    rates: FloatArray
    scores: FloatArray
    metric: str

    @property
    def mean(self) -> FloatArray:
        """Mean score at each rate, (r,)."""
        return self.scores.mean(axis=1)

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of the scores at each rate, (r,)."""
        return self.scores.std(axis=1)


def missing_feature_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    rates: Sequence[float] = _RATES,
    n_repeats: int = 3,
    random_state: Any = None,
    scoring: Any = None,
) -> MissingFeatureCurve:
    """Score a fitted model while more and more cells are hidden from it.

    Cells are hidden completely at random, in addition to those that are missing already.
    The same seed hides the same cells from any model, and cells that are hidden at
    one rate are hidden at all higher rates.

    Parameters
    ----------
    model : classifier or regressor
        Any fitted model that takes missing values, even one of another library.
    X, y : table and labels, or targets
        Rows to score, preferably not seen in training.
    rates : sequence of float, default=(0.0, 0.1, ..., 0.9)
        Shares of the cells to hide.
    n_repeats : int, default=3
        How many times cells are drawn.
    random_state : int, RandomState or None, default=None
        Seed of the cells.
    scoring : str, callable or None, default=None
        Any score of scikit-learn; None for accuracy, or R² of a regressor.

    Returns
    -------
    curve : MissingFeatureCurve

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> from hybridmix.inspection import missing_feature_curve
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HybridMixtureClassifier().fit(X[::2], y[::2])
    >>> curve = missing_feature_curve(model, X[1::2], y[1::2], random_state=0)
    >>> curve.metric, curve.scores.shape
    ('accuracy', (10, 3))
    """
    from sklearn.metrics import get_scorer
    from sklearn.utils import check_random_state

    for rate in rates:
        check_number("rates", rate, 0.0, 1.0)
    check_number("n_repeats", n_repeats, 1, whole=True)
    check_consistent_length(X, y)
    usual = "r2" if is_regressor(model) else "accuracy"
    metric = usual if scoring is None else scoring
    scorer = get_scorer(metric) if isinstance(metric, str) else metric
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    shape = (_num_samples(X), np.shape(X)[1])
    scores = np.empty((len(rates), n_repeats))
    for repeat in range(n_repeats):
        for position, rate in enumerate(rates):
            # The generator starts afresh: higher rates hide the same cells and more.
            holes = random_holes(shape, rate, np.random.default_rng([seed, repeat]))
            hidden = punch_holes(X, holes) if rate else X
            scores[position, repeat] = scorer(model, hidden, y)
            announce("hiding cells", repeat * len(rates) + position + 1, scores.size)
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "score")
    return MissingFeatureCurve(np.array(rates, dtype=float), scores, name)
