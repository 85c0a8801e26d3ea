"""How good a model is on rows that it has not seen, estimated by training it again."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray
from hybridmix.reporting.limits import MOSTLY
from hybridmix.reporting.sequence_subject import subject_of
from hybridmix.tasks import Task
from hybridmix.tasks.base import Cases
from hybridmix.tasks.trials import Trial, cross_validated

# Folds that the rows are dealt into.
_N_FOLDS = 5
# As many folds are held out as fit into this time, but at least one.
_MOST_SECONDS = 10.0
# An interval that reaches this many times as far on one side is written with both ends.
_LOPSIDED = 2.0
# Share of a limit of time that is left for the estimate.
SHARE_OF_SECONDS = 0.25


@dataclass(frozen=True)
class Quality:
    """An estimate from rows that were held out.

    Attributes
    ----------
    metric : str
        What is estimated.
    score : Estimate
        The estimate.
    comparison : str
        What the most frequent class, the mean or a simpler density scores instead.
    figures : dict of str to float
        The same by the keys of JSON.
    rival : str
        What the model is compared with.
    floor : float
        What that scores.
    unit, units : str
        What was scored, in one word, and several of them: rows with a target and so on.
    n_scored, n_trained : int
        How many were scored, and about how many each model was trained on.
    n_available : int
        How many there are in the table.
    n_models : int
        How many models were trained for it.
    keeps_choice : bool
        Whether options were chosen with the help of the rows that were held out.
    """

    metric: str
    score: Estimate
    comparison: str
    figures: dict[str, float]
    rival: str
    floor: float
    unit: str
    units: str
    n_scored: int
    n_trained: int
    n_available: int
    n_models: int
    keeps_choice: bool

    @property
    def values(self) -> dict[str, Any]:
        """The same by the keys of JSON."""
        return {
            "metric": self.metric,
            "value": self.score.value,
            "interval": [self.score.low, self.score.high],
            **self.figures,
            "scored": self.n_scored,
            "trained": self.n_trained,
            "models": self.n_models,
            "options_chosen_on_scored": self.keeps_choice,
        }

    @property
    def lines(self) -> list[str]:
        """The same in words: the estimate, and how it came about."""
        score = self.score
        spread = max(self._sides)
        digits = _digits(spread)
        value, low, high = (
            f"{own:.{digits}f}" for own in (score.value, score.low, score.high)
        )
        if self._is_lopsided:
            value += f" ({low} to {high})"
        else:
            value += f" ± {spread:.{digits}f}"
        name = self.metric[0].upper() + self.metric[1:]
        lines = [f"{name} about {value} on new {self.unit}s; {self.comparison}"]
        if score.low <= self.floor:
            lines.append(f"By these {self.unit}s, it may be no better than {self.rival}")
        return [*lines, f"({self._origin})"]

    @property
    def _sides(self) -> tuple[float, float]:
        """How far the interval reaches, down and up."""
        return self.score.value - self.score.low, self.score.high - self.score.value

    @property
    def _is_lopsided(self) -> bool:
        """Whether an interval ends soon on one side, such as above an accuracy of one."""
        return max(self._sides) > _LOPSIDED * min(self._sides)

    @property
    def _origin(self) -> str:
        """Which rows were scored by which models."""
        count = f"{self.n_scored:,} of {self.n_available:,} {self.units}"
        models = (
            "by a model that was trained without them"
            if self.n_models == 1
            else f"by {self.n_models} models, each trained without those it scored"
        )
        sign = "in brackets is" if self._is_lopsided else "± is"
        text = f"{count}, scored {models}; {sign} the 95 % interval"
        if self.keeps_choice:
            text += "; the options were chosen with all rows, which flatters a little"
        if self.n_trained < self.n_available / 2:
            text += f"; trained on {self.n_trained:,} only, so the model may be better"
        return text


def _digits(spread: float) -> int:
    """Return how many decimals are worth showing."""
    if not 0.0 < spread < math.inf:
        return 2
    return max(2, -math.floor(math.log10(spread)))


def estimated(
    given: Any,
    X: Any,
    y: np.ndarray | None,
    weights: FloatArray | None,
    seconds: float,
    seed: int,
) -> Quality | str:
    """Estimate how good a fitted model is on rows that it has not seen.

    Models like it are trained without a fifth of the rows each, and score these. There
    are as many of them, at most five, as fit into ten seconds, but at least one.

    Parameters
    ----------
    given : estimator
        The fitted model, or the search that has found it.
    X, y, weights : table, labels or targets, sample weights
        What it was fitted to.
    seconds : float
        How long that took.
    seed : int
        Seed of the folds.

    Returns
    -------
    quality : Quality or str
        The estimate, or why there is none.
    """
    with_baselines = y is None
    cases = subject_of(_hurried(given), X, y, _N_FOLDS, with_baselines, seed)
    task = cases.task
    obstacle = task.obstacle(cases) or task.fold_obstacle(cases)
    if obstacle is not None:
        return obstacle
    most = _MOST_SECONDS / max(seconds, 1e-3)
    trial = cross_validated(
        task,
        cases,
        with_baselines=with_baselines,
        most_folds=1 if _has_limit(given) else int(np.clip(most, 1, _N_FOLDS)),
        weights=weights,
    )
    return _summary(task, cases, trial)


def _has_limit(model: Any) -> bool:
    """Return whether a number of seconds limits the search of a model."""
    return not isinstance(getattr(model, "effort", ""), str)


def _hurried(model: Any) -> Any:
    """Return a model whose like may take as long as is left for the estimate.

    The fit has had its share of the seconds, and the estimate is to have the rest.
    """
    if not _has_limit(model):
        return model
    share = SHARE_OF_SECONDS / (1.0 - SHARE_OF_SECONDS)
    return copy(model).set_params(effort=share * model.effort)


def _summary(task: Task, cases: Cases, trial: Trial) -> Quality:
    """Return the figures of a trial."""
    return Quality(
        **_compared(task, trial),
        unit=task.unit,
        units=task.row[1],
        n_scored=len(trial.rows),
        n_trained=trial.n_trained,
        n_available=int(np.sum(task.groups(cases) >= 0)),
        n_models=trial.n_folds,
        keeps_choice=task.keeps_choice(cases),
    )


def _compared(task: Task, trial: Trial) -> dict[str, Any]:
    """Return the score of a trial, and what it is compared with in words and figures."""
    truth = trial.truth
    scores = task.scores(truth, trial.ours.outputs)
    if task.target == "classes":
        share = float(np.bincount(truth).max() / len(truth))
        balanced = scores["balanced accuracy"].value
        words = f"most frequent class {share:.2f}"
        if share >= MOSTLY:
            words += f"; balanced accuracy {balanced:.2f}"
        metric, rival, floor = "accuracy", "the most frequent class", share
        figures = {"most_frequent_class": share, "balanced_accuracy": balanced}
    elif task.target == "numbers":
        error, usual = scores["RMSE"].value, float(np.std(truth))
        words = f"RMSE {error:.4g}, of the mean alone {usual:.4g}"
        metric, rival, floor = "R²", "the mean", 0.0
        figures = {"rmse": error, "rmse_of_mean": usual}
    else:
        [metric] = task.headline
        rival = trial.contenders[1].name
        floor = task.scores(truth, trial.contenders[1].outputs)[metric].value
        words = f"{rival} {floor:.2f}"
        figures = {rival.replace(" ", "_"): floor}
    return {
        "metric": metric,
        "score": scores[metric],
        "comparison": words,
        "figures": figures,
        "rival": rival,
        "floor": floor,
    }
