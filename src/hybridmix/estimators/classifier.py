"""The class-conditional mixture classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length

from hybridmix._parallel import Workers, workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Dataset, Schema, encode_labels
from hybridmix.estimators.base import MixtureEstimator
from hybridmix.estimators.discriminative import (
    OBJECTIVES,
    DiscriminativeTraining,
    default_margin,
)
from hybridmix.estimators.training import (
    ClassTrainer,
    Components,
    Fit,
    check_number,
    joined_solution,
    log_class_prior,
    weight_of_unlabelled,
    within_class_variances,
)
from hybridmix.mixture import Mixture, class_posterior
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.solvers import LimitedMemoryBFGS, Solution


class HybridMixtureClassifier(ClassifierMixin, MixtureEstimator):
    r"""A classifier that models each class by a mixture density.

    .. math:: p(x, c) = \pi_c \sum_{k=1}^{K_c} \alpha_{ck}\, p(x \mid c, k), \qquad
              p(c \mid x) = \frac{p(x, c)}{\sum_{c'} p(x, c')}

    Rows with missing features are trained on and classified by the exact marginal of what
    they have; rows without a label are learned from by EM over their classes.

    Parameters
    ----------
    objective : {"likelihood", "hybrid", "conditional", "margin"}, default="likelihood"
        What training maximises: the likelihood of rows and labels, by EM; the likelihood
        plus ``tradeoff`` times a large-margin term; the likelihood of the labels given
        the rows; or the margin term alone. All but the first start from the result of EM
        and climb by L-BFGS.
    tradeoff : float, default=10.0
        Weight of the margin term in the hybrid objective. 0 is the likelihood; the
        larger, the more the model serves classification alone.
    margin : float or "auto", default="auto"
        Log margin between the joint densities of the label and of its best rival up to
        which rows count in the margin term. "auto" is 0.4 for every column.
    n_steps : int, default=50
        Largest number of L-BFGS iterations.
    validation_fraction : float or None, default=None
        Share of the labelled rows to hold out; the iterate with the fewest errors on
        them is kept. None trains on all rows, for all steps.
    patience : int, default=10
        With held-out rows: stop after so many iterations without fewer errors.
    n_components : int, iterable of int or dict, default=1
        Components of each class: a number, numbers from which the Bayesian information
        criterion chooses for each class, or a dictionary from labels to either.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Covariance of the real columns within a component: any; one for all components of
        all classes; diagonal; one variance for all columns (in the units of the table).
    covariance_prior : float, default=1.0
        Strength of the prior of the covariances, in rows; 0 for maximum likelihood.
    variance_floor : float, default=1e-6
        Smallest variance of a component in any direction, relative to the variances of
        the columns.
    smoothing : float, default=1.0
        Rows added to the count of every category of a component.
    class_prior : {"empirical", "uniform"} or array-like of shape (n_classes,), \
            default="empirical"
        Class probabilities: estimated, equal, or given in the order of the sorted labels.
    unlabelled : object, default=-1
        The mark of unlabelled rows in ``y``, beside None and NaN; None for no other
        mark. Labels that are only -1 and 1 are taken for two classes, with a warning.
    unlabelled_weight : float or "auto", default="auto"
        What an unlabelled row counts beside a labelled one. "auto" lets all unlabelled
        rows together count at most as much as all labelled ones, so that many of them
        cannot redefine the classes.
    categorical_features : list of int or str, or mask, default=None
        Categorical columns beside those of type category, object, string or bool.
    init : {"kmeans", "k-means++"} or HybridMixtureClassifier, default="kmeans"
        Where EM begins: k-means within each class, k-means++ centres, or a fitted model.
    n_init : int, default=1
        Number of starts for each class; the best result is kept.
    max_iter : int, default=300
        Largest number of EM iterations per start.
    tol : float, default=1e-4
        EM stops when the mean log-likelihood per row rises by less.
    n_jobs : int or None, default=None
        Threads. None uses as many as BLAS may; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of `sample`.
    verbose : int, default=0
        Print progress if positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class probabilities.
    n_components_ : ndarray of shape (n_classes,)
        Number of components of each class.
    component_classes_ : ndarray of shape (n_all_components,)
        Position in ``classes_`` of the class of each component.
    mixing_ : ndarray of shape (n_all_components,)
        Proportions of the components within their class.
    means_, covariances_, category_probabilities_, categories_
        As in `MixtureDensity`, for all components of all classes.
    bic_ : list of dict
        For each class: the criterion for each number of components that was tried.
    converged_ : bool
        Whether the last solver met its tolerance, before its largest number of
        iterations.
    n_iter_ : int
        Iterations of the last solver; with EM class by class, the most of any class.
    trace_ : ndarray
        Mean objective of the rows along these iterations, with the log density of the
        priors; empty when EM went class by class.
    validation_errors_ : ndarray
        Share of held-out rows misclassified at the start and after each L-BFGS iteration;
        empty without held-out rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X[::3, 2] = np.nan          # holes
    >>> y[::2] = -1                 # rows without a label
    >>> model = HybridMixtureClassifier().fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(
        self,
        objective: str = "likelihood",
        *,
        tradeoff: float = 10.0,
        margin: float | str = "auto",
        n_steps: int = 50,
        validation_fraction: float | None = None,
        patience: int = 10,
        n_components: Components | Mapping[Any, Components] = 1,
        covariance_type: str = "full",
        covariance_prior: float = 1.0,
        variance_floor: float = 1e-6,
        smoothing: float = 1.0,
        class_prior: Any = "empirical",
        unlabelled: Any = -1,
        unlabelled_weight: float | str = "auto",
        categorical_features: Sequence[int | str | bool] | None = None,
        init: Any = "kmeans",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.tradeoff = tradeoff
        self.margin = margin
        self.n_steps = n_steps
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.covariance_prior = covariance_prior
        self.variance_floor = variance_floor
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.categorical_features = categorical_features
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a mixture to each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values.
        y : array-like of shape (n,)
            Labels of any kind; see ``unlabelled`` for rows without one.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.

        Returns
        -------
        self : HybridMixtureClassifier
        """
        self._check_objective()
        if not isinstance(self.init, str | MixtureEstimator):
            raise ValueError(
                "init must be a method or a fitted HybridMixtureClassifier; centres do "
                "not tell which class they belong to."
            )
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        table, weights = self._learn_table(X, sample_weight)
        self.classes_, labels = encode_labels(y, self.unlabelled)
        check_consistent_length(table.real, labels)
        dataset = Dataset.arrange(table, labels, weights)
        self._check_classes(dataset)
        with workers(self.n_jobs) as pool:
            fits, solution, errors = self._solve(table.schema, dataset, pool)
        self.schema_ = table.schema
        self.validation_errors_ = np.array(errors)
        self._publish_classes(dataset, fits, solution)
        return self

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return the joint log densities ``log p(x, c)`` of rows and classes, (n, C)."""
        return self._log_joint(self._encode(X)).T

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of each row, (n, C)."""
        return class_posterior(self._log_joint(self._encode(X)))[1].T

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the class probabilities, (n, C)."""
        log_joint = self._log_joint(self._encode(X))
        evidence, _ = class_posterior(log_joint)
        return (log_joint - evidence).T

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_component(self, X: Any) -> IntArray:
        """Return the most probable component of each row, over all classes.

        ``component_classes_`` tells the class that a component belongs to.
        """
        return self._best_component(self._encode(X))

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[Any, np.ndarray]:
        """Draw rows and labels from the joint distribution.

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
        y : ndarray of shape (n_samples,)
            Labels.
        """
        X, components = self._sample_rows(n_samples, random_state)
        return X, self.classes_[self.component_classes_[components]]

    # Training ---------------------------------------------------------------------

    def _check_objective(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(
                f"objective={self.objective!r} is not one of {', '.join(OBJECTIVES)}."
            )
        check_number("tradeoff", self.tradeoff, 0.0)
        if self.margin != "auto":
            check_number("margin", self.margin, 1e-6)
        check_number("n_steps", self.n_steps, 1, whole=True)
        check_number("patience", self.patience, 1, whole=True)
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, 0.0, 0.5)

    def _name(self, label: int) -> str:
        """Name a class in a message."""
        return repr(self.classes_[label : label + 1].tolist()[0])

    def _check_classes(self, dataset: Dataset) -> None:
        present = np.unique(dataset.labels[dataset.labels != UNLABELLED])
        absent = np.setdiff1d(np.arange(len(self.classes_)), present)
        if len(absent):
            raise ValueError(
                f"The class {self._name(absent[0])} has no row of positive weight."
            )

    @property
    def _learns_prior(self) -> bool:
        return isinstance(self.class_prior, str) and self.class_prior == "empirical"

    def _solve(
        self, schema: Schema, dataset: Dataset, pool: Workers
    ) -> tuple[list[Fit], Solution, list[float]]:
        """Run EM and, if the objective asks for it, discriminative training."""
        generator = np.random.default_rng(self._seed())
        validation = None
        if self.objective != "likelihood" and self.validation_fraction:
            dataset, validation = dataset.split(self.validation_fraction, generator)
            if validation.n_rows == 0:
                raise ValueError(
                    f"validation_fraction={self.validation_fraction} holds out no row: "
                    "the classes have too few labelled rows. Use a larger fraction or "
                    "None."
                )
        fits, solution = self._solve_likelihood(schema, dataset, generator, pool)
        self._warn_about(solution)
        if self.objective == "likelihood" or solution.interrupted:
            return fits, solution, []
        training = DiscriminativeTraining(
            self.objective,
            float(self.tradeoff),
            self._margin(schema),
            weight_of_unlabelled(self.unlabelled_weight, dataset),
            LimitedMemoryBFGS(
                max_iter=self.n_steps,
                learn_prior=self._learns_prior,
                verbose=bool(self.verbose),
            ),
            self.patience,
        )
        solution, errors = training.solve(dataset, validation, solution.model, pool)
        if solution.interrupted:
            self._warn_about(solution)
        return fits, solution, errors

    def _margin(self, schema: Schema) -> float:
        if self.margin == "auto":
            return default_margin(len(schema.real) + len(schema.categorical))
        return float(self.margin)

    def _solve_likelihood(
        self,
        schema: Schema,
        dataset: Dataset,
        generator: np.random.Generator,
        pool: Workers,
    ) -> tuple[list[Fit], Solution]:
        """Fit the classes one by one, then together if anything couples them."""
        labelled = dataset.labelled()
        variances = within_class_variances(labelled)
        log_prior = log_class_prior(self.class_prior, labelled, len(self.classes_))
        is_coupled = labelled.n_rows < dataset.n_rows or self.covariance_type == "tied"
        fits: list[Fit] = []
        if isinstance(self.init, MixtureEstimator):
            start = self._translated(self.init, schema)
        else:
            trainer = self._trainer(schema, variances, generator, pool, is_coupled)
            fits = [
                self._fit_label(dataset, label, trainer)
                for label in range(len(self.classes_))
            ]
            start = self._join(schema, labelled, variances, fits, log_prior)
            separate = joined_solution(start, [fit.solution for fit in fits])
            if separate.interrupted or not is_coupled:
                return fits, separate
        objective = Likelihood(weight_of_unlabelled(self.unlabelled_weight, dataset))
        problem = Problem(dataset, start.family, objective, start.n_components, pool)
        return fits, self._solver(self._learns_prior).solve(problem, start, generator)

    def _fit_label(self, dataset: Dataset, label: int, trainer: ClassTrainer) -> Fit:
        rows = dataset.of_class(label)
        name = self._name(label)
        wanted: Any = self.n_components
        if isinstance(wanted, Mapping):
            if self.classes_[label] not in wanted:
                raise ValueError(f"n_components has no entry for the class {name}.")
            wanted = wanted[self.classes_[label]]
        return trainer.fit(rows, wanted, self.init, name=f"The class {name}")

    def _join(
        self,
        schema: Schema,
        labelled: Dataset,
        variances: FloatArray,
        fits: list[Fit],
        log_prior: FloatArray,
    ) -> Mixture:
        """Put the mixtures of the classes into one model."""
        models = [fit.solution.model for fit in fits]
        sizes = [model.n_components for model in models]
        family = self._family(schema, variances, float(np.mean(sizes)))
        counts = np.bincount(labelled.labels, labelled.weights, len(models))
        return Mixture(
            family,
            family.concatenate([model.components for model in models], counts.tolist()),
            np.concatenate([model.log_mixing for model in models]),
            log_prior,
            tuple(np.concatenate([[0], np.cumsum(sizes)]).tolist()),
        )

    def _publish_classes(
        self, dataset: Dataset, fits: list[Fit], solution: Solution
    ) -> None:
        self.model_ = model = solution.model
        self.class_prior_ = np.exp(model.log_prior)
        self.n_components_ = np.diff(model.offsets)
        self.component_classes_ = model.class_of
        self.bic_ = []
        for label, fit in enumerate(fits):
            log_volume = dataset.of_class(label).log_volume(self.schema_.scale)
            self.bic_.append({k: v + 2.0 * log_volume for k, v in fit.bic.items()})
        self.converged_ = solution.converged
        self.n_iter_ = solution.n_iter
        self.trace_ = self._trace(dataset, solution)
        self._publish()

    def _trace(self, dataset: Dataset, solution: Solution) -> FloatArray:
        """Return the trace in the units of the table; only likelihoods depend on them."""
        trace = np.array(solution.trace)
        if self.objective in ("conditional", "margin"):
            return trace
        scale = self.schema_.scale
        weight = weight_of_unlabelled(self.unlabelled_weight, dataset)
        log_volume = dataset.labelled().log_volume(scale)
        log_volume += weight * dataset.unlabelled().log_volume(scale)
        return trace - log_volume / dataset.total_weight
