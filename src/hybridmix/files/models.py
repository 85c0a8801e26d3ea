"""Saving fitted models to files, and loading them without running code from the file."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import sklearn

from hybridmix.files.archive import MOST_BYTES, opened, write_archive
from hybridmix.files.codec import Decoder, Encoder
from hybridmix.files.objects import is_registered_estimator
from hybridmix.files.registry import estimator_names


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
    model : HybridMixtureClassifier, HybridMixtureClassifierCV, MixtureDensity, \
            MixtureImputer, MixtureOutlierDetector or a registered estimator
        A fitted estimator.
    path : str or path-like
        The file; one that exists is replaced and keeps its permissions.
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
    OSError
        If the path is a folder, a device or a pipe, or the disk is full.

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
    if not is_registered_estimator(model):
        raise TypeError(
            f"A {type(model).__name__} cannot be saved; what can be saved are fitted "
            f"models of the classes {', '.join(estimator_names())}."
        )
    _write(model, path, _checked_metadata(metadata))


def _write(content: Any, path: str | os.PathLike[str], metadata: dict[str, Any]) -> None:
    """Write a model, or another registered object, to a file."""
    # The package sets its version after it has imported this module.
    from hybridmix import __version__

    encoder = Encoder()
    manifest = {
        "versions": {
            "hybridmix": __version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "metadata": metadata,
        "model": encoder.encode(content),
    }
    write_archive(path, manifest, encoder.arrays)


def load(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> Any:
    """Load a model from a file written by `save`.

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
    with opened(path, max_bytes) as archive:
        decoder = Decoder(archive.array, archive.version)
        model = decoder.decode(archive.manifest["model"])
        if not is_registered_estimator(model):
            raise ValueError(f"It holds a {type(model).__name__} instead of a model.")
        archive.finish()
        return model


def save_record(record: Any, path: str | os.PathLike[str]) -> None:
    """Save an object of a registered dataclass that is not a model, as `save` does."""
    _write(record, path, {})


def load_record(
    path: str | os.PathLike[str],
    classes: tuple[type, ...],
    max_bytes: int = MOST_BYTES,
) -> Any:
    """Load what `save_record` has written, if it is of one of some classes."""
    with opened(path, max_bytes) as archive:
        decoder = Decoder(archive.array, archive.version)
        record = decoder.decode(archive.manifest["model"])
        if not isinstance(record, classes):
            wanted = " or ".join(cls.__name__ for cls in classes)
            raise ValueError(f"It holds a {type(record).__name__} instead of a {wanted}.")
        archive.finish()
        return record


def read_metadata(
    path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES
) -> dict[str, Any]:
    """Read what was saved next to a model, without loading the model.

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
    path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES
) -> dict[str, str]:
    """Read which versions of the libraries wrote a model file.

    Parameters
    ----------
    path, max_bytes
        As in `read_metadata`, which raises the same errors.

    Returns
    -------
    versions : dict of str to str
        Of hybridmix, numpy and scikit-learn.
    """
    return _read_entry(path, "versions", max_bytes)


def _read_entry(
    path: str | os.PathLike[str], name: str, max_bytes: int
) -> dict[str, Any]:
    """Read a dictionary next to the model."""
    with opened(path, max_bytes) as archive:
        entry = archive.manifest.get(name, {})
        if not isinstance(entry, dict):
            raise ValueError(f"Its {name} are not a dictionary.")
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
