"""How registered dataclasses and estimators are written, and read back.

An object checks itself, by its method ``check_consistent``, before it is written and
after it is read. The codec knows nothing else about any class, except that estimators may
have

- ``unsaved_attributes``, names of fitted attributes that files leave out, and
- ``restore_unsaved()``, called at the end of loading, which brings them back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import sklearn

from hybridmix._checks import is_learned
from hybridmix._registered import is_estimator, name_of
from hybridmix.files.kinds import Kind, Reader, Writer, check_names
from hybridmix.files.migrations import FORMAT_VERSION, migrated
from hybridmix.files.registry import find_estimator, find_record

_ROUTING = "_metadata_request"


def is_registered_estimator(value: Any) -> bool:
    """Return whether a value is an estimator that files may hold."""
    return is_estimator(type(value)) and name_of(type(value)) is not None


def _check(value: Any) -> None:
    check = getattr(value, "check_consistent", None)
    if check is not None:
        check()


# Records --------------------------------------------------------------------------------


def _is_record(value: Any) -> bool:
    return name_of(type(value)) is not None and not is_estimator(type(value))


def _encode_record(value: Any, writer: Writer) -> dict[str, Any]:
    _check(value)
    content = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    return {"class": name_of(type(value)), "fields": writer.named(content)}


def _decode_record(content: Any, reader: Reader) -> Any:
    check_names(content, ("class", "fields"), "A record")
    cls: Any = find_record(content["class"])
    own = [f for f in fields(cls) if f.init]
    filled = (f.name for f in own if (f.default, f.default_factory) != (MISSING, MISSING))
    values = _migrated_values(
        reader, cls, content["class"], content["fields"], [f.name for f in own], filled
    )
    record = cls(**reader.named(values))
    _check(record)
    return record


def _migrated_values(
    reader: Reader,
    cls: type,
    name: str,
    values: dict[str, Any],
    known: list[str],
    filled: Iterable[str],
) -> dict[str, Any]:
    """Return encoded fields by their present names.

    In a file of an older format, those may be missing that have a default by now.
    """
    values = migrated(name, values, known, reader.version)
    is_old = reader.version < FORMAT_VERSION
    check_names(values, known, cls.__name__, filled if is_old else ())
    return values


# Estimators -----------------------------------------------------------------------------


def _encode_estimator(value: Any, writer: Writer) -> dict[str, Any]:
    params = value.get_params(deep=False)
    unsaved = getattr(value, "unsaved_attributes", ())
    learned = {
        name: attribute
        for name, attribute in vars(value).items()
        if name not in params and name not in unsaved
    }
    # An estimator that is a parameter of another, such as a template, may be unfitted.
    if writer.is_outermost or _is_fitted(learned):
        _check(value)
    if _ROUTING in learned:
        learned[_ROUTING] = _metadata_requests(value)
    for name in learned:
        _check_attribute(type(value), name)
    return {
        "class": name_of(type(value)),
        "params": writer.named(params),
        "learned": writer.named(learned),
    }


def _decode_estimator(content: Any, reader: Reader) -> Any:
    check_names(content, ("class", "params", "learned"), "An estimator")
    cls: Any = find_estimator(content["class"])
    known = cls._get_param_names()
    params = _migrated_values(
        reader, cls, content["class"], content["params"], known, known
    )
    estimator = cls(**reader.named(params))
    learned = reader.named(content["learned"])
    for name, value in learned.items():
        _check_attribute(cls, name)
        if name == _ROUTING:
            _request_metadata(estimator, value)
        else:
            setattr(estimator, name, value)
    if reader.is_outermost or _is_fitted(learned):
        _check(estimator)
        restore = getattr(estimator, "restore_unsaved", None)
        if restore is not None:
            restore()
    return estimator


def _is_fitted(learned: Iterable[str]) -> bool:
    """Return whether any attribute has a name that scikit-learn has for fitted ones."""
    return any(map(is_learned, learned))


def _check_attribute(cls: Any, name: str) -> None:
    """Refuse attributes that would hide methods or parameters of the class."""
    is_special = name.startswith("__") or not name.isidentifier()
    # A subclass with a constructor of its own may set options of its base as attributes.
    is_option = is_dataclass(cls) and name in {field.name for field in fields(cls)}
    hides = hasattr(cls, name) and not is_option
    if is_special or name in cls._get_param_names() or hides:
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


OBJECTS = (
    Kind("record", _is_record, _encode_record, _decode_record),
    Kind("estimator", is_registered_estimator, _encode_estimator, _decode_estimator),
)
