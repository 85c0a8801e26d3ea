"""Commands that make tables: predict, impute, outliers, sample."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

import hybridmix
from hybridmix.cli import choices, fitting, results, sequence_results, views
from hybridmix.cli import options as opt
from hybridmix.cli.cells import Column, TypedColumn
from hybridmix.cli.console import talking
from hybridmix.cli.models import Model, columns_of, filled
from hybridmix.cli.sequences import Keys
from hybridmix.cli.tables import CHUNK_ROWS, InputError
from hybridmix.cli.targets import check_distribution
from hybridmix.cli.values import split
from hybridmix.cli.workflow import (
    OwnFit,
    check_tabular,
    given_or_fitted,
    load_matching,
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
    allow_missing: opt.AllowMissing = False,
    chunk_rows: opt.ChunkRows = CHUNK_ROWS,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Add the predicted label and the probabilities of the classes to a table.

    Of a regressor: the predicted mean and the ends of its interval. Of a model of
    sequences: a table with a row for each sequence.
    """
    keys = Keys(split(sequence), time)
    with talking(quiet) as console:
        check_output(output, model, table, escape_formulas=escape_formulas)
        matching = load_matching(model, table, console, na, allow_missing, keys=keys)
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
    table: opt.TablePath,
    output: opt.TableOutput = STDOUT,
    model: opt.GivenModel = None,
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw random values instead of taking means.")
    ] = False,
    categorical: opt.Categorical = None,
    real: opt.Real = None,
    drop: opt.Drop = None,
    na: opt.MissingMarks = None,
    allow_missing: opt.AllowMissing = False,
    components: opt.Components = None,
    covariance: opt.CovarianceType = None,
    effort: opt.Effort = None,
    seed: opt.Seed = 0,
    chunk_rows: opt.ChunkRows = CHUNK_ROWS,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Fill the holes of a table; all other cells stay as they are."""
    own = OwnFit(
        hybridmix.MixtureImputer,
        fitting.Reading(split(real), split(categorical), split(drop), split(na)),
        choices.Options(
            choices.parse_components(components),
            covariance,
            seed=seed,
            effort=choices.parse_effort(effort),
        ),
    )
    inputs = [table] if model is None else [table, model]
    with talking(quiet) as console:
        check_output(output, *inputs, escape_formulas=escape_formulas)
        matching = given_or_fitted(model, table, own, allow_missing, console)
        estimator = matching.model.estimator
        n_filled = 0
        with results.writing_like(matching, output, escape_formulas) as write:
            chunks = console.track(matching.table.chunks(chunk_rows), "filling")
            for number, chunk in enumerate(chunks):
                state = np.random.RandomState([seed, number])
                frame = matching.frame(chunk)
                completed = estimator.impute(frame, draw, random_state=state)
                columns, n_new = filled(matching, chunk, completed)
                n_filled += n_new
                write(columns)
        tell_written(console, output, f"{n_filled} cells filled, ")


def outliers(
    table: opt.TablePath,
    output: opt.OptionalOutput = None,
    model: opt.GivenModel = None,
    threshold: opt.Threshold = None,
    share: opt.Share = None,
    worst: opt.Worst = 10,
    categorical: opt.Categorical = None,
    real: opt.Real = None,
    drop: opt.Drop = None,
    na: opt.MissingMarks = None,
    allow_missing: opt.AllowMissing = False,
    components: opt.Components = None,
    covariance: opt.CovarianceType = None,
    effort: opt.Effort = None,
    seed: opt.Seed = 0,
    chunk_rows: opt.ChunkRows = CHUNK_ROWS,
    as_json: opt.AsJson = False,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Show the most unusual rows of a table, and flag outliers."""
    if threshold is not None and share is not None:
        raise InputError("Give either --threshold or --share, not both.")
    if as_json and output == STDOUT:
        raise InputError("--json and -o - would both write to stdout.")
    own = OwnFit(
        hybridmix.MixtureOutlierDetector,
        fitting.Reading(split(real), split(categorical), split(drop), split(na)),
        choices.Options(
            choices.parse_components(components),
            covariance,
            seed=seed,
            effort=choices.parse_effort(effort),
        ),
    )
    inputs = [table] if model is None else [table, model]
    with talking(quiet, as_json) as console:
        if output is not None:
            check_output(output, *inputs, escape_formulas=escape_formulas)
        matching = given_or_fitted(model, table, own, allow_missing, console)
        rows = results.Worst(worst)
        scores = results.typicalities(matching, chunk_rows, rows, console)
        level = results.level_of(matching.model.estimator, scores, threshold, share)
        if output is not None:
            with results.writing_like(matching, output, escape_formulas) as write:
                results.write_flags(matching, chunk_rows, scores, level, write)
            tell_written(console, output)
        if output != STDOUT:
            console.result(*views.outliers(rows.rows, scores, level))


def sample(
    model: opt.ModelPath,
    output: opt.TableOutput = STDOUT,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=1, help="How many rows to draw.")
    ] = 1000,
    seed: opt.Seed = 0,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Draw rows from a model, with labels or targets if it predicts any."""
    with talking(quiet) as console:
        check_output(output, model, escape_formulas=escape_formulas)
        source = Model.load(model)
        check_tabular(source)
        if source.is_regressor:
            check_distribution(source.estimator)
        drawn, groups = source.estimator.sample(rows, random_state=seed)
        columns: dict[str, Column] = {
            name: TypedColumn.of(values)
            for name, values in zip(source.column_names, columns_of(drawn), strict=True)
        }
        if source.predicts:
            targets = np.reshape(groups, (rows, -1)).T
            for name, values in zip(source.target_labels, targets, strict=True):
                while name in columns:
                    name += "_"
                columns[name] = TypedColumn.of(values.tolist())
        with writing(output, escape_formulas=escape_formulas) as write:
            write(columns)
        tell_written(console, output, f"{rows} rows drawn, ")
