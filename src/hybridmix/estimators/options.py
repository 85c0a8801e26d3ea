"""The options that all estimators share, and training by them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._checks import check_jobs, check_seed, check_verbosity, check_word
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema, Table
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.rows import DTYPES
from hybridmix.data.shape_options import (
    AUTO,
    PLAIN,
    ShapeOption,
    Wish,
    check_shape_option,
)
from hybridmix.data.shapes import ColumnShape
from hybridmix.data.suspects import warn_of_suspects
from hybridmix.data.table import read_training_table
from hybridmix.data.weights import read_weights
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.published import (
    component_attributes,
    require_derived,
    require_record,
)
from hybridmix.models.mixture import Mixture
from hybridmix.training.budget import check_effort
from hybridmix.training.classes import Estimation, component_range
from hybridmix.training.covariances import COVARIANCE_TYPES, covariance_type_of
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

    covariance_type: str = "auto"
    n_factors: int | float | str = "auto"
    noise: str = "common"
    covariance_prior: float | str = "auto"
    variance_floor: float = 1e-6
    smoothing: float = 1.0
    categorical_features: Sequence[int | str | bool] | None = None
    column_shapes: Any = "auto"
    init: Any = "kmeans"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    effort: str | float = "balanced"
    dtype: str = "float64"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        self._check_options()
        require_derived(vars(self), self._derived_attributes(self.model_, self.schema_))
        require_record(vars(self))

    def _derived_attributes(self, model: Mixture, schema: Schema) -> dict[str, Any]:
        """Return the published attributes that the model determines."""
        return {
            **component_attributes(model, schema),
            "n_components_": model.n_components,
        }

    # Checks before work ---------------------------------------------------------------

    def _check_options(self) -> None:
        """Refuse options that make no sense, as far as that shows without rows."""
        self._structure()
        self._estimation()
        self._check_init()
        self._check_components()

    def _check_components(self) -> None:
        """Refuse numbers of components that make no sense."""
        wanted = self.get_params(deep=False)["n_components"]
        if not isinstance(wanted, Iterator):  # which can be read only once
            component_range(wanted)

    def _structure(self) -> Structure:
        return self._structure_of(self.covariance_type)

    def _structure_of(self, covariance_type: str) -> Structure:
        """Return the options of components with covariances of a type."""
        return Structure(
            covariance_type,
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
        check_seed(self.random_state)
        check_jobs(self.n_jobs)
        check_verbosity(self.verbose)
        check_effort("effort", self.effort)
        check_shape_option(self.column_shapes)
        check_word("dtype", self.dtype, DTYPES)
        if isinstance(self.init, str):
            hint = " It may also be an array of centres or a fitted estimator."
            check_word("init", self.init, METHODS, hint)
        elif isinstance(self.init, FittedMixture):
            check_is_fitted(self.init)

    def _learn_table(
        self, X: Any, sample_weight: Any, labels: IntArray | None = None
    ) -> TrainingTable:
        """Read a table, and encode it by what it shows, within classes if it has any."""
        columns, attributes = read_training_table(self, X)
        weights = read_weights(sample_weight, columns.n_rows)
        if labels is not None:
            check_consistent_length(np.empty(columns.n_rows), labels)
        categorical, shapes = self._wanted_columns(columns.n_columns)
        schema = Schema.learn(
            columns,
            categorical,
            shapes,
            weights=weights,
            scaling=self._scaling(),
            groups=labels,
        )
        warn_of_suspects(columns, schema, categorical)
        table = replace(schema.encode(columns, single=True), dtype=DTYPES[self.dtype])
        attributes["fingerprint_"] = Fingerprint.of(table, weights)
        return TrainingTable(table, weights, attributes)

    def _scaling(self) -> str:
        """Return how columns are to be scaled; see `Schema`."""
        return COVARIANCE_TYPES[self.covariance_type].scaling

    def _wanted_columns(self, n_columns: int) -> tuple[Any, ShapeOption]:
        """Return which columns are categorical, and shapes.

        A model that training goes on from has its own. Centres need real columns.
        """
        given = self.categorical_features
        if isinstance(self.init, FittedMixture):
            known = self.init.schema_
            if known.n_columns != n_columns:
                return given, PLAIN  # it is refused as soon as the columns are known
            shapes: dict[int | str, Wish] = {}
            shapes |= {j: known.shapes.get(j, ColumnShape()) for j in known.real}
            return list(known.categorical) or given, shapes
        if self.column_shapes == AUTO and not isinstance(self.init, str):
            return given, PLAIN
        return given, self.column_shapes

    # Training ---------------------------------------------------------------------------

    def _translated(
        self, other: FittedMixture, schema: Schema, classes: np.ndarray
    ) -> Mixture:
        """Express the model of another fitted estimator in the scale of a table."""
        theirs = other.schema_
        columns, their_columns = (
            (s.real, s.categorical, s.categories, s.shapes) for s in (schema, theirs)
        )
        same_classes = np.array_equal(classes, getattr(other, "classes_", []))
        fitted_type = covariance_type_of(other.model_.family)
        same_type = fitted_type is None or self.covariance_type in ("auto", fitted_type)
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
    """Return what all estimators publish, besides what the model determines."""
    return {
        "schema_": fitted.schema,
        "model_": fitted.model,
        "converged_": fitted.converged,
        "interrupted_": fitted.interrupted,
        "n_iter_": fitted.n_iter,
    }
