"""Cross-validated choice of parameters."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score

from hybridmix import HybridMixtureClassifier, HybridMixtureClassifierCV
from hybridmix.data.holes import punch_holes


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def small_search(**options):
    defaults = {
        "n_components": [1, 2],
        "covariance_type": ["diag"],
        "tradeoff": [0, 3, 30],
        "cv": 3,
        "random_state": 0,
    }
    return HybridMixtureClassifierCV(**{**defaults, **options})


def test_results_are_tabulated_the_usual_way(iris):
    template = plain_classifier(loss="hinge")
    search = small_search(estimator=template, margin=["auto", 5.0]).fit(*iris)
    table = search.cv_results_
    assert len(table["params"]) == 12
    scores = np.stack([table[f"split{fold}_test_score"] for fold in range(3)])
    np.testing.assert_allclose(table["mean_test_score"], scores.mean(axis=0))
    np.testing.assert_allclose(table["std_test_score"], scores.std(axis=0))
    best = search.best_index_
    assert table["rank_test_score"][best] == 1
    assert table["params"][best] == search.best_params_
    assert search.best_score_ == table["mean_test_score"].max()
    assert set(search.best_params_) <= set(plain_classifier().get_params())
    settings = {(p["n_components"], p["margin"], p["tradeoff"]) for p in table["params"]}
    assert settings == set(itertools.product([1, 2], ["auto", 5.0], [0, 3, 30]))
    assert (table["mean_fit_time"] > 0).all()
    assert len(pd.DataFrame(table)) == 12


def test_scores_are_those_of_cross_validation(iris):
    """Without a path, a setting is an ordinary fit of the classifier."""
    search = small_search(tradeoff=[10], n_components=[1]).fit(*iris)
    model = plain_classifier(
        "hybrid", tradeoff=10, covariance_type="diag", random_state=0
    )
    expected = cross_val_score(model, *iris, cv=StratifiedKFold(3))
    found = [search.cv_results_[f"split{fold}_test_score"][0] for fold in range(3)]
    np.testing.assert_allclose(found, expected)


def test_the_search_predicts_like_its_best_estimator(iris):
    X, y = iris
    search = small_search().fit(X, y)
    best = search.best_estimator_
    assert isinstance(best, HybridMixtureClassifier)
    assert best.get_params()["tradeoff"] == search.best_params_["tradeoff"]
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    np.testing.assert_array_equal(search.score_samples(X), best.score_samples(X))
    np.testing.assert_array_equal(search.classes_, best.classes_)
    assert search.sample(3)[0].shape == (3, 4)


def test_processes_do_not_change_the_result(iris):
    one = small_search().fit(*iris)
    two = small_search(n_jobs=2).fit(*iris)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(one.means_, two.means_)


def test_any_scorer(iris):
    search = small_search(scoring="neg_log_loss").fit(*iris)
    assert search.best_score_ < 0.0
    search = small_search(scoring=lambda model, X, y: model.tradeoff).fit(*iris)
    assert search.best_params_["tradeoff"] == 30


def test_unlabelled_rows_train_and_are_never_scored(iris):
    X, y = iris
    few = np.where(np.arange(150) % 3 == 0, y, -1)
    seen = []

    def scoring(model, X, y):
        seen.append(y)
        return model.score(X, y)

    search = small_search(scoring=scoring).fit(X, few)
    assert all((labels >= 0).all() for labels in seen)
    assert search.score(X, y) > 0.9


def test_holes_are_punched_into_the_held_out_rows_only(iris):
    seen = []

    def scoring(model, X, y):
        seen.append(np.isnan(X).mean())
        return model.score(X, y)

    complete = small_search().fit(*iris)
    search = small_search(missing_rate=0.4, scoring=scoring).fit(*iris)
    assert np.mean(seen) == pytest.approx(0.4, abs=0.05)
    assert search.best_score_ < complete.best_score_
    assert not np.isnan(search.means_).any()


@pytest.mark.parametrize("library", ["pandas", "polars", "text", "integers"])
def test_holes_in_tables_of_any_kind(library):
    holes = np.array([[True, False], [False, True], [False, False]])
    table = {"a": [1, 2, 3], "b": ["x", "y", "x"]}
    if library == "pandas":
        punched = punch_holes(pd.DataFrame(table), holes)
        np.testing.assert_array_equal(punched.isna(), holes)
        assert punched["b"][0] == "x"
    elif library == "polars":
        punched = punch_holes(pl.DataFrame(table), holes)
        assert punched["a"].to_list() == [None, 2, 3]
        assert punched["b"].to_list() == ["x", None, "x"]
    elif library == "text":
        text = np.array([["p", "q"], ["r", "s"], ["t", "u"]])
        np.testing.assert_array_equal(pd.isna(punch_holes(text, holes)), holes)
    else:
        numbers = np.arange(6).reshape(3, 2)
        np.testing.assert_array_equal(np.isnan(punch_holes(numbers, holes)), holes)
        assert numbers[0, 0] == 0


def test_components_can_be_chosen_for_each_class(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    # The first class falls into two groups.
    X = X.copy()
    X[:25, :2] += 6.0
    search = small_search(
        tradeoff=[0], covariance_type=["spherical"], per_class=True, cv=5
    ).fit(X, y + rng.integers(0, 1, 150))
    tried = [p["n_components"] for p in search.cv_results_["params"]]
    assert any(isinstance(k, dict) for k in tried)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    given = small_search(n_components=[{0: 2, 1: 1, 2: 1}, range(1, 3)]).fit(X, y)
    assert len(given.cv_results_["params"]) == 6


def test_splitters_and_groups(iris):
    groups = np.arange(150) % 7
    search = small_search(cv=GroupKFold(4)).fit(*iris, groups=groups)
    assert search.n_splits_ == 4


def test_progress_is_printed(iris, capsys):
    small_search(verbose=1).fit(*iris)
    assert "search 6/6" in capsys.readouterr().out


def test_an_interrupted_search_keeps_the_best_so_far(iris):
    calls = itertools.count()

    def scoring(model, X, y):
        if next(calls) == 10:  # one of the two bundles has nine scores
            raise KeyboardInterrupt
        return model.score(X, y)

    with pytest.warns(UserWarning, match="best of 3 settings"):
        search = small_search(scoring=scoring).fit(*iris)
    assert len(search.cv_results_["params"]) == 3
    assert search.score(*iris) > 0.9


def test_the_path_takes_fewer_steps_than_fits_from_scratch():
    X, y = load_breast_cancer(return_X_y=True)
    options = {"covariance_type": "diag", "random_state": 0}
    search = small_search(n_components=[1], tradeoff=[0, 1, 3, 10], cv=2).fit(X, y)
    direct = plain_classifier("hybrid", column_shapes="auto", **options).fit(X, y)
    last = clone(search).set_params(tradeoff=[0, 1, 3, 10], scoring=_tradeoff).fit(X, y)
    assert last.best_estimator_.n_iter_ <= direct.n_iter_
    assert last.trace_[-1] == pytest.approx(direct.trace_[-1], abs=0.5)


def _tradeoff(model, X, y):
    return model.tradeoff


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": []}, "margin is empty"),
        ({"margin": [1.0, 2.0]}, "has no margin to choose"),
        ({"tradeoff": [-1]}, "tradeoff=-1"),
        ({"tradeoff": ["x"]}, "tradeoff='x'"),
        ({"missing_rate": 1.5}, "missing_rate=1.5"),
        ({"per_class": "x"}, "per_class='x' is not valid"),
        ({"cv": 0}, "cv=0 is not valid"),
        ({"n_jobs": "x"}, "n_jobs='x' is not valid"),
        ({"n_jobs": 0}, "n_jobs=0 is not valid"),
        ({"random_state": -1}, "random_state=-1 is not valid"),
        ({"verbose": "x"}, "verbose='x' is not valid"),
    ],
)
def test_candidates_are_checked(options, message, iris):
    with pytest.raises(ValueError, match=message):
        small_search(**options).fit(*iris)


def test_a_single_candidate_needs_no_list(iris):
    search = HybridMixtureClassifierCV(
        n_components=1, covariance_type="tied", tradeoff=3, margin="auto", cv=2
    ).fit(*iris)
    assert search.cv_results_["params"] == [search.best_params_]


def test_the_template_is_checked(iris):
    with pytest.raises(TypeError, match="not a str"):
        small_search(estimator="svm").fit(*iris)
    fitted = plain_classifier().fit(*iris)
    template = plain_classifier(init=fitted)
    with pytest.raises(ValueError, match="its own start"):
        small_search(estimator=template).fit(*iris)


def test_a_search_refuses_what_it_cannot_do(iris):
    template = plain_classifier(validation_fraction=0.2)
    with pytest.raises(ValueError, match="validation_fraction"):
        small_search(estimator=template).fit(*iris)
    with pytest.raises(ValueError, match="single score"):
        small_search(scoring=["accuracy", "neg_log_loss"]).fit(*iris)


def test_a_second_search_leaves_nothing_of_the_first(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(y == 1, "u", "v"))
    search = small_search().fit(frame, y)
    assert hasattr(search, "categories_")
    search.fit(X, y)
    assert not hasattr(search, "categories_")
