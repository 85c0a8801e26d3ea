"""Commands that make tables: predict, impute, outliers, sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

import hybridmix
from hybridmix._typing import FloatArray
from hybridmix.cli import choices, fitting, results, sequence_results, views
from hybridmix.cli import options as opt
from hybridmix.cli.console import Console, talking
from hybridmix.cli.guilt import guilty_cells
from hybridmix.cli.large import Memory
from hybridmix.cli.models import Matching, Model, filled
from hybridmix.cli.sequences import Keys
from hybridmix.cli.tables import CHUNK_ROWS, Chunk, InputError
from hybridmix.cli.text_format import TextFormat
from hybridmix.cli.values import split
from hybridmix.cli.workflow import (
    OwnFit,
    check_order,
    given_or_fitted,
    load_matching,
    model_and_table,
    tell_written,
)
from hybridmix.cli.writing import STDOUT, check_output, writing


def predict(
    model: opt.ModelPath,
    table: opt.TablePath,
    output: opt.TableOutput = STDOUT,
    keep: Annotated[
        str, typer.Option(help="Columns of the table to keep: all, none, or A,B.")
    ] = "all",
    density: Annotated[
        bool,
        typer.Option("--density", help="Add log_density, typicality and outlier."),
    ] = False,
    coverage: opt.Coverage = None,
    per_frame: Annotated[
        bool,
        typer.Option(
            "--per-frame",
            help="For models of sequences: write the rows of the table with the state "
            "of each, instead of a row for each sequence.",
        ),
    ] = False,
    sequence: opt.SequenceNames = None,
    time: opt.TimeName = None,
    na: opt.MissingMarks = None,
    thousands: opt.Thousands = "",
    encoding: opt.Encoding = None,
    allow_missing: opt.AllowMissing = False,
    chunk_rows: opt.ChunkRows = CHUNK_ROWS,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Add the predicted label and the probabilities of the classes to a table.

    Of a regressor: the predicted mean and the ends of its interval. Of a model of
    sequences: a table with a row for each sequence.
    """
    check_order("predict", model, table)
    text = TextFormat(thousands, encoding)
    keys = Keys(split(sequence), time)
    with talking(quiet) as console:
        check_output(output, model, table, escape_formulas=escape_formulas)
        matching = load_matching(
            model, table, console, na, allow_missing, keys=keys, text=text
        )
        names = results.kept_columns(matching.table, keep)
        if matching.model.is_sequential:
            blocks = sequence_results.predicted(
                matching, keep, names, per_frame, density, coverage, chunk_rows, console
            )
        else:
            choices.refuse({"--per-frame": per_frame}, "is for models of sequences.")
            blocks = results.predicted(
                matching, names, density, coverage, chunk_rows, console
            )
        with results.writing_like(matching, output, escape_formulas) as write:
            for block in blocks:
                write(block)
        tell_written(console, output)


