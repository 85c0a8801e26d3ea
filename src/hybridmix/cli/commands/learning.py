"""``hybridmix fit``."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import typer

from hybridmix.cli import choices, fitting, quality, sequence_views, views
from hybridmix.cli import options as opt
from hybridmix.cli.console import Console, talking
from hybridmix.cli.fitting import Training
from hybridmix.cli.hints import give_hints
from hybridmix.cli.interrupts import INTERRUPTED, was_interrupted
from hybridmix.cli.labels import CLASSIFY, Target
from hybridmix.cli.large import Memory
from hybridmix.cli.models import Model
from hybridmix.cli.sequences import Keys
from hybridmix.cli.tables import InputError, open_table
from hybridmix.cli.text_format import TextFormat
from hybridmix.cli.values import split
from hybridmix.cli.writing import check_output
from hybridmix.data.sequences import Sequences
from hybridmix.estimators.chosen import described_members

# Cells of a table in which a search takes a minute or more.
_MANY_CELLS = 1_000_000
# Names of classes that are listed.
_SHOWN_CLASSES = 50


def fit(
    table: opt.TablePath,
    output: opt.ModelOutput,
    target: opt.Target = None,
    task: opt.TaskName = None,
    sequence: opt.SequenceNames = None,
    time: opt.TimeName = None,
    unlabelled: opt.Unlabelled = None,
    weight: opt.Weight = None,
    categorical: opt.Categorical = None,
    real: opt.Real = None,
    drop: opt.Drop = None,
    na: opt.MissingMarks = None,
    thousands: opt.Thousands = "",
    encoding: opt.Encoding = None,
    method: opt.MethodName = None,
    components: opt.Components = None,
    covariance: opt.CovarianceType = None,
    states: opt.States = None,
    topology: opt.Topology = None,
    exits: opt.Exits = False,
    autoregressive: opt.Autoregressive = False,
    effort: opt.Effort = None,
    seconds: opt.Seconds = None,
    objective: opt.ObjectiveName = None,
    tradeoff: opt.Tradeoff = None,
    calibrate: opt.Calibrate = False,
    tune: opt.Tune = False,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    memory: opt.MemoryLimit = None,
    check: opt.Check = True,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Fit a model to a table: a classifier or regressor, or a density without --target.

    A target that is a number of many different values is predicted as a number. With
    --sequence, rows are frames of sequences, and the model is one of sequences.
    """
    if task is not None and target is None:
        raise InputError(f"--task {task} needs a target: add --target NAME.")
    keys = Keys(split(sequence), time)
    named = split(real), split(categorical), split(drop), split(na)
    text = TextFormat(thousands, encoding)
    reading = fitting.Reading(
        *named, target, unlabelled, weight, task, keys, text, Memory.parsed(memory)
    )
    numbers = choices.parse_components(components)
    checks = check and not quiet
    chosen = choices.Options(
        numbers,
        covariance,
        objective,
        tradeoff,
        calibrate,
        tune,
        seed,
        jobs,
        _effort_of_fit(choices.parse_effort(effort, seconds), checks),
        method or choices.MIXTURE,
        states,
        topology,
        exits,
        autoregressive,
    )
    with talking(quiet, as_json) as console:
        _fit(table, output, reading, chosen, checks, console)


def _fit(
    table: Path,
    output: Path,
    reading: fitting.Reading,
    chosen: choices.Options,
    checks: bool,
    console: Console,
) -> None:
    """Read a table, fit a model to it, save and judge it."""
    choose = chosen.for_sequences if reading.keys.sequence else chosen.for_rows
    target = reading.target
    check_output(output, table, is_table=False)
    # Options that contradict each other are refused before a large table is read.
    choose(target and (reading.task or CLASSIFY))
    in_blocks = chosen.in_blocks and not reading.keys.sequence
    source = open_table(table, reading.text)
    training = fitting.read_training(source, reading, console, in_blocks)
    estimator = choose(target and training.task)
    _show_columns(training, reading, console)
    _warn_of_long_work(training, chosen, console)
    begin = perf_counter()
    model = training.model(fitting.fit(estimator, training, console), reading)
    seconds = perf_counter() - begin
    path = _save(model, output, console)
    values = _sum_up(console, path, training, model, seconds)
    if checks:
        values["quality"] = _check(console, estimator, training, seconds, chosen.seed)
    _suggest(console, path, table, reading.text.encoding, model)
    if console.as_json:
        console.result(values)
    if path != output:
        raise typer.Exit(INTERRUPTED)


def _warn_of_long_work(
    training: Training, chosen: choices.Options, console: Console
) -> None:
    """Say that a search in a large table takes long, and what limits it."""
    is_given = None not in (chosen.components, chosen.covariance)
    if training.is_large or chosen.effort is not None or is_given:
        return
    n_features = sum(k.kind in ("real", "categorical") for k in training.kinds)
    n_rows = sum(_sizes(training).values())
    if n_rows * n_features > _MANY_CELLS:
        console.note(
            f"{n_rows:,} rows of {n_features} columns: the search may take minutes. "
            "--seconds 60 limits it, and --effort fast leaves it out"
        )


def _effort_of_fit(effort: str | float | None, checks: bool) -> str | float | None:
    """Return what is left for the fit of a limit of time."""
    if effort is None or isinstance(effort, str) or not checks:
        return effort
    return effort * (1.0 - quality.SHARE_OF_SECONDS)


