"""Standard streams that were closed, or that break while they are written to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

# What a shell shows for a command that SIGPIPE (signal 13) has ended.
BROKEN_PIPE = 128 + 13


def open_closed_streams() -> None:
    """Open standard streams that the caller has closed, for example by ``>&-``.

    Otherwise the next file that is opened would get their number, and what is printed
    would end up in it. Messages to a closed stderr are lost. Writing to a closed stdout
    is an error, because results would be lost.
    """
    if sys.stdin is None:
        sys.stdin = _null_device(os.O_RDONLY, "r")
    if sys.stdout is None:
        # A device that is open for reading refuses what is written to it.
        sys.stdout = _null_device(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _null_device(os.O_WRONLY, "w")


def _null_device(flags: int, mode: str) -> TextIOWrapper:
    number = os.open(os.devnull, flags)
    return TextIOWrapper(open(number, f"{mode}b"), encoding="utf-8")


def use_utf8() -> None:
    """Write results for other programs the same way on every platform."""
    if isinstance(sys.stdout, TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")


@contextmanager
def results_to_stdout() -> Iterator[None]:
    """Write results within this context, to the last of them; errors name the stream."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise  # about a file
        raise OSError(error.errno, error.strerror, "stdout") from error


def discard_output() -> None:
    """Redirect broken streams: Python would write to them once more as it exits."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