def impute(
    files: opt.TableOrBoth,
    output: opt.TableOutput = STDOUT,
    model: opt.GivenModel = None,
    target: opt.KeptOut = None,
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw random values instead of taking means.")
    ] = False,
    categorical: opt.Categorical = None,
    real: opt.Real = None,
    drop: opt.Drop = None,
    sequence: opt.SequenceNames = None,
    time: opt.TimeName = None,
    na: opt.MissingMarks = None,
    thousands: opt.Thousands = "",
    encoding: opt.Encoding = None,
    allow_missing: opt.AllowMissing = False,
    components: opt.Components = None,
    covariance: opt.CovarianceType = None,
    effort: opt.Effort = None,
    seconds: opt.Seconds = None,
    seed: opt.Seed = 0,
    memory: opt.MemoryLimit = None,
    chunk_rows: opt.ChunkRows = CHUNK_ROWS,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Fill the holes of a table; all other cells stay as they are."""
    model, table = model_and_table("impute", files, model)
    own = OwnFit(
        hybridmix.MixtureImputer,
        fitting.Reading(
            split(real),
            split(categorical),
            split(drop),
            split(na),
            text=TextFormat(thousands, encoding),
            memory=Memory.parsed(memory),
        ),
        choices.Options(
            choices.parse_components(components),
            covariance,
            seed=seed,
            effort=choices.parse_effort(effort, seconds),
        ),
        target,
    )
    keys = Keys(split(sequence), time)
    inputs = [table] if model is None else [table, model]
    with talking(quiet) as console:
        check_output(output, *inputs, escape_formulas=escape_formulas)
        matching = given_or_fitted(model, table, own, allow_missing, console, keys)
        if matching.model.is_sequential:
            choices.refuse({"--draw": draw}, "is not for models of sequences.")
            completions = sequence_results.completions(matching, chunk_rows, console)
        else:
            completions = results.completions(matching, chunk_rows, draw, seed, console)
        n_filled = 0
        with results.writing_like(matching, output, escape_formulas) as write:
            for chunk, completed in completions:
                columns, n_new = filled(matching, chunk, completed)
                n_filled += n_new
                write(columns)
        tell_written(console, output, f"{n_filled} cells filled, ")


def outliers(
    files: opt.TableOrBoth,
    output: opt.OptionalOutput = None,
    model: opt.GivenModel = None,
    target: opt.KeptOut = None,
    threshold: opt.Threshold = None,
    share: opt.Share = None,
    worst: opt.Worst = 10,
    categorical: opt.Categorical = None,
    real: opt.Real = None,
    drop: opt.Drop = None,
    sequence: opt.SequenceNames = None,
    time: opt.TimeName = None,
    na: opt.MissingMarks = None,
    thousands: opt.Thousands = "",
    encoding: opt.Encoding = None,
    allow_missing: opt.AllowMissing = False,
    components: opt.Components = None,
    covariance: opt.CovarianceType = None,
    effort: opt.Effort = None,
    seconds: opt.Seconds = None,
    seed: opt.Seed = 0,
    memory: opt.MemoryLimit = None,
    chunk_rows: opt.ChunkRows = CHUNK_ROWS,
    as_json: opt.AsJson = False,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Show the most unusual rows of a table, or sequences, and flag outliers."""
    model, table = model_and_table("outliers", files, model)
    if threshold is not None and share is not None:
        raise InputError("Give either --threshold or --share, not both.")
    if as_json and output == STDOUT:
        raise InputError("--json and -o - would both write to stdout.")
    own = OwnFit(
        hybridmix.MixtureOutlierDetector,
        fitting.Reading(
            split(real),
            split(categorical),
            split(drop),
            split(na),
            text=TextFormat(thousands, encoding),
            memory=Memory.parsed(memory),
        ),
        choices.Options(
            choices.parse_components(components),
            covariance,
            seed=seed,
            effort=choices.parse_effort(effort, seconds),
        ),
        target,
    )
    keys = Keys(split(sequence), time)
    inputs = [table] if model is None else [table, model]
    with talking(quiet, as_json) as console:
        if output is not None:
            check_output(output, *inputs, escape_formulas=escape_formulas)
        matching = given_or_fitted(model, table, own, allow_missing, console, keys)
        rows = results.Worst(worst)
        chunks, scores = _typicalities(matching, chunk_rows, rows, console)
        level = results.level_of(matching.model.estimator, scores, threshold, share)
        if output is not None:
            with results.writing_like(matching, output, escape_formulas) as write:
                results.write_flags(chunks, scores, level, write)
            tell_written(console, output)
        if output != STDOUT:
            guilty = [
                guilty_cells(matching, row.features, row.typicality, level)
                for row in rows.rows
            ]
            unit = matching.model.unit
            console.result(*views.outliers(rows.rows, guilty, scores, level, unit))


def _typicalities(
    matching: Matching, chunk_rows: int, worst: results.Worst, console: Console
) -> tuple[Iterable[Chunk], FloatArray]:
    """Return rows or sequences and how typical they are; take note of the worst."""
    if matching.model.is_sequential:
        return sequence_results.typicalities(matching, worst, console)
    scores = results.typicalities(matching, chunk_rows, worst, console)
    return matching.table.chunks(chunk_rows), scores


def sample(
    model: opt.ModelPath,
    output: opt.TableOutput = STDOUT,
    rows: Annotated[
        int,
        typer.Option("--rows", "-n", min=1, help="How many rows or sequences to draw."),
    ] = 1000,
    seed: opt.Seed = 0,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Draw rows or sequences from a model, with labels or targets if it predicts any."""
    with talking(quiet) as console:
        check_output(output, model, escape_formulas=escape_formulas)
        source = Model.load(model)
        source.check_density()
        drawn = sequence_results.drawn if source.is_sequential else results.drawn
        with writing(output, escape_formulas=escape_formulas) as write:
            write(drawn(source, rows, seed))
        tell_written(console, output, f"{rows} {source.unit}s drawn, ")
