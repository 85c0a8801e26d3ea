"""Scoring of the settings of a search, in processes."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hybridmix._parallel import deaf_processes
from hybridmix._typing import FloatArray
from hybridmix.data import encode_labels
from hybridmix.estimators.classifier import HybridMixtureClassifier
from hybridmix.estimators.options import end_if_interrupted
from hybridmix.progress import announce, listening
from hybridmix.training.search import (
    Results,
    Score,
    Setting,
    best_index,
    bundles,
    path_to,
)


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to score, as tables of the user's kind."""

    X: Any
    y: np.ndarray
    weights: FloatArray | None
    X_held: Any
    y_held: np.ndarray


class SettingScores:
    """Scores settings on all folds, in processes.

    Parameters
    ----------
    template : HybridMixtureClassifier
        Has the options that are not searched.
    folds : list of Fold
        What settings are scored on.
    scorer : callable
        What scores.
    n_jobs : int or None
        Number of processes.
    results : list
        Settings with their scores on all folds are appended to it.
    """

    def __init__(
        self,
        template: HybridMixtureClassifier,
        folds: list[Fold],
        scorer: Any,
        n_jobs: int | None,
        results: Results,
    ) -> None:
        self._template = template
        self._folds = folds
        self._scorer = scorer
        self._n_jobs = n_jobs
        self._results = results

    def run(self, settings: list[Setting]) -> bool:
        """Score settings; return whether the user stopped it before the end."""
        scored, interrupted = self._scored(settings)
        self._results.extend(scored)
        return interrupted

    def run_by_class(self, candidates: dict[str, list[Any]]) -> bool:
        """Change the number of components of one class after the other."""
        unlabelled = self._template.unlabelled
        known = [encode_labels(fold.y, unlabelled)[0] for fold in self._folds]
        classes = np.unique(np.concatenate(known)).tolist()
        for label in classes:
            changed = self._changed(label, classes, candidates["n_components"])
            # They need the way to their tradeoff, without its stations in the results.
            ways = [path_to(setting, candidates["tradeoff"]) for setting in changed]
            scored, interrupted = self._scored(list(itertools.chain(*ways)))
            if interrupted:
                return True
            self._results.extend(result for result in scored if result[0] in changed)
        return False

    def _changed(
        self, label: Any, classes: list[Any], candidates: list[Any]
    ) -> list[Setting]:
        """Return the best setting with other numbers of components of one class."""
        best, _ = self._results[best_index(self._results)]
        present = best["n_components"]
        if isinstance(present, int | np.integer):
            present = dict.fromkeys(classes, int(present))
        if not isinstance(present, dict):
            return []  # BIC has chosen for each class already
        numbers = {k for k in candidates if isinstance(k, int | np.integer)}
        return [
            {**best, "n_components": {**present, label: k}}
            for k in sorted(numbers - {present[label]})
        ]

    def _scored(self, settings: list[Setting]) -> tuple[Results, bool]:
        """Return the settings scored on all folds, and whether any is missing."""
        from sklearn.utils.parallel import Parallel, delayed

        groups, folds = bundles(settings), self._folds
        tasks = [(group, fold) for group in groups for fold in folds]
        parallel = Parallel(n_jobs=self._n_jobs, return_as="generator")
        done: list[list[Score]] = []
        try:
            with deaf_processes(self._n_jobs):
                scores = parallel(
                    delayed(_score_bundle)(self._template, group, fold, self._scorer)
                    for group, fold in tasks
                )
            for finished in scores:
                done.append(finished)
                announce("search", len(done), len(tasks))
        except KeyboardInterrupt:
            if len(done) < len(folds) and not self._results:
                raise
        results: Results = []
        for number, group in enumerate(groups):
            own = done[number * len(folds) : (number + 1) * len(folds)]
            if len(own) == len(folds):
                flat = itertools.chain.from_iterable(group)
                by_setting = map(list, zip(*own, strict=True))
                results.extend(zip(flat, by_setting, strict=True))
        return results, len(done) < len(tasks)


def models_along(
    template: HybridMixtureClassifier,
    paths: list[list[Setting]],
    X: Any,
    y: Any,
    weights: Any,
) -> Iterator[tuple[Setting, HybridMixtureClassifier, float]]:
    """Train all settings of a bundle; yield setting, model and seconds.

    The paths begin with the same EM, and each model goes on from the one before it. A
    model whose training the user has interrupted is the last one.
    """
    began = time.perf_counter()
    start = clone(template).set_params(**paths[0][0])
    start.set_params(objective="likelihood", calibrate=False).fit(X, y, weights)
    if start.interrupted_:
        yield paths[0][0], start, time.perf_counter() - began
        return
    template = clone(template).set_params(unlabelled_weight=start.unlabelled_weight_)
    for path in paths:
        before = start
        for params in path:
            objective = "hybrid" if params["tradeoff"] else "likelihood"
            model = clone(template).set_params(**params, objective=objective)
            before = model.set_params(init=before).fit(X, y, weights)
            model.set_params(init=template.init)
            model.bic_ = start.bic_
            yield params, model, time.perf_counter() - began
            if model.interrupted_:
                return
            began = time.perf_counter()


def _score_bundle(
    template: HybridMixtureClassifier,
    paths: list[list[Setting]],
    fold: Fold,
    scorer: Any,
) -> list[Score]:
    scores = []
    with listening(None), warnings.catch_warnings():
        # Settings that do not suit the table show in their scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _, model, seconds in models_along(
            template, paths, fold.X, fold.y, fold.weights
        ):
            end_if_interrupted(model)
            began = time.perf_counter()
            score = float(scorer(model, fold.X_held, fold.y_held))
            scores.append(Score(score, seconds, time.perf_counter() - began))
    return scores
