"""The command line as a whole: its commands, and what happens to errors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import typer

import hybridmix
from hybridmix.cli.commands import COMMANDS
from hybridmix.cli.console import report_error
from hybridmix.cli.interrupts import was_interrupted
from hybridmix.cli.streams import BROKEN_PIPE, results_to_stdout, use_utf8

_DEBUG = "--debug"

app = typer.Typer(
    name="hybridmix",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _unwrapped(text: str) -> str:
    """Return paragraphs as one line each, for a terminal of any width."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


for command, examples in COMMANDS.items():
    epilog = "\n\n".join(("Examples:", *examples))
    app.command(help=_unwrapped(str(command.__doc__)), epilog=epilog)(command)


@app.callback(
    invoke_without_command=True,
    epilog="Start with: hybridmix fit TABLE --target NAME -o model.hmx",
)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.")
    ] = False,
    debug: Annotated[  # noqa: ARG001 -- `run` looks for it, wherever it is
        bool, typer.Option(_DEBUG, help="Show tracebacks of errors.")
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
        The words after ``hybridmix``. ``--debug`` may be anywhere among them.

    Returns
    -------
    code : int
        The exit code.
    """
    use_utf8()
    try:
        code = typer.main.get_command(app).main(
            args=[argument for argument in arguments if argument != _DEBUG],
            prog_name="hybridmix",
            standalone_mode=False,
        )
        with results_to_stdout():
            pass  # flush what was printed outside of it, such as help
    except SystemExit as leaving:
        return _exit_code(leaving)
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as error:
        if was_interrupted():
            raise
        return report_error(error, _shows_tracebacks(arguments))
    return code or 0


def _shows_tracebacks(arguments: Sequence[str]) -> bool:
    is_set = os.environ.get("HYBRIDMIX_DEBUG", "0") not in ("", "0")
    return is_set or _DEBUG in arguments


def _exit_code(leaving: SystemExit) -> int:
    """Return the code to exit with; typer and rich also leave when a pipe breaks."""
    is_pipe = isinstance(leaving.__context__, BrokenPipeError)
    return BROKEN_PIPE if is_pipe else int(leaving.code or 0)
