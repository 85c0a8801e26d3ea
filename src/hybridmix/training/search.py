"""The order of a search: settings, paths that share their beginning, tables of scores."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix.training.covariances import COVARIANCE_TYPES

# A value for each of the options that are searched.
Setting = dict[str, Any]

SEARCHED = (
    "covariance_type",
    "n_factors",
    "covariance_prior",
    "n_components",
    "margin",
    "tradeoff",
)
# What settings with these in common share is where EM ends.
_STARTS = ("covariance_type", "n_factors", "covariance_prior", "n_components")


@dataclass(frozen=True)
class Score:
    """What one setting reached on one fold."""

    score: float
    fit_seconds: float
    score_seconds: float


Results = list[tuple[Setting, list[Score]]]


def settings_of(candidates: Mapping[str, list[Any]]) -> list[Setting]:
    """Return all combinations; numbers of factors vary only where they matter."""
    settings = [
        dict(zip(SEARCHED, values, strict=True))
        for values in itertools.product(*(candidates[name] for name in SEARCHED))
    ]
    first = candidates["n_factors"][0]
    return [
        setting
        for setting in settings
        if setting["n_factors"] == first
        or COVARIANCE_TYPES[setting["covariance_type"]].needs_subspace
    ]


def bundles(settings: list[Setting]) -> list[list[list[Setting]]]:
    """Group settings that share EM, and in them paths along ascending tradeoffs."""
    found: dict[str, dict[str, list[Setting]]] = {}
    for setting in settings:
        start = repr([setting[name] for name in _STARTS])
        paths = found.setdefault(start, {})
        paths.setdefault(repr(setting["margin"]), []).append(setting)
    return [
        [sorted(path, key=lambda setting: setting["tradeoff"]) for path in paths.values()]
        for paths in found.values()
    ]


def path_to(setting: Setting, tradeoffs: list[float]) -> list[Setting]:
    """Return the settings of smaller tradeoffs, in ascending order, and the last one."""
    below = sorted(value for value in set(tradeoffs) if value < setting["tradeoff"])
    return [{**setting, "tradeoff": value} for value in [*below, setting["tradeoff"]]]


def best_index(results: Results) -> int:
    """Return the place of the highest mean score; scores that are NaN come last."""
    means = np.array([np.mean([s.score for s in own]) for _, own in results])
    if np.isnan(means).all():
        raise ValueError(
            "Every setting of the search scored NaN: check the scorer and the folds."
        )
    return int(np.nanargmax(means))


def tabulated(results: Results) -> dict[str, Any]:
    """Return scores and times of the settings, as `GridSearchCV` does."""
    scores = np.array([[s.score for s in own] for _, own in results])
    means = scores.mean(axis=1)
    settings = [setting for setting, _ in results]
    table: dict[str, Any] = {"params": settings}
    for name in SEARCHED:
        table[f"param_{name}"] = _masked_objects([s[name] for s in settings])
    for fold, of_fold in enumerate(scores.T):
        table[f"split{fold}_test_score"] = of_fold
    table["mean_test_score"] = means
    table["std_test_score"] = scores.std(axis=1)
    worst_last = np.where(np.isnan(means), -np.inf, means)
    better = worst_last[None, :] > worst_last[:, None]
    table["rank_test_score"] = 1 + better.sum(axis=1, dtype=np.int32)
    for name in ("fit", "score"):
        seconds = [[getattr(s, f"{name}_seconds") for s in own] for _, own in results]
        table[f"mean_{name}_time"] = np.mean(seconds, axis=1)
        table[f"std_{name}_time"] = np.std(seconds, axis=1)
    return table


def _masked_objects(values: list[object]) -> np.ma.MaskedArray:
    """Return a masked array of any objects, with nothing masked."""
    column = np.ma.MaskedArray(np.empty(len(values), dtype=object), mask=False)
    for row, value in enumerate(values):
        column[row] = value
    return column
