"""Fitted estimators as JSON values and plain arrays, and back, without running code.

None, booleans, whole and finite numbers, strings and lists are themselves. All else is
an object of one key, which says what it stands for: ``{"tuple": [...]}``. Classes are
looked up in the registries below and nowhere else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import sklearn

from hybridmix.data import Schema
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.estimators import (
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Product,
    Subspace,
    SubspaceGaussian,
    VariancePrior,
)
from hybridmix.families.categorical import CategoricalParameters
from hybridmix.families.moments import DiagonalParameters, FullParameters
from hybridmix.families.product import ProductParameters
from hybridmix.families.subspace import SubspaceParameters
from hybridmix.mixture import Mixture
from hybridmix.objectives import ConditionalLikelihood, Margin, ScaledMargin
from hybridmix.solvers import ExtendedBaumWelch, LimitedMemoryBFGS

ESTIMATORS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        HybridMixtureClassifier,
        MixtureDensity,
        MixtureImputer,
        MixtureOutlierDetector,
    )
}
RECORDS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Categorical,
        CategoricalParameters,
        ConditionalLikelihood,
        DiagonalGaussian,
        DiagonalParameters,
        ExtendedBaumWelch,
        Fingerprint,
        FullGaussian,
        FullParameters,
        LimitedMemoryBFGS,
        Margin,
        Mixture,
        Product,
        ProductParameters,
        ScaledMargin,
        Schema,
        Subspace,
        SubspaceGaussian,
        SubspaceParameters,
        VariancePrior,
    )
}
# Booleans, numbers, times, bytes and text: arrays of these are memory and no more.
PLAIN_KINDS = "biufcmMSU"
# A model needs ten levels. The limit holds for saving, too, so that what is written can
# be read, and it stops lists that contain themselves.
_DEEPEST = 64
_ROUTING = "_metadata_request"

Trail = tuple[str, ...]  # of attributes and positions, from the model to a value


class Encoder:
    """Turns values into JSON values; `arrays` collects the arrays that they refer to.

    Parameters
    ----------
    check : callable
        Is called with every estimator and raises if its parts do not fit together.
    """

    def __init__(self, check: Callable[[Any], None]) -> None:
        self.arrays: list[np.ndarray] = []
        self._check = check

    def encode(self, value: Any, trail: Trail = ()) -> Any:
        """Encode a value; the trail says in messages where it is."""
        kind = type(value)
        if len(trail) > _DEEPEST:
            raise TypeError(f"{_joined(trail[:4])}... is nested too deeply to be saved.")
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is bytes:
            return {"bytes": value.hex()}
        if kind is range:
            return {"range": [value.start, value.stop, value.step]}
        if kind is list:
            return self._items(value, trail)
        if kind is tuple:
            return {"tuple": self._items(value, trail)}
        if kind is dict:
            keys = self._items(value, trail)
            values = [self.encode(v, (*trail, f"[{k!r}]")) for k, v in value.items()]
            return {"dict": [list(pair) for pair in zip(keys, values, strict=True)]}
        if isinstance(value, np.generic) and value.dtype.kind in PLAIN_KINDS:
            return {"scalar": self._member(np.asarray(value))}
        if kind is np.ndarray and value.dtype.kind in PLAIN_KINDS:
            axes = _memory_order(value)
            return {
                "array": {"axes": axes, "member": self._member(value.transpose(axes))}
            }
        if kind is np.ndarray and value.dtype.kind == "O":
            items = self._items(value.ravel().tolist(), trail)
            return {"objects": {"shape": list(value.shape), "items": items}}
        if kind in RECORDS.values():
            content = {field.name: getattr(value, field.name) for field in fields(value)}
            named = self._named(content, trail)
            return {"record": {"class": kind.__name__, "fields": named}}
        if kind in ESTIMATORS.values():
            return {"estimator": self._estimator(value, trail)}
        raise TypeError(_refusal(value, trail))

    def _items(self, values: Iterable[Any], trail: Trail) -> list[Any]:
        return [self.encode(v, (*trail, f"[{i}]")) for i, v in enumerate(values)]

    def _named(self, values: dict[str, Any], trail: Trail) -> dict[str, Any]:
        return {k: self.encode(v, (*trail, f".{k}")) for k, v in values.items()}

    def _member(self, array: np.ndarray) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _estimator(self, estimator: Any, trail: Trail) -> dict[str, Any]:
        self._check(estimator)
        params = estimator.get_params(deep=False)
        learned = {k: v for k, v in vars(estimator).items() if k not in params}
        if _ROUTING in learned:
            learned[_ROUTING] = _metadata_requests(estimator)
        for name in learned:
            _check_attribute(type(estimator), name)
        return {
            "class": type(estimator).__name__,
            "params": self._named(params, trail),
            "learned": self._named(learned, trail),
        }


class Decoder:
    """Turns JSON values back into what they stand for.

    Parameters
    ----------
    read_array : callable
        Returns the array of a number.
    check : callable
        Is called with every estimator and raises if its parts do not fit together.
    """

    def __init__(
        self, read_array: Callable[[int], np.ndarray], check: Callable[[Any], None]
    ) -> None:
        self._read_array = read_array
        self._check = check

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Decode a value."""
        if depth > _DEEPEST:
            raise ValueError("The manifest is nested too deeply.")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return self._items(value, depth)
        if len(value) != 1:
            raise ValueError(f"The manifest holds an object of {len(value)} keys.")
        [(tag, content)] = value.items()
        match tag:
            case "float":
                return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
            case "bytes":
                return bytes.fromhex(content)
            case "range":
                return range(*content)
            case "tuple":
                return tuple(self._items(content, depth))
            case "dict":
                pairs = (self._items(pair, depth) for pair in content)
                return dict(pairs)
            case "scalar":
                return self._read_array(content)[()]
            case "array":
                _check_names(content, ("axes", "member"), "An array")
                stored = self._read_array(content["member"])
                return stored.transpose(_inverse(content["axes"], stored.ndim))
            case "objects":
                _check_names(content, ("items", "shape"), "An array of objects")
                return _objects(self._items(content["items"], depth), content["shape"])
            case "record":
                return self._record(content, depth)
            case "estimator":
                return self._estimator(content, depth)
        raise ValueError(f"The manifest holds a value of unknown kind {tag!r}.")

    def _items(self, values: list[Any], depth: int) -> list[Any]:
        return [self.decode(value, depth + 1) for value in values]

    def _named(self, values: dict[str, Any], depth: int) -> dict[str, Any]:
        return {name: self.decode(value, depth + 1) for name, value in values.items()}

    def _record(self, content: dict[str, Any], depth: int) -> Any:
        _check_names(content, ("class", "fields"), "A record")
        cls = _registered(RECORDS, content["class"])
        _check_names(content["fields"], [field.name for field in fields(cls)], cls)
        return cls(**self._named(content["fields"], depth))

    def _estimator(self, content: dict[str, Any], depth: int) -> Any:
        _check_names(content, ("class", "params", "learned"), "An estimator")
        cls: Any = _registered(ESTIMATORS, content["class"])
        _check_names(content["params"], cls._get_param_names(), cls)
        estimator = cls(**self._named(content["params"], depth))
        for name, value in self._named(content["learned"], depth).items():
            _check_attribute(cls, name)
            if name == _ROUTING:
                _request_metadata(estimator, value)
            else:
                setattr(estimator, name, value)
        self._check(estimator)
        return estimator


