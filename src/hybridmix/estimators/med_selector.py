"""Selection of features by maximum entropy discrimination."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number, check_word
from hybridmix._registered import registered
from hybridmix._require import require
from hybridmix._typing import BoolArray, IntArray
from hybridmix.data.labels import as_labels
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

_TASKS = ("auto", "classify", "regress")
# Numbers with more different values than this are taken for real targets.
_MOST_CLASSES = 30
_THRESHOLD = 0.5


@registered
@dataclass(eq=False, repr=False)
class MEDFeatureSelector(SelectorMixin, SwitchEstimator):
    r"""Select columns by the probability that a linear function includes them.

    Each column has a switch, a Bernoulli variable of prior probability :math:`\rho` in
    front of its weights. Maximum entropy discrimination integrates the switches out, and
    finds the multipliers :math:`\lambda` of the rows by a concave problem:

    .. math:: \max_\lambda\; \sum_n g(\lambda_n) - \sum_j \log\Big(1 - \rho
              + \rho\, e^{v_j^2 / 2}\Big), \qquad v_j = \sum_n \lambda_n y_n x_{nj}.

    The posterior probability of a switch is in `inclusion_`. A fit takes milliseconds
    for hundreds of rows and thousands of columns, and the defaults are made for such wide
    tables without any tuning. Labels of two or more classes, which share the switches,
    and real targets are possible.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many columns to keep, as a number or as a share of all; those with the highest
        `scores_` are kept. None goes by ``threshold``.
    threshold : float or None, default=None
        Keep columns that are included with more than this probability. None is 0.5, but
        keeps the best column whatever its probability. Where many columns say the same,
        as genes do, each has a small probability: use ``n_features_to_select`` there.
    task : {"auto", "classify", "regress"}, default="auto"
        What ``y`` is. "auto" takes fractions, and numbers with more than 30 different
        values, for real targets, and everything else for labels.
    inclusion : float, default=1e-3
        :math:`\rho`, the prior probability that a column is included.
    C : float or "auto", default="auto"
        Largest multiplier of a row. "auto" is :math:`\sqrt{2 \log(1 / \rho) / n}`, at
        which columns without any relation to ``y`` rarely turn their switches on.
    margin : float, default=30.0
        Mean margin of a row a priori; real targets are brought to this standard
        deviation. The larger, the more columns are included with certainty, and the more
        wrong ones are among them.
    smoothness : float, default=1.0
        How smooth the loss of a lacking margin is; see `MEDClassifier`.
    epsilon : float, default=0.1
        Half the width of the tube around a real target, in standard deviations of the
        target.
    standardise : bool, default=True
        Bring columns to unit variance first. Switches compare columns, and need common
        units.
    tol : float, default=1e-4
        Largest gap between primal and dual, relative to the objective.
    max_iter : int, default=1000
        Largest number of iterations.
    verbose : int, default=0
        Print progress.

    Attributes
    ----------
    inclusion_ : ndarray of shape (p,)
        Posterior probability that a column is included. It ranks well, but is not
        calibrated, and is close to 1 for many columns of a large table.
    scores_ : ndarray of shape (p,)
        Length of the expected weights of a standardised column. It orders columns as
        `inclusion_` does, also where this is 1 but for rounding.
    ranking_ : ndarray of shape (p,)
        Places of the columns by `scores_`; the best one has place 1.
    coef_ : ndarray of shape (1, p) or (C, p)
        Expected weights, in the units of the table.
    intercept_ : ndarray of shape (1,) or (C,)
        Expected biases.
    task_ : {"classify", "regress"}
        What ``y`` was.
    classes_ : ndarray of shape (C,)
        The labels, if there are any.
    machine_ : LinearMachine
        The linear functions.
    dual_value_, dual_gap_ : float
        Value of the dual, and how far it may be from its maximum.
    n_iter_ : int
        Iterations of the solver.
    converged_, interrupted_ : bool
        Whether the gap met the tolerance; whether the user stopped training.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MEDClassifier : Classify with the same switches.
    MEDMultiTaskClassifier : Share switches over several tasks.
    hybridmix.plots.InclusionDisplay : Draw the inclusion probabilities.

    References
    ----------
    Jebara, T. (2004). Machine learning: discriminative and generative. Kluwer.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MEDFeatureSelector
    >>> X = np.random.default_rng(0).normal(size=(100, 500))
    >>> y = X[:, 3] > X[:, 7]
    >>> selector = MEDFeatureSelector(n_features_to_select=2).fit(X, y)
    >>> selector.get_support(indices=True)
    array([3, 7])
    """

    _: KW_ONLY
    n_features_to_select: float | None = None
    threshold: float | None = None
    task: str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find out which columns matter.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Training rows.
        y : array-like of shape (n,)
            Labels of any kind, or real targets.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.

        Returns
        -------
        self : MEDFeatureSelector
        """
        self._check_options()
        refuse_blocks(self, X, ROW_MULTIPLIERS)
        check_labels_given(self, y)
        matrix, attributes = self._read_training(X)
        self._check_number(matrix.shape[1])
        weights = read_row_weights(sample_weight, matrix.shape[0])
        used = np.flatnonzero(weights > 0.0)
        rows = SwitchRows(matrix[used], weights[used], np.zeros(len(used), np.intp), 1)
        task = self._task_of(y)
        with printing(self.verbose):
            if task == "classify":
                classes, labels = read_all_labels(y, len(weights))
                attributes["classes_"] = classes
                found = self._fit_labels(rows, labels[used], classes)
            else:
                targets = read_real_targets(y, len(weights))[used]
                found = train_targets(rows, targets, self._switch_options(shared=True))
        own = self._found(found)
        ranking = np.empty(matrix.shape[1], np.intp)
        ranking[np.argsort(-found.scores, kind="stable")] = np.arange(1, len(ranking) + 1)
        self._publish({**attributes, **own, "task_": task, "ranking_": ranking})
        warn_of(training_messages(found.trained, self.max_iter))
        return self

    def _fit_labels(
        self, rows: SwitchRows, labels: IntArray, classes: np.ndarray
    ) -> SwitchMachine:
        absent = np.flatnonzero(np.bincount(labels, minlength=len(classes)) == 0)
        if len(absent):
            label = classes.tolist()[absent[0]]
            raise ValueError(f"The class {label!r} has no row of positive weight.")
        options = self._switch_options(shared=True)
        return train_labels(rows, labels, len(classes), options)

    def _task_of(self, y: Any) -> str:
        """Return what targets are."""
        if self.task != "auto":
            return self.task
        kind = type_of_target(y, input_name="y")
        if "multioutput" in kind or kind == "multilabel-indicator":
            raise ValueError(
                f"y holds several targets per row ({kind}): select features for one of "
                "them at a time."
            )
        values = as_labels(y)
        is_number = values.dtype.kind in "iuf"
        is_real = is_number and len(np.unique(values)) > _MOST_CLASSES
        return "regress" if kind.startswith("continuous") or is_real else "classify"

    # Selection --------------------------------------------------------------------------

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "machine_")
        if self.n_features_to_select is None:
            if self.threshold is None:
                # Models that follow could do nothing with an empty table.
                return (self.inclusion_ > _THRESHOLD) | (self.ranking_ == 1)
            return self.inclusion_ > float(self.threshold)
        return self.ranking_ <= self._n_selected(len(self.ranking_))

    def _n_selected(self, n_columns: int) -> int:
        wanted = self.n_features_to_select
        assert wanted is not None
        if isinstance(wanted, Integral):
            return int(wanted)
        return max(1, round(float(wanted) * n_columns))

    # Checks ---------------------------------------------------------------------------

    def _check_options(self) -> None:
        super()._check_options()
        check_word("task", self.task, _TASKS)
        if self.threshold is not None:
            check_number("threshold", self.threshold, 0.0, 1.0)
        wanted = self.n_features_to_select
        if wanted is None:
            return
        if self.threshold is not None:
            raise ValueError(
                f"threshold={self.threshold!r} and n_features_to_select={wanted!r} both "
                "say how many columns to keep: give one of them."
            )
        if isinstance(wanted, Integral):
            check_number("n_features_to_select", wanted, 1, whole=True)
        else:
            check_number("n_features_to_select", wanted, 0.0, 1.0)

    def _check_number(self, n_columns: int) -> None:
        wanted = self.n_features_to_select
        if isinstance(wanted, Integral) and wanted > n_columns:
            raise ValueError(
                f"n_features_to_select={wanted!r} is more than the {n_columns} columns "
                "of X."
            )

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        require(self.task_ in _TASKS[1:], "task_ is unknown")
        places = np.sort(self.ranking_)
        wanted = np.arange(1, self.n_features_in_ + 1)
        require(np.array_equal(places, wanted), "ranking_ is not one of all columns")
        n_classes = len(self.classes_) if self.task_ == "classify" else 2
        n_outputs = 1 if n_classes == 2 else n_classes
        require(len(self.coef_) == n_outputs, "coef_ has other outputs than classes_")
