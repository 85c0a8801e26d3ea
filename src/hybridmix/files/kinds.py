"""How values of each kind are written as JSON, and read back.

None, booleans, whole and finite numbers, strings and lists are themselves. All else is an
object of one key, the tag, which says what it stands for: ``{"tuple": [...]}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

# Booleans, numbers, times, bytes and text: arrays of these are memory and no more.
PLAIN_KINDS = "biufcmMSU"
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Writer(Protocol):
    """What writing a value may ask for."""

    @property
    def is_outermost(self) -> bool:
        """Whether the value is the model itself, and not a part of it."""
        ...

    def inner(self, value: Any, step: str) -> Any:
        """Encode a value within this one; the step says in messages where it is."""
        ...

    def items(self, values: Iterable[Any]) -> list[Any]:
        """Encode values that are numbered."""
        ...

    def named(self, values: dict[str, Any]) -> dict[str, Any]:
        """Encode values that have names."""
        ...

    def member(self, array: np.ndarray) -> int:
        """Put an array into a file of its own and return its number."""
        ...


class Reader(Protocol):
    """What reading a value may ask for."""

    @property
    def is_outermost(self) -> bool:
        """Whether the value is the model itself, and not a part of it."""
        ...

    @property
    def version(self) -> int:
        """Format of the file."""
        ...

    def items(self, values: list[Any]) -> list[Any]:
        """Decode values that are numbered."""
        ...

    def named(self, values: dict[str, Any]) -> dict[str, Any]:
        """Decode values that have names."""
        ...

    def array(self, number: int) -> np.ndarray:
        """Return the array of a number."""
        ...


class Kind(NamedTuple):
    """One kind of values.

    Attributes
    ----------
    tag : str
        The key of its objects.
    holds : callable
        Says whether a value is of this kind.
    encode : callable
        Turns a value into the content of the object.
    decode : callable
        Turns the content of the object into the value.
    """

    tag: str
    holds: Callable[[Any], bool]
    encode: Callable[[Any, Writer], Any]
    decode: Callable[[Any, Reader], Any]


def exactly(cls: type) -> Callable[[Any], bool]:
    """Return a test for a class without its subclasses, which may hold anything."""
    return lambda value: type(value) is cls


def check_names(
    found: dict[str, Any],
    expected: Iterable[str],
    what: str,
    optional: Iterable[str] = (),
) -> None:
    """Refuse an object with unknown fields, or without one that is not optional."""
    wrong = set(found) ^ set(expected)
    wrong -= set(optional) - set(found)
    if wrong:
        listed = ", ".join(sorted(wrong))
        raise ValueError(f"{what} has unknown or missing fields: {listed}.")


# Numbers, text and containers -----------------------------------------------------------


def _encode_dict(value: dict[Any, Any], writer: Writer) -> list[list[Any]]:
    keys = writer.items(value)
    values = [writer.inner(v, f"[{k!r}]") for k, v in value.items()]
    return [list(pair) for pair in zip(keys, values, strict=True)]


def _decode_dict(content: Any, reader: Reader) -> dict[Any, Any]:
    return dict(reader.items(pair) for pair in content)


# Arrays ---------------------------------------------------------------------------------


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind in PLAIN_KINDS


def _encode_array(value: np.ndarray, writer: Writer) -> dict[str, Any]:
    axes = _memory_order(value)
    return {"axes": axes, "member": writer.member(value.transpose(axes))}


def _decode_array(content: Any, reader: Reader) -> np.ndarray:
    check_names(content, ("axes", "member"), "An array")
    stored = reader.array(content["member"])
    return stored.transpose(_inverse(content["axes"], stored.ndim))


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


def _is_scalar(value: Any) -> bool:
    return isinstance(value, np.generic) and value.dtype.kind in PLAIN_KINDS


def _holds_objects(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind == "O"


def _encode_objects(value: np.ndarray, writer: Writer) -> dict[str, Any]:
    items = writer.items(value.ravel().tolist())
    return {"shape": list(value.shape), "items": items}


def _decode_objects(content: Any, reader: Reader) -> np.ndarray:
    check_names(content, ("items", "shape"), "An array of objects")
    items, shape = reader.items(content["items"]), content["shape"]
    if math.prod(shape) != len(items):
        raise ValueError(f"{len(items)} objects do not fill an array of shape {shape}.")
    result = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):
        result[position] = item
    return result.reshape(shape)


def _encode_masked(value: np.ma.MaskedArray[Any, Any], writer: Writer) -> dict[str, Any]:
    mask = None if value.mask is np.ma.nomask else np.asarray(value.mask)
    return writer.named({"data": np.asarray(value.data), "mask": mask})


def _decode_masked(content: Any, reader: Reader) -> np.ma.MaskedArray[Any, Any]:
    check_names(content, ("data", "mask"), "A masked array")
    parts = reader.named(content)
    data, mask = parts["data"], parts["mask"]
    if not isinstance(data, np.ndarray):
        raise ValueError("A masked array has no data.")
    if mask is not None and (mask.dtype, mask.shape) != (bool, data.shape):
        raise ValueError("A masked array has a mask of another shape or type.")
    return np.ma.MaskedArray(data, np.ma.nomask if mask is None else mask)


# An array with a mask is stored with what is behind the mask, and without fill value.
VALUES = (
    Kind("float", exactly(float), lambda v, _: repr(v), lambda c, _: _FLOATS[c]),
    Kind(
        "tuple",
        exactly(tuple),
        lambda value, writer: writer.items(value),
        lambda content, reader: tuple(reader.items(content)),
    ),
    Kind("dict", exactly(dict), _encode_dict, _decode_dict),
    Kind("array", _is_plain, _encode_array, _decode_array),
    Kind("objects", _holds_objects, _encode_objects, _decode_objects),
    Kind("masked", exactly(np.ma.MaskedArray), _encode_masked, _decode_masked),
    Kind(
        "scalar",
        _is_scalar,
        lambda value, writer: writer.member(np.asarray(value)),
        lambda content, reader: reader.array(content)[()],
    ),
    Kind(
        "range",
        exactly(range),
        lambda value, _: [value.start, value.stop, value.step],
        lambda content, _: range(*content),
    ),
    Kind("bytes", exactly(bytes), lambda v, _: v.hex(), lambda c, _: bytes.fromhex(c)),
)
