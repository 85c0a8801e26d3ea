"""The command that opens a page: explore."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

import hybridmix
from hybridmix.cli import choices
from hybridmix.cli import options as opt
from hybridmix.cli.commands.judging import read_rows
from hybridmix.cli.console import Console, talking
from hybridmix.cli.interrupts import ending_at_interrupt
from hybridmix.cli.models import Model
from hybridmix.cli.sequences import Keys
from hybridmix.cli.text_format import TextFormat
from hybridmix.cli.values import split
from hybridmix.cli.workflow import check_order, load_matching


def explore(
    model: opt.ModelPath,
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE",
            help="Rows to pick from; some are drawn from the model without it.",
        ),
    ] = None,
    target: opt.TestTarget = None,
    sequence: opt.SequenceNames = None,
    time: opt.TimeName = None,
    na: opt.MissingMarks = None,
    thousands: opt.Thousands = "",
    encoding: opt.Encoding = None,
    allow_missing: opt.AllowMissing = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 for any free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    quiet: opt.Quiet = False,
) -> None:
    """Open a local page to try a model on: edit or hide cells and watch its answers.

    The page is served on this machine only, until Ctrl-C, at an address that nobody can
    guess.
    """
    keys = Keys(split(sequence), time)
    with talking(quiet) as console:
        if table is None:
            given = {
                "--target": target is not None,
                "--na": bool(na),
                "--thousands": bool(thousands),
                "--encoding": encoding is not None,
                "--allow-missing": allow_missing,
            }
            choices.refuse(given, "is for a table: add TABLE.")
            explored, X, y = Model.load(model), None, None
            explored.check_density()
        else:
            check_order("explore", model, table)
            text = TextFormat(thousands, encoding)
            matching = load_matching(
                model, table, console, na, allow_missing, target, keys, text
            )
            explored = matching.model
            explored.check_density()
            X, y = read_rows(matching, target, console)
        _serve(explored.estimator, X, y, port, browser, console)


def _serve(
    estimator: Any, X: Any, y: Any, port: int, browser: bool, console: Console
) -> None:
    with hybridmix.explore(estimator, X, y, port=port) as explorer:
        console.result({"url": explorer.url}, explorer.url)
        console.note("Press Ctrl-C to end.")
        if browser:
            _open(explorer.url)
        with ending_at_interrupt():
            explorer.wait()


def _open(url: str) -> None:
    """Open a page in a browser that has a window; one of text would take the terminal."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return
    if type(found) is not webbrowser.GenericBrowser:
        found.open(url)
