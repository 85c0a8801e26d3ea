"""The class-conditional mixture classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from hybridmix._checks import check_number
from hybridmix._parallel import Workers, workers
from hybridmix._registered import registered
from hybridmix.data import (
    UNLABELLED,
    Dataset,
    Schema,
    encode_labels,
    number_labels,
    read_table,
)
from hybridmix.estimators.base import MixtureEstimator
from hybridmix.estimators.calibration import Calibration, fitted_calibration
from hybridmix.estimators.discriminative import (
    DiscriminativeTraining,
    check_discrimination,
    chosen_solver,
    default_margin,
    discrimination,
    error_rate,
    log_joint,
)
from hybridmix.estimators.families import (
    family_maker,
    fitted_subspace,
    refined,
    refining,
    subspace_of,
)
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.training import (
    ClassTrainer,
    Components,
    Fit,
    balanced_weight,
    history_in_units,
    joined_mixture,
    joined_solution,
    log_class_prior,
)
from hybridmix.families import Subspace
from hybridmix.mixture import Mixture
from hybridmix.objectives import Likelihood, Objective
from hybridmix.problem import Problem
from hybridmix.solvers import ExtendedBaumWelch, LimitedMemoryBFGS, Solution

# Rows are held out in this many folds to calibrate the probabilities, and
# to choose the weight of unlabelled rows among these shares of the balanced one.
_CALIBRATION_FOLDS = 5
_WEIGHT_FOLDS = 3
_WEIGHT_SHARES = (1.0, 0.1, 0.0)


class _Run(NamedTuple):
    """What all steps of a fit share."""

    schema: Schema
    generator: np.random.Generator
    pool: Workers
    subspace: Subspace | None


@registered
class HybridMixtureClassifier(MixtureClassifier):
    r"""A classifier that models each class by a mixture density.

    .. math:: p(x, c) = \pi_c \sum_{k=1}^{K_c} \alpha_{ck}\, p(x \mid c, k), \qquad
              p(c \mid x) = \frac{p(x, c)}{\sum_{c'} p(x, c')}

    Rows with missing features are trained on and classified by the exact marginal of what
    they have; rows without a label are learned from by EM over their classes.

    Parameters
    ----------
    objective : {"hybrid", "likelihood", "conditional", "margin"}, default="hybrid"
        What training maximises: the likelihood of rows and labels plus ``tradeoff`` times
        a discriminative term; the likelihood alone, by EM; the likelihood of the labels
        given the rows; or a margin term alone. All but the likelihood go on from the
        result of EM.
    tradeoff : float, default=10.0
        Weight of the discriminative term in the hybrid objective. 0 is the likelihood;
        the larger, the more the model serves classification alone.
    margin : float or "auto", default="auto"
        Log margin between the joint densities of the label and of its best rival up to
        which rows count in the discriminative term, for all losses but "log". "auto" is
        0.4 for every column.
    loss : {"auto", "log", "hinge", "ramp", "scaled"} or Objective, default="auto"
        The discriminative term: the log probability of the label; minus the soft hinge
        loss of the margin; the same, but bounded for rows far on the wrong side, which
        makes it robust against wrong labels; or the bounded function of Pernkopf and
        Wohlmayr. "auto" is "log" for the hybrid objective and "hinge" for the margin
        alone. An object of `hybridmix.objectives` has its own margin.
    solver : {"lbfgs", "baum-welch"} or solver, default="lbfgs"
        How the discriminative objectives are maximised: L-BFGS in whitened coordinates,
        or extended Baum-Welch steps that never lower the objective. An object of
        `hybridmix.solvers` has its own number of iterations and, for L-BFGS, curvature.
    n_steps : int, default=50
        Largest number of iterations of this solver.
    validation_fraction : float or None, default=None
        Share of the labelled rows to hold out; the iterate with the fewest errors on
        them is kept. None trains on all rows, for all steps. Validation rows can also be
        passed to `fit`.
    patience : int, default=10
        With validation rows: stop after so many iterations without fewer errors.
    generalisation_loss : float or None, default=None
        With validation rows: stop when the error has risen by this share of the lowest
        error so far (0.1 for ten per cent).
    calibrate : bool, default=False
        Correct the class probabilities by a temperature and a share of equal
        probabilities, fitted to validation rows or, if there are none, by five-fold
        cross-validation, which takes five more fits. Labels and densities stay the same.
    n_components : int, iterable of int or dict, default=1
        Components of each class: a number, numbers from which the Bayesian information
        criterion chooses for each class, or a dictionary from labels to either.
    covariance_type : {"full", "tied", "diag", "spherical", "subspace"}, default="full"
        Covariance of the real columns within a component: any; one for all components of
        all classes; diagonal; one variance for all columns (in the units of the table);
        any within a subspace that all components share, plus noise, for hundreds of
        columns and more.
    n_factors : int, float or "auto", default="auto"
        Dimension of the subspace: a number; a share of the variance to explain, between
        0 and 1; or the power of two, up to 64, of the highest likelihood on a fifth of
        the rows. There are always fewer factors than rows. Only for
        ``covariance_type="subspace"``.
    noise : {"common", "columns"}, default="common"
        Variance of the noise around the subspace: one for all columns, or for each what
        the subspace leaves of its variance.
    refine_subspace : bool, default=False
        Let the discriminative objective move the subspace and its noise, too, beside
        the components. Only for L-BFGS.
    covariance_prior : float or "auto", default="auto"
        Strength of the prior of the covariances, in rows; 0 for maximum likelihood. It
        draws "full" and "subspace" covariances to the one within all classes, and the
        others to its diagonal. "auto" is the number of real columns for "full" and
        "tied", that of factors for "subspace", and 1 for the others.
    variance_floor : float, default=1e-6
        Smallest variance of a component in any direction, relative to the variances of
        the columns. L-BFGS holds to it for each column given those before it.
    smoothing : float, default=1.0
        Rows added to the count of every category of a component.
    class_prior : {"empirical", "uniform"} or array-like of shape (n_classes,), \
            default="empirical"
        Class probabilities: estimated, equal, or given in the order of the sorted labels.
    unlabelled : object, default=-1
        The mark of unlabelled rows in ``y``, beside None and NaN; None for no other
        mark. Labels that are only -1 and 1 are taken for two classes, with a warning.
    unlabelled_weight : float or "auto", default="auto"
        What an unlabelled row counts beside a labelled one. "auto" is the best on
        held-out labels among: a weight with which all unlabelled rows together count at
        most as much as all labelled ones; a tenth of it; and 0. Three folds of EM tell.
    categorical_features : list of int or str, or mask, default=None
        Categorical columns beside those of type category, object, string or bool.
    init : {"kmeans", "k-means++"} or HybridMixtureClassifier, default="kmeans"
        Where EM begins: k-means within each class, k-means++ centres, or a fitted model.
        The discriminative objectives go on from a fitted model without EM. Its numbers
        of components and its subspace are kept.
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
    means_, covariances_, loading_, noise_variances_, category_probabilities_, \
    categories_
        As in `MixtureDensity`, for all components of all classes.
    bic_ : list of dict
        For each class: the criterion for each number of components that was tried;
        empty if ``init`` is a fitted model.
    converged_ : bool
        Whether the last solver met its tolerance, or was stopped by validation rows,
        before its largest number of iterations.
    n_iter_ : int
        Iterations of the last solver; with EM class by class, the most of any class.
    trace_ : ndarray
        Mean objective of the rows along these iterations, with the log density of the
        priors; empty when EM went class by class.
    history_ : dict of str to ndarray
        What changed along these iterations, from the start: "value", which is `trace_`;
        the means over the rows of "likelihood" and "margin" or "conditional", as far as
        they are maximised; "training_error" and "validation_error".
    unlabelled_weight_ : float
        What an unlabelled row counted.
    temperature_ : float
        What log densities are divided by to get class probabilities; 1 unless calibrated.
    uniform_share_ : float
        Share of the class probabilities that is the same for all classes; 0 unless
        calibrated.
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
        objective: str = "hybrid",
        *,
        tradeoff: float = 10.0,
        margin: float | str = "auto",
        loss: str | Objective = "auto",
        solver: str | LimitedMemoryBFGS | ExtendedBaumWelch = "lbfgs",
        n_steps: int = 50,
        validation_fraction: float | None = None,
        patience: int = 10,
        generalisation_loss: float | None = None,
        calibrate: bool = False,
        n_components: Components | Mapping[Any, Components] = 1,
        covariance_type: str = "full",
        n_factors: int | float | str = "auto",
        noise: str = "common",
        refine_subspace: bool = False,
        covariance_prior: float | str = "auto",
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
        self.loss = loss
        self.solver = solver
        self.n_steps = n_steps
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.generalisation_loss = generalisation_loss
        self.calibrate = calibrate
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.n_factors = n_factors
        self.noise = noise
        self.refine_subspace = refine_subspace
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

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit a mixture to each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values.
        y : array-like of shape (n,)
            Labels of any kind; see ``unlabelled`` for rows without one.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.
        X_val, y_val, sample_weight_val : array-like, default=None
            Validation rows, their labels and weights, for the discriminative objectives:
            the iterate with the fewest errors on them is kept.

        Returns
        -------
        self : HybridMixtureClassifier
        """
        check_discrimination(self)
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
        validation = self._validation_rows(table.schema, X_val, y_val, sample_weight_val)
        generator = np.random.default_rng(self._seed())
        if validation is None and self.validation_fraction and self._discriminates:
            dataset, validation = self._hold_out(dataset, generator)
        with workers(self.n_jobs) as pool:
            run = _Run(
                table.schema, generator, pool, self._subspace(table.schema, dataset)
            )
            self.unlabelled_weight_ = self._chosen_weight(run, dataset)
            fits, solution = self._solve(run, dataset, validation, self.init)
            calibration = self._calibrated(run, dataset, validation, solution)
        self.temperature_, self.uniform_share_ = calibration
        self.schema_ = table.schema
        self._publish_classes(dataset, fits, solution)
        return self

    # Training ---------------------------------------------------------------------

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

    @property
    def _discriminates(self) -> bool:
        return self.objective != "likelihood"

    def _validation_rows(
        self, schema: Schema, X: Any, y: Any, sample_weight: Any
    ) -> Dataset | None:
        """Encode given validation rows; those without a label tell nothing."""
        if (X is None) != (y is None):
            raise ValueError("X_val and y_val must be passed together.")
        if X is None:
            return None
        table = schema.encode(read_table(self, X, schema=schema))
        labels = number_labels(y, self.classes_, self.unlabelled)
        check_consistent_length(table.real, labels)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((table.n_rows, 1)), ensure_non_negative=True
            )
        validation = Dataset.arrange(table, labels, weights).labelled()
        if validation.n_rows == 0:
            raise ValueError("y_val has no label in a row of positive weight.")
        return validation

    def _hold_out(
        self, dataset: Dataset, generator: np.random.Generator
    ) -> tuple[Dataset, Dataset]:
        assert self.validation_fraction is not None
        dataset, validation = dataset.split(self.validation_fraction, generator)
        if validation.n_rows == 0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} holds out no row: the "
                "classes have too few labelled rows. Use a larger fraction or None."
            )
        return dataset, validation

    def _subspace(self, schema: Schema, dataset: Dataset) -> Subspace | None:
        """Return the subspace of all rows, or that of a given model."""
        if isinstance(self.init, MixtureEstimator):
            return subspace_of(self._translated(self.init, schema))
        return fitted_subspace(self, schema, dataset)

    @property
    def _own_start(self) -> str:
        """How to start without a given model, which may have seen held-out rows."""
        return self.init if isinstance(self.init, str) else "kmeans"

    def _own_run(self, run: _Run, dataset: Dataset) -> _Run:
        """Return a run without anything of a given model."""
        if isinstance(self.init, str):
            return run
        return run._replace(subspace=fitted_subspace(self, run.schema, dataset))

    def _chosen_weight(self, run: _Run, dataset: Dataset) -> float:
        """Return the weight of an unlabelled row; "auto" asks held-out labels."""
        if isinstance(self.unlabelled_weight, str):
            if self.unlabelled_weight != "auto":
                raise ValueError(
                    f"unlabelled_weight={self.unlabelled_weight!r} is neither a number "
                    "nor 'auto'."
                )
        else:
            check_number("unlabelled_weight", self.unlabelled_weight, 0.0)
            return float(self.unlabelled_weight)
        balanced = balanced_weight(dataset)
        if dataset.unlabelled().n_rows == 0:
            return balanced
        run = self._own_run(run, dataset)
        folds = list(dataset.folds(_WEIGHT_FOLDS, run.generator))

        def wrong(share: float) -> float:
            total = 0.0
            for rest, held in folds:
                rows = rest if share else rest.labelled()
                weight = share * balanced
                _, fold = self._solve_likelihood(run, rows, self._own_start, weight)
                total += error_rate(fold.model, held) * held.total_weight
            return total

        return balanced * min(_WEIGHT_SHARES, key=wrong) if folds else balanced

    def _solve(
        self,
        run: _Run,
        dataset: Dataset,
        validation: Dataset | None,
        init: str | MixtureEstimator,
    ) -> tuple[list[Fit], Solution]:
        """Run EM and, if the objective asks for it, discriminative training."""
        fits: list[Fit] = []
        if self._discriminates and isinstance(init, MixtureEstimator):
            start = self._continued(run, dataset, init)
            solution = Solution(start, float("nan"))
        else:
            fits, solution = self._solve_likelihood(
                run, dataset, init, self.unlabelled_weight_
            )
            self._warn_about(solution)
        if not self._discriminates or solution.interrupted:
            return fits, solution
        start = refining(solution.model) if self.refine_subspace else solution.model
        solution = self._training(run).solve(dataset, validation, start, run.pool)
        solution = replace(solution, model=refined(solution.model))
        if solution.interrupted:
            self._warn_about(solution)
        return fits, solution

    def _training(self, run: _Run) -> DiscriminativeTraining:
        tradeoff = float(self.tradeoff) if self.objective == "hybrid" else None
        return DiscriminativeTraining(
            discrimination(self.objective, self.loss, self._margin(run)),
            tradeoff,
            self.unlabelled_weight_,
            chosen_solver(
                self.solver,
                self.n_steps,
                tradeoff,
                self._learns_prior,
                bool(self.verbose),
            ),
            self.patience,
            np.inf if self.generalisation_loss is None else self.generalisation_loss,
        )

    def _calibrated(
        self,
        run: _Run,
        dataset: Dataset,
        validation: Dataset | None,
        solution: Solution,
    ) -> Calibration:
        """Return the calibration that held-out rows call for."""
        if not self.calibrate or solution.interrupted or len(self.classes_) == 1:
            return Calibration()
        held = [(solution.model, validation)] if validation is not None else []
        if validation is None:
            own_run = self._own_run(run, dataset)
            for rest, part in dataset.folds(_CALIBRATION_FOLDS, run.generator):
                _, fold = self._solve(own_run, rest, None, self._own_start)
                held.append((fold.model, part))
        if not held:
            raise ValueError("calibrate=True needs a class of two labelled rows or more.")
        return fitted_calibration(
            np.concatenate([log_joint(model, part) for model, part in held], axis=1),
            np.concatenate([part.labels for _, part in held]),
            np.concatenate([part.filled_weights for _, part in held]),
        )

    def _margin(self, run: _Run) -> float:
        if self.margin != "auto":
            return float(self.margin)
        real = len(run.schema.real) if run.subspace is None else run.subspace.n_factors
        return default_margin(real + len(run.schema.categorical))

    def _solve_likelihood(
        self,
        run: _Run,
        dataset: Dataset,
        init: str | MixtureEstimator,
        unlabelled_weight: float,
    ) -> tuple[list[Fit], Solution]:
        """Fit the classes one by one, then together if anything couples them."""
        labelled = dataset.labelled()
        family_of = family_maker(self, run.schema, dataset, run.subspace, correlated=True)
        log_prior = log_class_prior(self.class_prior, labelled, len(self.classes_))
        is_coupled = labelled.n_rows < dataset.n_rows or self.covariance_type == "tied"
        fits: list[Fit] = []
        if isinstance(init, MixtureEstimator):
            start = self._continued(run, dataset, init)
        else:
            trainer = self._trainer(family_of, run.generator, run.pool, is_coupled)
            fits = [
                self._fit_label(dataset, label, init, trainer)
                for label in range(len(self.classes_))
            ]
            start = joined_mixture(family_of, labelled, fits, log_prior)
            separate = joined_solution(start, [fit.solution for fit in fits])
            if separate.interrupted or not is_coupled:
                return fits, separate
        problem = Problem(
            dataset,
            start.family,
            Likelihood(unlabelled_weight),
            start.n_components,
            run.pool,
        )
        solver = self._solver(self._learns_prior)
        return fits, solver.solve(problem, start, run.generator)

    def _continued(self, run: _Run, dataset: Dataset, init: MixtureEstimator) -> Mixture:
        """Return the mixture of a fitted classifier, with the options of this one."""
        model = self._translated(init, run.schema)
        family_of = family_maker(self, run.schema, dataset, run.subspace, correlated=True)
        log_prior = log_class_prior(
            self.class_prior, dataset.labelled(), len(self.classes_)
        )
        return replace(
            model,
            family=family_of(model.n_components / model.n_classes),
            log_prior=model.log_prior if self._learns_prior else log_prior,
        )

    def _fit_label(
        self, dataset: Dataset, label: int, init: str, trainer: ClassTrainer
    ) -> Fit:
        rows = dataset.of_class(label)
        name = self._name(label)
        wanted: Any = self.n_components
        if isinstance(wanted, Mapping):
            if self.classes_[label] not in wanted:
                raise ValueError(f"n_components has no entry for the class {name}.")
            wanted = wanted[self.classes_[label]]
        return trainer.fit(rows, wanted, init, name=f"The class {name}")

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
        self.history_ = history_in_units(
            solution, dataset, self.schema_.scale, self.unlabelled_weight_
        )
        self.trace_ = self.history_.get("value", np.empty(0))
        self._publish()