def _show_columns(training: Training, reading: fitting.Reading, console: Console) -> None:
    """Show what columns are treated as; what changes the model is never hidden."""
    console.note_table(views.column_table(training.kinds))
    give_hints(training.kinds, console)
    fitting.warn_of_spoilt(training.kinds, console)
    is_cut = len(training.kinds) > views.SHOWN_ROWS
    # JSON lists all columns at the end.
    if not console.as_json and (console.is_silent or is_cut):
        fitting.warn_of_dropped(training.kinds, reading, console)


def _save(model: Model, output: Path, console: Console) -> Path:
    """Save a model; return where it is, which is elsewhere after an interrupt."""
    if not was_interrupted():
        model.save(output)
        return output
    # A file at `output` means a complete fit, to people and to scripts.
    path = output.with_name(f"{output.stem}.interrupted{output.suffix}")
    model.save(path)
    console.warn(f"The best model so far is in {path}; {output} is not written.")
    return path


def _check(
    console: Console, estimator: Any, training: Training, seconds: float, seed: int
) -> dict[str, Any] | None:
    """Say how good a model is on rows that it has not seen; return the figures."""
    if was_interrupted():
        return None
    if training.is_large:
        console.note("Its quality on new rows is not known: keep some, and evaluate it")
        return None
    assert not isinstance(training.weights, str)  # as they are in blocks
    with console.progress():
        found = quality.estimated(
            estimator, training.frame, training.y, training.weights, seconds, seed
        )
    if was_interrupted():
        console.warn("The model is complete; its quality was not estimated.")
        return None
    if isinstance(found, str):
        console.note(f"Its quality on new rows is not known. {found}")
        return None
    for line in found.lines:
        console.note(line)
    return found.values


def _suggest(
    console: Console, output: Path, table: Path, encoding: str | None, model: Model
) -> None:
    """Say what to do next."""
    named = "TABLE" if str(table) == "-" else table
    step = f"report {output} {named} -o report.html"
    if encoding is not None:
        step += f" --encoding {encoding}"
    if not model.predicts:
        step = _next_step(model, output)
    console.note(f"Next: hybridmix {step}")


def _sum_up(
    console: Console, output: Path, training: Training, model: Model, seconds: float
) -> dict[str, Any]:
    """Say what was fitted; return it by the keys of JSON."""
    estimator = model.estimator
    sizes = _sizes(training)
    columns = [
        {
            "name": kind.name,
            "type": kind.kind,
            "why": kind.reason,
            "missing": kind.missing,
        }
        for kind in training.kinds
    ]
    values = {
        "model": output,
        "class": type(estimator).__name__,
        **sizes,
        **_structure(model),
        "converged": estimator.converged_,
        "interrupted": was_interrupted(),
        "seconds": round(seconds, 3),
        "columns": columns,
    }
    values["leaderboard"] = list(getattr(estimator, "leaderboard_", []))
    values["members"] = described_members(estimator)
    units = next(iter(sizes))
    for part in views.search_of(values):
        (console.note if isinstance(part, str) else console.note_table)(part)
    if training.target is None:
        console.note("No --target: fitted a density, which has no classes.")
    else:
        values |= {"task": training.task, **_sum_up_target(training.target, estimator)}
        for line in _target_lines(values):
            console.note(line)
        if training.target.n_different == 1:
            console.warn("All labels are the same: there is nothing to tell apart.")
    counted = units if values[units] != 1 else units.removesuffix("s")
    fitted = f"{values['class']} fitted to {values[units]} {counted}"
    console.note(f"{fitted} in {seconds:.1f} s: {output}")
    return values


def _sizes(training: Training) -> dict[str, int]:
    """Return how many rows there are, or sequences and frames of them."""
    if isinstance(training.frame, Sequences):
        n_frames = int(training.frame.lengths.sum())
        return {"sequences": len(training.frame), "frames": n_frames}
    return {"rows": training.n_rows}


def _structure(model: Model) -> dict[str, Any]:
    """Return how large a model is."""
    if model.is_sequential:
        return sequence_views.structure_of(model.estimator)
    return {"components": model.estimator.n_components_}


def _next_step(model: Model, output: Path) -> str:
    """Return a command that makes use of a density."""
    if model.is_sequential:
        return f"predict {output} TABLE --per-frame"
    return f"outliers {output} TABLE"


def _sum_up_target(target: Target, estimator: Any) -> dict[str, Any]:
    """Return what a model was fitted to predict."""
    if target.task == CLASSIFY:
        return {"labelled": target.n_known, "classes": estimator.classes_}
    known = target.known
    return {
        "with_target": len(known),
        "mean": float(known.mean()),
        "standard_deviation": float(known.std()),
        **views.described_predictions(estimator),
    }


def _target_lines(values: dict[str, Any]) -> list[str]:
    """Say what a model was fitted to predict."""
    if values["task"] == CLASSIFY:
        classes = views.shortened(values["classes"].tolist(), _SHOWN_CLASSES)
        units = "sequences" if "sequences" in values else "rows"
        rows = f"{values['labelled']} of {values[units]} {units} have a label"
        return [f"{rows}; classes: {classes}"]
    return [
        f"{values['with_target']} of {values['rows']} rows have a target: mean "
        f"{values['mean']:.4g}, standard deviation {values['standard_deviation']:.4g}",
        views.predicted_by(values),
    ]
