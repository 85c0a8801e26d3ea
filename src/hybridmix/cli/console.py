"""What the command line says: notes, warnings, errors, results, progress."""

from __future__ import annotations

import json
import math
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from hybridmix._text import json_safe, printable
from hybridmix.cli.interrupts import stop_if_interrupted
from hybridmix.cli.pace import Pace
from hybridmix.cli.streams import results_to_stdout
from hybridmix.cli.tables import Chunk
from hybridmix.exceptions import ColumnWarning, UnsupportedError
from hybridmix.progress import Listener, Step, listening


class Console:
    """Talks to the user: results to stdout, all else to stderr.

    What is shown may hold text from files of unknown origin. Its control characters
    are shown as escapes, and its brackets are not markup.

    Parameters
    ----------
    quiet : bool
        Show results, warnings and errors only.
    as_json : bool
        Print results as one JSON object; show warnings and errors otherwise.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.as_json = as_json
        self.is_silent = quiet or as_json
        self._screen = RichConsole(stderr=True, highlight=False, markup=False)
        self._told: set[str] = set()

    def note(self, text: str) -> None:
        """Show a note."""
        if not self.is_silent:
            print(printable(text), file=sys.stderr)

    def note_table(self, table: RichTable) -> None:
        """Show a table that is good to know."""
        if not self.is_silent:
            self._screen.print(table)

    def warn(self, text: str) -> None:
        """Warn about what changes the result, once for every kind of warning."""
        # The part before the colon says what happened, the rest where.
        kind = text.partition(":")[0]
        if kind not in self._told:
            self._told.add(kind)
            print(f"hybridmix: warning: {one_line(text)}", file=sys.stderr)

    def result(self, values: dict[str, Any], *shown: RichTable | Text | str) -> None:
        """Print a result: as JSON, or in the form for the screen."""
        with results_to_stdout():
            if self.as_json:
                text = json.dumps(without_nan(values), ensure_ascii=False, default=str)
                print(json_safe(text))
                return
            screen = RichConsole(highlight=False, markup=False)
            for part in shown:
                screen.print(printable(part) if isinstance(part, str) else part)

    @contextmanager
    def progress(self, ends_at_interrupt: bool = False) -> Iterator[None]:
        """Show a bar for every task that the library announces.

        Parameters
        ----------
        ends_at_interrupt : bool, default=False
            Whether work of many fits ends at Ctrl-C. Otherwise it would end the fit that
            is under way, and the next one would begin.
        """
        with self._bars() as show:

            def listen(step: Step) -> None:
                if ends_at_interrupt:
                    stop_if_interrupted()
                show(step)

            with listening(listen):
                yield

    @contextmanager
    def _bars(self) -> Iterator[Listener]:
        """Return a function that draws steps, or says now and then how far they are."""
        if self.is_silent:
            yield lambda _: None
            return
        if not self._screen.is_terminal:
            yield Pace(self.note)
            return
        tasks: dict[str, TaskID] = {}
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} {task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._screen, transient=True) as bars:

            def show(step: Step) -> None:
                if step.task not in tasks:
                    tasks[step.task] = bars.add_task(printable(step.task), note="")
                bars.update(
                    tasks[step.task],
                    completed=step.done,
                    total=step.total,
                    note=printable(step.note),
                )

            yield show

    def track(self, chunks: Iterable[Chunk], task: str) -> Iterator[Chunk]:
        """Pass chunks on, with a bar for the part of the file that is read."""
        if self.is_silent or not self._screen.is_terminal:
            yield from chunks
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rows]} rows"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._screen, transient=True) as bars:
            bar = bars.add_task(task, total=1.0, rows=0)
            for chunk in chunks:
                yield chunk
                rows = f"{chunk.start + chunk.n_rows:,}"
                bars.update(bar, completed=chunk.share_read, rows=rows)


@contextmanager
def talking(quiet: bool = False, as_json: bool = False) -> Iterator[Console]:
    """Make a console; warnings of the library become lines on it."""
    console = Console(quiet, as_json)

    def show(message: Any, *_: Any, **__: Any) -> None:
        console.warn(str(message))

    with warnings.catch_warnings():
        # Warnings of other kinds are for people who write programs.
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        # Options have named such columns; all others are left out.
        warnings.simplefilter("ignore", ColumnWarning)
        warnings.showwarning = show
        yield console


def report_error(error: Exception, debug: bool) -> int:
    """Print an error in one line, and return the exit code."""
    if debug:
        lines = "".join(traceback.format_exception(error))
        print(printable(lines, keep="\n"), end="", file=sys.stderr)
    line, code = _described(error)
    print(f"hybridmix: error: {one_line(line)}", file=sys.stderr)
    return code


def _described(error: Exception) -> tuple[str, int]:
    """Return what to say about an error, and the exit code."""
    if hasattr(error, "format_message"):  # of typer, about options
        context = getattr(error, "ctx", None)
        hint = f" Try '{context.command_path} --help'." if context else ""
        message = f"{error.format_message().rstrip('.')}.".replace("?.", "?")
        return f"{message}{hint}", 2
    if isinstance(error, OSError) and error.strerror:
        is_input = isinstance(
            error,
            FileNotFoundError | IsADirectoryError | NotADirectoryError | PermissionError,
        )
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}.", 2 if is_input else 1
    if isinstance(error, ValueError | UnsupportedError):
        return str(error), 2
    if isinstance(error, ImportError):
        return str(error), 1
    if isinstance(error, MemoryError):
        return "Not enough memory; fit to fewer rows, or lower --chunk-rows.", 1
    reason = f"{type(error).__name__}: {error}"
    return f"Unexpected {reason} (rerun with --debug for the traceback).", 1


def one_line(text: str) -> str:
    """Join the lines of a text, and show other control characters as escapes."""
    return printable(" ".join(text.split()))


def without_nan(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return without_nan(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
