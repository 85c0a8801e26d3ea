"""What the estimators of a density share: options that are chosen unless given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hybridmix._parallel import workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.data.block_sources import source_of
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.blocks import learn_blocks
from hybridmix.estimators.options import (
    MixtureEstimator,
    TrainingTable,
    model_attributes,
)
from hybridmix.models.mixture import Mixture
from hybridmix.progress import printing
from hybridmix.training.candidates import Choice
from hybridmix.training.classes import Components, component_range
from hybridmix.training.covariances import (
    COVARIANCE_TYPES,
    covariance_type_of,
    prior_strength_of,
)
from hybridmix.training.density import DensityOptions, fit_density
from hybridmix.training.families import Structure
from hybridmix.training.leaderboard import leaderboard
from hybridmix.training.record import Fitted


@dataclass(eq=False, repr=False, kw_only=True)
class DensityEstimator(MixtureEstimator):
    """Base of the estimators of one mixture for all rows.

    The options are documented in `MixtureDensity`.
    """

    n_components: Components | str = field(default="auto", kw_only=False)

    @property
    def _fills(self) -> bool:
        """Whether automatic choices are by how well hidden cells are filled."""
        return False

    def _derived_attributes(self, model: Mixture, schema: Schema) -> dict[str, Any]:
        return {
            **super()._derived_attributes(model, schema),
            "covariance_type_": covariance_type_of(model.family),
            "covariance_prior_": prior_strength_of(model.family),
        }

    # Options --------------------------------------------------------------------------

    @property
    def _choice(self) -> Choice:
        return Choice(self._is_auto("covariance_type"), self._is_auto("n_components"))

    def _is_auto(self, name: str) -> bool:
        value = getattr(self, name)
        return isinstance(value, str) and value == "auto"

    def _structure(self) -> Structure:
        if not self._is_auto("covariance_type"):
            return super()._structure()
        # What is free is replaced by what is chosen.
        return self._structure_of("full")

    def _scaling(self) -> str:
        if self._is_auto("covariance_type"):
            # All candidates have to be compared in one scale, and subspaces are the only
            # candidates that depend on it.
            return COVARIANCE_TYPES["subspace"].scaling
        return super()._scaling()

    def _check_components(self) -> None:
        if self._is_auto("n_components"):
            return
        if not isinstance(self.n_components, Iterator):  # which can be read only once
            component_range(self.n_components, or_auto=True)

    # Training -------------------------------------------------------------------------

    def _fit_table(
        self, read: TrainingTable, options: DensityOptions
    ) -> tuple[Fitted, Dataset, dict[str, Any]]:
        """Fit a mixture to all rows of a table; options have been checked."""
        schema = read.table.schema
        labels = np.zeros(read.table.n_rows, np.intp)
        dataset = Dataset.arrange(read.table, labels, read.weights)
        fitted, attributes = self._fit_rows(schema, dataset, options)
        return fitted, dataset, {**read.attributes, **attributes}

    def _fit_any(self, X: Any, sample_weight: Any) -> tuple[Fitted, dict[str, Any]]:
        """Fit a mixture to all rows, in memory or in blocks; return what to publish."""
        with self._fitting(X, sample_weight) as (fitted, _, attributes):
            return fitted, attributes

    @contextmanager
    def _fitting(
        self, X: Any, sample_weight: Any
    ) -> Iterator[tuple[Fitted, TrainingRows, dict[str, Any]]]:
        """Fit a mixture to all rows, which can be read until the end of the context."""
        self._check_options()
        options = self._density_options()
        source = source_of(X)
        if source is None:
            yield self._fit_table(self._learn_table(X, sample_weight), options)
            return
        learned, read = learn_blocks(self, source, None, sample_weight)
        with closing(learned.dataset) as dataset:
            fitted, attributes = self._fit_rows(learned.schema, dataset, options)
            yield fitted, dataset, {**read, **attributes}

    def _fit_rows(
        self, schema: Schema, dataset: TrainingRows, options: DensityOptions
    ) -> tuple[Fitted, dict[str, Any]]:
        """Fit a mixture to encoded rows."""
        init: Any = self.init
        if isinstance(init, FittedMixture):
            init = self._translated(init, schema, np.empty(0))
            kind = covariance_type_of(init.family) or options.structure.covariance_type
            structure = replace(options.structure, covariance_type=kind)
            options = replace(options, structure=structure, choice=Choice())
        elif not isinstance(init, str):
            init, options = _centred(init, options, schema)
        generator = np.random.default_rng(self._seed())
        with workers(self.n_jobs) as pool, printing(self.verbose):
            fitted = fit_density(options, dataset, schema, init, generator, pool)
        searched = {"n_searched_": fitted.n_searched} if fitted.trials else {}
        return fitted, {
            **model_attributes(fitted),
            **searched,
            **self._derived_attributes(fitted.model, schema),
            "bic_": dict(fitted.bic[0]),
            "trace_": fitted.history["value"],
            "leaderboard_": leaderboard(fitted.trials),
        }

    def _density_options(self) -> DensityOptions:
        numbers = [1]
        if not self._is_auto("n_components"):
            numbers = component_range(self.n_components, or_auto=True)
        return DensityOptions(
            self._structure(),
            self._estimation(),
            numbers,
            self._choice,
            self.effort,
            self._fills,
        )


def _centred(
    init: Any, options: DensityOptions, schema: Schema
) -> tuple[FloatArray, DensityOptions]:
    """Scale centres that a user has given, which may decide how many there are."""
    centres = np.asarray(init, dtype=np.float64)
    number = options.n_components[0]
    if options.choice.n_components and centres.ndim > 0:
        number = len(centres)
    expected = (number, schema.n_columns)
    if schema.categorical or centres.shape != expected:
        raise ValueError(
            f"init must have the shape (n_components, n_features) = {expected} and "
            f"all columns must be real; it has the shape {centres.shape}."
        )
    if not np.isfinite(centres).all():
        raise ValueError("init holds NaN or infinity.")
    scaled = schema.standardised(centres[:, list(schema.real)].T).T
    choice = replace(options.choice, n_components=False)
    return scaled, replace(options, n_components=[number], choice=choice)
