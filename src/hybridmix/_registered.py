"""Classes that model files may hold: each of them registers itself here.

This module imports nothing else of the package, so that every layer can use it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import TypeVar, overload

C = TypeVar("C", bound=type)

_CLASSES: dict[str, type] = {}
_NAMES: dict[type, str] = {}


@overload
def registered(cls: C) -> C: ...
@overload
def registered(*, name: str) -> Callable[[C], C]: ...
def registered(cls: C | None = None, *, name: str | None = None) -> C | Callable[[C], C]:
    """Let model files hold objects of a class.

    Use it as a decorator, above ``@dataclass``. Subclasses are not registered with their
    base. Loading a file builds objects of the class from whatever values the file has: a
    class that is picky about them should have a method ``check_consistent()`` that raises
    a `ValueError`. It is called before an object is saved and after it is loaded.

    Parameters
    ----------
    cls : type
        A dataclass, whose fields are saved, or an estimator of scikit-learn, whose
        parameters and attributes are saved.
    name : str, default=None
        What files call the class. The default is the name of the class, and for classes
        outside hybridmix the name of its module before it. A class that may move to
        another module should have a name of its own.

    Returns
    -------
    cls : type
        The same class.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from hybridmix.io import registered
    >>> from hybridmix.objectives import Margin
    >>> @registered(name="example.GentleMargin")
    ... @dataclass(frozen=True)
    ... class GentleMargin(Margin):
    ...     margin: float = 0.1
    """

    def register(cls: C) -> C:
        if not (is_dataclass(cls) or is_estimator(cls)):
            raise TypeError(
                f"{cls.__name__} cannot be registered: it is neither a dataclass nor an "
                "estimator. Put @registered above @dataclass."
            )
        key = _default_name(cls) if name is None else name
        known = _CLASSES.get(key, cls)
        if _origin(known) != _origin(cls):
            raise ValueError(
                f"The name {key!r} is taken by {'.'.join(_origin(known))}; register "
                f"{cls.__name__} under another one, with @registered(name=...)."
            )
        # A class that is defined again, as in a notebook, takes the place of the old one.
        _NAMES.pop(known, None)
        _CLASSES[key] = cls
        _NAMES[cls] = key
        return cls

    return register if cls is None else register(cls)


def class_named(name: str) -> type | None:
    """Return the class of a name; None if nothing has registered under it."""
    return _CLASSES.get(name)


def name_of(cls: type) -> str | None:
    """Return the name of a class; None if it is not registered."""
    return _NAMES.get(cls)


def registered_names(estimators: bool) -> list[str]:
    """Return the sorted names of all estimators, or of all other classes."""
    return sorted(n for n, cls in _CLASSES.items() if is_estimator(cls) == estimators)


def registered_paths() -> list[str]:
    """Return where all registered classes are: their modules and names, sorted."""
    return sorted(".".join(_origin(cls)) for cls in _CLASSES.values())


def is_estimator(cls: type) -> bool:
    """Return whether a class is an estimator, which may have dataclasses as bases."""
    return hasattr(cls, "get_params")


def _default_name(cls: type) -> str:
    module, qualified_name = _origin(cls)
    is_own = module.split(".")[0] == __name__.split(".")[0]
    return cls.__name__ if is_own else f"{module}.{qualified_name}"


def _origin(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
