"""The command line: ``hybridmix fit``, ``predict`` and the like.

Only small modules of Python are imported here: everything else waits until Ctrl-C can be
caught.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from hybridmix.cli.interrupts import INTERRUPTED, noticing_interrupts, was_interrupted
from hybridmix.cli.streams import BROKEN_PIPE, discard_output, open_closed_streams

_NEEDED = ("typer", "rich", "pandas", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str or None, default=None
        The words after ``hybridmix``; None for the arguments of the process.

    Returns
    -------
    code : int
        0 if all went well, 2 if the input is at fault, 130 if interrupted, 141 if the
        program that reads the output has ended, else 1.
    """
    try:
        with noticing_interrupts():
            open_closed_streams()
            return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        print("hybridmix: interrupted", file=sys.stderr)
        return INTERRUPTED
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
