"""How classifiers do when columns or cells are hidden from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_consistent_length

from hybridmix._checks import check_number
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, number_labels
from hybridmix.data.columns import as_frame
from hybridmix.data.holes import punch_holes, random_holes
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.metrics import label_losses
from hybridmix.progress import announce

_RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class FeatureImportance:
    """What `feature_importance` finds.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; their positions if the table has no names.
    log_loss, accuracy : float
        Scores of the classifier that sees all columns.
    hidden_log_loss, hidden_accuracy : ndarray of shape (d,)
        Scores of the classifier that sees all columns but one.
    alone_log_loss, alone_accuracy : ndarray of shape (d,)
        Scores of the classifier that sees one column only.
    """

    names: tuple[str, ...]
    log_loss: float
    accuracy: float
    hidden_log_loss: FloatArray
    hidden_accuracy: FloatArray
    alone_log_loss: FloatArray
    alone_accuracy: FloatArray

    @property
    def loss_increase(self) -> FloatArray:
        """By how much the log loss rises when a column is hidden, (d,)."""
        return self.hidden_log_loss - self.log_loss

    @property
    def order(self) -> IntArray:
        """Columns by how much their absence costs, the most important first."""
        return np.argsort(-self.loss_increase, kind="stable")

    def __str__(self) -> str:
        width = max(map(len, (*self.names, "column")))
        lines = [
            f"all columns: log loss {self.log_loss:.3f}, accuracy {self.accuracy:.3f}",
            f"{'column':<{width}}  {'without it':>16}  {'alone':>16}",
        ]
        for j in self.order:
            without = f"{self.hidden_log_loss[j]:.3f} ({self.hidden_accuracy[j]:.3f})"
            alone = f"{self.alone_log_loss[j]:.3f} ({self.alone_accuracy[j]:.3f})"
            lines.append(f"{self.names[j]:<{width}}  {without:>16}  {alone:>16}")
        return "\n".join(lines)


def feature_importance(classifier: Any, X: Any, y: Any) -> FeatureImportance:
    r"""Find out which columns matter, by integrating each of them out.

    How the classifier decides without column :math:`j` follows exactly from its density,
    without training it again and without made-up values:

    .. math:: p(c \mid x_{-j}) \propto \int p(x, c)\, dx_j.

    How much the log loss rises shows what the column adds to the others; the loss with
    the column alone shows what it knows by itself. Where two columns say the same,
    neither is missed, but both do well alone. The log loss is that of
    `hybridmix.metrics.label_losses`.

    Parameters
    ----------
    classifier : HybridMixtureClassifier or HybridMixtureClassifierCV
        A fitted classifier.
    X, y : table and labels
        Rows to score, preferably not seen in training. Those without a label are left
        out.

    Returns
    -------
    importance : FeatureImportance
        Prints as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> from hybridmix.inspection import feature_importance
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> importance = feature_importance(HybridMixtureClassifier().fit(X, y), X, y)
    >>> importance.names[importance.order[0]]
    'petal width (cm)'
    """
    if not isinstance(classifier, MixtureClassifier):
        raise TypeError(
            "Only a classifier of hybridmix can integrate columns out; a "
            f"{type(classifier).__name__} cannot."
        )
    X, labels = _labelled_rows(classifier, X, y)
    n_rows, n_columns = np.shape(X)

    def quality(hidden: Sequence[int]) -> tuple[float, float]:
        holes = np.zeros((n_rows, n_columns), dtype=bool)
        holes[:, list(hidden)] = True
        log_probabilities = classifier.predict_log_proba(punch_holes(X, holes))
        right = log_probabilities.argmax(axis=1) == labels
        own = log_probabilities[np.arange(n_rows), labels]
        return float(label_losses(own).mean()), float(right.mean())

    log_loss, accuracy = quality([])
    columns = range(n_columns)
    hidden, alone = np.empty((n_columns, 2)), np.empty((n_columns, 2))
    for j in columns:
        hidden[j] = quality([j])
        alone[j] = quality([other for other in columns if other != j])
        announce("hiding columns", j + 1, n_columns)
    return FeatureImportance(
        names=_column_names(X, n_columns),
        log_loss=log_loss,
        accuracy=accuracy,
        hidden_log_loss=hidden[:, 0],
        hidden_accuracy=hidden[:, 1],
        alone_log_loss=alone[:, 0],
        alone_accuracy=alone[:, 1],
    )


@dataclass(frozen=True)
class MissingFeatureCurve:
    """What `missing_feature_curve` finds.

    Attributes
    ----------
    rates : ndarray of shape (r,)
        Shares of the cells that were hidden.
    scores : ndarray of shape (r, n_repeats)
        Scores of the classifier, for each draw of the cells.
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
    classifier: Any,
    X: Any,
    y: Any,
    *,
    rates: Sequence[float] = _RATES,
    n_repeats: int = 3,
    random_state: Any = None,
    scoring: Any = None,
) -> MissingFeatureCurve:
    """Score a fitted classifier while more and more cells are hidden from it.

    Cells are hidden completely at random, in addition to those that are missing already.
    The same seed hides the same cells from any classifier, and cells that are hidden at
    one rate are hidden at all higher rates.

    Parameters
    ----------
    classifier : classifier
        Any fitted classifier that takes missing values, even one of another library.
    X, y : table and labels
        Rows to score, preferably not seen in training.
    rates : sequence of float, default=(0.0, 0.1, ..., 0.9)
        Shares of the cells to hide.
    n_repeats : int, default=3
        How many times cells are drawn.
    random_state : int, RandomState or None, default=None
        Seed of the cells.
    scoring : str, callable or None, default=None
        Any score of scikit-learn; None for accuracy.

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
    metric = "accuracy" if scoring is None else scoring
    scorer = get_scorer(metric) if isinstance(metric, str) else metric
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    shape = (_num_samples(X), np.shape(X)[1])
    scores = np.empty((len(rates), n_repeats))
    for repeat in range(n_repeats):
        for position, rate in enumerate(rates):
            # The generator starts afresh: higher rates hide the same cells and more.
            holes = random_holes(shape, rate, np.random.default_rng([seed, repeat]))
            hidden = punch_holes(X, holes) if rate else X
            scores[position, repeat] = scorer(classifier, hidden, y)
            announce("hiding cells", repeat * len(rates) + position + 1, scores.size)
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "score")
    return MissingFeatureCurve(np.array(rates, dtype=float), scores, name)


def _labelled_rows(classifier: MixtureClassifier, X: Any, y: Any) -> tuple[Any, IntArray]:
    from sklearn.utils import _safe_indexing

    check_consistent_length(X, y)
    X = X if as_frame(X) is not None else np.asarray(X)
    trained: Any = getattr(classifier, "best_estimator_", classifier)
    labels = number_labels(y, classifier.classes_, trained.unlabelled)
    labelled = np.flatnonzero(labels != UNLABELLED)
    if len(labelled) == 0:
        raise ValueError("y has no label: every row is marked as unlabelled.")
    return _safe_indexing(X, labelled), labels[labelled]


def _column_names(X: Any, n_columns: int) -> tuple[str, ...]:
    frame = as_frame(X)
    return tuple(map(str, range(n_columns) if frame is None else frame.columns))
