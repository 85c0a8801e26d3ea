"""The command line: ``hybridmix fit``, ``predict`` and the like.

Nothing is imported here that Python has not imported itself: everything else waits until
Ctrl-C can be caught.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_INTERRUPTED = 130


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
        from hybridmix.cli.process import run_guarded

        return run_guarded(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        print("hybridmix: interrupted", file=sys.stderr)
        return _INTERRUPTED


def run_and_exit() -> NoReturn:
    """Run the command line as a process of its own."""
    code = main()
    if code == _INTERRUPTED:
        # After an interrupt within some imports, Python ends by the signal and not by the
        # exit code, although the interrupt was caught. The code must always be the same.
        _clean_up()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _clean_up() -> None:
    """Do what Python does at the end, which leaving by `os._exit` would skip.

    Processes of a search leave locks behind otherwise, about which they complain.
    """
    atexit, signal = sys.modules.get("atexit"), sys.modules.get("signal")
    if atexit is not None and signal is not None:  # else there is nothing to clean up
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        atexit._run_exitfuncs()
