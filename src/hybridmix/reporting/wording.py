"""What figures of a trial mean, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hybridmix.data.fingerprint import Origin
from hybridmix.estimators.fitted_network import FittedNetwork
from hybridmix.estimators.network_regressor import MixtureNetworkRegressor
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.markup import NONE, count, fixed, number, with_deviation
from hybridmix.tasks.base import Metric
from hybridmix.tasks.trials import Contender, Trial

SEVERAL = "mean ± standard deviation over the folds"
SINGLE = "in brackets the 95 % interval"


def short_name(findings: Findings, trial: Trial) -> str:
    """Say in a few words which model was scored on which rows."""
    units = f"{findings.subject.task.unit}s"
    if trial.is_retrained:
        return f"retrained, held-out {units}"
    if findings.subject.provenance.origin == Origin.UNKNOWN:
        return f"as fitted, {units} perhaps seen"
    return f"as fitted, unseen {units}"


def full_name(findings: Findings, trial: Trial) -> str:
    """Say which model was scored on which rows."""
    task = findings.subject.task
    n_rows = count(len(trial.rows), *task.row)
    if trial.is_retrained:
        return (
            f"The model retrained on about {count(trial.n_trained, task.unit)}, by "
            f"cross-validation ({count(trial.n_folds, 'fold')}, {n_rows} held out)"
        )
    if findings.subject.provenance.origin == Origin.UNKNOWN:
        return f"The model as fitted, on {n_rows} that it may have seen in training"
    return f"The model as fitted, on {n_rows} it has not seen"


def score_text(one: Contender, metric: Metric) -> str:
    """Write a score with its uncertainty; a dash if there is none."""
    values = one.values(metric.name)
    mean, written = one.mean(metric.name), score_number(metric)
    if not math.isfinite(mean):
        return NONE
    if len(values) > 1:
        deviation = float(values.std(ddof=1))
        if metric.has_unit:
            return with_deviation(mean, deviation)
        return f"{written(mean)} ± {written(deviation)}"
    score = one.scores[0][metric.name]
    return f"{written(score.value)} ({written(score.low)} to {written(score.high)})"


def score_number(metric: Metric) -> Callable[[float], str]:
    """Return how a score is written: with a fixed number of digits if it has no unit."""
    return number if metric.has_unit else fixed


def scored_rows(findings: Findings) -> str:
    """Name the rows of the more telling trial in the middle of a sentence."""
    n_rows, units = f"{len(findings.trial.rows):,}", f"{findings.subject.task.unit}s"
    if findings.trial.is_retrained:
        return f"{n_rows} held-out {units}, as predicted by the models of the folds"
    if findings.subject.provenance.origin == Origin.UNKNOWN:
        return f"{n_rows} {units} that the model as fitted may have seen in training"
    return f"{n_rows} {units} that the model as fitted has not seen"


def hides(model: Any) -> str:
    """Say what a model does about cells that it does not see."""
    if isinstance(model, FittedNetwork | MixtureNetworkRegressor):
        return "predicts from the expected features of a row"
    return "integrates out what it does not see, exactly"


def drawn_from(trial: Trial, n_most: int) -> str:
    """Say that only some of the rows are used; nothing if all are."""
    n_rows = len(trial.rows)
    kind = "held-out rows" if trial.is_retrained else "scored rows"
    return f"{n_most:,} of {n_rows:,} {kind} are used here." if n_rows > n_most else ""
