"""The options that all estimators share, and training by them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number, check_word
from hybridmix._parallel import workers
from hybridmix._require import require
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, Table
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.table import read_training_table
from hybridmix.data.weights import read_weights
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.components import factors_in_units
from hybridmix.models.mixture import Mixture
from hybridmix.progress import printing
from hybridmix.training.classes import Estimation, component_range
from hybridmix.training.covariances import COVARIANCE_TYPES, covariance_type_of
from hybridmix.training.density import DensityOptions, fit_density
from hybridmix.training.families import Structure
from hybridmix.training.record import Fitted
from hybridmix.training.starts import METHODS


class TrainingTable(NamedTuple):
    """A table that was read to be trained on.

    Attributes
    ----------
    table : Table
        The encoded table.
    weights : ndarray of shape (n,) or None
        Sample weights.
    attributes : dict
        What to publish about it.
    """

    table: Table
    weights: FloatArray | None
    attributes: dict[str, Any]


# The constructors of all estimators are those of dataclasses: an option that several
# estimators have is declared once, in a base class.
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureEstimator(FittedMixture):
    """Base of the estimators that are fitted by EM: the options that these share.

    They are documented in `MixtureDensity`.
    """

    covariance_type: str = "full"
    n_factors: int | float | str = "auto"
    noise: str = "common"
    covariance_prior: float | str = 1.0
    variance_floor: float = 1e-6
    smoothing: float = 1.0
    categorical_features: Sequence[int | str | bool] | None = None
    init: Any = "kmeans"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def check_consistent(self) -> None:
        """Raise ValueError unless what is published is what the model says."""
        super().check_consistent()
        for name, expected in component_attributes(self.model_, self.schema_).items():
            if name != "categories_" and name in vars(self):
                require(
                    _agree(vars(self)[name], expected), f"{name} is not that of the model"
                )

    # Checks before work ---------------------------------------------------------------

    def _structure(self) -> Structure:
        return Structure(
            self.covariance_type,
            self.n_factors,
            self.noise,
            self.covariance_prior,
            self.variance_floor,
            self.smoothing,
        )

    def _estimation(self) -> Estimation:
        return Estimation(self.n_init, self.max_iter, self.tol)

    def _check_init(self) -> None:
        """Refuse starts, seeds and numbers of threads that make no sense."""
        check_random_state(self.random_state)
        if self.n_jobs is not None:
            check_number("n_jobs", self.n_jobs, -np.inf, whole=True)
            if self.n_jobs == 0:
                raise ValueError("n_jobs=0 is not valid: use None, -1 or at least 1.")
        if isinstance(self.init, str):
            hint = " It may also be an array of centres or a fitted estimator."
            check_word("init", self.init, METHODS, hint)
        elif isinstance(self.init, FittedMixture):
            check_is_fitted(self.init)

    def _learn_table(self, X: Any, sample_weight: Any) -> TrainingTable:
        """Read a table, and encode it by what it shows."""
        columns, attributes = read_training_table(self, X)
        weights = read_weights(sample_weight, columns.n_rows)
        scaling = COVARIANCE_TYPES[self.covariance_type].scaling
        schema = Schema.learn(columns, self.categorical_features, weights, scaling)
        table = schema.encode(columns)
        attributes["fingerprint_"] = Fingerprint.of(table, weights)
        return TrainingTable(table, weights, attributes)

    # Training ---------------------------------------------------------------------------

    def _fit_density(
        self, X: Any, sample_weight: Any, candidates: Any
    ) -> tuple[Fitted, Dataset, dict[str, Any]]:
        """Fit a mixture to all rows; return also the rows and what to publish."""
        options = DensityOptions(
            self._structure(), self._estimation(), component_range(candidates)
        )
        self._check_init()
        read = self._learn_table(X, sample_weight)
        schema = read.table.schema
        labels = np.zeros(read.table.n_rows, np.intp)
        dataset = Dataset.arrange(read.table, labels, read.weights)
        init: Any = self.init
        if isinstance(init, FittedMixture):
            init = self._translated(init, schema, np.empty(0))
        elif not isinstance(init, str):
            options = replace(options, n_components=options.n_components[:1])
            init = _scaled_centres(init, options.n_components[0], schema)
        generator = np.random.default_rng(self._seed())
        with workers(self.n_jobs) as pool, printing(self.verbose):
            fitted = fit_density(options, dataset, schema, init, generator, pool)
        attributes = {
            **read.attributes,
            **model_attributes(fitted),
            "n_components_": fitted.model.n_components,
            "bic_": dict(fitted.bic[0]),
            "trace_": fitted.history["value"],
        }
        return fitted, dataset, attributes

    def _translated(
        self, other: FittedMixture, schema: Schema, classes: np.ndarray
    ) -> Mixture:
        """Express the model of another fitted estimator in the scale of a table."""
        theirs = other.schema_
        columns, their_columns = (
            (s.real, s.categorical, s.categories) for s in (schema, theirs)
        )
        same_classes = np.array_equal(classes, getattr(other, "classes_", []))
        fitted_type = covariance_type_of(other.model_.family)
        same_type = fitted_type in (None, self.covariance_type)
        if columns != their_columns or not same_classes or not same_type:
            raise ValueError(
                "The estimator given as init was fitted to other columns, categories, "
                "classes or another covariance_type."
            )
        scale = theirs.scale / schema.scale
        shift = (theirs.centre - schema.centre) / schema.scale
        model = other.model_
        return replace(model, components=model.components.affine(scale, shift))


def end_if_interrupted(model: FittedMixture) -> None:
    """Raise KeyboardInterrupt if the user has interrupted a fit.

    By itself, such a fit warns and keeps its best model so far: the next ones would go on
    as if nothing had happened.
    """
    if model.interrupted_:
        raise KeyboardInterrupt


def warn_of(messages: Iterable[str]) -> None:
    """Warn a user of what happened in training."""
    for message in messages:
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


def model_attributes(fitted: Fitted) -> dict[str, Any]:
    """Return what all estimators publish, in the units of the table."""
    model, schema = fitted.model, fitted.schema
    return {
        "schema_": schema,
        "model_": model,
        "converged_": fitted.converged,
        "interrupted_": fitted.interrupted,
        "n_iter_": fitted.n_iter,
        **component_attributes(model, schema),
    }


def component_attributes(model: Mixture, schema: Schema) -> dict[str, Any]:
    """Return the parameters of the components, in the units of the table."""
    factors = factors_in_units(model, schema)
    attributes: dict[str, Any] = {"mixing_": np.exp(model.log_mixing)}
    if schema.real:
        gaussian = factors.pop(0)
        scaled = getattr(model.components, "factors", [model.components])[0]
        attributes["means_"] = schema.restored(scaled.means.T).T
        covariance_type = covariance_type_of(model.family)
        if covariance_type is not None:
            attributes.update(COVARIANCE_TYPES[covariance_type].published(gaussian))
    if schema.categorical:
        probabilities = np.exp(factors.pop(0).log_probabilities)
        ends = np.cumsum(schema.n_categories)[:-1]
        attributes["category_probabilities_"] = np.split(probabilities, ends, axis=1)
        attributes["categories_"] = [np.array(values) for values in schema.categories]
    return attributes


def _agree(found: Any, expected: Any) -> bool:
    """Return whether arrays, or lists of arrays, are the same up to rounding."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(_agree, found, expected))
    same_shape = np.shape(found) == np.shape(expected)
    return same_shape and bool(np.allclose(found, expected, rtol=1e-6, equal_nan=True))


def _scaled_centres(init: Any, n_components: int, schema: Schema) -> FloatArray:
    """Check and scale centres that a user has given."""
    centres = np.asarray(init, dtype=np.float64)
    expected = (n_components, schema.n_columns)
    if schema.categorical or centres.shape != expected:
        raise ValueError(
            f"init must have the shape (n_components, n_features) = {expected} and "
            f"all columns must be real; it has the shape {centres.shape}."
        )
    if not np.isfinite(centres).all():
        raise ValueError("init holds NaN or infinity.")
    return schema.standardised(centres[:, list(schema.real)].T).T
