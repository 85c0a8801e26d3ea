"""Several tasks that share features, by maximum entropy discrimination."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score

from hybridmix._checks import check_flag, check_number
from hybridmix._registered import registered
from hybridmix._require import require
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.tasks import encode_tasks, number_tasks, split_column
from hybridmix.estimators.blocks import refuse_blocks
from hybridmix.estimators.labelled import check_labels_given
from hybridmix.estimators.machines import ROW_MULTIPLIERS, training_messages
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.switches import (
    SwitchEstimator,
    read_all_labels,
    read_real_targets,
    read_row_weights,
)
from hybridmix.progress import printing
from hybridmix.training.switches import (
    SwitchMachine,
    SwitchRows,
    train_labels,
    train_targets,
)


@dataclass(eq=False, repr=False)
class TaskEstimator(SwitchEstimator):
    """Base of the estimators of several tasks."""

    _: KW_ONLY
    inclusion: float = 1e-5
    margin: float = 3.0
    shared: bool = True
    task_column: str | int | None = None

    def _fit_tasks(self, X: Any, y: Any, sample_weight: Any, task: Any) -> Self:
        """Train all tasks together, and publish what was found."""
        self._check_options()
        refuse_blocks(self, X, ROW_MULTIPLIERS)
        check_labels_given(self, y)
        X, task = self._with_task(X, task)
        matrix, attributes = self._read_training(X)
        n_rows = matrix.shape[0]
        tasks, numbers = encode_tasks(task, n_rows)
        weights = read_row_weights(sample_weight, n_rows)
        targets = self._read_targets(y, n_rows, attributes)
        # The rows of a task are next to each other, and without a weight there are none.
        order = np.argsort(numbers, kind="stable")
        order = order[weights[order] > 0.0]
        _check_present(numbers[order], tasks)
        rows = SwitchRows(matrix[order], weights[order], numbers[order], len(tasks))
        with printing(self.verbose):
            found = self._train(rows, targets[order], tasks)
        self._publish({**attributes, **self._found(found), "tasks_": tasks})
        warn_of(training_messages(found.trained, self.max_iter))
        return self

    def _read_targets(self, y: Any, n_rows: int, attributes: dict[str, Any]) -> Any:
        """Read targets; add what they determine to the attributes."""
        raise NotImplementedError

    def _train(self, rows: SwitchRows, targets: Any, tasks: np.ndarray) -> SwitchMachine:
        """Train on rows that are in the order of their tasks."""
        raise NotImplementedError

    def _with_task(self, X: Any, task: Any) -> tuple[Any, Any]:
        """Return a table without the tasks, and the tasks."""
        if self.task_column is None:
            return X, task
        if task is not None:
            raise ValueError(
                f"task is given twice: as an argument, and as "
                f"task_column={self.task_column!r}."
            )
        return split_column(X, self.task_column)

    def _own_outputs(self, X: Any, task: Any) -> FloatArray:
        """Return the output (n,) of each row for its task."""
        X, task = self._with_task(X, task)
        matrix = self._read(X)
        numbers = number_tasks(task, self.tasks_, matrix.shape[0])
        outputs = np.empty(len(numbers))
        for number in np.unique(numbers):
            rows = np.flatnonzero(numbers == number)
            outputs[rows] = matrix[rows] @ self.coef_[number] + self.intercept_[number]
        return outputs

    def _check_options(self) -> None:
        super()._check_options()
        check_flag("shared", self.shared)
        if self.task_column is not None and not isinstance(self.task_column, str):
            check_number("task_column", self.task_column, -np.inf, whole=True)

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        require(len(self.tasks_) == len(self.coef_), "tasks_ has other tasks than coef_")


@registered
@dataclass(eq=False, repr=False)
class MEDMultiTaskClassifier(ClassifierMixin, TaskEstimator):
    r"""Classify rows of several tasks that share their features.

    Each task has a linear function of its own, but a column is included for all tasks or
    for none: its switch of prior probability :math:`\rho` is shared. Integrated out, the
    switches turn the statistics :math:`v_t` of all tasks into

    .. math:: \sum_j \log\Big(1 - \rho + \rho
              \exp \tfrac12 \sum_t v_{tj}^2\Big), \qquad
              v_t = \sum_{n \in t} \lambda_n y_n x_n,

    so that tasks with few rows find the columns that matter together. The labels are the
    same two classes in all tasks.

    Parameters
    ----------
    shared : bool, default=True
        Whether tasks share the switches. If not, tasks have nothing to do with each
        other.
    task_column : str, int or None, default=None
        Column of ``X`` that holds the task of each row; None if ``task`` is an argument
        of the methods. The column is not a feature, and is not among the columns of
        `coef_` and ``n_features_in_``.
    inclusion : float, default=1e-5
        :math:`\rho`, the prior probability that a column is included. It is small
        because the evidence of all tasks adds up.
    C : float or "auto", default="auto"
        Largest multiplier of a row. "auto" is :math:`\sqrt{2 \log(1 / \rho) / n}`, with
        the mean number n of rows of a task.
    margin : float, default=3.0
        Mean margin of a row a priori.
    smoothness, standardise, tol, max_iter, verbose
        As in `MEDFeatureSelector`; columns are standardised within tasks.
    epsilon : float, default=0.1
        Of real targets, and not used here.

    Attributes
    ----------
    tasks_ : ndarray of shape (T,)
        The tasks, sorted.
    classes_ : ndarray of shape (2,)
        The labels.
    coef_ : ndarray of shape (T, p)
        Expected weights of the tasks, in the units of the table.
    intercept_ : ndarray of shape (T,)
        Expected biases.
    inclusion_ : ndarray of shape (p,), or (T, p) if switches are not shared
        Posterior probability that a column is included. It ranks well, but is not
        calibrated.
    scores_ : ndarray of shape (p,) or (T, p)
        Lengths of the expected weights of a standardised column over tasks.
    machine_, dual_value_, dual_gap_, n_iter_, converged_, interrupted_, \
    n_features_in_, feature_names_in_
        As in `MEDFeatureSelector`.

    See Also
    --------
    MEDMultiTaskRegressor : The same for real targets.

    References
    ----------
    Jebara, T. (2004). Machine learning: discriminative and generative. Kluwer.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MEDMultiTaskClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 100)), np.repeat(["a", "b", "c"], 30)
    >>> weights = {"a": [2, 1], "b": [1, -1], "c": [-1, 2]}  # of the first two columns
    >>> y = [x[:2] @ weights[t] > 0 for x, t in zip(X, task)]
    >>> model = MEDMultiTaskClassifier().fit(X, y, task=task)
    >>> np.argsort(-model.inclusion_)[:2]
    array([0, 1])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> Self:
        """Train all tasks together.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Training rows of all tasks.
        y : array-like of shape (n,)
            Labels of two kinds. Every task needs rows of both.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.
        task : array-like of shape (n,), default=None
            The task of each row: numbers or text. None if there is only one, or if
            ``task_column`` is set.

        Returns
        -------
        self : MEDMultiTaskClassifier
        """
        return self._fit_tasks(X, y, sample_weight, task)

    def _read_targets(self, y: Any, n_rows: int, attributes: dict[str, Any]) -> IntArray:
        classes, labels = read_all_labels(y, n_rows)
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"multiclass: y has {len(classes)} classes, and all tasks share the same "
                "two. Use MEDClassifier for more, or one task for each class against "
                "the rest."
            )
        attributes["classes_"] = classes
        return labels

    def _train(
        self, rows: SwitchRows, targets: IntArray, tasks: np.ndarray
    ) -> SwitchMachine:
        counts = np.zeros((len(tasks), 2))
        np.add.at(counts, (rows.tasks, targets), 1)
        poor = np.flatnonzero((counts == 0).any(axis=1))
        if len(poor):
            which = "" if len(tasks) == 1 else f" of task {tasks.tolist()[poor[0]]!r}"
            raise ValueError(
                f"The rows{which} have only one class: rows of both classes, with "
                "positive weights, are needed in every task."
            )
        return train_labels(rows, targets, 2, self._switch_options(bool(self.shared)))

    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """Return the expected output of each row for its task.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Rows.
        task : array-like of shape (n,), default=None
            The task of each row, as in `fit`.

        Returns
        -------
        outputs : ndarray of shape (n,)
            Positive for the second class.
        """
        return self._own_outputs(X, task)

    def predict(self, X: Any, task: Any = None) -> np.ndarray:
        """Return the predicted label of each row; see `decision_function`."""
        positive = self.decision_function(X, task=task) > 0.0
        return self.classes_[positive.astype(np.intp)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> float:
        """Return the accuracy over the rows of all tasks."""
        predicted = self.predict(X, task=task)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        require(len(self.classes_) == 2, "classes_ does not have two classes")


@registered
@dataclass(eq=False, repr=False)
class MEDMultiTaskRegressor(RegressorMixin, TaskEstimator):
    r"""Predict numbers for several tasks that share their features.

    As in `MEDMultiTaskClassifier`, each task has a linear function of its own, and a
    column is included for all tasks or for none. Each row has two constraints, one for
    each side of a tube around its target. Targets are standardised within tasks, which
    may have different units.

    Parameters
    ----------
    shared, task_column, inclusion, C
        As in `MEDMultiTaskClassifier`.
    margin : float, default=10.0
        Standard deviation that the targets of a task are brought to before training. The
        larger, the more columns are included.
    epsilon : float, default=0.1
        Half the width of the tube around a target, in standard deviations of the targets
        of a task.
    smoothness, standardise, tol, max_iter, verbose
        As in `MEDFeatureSelector`; columns are standardised within tasks.

    Attributes
    ----------
    tasks_, coef_, intercept_, inclusion_, scores_, machine_, dual_value_, dual_gap_, \
    n_iter_, converged_, interrupted_, n_features_in_, feature_names_in_
        As in `MEDMultiTaskClassifier`.

    See Also
    --------
    MEDMultiTaskClassifier : The same for labels.

    References
    ----------
    Jebara, T. (2004). Machine learning: discriminative and generative. Kluwer.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MEDMultiTaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 100)), np.repeat([0, 1], 30)
    >>> y = np.where(task == 0, X[:, 4], -X[:, 4]) + 0.1 * rng.normal(size=60)
    >>> model = MEDMultiTaskRegressor().fit(X, y, task=task)
    >>> np.flatnonzero(model.inclusion_ > 0.5)
    array([4])
    """

    _: KW_ONLY
    margin: float = 10.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> Self:
        """Train all tasks together.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Training rows of all tasks.
        y : array-like of shape (n,)
            Real targets.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.
        task : array-like of shape (n,), default=None
            The task of each row: numbers or text. None if there is only one, or if
            ``task_column`` is set.

        Returns
        -------
        self : MEDMultiTaskRegressor
        """
        return self._fit_tasks(X, y, sample_weight, task)

    def _read_targets(
        self, y: Any, n_rows: int, attributes: dict[str, Any]
    ) -> FloatArray:
        return read_real_targets(y, n_rows)

    def _train(
        self, rows: SwitchRows, targets: FloatArray, tasks: np.ndarray
    ) -> SwitchMachine:
        return train_targets(rows, targets, self._switch_options(bool(self.shared)))

    def predict(self, X: Any, task: Any = None) -> FloatArray:
        """Return the expected target of each row.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Rows.
        task : array-like of shape (n,), default=None
            The task of each row, as in `fit`.

        Returns
        -------
        y : ndarray of shape (n,)
            Predictions.
        """
        return self._own_outputs(X, task)

    def score(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> float:
        """Return the coefficient of determination over the rows of all tasks."""
        predicted = self.predict(X, task=task)
        return float(r2_score(y, predicted, sample_weight=sample_weight))


def _check_present(numbers: IntArray, tasks: np.ndarray) -> None:
    """Refuse tasks all rows of which have no weight."""
    absent = np.flatnonzero(np.bincount(numbers, minlength=len(tasks)) == 0)
    if len(absent):
        name = tasks.tolist()[absent[0]]
        raise ValueError(f"The task {name!r} has no row of positive weight.")
