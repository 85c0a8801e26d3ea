"""Losses, solvers and starts that users bring along; models too large for the machine."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers import plain_classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from hybridmix import (
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureOutlierDetector,
    load,
    save,
)
from hybridmix.io import registered
from hybridmix.objectives import ConditionalLikelihood, Objective
from hybridmix.solvers import (
    ExpectationMaximisation,
    ExtendedBaumWelch,
    LimitedMemoryBFGS,
    Solver,
)
from hybridmix.training import memory


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


@dataclass(frozen=True)
class SquaredLoss(Objective):
    """Minus the squared distance of class probabilities from the label."""

    needs_rivals = True
    signed = True
    parts = ("squared",)

    def values_and_weights(self, log_joint, labels):
        shares = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=0))
        is_labelled = labels >= 0
        target = (np.arange(len(log_joint))[:, None] == labels) * 1.0
        error = np.where(is_labelled, shares - target, 0.0)
        pulled = error * shares
        weights = -2.0 * (pulled - shares * pulled.sum(axis=0))
        return -np.square(error).sum(axis=0, keepdims=True), weights


def test_a_loss_of_ones_own(iris):
    model = plain_classifier(loss=SquaredLoss(), tradeoff=30.0).fit(*iris)
    assert model.score(*iris) > 0.97
    assert np.all(np.diff(model.history_["value"]) > -1e-9)
    assert "squared" in model.history_


class Contract:
    """The contract without the base class."""

    needs_rivals, signed, parts = True, True, ("conditional",)

    def values_and_weights(self, log_joint, labels):
        return ConditionalLikelihood().values_and_weights(log_joint, labels)


def test_the_contract_counts_and_not_the_class(iris):
    expected = plain_classifier().fit(*iris)
    found = plain_classifier(loss=Contract()).fit(*iris)
    np.testing.assert_array_equal(
        found.predict_proba(iris[0]), expected.predict_proba(iris[0])
    )


@dataclass(frozen=True)
class TwoInTurn(Solver):
    """A few steps of one solver, then the other."""

    needs = ("coordinates", "damped")

    def solve(self, problem, start, watch=None, generator=None):
        self.check(problem, start)
        first = ExtendedBaumWelch(max_iter=5).solve(problem, start, watch)
        return LimitedMemoryBFGS(max_iter=20).solve(problem, first.model, watch)


def test_a_solver_of_ones_own(iris):
    model = plain_classifier(solver=TwoInTurn()).fit(*iris)
    assert model.score(*iris) > 0.97
    assert model.n_iter_ <= 20


def test_a_search_is_a_start_and_can_be_saved(iris, tmp_path):
    search = HybridMixtureClassifierCV(
        n_components=[2], covariance_type=["diag"], tradeoff=[0, 3], cv=2, random_state=0
    ).fit(*iris)
    started = plain_classifier(init=search, covariance_type="diag", n_steps=1)
    started.fit(*iris)
    np.testing.assert_array_equal(started.n_components_, search.n_components_)
    save(search, tmp_path / "search.hmx")
    again = load(tmp_path / "search.hmx")
    np.testing.assert_array_equal(
        again.predict_proba(iris[0]), search.predict_proba(iris[0])
    )
    assert again.best_params_ == search.best_params_
    np.testing.assert_array_equal(again.means_, search.means_)


def test_models_that_do_not_fit_into_memory_are_refused(monkeypatch):
    X = np.random.default_rng(0).normal(size=(20, 300))
    monkeypatch.setattr(memory, "physical_memory", lambda: 4e6)
    message = "covariance_type='full' needs about .*'diag', or 'subspace'"
    with pytest.raises(ValueError, match=message):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            X
        )
    with pytest.raises(ValueError, match=message):
        plain_classifier().fit(X, np.arange(20) % 2)
    for covariance_type in ("diag", "subspace"):
        MixtureDensity(
            covariance_type=covariance_type, n_components=1, covariance_prior=1.0
        ).fit(X)


def test_components_that_are_not_whole_numbers_are_refused(iris):
    for n_components in ([1.9, 2.2], "12", [True], [], 0, None, np.array([2.5])):
        with pytest.raises(ValueError, match=r"n_components=.*whole number"):
            MixtureDensity(
                n_components, covariance_type="full", covariance_prior=1.0
            ).fit(iris[0])


def test_scores_that_are_nan_come_last(iris):
    def scoring(model, X, y):
        return np.nan if model.covariance_type == "full" else model.score(X, y)

    options = {"n_components": [1], "tradeoff": [0], "cv": 2, "random_state": 0}
    search = HybridMixtureClassifierCV(
        covariance_type=["full", "diag"], scoring=scoring, **options
    ).fit(*iris)
    assert search.best_params_["covariance_type"] == "diag"
    assert search.best_estimator_.covariance_type == "diag"
    search = HybridMixtureClassifierCV(
        covariance_type=["full"], scoring=scoring, **options
    )
    with pytest.raises(ValueError, match="Every setting of the search scored NaN"):
        search.fit(*iris)


def test_settings_of_a_search_are_checked_before_work(iris):
    for options, message in (
        ({"covariance_type": ["full", "round"]}, "covariance_type='round'"),
        ({"tradeoff": [0, -1]}, "tradeoff=-1"),
        ({"n_components": [1, 0]}, "n_components=0"),
        ({"covariance_prior": ["auto", -1.0]}, "covariance_prior=-1.0"),
    ):
        search = HybridMixtureClassifierCV(
            **options, scoring=lambda *_: pytest.fail("a setting was scored")
        )
        with pytest.raises(ValueError, match=message):
            search.fit(*iris)


def test_a_search_is_scored_by_its_scorer(iris):
    search = HybridMixtureClassifierCV(
        n_components=[1],
        covariance_type=["diag"],
        tradeoff=[0],
        cv=2,
        scoring="neg_log_loss",
    ).fit(*iris)
    assert search.score(*iris) < 0.0


def test_options_are_checked_before_the_table_is_read(iris, monkeypatch):
    monkeypatch.setattr(
        "hybridmix.data.schema.Schema.learn", lambda *_: pytest.fail("it was read")
    )
    refined = {"covariance_type": "subspace", "refine_subspace": True}
    for options, message in (
        ({"unlabelled_weight": "some"}, "unlabelled_weight='some'"),
        ({"class_prior": "odd"}, "class_prior='odd'"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"solver": ExpectationMaximisation()}, "maximises likelihoods only"),
        ({**refined, "solver": "baum-welch"}, "needs a gradient method"),
    ):
        with pytest.raises(ValueError, match=message):
            plain_classifier(**options).fit(*iris)


def test_reseeded_components_differ():
    """Several points with many rows each, and more components than the rest needs."""
    rng = np.random.default_rng(0)
    points = np.repeat(rng.normal(size=(3, 2)) * 5.0, 60, axis=0)
    X = np.vstack([points, rng.normal(size=(60, 2))])
    model = MixtureDensity(
        6,
        covariance_prior=0.0,
        random_state=0,
        covariance_type="full",
        column_shapes="plain",
    )
    with pytest.warns(ConvergenceWarning, match="started anew"):
        model.fit(X)
    distances = np.linalg.norm(model.means_[:, None] - model.means_, axis=2)
    assert distances[np.triu_indices(6, 1)].min() > 1e-6


def test_folds_are_like_the_model_that_goes_on(iris):
    start = plain_classifier("likelihood", n_components=3, random_state=0)
    start.fit(*iris)
    options = {"init": start, "calibrate": True, "n_steps": 5, "random_state": 0}
    given = plain_classifier(n_components=3, **options).fit(*iris)
    kept = plain_classifier(**options).fit(*iris)
    assert kept.temperature_ == given.temperature_


def test_a_start_has_the_covariances_it_was_fitted_with(iris):
    start = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(iris[0])
    start.set_params(covariance_type="diag")
    with pytest.raises(ValueError, match="another covariance_type"):
        MixtureDensity(2, covariance_type="diag", init=start, covariance_prior=1.0).fit(
            iris[0]
        )
    assert start.marginal([0, 1]).covariances_.shape == (2, 2, 2)


def test_labelled_thresholds_with_a_fitted_start(iris):
    y = np.where(np.arange(150) % 10, 1, -1)
    start = MixtureDensity(
        n_components=1, covariance_type="full", covariance_prior=1.0
    ).fit(iris[0])
    MixtureOutlierDetector(
        1, init=start, threshold="f1", cv=3, covariance_type="full", covariance_prior=1.0
    ).fit(iris[0], y)


@registered(name="tests.Favourite")
class Favourite(HybridMixtureClassifier):
    """An estimator with a constructor of its own."""

    def __init__(self, tradeoff=5.0):
        super().__init__("hybrid", tradeoff=tradeoff, covariance_type="diag", n_steps=3)


def test_a_subclass_with_its_own_constructor_is_saved(iris, tmp_path):
    model = Favourite().fit(*iris)
    save(model, tmp_path / "model.hmx")
    again = load(tmp_path / "model.hmx")
    assert (again.tradeoff, again.covariance_type) == (5.0, "diag")
    np.testing.assert_array_equal(again.predict(iris[0]), model.predict(iris[0]))


def test_an_objective_that_is_not_finite_at_the_start_is_named(iris):
    class Broken(Contract):
        def values_and_weights(self, log_joint, labels):
            values, weights = super().values_and_weights(log_joint, labels)
            return values * np.nan, weights

    with pytest.raises(ValueError, match="Blend is not finite at the start"):
        plain_classifier(loss=Broken()).fit(*iris)
