"""What the estimators share: options, training of one class, prediction by chunks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from hybridmix._checks import check_number
from hybridmix._chunks import row_chunks
from hybridmix._parallel import Workers, workers
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Dataset, Schema, Table, read_table
from hybridmix.data.columns import Columns
from hybridmix.estimators.families import (
    COVARIANCE_TYPES,
    NOISES,
    SCALINGS,
    FamilyOf,
    family_maker,
    fitted_subspace,
    subspace_of,
)
from hybridmix.estimators.imputation import impute_table
from hybridmix.estimators.training import ClassTrainer, component_range
from hybridmix.estimators.typicality import log_tail_probability
from hybridmix.mixture import Evaluation, Mixture, class_posterior
from hybridmix.solvers import ExpectationMaximisation, Solution
from hybridmix.solvers.starts import METHODS

_COMPONENT_ATTRIBUTES = (
    "means_",
    "covariances_",
    "loading_",
    "noise_variances_",
    "category_probabilities_",
    "categories_",
)
Result = TypeVar("Result")


class MixtureEstimator(BaseEstimator):
    """Base of all estimators; holds no parameters of its own."""

    n_components: Any
    covariance_type: Any
    n_factors: Any
    noise: Any
    covariance_prior: Any
    variance_floor: float
    smoothing: float
    categorical_features: Any
    init: Any
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None
    random_state: Any
    verbose: int
    schema_: Schema
    model_: Mixture
    n_components_: Any
    bic_: Any
    # What a fitted estimator has in any case, for files and checks.
    fitted_attributes: ClassVar[tuple[str, ...]] = ("schema_", "model_", "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # Training ---------------------------------------------------------------------

    def _check_options(self) -> None:
        if self.covariance_type not in COVARIANCE_TYPES:
            raise ValueError(
                f"covariance_type={self.covariance_type!r} is not one of "
                f"{', '.join(COVARIANCE_TYPES)}."
            )
        if self.noise not in NOISES:
            raise ValueError(f"noise={self.noise!r} is not one of {', '.join(NOISES)}.")
        if self.covariance_prior != "auto":
            check_number("covariance_prior", self.covariance_prior, 0.0)
        check_number("variance_floor", self.variance_floor, 1e-12, 1.0)
        check_number("smoothing", self.smoothing, 1e-10)
        check_number("tol", self.tol, 0.0)
        check_number("max_iter", self.max_iter, 1, whole=True)
        check_number("n_init", self.n_init, 1, whole=True)
        if isinstance(self.init, str) and self.init not in METHODS:
            raise ValueError(
                f"init={self.init!r} is not one of {', '.join(METHODS)}; it may also be "
                "an array of centres or a fitted estimator."
            )

    def _learn_table(self, X: Any, sample_weight: Any) -> tuple[Table, FloatArray | None]:
        """Check the options and the table, and encode it by what it shows."""
        self._check_options()
        columns = read_table(self, X)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((columns.n_rows, 1)), ensure_non_negative=True
            )
            if not weights.any():
                raise ValueError("All sample weights are zero.")
            weights = None if np.all(weights == 1.0) else weights
        schema = Schema.learn(
            columns,
            self.categorical_features,
            weights,
            scaling=SCALINGS.get(self.covariance_type, "columns"),
        )
        return schema.encode(columns), weights

    def _solver(self, learn_prior: bool = True) -> ExpectationMaximisation:
        return ExpectationMaximisation(
            max_iter=self.max_iter,
            tol=self.tol,
            learn_prior=learn_prior,
            verbose=bool(self.verbose),
        )

    def _trainer(
        self,
        family_of: FamilyOf,
        generator: np.random.Generator,
        pool: Workers,
        is_preliminary: bool = False,
    ) -> ClassTrainer:
        solver = self._solver()
        if is_preliminary:
            # What follows starts from this, and need not start from the very optimum.
            solver = replace(solver, tol=max(self.tol, 1e-2))
        return ClassTrainer(
            family_of=family_of,
            solver=solver,
            n_init=self.n_init,
            generator=generator,
            pool=pool,
            verbose=bool(self.verbose),
        )

    def _fit_density(self, X: Any, sample_weight: Any) -> Dataset:
        """Fit a mixture to all rows and set the attributes; return the encoded rows."""
        candidates = component_range(self.n_components)
        table, weights = self._learn_table(X, sample_weight)
        dataset = Dataset.arrange(table, np.zeros(table.n_rows, np.intp), weights)
        if min(candidates) > dataset.n_rows:
            raise ValueError(
                f"n_components={min(candidates)} is more than the number of rows, "
                f"n_samples={dataset.n_rows}. Use fewer components."
            )
        init: Any = self.init
        if isinstance(init, MixtureEstimator):
            init = self._translated(init, table.schema)
            candidates = [init.n_components]
        elif not isinstance(init, str):
            candidates = candidates[:1]
            init = _scaled_centres(init, candidates[0], table.schema)
        if isinstance(init, Mixture):
            subspace = subspace_of(init)
        else:
            subspace = fitted_subspace(self, table.schema, dataset)
        family_of = family_maker(self, table.schema, dataset, subspace)
        generator = np.random.default_rng(self._seed())
        with workers(self.n_jobs) as pool:
            trainer = self._trainer(family_of, generator, pool)
            fit = trainer.fit(dataset, candidates, init)
        solution = fit.solution
        self.schema_, self.model_ = table.schema, solution.model
        self.n_components_ = solution.model.n_components
        log_volume = dataset.log_volume(self.schema_.scale)
        self.bic_ = {k: value + 2.0 * log_volume for k, value in fit.bic.items()}
        self.converged_ = solution.converged
        self.n_iter_ = solution.n_iter
        self.trace_ = np.array(solution.trace) - log_volume / dataset.total_weight
        self._publish()
        self._warn_about(solution)
        return dataset

    def _translated(self, other: MixtureEstimator, mine: Schema) -> Mixture:
        """Express the model of another fitted estimator in the scale of a table."""
        check_is_fitted(other)
        theirs = other.schema_
        same_table = (mine.real, mine.categorical, mine.categories) == (
            theirs.real,
            theirs.categorical,
            theirs.categories,
        )
        same_classes = np.array_equal(
            getattr(self, "classes_", []), getattr(other, "classes_", [])
        )
        if (
            not same_table
            or not same_classes
            or self.covariance_type != other.covariance_type
        ):
            raise ValueError(
                "The estimator given as init was fitted to other columns, categories, "
                "classes or another covariance_type."
            )
        scale = theirs.scale / mine.scale
        shift = (theirs.centre - mine.centre) / mine.scale
        return replace(
            other.model_, components=other.model_.components.affine(scale, shift)
        )

    def _warn_about(self, solution: Solution) -> None:
        if solution.interrupted:
            warnings.warn(
                "Interrupted: the best model so far is kept.",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif not solution.converged:
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} iterations. Raise "
                "max_iter or tol, or use fewer components.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if solution.n_reseeded:
            warnings.warn(
                f"Components collapsed and were started anew {solution.n_reseeded} "
                "time(s). Use fewer components (n_components), a stronger "
                "covariance_prior or a higher variance_floor.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _publish(self) -> None:
        """Set the fitted attributes, in the units of the table."""
        model, schema = self.model_, self.schema_
        for name in _COMPONENT_ATTRIBUTES:
            # A fit to a table of other types must not leave any of them behind.
            self.__dict__.pop(name, None)
        # Variances of columns near the largest float have no finite value.
        with np.errstate(over="ignore"):
            components = model.components.affine(schema.scale, schema.centre)
        factors = list(getattr(components, "factors", [components]))
        self.mixing_ = np.exp(model.log_mixing)
        if schema.real:
            gaussian = factors.pop(0)
            self.means_ = gaussian.means
            self.covariances_ = _published_covariances(gaussian, self.covariance_type)
            if self.covariance_type == "subspace":
                self.loading_ = gaussian.subspace.loading
                self.noise_variances_ = gaussian.subspace.noise
        if schema.categorical:
            probabilities = np.exp(factors.pop(0).log_probabilities)
            ends = np.cumsum(schema.n_categories)[:-1]
            self.category_probabilities_ = np.split(probabilities, ends, axis=1)
            self.categories_ = [np.array(values) for values in schema.categories]

    # Files ------------------------------------------------------------------------

    def check_consistent(self) -> None:
        """Raise ValueError unless the fitted attributes fit together."""
        check_is_fitted(self, list(self.fitted_attributes))
        schema = self.schema_
        require_instance("schema_", schema, Schema)
        require(schema.n_columns == self.n_features_in_, "n_features_in_ is wrong")
        names = tuple(getattr(self, "feature_names_in_", schema.names or ()))
        require(schema.names in (None, names), "feature_names_in_ is wrong")
        self._check_model("model_", self.model_)

    def _check_model(self, name: str, model: Any) -> None:
        """Raise ValueError unless a mixture is one of the table and of the classes."""
        require_instance(name, model, Mixture)
        n_classes = len(getattr(self, "classes_", [0]))
        require(model.n_classes == n_classes, f"{name} has other classes than classes_")
        layout = model.family.layout()
        wanted = (len(self.schema_.real), self.schema_.n_categories)
        require(layout in (None, wanted), f"{name} has other columns than schema_")

    # Prediction -------------------------------------------------------------------

    def _read(self, X: Any) -> Columns:
        check_is_fitted(self, "model_")
        return read_table(self, X, schema=self.schema_)

    def _encode(self, X: Any) -> Table:
        columns = self._read(X)
        return self.schema_.encode(columns)

    def _seed(self, random_state: Any = None) -> int:
        """Draw a seed from the given random state, or from the estimator's own."""
        state = self.random_state if random_state is None else random_state
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))

    def _map_chunks(
        self, table: Table, function: Callable[[slice], Result]
    ) -> list[Result]:
        """Apply a function to ranges of rows, on threads."""
        model = self.model_
        observed = table.observed()
        mask = None if observed is None else observed.T
        width = model.family.width(model.n_components, mask)
        chunks = list(row_chunks(table.n_rows, width))
        n_jobs = 1 if len(chunks) == 1 else self.n_jobs
        with workers(n_jobs) as pool:
            return list(pool.map(function, chunks))

    def _map_evaluations(
        self, table: Table, read: Callable[[Evaluation], np.ndarray]
    ) -> np.ndarray:
        """Evaluate all rows by chunks; join what is read from the evaluations."""
        model = self.model_

        def evaluate(chunk: slice) -> np.ndarray:
            return read(model.evaluate(model.family.prepare(table.rows(chunk))))

        return np.concatenate(self._map_chunks(table, evaluate), axis=-1)

    def _log_joint(self, table: Table) -> FloatArray:
        """Return ``log p(x, c)`` in the units of the table, (C, n)."""
        log_joint = self._map_evaluations(table, lambda evaluation: evaluation.log_joint)
        log_joint -= table.log_volume()
        return log_joint

    def _best_component(self, table: Table) -> IntArray:
        return self._map_evaluations(
            table, lambda evaluation: evaluation.component_posterior().argmax(axis=0)
        )

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log density of each row, over the columns that it has.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are marginalised.

        Returns
        -------
        log_density : ndarray of shape (n,)
            Natural logarithm, in the units of the table.
        """
        return class_posterior(self._log_joint(self._encode(X)))[0]

    def typicality(self, X: Any) -> FloatArray:
        r"""Return how typical each row is, at most 0; the lower, the more of an outlier.

        .. math:: \log P\big( p(X_o) \le p(x_o) \big),

        the logarithm of the probability that the model itself produces a row of no higher
        density, over the columns that the row has. Rows with holes can be compared
        with complete ones. Below log 0.01 lie at most about one in a hundred rows of the
        model: where components overlap, the probability is an upper bound.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are marginalised.

        Returns
        -------
        log_probability : ndarray of shape (n,)
            Natural logarithm; it does not depend on the units of the table.
        """
        table = self._encode(X)
        model = self.model_

        def evaluate(chunk: slice) -> FloatArray:
            prepared = model.family.prepare(table.rows(chunk))
            return log_tail_probability(model, prepared)

        return np.concatenate(self._map_chunks(table, evaluate))

    def impute(self, X: Any, draw: bool = False, random_state: Any = None) -> Any:
        """Fill the holes of a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            The table.
        draw : bool, default=False
            Draw from the conditional distribution instead of taking its mean (mode for
            categories).
        random_state : int, RandomState or None, default=None
            For draws; None uses the estimator's own.

        Returns
        -------
        X : ndarray or data frame of shape (n, d)
            A completed copy.
        """
        seed = self._seed(random_state) if draw else None
        columns = self._read(X)
        table = self.schema_.encode(columns)
        return impute_table(self.model_, table, columns, seed, self._map_chunks)

    def _sample_rows(self, n_samples: int, random_state: Any) -> tuple[Any, IntArray]:
        check_is_fitted(self)
        check_number("n_samples", n_samples, 1, whole=True)
        generator = np.random.default_rng(self._seed(random_state))
        rows, components = self.model_.sample(n_samples, generator)
        order = generator.permutation(n_samples)
        return self.schema_.decode(rows[order]), components[order]


def _scaled_centres(init: Any, n_components: int, schema: Schema) -> FloatArray:
    """Check and scale user-given centres."""
    centres = np.asarray(init, dtype=np.float64)
    expected = (n_components, schema.n_columns)
    if schema.categorical or centres.shape != expected:
        raise ValueError(
            f"init must have the shape (n_components, n_features) = {expected} and "
            f"all columns must be real; it has the shape {centres.shape}."
        )
    if not np.isfinite(centres).all():
        raise ValueError("init holds NaN or infinity.")
    return (centres[:, list(schema.real)] - schema.centre) / schema.scale


def _published_covariances(gaussian: Any, covariance_type: str) -> FloatArray:
    if covariance_type == "spherical":
        return np.asarray(gaussian.variances[:, 0])
    if covariance_type == "diag":
        return np.asarray(gaussian.variances)
    if covariance_type == "subspace":
        return np.asarray(gaussian.latent.covariances)
    covariances = np.asarray(gaussian.covariances)
    return covariances[0] if covariance_type == "tied" else covariances
