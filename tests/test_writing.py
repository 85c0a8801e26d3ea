"""Files appear whole or not at all, and nothing but a regular file is replaced."""

import os
import socket
import stat

import numpy as np
import pytest

from hybridmix import MixtureDensity, save
from hybridmix._writing import replacing
from hybridmix.reporting.document import Report

pytestmark = pytest.mark.skipif(os.name == "nt", reason="special files of Unix")


def write(path):
    with replacing(path) as stream:
        stream.write(b"new")


def save_model(path):
    save(
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            np.eye(3)
        ),
        path,
    )


def save_report(path):
    Report("title", "<html></html>").save(path)


WRITERS = [write, save_model, save_report]


def kind_of(path):
    return stat.S_IFMT(os.lstat(path).st_mode)


@pytest.mark.parametrize("writer", WRITERS)
def test_pipes_are_refused(writer, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match=r"This is a pipe, .*name a file") as info:
        writer(path)
    assert info.value.filename == os.fspath(path)
    assert kind_of(path) == stat.S_IFIFO
    assert list(tmp_path.iterdir()) == [path]


def test_links_to_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with pytest.raises(OSError, match="This is a pipe"):
        write(tmp_path / "link")
    assert kind_of(tmp_path / "pipe") == stat.S_IFIFO


@pytest.mark.parametrize("writer", WRITERS)
def test_devices_are_refused(writer, tmp_path):
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make devices")
    with pytest.raises(OSError, match="This is a device"):
        writer(path)
    assert kind_of(path) == stat.S_IFCHR


def test_sockets_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OSError, match="This is a socket"):
            write("socket")
    assert kind_of("socket") == stat.S_IFSOCK


@pytest.mark.parametrize("writer", WRITERS)
def test_folders_are_refused(writer, tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="This is a folder; name a file in it"):
        writer(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_mode_is_kept(mode, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replacing(path) as stream:
        temporary = next(p for p in tmp_path.iterdir() if p != path)
        assert stat.S_IMODE(temporary.stat().st_mode) == mode  # from the beginning
        stream.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_new_files_follow_the_umask(mask, tmp_path):
    before = os.umask(mask)
    try:
        write(tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


def test_links_are_followed(tmp_path):
    link, path = tmp_path / "link", tmp_path / "file"
    link.symlink_to(path)
    write(link)  # to a file that does not exist yet
    path.chmod(0o600)
    write(link)
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted():
        with replacing(path) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def missing_folder(folder):
    return folder / "none" / "file"


def dangling_link(folder):
    (folder / "link").symlink_to(folder / "none" / "file")
    return folder / "link"


@pytest.mark.parametrize("place", [missing_folder, dangling_link])
@pytest.mark.parametrize("writer", WRITERS)
def test_errors_name_the_path_that_was_given(writer, place, tmp_path):
    """They once named the temporary file, which nobody has heard of."""
    path = place(tmp_path)
    with pytest.raises(FileNotFoundError) as info:
        writer(path)
    assert info.value.filename == os.fspath(path)
    assert ".tmp" not in str(info.value)
