"""The command line as a whole: its commands, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated

import typer

import hybridmix
from hybridmix.cli.commands import COMMANDS
from hybridmix.cli.console import INTERRUPTED, report_error

app = typer.Typer(
    name="hybridmix",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for command, examples in COMMANDS.items():
    app.command(epilog="\n\n".join(("Examples:", *examples)))(command)


@app.callback(
    invoke_without_command=True,
    epilog="Begin with: hybridmix fit TABLE --target NAME -o model.hmx",
)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.")
    ] = False,
    debug: Annotated[  # noqa: ARG001 -- `run` looks for it, wherever it stands
        bool, typer.Option("--debug", help="Show tracebacks of errors.")
    ] = False,
) -> None:
    """Mixture models of tables with holes: classify, fill, find outliers, sample."""
    if version:
        print(f"hybridmix {hybridmix.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run a command line; errors become one line and an exit code.

    Parameters
    ----------
    arguments : sequence of str
        What stands behind ``hybridmix``. ``--debug`` may stand anywhere.

    Returns
    -------
    code : int
        The exit code.
    """
    is_set = os.environ.get("HYBRIDMIX_DEBUG", "0") not in ("", "0")
    debug = is_set or "--debug" in arguments
    if isinstance(sys.stdout, TextIOWrapper) and not sys.stdout.isatty():
        # What programs read is the same everywhere.
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        code = typer.main.get_command(app).main(
            args=[argument for argument in arguments if argument != "--debug"],
            prog_name="hybridmix",
            standalone_mode=False,
        )
    except Exception as error:
        return report_error(error, debug)
    if code == INTERRUPTED:
        print("hybridmix: interrupted", file=sys.stderr)
    return code or 0
