"""``hybridmix fit``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from hybridmix import MixtureDensity
from hybridmix.cli import fitting, views
from hybridmix.cli import options as opt
from hybridmix.cli.columns import MAYBE_CODES
from hybridmix.cli.console import Console, talking
from hybridmix.cli.fitting import Training
from hybridmix.cli.interrupts import INTERRUPTED, was_interrupted
from hybridmix.cli.labels import CLASSIFY, Target
from hybridmix.cli.models import Model
from hybridmix.cli.tables import InputError, open_table
from hybridmix.cli.values import split
from hybridmix.cli.writing import check_output
from hybridmix.estimators.chosen import described_members

# Names of classes that are listed.
_SHOWN_CLASSES = 50


def fit(
    table: opt.TablePath,
    output: opt.ModelOutput,
    target: opt.Target = None,
    task: opt.TaskName = None,
    unlabelled: opt.Unlabelled = None,
    weight: opt.Weight = None,
    categorical: opt.Categorical = None,
    real: opt.Real = None,
    drop: opt.Drop = None,
    na: opt.MissingMarks = None,
    method: opt.MethodName = None,
    components: opt.Components = None,
    covariance: opt.CovarianceType = None,
    effort: opt.Effort = None,
    objective: opt.ObjectiveName = None,
    tradeoff: opt.Tradeoff = None,
    calibrate: opt.Calibrate = False,
    tune: opt.Tune = False,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Fit a model to a table: a classifier or regressor, or a density without --target.

    A target that is a number of many different values is predicted as a number.
    """
    if task is not None and target is None:
        raise InputError(f"--task {task} needs a target: add --target NAME.")
    named = split(real), split(categorical), split(drop), split(na)
    reading = fitting.Reading(*named, target, unlabelled, weight, task)
    numbers = fitting.parse_components(components)
    chosen = fitting.Options(
        numbers,
        covariance,
        objective,
        tradeoff,
        calibrate,
        tune,
        seed,
        jobs,
        fitting.parse_effort(effort),
        method or fitting.MIXTURE,
    )
    with talking(quiet, as_json) as console:
        check_output(output, table, is_table=False)
        # Options that contradict each other are refused before a large table is read.
        density = None if target else chosen.density(MixtureDensity)
        if target:
            chosen.for_target(task or CLASSIFY)
        training = fitting.read_training(open_table(table), reading, console)
        estimator = density or chosen.for_target(training.task)
        _show_columns(training, reading, console)
        begin = time.perf_counter()
        model = training.model(fitting.fit(estimator, training, console), reading)
        seconds = time.perf_counter() - begin
        path = _save(model, output, console)
        _sum_up(console, path, training, model, seconds)
        if path != output:
            raise typer.Exit(INTERRUPTED)


def _show_columns(training: Training, reading: fitting.Reading, console: Console) -> None:
    """Show what columns are treated as; what changes the model is never hidden."""
    console.note_table(views.column_table(training.kinds))
    if any(kind.reason.endswith(MAYBE_CODES) for kind in training.kinds):
        console.note("If whole numbers are codes, use --categorical NAMES")
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


def _sum_up(
    console: Console, output: Path, training: Training, model: Model, seconds: float
) -> None:
    """Say what was fitted, and what to do next."""
    estimator = model.estimator
    n_rows = len(training.frame)
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
        "rows": n_rows,
        "components": estimator.n_components_,
        "converged": estimator.converged_,
        "interrupted": was_interrupted(),
        "seconds": round(seconds, 3),
        "columns": columns,
    }
    values["leaderboard"] = list(getattr(estimator, "leaderboard_", []))
    values["members"] = described_members(estimator)
    for part in views.search_of(values):
        (console.note if isinstance(part, str) else console.note_table)(part)
    if training.target is None:
        console.note("No --target: fitted a density, which has no classes.")
        hint = f"Next: hybridmix outliers TABLE --model {output}"
    else:
        values |= {"task": training.task, **_sum_up_target(training.target, estimator)}
        for line in _target_lines(values):
            console.note(line)
        if len(set(training.target.known.tolist())) == 1:
            console.warn("All labels are the same: there is nothing to tell apart.")
        hint = (
            "How good is it? Evaluate it on rows it has not seen: hybridmix evaluate "
            f"{output} TABLE, or hybridmix report {output} TABLE -o report.html"
        )
    console.note(
        f"{values['class']} fitted to {n_rows} rows in {seconds:.1f} s: {output}"
    )
    console.note(hint)
    if console.as_json:
        console.result(values)


def _sum_up_target(target: Target, estimator: Any) -> dict[str, Any]:
    """Return what a model was fitted to predict."""
    known = target.known
    if target.task == CLASSIFY:
        return {"labelled": len(known), "classes": estimator.classes_}
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
        rows = f"{values['labelled']} of {values['rows']} rows have a label"
        return [f"{rows}; classes: {classes}"]
    return [
        f"{values['with_target']} of {values['rows']} rows have a target: mean "
        f"{values['mean']:.4g}, standard deviation {values['standard_deviation']:.4g}",
        views.predicted_by(values),
    ]
