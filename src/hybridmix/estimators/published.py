"""Attributes that fitted estimators publish, and whether they could come from a fit."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from hybridmix._require import require, require_instance, require_number, require_rank
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.estimators.components import factors_in_units
from hybridmix.models.chains import Chains
from hybridmix.models.mixture import Mixture
from hybridmix.training.covariances import COVARIANCE_TYPES, covariance_type_of
from hybridmix.training.leaderboard import COLUMNS


def component_attributes(model: Mixture | Chains, schema: Schema) -> dict[str, Any]:
    """Return the parameters of the components, in the units of the table."""
    factors = factors_in_units(model, schema)
    attributes: dict[str, Any] = {"mixing_": np.exp(model.log_mixing)}
    if schema.real:
        gaussian = factors.pop(0)
        scaled = getattr(model.components, "factors", [model.components])[0]
        attributes["means_"] = schema.unscaled(scaled.means.T).T
        covariance_type = covariance_type_of(model.family)
        if covariance_type is not None:
            attributes.update(COVARIANCE_TYPES[covariance_type].published(gaussian))
    if schema.code_sizes:
        probabilities = np.exp(factors.pop(0).log_probabilities)
        ends = np.cumsum(schema.code_sizes)[:-1]
        attributes.update(_code_attributes(np.split(probabilities, ends, axis=1), schema))
    return attributes


def _code_attributes(parts: list[FloatArray], schema: Schema) -> dict[str, Any]:
    """Return the probabilities of categories, and apart from them those of spikes."""
    attributes: dict[str, Any] = {}
    n_categorical = len(schema.categorical)
    if n_categorical:
        attributes["category_probabilities_"] = parts[:n_categorical]
        attributes["categories_"] = [np.array(values) for values in schema.categories]
    if len(parts) > n_categorical:
        attributes["spike_probabilities_"] = parts[n_categorical:]
    return attributes


def agree(found: Any, expected: Any) -> bool:
    """Return whether arrays, or lists of arrays, are the same up to rounding."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(agree, found, expected))
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if not {found.dtype.kind, expected.dtype.kind} <= set("iuf"):
        return bool(np.array_equal(found, expected))
    return bool(np.allclose(found, expected, rtol=1e-6, equal_nan=True))


def require_derived(learned: Mapping[str, Any], derived: Mapping[str, Any]) -> None:
    """Refuse published attributes that are not those of the model.

    Parameters
    ----------
    learned : mapping of str to object
        Attributes of a fitted estimator. Those of an older version may have fewer.
    derived : mapping of str to object
        What the model determines.
    """
    for name, expected in derived.items():
        if name in learned:
            require(agree(learned[name], expected), f"{name} is not that of the model")


# How a model came about -----------------------------------------------------------------


def require_record(learned: Mapping[str, Any]) -> None:
    """Refuse a record of training that no training leaves behind.

    Parameters
    ----------
    learned : mapping of str to object
        Attributes of a fitted estimator. Those of an older version may have fewer.
    """
    for name, check in _RECORD.items():
        if name in learned:
            check(name, learned[name])
    if {"history_", "trace_"} <= learned.keys():
        value = learned["history_"].get("value", np.empty(0))
        require(agree(learned["trace_"], value), "trace_ is not that of history_")


def _require_flag(name: str, value: Any) -> None:
    require_instance(name, value, bool)


def _require_count(name: str, value: Any) -> None:
    require_instance(name, value, int)
    require_number(name, value, 0)


def _require_share(name: str, value: Any) -> None:
    require_number(name, value, 0.0)


def _require_trace(name: str, trace: Any) -> None:
    require_rank(name, trace, 1)
    is_number = trace.dtype.kind == "f" and not np.isnan(trace).any()
    require(is_number, f"{name} has values that are not numbers")


def _require_history(name: str, history: Any) -> None:
    require_instance(name, history, dict)
    for part, trace in history.items():
        _require_trace(f"{name}[{part!r}]", trace)
    lengths = {len(trace) for trace in history.values()}
    require(len(lengths) <= 1, f"the parts of {name} differ in length")


def _require_criteria(name: str, criteria: Any) -> None:
    for one in criteria if isinstance(criteria, list) else [criteria]:
        require_instance(name, one, dict)
        are_numbers = all(
            type(k) is int and k > 0 and isinstance(value, Real) and value == value
            for k, value in one.items()
        )
        require(are_numbers, f"{name} has values that are not numbers")


def _require_leaderboard(name: str, table: Any) -> None:
    require_instance(name, table, list)
    for row in table:
        require_instance(name, row, dict)
        require(set(row) == set(COLUMNS), f"{name} has other columns than a search")
        require_instance(f"the candidates of {name}", row["candidate"], str)
        values = [row[column] for column in COLUMNS[1:]]
        # A standard error is infinite if there is a single row.
        are_numbers = all(type(value) is float and value == value for value in values)
        require(are_numbers, f"{name} has values that are not numbers")


_RECORD = {
    "converged_": _require_flag,
    "interrupted_": _require_flag,
    "n_iter_": _require_count,
    "unlabelled_weight_": _require_share,
    "trace_": _require_trace,
    "history_": _require_history,
    "bic_": _require_criteria,
    "leaderboard_": _require_leaderboard,
}
