"""Commands that describe models: evaluate, inspect, report, demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import hybridmix
from hybridmix.cli import options as opt
from hybridmix.cli import tallies, views
from hybridmix.cli.console import Console, talking
from hybridmix.cli.interrupts import stop_if_interrupted
from hybridmix.cli.models import Matching, Model
from hybridmix.cli.sequence_results import read_file_sequences
from hybridmix.cli.sequences import Keys
from hybridmix.cli.streams import results_to_stdout
from hybridmix.cli.tables import CHUNK_ROWS
from hybridmix.cli.targets import read_all
from hybridmix.cli.text_format import TextFormat
from hybridmix.cli.values import split
from hybridmix.cli.workflow import check_order, load_matching, tell_written
from hybridmix.cli.writing import STDOUT, check_output
from hybridmix.io import read_versions


def evaluate(
    model: opt.ModelPath,
    table: opt.TablePath,
    target: opt.TestTarget = None,
    sequence: opt.SequenceNames = None,
    time: opt.TimeName = None,
    na: opt.MissingMarks = None,
    thousands: opt.Thousands = "",
    encoding: opt.Encoding = None,
    allow_missing: opt.AllowMissing = False,
    chunk_rows: opt.ChunkRows = CHUNK_ROWS,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Compare predictions with labels: accuracy, log loss, AUC, calibration.

    Of a regressor: RMSE, MAE, R², coverage and score of the 90 % intervals, for each
    of its targets (--target A,B). It warns if the model was trained on these rows.
    """
    check_order("evaluate", model, table)
    text = TextFormat(thousands, encoding)
    keys = Keys(split(sequence), time)
    with talking(quiet, as_json) as console:
        matching = load_matching(
            model, table, console, na, allow_missing, target, keys, text
        )
        values = tallies.evaluated(matching, target, chunk_rows, console)
        if values["warning"] is not None:
            console.warn(values["warning"])
        console.result(values, *views.evaluation(values))


def inspect(
    model: opt.ModelPath, as_json: opt.AsJson = False, quiet: opt.Quiet = False
) -> None:
    """Show what is in a model file: columns, classes, components, options."""
    with talking(quiet, as_json) as console:
        values = views.described(Model.load(model)) | {"versions": read_versions(model)}
        console.result(values, *views.inspection(values))


def report(
    model: opt.ModelPath,
    table: opt.TablePath,
    output: opt.PageOutput,
    target: opt.TestTarget = None,
    sequence: opt.SequenceNames = None,
    time: opt.TimeName = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    folds: Annotated[
        int, typer.Option(min=2, help="Number of cross-validation folds.")
    ] = 5,
    baselines: Annotated[
        bool, typer.Option(help="Compare with models of scikit-learn.")
    ] = True,
    na: opt.MissingMarks = None,
    thousands: opt.Thousands = "",
    encoding: opt.Encoding = None,
    allow_missing: opt.AllowMissing = False,
    seed: opt.Seed = 0,
    quiet: opt.Quiet = False,
) -> None:
    """Write a report on a model and a table: quality, columns, outliers, holes.

    Rows that the model has not seen are scored by the model as it is. For its own
    training rows, it is retrained by cross-validation.
    """
    check_order("report", model, table)
    text = TextFormat(thousands, encoding)
    keys = Keys(split(sequence), time)
    with talking(quiet) as console:
        if output != STDOUT:
            check_output(output, model, table, is_table=False)
        matching = load_matching(
            model, table, console, na, allow_missing, target, keys, text
        )
        matching.model.check_density()
        X, y = read_rows(matching, target, console)
        with console.progress(ends_at_interrupt=True):
            page = hybridmix.report(
                matching.model.estimator,
                X,
                y,
                title=title,
                cv=folds,
                baselines=baselines,
                random_state=seed,
            )
        # Folds that were interrupted would make a page that looks like any other.
        stop_if_interrupted()
        if output == STDOUT:
            with results_to_stdout():
                sys.stdout.write(page.html)
        else:
            page.save(output)
            tell_written(console, output)


def read_rows(
    matching: Matching, target: str | None, console: Console
) -> tuple[Any, np.ndarray | None]:
    """Read rows or sequences, and their labels or targets if they have any."""
    if matching.model.is_sequential:
        read = read_file_sequences(matching, console, target)
        return read.sequences, read.labels
    chunks = console.track(matching.table.chunks(CHUNK_ROWS), "reading")
    return read_all(matching, chunks, target)


def demo(
    folder: Annotated[
        Path, typer.Option(help="Folder for the files of the demonstration.")
    ] = Path("hybridmix-demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Run one split instead of three.")
    ] = False,
) -> None:
    """Show on a small table, step by step, what hybridmix can do."""
    from hybridmix.cli.demo import run

    with talking() as console, console.progress(ends_at_interrupt=True):
        run(folder, quick=quick)
