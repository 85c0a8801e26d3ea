"""A regressor that learns from a stream of rows and targets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from hybridmix._parallel import Workers
from hybridmix.data import Dataset, Schema
from hybridmix.data.targets import (
    PairedRows,
    TargetPlaces,
    check_observed,
    joined_schema,
    read_targets,
)
from hybridmix.estimators.chosen import is_auto
from hybridmix.estimators.options import warn_of
from hybridmix.models.mixture import Mixture
from hybridmix.models.predictive import Predictive
from hybridmix.training.regression import fit_regressor
from hybridmix.training.streams import Batch

if TYPE_CHECKING:
    from hybridmix.estimators.regressor import MixtureRegressor


def can_stream(regressor: MixtureRegressor) -> bool:
    """Return whether the options are those of online EM, and say why not otherwise.

    `sklearn.utils.metaestimators.available_if` asks this.
    """
    if not is_auto(regressor.tradeoff) and regressor.tradeoff != 0.0:
        raise AttributeError(
            "partial_fit trains by online EM, without a predictive term: use tradeoff=0 "
            f"or 'auto' instead of {regressor.tradeoff!r}."
        )
    if not is_auto(regressor.calibrate) and regressor.calibrate:
        raise AttributeError(
            "calibrate=True needs held-out rows, and partial_fit keeps none: use "
            "calibrate='auto' or False."
        )
    if not is_auto(regressor.n_starts) and regressor.n_starts != 1:
        raise AttributeError(
            f"n_starts={regressor.n_starts!r}: partial_fit has a single start. Use 1 or "
            "'auto'."
        )
    return True


def learned_targets(
    regressor: MixtureRegressor,
    X: Any,
    y: Any,
    sample_weight: Any,
    schema: Schema | None,
) -> dict[str, Any]:
    """Learn from a batch, as in `partial_fit`; return what to publish."""
    regressor._check_batch(X)
    if y is None:
        raise ValueError("partial_fit requires y to be passed, but it is None.")
    columns, n_dimensions = read_targets(y)
    read = regressor._read_batch(X, sample_weight, schema)
    features = read.table.schema
    check_consistent_length(np.empty(read.table.n_rows), np.empty(columns.n_rows))
    if regressor._begins_stream:
        check_observed(columns, read.weights)
        wanted = regressor.target_shapes
        targets = Schema.learn(columns, None, wanted, weights=read.weights)
    else:
        targets, n_dimensions = regressor.target_schema_, regressor.target_ndim_
        columns = regressor._read_targets(y, columns.n_rows)
    rows = PairedRows(read.table, targets.encode(columns), targets)
    joint = joined_schema(features, targets)
    batch = Batch(rows, np.zeros(rows.n_rows, np.intp), read.weights)

    def begin(generator: np.random.Generator, pool: Workers) -> Mixture:
        return _begun(regressor, batch.dataset(), features, targets, generator, pool)

    streamed = regressor._learned(joint, batch, begin)
    kept = range(len(features.real)), range(len(features.code_sizes))
    model = streamed.model.marginal(*map(list, kept))
    found = regressor._stream_attributes(streamed)
    return {
        **read.attributes,
        **regressor._derived_attributes(model, features),
        **found,
        "schema_": features,
        "model_": model,
        "target_schema_": targets,
        "n_outputs_": targets.n_columns,
        "target_ndim_": n_dimensions,
        "history_": {"value": found["trace_"]},
        "spread_": 1.0,
        "predictive_": Predictive((streamed.model,), np.ones(1), 1.0),
        "leaderboard_": [],
    }


def _begun(
    regressor: MixtureRegressor,
    dataset: Dataset,
    features: Schema,
    targets: Schema,
    generator: np.random.Generator,
    pool: Workers,
) -> Mixture:
    """Fit a mixture to the rows and targets of a first batch."""
    options = replace(
        regressor._options(), effort="fast", tradeoff=0.0, n_starts=1, calibrate=False
    )
    joint, places = (
        joined_schema(features, targets),
        TargetPlaces.of(features, targets),
    )
    fitted = fit_regressor(options, dataset, [], joint, places, generator, pool)
    warn_of(fitted.messages)
    return fitted.density


def largest_member(predictive: Predictive) -> Mixture:
    """Return the mixture of rows and targets of the largest share in predictions."""
    return predictive.members[int(np.argmax(predictive.shares))]