def _joined(trail: Trail) -> str:
    return "".join(trail).removeprefix(".")


def _refusal(value: Any, trail: Trail) -> str:
    found = f"{_joined(trail)} holds a {type(value).__name__}"
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return f"{found}, which cannot be saved: set_params(random_state=an int)."
    if isinstance(value, np.ndarray):
        found += f" of type {value.dtype}"
    return (
        f"{found}, which cannot be saved. Saved are numbers, strings, lists, tuples, "
        "dictionaries and NumPy arrays of these."
    )


def _memory_order(array: np.ndarray) -> list[int]:
    """Return the axes from the slowest to the fastest.

    Arrays are stored in this order: results of BLAS depend on it in the last digit.
    """
    axes = range(array.ndim)
    if array.flags.c_contiguous:
        return list(axes)
    return sorted(axes, key=lambda axis: -abs(array.strides[axis]))


def _inverse(axes: list[int], n_axes: int) -> list[int]:
    if sorted(axes) != list(range(n_axes)):
        raise ValueError(f"The axes {axes} do not belong to an array of {n_axes}.")
    return [axes.index(axis) for axis in range(n_axes)]


def _objects(items: list[Any], shape: list[int]) -> np.ndarray:
    if math.prod(shape) != len(items):
        raise ValueError(f"{len(items)} objects do not fill an array of shape {shape}.")
    result = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):
        result[position] = item
    return result.reshape(shape)


def _registered(registry: dict[str, type], name: str) -> type:
    if name not in registry:
        raise ValueError(f"The class {name!r} is unknown.")
    return registry[name]


def _check_names(
    found: dict[str, Any], expected: Iterable[str], what: str | type
) -> None:
    if set(found) != set(expected):
        name = what if isinstance(what, str) else what.__name__
        wrong = ", ".join(sorted(set(found) ^ set(expected)))
        raise ValueError(f"{name} has unknown or missing fields: {wrong}.")


def _check_attribute(cls: Any, name: str) -> None:
    """Refuse attributes that would hide methods or parameters of the class."""
    is_special = name.startswith("__") or not name.isidentifier()
    if is_special or name in cls._get_param_names() or hasattr(cls, name):
        raise ValueError(f"{cls.__name__} cannot have a fitted attribute {name!r}.")


def _routed_methods(cls: type) -> list[str]:
    """Return the methods for which scikit-learn's metadata can be requested."""
    return re.findall(r"\bset_(\w+)_request\b", " ".join(dir(cls)))


def _metadata_requests(estimator: Any) -> dict[str, dict[str, Any]]:
    routing = estimator.get_metadata_routing()
    methods = _routed_methods(type(estimator))
    return {method: dict(getattr(routing, method).requests) for method in methods}


def _request_metadata(estimator: Any, requests: dict[str, dict[str, Any]]) -> None:
    if not set(requests) <= set(_routed_methods(type(estimator))):
        raise ValueError(f"{_ROUTING} names unknown methods: {', '.join(requests)}.")
    with sklearn.config_context(enable_metadata_routing=True):
        for method, request in requests.items():
            getattr(estimator, f"set_{method}_request")(**request)
