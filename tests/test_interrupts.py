"""Interrupts within one of several fits: what is done is kept, the rest is not begun."""

import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from test_refits import MODELS, first_table, second_table

from hybridmix.problem import Problem
from hybridmix.solvers import ExpectationMaximisation, LimitedMemoryBFGS


class InterruptedSolver:
    """Stands for a solver that the user interrupts in the middle of one of its runs."""

    def __init__(self, monkeypatch, solver, run):
        self.n_runs = 0
        whole, assess = solver.solve, Problem.assess

        def solve(*args, **kwargs):
            self.n_runs += 1
            if self.n_runs != run:
                return whole(*args, **kwargs)
            calls = itertools.count()

            def interrupted(*args, **kwargs):
                if next(calls) == 2:
                    raise KeyboardInterrupt
                return assess(*args, **kwargs)

            with monkeypatch.context() as patched:
                patched.setattr(Problem, "assess", interrupted)
                return whole(*args, **kwargs)

        monkeypatch.setattr(solver, "solve", solve)


def slow(kind, **options):
    """Return a model whose EM does not end before the third iteration."""
    model = MODELS[kind]().set_params(**options)
    part = model.estimator if kind == "search" else model
    part.set_params(tol=1e-12)
    return model


def test_an_interrupted_calibration_leaves_the_model_as_trained(monkeypatch):
    X, y = first_table()
    plain = MODELS["classifier"]().fit(X, y)
    solver = InterruptedSolver(monkeypatch, LimitedMemoryBFGS, 3)
    model = MODELS["classifier"]().set_params(calibrate=True)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best model so far"):
        model.fit(X, y)
    assert solver.n_runs == 3  # no further fold
    assert (model.temperature_, model.uniform_share_) == (1.0, 0.0)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_an_interrupt_ends_the_choice_of_the_weight_of_unlabelled_rows(monkeypatch):
    X, y = second_table()
    y = np.where(np.arange(30) % 3, y, None)
    solver = InterruptedSolver(monkeypatch, ExpectationMaximisation, 2)
    with pytest.raises(KeyboardInterrupt):
        slow("classifier").fit(X, y)
    assert solver.n_runs == 2


def test_an_interrupted_imputer_keeps_the_draws_that_are_done(monkeypatch):
    X, _ = first_table()
    InterruptedSolver(monkeypatch, ExpectationMaximisation, 4)
    with pytest.warns(ConvergenceWarning, match="Interrupted: 2 of 5 draws are kept"):
        model = slow("imputer", n_draws=5).fit(X)
    assert len(model.draw(X)) == 2


def test_an_interrupt_within_a_fold_ends_the_search(monkeypatch):
    options = {"covariance_type": ["full", "diag"]}
    solver = InterruptedSolver(monkeypatch, LimitedMemoryBFGS, 2)
    model = slow("search", **options)
    with pytest.raises(KeyboardInterrupt):  # no setting has the scores of both folds
        model.fit(*first_table())
    assert solver.n_runs == 2
    assert not hasattr(model, "best_estimator_")
    solver = InterruptedSolver(monkeypatch, LimitedMemoryBFGS, 3)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best of 2 settings"):
        model.fit(*first_table())
    assert model.best_params_["covariance_type"] == "full"


def test_an_interrupt_within_a_fold_ends_the_choice_of_a_threshold(monkeypatch):
    solver = InterruptedSolver(monkeypatch, ExpectationMaximisation, 1)
    X, _ = second_table()
    detector = slow("detector", threshold="f1", cv=2)
    with pytest.raises(KeyboardInterrupt):
        detector.fit(X, np.where(np.arange(30) % 5, 1, -1))
    assert solver.n_runs == 1
