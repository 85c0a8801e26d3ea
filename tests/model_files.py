"""Model files taken apart and put together again with valid checksums, and compared."""

import dataclasses
import io
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn

from hybridmix.io import ModelFileError, load


def assert_same(one, other):
    """Compare values and types all the way down, to the last bit."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert_same(list(one), list(other))
        assert_same(list(one.values()), list(other.values()))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif isinstance(one, np.ndarray) and one.dtype != object:
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, np.ndarray):
        assert one.shape == other.shape
        assert_same(one.tolist(), other.tolist())
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    elif isinstance(one, pl.DataFrame):
        assert one.equals(other, null_equal=True)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, sklearn.base.BaseEstimator):
        assert_same(vars(one), vars(other))
    else:
        assert one == other or (one != one and other != other)


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def manifest_of(path):
    return json.loads(members_of(path)["manifest.json"])


def write_manifest(path, manifest):
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    write_members(path, members_of(path) | {"manifest.json": text})


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def refused(path, pattern, **options):
    with pytest.raises(ModelFileError, match=pattern) as info:
        load(path, **options)
    assert str(path) in str(info.value)


def at(node, where):
    """Return what stands at a place in a manifest."""
    for key in where:
        node = node[key]
    return node


def set_value(path, where, value):
    """Replace the value that stands at a place in the model."""
    manifest = manifest_of(path)
    at(manifest["model"], where[:-1])[where[-1]] = value
    write_manifest(path, manifest)


def _member(path, where):
    return f"arrays/{at(manifest_of(path)['model'], where)['array']['member']}.npy"


def array_of(path, where):
    """Return the array that stands at a place in the model."""
    content = members_of(path)[_member(path, where)]
    return np.lib.format.read_array(io.BytesIO(content))


def set_array(path, where, array):
    """Replace the array that stands at a place in the model."""
    write_members(path, members_of(path) | {_member(path, where): npy(array)})


MODEL = ("estimator", "learned", "model_", "record", "fields")
SCHEMA = ("estimator", "learned", "schema_", "record", "fields")
FACTORS = (*MODEL, "components", "record", "fields", "factors", "tuple")
FAMILIES = (*MODEL, "family", "record", "fields", "families", "tuple")
