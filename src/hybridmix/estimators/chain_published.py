"""Attributes that fitted hidden Markov models publish."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix.data import Schema
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
        "mixing_": np.exp(model.log_mixing),
        "mean_lengths_": model.mean_lengths,
    }
    log_exit = model.log_exit
    if log_exit is not None:
        attributes["exits_"] = np.exp(log_exit)
    shape = model.log_mixing.shape
    own = {} if model.autoregressive else component_attributes(model, schema)
    for name, value in own.items():
        if isinstance(value, np.ndarray) and len(value) == model.n_components:
            attributes[name] = value.reshape(*shape, *value.shape[1:])
        elif name == "category_probabilities_":
            parts = [part.reshape(*shape, *part.shape[1:]) for part in value]
            attributes[name] = parts
        else:
            attributes[name] = value
    attributes["mixing_"] = np.exp(model.log_mixing)
    if has_classes:
        attributes["class_prior_"] = np.exp(model.log_class_prior)
        return attributes
    return {name: _without_classes(name, value) for name, value in attributes.items()}


# These do not have an axis of classes.
_COMMON = ("loading_", "noise_variances_", "categories_")


def _without_classes(name: str, value: Any) -> Any:
    if name in _COMMON or (name == "covariances_" and np.ndim(value) == 2):
        return value
    if isinstance(value, list):
        return [part[0] for part in value]
    return value[0]
