"""Fitted estimators as JSON values and plain arrays, and back, without running code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hybridmix.files.kinds import VALUES
from hybridmix.files.objects import OBJECTS

# A model needs about ten levels. The limit holds for saving as well, so that what is
# written can be read, and it stops lists that contain themselves.
_DEEPEST = 64
Trail = tuple[str, ...]
_KINDS = (*VALUES, *OBJECTS)
_BY_TAG = {kind.tag: kind for kind in _KINDS}


@dataclass(frozen=True)
class Encoder:
    """Turns a value, and what is in it, into JSON values.

    Attributes
    ----------
    trail : tuple of str
        Attributes and positions that lead from the model to the value.
    arrays : list of ndarray
        The arrays that encoded values refer to by number.
    """

    trail: Trail = ()
    arrays: list[np.ndarray] = field(default_factory=list)

    @property
    def is_outermost(self) -> bool:
        """Whether the value is the model itself, and not a part of it."""
        return not self.trail

    def encode(self, value: Any) -> Any:
        """Encode the value at this place."""
        if len(self.trail) > _DEEPEST:
            where = _joined(self.trail[:4])
            raise TypeError(f"{where}... is nested too deeply to be saved.")
        if _stands_for_itself(value):
            return value
        if type(value) is list:
            return self.items(value)
        for kind in _KINDS:
            if kind.holds(value):
                return {kind.tag: kind.encode(value, self)}
        raise TypeError(_refusal(value, self.trail))

    def inner(self, value: Any, step: str) -> Any:
        """Encode a value within this one; the step says in messages where it is."""
        return Encoder((*self.trail, step), self.arrays).encode(value)

    def items(self, values: Iterable[Any]) -> list[Any]:
        """Encode values that are numbered."""
        return [self.inner(value, f"[{i}]") for i, value in enumerate(values)]

    def named(self, values: dict[str, Any]) -> dict[str, Any]:
        """Encode values that have names."""
        return {name: self.inner(value, f".{name}") for name, value in values.items()}

    def member(self, array: np.ndarray) -> int:
        """Put an array into a file of its own and return its number."""
        self.arrays.append(array)
        return len(self.arrays) - 1


@dataclass(frozen=True)
class Decoder:
    """Turns JSON values back into what they stand for.

    Attributes
    ----------
    array : callable
        Returns the array of a number.
    version : int
        Format of the file.
    depth : int
        Number of values around this one.
    """

    array: Callable[[int], np.ndarray]
    version: int
    depth: int = 0

    @property
    def is_outermost(self) -> bool:
        """Whether the value is the model itself, and not a part of it."""
        return self.depth == 0

    def decode(self, value: Any) -> Any:
        """Decode the value at this depth."""
        if self.depth > _DEEPEST:
            raise ValueError("The manifest is nested too deeply.")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return self.items(value)
        if len(value) != 1:
            raise ValueError(f"The manifest holds an object of {len(value)} keys.")
        [(tag, content)] = value.items()
        if tag not in _BY_TAG:
            raise ValueError(f"The manifest holds a value of unknown kind {tag!r}.")
        return _BY_TAG[tag].decode(content, self)

    def items(self, values: list[Any]) -> list[Any]:
        """Decode values that are numbered."""
        deeper = replace(self, depth=self.depth + 1)
        return [deeper.decode(value) for value in values]

    def named(self, values: dict[str, Any]) -> dict[str, Any]:
        """Decode values that have names."""
        deeper = replace(self, depth=self.depth + 1)
        return {name: deeper.decode(value) for name, value in values.items()}


def _stands_for_itself(value: Any) -> bool:
    """Return whether JSON has the value; subclasses of its types are not the same."""
    is_finite = type(value) is float and math.isfinite(value)
    return value is None or is_finite or type(value) in (bool, int, str)


def _joined(trail: Trail) -> str:
    return "".join(trail).removeprefix(".")


def _refusal(value: Any, trail: Trail) -> str:
    found = f"{_joined(trail)} holds a {type(value).__name__}"
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return f"{found}, which cannot be saved: set_params(random_state=an int)."
    if isinstance(value, np.ndarray):
        found += f" of type {value.dtype}"
    return (
        f"{found}, which cannot be saved. What can be saved are numbers, strings, lists, "
        "tuples, dictionaries, NumPy arrays of these, and objects of classes that are "
        "registered (hybridmix.io.registered)."
    )
