"""The same classifier along ascending tradeoffs, trained while the page is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from hybridmix.data import Schema
from hybridmix.estimators import HybridMixtureClassifier
from hybridmix.estimators.components import committee_of
from hybridmix.estimators.scores import models_along
from hybridmix.explorer.plain import QuestionError
from hybridmix.explorer.subject import Explored
from hybridmix.tasks.base import quiet
from hybridmix.training.search import SEARCHED, Setting

TRADEOFFS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)
# More rows than these would make somebody wait who has opened a page.
_MOST_ROWS = 5000


class TradeoffPath:
    """Classifiers from the likelihood to large tradeoffs, each begun where one ends.

    Fitted models keep only the end of their path, so that it is trained anew on the rows
    of the page, in a thread.

    Parameters
    ----------
    explored : Explored
        The model and labelled rows.
    """

    def __init__(self, explored: Explored) -> None:
        self._explored = explored
        self._stations: list[Explored] = []
        self._thread: threading.Thread | None = None
        self._problem: str | None = None

    @property
    def is_offered(self) -> bool:
        """Whether the model has tradeoffs, and the rows have labels to train with."""
        explored = self._explored
        if explored.is_drawn or explored.subject.y is None:
            return False
        return single_mixture(explored.model) is not None

    def start(self) -> None:
        """Begin to train, unless this was done before."""
        if not self.is_offered:
            raise QuestionError(
                "This model has no tradeoffs, or the rows have no labels."
            )
        if self._thread is None:
            self._thread = threading.Thread(target=self._train, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Return when training is over."""
        if self._thread is not None:
            self._thread.join()

    def status(self) -> dict[str, Any]:
        """Return how far training is."""
        is_busy = self._thread is not None and self._thread.is_alive()
        return {
            "is_offered": self.is_offered,
            "is_busy": is_busy,
            "n_done": len(self._stations),
            "tradeoffs": TRADEOFFS,
            "problem": self._problem,
        }

    def station(self, number: Any) -> Explored:
        """Return what is explored at a station; None is the model itself."""
        if number is None:
            return self._explored
        if isinstance(number, bool) or number not in range(len(self._stations)):
            raise QuestionError(
                f"'station' must be null or below {len(self._stations)}, the number of "
                f"tradeoffs that are trained; it is {number!r}."
            )
        return self._stations[number]

    def _train(self) -> None:
        try:
            with quiet():
                for model in self._models():
                    self._stations.append(at_model(self._explored, model))
        except Exception as error:
            # It would be lost in the thread: the page shows it instead.
            self._problem = f"{type(error).__name__}: {error}"

    def _models(self) -> Iterator[HybridMixtureClassifier]:
        subject = self._explored.subject
        template = single_mixture(subject.model)
        assert template is not None
        assert subject.y is not None
        setting = {name: getattr(template, name) for name in SEARCHED}
        path: list[Setting] = [{**setting, "tradeoff": value} for value in TRADEOFFS]
        rows = np.arange(subject.n_rows)
        if len(rows) > _MOST_ROWS:
            generator = np.random.default_rng(subject.seed)
            rows = np.sort(generator.choice(rows, _MOST_ROWS, replace=False))
        X, y = subject.part(rows), subject.y[rows]
        for _, model, _ in models_along(clone(template), [path], X, y, None):
            yield model


def single_mixture(model: Any) -> HybridMixtureClassifier | None:
    """Return a classifier whose options are those of one mixture for each class.

    Of a committee, this is the mixture with the largest share; None if there is none.
    """
    alone = [] if committee_of(model) is not None else [model]
    members = vars(model).get("members_", alone)
    mixtures = (one for one in members if type(one) is HybridMixtureClassifier)
    return next(mixtures, None)


def at_model(explored: Explored, model: Any) -> Explored:
    """Return the same rows with another model, which must know the same columns."""
    subject = explored.subject
    if _columns(model.schema_) != _columns(explored.schema):
        raise ValueError(
            "The rows of this page have other columns or categories than those that the "
            "model was trained on. Open the page with the training table."
        )
    with quiet():
        table = model.schema_.encode(subject.columns)
    return Explored(replace(subject, given=model, model=model, table=table))


def _columns(schema: Schema) -> tuple[Any, ...]:
    return schema.real, schema.categorical, schema.categories
