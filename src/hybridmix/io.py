"""Saving fitted models to files, and loading them without running code from the file.

A file is a zip archive of ``manifest.json`` and of arrays ``arrays/0.npy``, ... The
manifest holds the estimator as described in `hybridmix._encoding`.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import sklearn

from hybridmix._consistency import check_estimator
from hybridmix._encoding import ESTIMATORS, PLAIN_KINDS, Decoder, Encoder

FORMAT = "hybridmix"
FORMAT_VERSION = 1
_MANIFEST = "manifest.json"
# Parsed JSON takes many times the memory of its text, arrays take what they say.
_MANIFEST_SHARE = 16
_MOST_BYTES = 4 * 2**30


class ModelFileError(ValueError):
    """A file that is damaged, tampered with, too large, or no model at all."""


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Save a fitted model to a file.

    The file appears whole or not at all: an error leaves an older file as it was.

    Parameters
    ----------
    model : HybridMixtureClassifier, MixtureDensity, MixtureImputer or \
            MixtureOutlierDetector
        A fitted estimator.
    path : str or path-like
        The file; one that exists is replaced.
    metadata : dict of str to anything that JSON can hold, default=None
        What else to keep, such as where the table came from; see `read_metadata`.

    Raises
    ------
    TypeError
        If the model or something in it is of a kind that cannot be saved; the message
        says where it is. Also if the metadata cannot be written as JSON.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    ValueError
        If the parts of the model do not fit together, after a fit that failed half-way.

    See Also
    --------
    load : Load a model from a file.
    read_metadata : Read what else was kept.

    Examples
    --------
    >>> import os, tempfile
    >>> import hybridmix
    >>> density = hybridmix.MixtureDensity().fit([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "density.hybridmix")
    ...     hybridmix.save(density, path)
    ...     hybridmix.load(path)
    MixtureDensity()
    """
    # The package sets its version after it has imported this module.
    from hybridmix import __version__

    if type(model) not in ESTIMATORS.values():
        raise TypeError(
            f"A {type(model).__name__} cannot be saved; what can be saved are fitted "
            f"models of the classes {', '.join(ESTIMATORS)}, such as the "
            "best_estimator_ of a search."
        )
    encoder = Encoder(check_estimator)
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {
            "hybridmix": __version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "metadata": _checked_metadata(metadata),
        "model": encoder.encode(model),
    }
    text = json.dumps(manifest, allow_nan=False)
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        with _new_member(archive, _MANIFEST) as member:
            member.write(text.encode())
        for number, array in enumerate(encoder.arrays):
            with _new_member(archive, _array_name(number)) as member:
                np.lib.format.write_array(member, array, (1, 0), allow_pickle=False)


def load(path: str | os.PathLike[str], *, max_bytes: int = _MOST_BYTES) -> Any:
    """Load a model that `save` has written.

    No code from the file is run, whatever it holds. The model predicts exactly like the
    one that was saved.

    Parameters
    ----------
    path : str or path-like
        The file.
    max_bytes : int, default=4 GiB
        A file whose unpacked content is larger is refused.

    Returns
    -------
    model : estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged, too large, or not a model that this version can read. It
        is a `ValueError`.
    """
    with _opened(path) as archive:
        return _read_model(archive, max_bytes)


def read_metadata(
    path: str | os.PathLike[str], *, max_bytes: int = _MOST_BYTES
) -> dict[str, Any]:
    """Read what was saved beside a model, without loading the model.

    Parameters
    ----------
    path : str or path-like
        A file that `save` has written.
    max_bytes : int, default=4 GiB
        A file whose unpacked content is larger is refused.

    Returns
    -------
    metadata : dict
        As it was given to `save`; empty if nothing was.

    Raises
    ------
    ModelFileError
        If the file is damaged or not a model that this version can read.
    """
    return _read_entry(path, "metadata", max_bytes)


def read_versions(
    path: str | os.PathLike[str], *, max_bytes: int = _MOST_BYTES
) -> dict[str, str]:
    """Read which versions of the libraries wrote a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `save` has written.
    max_bytes : int, default=4 GiB
        A file whose unpacked content is larger is refused.

    Returns
    -------
    versions : dict of str to str
        Of hybridmix, numpy and scikit-learn.

    Raises
    ------
    ModelFileError
        If the file is damaged or not a model that this version can read.
    """
    return _read_entry(path, "versions", max_bytes)


def _read_entry(
    path: str | os.PathLike[str], name: str, max_bytes: int
) -> dict[str, Any]:
    """Read a dictionary beside the model."""
    with _opened(path) as archive:
        members = _members(archive, max_bytes)
        entry = _read_manifest(archive, members[_MANIFEST]).get(name, {})
        if not isinstance(entry, dict):
            raise ValueError(f"Its {name} are no dictionary.")
        return entry


def _checked_metadata(metadata: dict[str, Any] | None) -> dict[str, Any]:
    if metadata is None:
        return {}
    try:
        kept = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"metadata cannot be written as JSON: {error}") from error
    if kept != metadata or not isinstance(kept, dict):
        raise TypeError(
            "metadata must be a dictionary of strings to lists, dictionaries, strings, "
            "numbers, booleans and None; anything else would change in the file."
        )
    return metadata


# Writing ------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file; one that exists is replaced at the end, if all went well.

    Yields
    ------
    stream : binary file
        A temporary file beside it.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _new_member(archive: zipfile.ZipFile, name: str) -> Any:
    # A ZipInfo made by hand has no time in it: equal models make equal files.
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    return archive.open(info, "w", force_zip64=True)


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


# Reading ------------------------------------------------------------------------------


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        # Damage shows in many ways, down to the parsers of zip, JSON and arrays.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ModelFileError(
                f"{os.fspath(path)} cannot be loaded as a model of hybridmix: {reason}"
            ) from error


def _read_model(archive: zipfile.ZipFile, max_bytes: int) -> Any:
    members = _members(archive, max_bytes)
    manifest = _read_manifest(archive, members.pop(_MANIFEST))
    numbers = {_array_name(number): number for number in range(len(members))}
    if unexpected := members.keys() - numbers.keys():
        raise ValueError(f"It has an unexpected member {min(unexpected)!r}.")
    unread = {numbers[name]: info for name, info in members.items()}

    def read_array(number: int) -> np.ndarray:
        if number not in unread:
            raise ValueError(f"The array {number!r} is missing or used twice.")
        return _read_array(archive, unread.pop(number))

    model = Decoder(read_array, check_estimator).decode(manifest["model"])
    if type(model) not in ESTIMATORS.values():
        raise ValueError(f"It holds a {type(model).__name__} instead of a model.")
    if unread:
        raise ValueError(f"The array {min(unread)} is not used.")
    return model


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
