"""Tables that another program writes into this one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from hybridmix.cli.text_format import InputError

# How files of other formats than text begin, and the suffixes that name these.
_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x1f\x8b": ".csv.gz"}
# Folders are removed when the process ends, or when these objects are.
_folders: list[tempfile.TemporaryDirectory[str]] = []


def spooled_stdin() -> Path:
    """Copy stdin into a file, since tables are read more than once; return its path."""
    if sys.stdin.isatty():
        raise InputError("The table - is read from stdin, but nothing is piped into it.")
    _folders.append(tempfile.TemporaryDirectory(prefix="hybridmix-"))
    copy = Path(_folders[-1].name, "stdin")
    with copy.open("wb") as stream:
        shutil.copyfileobj(sys.stdin.buffer, stream)
    with copy.open("rb") as stream:
        beginning = stream.read(8)
    suffixes = [s for start, s in _BEGINNINGS.items() if beginning.startswith(start)]
    return copy.rename(copy.with_suffix(suffixes[0] if suffixes else ".csv"))
