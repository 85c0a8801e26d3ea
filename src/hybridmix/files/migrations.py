"""What has changed between the formats of model files.

A new format needs an entry here if classes have renamed or dropped fields since the one
before. Fields that are new and have a default need none: objects of an older file get the
default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

FORMAT_VERSION = 2


@dataclass(frozen=True)
class Change:
    """How the fields of a class, or the parameters of an estimator, have changed.

    Attributes
    ----------
    renamed : dict of str to str
        New names by old ones.
    dropped : collection of str
        Fields that no longer exist.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped: Collection[str] = ()

    def applied(self, values: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
        """Return values by their new names; names that the class still has are kept."""
        return {
            name if name in known else self.renamed.get(name, name): value
            for name, value in values.items()
            if name in known or name not in self.dropped
        }


_SOLVER = Change(dropped=("learn_prior", "verbose"))

# What has changed from a format to the next one, by class.
_CHANGES: dict[int, dict[str, Change]] = {
    1: {
        "Mixture": Change(renamed={"log_prior": "log_class_prior"}),
        "ExtendedBaumWelch": _SOLVER,
        "LimitedMemoryBFGS": _SOLVER,
    },
}


def migrated(
    cls: str, values: dict[str, Any], known: Collection[str], version: int
) -> dict[str, Any]:
    """Bring the fields of an object from the format of its file to the present one.

    Parameters
    ----------
    cls : str
        Name of the class.
    values : dict
        Encoded values of its fields.
    known : collection of str
        The fields that the class has now.
    version : int
        Format of the file.
    """
    for older in range(version, FORMAT_VERSION):
        change = _CHANGES.get(older, {}).get(cls, Change())
        values = change.applied(values, known)
    return values
