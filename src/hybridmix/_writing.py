"""Writing files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all.

    A file that exists is replaced at the end, if all went well, and its permissions are
    kept. A new file has the usual ones. Links are followed.

    Parameters
    ----------
    path : str or path-like
        The file; anything but a regular file is refused, since it would be replaced by
        one.

    Yields
    ------
    stream : binary file
        A temporary file in the same folder.

    Raises
    ------
    OSError
        If the path is a folder, a device, a pipe or a socket.
    """
    mode = _mode_of(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", opener=partial(_created, mode)) as stream:
            if mode is not None:
                os.chmod(temporary, mode)  # whatever the umask says
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and error.filename == os.fspath(temporary):
            # Nobody but this function has heard of the temporary file.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def _remove(temporary: Path) -> None:
    """Remove a temporary file, if it is there; errors before this one matter more."""
    with suppress(OSError):
        temporary.unlink()


def _created(mode: int | None, name: str, flags: int) -> int:
    """Open a new file; nobody else may read one that takes the place of a private one."""
    return os.open(name, flags, 0o666 if mode is None else 0o600)


def _mode_of(path: str | os.PathLike[str]) -> int | None:
    """Return the permissions of a regular file; None if there is nothing yet."""
    try:
        # Unlike a resolved name, this also sees the pipe behind /dev/stdout.
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(
            errno.EISDIR, "This is a folder; name a file in it", os.fspath(path)
        )
    if os.path.abspath(path).startswith(("/dev/", "/proc/")):
        # Behind these may be a file that something else is writing to.
        raise OSError(
            errno.EINVAL, "This is a stream of the process; name a file", os.fspath(path)
        )
    if not stat.S_ISREG(mode):
        raise OSError(
            errno.EINVAL,
            f"This is a {_kind_of(mode)}, which a file would replace; name a file",
            os.fspath(path),
        )
    return stat.S_IMODE(mode)


def _kind_of(mode: int) -> str:
    kinds = {
        stat.S_ISFIFO: "pipe",
        stat.S_ISSOCK: "socket",
        stat.S_ISCHR: "device",
        stat.S_ISBLK: "device",
    }
    found = (kind for is_kind, kind in kinds.items() if is_kind(mode))
    return next(found, "special file")
