"""Zip archives of a manifest and arrays, read with suspicion.

A file is an archive of ``manifest.json`` and of arrays ``arrays/0.npy``, ... The manifest
holds a fitted estimator as described in `hybridmix.files.kinds`.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hybridmix._writing import replacing
from hybridmix.files.kinds import PLAIN_KINDS
from hybridmix.files.migrations import FORMAT_VERSION

FORMAT = "hybridmix"
MOST_BYTES = 4 * 2**30
_MANIFEST = "manifest.json"
# Parsed JSON takes many times the memory of its text, arrays take what they say.
_MANIFEST_SHARE = 16


class ModelFileError(ValueError):
    """A file is damaged, tampered with, too large, or not a model at all."""


def write_archive(
    path: str | os.PathLike[str],
    manifest: dict[str, Any],
    arrays: Sequence[np.ndarray],
) -> None:
    """Write a manifest and its arrays to a file, which appears whole or not at all."""
    header = {"format": FORMAT, "format_version": FORMAT_VERSION}
    text = json.dumps(header | manifest, allow_nan=False)
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        with _new_member(archive, _MANIFEST) as member:
            member.write(text.encode())
        for number, array in enumerate(arrays):
            with _new_member(archive, _array_name(number)) as member:
                np.lib.format.write_array(member, array, (1, 0), allow_pickle=False)


def _new_member(archive: zipfile.ZipFile, name: str) -> Any:
    # A ZipInfo made by hand has no time in it: equal models make equal files.
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    return archive.open(info, "w", force_zip64=True)


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


class Archive:
    """An opened file: its manifest, and arrays that can be read once each.

    Parameters
    ----------
    archive : zipfile.ZipFile
        The file.
    max_bytes : int
        A file whose unpacked content is larger is refused.

    Attributes
    ----------
    manifest : dict
        What the file says about itself, and its model.
    version : int
        Its format.
    """

    def __init__(self, archive: zipfile.ZipFile, max_bytes: int) -> None:
        self._archive = archive
        members = _members(archive, max_bytes)
        self.manifest = _read_manifest(archive, members.pop(_MANIFEST))
        self.version: int = self.manifest["format_version"]
        numbers = {_array_name(number): number for number in range(len(members))}
        if unexpected := members.keys() - numbers.keys():
            raise ValueError(f"It has an unexpected member {min(unexpected)!r}.")
        self._unread = {numbers[name]: info for name, info in members.items()}

    def array(self, number: int) -> np.ndarray:
        """Return the array of a number, once."""
        if number not in self._unread:
            raise ValueError(f"The array {number!r} is missing or used twice.")
        return _read_array(self._archive, self._unread.pop(number))

    def finish(self) -> None:
        """Refuse arrays that nothing refers to."""
        if self._unread:
            raise ValueError(f"The array {min(self._unread)} is not used.")


@contextmanager
def opened(path: str | os.PathLike[str], max_bytes: int) -> Iterator[Archive]:
    """Open a file; whatever goes wrong within is a ModelFileError."""
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                yield Archive(archive, max_bytes)
        # Damage shows in many ways, down to the parsers of zip, JSON and arrays.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ModelFileError(
                f"{os.fspath(path)} cannot be loaded as a model of hybridmix: {reason}"
            ) from error


def _members(archive: zipfile.ZipFile, max_bytes: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, after a look at their names and sizes.

    Sizes can be relied on: zipfile never yields more than a member claims.
    """
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(members) < len(infos):
        raise ValueError("It has two members of the same name.")
    if _MANIFEST not in members:
        raise ValueError(f"It has no {_MANIFEST}.")
    # Only for these does zipfile bound the memory of a step of unpacking.
    known = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(info.compress_type not in known for info in infos):
        raise ValueError("It is packed by an unknown method.")
    size = sum(info.file_size for info in infos)
    size = max(size, members[_MANIFEST].file_size * _MANIFEST_SHARE)
    if size > max_bytes:
        raise ValueError(
            f"It may need {size} bytes, more than max_bytes={max_bytes}. Raise max_bytes "
            "if you trust the file."
        )
    return members


def _read_manifest(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any]:
    with archive.open(info) as member:
        manifest = json.loads(
            member.read(info.file_size + 1), parse_constant=_no_constant
        )
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"Its format is not {FORMAT!r}.")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"Its format_version is {version!r}.")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"It was saved by a newer hybridmix, in format {version}, and this one reads "
            f"formats up to {FORMAT_VERSION}: upgrade hybridmix."
        )
    if set(manifest) - {"metadata"} != {"format", "format_version", "versions", "model"}:
        raise ValueError("Its manifest has unknown or missing fields.")
    return manifest


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{info.filename} has an unknown version.")
        try:
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        # What a damaged header raises depends on the version of NumPy.
        except Exception as error:
            raise ValueError(f"{info.filename} has no valid header.") from error
        if dtype.kind not in PLAIN_KINDS:
            raise ValueError(f"{info.filename} holds objects, which are never loaded.")
        # Before any memory is allocated, the shape must agree with the size.
        size = member.tell() + math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != info.file_size:
            raise ValueError(f"{info.filename} does not have the size of its shape.")
    with archive.open(info) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        member.read(1)  # The end is where zipfile compares the checksum.
    return array
