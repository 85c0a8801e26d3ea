"""What columns add to each other: models from which one of them is hidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, number_labels
from hybridmix.data.columns import as_frame
from hybridmix.data.holes import punch_holes
from hybridmix.data.targets import read_targets
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.targets import FittedRegressor, has_distribution
from hybridmix.metrics import label_losses
from hybridmix.progress import announce


class _ByIncrease:
    """Columns ordered by what their absence costs."""

    names: tuple[str, ...]

    @property
    def loss_increase(self) -> FloatArray:
        """By how much the loss rises when a column is hidden, (d,)."""
        raise NotImplementedError

    @property
    def order(self) -> IntArray:
        """Columns by how much their absence costs, the most important first."""
        return np.argsort(-self.loss_increase, kind="stable")

    def _table(self, heading: str, without: FloatArray, alone: FloatArray) -> str:
        """Write two scores (d, 2) of each column, the most important one first."""
        width = max(map(len, (*self.names, "column")))
        lines = [heading, f"{'column':<{width}}  {'without it':>16}  {'alone':>16}"]
        for j in self.order:
            cells = [f"{one[j, 0]:.3f} ({one[j, 1]:.3f})" for one in (without, alone)]
            lines.append(f"{self.names[j]:<{width}}  {cells[0]:>16}  {cells[1]:>16}")
        return "\n".join(lines)


@dataclass(frozen=True)
class FeatureImportance(_ByIncrease):
    """What `feature_importance` finds about a classifier.

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

    def __str__(self) -> str:
        return self._table(
            f"all columns: log loss {self.log_loss:.3f}, accuracy {self.accuracy:.3f}",
            np.column_stack([self.hidden_log_loss, self.hidden_accuracy]),
            np.column_stack([self.alone_log_loss, self.alone_accuracy]),
        )


@dataclass(frozen=True)
class TargetImportance(_ByIncrease):
    """What `feature_importance` finds about a regressor.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; their positions if the table has no names.
    rmse, log_density : float
        Root mean squared error and mean log predictive density of the regressor that
        sees all columns.
    hidden_rmse, hidden_log_density : ndarray of shape (d,)
        Scores of the regressor that sees all columns but one.
    alone_rmse, alone_log_density : ndarray of shape (d,)
        Scores of the regressor that sees one column only.
    """

    names: tuple[str, ...]
    rmse: float
    log_density: float
    hidden_rmse: FloatArray
    hidden_log_density: FloatArray
    alone_rmse: FloatArray
    alone_log_density: FloatArray

    @property
    def loss_increase(self) -> FloatArray:
        """By how much the RMSE rises when a column is hidden, (d,)."""
        return self.hidden_rmse - self.rmse

    def __str__(self) -> str:
        return self._table(
            f"all columns: RMSE {self.rmse:.3f}, log predictive density "
            f"{self.log_density:.3f}",
            np.column_stack([self.hidden_rmse, self.hidden_log_density]),
            np.column_stack([self.alone_rmse, self.alone_log_density]),
        )


def feature_importance(
    model: Any, X: Any, y: Any
) -> FeatureImportance | TargetImportance:
    r"""Find out which columns matter, by integrating each of them out.

    How the model predicts without column :math:`j` follows exactly from its density,
    without training it again and without made-up values. For classes,

    .. math:: p(c \mid x_{-j}) \propto \int p(x, c)\, dx_j,

    and likewise for the target of a regressor. (Networks predict from expected features,
    which are not exact means over what is hidden.) How much the loss rises shows what the
    column adds to the others; the loss with the column alone shows what it knows by
    itself. Where two columns say the same, neither is missed, but both do well alone.
    The loss is the log loss of `hybridmix.metrics.label_losses` for classifiers, and the
    root mean squared error for regressors.

    Parameters
    ----------
    model : classifier or regressor
        A fitted classifier of hybridmix, or a regressor of one target.
    X, y : table and labels, or targets
        Rows to score, preferably not seen in training. Those without a label or target
        are left out.

    Returns
    -------
    importance : FeatureImportance or TargetImportance
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
    if isinstance(model, FittedRegressor) and has_distribution(model):
        X, targets = _rows_with_target(model, X, y)
        found = _hidden_scores(X, lambda part: _regression_loss(model, part, targets))
        return TargetImportance(*found)
    if not isinstance(model, MixtureClassifier):
        raise TypeError(
            "Only a classifier of hybridmix, or a regressor with a predictive "
            f"distribution, can integrate columns out; a {type(model).__name__} cannot."
        )
    X, labels = _labelled_rows(model, X, y)
    found = _hidden_scores(X, lambda part: _classification_loss(model, part, labels))
    return FeatureImportance(*found)


def _hidden_scores(X: Any, quality: Callable[[Any], tuple[float, float]]) -> list[Any]:
    """Return the fields of an importance: names, and two scores of a table.

    These are of the table as it is, without each column, and with each column alone.
    """
    n_rows, n_columns = np.shape(X)
    columns = range(n_columns)

    def hiding(hidden: list[int]) -> tuple[float, float]:
        holes = np.zeros((n_rows, n_columns), dtype=bool)
        holes[:, hidden] = True
        return quality(punch_holes(X, holes))

    without, alone = np.empty((n_columns, 2)), np.empty((n_columns, 2))
    for j in columns:
        without[j] = hiding([j])
        alone[j] = hiding([other for other in columns if other != j])
        announce("hiding columns", j + 1, n_columns)
    return [_column_names(X, n_columns), *hiding([]), *without.T, *alone.T]


def _classification_loss(
    classifier: MixtureClassifier, X: Any, labels: IntArray
) -> tuple[float, float]:
    """Return the log loss and the accuracy."""
    log_probabilities = classifier.predict_log_proba(X)
    right = log_probabilities.argmax(axis=1) == labels
    own = log_probabilities[np.arange(len(labels)), labels]
    return float(label_losses(own).mean()), float(right.mean())


def _regression_loss(
    regressor: FittedRegressor, X: Any, targets: FloatArray
) -> tuple[float, float]:
    """Return the root mean squared error and the mean log predictive density."""
    errors = np.reshape(regressor.predict(X), len(targets)) - targets
    density = regressor.log_predictive_density(X, targets)
    return float(np.sqrt(np.mean(errors**2))), float(density.mean())


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


def _rows_with_target(
    regressor: FittedRegressor, X: Any, y: Any
) -> tuple[Any, FloatArray]:
    from sklearn.utils import _safe_indexing

    if regressor.n_outputs_ > 1:
        raise ValueError(
            f"The regressor has {regressor.n_outputs_} targets; columns are judged by "
            "one: model.for_target(0) is the regressor of the first."
        )
    check_consistent_length(X, y)
    X = X if as_frame(X) is not None else np.asarray(X)
    columns, _ = read_targets(y)
    targets = columns.real([0])[:, 0]
    known = np.flatnonzero(~np.isnan(targets))
    if len(known) == 0:
        raise ValueError("y has no target: all of them are missing.")
    return _safe_indexing(X, known), targets[known]


def _column_names(X: Any, n_columns: int) -> tuple[str, ...]:
    frame = as_frame(X)
    return tuple(map(str, range(n_columns) if frame is None else frame.columns))
