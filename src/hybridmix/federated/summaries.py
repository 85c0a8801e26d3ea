"""What the rows of a site say about a model: sums that can be added."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_array,
    require_instance,
    require_number,
    require_positive,
)
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Dataset, number_labels, read_table
from hybridmix.data.weights import read_weights
from hybridmix.estimators import HybridMixtureClassifier, MixtureDensity
from hybridmix.estimators.blocks import refuse_blocks
from hybridmix.estimators.components import committee_of
from hybridmix.estimators.labelled import check_labels_given
from hybridmix.models.mixture import Mixture
from hybridmix.models.statistics import MixtureStatistics
from hybridmix.objectives import Likelihood, Objective
from hybridmix.problem import Assessment, Problem

Estimator: TypeAlias = MixtureDensity | HybridMixtureClassifier
# What is added up by adding numbers or arrays.
_SUMS = ("parts", "by_class", "wrong", "class_weights", "total_weight", "log_volume")
# What a model knows of the rows of the site that has fitted it, other than parameters.
_OF_ONE_SITE = ("fingerprint_", "stream_", "leaderboard_", "bic_")


@registered
@dataclass(frozen=True, eq=False)
class Summary:
    """Sums over the rows of one site, or of several.

    Attributes
    ----------
    model : str
        Digest of the model that the rows were assessed by.
    parts : ndarray of shape (P,)
        The terms of the objective.
    by_class : ndarray of shape (C + 1,)
        The objective of the rows of each class, and last of the unlabelled rows.
    wrong : float
        Weight of the labelled rows that the model misclassifies, if the objective looks
        at rivals.
    statistics : MixtureStatistics
        Sufficient statistics, weighted by the derivatives of the objective.
    class_weights : ndarray of shape (C,)
        Weights of the labelled rows of each class.
    total_weight : float
        Weight of all rows.
    log_volume : float
        By how much the scales of the columns raised the log-likelihood.
    """

    model: str
    parts: FloatArray
    by_class: FloatArray
    wrong: float
    statistics: MixtureStatistics
    class_weights: FloatArray
    total_weight: float
    log_volume: float

    def check_consistent(self) -> None:
        """Raise ValueError unless these are sums over rows."""
        require_instance("the digest of the model", self.model, str)
        require_array("parts", self.parts, np.shape(self.parts))
        n_classes = np.size(self.class_weights)
        require_array("class_weights", self.class_weights, (n_classes,))
        require((self.class_weights >= 0.0).all(), "class_weights are negative")
        require_array("by_class", self.by_class, (n_classes + 1,))
        require_instance("statistics", self.statistics, MixtureStatistics)
        require_number("the weight of wrong rows", self.wrong, 0.0)
        require_positive("the weight of all rows", self.total_weight)
        require_number("the log volume", self.log_volume)

    def assessment(self) -> Assessment[MixtureStatistics]:
        """Return the sums as solvers see them."""
        return Assessment(self.parts, self.by_class, self.wrong, self.statistics)


def summarise(
    model: Estimator, X: Any, y: Any = None, sample_weight: Any = None
) -> Summary:
    """Summarise what the rows of a site say about a model.

    Parameters
    ----------
    model : MixtureDensity or HybridMixtureClassifier
        The present model. The options of a classifier say what is maximised.
    X : array-like or data frame of shape (n, d)
        The rows of the site.
    y : array-like of shape (n,), default=None
        Their labels, for a classifier.
    sample_weight : array-like of shape (n,), default=None
        A row of weight two counts like two rows.

    Returns
    -------
    summary : Summary
        To send to whoever combines them; see `save_summary`.
    """
    check_model(model)
    refuse_blocks(
        "summarise",
        X,
        "Pass combine a summary of every block that scan(path) yields.",
    )
    table = model.schema_.encode(read_table(model, X), strict=True)
    labels: IntArray = np.zeros(table.n_rows, np.intp)
    if isinstance(model, HybridMixtureClassifier):
        check_labels_given(model, y)
        labels = number_labels(y, model.classes_, model.unlabelled)
        check_consistent_length(table.real, labels)
    weights = read_weights(sample_weight, table.n_rows)
    dataset = Dataset.arrange(table, labels, weights)
    with workers(model.n_jobs) as pool:
        problem = Problem(dataset, objective_of(model), model.model_, pool)
        found = problem.assess(model.model_)
    return Summary(
        digest(model.model_),
        found.parts,
        found.by_class,
        found.wrong,
        found.statistics,
        problem.class_weights,
        problem.total_weight,
        _log_volume(model, dataset),
    )


def combine(summaries: Sequence[Summary]) -> Summary:
    """Return the summary of the rows of all sites.

    Parameters
    ----------
    summaries : sequence of Summary
        One of each site, all of the same model.
    """
    if not summaries:
        raise ValueError("combine needs the summary of at least one site.")
    check_summaries(summaries)
    first, *others = summaries
    total = deepcopy(first.statistics)
    for other in others:
        if other.model != first.model or _shapes(other) != _shapes(first):
            raise ValueError(
                "The summaries are those of different models: every site has to assess "
                "the same one, with the same options."
            )
        other.statistics.check_like(first.statistics)
        total.add(other.statistics)
    sums = {name: sum(getattr(one, name) for one in summaries) for name in _SUMS}
    return replace(first, statistics=total, **sums)


def check_answer(summary: Summary, model: Estimator) -> None:
    """Refuse what is not a summary of this very model."""
    check_summaries([summary])
    if summary.model != digest(model.model_):
        raise ValueError(
            "The summary is that of another model: every site has to assess the one that "
            "it was sent."
        )
    summary.check_consistent()
    objective = objective_of(model)
    n_classes = model.model_.n_classes
    expected = ((len(objective.parts),), (n_classes + 1,), (n_classes,))
    if _shapes(summary) != expected:
        raise ValueError(
            "The summary is that of another objective or of other classes: every site "
            "has to assess the model that it was sent, with its options."
        )
    summary.statistics.check_like(model.model_.zero_statistics())
    if not objective.signed and summary.statistics.counts.min() < 0.0:
        raise ValueError(
            "The summary has components with a negative weight of rows, which no "
            "likelihood gives them."
        )


def check_summaries(summaries: Iterable[object]) -> None:
    """Refuse what is not a summary of rows."""
    for summary in summaries:
        if not isinstance(summary, Summary):
            raise TypeError(
                "Expected what summarise returns for the rows of a site, got "
                f"{type(summary).__name__}."
            )


def _shapes(summary: Summary) -> tuple[tuple[int, ...], ...]:
    return summary.parts.shape, summary.by_class.shape, summary.class_weights.shape


def shared(model: Estimator) -> Estimator:
    """Return a copy of a model to send to other sites, without traces of single rows.

    Fitted models keep a fingerprint of their training rows, by which anyone who has a
    row can check whether it was among them, and statistics of a stream. The copy has
    neither; its parameters are the same.
    """
    check_model(model)
    result = copy(model)
    learned = {k: v for k, v in vars(model).items() if k not in _OF_ONE_SITE}
    result.__dict__ = learned
    return result


def check_model(model: object) -> None:
    """Refuse what is not a fitted model of one mixture."""
    if not isinstance(model, MixtureDensity | HybridMixtureClassifier):
        raise TypeError(
            f"A {type(model).__name__} cannot be trained by sums of several sites: use a "
            "MixtureDensity or a HybridMixtureClassifier."
        )
    check_is_fitted(model)
    if committee_of(model) is not None:
        raise ValueError(
            "The model is a committee of several: use one of its members_, or begin with "
            "partial_fit."
        )


def objective_of(model: Estimator) -> Objective:
    """Return what is maximised, as the options say."""
    if isinstance(model, MixtureDensity):
        return Likelihood()
    options = model._discrimination()
    if options.is_generative:
        return Likelihood(_unlabelled_weight(model))
    n_columns = len(model.schema_.real) + len(model.schema_.categorical)
    return options.blend(n_columns, _unlabelled_weight(model))


def _unlabelled_weight(model: Estimator) -> float:
    """Return what an unlabelled row counts; no site can choose it by its own rows."""
    given = getattr(model, "unlabelled_weight", 1.0)
    return 1.0 if isinstance(given, str) else float(given)


def _log_volume(model: Estimator, dataset: Dataset) -> float:
    """Return by how much scaling raised the log-likelihood of rows."""
    is_labelled = dataset.labels != UNLABELLED
    weights = np.where(is_labelled, 1.0, _unlabelled_weight(model))
    return model.schema_.total_log_volume(dataset.rows, weights * dataset.filled_weights)


def digest(model: Mixture) -> str:
    """Return a text that differs for models that differ."""
    found = hashlib.blake2b(digest_size=16)
    for array in _arrays(model):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _arrays(value: Any) -> list[np.ndarray]:
    """Return all arrays in a dataclass, in the order of its fields."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tuple):
        return [array for one in value for array in _arrays(one)]
    if is_dataclass(value) and not isinstance(value, type):
        return _arrays(tuple(getattr(value, field.name) for field in fields(value)))
    return []
