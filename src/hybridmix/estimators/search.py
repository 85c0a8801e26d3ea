"""Cross-validated choice of the classifier's parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._checks import (
    check_flag,
    check_jobs,
    check_number,
    check_seed,
    check_splits,
    check_verbosity,
    check_word,
    is_learned,
)
from hybridmix._registered import registered
from hybridmix._require import require_instance
from hybridmix.data import UNLABELLED, encode_labels
from hybridmix.data.holes import punch_holes, random_holes
from hybridmix.data.labels import as_labels
from hybridmix.data.table import read_training_table
from hybridmix.data.weights import read_weights
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.blocks import refuse_blocks
from hybridmix.estimators.classifier import HybridMixtureClassifier
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.scores import Fold, SettingScores, models_along
from hybridmix.progress import printing
from hybridmix.training.covariances import COVARIANCE_TYPES
from hybridmix.training.search import (
    SEARCHED,
    Results,
    best_index,
    path_to,
    settings_of,
    tabulated,
)


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class HybridMixtureClassifierCV(MixtureClassifier):
    r"""Choose the parameters of a `HybridMixtureClassifier` by cross-validation.

    Every combination of ``covariance_type``, ``n_factors``, ``covariance_prior``,
    ``n_components``, ``margin`` and ``tradeoff`` is scored. Combinations share what they
    can: EM runs once for each choice of the first four, and along ascending tradeoffs
    each training goes on from the result of the one before, for its part of the
    estimator's ``n_steps``. The final model takes the same way through all rows.

    Parameters
    ----------
    estimator : HybridMixtureClassifier or None, default=None
        Has all other options. Its objective is not used: the search is along hybrid
        objectives, with ``tradeoff=0`` for the likelihood.
    n_components : sequence, default=(1, 2, 4)
        Candidates: numbers of components for all classes; dictionaries from labels to
        numbers; ranges, from which BIC chooses for each class.
    per_class : bool, default=False
        After the search, try the numbers among ``n_components`` for one class after the
        other, and keep what raises the score.
    covariance_type : sequence of str, default=("full", "diag")
        Candidates.
    n_factors : sequence of int, float or "auto", default=("auto",)
        Candidates; they matter for ``covariance_type="subspace"``.
    covariance_prior : sequence of float or "auto", default=("auto",)
        Candidates.
    tradeoff : sequence of float, default=(0, 1, 3, 10, 30, 100)
        Candidates; 0 is the likelihood.
    margin : sequence of float or "auto", default=("auto",)
        Candidates; they matter if the estimator's loss is a margin loss.
    missing_rate : float, default=0.0
        Share of the cells of the validation rows that are made missing, completely at
        random, before they are scored. A large tradeoff that is best for complete rows
        need not be for rows with holes: choose by what prediction will meet.
    cv : int, splitter or iterable, default=5
        Folds of the labelled rows. Unlabelled rows are in all training sets.
    scoring : str, callable or None, default=None
        What is maximised; None for the accuracy.
    n_jobs : int or None, default=None
        Number of processes, as in scikit-learn: None for one, -1 for all processors.
    random_state : int, RandomState or None, default=None
        Seed of the models and of the holes.
    verbose : int, default=0
        Print progress if positive.

    Attributes
    ----------
    best_estimator_ : HybridMixtureClassifier
        The model of the best parameters, trained on all rows. Its fitted attributes are
        also attributes of the search.
    best_params_ : dict
        The best parameters.
    best_score_ : float
        Their mean score over the folds.
    best_index_ : int
        Their place in ``cv_results_``.
    cv_results_ : dict of str to ndarray
        As of `sklearn.model_selection.GridSearchCV`.
    scorer_ : callable
        What scored.
    n_splits_ : int
        Number of folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = HybridMixtureClassifierCV(
    ...     n_components=[1], tradeoff=[0, 10], random_state=0
    ... ).fit(X, y)
    >>> len(search.cv_results_["params"])
    4
    """

    fitted_attributes = (
        "best_estimator_",
        "best_params_",
        "best_score_",
        "best_index_",
        "cv_results_",
        "n_splits_",
    )
    # A scorer is code, which files do not hold; `scoring` says which one it was.
    unsaved_attributes = ("scorer_",)

    estimator: HybridMixtureClassifier | None = field(default=None, kw_only=False)
    n_components: Sequence[Any] = (1, 2, 4)
    per_class: bool = False
    covariance_type: Sequence[str] = ("full", "diag")
    n_factors: Sequence[int | float | str] = ("auto",)
    covariance_prior: Sequence[float | str] = ("auto",)
    tradeoff: Sequence[float] = (0, 1, 3, 10, 30, 100)
    margin: Sequence[float | str] = ("auto",)
    missing_rate: float = 0.0
    cv: Any = 5
    scoring: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Search, and train the best model on all rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values.
        y : array-like of shape (n,)
            Labels; see ``unlabelled`` of the estimator for rows without one.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows in training; scores do not use them.
        groups : array-like of shape (n,), default=None
            Of the rows, for splitters that keep groups together.

        Returns
        -------
        self : HybridMixtureClassifierCV
        """
        # Imported where they are used, since they take a tenth of a second to load.
        from sklearn.metrics import check_scoring

        candidates = self._check_options()
        refuse_blocks(
            self,
            X,
            "It holds rows out in folds. Use HybridMixtureClassifier, which chooses what "
            "is 'auto' on a part of the rows and is then fitted to all.",
        )
        template = self._template(candidates)
        scorer = check_scoring(template, self.scoring)
        settings = settings_of(candidates)
        read_training_table(self, X)
        [X] = indexable(X)
        folds = self._folds(X, y, sample_weight, groups, template)
        results: Results = []
        with printing(self.verbose):
            scores = SettingScores(template, folds, scorer, self.n_jobs, results)
            interrupted = scores.run(settings)
            if self.per_class and not interrupted:
                interrupted = scores.run_by_class(candidates)
            best = best_index(results)
            path = path_to(results[best][0], candidates["tradeoff"])
            *_, (_, model, _) = models_along(template, [path], X, y, sample_weight)
        table = tabulated(results)
        self._publish(
            {
                "best_estimator_": model,
                "best_params_": results[best][0],
                "best_score_": float(table["mean_test_score"][best]),
                "best_index_": best,
                "cv_results_": table,
                "scorer_": scorer,
                "n_splits_": len(folds),
            }
        )
        if interrupted:
            warnings.warn(
                f"Interrupted: the best of {len(results)} settings is kept.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the best model, by the scorer of the search."""
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.scorer_(self.best_estimator_, X, y, **weights))

    def __getattr__(self, name: str) -> Any:
        """Look for learned attributes in the best model."""
        best = vars(self).get("best_estimator_")
        if best is None or not is_learned(name):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        return getattr(best, name)

    @property
    def _n_threads(self) -> int | None:
        # The search has processes; its model has threads.
        return self.best_estimator_.n_jobs

    def check_consistent(self) -> None:
        """Raise ValueError unless it has a best model."""
        check_is_fitted(self, list(self.fitted_attributes))
        best = self.best_estimator_
        require_instance("best_estimator_", best, HybridMixtureClassifier)
        best.check_consistent()
        require_instance("cv_results_", self.cv_results_, dict)
        self._check_options()

    def restore_unsaved(self) -> None:
        """Restore the scorer after the search has been loaded from a file."""
        from sklearn.metrics import check_scoring

        self.scorer_ = check_scoring(self.best_estimator_, self.scoring)

    # Options ----------------------------------------------------------------------------

    def _check_options(self) -> dict[str, list[Any]]:
        """Refuse options that make no sense without rows; return the candidates."""
        check_number("missing_rate", self.missing_rate, 0.0, 0.99)
        check_flag("per_class", self.per_class)
        check_splits(self.cv)
        check_jobs(self.n_jobs)
        check_seed(self.random_state)
        check_verbosity(self.verbose)
        if isinstance(self.scoring, list | tuple | dict | set):
            raise ValueError("scoring must be a single score, to choose by.")
        candidates = self._candidates()
        given = self._given_estimator(candidates)
        for setting in settings_of(candidates):
            clone(given).set_params(**setting)._check_options()
        return candidates

    def _candidates(self) -> dict[str, list[Any]]:
        """Return the candidates of each parameter; a single one need not be in a list."""
        candidates = {}
        for name in SEARCHED:
            given = getattr(self, name)
            is_single = isinstance(given, str | dict) or not isinstance(given, Iterable)
            candidates[name] = [given] if is_single else list(given)
            if not candidates[name]:
                raise ValueError(f"{name} is empty: there is nothing to choose from.")
        for value in candidates["covariance_type"]:
            check_word("covariance_type", value, COVARIANCE_TYPES)
        return candidates

    def _given_estimator(
        self, candidates: dict[str, list[Any]]
    ) -> HybridMixtureClassifier:
        """Return what has the options that are not searched; refuse what cannot."""
        given = HybridMixtureClassifier() if self.estimator is None else self.estimator
        if not isinstance(given, HybridMixtureClassifier):
            raise TypeError(
                "estimator must be a HybridMixtureClassifier, not a "
                f"{type(given).__name__}."
            )
        if isinstance(given.init, FittedMixture):
            raise ValueError(
                "The estimator has a fitted model as init, but every setting of a "
                "search has its own start."
            )
        if given.validation_fraction is not None:
            raise ValueError(
                "The estimator has a validation_fraction, but the start that settings "
                "share is trained on all rows. Use None: the folds do the validation."
            )
        if given.loss in ("auto", "log") and len(candidates["margin"]) > 1:
            raise ValueError(
                f"loss={given.loss!r} of the estimator has no margin to choose. Pass "
                "estimator=HybridMixtureClassifier(loss='hinge'), or a single margin."
            )
        return given

    def _template(self, candidates: dict[str, list[Any]]) -> HybridMixtureClassifier:
        given = self._given_estimator(candidates)
        stations = max(1, sum(tradeoff > 0 for tradeoff in set(candidates["tradeoff"])))
        n_steps = -(-given.n_steps // stations)
        template = clone(given).set_params(verbose=0, n_steps=n_steps)
        if self.random_state is not None:
            template.set_params(random_state=self._seed())
        return template

    def _folds(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, template: Any
    ) -> list[Fold]:
        """Split the labelled rows; every training set has all unlabelled ones."""
        from sklearn.model_selection import check_cv

        labels = as_labels(y)
        classes, numbers = encode_labels(y, template.unlabelled)
        check_consistent_length(X, numbers, groups)
        weights = read_weights(sample_weight, len(labels))
        labelled = np.flatnonzero(numbers != UNLABELLED)
        unlabelled = np.flatnonzero(numbers == UNLABELLED)
        splitter = check_cv(self.cv, numbers[labelled], classifier=True)
        kept_groups = None if groups is None else np.asarray(groups)[labelled]
        generator = np.random.default_rng(self._seed())
        folds = []
        for rest, held in splitter.split(labelled, numbers[labelled], kept_groups):
            train = np.sort(np.concatenate([labelled[rest], unlabelled]))
            X_held = _safe_indexing(X, labelled[held])
            if self.missing_rate:
                shape = (len(held), np.shape(X)[1])
                holes = random_holes(shape, self.missing_rate, generator)
                X_held = punch_holes(X_held, holes)
            folds.append(
                Fold(
                    _safe_indexing(X, train),
                    labels[train],
                    None if weights is None else weights[train],
                    X_held,
                    classes[numbers[labelled[held]]],
                )
            )
        return folds
