"""What surrounds a command: interrupts, standard streams, packages that are needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from hybridmix.cli.interrupts import INTERRUPTED, noticing_interrupts, was_interrupted
from hybridmix.cli.streams import BROKEN_PIPE, discard_output, open_closed_streams

_NEEDED = ("typer", "rich", "pandas", "pyarrow")


def run_guarded(arguments: Sequence[str]) -> int:
    """Run a command line; return its exit code, or raise KeyboardInterrupt."""
    try:
        with noticing_interrupts():
            open_closed_streams()
            return _run(arguments)
    except BrokenPipeError:
        return BROKEN_PIPE
    finally:
        discard_output()


def _run(arguments: Sequence[str]) -> int:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"hybridmix: error: The command line needs {', '.join(missing)}: "
            "pip install 'hybridmix[cli]'.",
            file=sys.stderr,
        )
        return 1
    try:
        from hybridmix.cli.app import run

        code = run(arguments)
    except Exception:
        # Packages may turn an interrupt during their import into another error.
        if not was_interrupted():
            raise
        code = INTERRUPTED
    if code == INTERRUPTED or was_interrupted():
        raise KeyboardInterrupt
    return code
