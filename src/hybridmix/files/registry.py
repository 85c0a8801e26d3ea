"""Looking up classes by the names that model files have for them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from hybridmix._registered import (
    class_named,
    is_estimator,
    registered_names,
    registered_paths,
)

# Classes of hybridmix register themselves when these packages are imported. A name that
# is not known yet is looked for here and nowhere else: a file never says what to import.
_PACKAGES = (
    "hybridmix.data",
    "hybridmix.families",
    "hybridmix.models",
    "hybridmix.objectives",
    "hybridmix.solvers",
    "hybridmix.estimators",
)
# What estimators hold besides, and files of our own leave out: what schemas have worked
# out from their shapes, and the scorer of a search.
_DERIVED = (
    "hybridmix.data.shaping.Shaping",
    "sklearn.metrics._scorer._PassthroughScorer",
)


def find_record(name: str) -> type:
    """Return the dataclass of a name."""
    return _find(name, estimators=False)


def find_estimator(name: str) -> type:
    """Return the estimator of a name."""
    return _find(name, estimators=True)


def estimator_names() -> list[str]:
    """Return the names of all estimators that files may hold."""
    for _ in _imports():
        pass
    return registered_names(estimators=True)


def skops_types() -> list[str]:
    """Return the types to trust when skops loads models of hybridmix.

    Returns
    -------
    types : list of str
        Modules and names of all classes that model files may hold: those of hybridmix,
        and those that were registered by `hybridmix.io.registered`. All are estimators
        and dataclasses of numbers and options; none runs code of a file.

    Examples
    --------
    >>> from hybridmix.io import skops_types
    >>> "hybridmix.estimators.density.MixtureDensity" in skops_types()
    True
    """
    for _ in _imports():
        pass
    return sorted([*registered_paths(), *_DERIVED])


def _find(name: str, estimators: bool) -> type:
    for _ in _imports():
        cls = class_named(name)
        if cls is not None and is_estimator(cls) == estimators:
            return cls
    kind = "an estimator" if estimators else "a record"
    raise ValueError(
        f"The class {name!r} is unknown: no class has registered under this name to be "
        f"{kind} in files. If it is not one of hybridmix, import the module that defines "
        "it (and registers it by hybridmix.io.registered) before you load the file."
    )


def _imports() -> Iterator[None]:
    """Import one more package before each step but the first."""
    yield
    for package in _PACKAGES:
        import_module(package)
        yield
