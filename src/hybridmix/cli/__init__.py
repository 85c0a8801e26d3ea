"""The command line: ``hybridmix fit``, ``predict`` and the like."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

_NEEDED = ("typer", "rich", "pandas", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str or None, default=None
        What stands behind ``hybridmix``; None for the arguments of the process.

    Returns
    -------
    code : int
        0 if all went well, 2 if the input is at fault, 130 if interrupted, else 1.
    """
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

        return run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        print("hybridmix: interrupted", file=sys.stderr)
        return 130
