"""Training by sums over the rows of several sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, cast

import numpy as np

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.estimators import HybridMixtureClassifier
from hybridmix.estimators.options import warn_of
from hybridmix.federated.summaries import (
    Estimator,
    Summary,
    check_answer,
    check_model,
    check_summaries,
    combine,
    digest,
    objective_of,
    shared,
)
from hybridmix.models.base import Model
from hybridmix.models.mixture import Mixture
from hybridmix.models.statistics import MixtureStatistics
from hybridmix.problem import Assessment, Problem
from hybridmix.solvers import Solver
from hybridmix.training.record import em_messages

Site = Callable[[Estimator], Summary]


def step(model: Estimator, summary: Summary) -> Estimator:
    """Return the model after one iteration of EM.

    Parameters
    ----------
    model : MixtureDensity or HybridMixtureClassifier
        The model that the sites have assessed, with the likelihood as its objective.
    summary : Summary
        Of all sites; see `combine`.

    Returns
    -------
    model : MixtureDensity or HybridMixtureClassifier
        The next model, for the sites to assess.
    """
    check_model(model)
    if objective_of(model).signed:
        raise ValueError(
            "step is an iteration of EM, which maximises the likelihood: set "
            "objective='likelihood', or use train."
        )
    check_answer(summary, model)
    following = model.model_.maximised(summary.statistics, _learns_class_prior(model))
    return _published(model, following, {})


def train(model: Estimator, sites: Sequence[Site]) -> Estimator:
    """Train a model on the rows of several sites.

    EM for a density and for a classifier whose objective is the likelihood; the solver of
    the classifier's options otherwise, from the model as it is. The result is that of the
    same solver on one table that has the rows of all sites.

    Parameters
    ----------
    model : MixtureDensity or HybridMixtureClassifier
        Where to begin. Its options say what is maximised, and when to stop.
    sites : sequence of callables
        Each is given a model and returns what `summarise` says at its site; how model
        and summary travel is its own business.

    Returns
    -------
    model : MixtureDensity or HybridMixtureClassifier
        The trained model.
    """
    check_model(model)
    problem = _SitesProblem(model, sites)
    solver: Solver = model._estimation().solver()
    if isinstance(model, HybridMixtureClassifier):
        options = model._discrimination()
        solver = solver if options.is_generative else options.chosen_solver()
    solution = solver.solve(cast(Problem, problem), model.model_)
    history = problem.in_units(solution.traces)
    found = {
        "converged_": solution.converged,
        "interrupted_": solution.interrupted,
        "n_iter_": solution.n_iter,
        "trace_": history["value"],
    }
    if isinstance(model, HybridMixtureClassifier):
        found["history_"] = history
    max_iter = getattr(solver, "max_iter", solution.n_iter)
    if not objective_of(model).signed:
        warn_of(em_messages(solution.converged, solution.interrupted, 0, max_iter))
    return _published(model, solution.model, found)


def resume(model: Estimator, summaries: Sequence[Summary]) -> tuple[Estimator, bool]:
    """Go on with a training by files, as far as the sites have answered.

    What `train` does is determined by what sites answer. So it is done anew, with the
    answers that are there in place of the sites, up to the first model that no site has
    assessed. This takes next to no time, since no rows are read, and nothing but
    summaries has to be kept between rounds.

    Parameters
    ----------
    model : MixtureDensity or HybridMixtureClassifier
        Where training began, the same in every round.
    summaries : sequence of Summary
        Of all sites (see `combine`), one for every model that they have assessed; none
        in the first round.

    Returns
    -------
    model : MixtureDensity or HybridMixtureClassifier
        For the sites to assess next, or the trained model.
    finished : bool
        Whether the training has ended.
    """
    check_summaries(summaries)
    known = {summary.model: summary for summary in summaries}

    def answer(asked: Estimator) -> Summary:
        found = known.get(digest(asked.model_))
        if found is None:
            raise _UnansweredError(asked)
        return found

    try:
        return train(model, [answer]), True
    except _UnansweredError as question:
        return question.model, False


class _UnansweredError(Exception):
    """No site has assessed this model."""

    def __init__(self, model: Estimator) -> None:
        super().__init__()
        self.model = model


class _SitesProblem:
    """The sum of an objective over the rows of all sites, as solvers see it.

    Attributes
    ----------
    objective, learn_class_prior, class_weights, total_weight
        As in `Problem`.
    """

    def __init__(self, model: Estimator, sites: Sequence[Site]) -> None:
        self._model, self._sites = model, list(sites)
        self.objective = objective_of(model)
        self.learn_class_prior = _learns_class_prior(model)
        self._last = self._summary(model.model_)
        self.class_weights = self._last.class_weights
        self.total_weight = self._last.total_weight

    @property
    def labelled_weight(self) -> float:
        """Sum of the sample weights of the labelled rows."""
        return float(self.class_weights.sum())

    def can_separate(self, model: Model) -> bool:
        """Return False: a round takes the sites the same time for any classes."""
        return False

    def assess(
        self, model: Mixture, classes: BoolArray | None = None
    ) -> Assessment[MixtureStatistics]:
        """Ask all sites, unless they have just been asked about the same model."""
        if self._last.model != digest(model):
            self._last = self._summary(model)
        return self._last.assessment()

    def sample(
        self, label: int, n_rows: int, generator: np.random.Generator
    ) -> tuple[Rows, FloatArray]:
        """Refuse to draw rows: they do not leave their sites."""
        raise ValueError(
            "A component has collapsed, and cannot start anew without rows of the sites. "
            "Begin with fewer components (n_components), a stronger covariance_prior or "
            "a higher variance_floor."
        )

    def in_units(self, traces: Mapping[str, Sequence[float]]) -> dict[str, FloatArray]:
        """Return traces in the units of the tables, which likelihoods depend on."""
        history = {name: np.array(trace) for name, trace in traces.items()}
        if "likelihood" in history:
            for name in ("value", "likelihood"):
                history[name] -= self._last.log_volume / self.total_weight
        return history

    def _summary(self, model: Mixture) -> Summary:
        # Sites may save what they are asked about, which only whole models allow.
        trial = _published(self._model, model, {})
        answers = [site(trial) for site in self._sites]
        for answer in answers:
            check_answer(answer, trial)
        return combine(answers)


def _learns_class_prior(model: Estimator) -> bool:
    if not isinstance(model, HybridMixtureClassifier):
        return True
    return isinstance(model.class_prior, str) and model.class_prior == "empirical"


def _published(model: Estimator, mixture: Mixture, found: dict[str, Any]) -> Estimator:
    """Return a copy of an estimator that has learned a mixture."""
    result = copy(shared(model))
    learned = {
        **vars(result),
        **model._derived_attributes(mixture, model.schema_),
        "model_": mixture,
        **found,
    }
    if isinstance(model, HybridMixtureClassifier):
        learned |= {"temperature_": 1.0, "uniform_share_": 0.0}
    result.__dict__ = learned
    return result
