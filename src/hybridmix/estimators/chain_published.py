"""Attributes that fitted hidden Markov models publish."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.estimators.components import factors_in_units
from hybridmix.estimators.published import component_attributes
from hybridmix.models.chains import Chains


def state_attributes(
    model: Chains, schema: Schema, has_classes: bool = True
) -> dict[str, Any]:
    """Return the parameters of states and chains, in the units of the columns.

    Parameters
    ----------
    model : Chains
        In scaled coordinates.
    schema : Schema
        The columns, with their scales.
    has_classes : bool
        Whether the first axis of the attributes is that of the classes; a density has
        none.
    """
    attributes: dict[str, Any] = {
        "start_": np.exp(model.log_start),
        "transitions_": np.exp(model.log_transition),
        "mean_lengths_": model.mean_lengths,
    }
    log_exit = model.log_exit
    if log_exit is not None:
        attributes["exits_"] = np.exp(log_exit)
    shape = model.log_mixing.shape
    common = _COMMON | (_MATRICES if model.family.ties_components else set())
    own = component_attributes(model, schema)
    attributes["mixing_"] = own.pop("mixing_")
    if model.autoregressive:
        own.update(_regressions(model, schema))
    for name, value in own.items():
        attributes[name] = value if name in common else _by_state(value, shape)
    if has_classes:
        attributes["class_prior_"] = np.exp(model.log_class_prior)
        return attributes
    return {
        name: value if name in common else _of_the_only_class(value)
        for name, value in attributes.items()
    }


def _regressions(model: Chains, schema: Schema) -> dict[str, FloatArray]:
    """Return how frames depend on the frame before, and what that leaves."""
    parameters = factors_in_units(model, schema)[0]
    matrices = {
        "regressions_": parameters.regressions,
        "covariances_": parameters.residuals.covariances,
    }
    if model.family.ties_components:
        matrices = {name: shared[0] for name, shared in matrices.items()}
    return {"intercepts_": parameters.intercepts, **matrices}


# These do not have an axis of classes.
_COMMON = {"loading_", "noise_variances_", "categories_"}
# Nor do these, if states share them.
_MATRICES = {"covariances_", "regressions_"}


def _by_state(value: Any, shape: tuple[int, ...]) -> Any:
    """Give components (C K M, ...), of an array or a list of them, axes (C, K, M)."""
    if isinstance(value, list):
        return [_by_state(part, shape) for part in value]
    return value.reshape(*shape, *value.shape[1:])


def _of_the_only_class(value: Any) -> Any:
    return [part[0] for part in value] if isinstance(value, list) else value[0]
