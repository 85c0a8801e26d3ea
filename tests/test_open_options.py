"""Losses, solvers and starts that users bring along; models too large for the machine."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_iris

from hybridmix import (
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
    MixtureDensity,
    load,
    save,
)
from hybridmix.objectives import ConditionalLikelihood, Objective
from hybridmix.solvers import ExtendedBaumWelch, LimitedMemoryBFGS, Solver
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
    model = HybridMixtureClassifier(loss=SquaredLoss(), tradeoff=30.0).fit(*iris)
    assert model.score(*iris) > 0.97
    assert np.all(np.diff(model.history_["value"]) > -1e-9)
    assert "squared" in model.history_


class Contract:
    """The contract without the base class."""

    needs_rivals, signed, parts = True, True, ("conditional",)

    def values_and_weights(self, log_joint, labels):
        return ConditionalLikelihood().values_and_weights(log_joint, labels)


def test_the_contract_counts_and_not_the_class(iris):
    expected = HybridMixtureClassifier().fit(*iris)
    found = HybridMixtureClassifier(loss=Contract()).fit(*iris)
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
    model = HybridMixtureClassifier(solver=TwoInTurn()).fit(*iris)
    assert model.score(*iris) > 0.97
    assert model.n_iter_ <= 20


def test_a_search_is_a_start_and_can_be_saved(iris, tmp_path):
    search = HybridMixtureClassifierCV(
        n_components=[2], covariance_type=["diag"], tradeoff=[0, 3], cv=2, random_state=0
    ).fit(*iris)
    started = HybridMixtureClassifier(init=search, covariance_type="diag", n_steps=1)
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
        MixtureDensity().fit(X)
    with pytest.raises(ValueError, match=message):
        HybridMixtureClassifier().fit(X, np.arange(20) % 2)
    for covariance_type in ("diag", "subspace"):
        MixtureDensity(covariance_type=covariance_type).fit(X)
