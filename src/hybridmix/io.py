"""Save fitted models to files, and load them without running code from the file."""

from hybridmix._registered import registered
from hybridmix.files import (
    ModelFileError,
    load,
    read_metadata,
    read_versions,
    save,
    skops_types,
)

__all__ = [
    "ModelFileError",
    "load",
    "read_metadata",
    "read_versions",
    "registered",
    "save",
    "skops_types",
]
