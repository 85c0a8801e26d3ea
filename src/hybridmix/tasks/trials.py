"""Trials: a model as it is, or retrained by folds and compared with others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray, IntArray
from hybridmix.progress import announce
from hybridmix.tasks.base import Cases, Entrant, Task, dealt_folds, quiet

# At most this many rows take part in a cross-validation, half of them labelled if there
# are that many; and this many are scored by a model that is not retrained.
MAX_ROWS = 5000
MAX_SCORED = 100_000


@dataclass(frozen=True)
class Contender:
    """A model and what it did on rows that it was not trained on.

    Attributes
    ----------
    name : str
        Name of the model.
    X : table
        All rows that took part, as the model takes them.
    models : list of estimators
        One for each fold.
    outputs : ndarray of shape (n, ...)
        What the models say about the scored rows.
    scores : list of dict of str to Estimate
        The metrics by name, for each fold.
    """

    name: str
    X: Any
    models: list[Any]
    outputs: FloatArray
    scores: list[dict[str, Estimate]]

    def values(self, metric: str) -> FloatArray:
        """Return a metric in all folds."""
        return np.array([scores[metric].value for scores in self.scores])

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the folds."""
        return float(self.values(metric).mean())


@dataclass(frozen=True)
class Trial:
    """Rows that are scored, and what the model and perhaps others did on them.

    Attributes
    ----------
    is_retrained : bool
        Whether models were retrained for each fold, or the model was taken as it is and
        there is a single fold.
    rows : ndarray of shape (n,)
        Rows that are scored, counted among those that took part.
    truth : ndarray of shape (n,) or (n, t)
        What they are compared with: numbers of their classes, targets, or zeros.
    folds : ndarray of shape (n,)
        The folds in which they are.
    used : ndarray of shape (n_used,)
        Rows of the table that took part, those that only served training included.
    n_available : int
        Number of rows from which these were drawn.
    contenders : tuple of Contender
        The model itself, and the others.
    """

    is_retrained: bool
    rows: IntArray
    truth: np.ndarray
    folds: IntArray
    used: IntArray
    n_available: int
    contenders: tuple[Contender, ...]

    @property
    def n_used(self) -> int:
        """Number of rows that took part."""
        return len(self.used)

    @property
    def table_rows(self) -> IntArray:
        """Numbers that the scored rows have in the table, (n,)."""
        return self.used[self.rows]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    @property
    def n_trained(self) -> int:
        """About how many rows the models of the folds were trained on."""
        return self.n_used - round(len(self.rows) / self.n_folds)

    @property
    def ours(self) -> Contender:
        """The model that is judged."""
        return self.contenders[0]

    def for_target(self, task: Task, target: int) -> Trial:
        """Return what the trial says about one of several targets.

        Rows without this target are left out, and folds that have no others.
        """
        own = self.truth[:, target]
        known = np.flatnonzero(~np.isnan(own))
        kept, folds = np.unique(self.folds[known], return_inverse=True)
        truth = own[known]
        contenders = []
        for one in self.contenders:
            outputs = one.outputs[known, target]
            contenders.append(
                replace(
                    one,
                    models=[one.models[fold].for_target(target) for fold in kept],
                    outputs=outputs,
                    scores=_scores_by_fold(task, truth, outputs, folds),
                )
            )
        return replace(
            self,
            rows=self.rows[known],
            truth=truth,
            folds=folds,
            contenders=tuple(contenders),
        )

    def held(self, one: Contender, fold: int, n_most: int) -> tuple[Any, np.ndarray]:
        """Return the rows of a fold, as a contender takes them, and their truth.

        All folds together give at most about `n_most` rows, each of them its share.
        """
        from sklearn.utils import _safe_indexing

        places = np.flatnonzero(self.folds == fold)
        n_kept = min(len(places), -(-n_most // self.n_folds))
        # Evenly, since rows may be sorted by class.
        places = places[np.linspace(0, len(places) - 1, n_kept).round().astype(int)]
        return _safe_indexing(one.X, self.rows[places]), self.truth[places]


def as_given(task: Task, cases: Cases, rows: IntArray) -> Trial:
    """Score a model as it is on some rows; those without a target are left out."""
    rows = rows[task.groups(cases)[rows] >= 0]
    n_available = len(rows)
    if len(rows) > MAX_SCORED:
        generator = np.random.default_rng(cases.seed)
        rows = np.sort(generator.choice(rows, MAX_SCORED, replace=False))
    X, truth = cases.part(rows), cases.truth[rows]
    with quiet():
        outputs = task.outputs(cases, cases.model, X, truth)
    scores = [task.scores(truth, outputs)]
    ours = Contender("this model", X, [cases.model], outputs, scores)
    folds, places = np.zeros(len(rows), dtype=np.intp), np.arange(len(rows))
    return Trial(False, places, truth, folds, rows, n_available, (ours,))


def cross_validated(
    task: Task,
    cases: Cases,
    *,
    with_baselines: bool = True,
    most_folds: int | None = None,
    weights: FloatArray | None = None,
) -> Trial:
    """Retrain the model and others without each fold, and score them on the fold.

    Parameters
    ----------
    task : Task
        What the model is for.
    cases : Cases
        The model and rows.
    with_baselines : bool, default=True
        Whether other models take part.
    most_folds : int or None, default=None
        How many of the folds are held out, one after the other; None for all of them.
        Rows of the others always serve training.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights that the model is trained with.
    """
    generator = np.random.default_rng(cases.seed)
    groups = task.groups(cases)
    used = _rows_used(groups, generator)
    folds = dealt_folds(groups[used], cases.n_folds, generator)
    if most_folds is not None:
        folds[folds >= most_folds] = -1
    entrants = [
        Entrant(
            "this model",
            cases.part(used),
            None if cases.y is None else cases.y[used],
            np.ones(len(used), dtype=bool),
            lambda: task.fresh_model(cases),
            None if weights is None else weights[used],
        )
    ]
    if with_baselines:
        entrants += task.baselines(cases, used, folds)
    held = np.flatnonzero(folds >= 0)
    truth = cases.truth[used]
    truth_held, folds_held = truth[held], folds[held]
    contenders = []
    for entrant in entrants:
        models, outputs = _out_of_fold(task, cases, entrant, folds, truth)
        outputs = outputs[held]
        scores = _scores_by_fold(task, truth_held, outputs, folds_held)
        contenders.append(Contender(entrant.name, entrant.X, models, outputs, scores))
    return Trial(True, held, truth_held, folds_held, used, len(groups), tuple(contenders))


def _scores_by_fold(
    task: Task, truth: np.ndarray, outputs: FloatArray, folds: IntArray
) -> list[dict[str, Estimate]]:
    return [
        task.scores(truth[folds == fold], outputs[folds == fold])
        for fold in range(folds.max() + 1)
    ]


def _rows_used(groups: IntArray, generator: np.random.Generator) -> IntArray:
    if len(groups) <= MAX_ROWS:
        return np.arange(len(groups))
    scored = generator.permutation(np.flatnonzero(groups >= 0))
    others = np.flatnonzero(groups < 0)
    # Every group has a row among the first.
    _, firsts = np.unique(groups[scored], return_index=True)
    scored = np.concatenate([scored[firsts], np.delete(scored, firsts)])
    scored = scored[: max(MAX_ROWS // 2, MAX_ROWS - len(others))]
    n_others = min(len(others), MAX_ROWS - len(scored))
    others = generator.choice(others, n_others, replace=False)
    return np.sort(np.concatenate([scored, others]))


def _out_of_fold(
    task: Task, cases: Cases, entrant: Entrant, folds: IntArray, truth: np.ndarray
) -> tuple[list[Any], FloatArray]:
    """Return the models of the folds, and what they say about the rows held out."""
    from sklearn.utils import _safe_indexing

    found: FloatArray | None = None
    models = []
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        announce("cross-validation", fold, n_folds, entrant.name)
        rest = np.flatnonzero(entrant.learns_from & (folds != fold))
        held = np.flatnonzero(folds == fold)
        y = None if entrant.y is None else entrant.y[rest]
        own = {} if entrant.weights is None else {"sample_weight": entrant.weights[rest]}
        with quiet():
            model = entrant.make().fit(_safe_indexing(entrant.X, rest), y, **own)
            rows = _safe_indexing(entrant.X, held)
            part = task.outputs(cases, model, rows, truth[held])
        if found is None:
            found = np.zeros((len(folds), *part.shape[1:]))
        found[held] = part
        models.append(model)
    announce("cross-validation", n_folds, n_folds, entrant.name)
    assert found is not None
    return models, found
