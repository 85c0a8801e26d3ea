"""Model files: a registry of classes, a codec of values, an archive of both.

Classes register themselves (`hybridmix._registered`) and check themselves; nothing in
this package knows any of them.
"""

from hybridmix.files.archive import ModelFileError
from hybridmix.files.models import (
    load,
    load_record,
    read_metadata,
    read_versions,
    save,
    save_record,
)
from hybridmix.files.registry import skops_types

__all__ = [
    "ModelFileError",
    "load",
    "load_record",
    "read_metadata",
    "read_versions",
    "save",
    "save_record",
    "skops_types",
]
