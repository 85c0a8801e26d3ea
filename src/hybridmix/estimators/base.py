"""What fitted estimators can do, whatever they were fitted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number
from hybridmix._parallel import workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema, Table, read_table
from hybridmix.data.columns import Columns
from hybridmix.data.fingerprint import Fingerprint
<<<<<<< HEAD
=======
from hybridmix.estimators.families import (
    COVARIANCE_TYPES,
    NOISES,
    SCALINGS,
    FamilyOf,
    family_maker,
    fitted_subspace,
    subspace_of,
)
>>>>>>> wt-report
from hybridmix.estimators.imputation import impute_table
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.logsumexp import class_posterior
from hybridmix.models.mixture import Mixture, MixtureEvaluation
from hybridmix.models.typicality import log_tail_probability

Result = TypeVar("Result")


class FittedMixture(BaseEstimator):
    """Base of all estimators: prediction by a fitted mixture. It has no options.

    Attributes
    ----------
    schema_ : Schema
        What training learned about the columns.
    model_ : Mixture
        The model, in scaled coordinates.
    fingerprint_ : Fingerprint
        Which rows were in training.
    """

    n_jobs: int | None
    random_state: Any
    covariance_type: Any
    schema_: Schema
    model_: Mixture
<<<<<<< HEAD
=======
    n_components_: Any
    bic_: Any
>>>>>>> wt-report
    fingerprint_: Fingerprint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    @property
    def _fitted_covariance_type(self) -> str:
        return str(self.covariance_type)

    def _publish(self, attributes: dict[str, Any]) -> None:
        """Replace everything that an earlier fit has learned, in one statement."""
        kept = {k: v for k, v in vars(self).items() if not is_learned(k)}
        self.__dict__ = {**kept, **attributes}

<<<<<<< HEAD
    # Reading ------------------------------------------------------------------------
=======
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
        self.fingerprint_ = Fingerprint.of(table, weights)
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

    # Prediction -------------------------------------------------------------------
>>>>>>> wt-report

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

    # Evaluation by chunks -------------------------------------------------------------

    @property
    def _n_threads(self) -> int | None:
        return self.n_jobs

    def _map_chunks(
        self, table: Table, function: Callable[[ChunkedRows, int], Result]
    ) -> list[Result]:
        """Apply a function to the chunks of a table, on threads."""
        with workers(self._n_threads) as pool:
            rows = ChunkedRows(table, self.model_, pool)
            return list(rows.map(lambda number: function(rows, number)))

    def _map_evaluations(
        self, table: Table, read: Callable[[MixtureEvaluation], np.ndarray]
    ) -> np.ndarray:
        """Evaluate all rows by chunks; join what is read from the evaluations."""
        parts = self._map_chunks(
            table,
            lambda rows, number: read(rows.evaluate(number, self.model_)),  # type: ignore[arg-type]
        )
        return np.concatenate(parts, axis=-1)

    def _log_joint(self, table: Table) -> FloatArray:
        """Return ``log p(x, c)`` in the units of the table, (C, n)."""
        log_joint = self._map_evaluations(table, lambda evaluation: evaluation.log_joint)
        log_joint -= table.log_volume()
        return log_joint

    def _best_component(self, table: Table) -> IntArray:
        return self._map_evaluations(
            table, lambda evaluation: evaluation.component_posterior().argmax(axis=0)
        )

    # Public -----------------------------------------------------------------------------

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
        parts = self._map_chunks(
            table,
            lambda rows, number: log_tail_probability(
                model, rows.prepared(number, model)
            ),
        )
        return np.concatenate(parts)

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
        with workers(self._n_threads) as pool:
            return impute_table(self.model_, self.schema_, columns, seed, pool)

    def _sample_rows(self, n_samples: int, random_state: Any) -> tuple[Any, IntArray]:
        check_is_fitted(self)
        check_number("n_samples", n_samples, 1, whole=True)
        generator = np.random.default_rng(self._seed(random_state))
        rows, components = self.model_.sample(n_samples, generator)
        order = generator.permutation(n_samples)
        return self.schema_.decode(rows[order]), components[order]


def is_learned(name: str) -> bool:
    """Return whether an attribute of this name is set by `fit`."""
    return name.endswith("_") and not name.startswith("_")
