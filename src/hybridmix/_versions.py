"""What a report of a problem should say about the installation."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from hybridmix import __version__, _kernels

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "dask",
    "distributed",
    "matplotlib",
    "onnx",
)


def show_versions() -> None:
    """Print versions, the machine, and which compiled kernels are used and why.

    Please include this in reports of problems.

    Examples
    --------
    >>> import hybridmix
    >>> hybridmix.show_versions()
    hybridmix     ...
    kernels       ...
    """
    lines = {
        "hybridmix": __version__,
        "kernels": _kernels.describe(),
        "Python": sys.version.split()[0],
        "machine": platform.platform(),
        **{name: _version(name) for name in _PACKAGES},
    }
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
