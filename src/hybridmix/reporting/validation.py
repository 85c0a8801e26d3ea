"""Cross-validation of a model beside others, on the same folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import UNLABELLED
from hybridmix.estimators import HybridMixtureClassifierCV
from hybridmix.progress import announce
from hybridmix.reporting.baselines import baselines, plain_matrix, seen_columns
from hybridmix.reporting.subject import Subject, quiet

# At most so many rows take part, half of them labelled if there are as many.
MAX_ROWS = 5000
_FEWEST_LABELS = 10
# As in scikit-learn, so that one row cannot make the mean loss what it likes.
_SMALLEST = np.finfo(float).eps
METRICS = ("accuracy", "balanced accuracy", "log loss", "ROC AUC")


@dataclass(frozen=True)
class Contender:
    """A model and what it did on held-out rows.

    Attributes
    ----------
    name : str
        Of the model.
    X : table
        All rows that took part, as the model takes them.
    models : list of classifiers
        One for each fold, trained on the other folds.
    probabilities : ndarray of shape (n, C)
        Of the held-out rows.
    scores : dict of str to ndarray of shape (n_folds,)
        By metric.
    """

    name: str
    X: Any
    models: list[Any]
    probabilities: FloatArray
    scores: dict[str, FloatArray]


@dataclass(frozen=True)
class Validation:
    """Folds, and what the model and others did on them.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Rows that were held out, each once, counted among those that took part.
    labels : ndarray of shape (n,)
        Their classes.
    folds : ndarray of shape (n,)
        The folds in which they were.
    n_used : int
        Number of rows that took part, those that only served training included.
    contenders : tuple of Contender
        The model itself, and the others.
    """

    rows: IntArray
    labels: IntArray
    folds: IntArray
    n_used: int
    contenders: tuple[Contender, ...]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    @property
    def ours(self) -> Contender:
        """The model that the report is about."""
        return self.contenders[0]

    def held(self, one: Contender, fold: int, n_most: int) -> tuple[Any, IntArray]:
        """Return the rows of a fold, as a contender takes them, and their classes.

        Of more than the most rows over all folds, the fold has its share.
        """
        from sklearn.utils import _safe_indexing

        places = np.flatnonzero(self.folds == fold)
        n_kept = min(len(places), -(-n_most // self.n_folds))
        # Evenly, since rows may be sorted by class.
        places = places[np.linspace(0, len(places) - 1, n_kept).round().astype(int)]
        return _safe_indexing(one.X, self.rows[places]), self.labels[places]


def obstacle(subject: Subject) -> str | None:
    """Tell why there can be no cross-validation; None if there can."""
    if subject.y is None:
        return "No labels were given, so there is nothing to compare predictions with."
    model, counts = subject.model, subject.class_counts
    n_labelled = int(counts.sum())
    if len(subject.class_names) == 1:
        return "The model knows a single class, so every prediction is the same."
    if np.sum(counts > 1) < 2 or n_labelled < _FEWEST_LABELS:
        return (
            f"Cross-validation needs {_FEWEST_LABELS} labelled rows or more, and two "
            f"classes of two rows or more; there are {n_labelled} labelled rows."
        )
    if not isinstance(model.class_prior, str) and counts.min() == 0:
        return "The model has given class probabilities, but a class has no row here."
    largest = int(counts.max())
    kept = largest - -(-largest // min(subject.n_folds, largest))
    if (model.calibrate and kept < 2) or (model.validation_fraction or 1.0) * kept < 1.0:
        return (
            "The classes have too few labelled rows to hold out a fold and, within the "
            "others, what the options calibrate and validation_fraction ask for."
        )
    return None


def cross_validated(subject: Subject) -> Validation:
    """Train the model and others anew without each fold, and predict the fold."""
    generator = np.random.default_rng(subject.seed)
    used = _rows_used(subject, generator)
    labels = subject.labels[used]
    folds = dealt_folds(labels, subject.n_folds, generator)
    held = np.flatnonzero(folds >= 0)
    contenders = []
    for entrant in _entrants(subject, used, folds):
        models, probabilities = _out_of_fold(entrant, folds, subject.model.classes_)
        probabilities = probabilities[held]
        scores = _fold_scores(labels[held], probabilities, folds[held])
        contenders.append(
            Contender(entrant.name, entrant.X, models, probabilities, scores)
        )
    return Validation(held, labels[held], folds[held], len(used), tuple(contenders))


class _Entrant(NamedTuple):
    """Who takes part.

    Attributes
    ----------
    name : str
        Of the model.
    X, y : table and labels
        Rows that take part, as the model takes them.
    learns_from : ndarray of shape (n,)
        Which of them it can be trained on.
    make : callable
        Returns an unfitted model.
    """

    name: str
    X: Any
    y: np.ndarray
    learns_from: BoolArray
    make: Callable[[], Any]


def _entrants(subject: Subject, used: IntArray, folds: IntArray) -> Iterator[_Entrant]:
    assert subject.y is not None
    all_rows = np.ones(len(used), dtype=bool)
    yield _Entrant(
        "this model",
        subject.part(used),
        subject.y[used],
        all_rows,
        lambda: fresh_model(subject),
    )
    if not subject.baselines:
        return
    matrix = plain_matrix(subject, used)
    is_labelled = subject.labels[used] != UNLABELLED
    columns = seen_columns(matrix, is_labelled, folds)
    # Where there is no label, this is some class, which nobody is trained on.
    y = subject.model.classes_[subject.labels[used]]
    for name, make in baselines(
        subject.schema, columns, int(is_labelled.sum()), subject.seed
    ).items():
        yield _Entrant(name, matrix, y, is_labelled, make)


def dealt_folds(
    labels: IntArray, n_folds: int, generator: np.random.Generator
) -> IntArray:
    """Deal out the rows of each class; -1 for rows that are never held out.

    These are unlabelled rows, and the only row of a class. There are never more folds
    than rows in the largest class.
    """
    counts = np.bincount(labels[labels != UNLABELLED])
    n_folds = min(n_folds, int(counts.max()))
    folds = np.full(len(labels), -1)
    dealt = 0
    for label in np.flatnonzero(counts > 1):
        rows = generator.permutation(np.flatnonzero(labels == label))
        # Going on where the last class ended makes folds of equal size.
        folds[rows] = (dealt + np.arange(len(rows))) % n_folds
        dealt += len(rows)
    return folds


def fresh_model(subject: Subject) -> Any:
    """Return an unfitted model with the options of the one that was given."""
    from sklearn.base import clone

    model = subject.model
    fresh = clone(model).set_params(verbose=0)
    if isinstance(subject.given, HybridMixtureClassifierCV):
        fresh.set_params(n_steps=model.n_steps * _n_stations(subject.given))
    if not isinstance(model.init, str):
        # A fitted model as a start has seen the rows that are to be held out.
        numbers = map(int, model.n_components_)
        components = dict(zip(model.classes_.tolist(), numbers, strict=True))
        fresh.set_params(init="kmeans", n_components=components)
    if model.random_state is None:
        fresh.set_params(random_state=subject.seed)
    return fresh


def _n_stations(search: HybridMixtureClassifierCV) -> int:
    """Return in how many trainings, one upon the other, a search came to its tradeoff."""
    tried = {params["tradeoff"] for params in search.cv_results_["params"]}
    return max(sum(0 < t <= search.best_params_["tradeoff"] for t in tried), 1)


def _rows_used(subject: Subject, generator: np.random.Generator) -> IntArray:
    if subject.n_rows <= MAX_ROWS:
        return np.arange(subject.n_rows)
    labelled = generator.permutation(subject.labelled)
    unlabelled = np.flatnonzero(subject.labels == UNLABELLED)
    # Every class has a row among the first.
    _, firsts = np.unique(subject.labels[labelled], return_index=True)
    labelled = np.concatenate([labelled[firsts], np.delete(labelled, firsts)])
    labelled = labelled[: max(MAX_ROWS // 2, MAX_ROWS - len(unlabelled))]
    n_others = min(len(unlabelled), MAX_ROWS - len(labelled))
    others = generator.choice(unlabelled, n_others, replace=False)
    return np.sort(np.concatenate([labelled, others]))


def _out_of_fold(
    entrant: _Entrant, folds: IntArray, classes: np.ndarray
) -> tuple[list[Any], FloatArray]:
    """Return the models of the folds, and what they predict for the rows held out."""
    from sklearn.utils import _safe_indexing

    probabilities = np.zeros((len(folds), len(classes)))
    models = []
    n_folds = folds.max() + 1
    for fold in range(n_folds):
        announce("cross-validation", fold, n_folds, entrant.name)
        rest = np.flatnonzero(entrant.learns_from & (folds != fold))
        held = np.flatnonzero(folds == fold)
        with quiet():
            model = entrant.make().fit(_safe_indexing(entrant.X, rest), entrant.y[rest])
            predicted = model.predict_proba(_safe_indexing(entrant.X, held))
        places = np.searchsorted(classes, model.classes_)
        probabilities[np.ix_(held, places)] = predicted
        models.append(model)
    announce("cross-validation", n_folds, n_folds, entrant.name)
    return models, probabilities


# Scores -------------------------------------------------------------------------------


def _fold_scores(
    labels: IntArray, probabilities: FloatArray, folds: IntArray
) -> dict[str, FloatArray]:
    scores = [
        _scores(labels[folds == fold], probabilities[folds == fold])
        for fold in range(folds.max() + 1)
    ]
    return dict(zip(METRICS, np.array(scores).T, strict=True))


def _scores(labels: IntArray, probabilities: FloatArray) -> tuple[float, ...]:
    """Return the metrics, in their order, of some rows."""
    right = probabilities.argmax(axis=1) == labels
    present = np.unique(labels)
    recalls = [right[labels == label].mean() for label in present]
    own = np.maximum(probabilities[np.arange(len(labels)), labels], _SMALLEST)
    return (
        float(right.mean()),
        float(np.mean(recalls)),
        float(-np.log(own).mean()),
        _mean_area(labels, probabilities, present),
    )


def _mean_area(labels: IntArray, probabilities: FloatArray, present: IntArray) -> float:
    """Return the mean area under the ROC curves of each class against the others."""
    from sklearn.metrics import roc_auc_score

    if len(present) < 2:
        return float("nan")
    areas = [roc_auc_score(labels == k, probabilities[:, k]) for k in present]
    return float(np.mean(areas))
